//! Which queue pair's segment is taken next, and whether any is taken at all.

use std::collections::VecDeque;

use crate::base::{Class, Qpn};

/// The queue pairs that have a segment to send, in the order of their turns.
#[derive(Clone, Debug, Default)]
pub struct ReadyQueue(VecDeque<Qpn>);

/// What packet generation is doing. `F` is a read request that waits for PCIe space.
///
/// A run itself takes no time, so there is no state for it between two events.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Generation<F> {
    /// The ready queue is empty.
    Idle,
    /// A run begins 80 ns after it was asked for.
    Starting,
    /// The head's segment did not fit the egress pool of this class.
    Stopped(Class),
    /// A segment was taken and reserved; its read request waits for space in the PCIe transmit buffer.
    Blocked(F),
}

impl ReadyQueue {
    pub fn push(&mut self, qpn: Qpn) {
        debug_assert!(!self.0.contains(&qpn), "a queue pair has one place in the ready queue");
        self.0.push_back(qpn);
    }

    pub fn head(&self) -> Option<Qpn> {
        self.0.front().copied()
    }

    /// The head's segment was taken: it leaves, or moves to the tail if it has more.
    pub fn turn(&mut self, has_more: bool) {
        if let Some(qpn) = self.0.pop_front()
            && has_more
        {
            self.0.push_back(qpn);
        }
    }

    pub fn remove(&mut self, qpn: Qpn) {
        self.0.retain(|&other| other != qpn);
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}
