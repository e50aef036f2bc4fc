//! A completion queue: a ring that the device fills.

use super::Memory;
use crate::ring::{Cqe, Producer, RingError};

#[derive(Debug)]
pub(super) struct CompletionQueue {
    ring: Producer<Memory>,
    /// Of its memory.
    pub octets: usize,
    /// Ends of queue pairs that use it.
    pub users: u32,
    /// Full once, or broken by its application: nothing more goes in.
    pub has_overrun: bool,
}

impl CompletionQueue {
    pub(super) fn new(ring: Producer<Memory>, octets: usize) -> Self {
        Self { ring, octets, users: 0, has_overrun: false }
    }

    /// * Errors: it is full, or its consumer index cannot be. It has overrun then.
    pub(super) fn push(&mut self, cqe: &Cqe) -> Result<(), RingError> {
        let mut slot = [0; Cqe::SLOT];
        let entry = cqe.encode(&mut slot).expect("the slot has its size");
        let pushed = self.ring.post(entry).map(drop);
        self.has_overrun |= pushed.is_err();
        pushed
    }

    /// Whether the application has something to poll.
    pub(super) fn holds_entries(&mut self) -> bool {
        let capacity = self.ring.geometry().capacity();
        // An index that cannot be shows at the next push.
        self.ring.free().is_ok_and(|free| free < capacity)
    }
}
