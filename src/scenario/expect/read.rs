//! From `[[expect]]` tables to [`Expectation`]s.

use std::collections::BTreeMap;
use std::ops::Range;

use toml::de::DeValue;

use super::super::diagnostics::{Diagnostic, Report};
use super::super::document::{Entry, Table, listing, nearest, shortened, tables};
use super::super::matching::Scene;
use super::super::network::node_id;
use super::super::plan::FaultPlan;
use super::super::values;
use super::{Bounds, Condition, EventCondition, Expectation, Literal, Measure, Messages, Pattern, Stream, vocabulary};
use crate::base::{NodeId, RuleId};
use crate::record::{MessageStatus, counted};
use crate::trace::{EventKind, NodeCounters};

/// The keys that say what an expectation is about.
const SUBJECTS: [&str; 8] = ["counter", "message", "event", "order", "rate", "no_drops", "no_retransmissions", "fault"];

struct Reader<'r, 's> {
    scene: &'r Scene<'s>,
    faults: &'r [FaultPlan],
    report: &'r mut Report,
}

pub(in super::super) fn read(
    root: &mut Table<'_>,
    scene: &Scene<'_>,
    faults: &[FaultPlan],
    report: &mut Report,
) -> Vec<Expectation> {
    let tables = root.take("expect").map(|entry| tables(&entry, report)).unwrap_or_default();
    let mut reader = Reader { scene, faults, report };
    (1..).zip(tables).filter_map(|(number, table)| reader.expectation(number, table)).collect()
}

impl Reader<'_, '_> {
    fn expectation(&mut self, number: usize, mut table: Table<'_>) -> Option<Expectation> {
        let name = table.take("name").map(|entry| values::title(&entry, self.report).map(str::to_owned));
        let name = name.flatten().unwrap_or_else(|| format!("expectation {number}"));
        let subjects: Vec<_> = SUBJECTS.iter().filter_map(|key| table.take(key)).collect();
        let Some(subject) = subjects.first() else {
            self.report.push(
                Diagnostic::error(table.span.clone(), format!("{} does not say what it is about", table.name))
                    .label("about what?")
                    .help(format!("give it one of the keys {}", SUBJECTS.join(", "))),
            );
            return None;
        };
        if let Some(second) = subjects.get(1) {
            let message = format!("one expectation cannot be about both `{}` and `{}`", subject.name, second.name);
            self.report.push(
                Diagnostic::error(second.key.clone(), message)
                    .label("the second subject")
                    .help("write two tables, each with its own header [[expect]]")
                    .related(subject.key.clone(), "the first one"),
            );
            return None;
        }
        let condition = match subject.name {
            "counter" => self.counter(subject, &mut table),
            "message" => self.messages(subject, &mut table),
            "event" => self.event(&mut table).map(Condition::Event),
            "order" => self.order(subject),
            "rate" => self.rate(subject, &mut table),
            "fault" => self.fault(subject, &mut table),
            no => {
                let node = self.node(&mut table, "node");
                self.is_true(subject).and(node).map(|node| match no {
                    "no_drops" => Condition::NoDrops { node },
                    _ => Condition::NoRetransmissions { node },
                })
            }
        };
        table.finish(|_| None, self.report);
        Some(Expectation { name, condition: condition? })
    }

    fn counter(&mut self, subject: &Entry<'_>, table: &mut Table<'_>) -> Option<Condition> {
        let counters = NodeCounters::default();
        let names: Vec<_> = counters.iter().map(|(name, _)| (name, name)).collect();
        let counter = self.named(subject, "a counter", "counters", &names);
        let node = self.node(table, "node");
        let bounds = self.bounds(table, ["equals", "at_least", "at_most"], whole);
        let bounds = self.required(bounds, table.span.clone(), "equals = 1, at_least = 1 or at_most = 1");
        Some(Condition::Counter { counter: counter?, node: node?, bounds: bounds? })
    }

