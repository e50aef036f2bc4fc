//! Who posts which work request when.

use std::collections::BTreeSet;

use crate::base::{Instant, MessageId, NodeId, Span};

/// Messages that one entry of the workload posts: at one instant, or at regular intervals.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Series {
    pub node: NodeId,
    pub first_at: Instant,
    pub every: Span,
    pub count: u32,
}

/// A post that is due.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Due {
    pub at: Instant,
    pub node: NodeId,
    pub message: MessageId,
    /// Index of its series.
    pub series: usize,
}

/// All posts of a run in the order in which they happen: by time, then node, then message number.
///
/// * Cost: one entry per series, however many messages it posts.
#[derive(Clone, Debug)]
pub struct Workload {
    series: Vec<Series>,
    due: BTreeSet<Due>,
    /// The message number behind the last one of each series.
    ends: Vec<u32>,
}

impl Workload {
    /// Numbers the messages in the order of `series`.
    ///
    /// * Panics: if there are more than 2³² messages (refused when a scenario is read).
    pub fn new(series: Vec<Series>) -> Self {
        let mut due = BTreeSet::new();
        let mut next = 0_u32;
        let mut ends = Vec::with_capacity(series.len());
        for (index, entry) in series.iter().enumerate() {
            if entry.count > 0 {
                due.insert(Due { at: entry.first_at, node: entry.node, message: MessageId(next), series: index });
            }
            next = next.checked_add(entry.count).expect("a scenario has at most 2^32 messages");
            ends.push(next);
        }
        Self { series, due, ends }
    }

    /// The first number that no message of the scenario has.
    pub fn end(&self) -> MessageId {
        MessageId(self.ends.last().copied().unwrap_or(0))
    }

    pub fn next(&self) -> Option<Due> {
        self.due.first().copied()
    }

    pub fn pop(&mut self) -> Option<Due> {
        let due = self.due.pop_first()?;
        let following = due.message.0 + 1;
        if following < self.ends[due.series] {
            let at = due.at + self.series[due.series].every;
            self.due.insert(Due { at, message: MessageId(following), ..due });
        }
        Some(due)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn posts_come_by_time_then_node_then_number() {
        let at = Instant::from_ps;
        let series = |node, first_at, every, count| Series {
            node: NodeId(node),
            first_at: at(first_at),
            every: Span::from_ps(every),
            count,
        };
        let mut workload = Workload::new(vec![series(1, 0, 10, 3), series(0, 10, 0, 2), series(0, 0, 0, 0)]);
        let order: Vec<_> =
            std::iter::from_fn(|| workload.pop()).map(|d| (d.at.ps(), d.node.0, d.message.0, d.series)).collect();
        assert_eq!(workload.end(), MessageId(5));
        assert_eq!(order, [(0, 1, 0, 0), (10, 0, 3, 1), (10, 0, 4, 1), (10, 1, 1, 0), (20, 1, 2, 0)]);
    }
}
