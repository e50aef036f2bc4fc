//! `[[expect]]`: what has to hold of a run, and the judge who says whether it did.
//!
//! Every table says one thing, and may have a `name`:
//!
//! ```toml
//! [[expect]]                                # a counter of one node, or of all together
//! counter = "num_nacks_sent"
//! node = "b"
//! equals = 1                                # or at_least, at_most
//!
//! [[expect]]                                # a message, several of them ("0..15"), or "all"
//! message = 0
//! status = "completed"                      # or "delivered", "unfinished"
//! completed = "64021975208ps"               # exactly; or completed_before, completed_after; delivered likewise
//! retransmissions = 1                       # or retransmissions_at_least, retransmissions_at_most
//! goodput_at_least = "390Gbps"              # or goodput_at_most
//!
//! [[expect]]                                # an event, by the names and fields of events.jsonl
//! event = "nak_made"
//! node = "b"
//! where = { expected = 100 }                # all of them; a list means any
//! count = 1                                 # or at_least, at_most; without any, at least once
//! before = "9us"                            # or at (exactly), after: events at other times are not counted
//! within = "1us"                            # and those that do not follow another one so soon
//! of = { event = "frame_received", node = "b", where = { psn = 101 } }
//!
//! [[expect]]                                # each the first after the one before
//! order = ["pause_requested", { event = "paused", node = "a" }, "generation_stopped", "resumed"]
//!
//! [[expect]]                                # payload per time, between the first and the last
//! rate = "wire"                             # data frames that leave `from`; "delivery": payload written to the host of
//! from = "a"                                # `to`; "goodput": messages from their first post to their last completion
//! to = "b"
//! at_least = "394.3Gbps"                    # or at_most
//!
//! [[expect]]
//! no_drops = true                           # of frames, by links and by nodes; with `node`, by that one
//!
//! [[expect]]
//! no_retransmissions = true
//!
//! [[expect]]
//! fault = "the loss"
//! fired = 1                                 # or at_least, at_most
//! ```
//!
//! The judge is a [`Sink`](crate::trace::Sink) and hears what every other record hears. Read first:
//! `tests/scenario_faults.rs::every_case_of_loss_recovery_is_as_derived`.

mod flows;
mod judge;
mod messages;
mod read;
mod vocabulary;
mod watch;

use std::collections::BTreeMap;
use std::fmt;

use crate::base::{Instant, MessageId, NodeId, Octets, Rate, RuleId, Span};
use crate::record::MessageStatus;

pub use judge::{Judge, Verdict};
pub(super) use read::read;
pub(super) use vocabulary::fields as event_fields;

/// One thing that has to hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Expectation {
    /// `expectation 1`, `expectation 2` … in file order, unless given.
    pub name: String,
    pub condition: Condition,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Condition {
    /// A counter of one node, or its sum over all.
    Counter {
        counter: &'static str,
        node: Option<NodeId>,
        bounds: Bounds,
    },
    Messages {
        which: Messages,
        measures: Vec<Measure>,
    },
    Event(EventCondition),
    /// Each of them is the first after the one before.
    Order(Vec<Pattern>),
    Rate {
        stream: Stream,
        from: Option<NodeId>,
        to: Option<NodeId>,
        bounds: Bounds,
    },
    /// Of frames: by links, and by nodes that receive.
    NoDrops {
        node: Option<NodeId>,
    },
    NoRetransmissions {
        node: Option<NodeId>,
    },
    Fault {
        rule: RuleId,
        bounds: Bounds,
    },
}

/// Which messages have to hold something.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Messages {
    All,
    /// From the first to the last, both included.
    Ranges(Vec<(u32, u32)>),
}

/// Something about one message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Measure {
    /// When it was completed, in picoseconds.
    Completed(Bounds),
    /// When it was delivered, in picoseconds.
    Delivered(Bounds),
    Retransmissions(Bounds),
    /// In bit/s.
    Goodput(Bounds),
    Status(MessageStatus),
}

