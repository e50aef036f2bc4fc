//! `[[faults]]`: what goes wrong on purpose, and to whom.
//!
//! ```toml
//! [[faults]]
//! name = "the loss"                         # default: fault 1, fault 2 …
//! from = "a"                                # the frames that leave a for b: the two ends of one link
//! to = "b"
//! match = { psn = 100, transmission = 1 }   # which of them; without it, all
//! action = "drop"
//! optional = true                           # it need not happen; otherwise a fault that never fires fails the run
//! ```
//!
//! | action | its keys | what happens |
//! | --- | --- | --- |
//! | `drop` | | the frame is lost |
//! | `duplicate` | | a copy arrives right behind it, in the same instant |
//! | `delay` | `by = "5us"` | it arrives later, and nobody else waits |
//! | `reorder` | `after = 2` | it arrives right behind the second frame that follows |
//! | `corrupt` | `field = "payload"`, `"bth"` or `"icrc"`; `bit = 0` | one bit is flipped, so the ICRC is wrong |
//! | `set_ce` | | the congestion mark of a switch |
//! | `set_dscp` | `dscp = 24` | |
//! | `down` | `at`, `until` | the link is down between the two times; `both_ways = true` by default |
//! | `inject` | `frame`; `at`, `every`, `count` | a frame that nobody sent arrives at `to` |
//!
//! `both_ways = true` makes a second fault, on the way back, which is called `NAME (back)` and is optional. What `match`
//! can say is in `matching.rs`, what a frame can be in `injection.rs`.

use std::collections::BTreeMap;
use std::ops::Range;

use super::diagnostics::{Diagnostic, Report};
use super::document::{Entry, Table, tables};
use super::injection;
use super::matching::{self, Scene, Way};
use super::plan::{FaultKind, FaultPlan};
use super::values;
use crate::base::{Octets, Span};
use crate::link::{Action, Corruption, Field, Matcher, Rule};

/// Rules have numbers of 16 bits.
const FAULTS_MAX: usize = 1 << 16;

/// What `action` can be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Word {
    Drop,
    Duplicate,
    Delay,
    Reorder,
    Corrupt,
    SetCe,
    SetDscp,
    Down,
    Inject,
}

const WORDS: [(&str, Word); 9] = [
    ("drop", Word::Drop),
    ("duplicate", Word::Duplicate),
    ("delay", Word::Delay),
    ("reorder", Word::Reorder),
    ("corrupt", Word::Corrupt),
    ("set_ce", Word::SetCe),
    ("set_dscp", Word::SetDscp),
    ("down", Word::Down),
    ("inject", Word::Inject),
];

/// The keys that not every action has, and which do.
const PARAMETERS: [(&str, &[Word]); 11] = [
    ("match", &[Word::Drop, Word::Duplicate, Word::Delay, Word::Reorder, Word::Corrupt, Word::SetCe, Word::SetDscp]),
    (
        "both_ways",
        &[
            Word::Drop,
            Word::Duplicate,
            Word::Delay,
            Word::Reorder,
            Word::Corrupt,
            Word::SetCe,
            Word::SetDscp,
            Word::Down,
        ],
    ),
    ("by", &[Word::Delay]),
    ("after", &[Word::Reorder]),
    ("field", &[Word::Corrupt]),
    ("bit", &[Word::Corrupt]),
    ("dscp", &[Word::SetDscp]),
    ("at", &[Word::Down, Word::Inject]),
    ("until", &[Word::Down]),
    ("every", &[Word::Inject]),
    ("count", &[Word::Inject]),
];

/// What `action` can be, each with the keys that it has.
pub(super) fn actions() -> impl Iterator<Item = (&'static str, Vec<&'static str>)> {
    WORDS.into_iter().map(|(name, word)| {
        let own = PARAMETERS.iter().filter(|(_, words)| words.contains(&word)).map(|(key, _)| *key);
        (name, own.chain((word == Word::Inject).then_some("frame")).collect())
    })
}

/// Keys of [`PARAMETERS`] that are there, by their names. `frame` is among them too.
type Parameters<'d> = BTreeMap<&'static str, Entry<'d>>;

