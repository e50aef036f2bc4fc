//! How often a queue pair has started over in its message.

use crate::base::Psn;

/// Counts the passes over a message by what leaves the port.
#[derive(Clone, Copy, Debug, Default)]
pub struct Passes {
    /// The pass of the last packet; 0 before the first.
    iteration: u32,
    /// The PSN that continues it.
    next: Psn,
}

impl Passes {
    /// The pass that a data packet belongs to, from 1, in the order in which they leave the port. Every jump of the PSNs
    /// begins another, and a message that continues where the one before ended begins with its first.
    ///
    /// * `index`: of the packet in its message, from 0.
    pub fn leave(&mut self, psn: Psn, index: u32) -> u32 {
        self.iteration = match self.iteration {
            0 => 1,
            iteration if psn != self.next => iteration.saturating_add(1),
            _ if index == 0 => 1,
            iteration => iteration,
        };
        self.next = psn.plus(1);
        self.iteration
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_jump_of_the_psns_begins_another_pass_and_a_message_the_first() {
        let mut passes = Passes::default();
        let mut leave = |n: u32, index: u32| passes.leave(Psn::new(n), index);
        assert_eq!([0, 1].map(|n| leave(n, n)), [1, 1]);
        // Packet 2 is sent for the first time after a rewind: it belongs to the second pass.
        assert_eq!([1, 2, 3].map(|n| leave(n, n)), [2, 2, 2]);
        // Another rewind, a third pass; then a message of its own that begins with the next PSN.
        assert_eq!([2, 3].map(|n| leave(n, n)), [3, 3]);
        assert_eq!(leave(4, 0), 1);
        assert_eq!(leave(2, 0), 2, "a jump to the first packet of a message is a rewind all the same");
    }

    #[test]
    fn passes_cross_the_wrap_of_the_psns() {
        let mut passes = Passes::default();
        assert_eq!([0xff_ffff, 0, 0xff_ffff, 0].map(|psn| passes.leave(Psn::new(psn), 5)), [1, 1, 2, 2]);
    }
}
