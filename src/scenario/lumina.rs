//! Lumina's `data-pkt-events`: scripts for its programmable switch, played here without one.
//!
//! ```yaml
//! traffic:                     # a whole Lumina configuration, of which nothing else is read; or the list alone
//!   data-pkt-events:
//!     - qpn: 0                 # connection, from 0: the queue pairs of the scenario in file order
//!       psn: 4                 # packet of a message, from 0; `all` means each
//!       type: drop             # or ecn, bit-error
//!       iter: 1                # pass over the message, from 1
//! ```
//!
//! As in Lumina, an event happens to every message of its connection. A pass ends with each jump of the PSNs, so a packet
//! that a rewind reaches for the first time is in the second pass ([`Matcher::iterations`](crate::link::Matcher)). The end
//! that posts first is Lumina's requester; its data packets are meant. A bit error falsifies what only the ICRC covers:
//! Lumina changes the IP identification, and here a bit of the ICRC itself, to the same end.
//!
//! * Source: Lumina (SIGCOMM 2023), its example configuration, orchestrator and switch program.

use std::collections::BTreeMap;
use std::ops::Range;

use serde::{Deserialize, Deserializer};
use serde_json::Value;
use serde_saphyr::Spanned;

use super::diagnostics::{Diagnostic, Diagnostics, Report};
use super::document::{nearest, shortened};
use super::plan::{FaultKind, FaultPlan, Plan, QueuePairPlan};
use crate::link::{Action, Corruption, Field, Matcher, PsnMatch, Rule};
use crate::trace::PacketKind;

const TEXT_MAX: usize = 1 << 20;
const EVENTS_MAX: usize = 10_000;
/// Fault rules have numbers of 16 bits.
const FAULTS_MAX: usize = 1 << 16;

/// What a file says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Script {
    file_name: String,
    text: String,
    events: Vec<LuminaEvent>,
}

/// One event of `data-pkt-events`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LuminaEvent {
    /// Connection, from 0.
    pub qpn: u32,
    /// Packet of a message, from 0; `None` means each.
    pub psn: Option<u32>,
    pub kind: EventKind,
    /// Pass over the message, from 1.
    pub iter: u32,
    span: Range<usize>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EventKind {
    Drop,
    Ecn,
    BitError,
}

const KINDS: [(&str, EventKind); 3] =
    [("drop", EventKind::Drop), ("ecn", EventKind::Ecn), ("bit-error", EventKind::BitError)];

const KEYS: [&str; 4] = ["qpn", "psn", "type", "iter"];

type RawEvent = BTreeMap<String, Spanned<Value>>;
/// `None` if the key is not there, `Some(None)` if nothing stands behind it.
type RawEvents = Option<Option<Vec<Spanned<RawEvent>>>>;

/// A configuration, as far as it is read: the rest is about Lumina's machines.
#[derive(Deserialize)]
struct Raw {
    traffic: Option<RawTraffic>,
    #[serde(rename = "data-pkt-events", default, deserialize_with = "present")]
    events: RawEvents,
}

#[derive(Deserialize)]
struct RawTraffic {
    #[serde(rename = "data-pkt-events", default, deserialize_with = "present")]
    events: RawEvents,
}

fn present<'de, D: Deserializer<'de>>(deserializer: D) -> Result<RawEvents, D::Error> {
    Option::deserialize(deserializer).map(Some)
}

/// Reads a Lumina configuration.
///
/// * Errors: every refusal of the file.
/// * Panics: never, whatever the text is. Aliases are limited, so a short text stays a small document.
pub fn parse(file_name: &str, text: &str) -> Result<Script, Diagnostics> {
    let mut report = Report::default();
    let events = read(text, &mut report);
    match events {
        Some(events) if !report.has_errors() => {
            Ok(Script { file_name: file_name.to_owned(), text: text.to_owned(), events })
        }
        _ => Err(report.finish(file_name, text)),
    }
}