pub(super) fn read(root: &mut Table<'_>, scene: &Scene<'_>, report: &mut Report) -> Vec<FaultPlan> {
    let mut faults: Vec<FaultPlan> = Vec::new();
    let mut names: BTreeMap<String, Range<usize>> = BTreeMap::new();
    for (index, table) in
        root.take("faults").map(|entry| tables(&entry, report)).unwrap_or_default().into_iter().enumerate()
    {
        let span = table.span.clone();
        if index >= FAULTS_MAX / 2 {
            report.push(
                Diagnostic::error(span, format!("the scenario has more than {} faults", FAULTS_MAX / 2))
                    .label("one too many")
                    .help("say more with less: every condition of `match` may be a list"),
            );
            break;
        }
        let (name, read) = read_one(table, index, scene, report);
        let read = read.unwrap_or_default();
        // A name that was refused with the rest of its fault is taken all the same.
        let taken = read.iter().map(|fault| fault.name.clone());
        for name in taken.chain(read.is_empty().then_some(name)) {
            let Some(first) = names.insert(name.clone(), span.clone()) else { continue };
            report.push(
                Diagnostic::error(span.clone(), format!("there are two faults named `{name}`"))
                    .label("the second one")
                    .help("give each a name of its own: results are told apart by it")
                    .related(first, "the first one"),
            );
        }
        faults.extend(read);
    }
    faults
}

/// The fault's name, and the fault with its twin on the way back.
fn read_one(
    mut table: Table<'_>,
    index: usize,
    scene: &Scene<'_>,
    report: &mut Report,
) -> (String, Option<Vec<FaultPlan>>) {
    let name = table.take("name").map(|entry| values::title(&entry, report).map(str::to_owned));
    let name = name.flatten().unwrap_or_else(|| format!("fault {}", index + 1));
    let optional = table.take("optional").map_or(Some(false), |entry| values::boolean(&entry, report));
    let way = way(&mut table, scene, report);
    let help = "say what happens: action = \"drop\"";
    let action = table.require("action", help, report);
    let word = action.and_then(|entry| values::choice(&entry, "an action", &WORDS, report));
    let mut parameters: Parameters<'_> =
        PARAMETERS.iter().filter_map(|(key, _)| table.take(key).map(|entry| (*key, entry))).collect();
    parameters.extend(table.take("frame").map(|entry| ("frame", entry)));
    let span = table.span.clone();
    table.finish(|_| None, report);
    let mut read = || {
        let Some(word) = word else {
            // What the conditions say is wrong or right whatever the action is.
            let conditions = parameters.get("match").and_then(|entry| Table::read(entry, "`match`", report));
            conditions.map(|table| matching::read(table, way, scene, report));
            return None;
        };
        refuse_foreign(word, &parameters, report);
        let kind = kind(word, &parameters, &span, way, scene, report);
        let is_down = word == Word::Down;
        let both_ways = parameters.get("both_ways").map_or(Some(is_down), |entry| values::boolean(entry, report));
        let (kind, both_ways, optional, way) = (kind?, both_ways?, optional?, way?);
        let fault = FaultPlan { name: name.clone(), link: way.link, from_end: way.from_end, optional, kind };
        let back =
            FaultPlan { name: format!("{name} (back)"), from_end: 1 - way.from_end, optional: true, ..fault.clone() };
        Some(if both_ways { vec![fault, back] } else { vec![fault] })
    };
    let faults = read();
    (name, faults)
}

/// The direction of travel, from `from` to `to`.
fn way(table: &mut Table<'_>, scene: &Scene<'_>, report: &mut Report) -> Option<Way> {
    let network = scene.network;
    let mut end = |key, help| {
        let entry = table.require(key, help, report)?;
        let name = values::string(&entry, report)?;
        Some((network.find(name, entry.value.span(), report)?, entry.value.span()))
    };
    let from = end("from", "name the node whose frames are meant: from = \"a\"");
    let to = end("to", "name the node at the other end of the link: to = \"b\"");
    let ((from, _), (to, span)) = (from?, to?);
    if let Some((link, from_end)) = network.way(from, to) {
        return Some(Way { link, from_end, from, to });
    }
    if !network.are_joined([from, to]) || from == to {
        let [a, b] = [from, to].map(|node| &network.nodes[node].name);
        report.push(
            Diagnostic::error(span, format!("there is no link between `{a}` and `{b}`"))
                .label("not joined")
                .help("faults stand on one link: name the nodes at its two ends"),
        );
    }
    None
}

fn refuse_foreign(word: Word, parameters: &Parameters<'_>, report: &mut Report) {
    let name = |word: Word| WORDS.iter().find(|(_, other)| *other == word).map_or("", |(name, _)| name);
    let owners = |key: &str| match PARAMETERS.iter().find(|(known, _)| *known == key) {
        Some((_, owners)) => owners,
        None => &[Word::Inject][..],
    };
    for (key, entry) in parameters {
        let owners = owners(key);
        if owners.contains(&word) {
            continue;
        }
        let owners: Vec<_> = owners.iter().map(|owner| format!("\"{}\"", name(*owner))).collect();
        report.push(
            Diagnostic::error(entry.key.clone(), format!("action \"{}\" has no `{key}`", name(word)))
                .label("means nothing here")
                .help(format!("`{key}` belongs to {}", owners.join(", "))),
        );
    }
}

