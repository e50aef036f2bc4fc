//! The judge of a run: hears every event, and says at the end what held.

use std::fmt;
use std::io;

use super::watch::{Finding, Seen, Watch};
use super::{Condition, Expectation, number};
use crate::base::{Instant, NodeId};
use crate::link::RuleReport;
use crate::scenario::Plan;
use crate::trace::{Counters, Event, Names, Sink};

/// Watches a run for what its scenario expects.
///
/// * Order: every event of the run in its order, then [`Judge::finish`].
/// * Cost: per event, one comparison of names for each expectation about events; only those that are meant are written
///   out as the event log has them.
#[derive(Debug)]
pub struct Judge<'p> {
    plan: &'p Plan,
    names: Names,
    watches: Vec<Watch<'p>>,
}

/// Whether one expectation held.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verdict<'p> {
    pub expectation: &'p Expectation,
    pub ok: bool,
    /// With units.
    pub expected: String,
    pub got: String,
    /// Around when to look, and at which node, if it did not hold and there is such a place.
    pub at: Option<Instant>,
    pub node: Option<NodeId>,
}

impl<'p> Judge<'p> {
    pub fn new(plan: &'p Plan) -> Self {
        let watches = plan.expectations.iter().map(|expectation| Watch::new(&expectation.condition, plan)).collect();
        Self { plan, names: plan.names(), watches }
    }

    /// A verdict for every expectation, in file order.
    ///
    /// * `counters` and `faults` are the run's: those of every node, and what each fault of the plan did.
    pub fn finish(self, counters: &Counters, faults: &[RuleReport]) -> Vec<Verdict<'p>> {
        let Self { plan, names, watches } = self;
        let judged = plan.expectations.iter().zip(watches).map(|(expectation, watch)| {
            let finding = match &expectation.condition {
                Condition::Counter { counter, node, bounds } => {
                    let of = |counters: &crate::trace::NodeCounters| counters.get(counter).unwrap_or(0);
                    let value = match node {
                        Some(node) => of(counters.node(*node)),
                        None => counters.iter().map(of).sum(),
                    };
                    let place = node.map_or_else(String::new, |node| format!(" at {}", names.node(node)));
                    Finding {
                        ok: bounds.hold(value),
                        expected: format!("{counter}{place}: {}", bounds.text(number)),
                        got: number(value),
                        at: None,
                        node: *node,
                    }
                }
                Condition::Fault { rule, bounds } => {
                    let report = faults.get(rule.index()).copied().unwrap_or_default();
                    Finding {
                        ok: bounds.hold(report.fired),
                        expected: format!("fault `{}` fires: {}", names.rule(*rule), bounds.text(number)),
                        got: format!("{} of {} frames that matched", report.fired, report.matched),
                        at: None,
                        node: None,
                    }
                }
                _ => watch.finish(&names),
            };
            let Finding { ok, expected, got, at, node } = finding;
            Verdict { expectation, ok, expected, got, at: at.filter(|_| !ok), node: node.filter(|_| !ok) }
        });
        judged.collect()
    }
}

impl Sink for Judge<'_> {
    /// * Errors: never; memory takes everything.
    fn record(&mut self, event: &Event) -> io::Result<()> {
        let seen = Seen::new(event, &self.names);
        self.watches.iter_mut().for_each(|watch| watch.hear(&seen));
        Ok(())
    }
}

impl fmt::Display for Verdict<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { expectation, ok, expected, got, at, .. } = self;
        let name = &expectation.name;
        if *ok {
            return write!(f, "{name}: {expected}");
        }
        write!(f, "{name}: expected {expected}; got {got}")?;
        at.map_or(Ok(()), |at| write!(f, " (look around {at})"))
    }
}
