//! What the host asks for.

use super::MemoryKey;
use crate::base::{MessageId, NodeId, Octets};
use crate::wire::Verb;

/// A work request: send these octets of host memory to the queue pair's peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WorkRequest {
    pub message: MessageId,
    /// The node at the other end, for the records.
    pub peer: NodeId,
    pub verb: Verb,
    /// Range: up to 2³¹ octets.
    pub size: Octets,
    /// Where it lies at the sending host.
    pub local: MemoryKey,
    /// Where a WRITE goes at the receiving host; a SEND goes to the receive posted there.
    pub remote: MemoryKey,
}
