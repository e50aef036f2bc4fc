//! Reading single values: each either is right or leaves one diagnostic that says what would be.

use std::ops::Range;

use toml::de::{DeInteger, DeValue};

use super::diagnostics::{Diagnostic, Report};
use super::document::{Entry, kind, listing, nearest, shortened};
use super::quantity::{self, Problem, Quantity, QuantityError};
use crate::base::{Class, Octets, Rate, Share, Span};
use crate::port::Scheduling;

pub(super) fn string<'d>(entry: &Entry<'d>, report: &mut Report) -> Option<&'d str> {
    match entry.value.get_ref() {
        DeValue::String(text) => Some(text),
        other => {
            refuse_kind(entry, other, "a string", "write it in quotation marks", report);
            None
        }
    }
}

pub(super) fn boolean(entry: &Entry<'_>, report: &mut Report) -> Option<bool> {
    match entry.value.get_ref() {
        DeValue::Boolean(value) => Some(*value),
        other => {
            refuse_kind(entry, other, "a boolean", "write true or false, without quotation marks", report);
            None
        }
    }
}

/// A whole number in `least..=most`.
pub(super) fn whole(entry: &Entry<'_>, least: u64, most: u64, report: &mut Report) -> Option<u64> {
    let help = match most {
        u64::MAX => format!("write a whole number from {least} up"),
        most => format!("write a whole number from {least} to {most}"),
    };
    match entry.value.get_ref() {
        DeValue::Integer(number) => {
            let value = integer(number).filter(|value| (least..=most).contains(value));
            if value.is_none() {
                report.push(
                    Diagnostic::error(
                        entry.value.span(),
                        format!("`{}` cannot be {}", entry.name, shortened(&number.to_string())),
                    )
                    .label("out of range")
                    .help(help),
                );
            }
            value
        }
        other => {
            refuse_kind(entry, other, "a whole number", &help, report);
            None
        }
    }
}

/// `None` if negative or of more than 64 bits.
pub(super) fn integer(number: &DeInteger<'_>) -> Option<u64> {
    u64::from_str_radix(number.as_str(), number.radix()).ok()
}

pub(super) fn size(entry: &Entry<'_>, report: &mut Report) -> Option<Octets> {
    quantity(entry, Quantity::Size, quantity::parse_size, report)
}

pub(super) fn rate(entry: &Entry<'_>, report: &mut Report) -> Option<Rate> {
    quantity(entry, Quantity::Rate, quantity::parse_rate, report)
}

pub(super) fn span(entry: &Entry<'_>, report: &mut Report) -> Option<Span> {
    quantity(entry, Quantity::Span, quantity::parse_span, report)
}

/// A number of seconds, as the seeds write the intervals of records, or a time with its unit.
pub(super) fn seconds(entry: &Entry<'_>, report: &mut Report) -> Option<Span> {
    let read = match entry.value.get_ref() {
        DeValue::Integer(number) => quantity::parse_seconds(&number.to_string()),
        DeValue::Float(number) => quantity::parse_seconds(number.as_str()),
        DeValue::String(text) => quantity::parse_span(text).or_else(|refused| match refused.problem {
            Problem::NoUnit => quantity::parse_seconds(text),
            _ => Err(refused),
        }),
        other => {
            refuse_kind(entry, other, "a number of seconds", "write seconds, for example 0.001 or \"1ms\"", report);
            return None;
        }
    };
    read.map_err(|refused| refuse_quantity(entry.name, entry.value.span(), refused, refused.help(), report)).ok()
}

fn quantity<T>(
    entry: &Entry<'_>,
    quantity: Quantity,
    parse: fn(&str) -> Result<T, QuantityError>,
    report: &mut Report,
) -> Option<T> {
    let text = match entry.value.get_ref() {
        DeValue::String(text) => text.as_ref(),
        // A bare number is understood, so that the help can finish it.
        DeValue::Integer(number) => return unitless(entry, quantity, &number.to_string(), report),
        DeValue::Float(number) => return unitless(entry, quantity, number.as_str(), report),
        other => {
            refuse_kind(entry, other, quantity.name(), quantity.help(), report);
            return None;
        }
    };
    parse(text).map_err(|refused| refuse_quantity(entry.name, entry.value.span(), refused, refused.help(), report)).ok()
}

fn unitless<T>(entry: &Entry<'_>, quantity: Quantity, digits: &str, report: &mut Report) -> Option<T> {
    let problem = if digits.starts_with('-') { Problem::Negative } else { Problem::NoUnit };
    let refused = QuantityError { quantity, problem };
    refuse_quantity(entry.name, entry.value.span(), refused, quantity.help(), report);
    None
}

