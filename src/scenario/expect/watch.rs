//! What is remembered of a run for each expectation.

use std::cell::OnceCell;

use serde_json::{Map, Value};

use super::flows::{Mishap, MishapWatch, RateWatch};
use super::messages::MessageWatch;
use super::{Bounds, Condition, EventCondition, Literal, Pattern, when};
use crate::base::{Instant, NodeId};
use crate::record;
use crate::scenario::Plan;
use crate::trace::{Event, Names};

/// An event, and its fields once somebody asks for them.
pub(super) struct Seen<'e> {
    event: &'e Event,
    name: &'static str,
    names: &'e Names,
    fields: OnceCell<Map<String, Value>>,
}

/// What came of one expectation.
pub(super) struct Finding {
    pub ok: bool,
    pub expected: String,
    pub got: String,
    pub at: Option<Instant>,
    pub node: Option<NodeId>,
}

/// When and where something happened.
type Place = (Instant, NodeId);

#[derive(Debug)]
pub(super) enum Watch<'p> {
    /// Answered from the counters and reports of the run.
    Nothing,
    Messages(MessageWatch<'p>),
    Event(EventWatch<'p>),
    Order(OrderWatch<'p>),
    Rate(RateWatch),
    Mishap(MishapWatch),
}

impl<'e> Seen<'e> {
    pub(super) fn new(event: &'e Event, names: &'e Names) -> Self {
        Self { event, name: event.kind.name(), names, fields: OnceCell::new() }
    }

    fn is(&self, pattern: &Pattern) -> bool {
        pattern.event == self.name
            && pattern.node.is_none_or(|node| node == self.event.node)
            && pattern.fields.iter().all(|(key, wanted)| {
                let found = self.fields().get(*key);
                wanted.iter().any(|literal| literal.is(found))
            })
    }

    fn fields(&self) -> &Map<String, Value> {
        self.fields.get_or_init(|| {
            let object = record::event_object(self.event, self.names).unwrap_or_default();
            serde_json::from_slice(&object).unwrap_or_default()
        })
    }

    fn place(&self) -> Place {
        (self.event.at, self.event.node)
    }
}

impl Literal {
    fn is(&self, found: Option<&Value>) -> bool {
        match (self, found) {
            (Self::Number(wanted), Some(Value::Number(found))) => found.as_u64() == Some(*wanted),
            (Self::Text(wanted), Some(Value::String(found))) => found == wanted,
            (Self::Flag(wanted), Some(Value::Bool(found))) => found == wanted,
            _ => false,
        }
    }
}

impl<'p> Watch<'p> {
    pub(super) fn new(condition: &'p Condition, plan: &Plan) -> Self {
        match condition {
            Condition::Counter { .. } | Condition::Fault { .. } => Self::Nothing,
            Condition::Messages { which, measures } => Self::Messages(MessageWatch::new(which, measures, plan)),
            Condition::Event(condition) => {
                Self::Event(EventWatch { condition, last_other: None, counted: 0, named: 0, first: None, last: None })
            }
            Condition::Order(steps) => Self::Order(OrderWatch { steps, done: Vec::new() }),
            Condition::Rate { stream, from, to, bounds } => {
                Self::Rate(RateWatch::new(*stream, [*from, *to], *bounds, plan))
            }
            Condition::NoDrops { node } => Self::Mishap(MishapWatch::new(Mishap::Drop, *node)),
            Condition::NoRetransmissions { node } => Self::Mishap(MishapWatch::new(Mishap::Retransmission, *node)),
        }
    }

    pub(super) fn hear(&mut self, seen: &Seen<'_>) {
        match self {
            Self::Nothing => {}
            Self::Messages(watch) => watch.hear(seen.event),
            Self::Event(watch) => watch.hear(seen),
            Self::Order(watch) => watch.hear(seen),
            Self::Rate(watch) => watch.hear(seen.event),
            Self::Mishap(watch) => watch.hear(seen.event),
        }
    }

    pub(super) fn finish(self, names: &Names) -> Finding {
        match self {
            Self::Nothing => Finding { ok: false, expected: String::new(), got: String::new(), at: None, node: None },
            Self::Messages(watch) => watch.finish(),
            Self::Event(watch) => watch.finish(names),
            Self::Order(watch) => watch.finish(names),
            Self::Rate(watch) => watch.finish(names),
            Self::Mishap(watch) => watch.finish(names),
        }
    }
}

impl Pattern {
    fn text(&self, names: &Names) -> String {
        let mut text = self.event.to_owned();
        if let Some(node) = self.node {
            text += &format!(" at {}", names.node(node));
        }
        for (index, (key, values)) in self.fields.iter().enumerate() {
            let values: Vec<_> = values.iter().map(Literal::to_string).collect();
            text += &format!("{}{key} = {}", if index == 0 { " with " } else { ", " }, values.join(" or "));
        }
        text
    }
}

#[derive(Debug)]
pub(super) struct EventWatch<'p> {
    condition: &'p EventCondition,
    last_other: Option<Instant>,
    counted: u64,
    /// Events that are meant, whenever they happened.
    named: u64,
    first: Option<Place>,
    last: Option<Place>,
}

impl EventWatch<'_> {
    fn hear(&mut self, seen: &Seen<'_>) {
        let EventCondition { pattern, window, near, .. } = self.condition;
        if seen.is(pattern) {
            self.named += 1;
            self.first.get_or_insert(seen.place());
            self.last = Some(seen.place());
            let at = seen.event.at;
            let is_near =
                near.as_ref().is_none_or(|(span, _)| self.last_other.is_some_and(|other| at.since(other) <= *span));
            self.counted += u64::from(window.hold(at.ps()) && is_near);
        }
        if near.as_ref().is_some_and(|(_, other)| seen.is(other)) {
            self.last_other = Some(seen.event.at);
        }
    }

    fn finish(self, names: &Names) -> Finding {
        let EventCondition { pattern, window, near, count } = self.condition;
        let mut expected = format!("{}: {}", pattern.text(names), count.counted("time"));
        if *window != Bounds::ANY {
            expected += &format!(", {}", when(*window));
        }
        if let Some((span, other)) = near {
            expected += &format!(", within {span} of {}", other.text(names));
        }
        let got = match (self.first, self.last) {
            (Some((first, _)), Some((last, _))) => {
                let times = match self.named {
                    1 => format!("one at {first}"),
                    named => format!("{named}, the first at {first}, the last at {last}"),
                };
                let in_time = *window != Bounds::ANY || near.is_some();
                if in_time { format!("{} in time ({times})", self.counted) } else { times }
            }
            _ => "none".to_owned(),
        };
        let (at, node) = self.first.unzip();
        Finding { ok: count.hold(self.counted), expected, got, at: at.or(self.last_other), node }
    }
}

#[derive(Debug)]
pub(super) struct OrderWatch<'p> {
    steps: &'p [Pattern],
    done: Vec<Place>,
}

impl OrderWatch<'_> {
    fn hear(&mut self, seen: &Seen<'_>) {
        if self.steps.get(self.done.len()).is_some_and(|step| seen.is(step)) {
            self.done.push(seen.place());
        }
    }

    fn finish(self, names: &Names) -> Finding {
        let texts: Vec<_> = self.steps.iter().map(|step| step.text(names)).collect();
        let done: Vec<_> =
            self.steps.iter().zip(&self.done).map(|(step, (at, _))| format!("{} at {at}", step.event)).collect();
        let missing = self.steps.get(self.done.len()).map(|step| step.text(names));
        let got = match &missing {
            Some(missing) if done.is_empty() => format!("no {missing}"),
            Some(missing) => format!("{}, and then no {missing}", done.join(", ")),
            None => done.join(", "),
        };
        let (at, node) = self.done.last().copied().unzip();
        Finding { ok: missing.is_none(), expected: format!("in this order: {}", texts.join(", ")), got, at, node }
    }
}
