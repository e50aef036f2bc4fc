//! A message cut into segments.

use super::WorkRequest;
use crate::base::{Octets, Psn};

/// A place in a queue pair's sequence of packets that does not wrap: its low 24 bits are the PSN.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Position(u64);

impl Position {
    pub fn first(initial: Psn) -> Self {
        Self(u64::from(initial.get()))
    }

    pub const fn psn(self) -> Psn {
        Psn::new(self.0 as u32)
    }

    pub const fn next(self) -> Self {
        Self(self.0 + 1)
    }

    pub const fn plus(self, count: u32) -> Self {
        Self(self.0 + count as u64)
    }

    /// Packets from `earlier` to here; 0 if `earlier` is later.
    pub const fn since(self, earlier: Self) -> u64 {
        self.0.saturating_sub(earlier.0)
    }

    /// The position that `psn` names, as seen from `self`: less than half the circle away. `None` before the first.
    pub fn resolve(self, psn: Psn) -> Option<Self> {
        self.0.checked_add_signed(i64::from(psn.since(self.psn()))).map(Self)
    }
}

/// A message in the course of being sent.
#[derive(Clone, Debug)]
pub struct Message {
    pub work: WorkRequest,
    size: Octets,
    /// Position of its first packet.
    pub first: Position,
    pub packet_count: u32,
    mss: Octets,
}

/// One packet's share of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Segment {
    pub position: Position,
    /// Where its payload starts in the message.
    pub offset: Octets,
    pub payload: Octets,
    pub is_first: bool,
    pub is_last: bool,
}

impl Message {
    /// ceil(N ÷ MSS) packets; a message of nothing is one packet.
    pub fn new(work: WorkRequest, first: Position, mss: Octets) -> Self {
        let size = work.size();
        let packet_count = size.get().div_ceil(mss.get()).max(1);
        // Messages are at most 2³¹ octets and the MSS at least 1: the count fits 32 bits.
        Self { work, size, first, packet_count: packet_count as u32, mss }
    }

    /// The position behind its last packet.
    pub fn end(&self) -> Position {
        self.first.plus(self.packet_count)
    }

    /// * Panics: if `position` is not one of its packets (caller's bug).
    pub fn segment(&self, position: Position) -> Segment {
        assert!(self.first <= position && position < self.end(), "a segment belongs to its message");
        let index = position.since(self.first);
        let offset = Octets::new(index * self.mss.get());
        Segment {
            position,
            offset,
            payload: self.mss.min(self.size - offset),
            is_first: index == 0,
            is_last: position.next() == self.end(),
        }
    }
}