fn read(text: &str, report: &mut Report) -> Option<Vec<LuminaEvent>> {
    const HELP: &str = "events stand in a list: data-pkt-events, alone or under `traffic`";
    if text.len() > TEXT_MAX {
        report.push(
            Diagnostic::error(0..0, format!("the file has {} B, more than {TEXT_MAX}", text.len()))
                .label("too large")
                .help("for many losses use a probability, in [[faults]] of the scenario"),
        );
        return None;
    }
    let options = serde_saphyr::options! {
        with_snippet: false,
        budget: serde_saphyr::budget! { max_aliases: 100, max_depth: 32, max_documents: 1 },
    };
    let raw: Raw = match serde_saphyr::from_str_with_options(text, options) {
        Ok(raw) => raw,
        Err(error) => {
            let span = error.location().map_or(0..0, |location| octets(location, text));
            let message = error.to_string();
            // The place is shown in our own way.
            let message = message.split(" at line ").next().unwrap_or(&message);
            report.push(Diagnostic::error(span, message).label("not a Lumina configuration").help(HELP));
            return None;
        }
    };
    let Some(events) = raw.traffic.and_then(|traffic| traffic.events).or(raw.events) else {
        report.push(Diagnostic::error(0..0, "there is no `data-pkt-events`").label("no events").help(HELP));
        return None;
    };
    let events = events.unwrap_or_default();
    if events.len() > EVENTS_MAX {
        report.push(
            Diagnostic::error(
                octets(events[EVENTS_MAX].referenced, text),
                format!("there are more than {EVENTS_MAX} events"),
            )
            .label("one too many")
            .help("`psn: all` means every packet of a message"),
        );
        return None;
    }
    Some(events.into_iter().filter_map(|raw| read_event(&raw, text, report)).collect())
}

fn read_event(raw: &Spanned<RawEvent>, text: &str, report: &mut Report) -> Option<LuminaEvent> {
    let span = octets(raw.referenced, text);
    for (key, value) in raw.value.iter().filter(|(key, _)| !KEYS.contains(&key.as_str())) {
        let label = nearest(key, KEYS).map_or("unknown".to_owned(), |near| format!("did you mean `{near}`?"));
        report.push(
            Diagnostic::error(octets(value.referenced, text), format!("an event has no key `{}`", shortened(key)))
                .label(label)
                .help(format!("known keys: {}", KEYS.join(", "))),
        );
    }
    let mut take = |key: &str, right: &str| {
        let value = raw.value.get(key);
        if value.is_none() {
            report.push(
                Diagnostic::error(span.clone(), format!("an event has no `{key}`"))
                    .label(format!("`{key}` is missing"))
                    .help(format!("write {right}")),
            );
        }
        value
    };
    let qpn = take("qpn", "the number of the connection, from 0");
    let psn = take("psn", "the packet of the message, from 0, or all");
    let kind = take("type", "drop, ecn or bit-error");
    let iter = take("iter", "the pass over the message, from 1");
    let mut number = |key: &str, value: Option<&Spanned<Value>>, least: u64| {
        let value = value?;
        let found = value.value.as_u64().filter(|number| *number >= least).and_then(|n| u32::try_from(n).ok());
        if found.is_none() {
            let message = format!("`{key}` cannot be {}", shortened(&value.value.to_string()));
            report.push(
                Diagnostic::error(octets(value.referenced, text), message)
                    .label("not such a number")
                    .help(format!("write a whole number from {least} up")),
            );
        }
        found
    };
    let is_all = psn.and_then(|psn| psn.value.as_str()).is_some_and(|word| word.eq_ignore_ascii_case("all"));
    let qpn = number("qpn", qpn, 0);
    let psn = if is_all { Some(None) } else { number("psn", psn, 0).map(Some) };
    let iter = number("iter", iter, 1);
    let kind = kind.and_then(|value| {
        let word = value.value.as_str().unwrap_or_default();
        let found = KINDS.iter().find(|(name, _)| *name == word);
        if found.is_none() {
            let near = nearest(word, KINDS.iter().map(|(name, _)| *name));
            let message = format!("{} is not a type of event", shortened(&value.value.to_string()));
            report.push(
                Diagnostic::error(octets(value.referenced, text), message)
                    .label(near.map_or("unknown".to_owned(), |near| format!("did you mean {near}?")))
                    .help("write drop, ecn or bit-error"),
            );
        }
        found.map(|(_, kind)| *kind)
    });
    Some(LuminaEvent { qpn: qpn?, psn: psn?, kind: kind?, iter: iter?, span })
}

/// The octets of a place in `text`. The parser counts them for values; what is no YAML has only a line and a column.
fn octets(location: serde_saphyr::Location, text: &str) -> Range<usize> {
    let size = |octets: u64| usize::try_from(octets).unwrap_or(usize::MAX);
    let by_line = || {
        let line_start = text.split_inclusive('\n').take(size(location.line()).saturating_sub(1)).map(str::len).sum();
        let columns = text.get(line_start..)?.char_indices();
        let column = columns.map(|(at, _)| at).nth(size(location.column()).saturating_sub(1));
        Some(column.map_or(text.len(), |at: usize| line_start + at))
    };
    let start = location.span().byte_offset().map(size).or_else(by_line).unwrap_or(0).min(text.len());
    let end = start.saturating_add(location.span().byte_len().map_or(0, size)).min(text.len());
    start..end
}