    fn messages(&mut self, subject: &Entry<'_>, table: &mut Table<'_>) -> Option<Condition> {
        const STATUS: [(&str, MessageStatus); 4] = [
            ("completed", MessageStatus::Completed),
            ("delivered", MessageStatus::Delivered),
            ("failed", MessageStatus::Failed),
            ("unfinished", MessageStatus::Unfinished),
        ];
        let which = match subject.value.get_ref() {
            DeValue::String(text) if text == "all" => Some(Messages::All),
            _ => self.message_ranges(subject),
        };
        let status = table.take("status");
        let status = status.map_or(Some(None), |entry| {
            values::choice(&entry, "a status", &STATUS, self.report).map(|status| Some(Measure::Status(status)))
        });
        let keys = ["retransmissions", "retransmissions_at_least", "retransmissions_at_most"];
        let retransmissions = self.bounds(table, keys, whole);
        let goodput = self.bounds(table, ["", "goodput_at_least", "goodput_at_most"], bps);
        let completed = self.times(table, ["completed", "completed_after", "completed_before"]);
        let delivered = self.times(table, ["delivered", "delivered_after", "delivered_before"]);
        let measures = [
            completed?.map(Measure::Completed),
            delivered?.map(Measure::Delivered),
            retransmissions?.map(Measure::Retransmissions),
            goodput?.map(Measure::Goodput),
            status?,
        ];
        let measures: Vec<_> = measures.into_iter().flatten().collect();
        if measures.is_empty() {
            self.report.push(
                Diagnostic::error(subject.key.clone(), "this expects nothing of the message")
                    .label("and then?")
                    .help("add a time, a number or a status, for example status = \"completed\""),
            );
            return None;
        }
        Some(Condition::Messages { which: which?, measures })
    }

    fn message_ranges(&mut self, subject: &Entry<'_>) -> Option<Messages> {
        let ranges = values::numbers(subject, 0, u64::from(u32::MAX), false, self.report)?;
        let count = self.scene.message_count();
        if let Some((_, last)) = ranges.iter().find(|(_, last)| *last >= count)
            && self.scene.traffic.is_sound
            && !self.scene.has_applications
        {
            self.report.push(
                Diagnostic::error(subject.value.span(), format!("there is no message {last}"))
                    .label("nobody posts it")
                    .help(format!(
                        "the posts make {}, with numbers from 0; \"all\" means each",
                        counted(count, "message")
                    )),
            );
            return None;
        }
        Some(Messages::Ranges(ranges.into_iter().map(|(first, last)| (first as u32, last as u32)).collect()))
    }

    fn event(&mut self, table: &mut Table<'_>) -> Option<EventCondition> {
        let pattern = self.pattern(table);
        let window = self.times(table, ["at", "after", "before"]);
        let count = self.bounds(table, ["count", "at_least", "at_most"], whole);
        let within = table.take("within");
        let of = table.take("of");
        let near = match (&within, &of) {
            (Some(within), Some(of)) => {
                let span = values::span(within, self.report);
                let other = Table::read(of, "`of`", self.report).and_then(|table| self.whole_pattern(table));
                span.zip(other).map(Some)
            }
            (Some(half), None) | (None, Some(half)) => {
                let other = if half.name == "within" { "of" } else { "within" };
                self.report.push(
                    Diagnostic::error(half.key.clone(), format!("`{}` means nothing without `{other}`", half.name))
                        .label("half of a condition")
                        .help("write both: within = \"1us\", of = { event = \"rewound\" }"),
                );
                None
            }
            (None, None) => Some(None),
        };
        Some(EventCondition {
            pattern: pattern?,
            window: window?.unwrap_or(Bounds::ANY),
            near: near?,
            count: count?.unwrap_or(Bounds::at_least(1)),
        })
    }

    fn order(&mut self, subject: &Entry<'_>) -> Option<Condition> {
        let items = values::each(subject, self.report);
        let mut steps = Vec::new();
        for item in &items {
            let step = match item.value.get_ref() {
                DeValue::Table(_) => {
                    Table::read(item, "an entry of `order`", self.report).and_then(|table| self.whole_pattern(table))
                }
                _ => self.event_name(item).map(|event| Pattern { event, node: None, fields: BTreeMap::new() }),
            };
            steps.extend(step);
        }
        if steps.len() < 2 && steps.len() == items.len() && !items.is_empty() {
            self.report.push(
                Diagnostic::error(subject.value.span(), "one event has no order")
                    .label("two are needed")
                    .help("for one event write event = \"…\" instead of `order`"),
            );
            return None;
        }
        (!items.is_empty() && steps.len() == items.len()).then_some(Condition::Order(steps))
    }

