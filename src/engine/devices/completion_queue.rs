//! A completion queue: a ring that the device fills.

use super::Memory;
use crate::ring::{Cqe, Producer, RingError, Status};

#[derive(Debug)]
pub(super) struct CompletionQueue {
    ring: Producer<Memory>,
    /// Of its memory.
    pub octets: usize,
    /// Ends of queue pairs that use it.
    pub users: u32,
    /// Full once, or broken by its application: nothing more goes in.
    pub has_overrun: bool,
    /// Entries from the newest one on that wakes those who wait for such only.
    since_solicited: Option<u32>,
}

impl CompletionQueue {
    pub(super) fn new(ring: Producer<Memory>, octets: usize) -> Self {
        Self { ring, octets, users: 0, has_overrun: false, since_solicited: None }
    }

    /// * Errors: it is full, or its consumer index cannot be. It has overrun then.
    pub(super) fn push(&mut self, cqe: &Cqe) -> Result<(), RingError> {
        let mut slot = [0; Cqe::SLOT];
        let entry = cqe.encode(&mut slot).expect("the slot has its size");
        let pushed = self.ring.post(entry).map(drop);
        self.has_overrun |= pushed.is_err();
        self.since_solicited = match wakes(cqe) {
            true => Some(1),
            false => self.since_solicited.map(|since| since.saturating_add(1)),
        };
        pushed
    }

    /// Whether the application has something to poll that wakes it.
    pub(super) fn holds(&mut self, solicited_only: bool) -> bool {
        let capacity = self.ring.geometry().capacity();
        // An index that cannot be shows at the next push.
        let held = self.ring.free().map_or(0, |free| capacity - free);
        let needed = if solicited_only { self.since_solicited } else { Some(1) };
        needed.is_some_and(|needed| held >= needed)
    }
}

/// Whether it wakes those who wait for solicited completions only; what goes wrong does, too.
pub(super) fn wakes(cqe: &Cqe) -> bool {
    cqe.solicited || cqe.status != Status::Success
}