fn refuse_quantity(name: &str, span: Range<usize>, refused: QuantityError, help: &str, report: &mut Report) {
    let label = match refused.problem {
        Problem::NotANumber => "not a number",
        Problem::Negative => "negative",
        Problem::NoUnit => "no unit",
        Problem::UnknownUnit(_) => "unknown unit",
        Problem::TooFine => "too fine",
        Problem::TooLarge => "too large",
        Problem::Zero => "zero",
    };
    report.push(Diagnostic::error(span, format!("`{name}`: {refused}")).label(label).help(help.to_owned()));
}

pub(super) fn refuse_kind(entry: &Entry<'_>, found: &DeValue<'_>, wanted: &str, help: &str, report: &mut Report) {
    let span = match found {
        // The span of a table may be a header of its own; its key always stands on the right line.
        DeValue::Table(_) => entry.key.clone(),
        _ => entry.value.span(),
    };
    report.push(
        Diagnostic::error(span, format!("`{}` is {}, not {wanted}", entry.name, kind(found)))
            .label(format!("not {wanted}"))
            .help(help.to_owned()),
    );
}

pub(super) fn class(entry: &Entry<'_>, report: &mut Report) -> Option<Class> {
    let class = whole(entry, 0, Class::COUNT as u64 - 1, report)?;
    u8::try_from(class).ok().and_then(Class::new)
}

pub(super) fn scheduling(entry: &Entry<'_>, report: &mut Report) -> Option<Scheduling> {
    const NAMES: [(&str, &str, Scheduling); 3] = [
        ("StrictPriority", "strict_priority", Scheduling::StrictPriority),
        ("RoundRobin", "round_robin", Scheduling::RoundRobin),
        ("WeightedRoundRobin", "weighted_round_robin", Scheduling::WeightedRoundRobin),
    ];
    let text = string(entry, report)?;
    let found = NAMES.iter().find(|(seed, snake, _)| *seed == text || *snake == text);
    if found.is_none() {
        report.push(
            Diagnostic::error(entry.value.span(), format!("`{}` is not a way to take turns", shortened(text)))
                .label("unknown")
                .help("write \"StrictPriority\", \"RoundRobin\" or \"WeightedRoundRobin\""),
        );
    }
    found.map(|(.., scheduling)| *scheduling)
}

/// One value, or every value of an array.
pub(super) fn each<'d>(entry: &Entry<'d>, report: &mut Report) -> Vec<Entry<'d>> {
    let DeValue::Array(list) = entry.value.get_ref() else { return vec![entry.clone()] };
    if list.is_empty() {
        report.push(
            Diagnostic::error(entry.value.span(), format!("`{}` is an empty list", entry.name))
                .label("nothing")
                .help("write one value or several, or leave the key out if any will do"),
        );
    }
    list.iter().map(|value| Entry { name: entry.name, key: entry.key.clone(), value }).collect()
}

/// One of a few words.
pub(super) fn choice<T: Copy>(entry: &Entry<'_>, what: &str, choices: &[(&str, T)], report: &mut Report) -> Option<T> {
    choice_of(entry, what, "", choices, report)
}

/// One of the words that `topic` of the reference lists.
pub(super) fn choice_of<T: Copy>(
    entry: &Entry<'_>,
    what: &str,
    topic: &str,
    choices: &[(&str, T)],
    report: &mut Report,
) -> Option<T> {
    let text = string(entry, report)?;
    let found = choices.iter().find(|(name, _)| *name == text);
    if found.is_none() && !report.is_full() {
        let names = || choices.iter().map(|(name, _)| *name);
        let label = nearest(text, names()).map_or("unknown".to_owned(), |near| format!("did you mean `{near}`?"));
        let known = listing(names().map(|name| format!("\"{name}\"")), topic);
        report.push(
            Diagnostic::error(entry.value.span(), format!("`{}` is not {what}", shortened(text)))
                .label(label)
                .help(format!("write {known}")),
        );
    }
    found.map(|(_, choice)| *choice)
}

/// A fraction, as a number or as a string; its digits are taken as written.
pub(super) fn share(entry: &Entry<'_>, report: &mut Report) -> Option<Share> {
    share_with(entry, Quantity::Share.help(), report)
}

fn share_with(entry: &Entry<'_>, help: &str, report: &mut Report) -> Option<Share> {
    let read = match entry.value.get_ref() {
        DeValue::Integer(number) => quantity::parse_share(&number.to_string()),
        DeValue::Float(number) => quantity::parse_share(number.as_str()),
        DeValue::String(text) => quantity::parse_share(text),
        other => {
            refuse_kind(entry, other, "a number", help, report);
            return None;
        }
    };
    read.map_err(|refused| refuse_quantity(entry.name, entry.value.span(), refused, help, report)).ok()
}