    fn rate(&mut self, subject: &Entry<'_>, table: &mut Table<'_>) -> Option<Condition> {
        const STREAMS: [(&str, Stream); 3] =
            [("wire", Stream::Wire), ("delivery", Stream::Delivery), ("goodput", Stream::Goodput)];
        let stream = values::choice(subject, "a rate", &STREAMS, self.report);
        let (from, to) = (self.node(table, "from"), self.node(table, "to"));
        let bounds = self.bounds(table, ["", "at_least", "at_most"], bps);
        let bounds = self.required(bounds, table.span.clone(), "at_least = \"390Gbps\" or at_most = \"400Gbps\"");
        Some(Condition::Rate { stream: stream?, from: from?, to: to?, bounds: bounds? })
    }

    fn fault(&mut self, subject: &Entry<'_>, table: &mut Table<'_>) -> Option<Condition> {
        let name = values::string(subject, self.report)?;
        let bounds = self.bounds(table, ["fired", "at_least", "at_most"], whole);
        let bounds = self.required(bounds, table.span.clone(), "fired = 1, at_least = 1 or at_most = 1");
        let rule = self.faults.iter().position(|fault| fault.name == name);
        if rule.is_none() && !self.report.has_errors() {
            let names = || self.faults.iter().map(|fault| fault.name.as_str());
            let label = nearest(name, names()).map_or("unknown".to_owned(), |near| format!("did you mean `{near}`?"));
            let known: Vec<_> = names().take(20).collect();
            let help = match known.is_empty() {
                true => "describe it under [[faults]]".to_owned(),
                false => format!("known faults: {}", known.join(", ")),
            };
            self.report.push(
                Diagnostic::error(subject.value.span(), format!("there is no fault `{}`", shortened(name)))
                    .label(label)
                    .help(help),
            );
        }
        Some(Condition::Fault { rule: RuleId(u16::try_from(rule?).ok()?), bounds: bounds? })
    }

    fn whole_pattern(&mut self, mut table: Table<'_>) -> Option<Pattern> {
        table.require("event", "name it: event = \"nak_made\"", self.report)?;
        let pattern = self.pattern(&mut table);
        table.finish(|_| None, self.report);
        pattern
    }

    /// `event`, `node` and `where` of a table that has at least the first.
    fn pattern(&mut self, table: &mut Table<'_>) -> Option<Pattern> {
        let event = table.take_alias("event").and_then(|entry| self.event_name(&entry));
        let node = self.node(table, "node");
        let fields = match table.take("where") {
            Some(entry) => Table::read(&entry, "`where`", self.report).and_then(|table| self.fields(event?, &table)),
            None => Some(BTreeMap::new()),
        };
        Some(Pattern { event: event?, node: node?, fields: fields? })
    }

