//! What the host asks for: messages to be sent, and places for messages to be received.

use std::sync::Arc;

use bytes::Bytes;

use super::MemoryKey;
use crate::base::{MessageId, NodeId, Octets};
use crate::ring::{Sge, Wqe};
use crate::wire::Verb;

/// A work request: send these octets to the queue pair's peer.
#[derive(Clone, Debug)]
pub struct WorkRequest {
    pub message: MessageId,
    /// The node at the other end, for the records.
    pub peer: NodeId,
    pub verb: Verb,
    /// Range: up to [`WorkRequest::MAX_SIZE`]; a longer message fails when its turn comes.
    pub source: Source,
    /// Where a WRITE goes at the receiving host; a SEND goes to the receive posted there.
    pub remote: MemoryKey,
    /// What the receiving host is given along with the message.
    pub immediate: Option<u32>,
    /// The receiving host is to be woken. On the wire it is said where `strict_ib_flags` is set; without, the last
    /// packet of every message says it (model.md W7).
    pub solicited: bool,
    /// Octets of its slot in a ring, which a WQE fetch reads. `None`: a scenario has no ring, so WqeSize, or as many as
    /// its inline data need.
    pub slot: Option<Octets>,
    /// A scenario's post: the WQE is to travel with its doorbell. Without effect where doorbells are free.
    pub blue_flame: bool,
}

/// Where the octets of a message come from.
#[derive(Clone, Debug)]
pub enum Source {
    /// These pieces of registered memory, one after the other.
    Gather(Arc<[Piece]>),
    /// They are in the WQE. Where doorbells are modelled they came with it; where they are free, their fetch takes its
    /// time like any other.
    Inline(Bytes),
}

/// A part of registered memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Piece {
    pub key: MemoryKey,
    pub length: Octets,
}

/// Memory for a message to be received into, one piece after the other.
#[derive(Clone, Debug)]
pub struct Receive {
    /// What its application calls it.
    pub id: u64,
    pub pieces: Arc<[Piece]>,
}

impl WorkRequest {
    pub const MAX_SIZE: Octets = Octets::new(1 << 31);

    pub fn size(&self) -> Octets {
        match &self.source {
            Source::Gather(pieces) => length(pieces),
            Source::Inline(octets) => Octets::new(octets.len() as u64),
        }
    }

    pub fn is_inline(&self) -> bool {
        matches!(self.source, Source::Inline(_))
    }

    /// Octets of its WQE, as [`Wqe`] lays it out: 32, and 16 per piece or the inline data.
    pub fn wqe_octets(&self) -> Octets {
        let payload = match &self.source {
            Source::Gather(pieces) => Sge::OCTETS * pieces.len(),
            Source::Inline(octets) => octets.len(),
        };
        Octets::new((Wqe::HEADER + payload) as u64)
    }

    /// Octets that a fetch of its WQE reads: all of its slot.
    ///
    /// * `usual`: WqeSize.
    pub fn slot_octets(&self, usual: Octets) -> Octets {
        self.slot.unwrap_or_else(|| usual.max(Octets::new(self.wqe_octets().get().next_power_of_two())))
    }
}

/// Octets of all pieces together, as many as can be counted.
pub(super) fn length(pieces: &[Piece]) -> Octets {
    Octets::new(pieces.iter().fold(0, |sum, piece| piece.length.get().saturating_add(sum)))
}
