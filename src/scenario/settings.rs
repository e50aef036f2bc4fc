//! From a table of attributes to their values, with the place in the file that each value comes from.

use std::collections::BTreeMap;
use std::ops::Range;

use super::attributes::{Attribute, Owner, Place, Settings, Slot, table_of};
use super::components::Component;
use super::diagnostics::{Diagnostic, Report};
use super::document::{Entry, Table};
use super::{per_class, values};
use crate::base::{Octets, Rate, Share, Span};
use crate::nic::{CongestionControl, DoorbellCost, RateApplication};

/// Where a value stands in the file, and whether it could be read.
#[derive(Clone, Debug)]
struct Origin {
    span: Range<usize>,
    sound: bool,
}

/// Where the values of one table of attributes stand, by the names of their slots.
#[derive(Clone, Debug, Default)]
pub(super) struct Origins(BTreeMap<&'static str, Origin>);

impl Origins {
    pub(super) fn span(&self, slot: &str) -> Option<Range<usize>> {
        self.0.get(slot).map(|origin| origin.span.clone())
    }

    /// Whether the value was left out or could be read. Conclusions from a value that was refused would only mislead.
    pub(super) fn is_sound(&self, slot: &str) -> bool {
        self.0.get(slot).is_none_or(|origin| origin.sound)
    }
}

struct Assignment<'d> {
    attribute: &'static Attribute,
    entry: Entry<'d>,
}

/// Applies every attribute of `table` to `settings`, and refuses what is none.
///
/// An attribute of one PCIe side comes before that of both, wherever they stand.
pub(super) fn apply(
    component: &'static Component,
    table: Table<'_>,
    owner: Owner<'_>,
    settings: &mut Settings,
    report: &mut Report,
) -> Origins {
    let mut found = Vec::new();
    collect(component, table, owner, &mut found, report);
    found.sort_by_key(|assignment| std::cmp::Reverse(assignment.attribute.slots.len()));
    let mut origins = Origins::default();
    for Assignment { attribute, entry } in &found {
        for Slot(name, place) in attribute.slots {
            let sound = assign(attribute, place, entry, settings, report).is_some();
            origins.0.insert(name, Origin { span: entry.value.span(), sound });
        }
    }
    refuse_twins(&found, report);
    origins
}

fn collect<'d>(
    component: &'static Component,
    mut table: Table<'d>,
    owner: Owner<'_>,
    found: &mut Vec<Assignment<'d>>,
    report: &mut Report,
) {
    collect_attributes(component, &mut table, found);
    collect_parts(component, &mut table, owner, found, report);
    table.finish(|name| table_of(name, owner), report);
}

/// Takes the attributes of `component` that stand directly in `table`.
fn collect_attributes<'d>(component: &'static Component, table: &mut Table<'d>, found: &mut Vec<Assignment<'d>>) {
    for &attribute in component.attributes {
        let by_name = table.take(attribute.name);
        let by_seed_name = attribute.seed_name.and_then(|name| table.take_alias(name));
        found.extend(by_name.into_iter().chain(by_seed_name).map(|entry| Assignment { attribute, entry }));
    }
}

fn collect_parts<'d>(
    component: &'static Component,
    table: &mut Table<'d>,
    owner: Owner<'_>,
    found: &mut Vec<Assignment<'d>>,
    report: &mut Report,
) {
    for &part in component.parts {
        for (index, &name) in part.names.iter().enumerate() {
            // Only our own names are listed as known keys; those of the specification begin with a capital.
            let listed = index == 0 && name.starts_with(|c: char| c.is_ascii_lowercase());
            let entry = if listed { table.take(name) } else { table.take_alias(name) };
            let Some(entry) = entry else { continue };
            let header = format!("{}.{name}]", table.name.trim_end_matches(']'));
            if let Some(table) = Table::read(&entry, header, report) {
                collect(part, table, owner, found, report);
            }
        }
    }
}