    fn event_name(&mut self, entry: &Entry<'_>) -> Option<&'static str> {
        let names: Vec<_> = EventKind::NAMES.iter().map(|name| (*name, *name)).collect();
        self.named(entry, "an event", "events", &names)
    }

    fn fields(&mut self, event: &str, table: &Table<'_>) -> Option<BTreeMap<&'static str, Vec<Literal>>> {
        let known = vocabulary::fields(event);
        let entries = table.entries();
        let mut fields = BTreeMap::new();
        for entry in &entries {
            let Some(key) = known.iter().find(|key| **key == entry.name) else {
                let near = nearest(entry.name, known.iter().copied());
                let message = format!("event `{event}` has no field `{}`", shortened(entry.name));
                self.report.push(
                    Diagnostic::error(entry.key.clone(), message)
                        .label(near.map_or("unknown".to_owned(), |near| format!("did you mean `{near}`?")))
                        .help(format!("its fields in events.jsonl: {}", listing(&known, "events"))),
                );
                continue;
            };
            let items = values::each(entry, self.report);
            let read: Vec<_> = items.iter().filter_map(|item| self.literal(item)).collect();
            if read.len() == items.len() && !read.is_empty() {
                fields.insert(*key, read);
            }
        }
        (fields.len() == entries.len()).then_some(fields)
    }

    fn literal(&mut self, entry: &Entry<'_>) -> Option<Literal> {
        match entry.value.get_ref() {
            DeValue::String(text) => Some(Literal::Text(text.as_ref().to_owned())),
            DeValue::Boolean(flag) => Some(Literal::Flag(*flag)),
            _ => values::whole(entry, 0, u64::MAX, self.report).map(Literal::Number),
        }
    }

    fn node(&mut self, table: &mut Table<'_>, key: &'static str) -> Option<Option<NodeId>> {
        let Some(entry) = table.take(key) else { return Some(None) };
        let name = values::string(&entry, self.report)?;
        self.scene.network.find(name, entry.value.span(), self.report).map(|node| Some(node_id(node)))
    }

    fn is_true(&mut self, subject: &Entry<'_>) -> Option<()> {
        if values::boolean(subject, self.report)? {
            return Some(());
        }
        self.report.push(
            Diagnostic::error(subject.value.span(), format!("`{} = false` expects nothing", subject.name))
                .label("not true")
                .help("remove the table, or expect a counter to be at least 1"),
        );
        None
    }

    fn named<T: Copy>(&mut self, entry: &Entry<'_>, what: &str, topic: &str, names: &[(&str, T)]) -> Option<T> {
        values::choice_of(entry, what, topic, names, self.report)
    }

    /// The bounds that one key, exactly, or two others, least and most, set. A key without a name is not asked for.
    fn bounds(
        &mut self,
        table: &mut Table<'_>,
        keys: [&'static str; 3],
        read: fn(&Entry<'_>, &mut Report) -> Option<u64>,
    ) -> Option<Option<Bounds>> {
        let [exactly, least, most] = keys.map(|key| if key.is_empty() { None } else { table.take(key) });
        let mut value = |entry: &Option<Entry<'_>>| match entry {
            Some(entry) => read(entry, self.report).map(Some),
            None => Some(None),
        };
        let values = [value(&exactly), value(&least), value(&most)];
        self.joined(values, [&exactly, &least, &most])
    }

    /// Bounds in time: exactly, after and before; the last two leave their own instant out.
    fn times(&mut self, table: &mut Table<'_>, keys: [&'static str; 3]) -> Option<Option<Bounds>> {
        let [at, after, before] = keys.map(|key| table.take(key));
        let mut value = |entry: &Option<Entry<'_>>| match entry {
            Some(entry) => values::span(entry, self.report).map(|span| Some(span.ps())),
            None => Some(None),
        };
        let [exactly, after_ps, before_ps] = [value(&at), value(&after), value(&before)];
        let after_ps = after_ps.map(|ps| ps.map(|ps| ps.saturating_add(1)));
        if let (Some(Some(0)), Some(entry)) = (before_ps, &before) {
            self.report.push(
                Diagnostic::error(entry.value.span(), "nothing happens before the run begins")
                    .label("zero")
                    .help("write a later time"),
            );
            return None;
        }
        let before_ps = before_ps.map(|ps| ps.map(|ps| ps.saturating_sub(1)));
        self.joined([exactly, after_ps, before_ps], [&at, &after, &before])
    }

    fn joined(&mut self, values: [Option<Option<u64>>; 3], entries: [&Option<Entry<'_>>; 3]) -> Option<Option<Bounds>> {
        let [exactly, least, most] = values;
        let (exactly, least, most) = (exactly?, least?, most?);
        let other = entries[1].as_ref().or(entries[2].as_ref());
        if let (Some(exactly), Some(other)) = (entries[0], other) {
            let message = format!("`{}` leaves nothing for `{}` to say", exactly.name, other.name);
            self.report.push(
                Diagnostic::error(other.key.clone(), message)
                    .label("said twice")
                    .help("keep one of the two")
                    .related(exactly.key.clone(), "said here"),
            );
            return None;
        }
        if let (Some(least), Some(most), Some(entry)) = (least, most, entries[2])
            && least > most
        {
            self.report.push(
                Diagnostic::error(entry.value.span(), "no value lies between these two bounds")
                    .label("below the other bound")
                    .help("turn them around, or remove one"),
            );
            return None;
        }
        Some(match (exactly, least, most) {
            (None, None, None) => None,
            (Some(value), ..) => Some(Bounds::exactly(value)),
            (None, least, most) => Some(Bounds { least: least.unwrap_or(0), most: most.unwrap_or(u64::MAX) }),
        })
    }

    /// Bounds that have to be there.
    fn required(&mut self, bounds: Option<Option<Bounds>>, span: Range<usize>, forms: &str) -> Option<Bounds> {
        let bounds = bounds?;
        if bounds.is_none() {
            self.report.push(
                Diagnostic::error(span, "this does not say what is expected")
                    .label("how much?")
                    .help(format!("write {forms}")),
            );
        }
        bounds
    }
}

fn whole(entry: &Entry<'_>, report: &mut Report) -> Option<u64> {
    values::whole(entry, 0, u64::MAX, report)
}

fn bps(entry: &Entry<'_>, report: &mut Report) -> Option<u64> {
    values::rate(entry, report).map(crate::base::Rate::bps)
}
