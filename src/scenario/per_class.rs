//! Lists of eight, one value per traffic class.

use std::ops::Range;

use toml::de::DeValue;

use super::diagnostics::{Diagnostic, Report};
use super::document::{Entry, Value, kind, shortened};
use super::quantity;
use super::values::{integer, refuse_kind};
use crate::base::{Class, Octets, Share};
use crate::port::PerClass;

/// One literal of a list of eight: its digits as written, and where.
struct Item {
    text: String,
    span: Range<usize>,
}

/// A list of eight, one per class: a TOML array, or a string as the seeds write it.
fn per_class<T: Copy>(
    entry: &Entry<'_>,
    help: &str,
    read: impl Fn(&str) -> Result<T, String>,
    report: &mut Report,
) -> Option<(PerClass<T>, PerClass<Range<usize>>)> {
    let items = match entry.value.get_ref() {
        DeValue::Array(list) => list.iter().map(literal).collect(),
        DeValue::String(text) => listed(text, &entry.value.span()),
        other => {
            refuse_kind(entry, other, "a list of eight, one per class", help, report);
            return None;
        }
    };
    let count = items.len();
    let Ok(items) = <[Item; Class::COUNT]>::try_from(items) else {
        let count = if count > Class::COUNT { "more than eight".to_owned() } else { count.to_string() };
        report.push(
            Diagnostic::error(entry.value.span(), format!("`{}` has {count} entries; it needs eight", entry.name))
                .label("one entry per class is needed")
                .help(help.to_owned()),
        );
        return None;
    };
    let values: Vec<_> = items
        .iter()
        .enumerate()
        .filter_map(|(class, item)| match read(&item.text) {
            Ok(value) => Some(value),
            Err(why) => {
                let message = format!("entry {class} of `{}`: {why}", entry.name);
                report.push(Diagnostic::error(item.span.clone(), message).label("wrong entry").help(help.to_owned()));
                None
            }
        })
        .collect();
    Some((PerClass::try_from(values).ok()?, items.map(|item| item.span)))
}

/// One value for all classes, or a list of eight.
fn one_or_eight<T: Copy>(
    entry: &Entry<'_>,
    help: &str,
    read: impl Fn(&str) -> Result<T, String>,
    report: &mut Report,
) -> Option<PerClass<T>> {
    let is_list = match entry.value.get_ref() {
        DeValue::String(text) => text.contains([',', '[']),
        DeValue::Integer(_) | DeValue::Float(_) | DeValue::Boolean(_) => false,
        _ => true,
    };
    if is_list {
        return per_class(entry, help, read, report).map(|(values, _)| values);
    }
    match read(&literal(entry.value).text) {
        Ok(value) => Some([value; Class::COUNT]),
        Err(why) => {
            let message = format!("`{}`: {why}", entry.name);
            report.push(Diagnostic::error(entry.value.span(), message).label("for every class").help(help.to_owned()));
            None
        }
    }
}

fn literal(element: &Value<'_>) -> Item {
    let text = match element.get_ref() {
        DeValue::Integer(number) if number.radix() == 10 => number.as_str().to_owned(),
        DeValue::Integer(number) => integer(number).map_or_else(|| number.to_string(), |value| value.to_string()),
        DeValue::Float(number) => number.as_str().to_owned(),
        DeValue::Boolean(value) => value.to_string(),
        DeValue::String(text) => text.trim().to_owned(),
        other => kind(other).to_owned(),
    };
    Item { text, span: element.span() }
}

/// `"[0.9, 0.1, 0, 0, 0, 0, 0, 0]"`, the brackets being optional.
fn listed(text: &str, span: &Range<usize>) -> Vec<Item> {
    let text = text.trim();
    let inner = text.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(text);
    // One more than eight is enough to know that it is too long.
    inner
        .split(',')
        .take(Class::COUNT + 1)
        .map(|item| Item { text: item.trim().to_owned(), span: span.clone() })
        .collect()
}

const SHARES_HELP: &str = "write eight fractions, for example [0.8, 0.8, 0, 0, 0, 0, 0, 0]";

pub(super) fn shares(entry: &Entry<'_>, report: &mut Report) -> Option<PerClass<Share>> {
    per_class(entry, SHARES_HELP, share, report).map(|(values, _)| values)
}

fn share(text: &str) -> Result<Share, String> {
    quantity::parse_share(text).map_err(|refused| refused.to_string())
}

/// Shares whose non-zero entries come first, without a gap, and are at least one.
///
/// * Source: model.md §2.1, start-up refusals.
pub(super) fn pools(entry: &Entry<'_>, report: &mut Report) -> Option<PerClass<Share>> {
    const HELP: &str = "the non-zero entries start at class 0 and run without a 0 between them, for example \
                        [0.9, 0.1, 0, 0, 0, 0, 0, 0]";
    let (values, spans) = per_class(entry, HELP, share, report)?;
    let Some(last) = values.iter().rposition(|share| !share.is_zero()) else {
        report.push(
            Diagnostic::error(entry.value.span(), format!("`{}` gives no class a pool", entry.name))
                .label("every entry is 0")
                .help(HELP),
        );
        return None;
    };
    if let Some(gap) = values[..last].iter().position(|share| share.is_zero()) {
        let message = format!("`{}` leaves class {gap} without a pool although class {last} has one", entry.name);
        report.push(Diagnostic::error(spans[gap].clone(), message).label("a gap").help(HELP));
        return None;
    }
    Some(values)
}

pub(super) fn switches(entry: &Entry<'_>, report: &mut Report) -> Option<PerClass<bool>> {
    const HELP: &str = "write 1 or 0 for every class, or eight of them, for example [1, 1, 0, 0, 0, 0, 0, 0]";
    let read = |text: &str| match text {
        "1" | "true" => Ok(true),
        "0" | "false" => Ok(false),
        _ => Err(format!("`{}` is neither 1 nor 0", shortened(text))),
    };
    one_or_eight(entry, HELP, read, report)
}

pub(super) fn weights(entry: &Entry<'_>, report: &mut Report) -> Option<PerClass<u32>> {
    const HELP: &str = "write a whole number of packets for every class, or eight of them, for example \
                        [1, 3, 0, 0, 0, 0, 0, 0]";
    one_or_eight(entry, HELP, |text| whole_item(text, u32::MAX), report)
}

pub(super) fn quanta(entry: &Entry<'_>, report: &mut Report) -> Option<PerClass<u16>> {
    const HELP: &str = "write a whole number from 0 to 65535 for every class, or eight of them, for example \
                        [65535, 65535, 0, 0, 0, 0, 0, 0]";
    one_or_eight(entry, HELP, |text| whole_item(text, u16::MAX), report)
}

pub(super) fn sizes(entry: &Entry<'_>, report: &mut Report) -> Option<PerClass<Octets>> {
    const HELP: &str = "write a size with its unit for every class, for example \"700KB\", or a list of eight";
    one_or_eight(entry, HELP, |text| quantity::parse_size(text).map_err(|refused| refused.to_string()), report)
}

fn whole_item<T: std::str::FromStr + std::fmt::Display>(text: &str, most: T) -> Result<T, String> {
    text.parse().map_err(|_| format!("`{}` is not a whole number from 0 to {most}", shortened(text)))
}