/// A share above 0 and up to 1.
pub(super) fn probability(entry: &Entry<'_>, report: &mut Report) -> Option<Share> {
    const HELP: &str = "write a number above 0 and up to 1, for example 0.001 for one frame in a thousand";
    let share = share_with(entry, HELP, report)?;
    let why = match share {
        Share::ZERO => "never happens",
        share if share > Share::from_percent(100) => "is more than certain",
        _ => return Some(share),
    };
    report.push(
        Diagnostic::error(entry.value.span(), format!("`{}`: what has this probability {why}", entry.name))
            .label("out of range")
            .help(HELP),
    );
    None
}

/// `None` for "auto", else what `read` makes of it.
pub(super) fn auto<T>(
    entry: &Entry<'_>,
    read: impl FnOnce(&Entry<'_>, &mut Report) -> Option<T>,
    report: &mut Report,
) -> Option<Option<T>> {
    match entry.value.get_ref() {
        DeValue::String(text) if text == "auto" => Some(None),
        _ => read(entry, report).map(Some),
    }
}

/// A rate; a zero with or without a unit is none.
pub(super) fn rate_or_zero(entry: &Entry<'_>, report: &mut Report) -> Option<Option<Rate>> {
    let is_zero = match entry.value.get_ref() {
        DeValue::Integer(number) => integer(number) == Some(0),
        DeValue::String(text) => quantity::parse_rate(text).is_err_and(|refused| refused.problem == Problem::Zero),
        _ => false,
    };
    if is_zero { Some(None) } else { rate(entry, report).map(Some) }
}

/// A name for people, which nothing else is made of.
pub(super) fn title<'d>(entry: &Entry<'d>, report: &mut Report) -> Option<&'d str> {
    const MOST: usize = 64;
    let text = string(entry, report)?;
    if !text.trim().is_empty() && text.len() <= MOST && !text.contains(char::is_control) {
        return Some(text);
    }
    report.push(
        Diagnostic::error(entry.value.span(), format!("`{}` cannot be a name", shortened(text)))
            .label("not a name")
            .help(format!("write 1 to {MOST} octets of text on one line")),
    );
    None
}

/// Whole numbers `first` to `last`, both included.
pub(super) type Numbers = (u64, u64);

/// Whole numbers and ranges of them, `"100..110"` with both ends, alone or in an array.
pub(super) fn numbers(
    entry: &Entry<'_>,
    least: u64,
    most: u64,
    wraps: bool,
    report: &mut Report,
) -> Option<Vec<Numbers>> {
    let items = each(entry, report);
    let read: Vec<_> = items.iter().filter_map(|item| number_or_range(item, least, most, wraps, report)).collect();
    (!items.is_empty() && read.len() == items.len()).then_some(read)
}

fn number_or_range(entry: &Entry<'_>, least: u64, most: u64, wraps: bool, report: &mut Report) -> Option<Numbers> {
    let DeValue::String(text) = entry.value.get_ref() else {
        return whole(entry, least, most, report).map(|number| (number, number));
    };
    let ends = text.split_once("..").map(|(first, last)| (first.trim().parse(), last.trim().parse()));
    if let Some((Ok(first), Ok(last))) = ends
        && [first, last].iter().all(|end| (least..=most).contains(end))
        && (first <= last || wraps)
    {
        return Some((first, last));
    }
    let message = format!("`{}`: `{}` is not a range from {least} to {most}", entry.name, shortened(text));
    report.push(
        Diagnostic::error(entry.value.span(), message)
            .label("not a range")
            .help("write a whole number, or a range with both its ends: \"100..110\""),
    );
    None
}

/// A name that can be part of a path, of a table and of a command line.
pub(super) fn identifier<'d>(
    what: &str,
    text: &'d str,
    span: Range<usize>,
    most: usize,
    dots: bool,
    report: &mut Report,
) -> Option<&'d str> {
    let right = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_' || (dots && c == '.');
    let starts = text.starts_with(|c: char| c.is_ascii_alphanumeric());
    if starts && text.len() <= most && text.chars().all(right) {
        return Some(text);
    }
    let dot = if dots { ", dots" } else { "" };
    report.push(
        Diagnostic::error(span, format!("`{}` cannot be the name of {what}", shortened(text)))
            .label("not a name")
            .help(format!(
                "use 1 to {most} letters, digits, hyphens, underscores{dot}; the first one a letter or a digit"
            )),
    );
    None
}