/// Reads the attributes of `component` out of a table that has other keys as well; its owner finishes it.
pub(super) fn apply_among<'d>(
    component: &'static Component,
    table: &mut Table<'d>,
    settings: &mut Settings,
    report: &mut Report,
) {
    let mut found = Vec::new();
    collect_attributes(component, table, &mut found);
    for Assignment { attribute, entry } in &found {
        for Slot(_, place) in attribute.slots {
            assign(attribute, place, entry, settings, report);
        }
    }
    refuse_twins(&found, report);
}

/// One attribute under two names: which one holds would depend on nothing the author can see.
fn refuse_twins(found: &[Assignment<'_>], report: &mut Report) {
    let mut seen: BTreeMap<(&str, usize), &Entry<'_>> = BTreeMap::new();
    for Assignment { attribute, entry } in found {
        let identity = (attribute.slots[0].0, attribute.slots.len());
        let Some(first) = seen.insert(identity, entry) else { continue };
        let (first, second) = if first.key.start < entry.key.start { (first, entry) } else { (entry, first) };
        report.push(
            Diagnostic::error(
                second.key.clone(),
                format!("`{}` and `{}` are the same attribute", first.name, second.name),
            )
            .label("given a second time")
            .help("keep one of the two")
            .related(first.key.clone(), "given here first"),
        );
    }
}

/// Reads `entry` as what `place` holds and puts it there.
fn assign(
    attribute: &Attribute,
    place: &Place,
    entry: &Entry<'_>,
    settings: &mut Settings,
    report: &mut Report,
) -> Option<()> {
    let (least, most) = attribute.range;
    let within = |value: u64, show: Show, report: &mut Report| {
        let inside = (least..=most).contains(&value);
        if !inside {
            refuse_range(attribute, entry, value, show, report);
        }
        inside.then_some(())
    };
    match place {
        Place::Size(at) => *at(settings) = size(entry, &within, report)?,
        Place::AutoSize(at) => {
            *at(settings) = values::auto(entry, |entry, report| size(entry, &within, report), report)?
        }
        Place::Rate(at) => *at(settings) = rate(entry, &within, report)?,
        Place::AutoRate(at) => {
            *at(settings) = values::auto(entry, |entry, report| rate(entry, &within, report), report)?
        }
        Place::ZeroRate(at) => *at(settings) = values::rate_or_zero(entry, report)?,
        Place::Span(at) => {
            let value = values::span(entry, report)?;
            within(value.ps(), show_span, report)?;
            *at(settings) = value;
        }
        Place::Seconds(at) => {
            let value = values::seconds(entry, report)?;
            within(value.ps(), show_span, report)?;
            *at(settings) = value;
        }
        Place::Nanoseconds(at) => *at(settings) = Span::from_ns(values::whole(entry, least, most, report)?),
        Place::Flag(at) => *at(settings) = values::boolean(entry, report)?,
        Place::Count(at) => *at(settings) = number(entry, least, most.min(u64::from(u32::MAX)), report)?,
        Place::Short(at) => *at(settings) = number(entry, least, most.min(u64::from(u16::MAX)), report)?,
        Place::Byte(at) => *at(settings) = number(entry, least, most.min(u64::from(u8::MAX)), report)?,
        Place::AutoNumber(at) => {
            *at(settings) = values::auto(entry, |entry, report| values::whole(entry, least, most, report), report)?;
        }
        Place::Share(at) => {
            let value = values::share(entry, report)?;
            within(value.parts(), |parts| Share::from_parts(parts).to_string(), report)?;
            *at(settings) = value;
        }
        Place::Percent(at) => *at(settings) = Share::from_percent(values::whole(entry, least, most, report)?),
        Place::Class(at) => *at(settings) = values::class(entry, report)?,
        Place::Scheduling(at) => *at(settings) = values::scheduling(entry, report)?,
        Place::Control(at) => *at(settings) = values::choice(entry, "a congestion control", CONTROLS, report)?,
        Place::Application(at) => *at(settings) = values::choice(entry, "a way to apply rates", APPLICATIONS, report)?,
        Place::Doorbell(at) => *at(settings) = values::choice(entry, "a cost of doorbells", DOORBELLS, report)?,
        Place::SlotSize(at) => {
            let value = size(entry, &within, report)?;
            if !value.get().is_power_of_two() {
                refuse_odd_size(attribute, entry, value, report);
                return None;
            }
            *at(settings) = value;
        }
        Place::Pools(at) => *at(settings) = per_class::pools(entry, report)?,
        Place::Shares(at) => *at(settings) = per_class::shares(entry, report)?,
        Place::Switches(at) => *at(settings) = per_class::switches(entry, report)?,
        Place::Weights(at) => *at(settings) = per_class::weights(entry, report)?,
        Place::Quanta(at) => *at(settings) = per_class::quanta(entry, report)?,
        Place::Sizes(at) => {
            let sizes = per_class::sizes(entry, report)?;
            for size in sizes {
                within(size.get(), show_size, report)?;
            }
            *at(settings) = sizes;
        }
        Place::Fixed => {
            values::whole(entry, least, most, report)?;
        }
    }
    Some(())
}

const CONTROLS: &[(&str, CongestionControl)] = &[
    ("ecn_loop", CongestionControl::EcnLoop),
    ("dcqcn_paper", CongestionControl::DcqcnPaper),
    ("dcqcn_nvidia", CongestionControl::DcqcnNvidia),
    ("none", CongestionControl::None),
];

const APPLICATIONS: &[(&str, RateApplication)] =
    &[("serialize", RateApplication::Serialize), ("pace", RateApplication::Pace)];

const DOORBELLS: &[(&str, DoorbellCost)] = &[("free", DoorbellCost::Free), ("modelled", DoorbellCost::Modelled)];

/// How a value is written in messages.
type Show = fn(u64) -> String;

fn show_size(octets: u64) -> String {
    Octets::new(octets).to_string()
}

fn show_span(ps: u64) -> String {
    Span::from_ps(ps).to_string()
}

fn show_rate(bps: u64) -> String {
    Rate::from_bps(bps).map_or_else(String::new, |rate| rate.to_string())
}

fn size(
    entry: &Entry<'_>,
    within: &impl Fn(u64, Show, &mut Report) -> Option<()>,
    report: &mut Report,
) -> Option<Octets> {
    let value = values::size(entry, report)?;
    within(value.get(), show_size, report)?;
    Some(value)
}

fn rate(
    entry: &Entry<'_>,
    within: &impl Fn(u64, Show, &mut Report) -> Option<()>,
    report: &mut Report,
) -> Option<Rate> {
    let value = values::rate(entry, report)?;
    within(value.bps(), show_rate, report)?;
    Some(value)
}

fn number<T: TryFrom<u64>>(entry: &Entry<'_>, least: u64, most: u64, report: &mut Report) -> Option<T> {
    T::try_from(values::whole(entry, least, most, report)?).ok()
}

fn refuse_odd_size(attribute: &Attribute, entry: &Entry<'_>, value: Octets, report: &mut Report) {
    let near = value.get().next_power_of_two();
    report.push(
        Diagnostic::error(entry.value.span(), format!("`{}` cannot be {value}", entry.name))
            .label("not a power of two")
            .help(format!("write {} or {}. {}", Octets::new(near / 2), Octets::new(near), attribute.meaning)),
    );
}

fn refuse_range(attribute: &Attribute, entry: &Entry<'_>, value: u64, show: Show, report: &mut Report) {
    let (least, most) = attribute.range;
    let right = match most {
        u64::MAX => format!("{} or more", show(least)),
        most => format!("{} to {}", show(least), show(most)),
    };
    report.push(
        Diagnostic::error(entry.value.span(), format!("`{}` cannot be {}", entry.name, show(value)))
            .label("out of range")
            .help(format!("write {right}. {}", attribute.meaning)),
    );
}