impl Script {
    pub fn events(&self) -> &[LuminaEvent] {
        &self.events
    }

    /// The events as faults behind those of `plan`, called `lumina 1: drop of packet 4 in pass 1 of q1` and so on.
    ///
    /// * Errors: events that cannot happen in this plan, with their places in the script.
    pub fn apply(&self, plan: &mut Plan) -> Result<(), Diagnostics> {
        let mut report = Report::default();
        let faults: Vec<_> = (1..)
            .zip(&self.events)
            .filter_map(|(number, event)| event.fault(number, plan).map_err(|refused| report.push(*refused)).ok())
            .collect();
        if plan.faults.len() + faults.len() > FAULTS_MAX {
            report.push(
                Diagnostic::error(0..0, format!("with these events there are more than {FAULTS_MAX} faults"))
                    .label("too many")
                    .help("use fewer events"),
            );
        }
        if report.has_errors() {
            return Err(report.finish(&self.file_name, &self.text));
        }
        plan.faults.extend(faults);
        Ok(())
    }
}

impl LuminaEvent {
    fn fault(&self, number: usize, plan: &Plan) -> Result<FaultPlan, Box<Diagnostic>> {
        let refuse = |message: String, label: &str, help: String| {
            Box::new(Diagnostic::error(self.span.clone(), message).label(label).help(help))
        };
        let index = self.qpn as usize;
        let count = plan.queue_pairs.len();
        let queue_pair = plan.queue_pairs.get(index).ok_or_else(|| {
            refuse(
                format!("there is no connection {index}"),
                "no such queue pair",
                format!("the scenario has {count}, and they count from 0 in file order"),
            )
        })?;
        let QueuePairPlan { name, ends, .. } = queue_pair;
        let posts = || plan.posts.iter().filter(|post| post.queue_pair == index);
        let from_end = posts().next().map(|post| post.from_end).ok_or_else(|| {
            refuse(
                format!("nobody posts to queue pair `{name}`"),
                "it has no data packets",
                "name a connection that is used".to_owned(),
            )
        })?;
        let (from, to) = (ends[from_end], ends[1 - from_end]);
        let mss = plan.nics[from.node.index()].config.mss;
        let packets = |size: crate::base::Octets| size.get().div_ceil(mss.get()).max(1);
        let own_posts = posts().filter(|post| post.from_end == from_end);
        let longest = own_posts.map(|post| packets(post.size)).max().unwrap_or(0);
        if self.psn.is_some_and(|psn| u64::from(psn) >= longest) {
            return Err(refuse(
                format!("no message of queue pair `{name}` has a packet {}", self.psn.unwrap_or(0)),
                "beyond the end",
                format!("packets count from 0 in each message; the longest has {longest}"),
            ));
        }
        let joins = |link: &super::LinkPlan| {
            link.ends.iter().position(|end| end.node == from.node).filter(|end| link.ends[1 - *end].node == to.node)
        };
        let way = plan.links.iter().enumerate().find_map(|(link, plan)| Some((link, joins(plan)?)));
        let (link, from_end) = way.ok_or_else(|| {
            refuse(
                format!("no one link joins the ends of queue pair `{name}`"),
                "on which link?",
                "describe this event under [[faults]] of the scenario, where a link can be named".to_owned(),
            )
        })?;
        let (word, action) = match self.kind {
            EventKind::Drop => ("drop", Action::Drop),
            EventKind::Ecn => ("ecn", Action::SetCe),
            EventKind::BitError => ("bit-error", Action::Corrupt(Corruption { field: Field::Icrc, bit: 0 })),
        };
        let packet = self.psn.map_or("every packet".to_owned(), |psn| format!("packet {psn}"));
        let matcher = Matcher {
            kinds: vec![PacketKind::Send, PacketKind::Write],
            destinations: vec![(plan.nics[to.node.index()].address.ip, to.qpn)],
            psns: self.psn.map(PsnMatch::Relative).into_iter().collect(),
            iterations: vec![self.iter],
            ..Matcher::default()
        };
        Ok(FaultPlan {
            name: format!("lumina {number}: {word} of {packet} in pass {} of {name}", self.iter),
            link,
            from_end,
            optional: false,
            kind: FaultKind::Rule(Rule { matcher, action }),
        })
    }
}
