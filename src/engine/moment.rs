//! When what happens next, and the order of what happens in one instant.

use crate::base::{Instant, NodeId, Phase};

/// When something happens among all nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Moment {
    pub at: Instant,
    pub phase: Phase,
    pub node: NodeId,
    pub unit: u16,
}

impl Moment {
    const ENDING: u16 = u16::MAX;

    /// An application's turn: behind the posts of its node, in the order of the scenario.
    pub(super) fn turn(at: Instant, node: NodeId, application: usize) -> Self {
        Self { at, phase: Phase::Post, node, unit: 1 + application as u16 }
    }

    /// Whose turn it is.
    pub(super) fn application(self) -> Option<usize> {
        let is_turn = self.phase == Phase::Post && self.unit != Self::ENDING;
        usize::from(self.unit).checked_sub(1).filter(|_| is_turn)
    }

    /// A queue pair is told that its peer has gone: behind all turns.
    pub(super) fn ending(at: Instant, node: NodeId) -> Self {
        Self { at, phase: Phase::Post, node, unit: Self::ENDING }
    }

    pub(super) fn is_ending(self) -> bool {
        self.phase == Phase::Post && self.unit == Self::ENDING
    }
}