fn kind(
    word: Word,
    parameters: &Parameters<'_>,
    span: &Range<usize>,
    way: Option<Way>,
    scene: &Scene<'_>,
    report: &mut Report,
) -> Option<FaultKind> {
    if word == Word::Inject {
        return injection::read(parameters, span, way, scene, report);
    }
    let matcher = match parameters.get("match") {
        _ if word == Word::Down => {
            let entries = [parameters.get("at"), parameters.get("until")];
            let (from, until) = matching::window(entries, scene.until, report)?;
            Some(Matcher { from, until, ..Matcher::default() })
        }
        Some(entry) => {
            Table::read(entry, "`match`", report).and_then(|table| matching::read(table, way, scene, report))
        }
        None => Some(Matcher::default()),
    };
    let messages = matcher.as_ref().map_or(&[][..], |matcher| &matcher.messages);
    let largest = way.map(|way| scene.largest_payload(way, messages));
    let action = action(word, parameters, span, largest, report);
    let (matcher, action) = (matcher?, action?);
    refuse_idle(&matcher, action, parameters, report)?;
    Some(FaultKind::Rule(Rule { matcher, action }))
}

fn action(
    word: Word,
    parameters: &Parameters<'_>,
    span: &Range<usize>,
    largest: Option<Octets>,
    report: &mut Report,
) -> Option<Action> {
    let require = |key: &str, help: &str, report: &mut Report| {
        let found = parameters.get(key).cloned();
        if found.is_none() {
            report.push(
                Diagnostic::error(span.clone(), format!("this action needs `{key}`"))
                    .label(format!("`{key}` is missing"))
                    .help(help.to_owned()),
            );
        }
        found
    };
    Some(match word {
        Word::Drop => Action::Drop,
        Word::Duplicate => Action::Duplicate,
        Word::Delay => {
            let entry = require("by", "say how much later it arrives: by = \"5us\"", report)?;
            let by = values::span(&entry, report)?;
            if by == Span::ZERO {
                report.push(
                    Diagnostic::error(entry.value.span(), "a delay of nothing changes nothing")
                        .label("zero")
                        .help("write a time above 0, or remove the fault"),
                );
                return None;
            }
            Action::Delay(by)
        }
        Word::Reorder => {
            let entry = require("after", "say behind how many others it arrives: after = 1", report)?;
            Action::Reorder { after: u32::try_from(values::whole(&entry, 1, 1 << 24, report)?).ok()? }
        }
        Word::Corrupt => Action::Corrupt(corruption(parameters, largest, report)?),
        Word::SetCe => Action::SetCe,
        Word::SetDscp => {
            let entry = require("dscp", "write a number from 0 to 63: dscp = 24", report)?;
            Action::SetDscp(u8::try_from(values::whole(&entry, 0, 63, report)?).ok()?)
        }
        Word::Down => Action::Down,
        Word::Inject => return None,
    })
}

/// * `largest`: the largest payload that passes there, if it is known.
fn corruption(parameters: &Parameters<'_>, largest: Option<Octets>, report: &mut Report) -> Option<Corruption> {
    const FIELDS: [(&str, Field); 3] = [("payload", Field::Payload), ("bth", Field::Bth), ("icrc", Field::Icrc)];
    let field = match parameters.get("field") {
        Some(entry) => values::choice(entry, "a field", &FIELDS, report)?,
        None => Field::Payload,
    };
    let bits = match field {
        Field::Payload => largest.map_or(u64::from(u32::MAX), |largest| 8 * largest.get()),
        Field::Bth => 8 * 12,
        Field::Icrc => 8 * 4,
    };
    let bit = parameters.get("bit").map_or(Some(0), |entry| values::whole(entry, 0, bits.saturating_sub(1), report))?;
    Some(Corruption { field, bit: u32::try_from(bit).ok()? })
}

/// Refuses an action that none of the frames allowed can suffer.
fn refuse_idle(matcher: &Matcher, action: Action, parameters: &Parameters<'_>, report: &mut Report) -> Option<()> {
    let kinds = &matcher.kinds;
    let why = match action {
        Action::Corrupt(Corruption { field: Field::Payload, .. }) if !kinds.iter().any(|kind| kind.is_data()) => {
            "only data packets have a payload"
        }
        Action::Corrupt(_) | Action::SetCe | Action::SetDscp(_) if kinds.iter().all(|kind| kind.is_pfc()) => {
            "a PFC frame has no IP header, no BTH and no ICRC"
        }
        _ => return Some(()),
    };
    let Some(entry) = parameters.get("match").filter(|_| !kinds.is_empty()) else { return Some(()) };
    report.push(
        Diagnostic::error(entry.key.clone(), format!("this can happen to no frame that `match` allows: {why}"))
            .label("nothing to act on")
            .help("choose another `kind`, or another action"),
    );
    None
}
