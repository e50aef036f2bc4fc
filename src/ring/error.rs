//! What can be wrong with a ring, and what can be wrong with an entry in it.
//!
//! Two enums, since they end different things: after a [`RingError`] the other side is not to be talked to any more, an
//! [`EntryError`] ends one work request with an error completion.

use super::Opcode;

/// One of the two indices that the sides of a ring share.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Side {
    Producer,
    Consumer,
}

/// Why a ring, or a line of doorbells, cannot go on.
///
/// State is unchanged by every one of them. [`RingError::Full`] passes when the other side completes entries; all others
/// from [`RingError::OutOfRange`] on are the other side's doing and final.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
pub enum RingError {
    /// All N − 1 entries are held. In a completion queue this is the overrun.
    #[error("ring full")]
    Full,
    /// The caller wants to complete what it has not fetched.
    #[error("no fetched entry to complete")]
    NothingFetched,
    #[error("entry of {have} octets where a slot or a doorbell takes 1..={max}")]
    EntryLength { have: usize, max: usize },
    #[error("{0} slots: not a power of two within 2..=65536")]
    Slots(u32),
    #[error("slots of {0} octets: not a power of two within 64..=512")]
    SlotOctets(u32),
    #[error("{have} octets of memory for a ring of {need}")]
    Memory { need: usize, have: usize },
    /// The memory holds no ring, or one of another version.
    #[error("no ring of version {} in this memory", super::Geometry::VERSION)]
    Header,
    /// An index of N or more.
    #[error("{side:?} index {index} is no slot of the ring")]
    OutOfRange { side: Side, index: u64 },
    /// An index that goes backwards, or past the other one.
    #[error("{side:?} index {index} where the ring allows {from}..={to}, wrapping")]
    Impossible { side: Side, index: u32, from: u32, to: u32 },
    #[error("doorbell of version {0}")]
    DoorbellVersion(u8),
    #[error("doorbell of kind {0}")]
    DoorbellKind(u8),
    /// A plain doorbell with a length, or a BlueFlame post whose WQE has 0 or more than 512 octets.
    #[error("doorbell that announces a WQE of {0} octets")]
    DoorbellLength(u16),
    /// A BlueFlame post must appear with all its lines at once.
    #[error("BlueFlame post with {have} of {need} lines of WQE")]
    BlueFlameCutShort { need: u32, have: u32 },
}

/// A field of an entry that must be zero where it means nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Field {
    /// Of a SEND or WRITE without immediate, or a completion without one.
    Immediate,
    /// Of a SEND.
    RemoteAddress,
    /// Of a SEND.
    Rkey,
    /// Of a WQE with inline data.
    ScatterCount,
    Reserved,
}

/// The field that makes an entry wrong; every one is looked at, and none believed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
pub enum EntryError {
    #[error("{have} octets for an entry of {need}")]
    Short { need: usize, have: usize },
    #[error("entry of version {0}, which there is not")]
    Version(u8),
    #[error("opcode {0}, which there is not")]
    Opcode(u8),
    /// READ and the atomics: known, and not emulated.
    #[error("{0} is not emulated")]
    Unsupported(Opcode),
    /// Reserved flags, the fence among them.
    #[error("flags {0:#010b}")]
    Flags(u8),
    #[error("{have} scatter entries in a slot for {max}")]
    ScatterCount { have: usize, max: usize },
    #[error("{have} octets inline in a slot for {max}")]
    InlineLength { have: usize, max: usize },
    /// More than 2³¹ octets (model.md W10).
    #[error("message of {0} octets")]
    MessageLength(u64),
    /// The total is not the sum of the scatter list.
    #[error("total length {total} over a scatter list of {sum} octets")]
    LengthMismatch { total: u32, sum: u32 },
    #[error("completion status {0}")]
    Status(u8),
    #[error("queue pair number {0:#x}")]
    Qpn(u32),
    #[error("{0:?} must be zero")]
    NotZero(Field),
}
