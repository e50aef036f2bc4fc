//! Frames that a fault script puts on a link.

use std::collections::BTreeSet;

use bytes::Bytes;

use super::Hop;
use crate::base::{Instant, NodeId, PortId, RuleId};
use crate::scenario::{FaultKind, LinkEnd, Plan};

/// An injected frame that is due to arrive.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct DueFrame {
    pub at: Instant,
    /// Where it arrives.
    pub node: NodeId,
    pub port: PortId,
    pub rule: RuleId,
    /// How many of the rule have gone before.
    nth: u32,
}

/// All injected frames of a run, in the order of their arrival.
#[derive(Debug)]
pub struct Injector<'a> {
    plan: &'a Plan,
    due: BTreeSet<DueFrame>,
    injected: Vec<u64>,
}

/// An injected frame on its way.
#[derive(Clone, Debug)]
pub struct Injected {
    pub hop: Hop,
    /// The end of the link that seems to send it.
    pub from: LinkEnd,
    pub rule: RuleId,
    pub frame: Bytes,
}

impl<'a> Injector<'a> {
    pub fn new(plan: &'a Plan) -> Self {
        let due = (0..)
            .zip(&plan.faults)
            .filter_map(|(rule, fault)| match fault.kind {
                FaultKind::Inject { first_at, count, .. } if count > 0 => {
                    let to = plan.links[fault.link].ends[1 - fault.from_end];
                    Some(DueFrame { at: first_at, node: to.node, port: to.port, rule: RuleId(rule), nth: 0 })
                }
                _ => None,
            })
            .collect();
        Self { plan, due, injected: vec![0; plan.faults.len()] }
    }

    pub fn next(&self) -> Option<DueFrame> {
        self.due.first().copied()
    }

    pub fn pop(&mut self) -> Option<Injected> {
        let due = self.due.pop_first()?;
        let fault = &self.plan.faults[due.rule.index()];
        let FaultKind::Inject { every, count, ref frame, .. } = fault.kind else { return None };
        let nth = due.nth + 1;
        if nth < count {
            self.due.insert(DueFrame { at: due.at + every, nth, ..due });
        }
        self.injected[due.rule.index()] += 1;
        Some(Injected {
            hop: Hop::new(fault.link as u32, fault.from_end as u32),
            from: self.plan.links[fault.link].ends[fault.from_end],
            rule: due.rule,
            frame: frame.clone(),
        })
    }

    /// Frames injected by a rule so far.
    pub fn injected(&self, rule: RuleId) -> u64 {
        self.injected[rule.index()]
    }
}