/// Events that are counted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EventCondition {
    pub pattern: Pattern,
    /// When, in picoseconds.
    pub window: Bounds,
    /// Only so soon after an event of another kind.
    pub near: Option<(Span, Pattern)>,
    pub count: Bounds,
}

/// Which events are meant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pattern {
    /// As in the event log.
    pub event: &'static str,
    pub node: Option<NodeId>,
    /// By the keys of the event log; any of the values will do.
    pub fields: BTreeMap<&'static str, Vec<Literal>>,
}

/// What a field of an event may be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Literal {
    Number(u64),
    Text(String),
    Flag(bool),
}

/// What flows past.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stream {
    /// Payload of data frames whose last bit has left.
    Wire,
    /// Payload in the receiving host's memory.
    Delivery,
    /// Octets of completed messages, since the first was posted.
    Goodput,
}

/// From the least to the most, both included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    pub least: u64,
    pub most: u64,
}

impl Bounds {
    pub const ANY: Self = Self { least: 0, most: u64::MAX };

    pub const fn exactly(value: u64) -> Self {
        Self { least: value, most: value }
    }

    pub const fn at_least(least: u64) -> Self {
        Self { least, ..Self::ANY }
    }

    pub const fn hold(self, value: u64) -> bool {
        self.least <= value && value <= self.most
    }

    /// `at least 1 time`, `2 to 3 times`.
    fn counted(self, thing: &str) -> String {
        let last = if self.most == u64::MAX { self.least } else { self.most };
        format!("{} {thing}{}", self.text(number), if last == 1 { "" } else { "s" })
    }

    /// In words, with `show` for the values.
    fn text(self, show: impl Fn(u64) -> String) -> String {
        match (self.least, self.most) {
            (least, most) if least == most => show(least),
            (least, u64::MAX) => format!("at least {}", show(least)),
            (0, most) => format!("at most {}", show(most)),
            (least, most) => format!("{} to {}", show(least), show(most)),
        }
    }
}

impl Messages {
    fn contain(&self, message: MessageId) -> bool {
        match self {
            Self::All => true,
            Self::Ranges(ranges) => ranges.iter().any(|(first, last)| (*first..=*last).contains(&message.0)),
        }
    }
}

impl fmt::Display for Messages {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self::Ranges(ranges) = self else { return f.write_str("every message") };
        let texts: Vec<_> = ranges
            .iter()
            .map(|(first, last)| if first == last { first.to_string() } else { format!("{first} to {last}") })
            .collect();
        let plural = if texts.len() == 1 && ranges[0].0 == ranges[0].1 { "" } else { "s" };
        write!(f, "message{plural} {}", texts.join(", "))
    }
}

impl fmt::Display for Literal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Number(number) => number.fmt(f),
            Self::Text(text) => write!(f, "\"{text}\""),
            Self::Flag(flag) => flag.fmt(f),
        }
    }
}

/// When something is to happen; bounds in time were read as `after` and `before`, which leave their own instant out.
fn when(bounds: Bounds) -> String {
    let at = |ps| Instant::from_ps(ps).to_string();
    match (bounds.least, bounds.most) {
        (least, most) if least == most => format!("at {}", at(least)),
        (least, u64::MAX) => format!("after {}", at(least.saturating_sub(1))),
        (0, most) => format!("before {}", at(most.saturating_add(1))),
        (least, most) => format!("between {} and {}", at(least.saturating_sub(1)), at(most.saturating_add(1))),
    }
}

fn number(value: u64) -> String {
    value.to_string()
}

fn rate(bps: u64) -> String {
    Rate::from_bps(bps).map_or_else(|| "0 b/s".to_owned(), |rate| rate.to_string())
}

/// `octets` per `span`, rounded down; `None` if no time has passed.
fn bps(octets: Octets, span: Span) -> Option<u64> {
    let bits = u128::from(octets.get()) * 8 * 1_000_000_000_000;
    bits.checked_div(u128::from(span.ps())).map(|bps| u64::try_from(bps).unwrap_or(u64::MAX))
}
