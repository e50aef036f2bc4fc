//! The work queue element: one work request, as it lies in a slot of a send queue.
//!
//! | octet | field | |
//! | --- | --- | --- |
//! | 0 | version | 1 |
//! | 1 | opcode | [`Opcode`] |
//! | 2 | flags | 1 signaled, 2 solicited, 4 inline; 8 is reserved for a fence and refused, like all others |
//! | 3 | scatter count | elements behind the header; 0 with inline data |
//! | 4..8 | total length | octets of the message, 0..=2³¹; with inline data the octets behind the header |
//! | 8..16 | `wr_id` | the application's own; comes back in the completion |
//! | 16..20 | immediate | as the receiver sees it; 0 if the opcode has none |
//! | 20..24 | rkey | of a WRITE; 0 for a SEND |
//! | 24..32 | remote address | of a WRITE; 0 for a SEND |
//! | 32.. | payload | scatter list of 16 octets each: address u64, lkey u32, length u32; or the data itself |
//!
//! Little-endian. A slot of 64 octets holds two scatter elements or 32 octets inline, one of 512 thirty or 480. What is
//! behind the payload belongs to earlier entries. An entry that decodes encodes to the same octets again.

use std::fmt;

use arrayvec::ArrayVec;

use super::geometry::MAX_SLOT;
use super::octets::{self, get, put};
use super::scatter::{self, ScatterList};
use super::{EntryError, Field};

const VERSION: u8 = 1;
const HEADER: usize = 32;
const SIGNALED: u8 = 1 << 0;
const SOLICITED: u8 = 1 << 1;
const INLINE: u8 = 1 << 2;

/// What a work request asks for; the numbers are those of verbs.
///
/// * Source: rdma-core, `enum ibv_wr_opcode`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Opcode {
    Write = 0,
    WriteWithImmediate = 1,
    Send = 2,
    SendWithImmediate = 3,
    Read = 4,
    CompareAndSwap = 5,
    FetchAndAdd = 6,
}

/// A work request that this emulator carries out, with what its opcode needs and nothing else.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Operation {
    Send { immediate: Option<u32> },
    Write { remote_address: u64, rkey: u32, immediate: Option<u32> },
}

/// Where the octets of the message are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Payload {
    /// In registered memory, to be gathered in this order.
    Scatter(ScatterList),
    /// In the entry itself: no payload fetch.
    Inline(ArrayVec<u8, { MAX_SLOT - HEADER }>),
}

/// A work queue element.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wqe {
    pub wr_id: u64,
    pub operation: Operation,
    /// Wants a completion also if all goes well.
    pub signaled: bool,
    /// The receiver's completion is to wake a sleeper. Without effect where the receiver has no completion.
    pub solicited: bool,
    pub payload: Payload,
}

/// Scatter elements of a WQE in a slot of so many octets.
pub const fn max_sges(slot_octets: usize) -> usize {
    scatter::room(max_inline(slot_octets))
}

/// Octets of inline data of a WQE in a slot of so many octets.
pub const fn max_inline(slot_octets: usize) -> usize {
    slot_octets.saturating_sub(HEADER)
}

impl Opcode {
    const ALL: [Self; 7] = [
        Self::Write,
        Self::WriteWithImmediate,
        Self::Send,
        Self::SendWithImmediate,
        Self::Read,
        Self::CompareAndSwap,
        Self::FetchAndAdd,
    ];

    /// `None` if verbs' number is none of ours, nor one we can name.
    pub fn from_u8(number: u8) -> Option<Self> {
        Self::ALL.get(usize::from(number)).copied()
    }
}

impl fmt::Display for Opcode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Write => "WRITE",
            Self::WriteWithImmediate => "WRITE with immediate",
            Self::Send => "SEND",
            Self::SendWithImmediate => "SEND with immediate",
            Self::Read => "READ",
            Self::CompareAndSwap => "compare and swap",
            Self::FetchAndAdd => "fetch and add",
        })
    }
}

impl Operation {
    pub const fn opcode(self) -> Opcode {
        match self {
            Self::Send { immediate: None } => Opcode::Send,
            Self::Send { immediate: Some(_) } => Opcode::SendWithImmediate,
            Self::Write { immediate: None, .. } => Opcode::Write,
            Self::Write { immediate: Some(_), .. } => Opcode::WriteWithImmediate,
        }
    }

    pub const fn immediate(self) -> Option<u32> {
        match self {
            Self::Send { immediate } | Self::Write { immediate, .. } => immediate,
        }
    }
}

impl Payload {
    /// Octets of the message.
    ///
    /// * Errors: `MessageLength` above 2³¹.
    pub fn length(&self) -> Result<u32, EntryError> {
        match self {
            Self::Scatter(list) => scatter::sum(list),
            Self::Inline(data) => Ok(data.len() as u32),
        }
    }
}

impl Wqe {
    /// Octets before the payload.
    pub const HEADER: usize = HEADER;

    /// Writes the entry into the front of a slot-sized buffer and gives its octets, as
    /// [`Producer::post`](super::Producer::post) and BlueFlame take them.
    ///
    /// * Shape: `slot.len()` is the queue's slot size.
    /// * Errors: `ScatterCount`, `InlineLength` if the payload does not fit, `MessageLength`, `Short` if not even the
    ///   header fits. The buffer may be half written.
    pub fn encode<'a>(&self, slot: &'a mut [u8]) -> Result<&'a [u8], EntryError> {
        let (header, body) = octets::split_mut::<HEADER>(slot)?;
        let (scatter_count, octets) = match &self.payload {
            Payload::Scatter(list) => (list.len() as u8, scatter::encode(list, body)?),
            Payload::Inline(data) => {
                let (have, max) = (data.len(), body.len());
                body.get_mut(..have).ok_or(EntryError::InlineLength { have, max })?.copy_from_slice(data);
                (0, have)
            }
        };
        let flags = SIGNALED * u8::from(self.signaled)
            + SOLICITED * u8::from(self.solicited)
            + INLINE * u8::from(matches!(self.payload, Payload::Inline(_)));
        let (remote_address, rkey) = match self.operation {
            Operation::Send { .. } => (0, 0),
            Operation::Write { remote_address, rkey, .. } => (remote_address, rkey),
        };
        put(header, 0, [VERSION, self.operation.opcode() as u8, flags, scatter_count]);
        put(header, 4, self.payload.length()?.to_le_bytes());
        put(header, 8, self.wr_id.to_le_bytes());
        put(header, 16, self.operation.immediate().unwrap_or(0).to_le_bytes());
        put(header, 20, rkey.to_le_bytes());
        put(header, 24, remote_address.to_le_bytes());
        Ok(&slot[..HEADER + octets])
    }

    /// Reads an entry from a fetched slot, believing nothing.
    ///
    /// Keys and addresses are not its business: whether a region is registered is for the NIC to know.
    ///
    /// * Errors: an [`EntryError`] that names the first wrong field; `Unsupported` for READ and atomics. The completion in
    ///   error takes its number from [`Wqe::wr_id`].
    pub fn decode(slot: &[u8]) -> Result<Self, EntryError> {
        let (header, body) = octets::split::<HEADER>(slot)?;
        let &[version, opcode, flags, scatter_count, ..] = header;
        if version != VERSION {
            return Err(EntryError::Version(version));
        }
        if flags & !(SIGNALED | SOLICITED | INLINE) != 0 {
            return Err(EntryError::Flags(flags));
        }
        let operation = decode_operation(opcode, header)?;
        let total = u32::from_le_bytes(get(header, 4));
        let payload = if flags & INLINE != 0 {
            if scatter_count != 0 {
                return Err(EntryError::NotZero(Field::ScatterCount));
            }
            let (have, max) = (total as usize, max_inline(slot.len().min(MAX_SLOT)));
            let data = body.get(..have).and_then(|data| ArrayVec::try_from(data).ok());
            Payload::Inline(data.ok_or(EntryError::InlineLength { have, max })?)
        } else {
            let list = scatter::decode(scatter_count, body)?;
            let sum = scatter::sum(&list)?;
            if sum != total {
                return Err(EntryError::LengthMismatch { total, sum });
            }
            Payload::Scatter(list)
        };
        let (signaled, solicited) = (flags & SIGNALED != 0, flags & SOLICITED != 0);
        Ok(Self { wr_id: Self::wr_id(slot), operation, signaled, solicited, payload })
    }

    /// Where the work request's number would be, also in an entry that does not decode; 0 in less than a header.
    pub fn wr_id(slot: &[u8]) -> u64 {
        octets::split::<HEADER>(slot).map_or(0, |(header, _)| u64::from_le_bytes(get(header, 8)))
    }
}

fn decode_operation(opcode: u8, header: &[u8; HEADER]) -> Result<Operation, EntryError> {
    let immediate = u32::from_le_bytes(get(header, 16));
    let rkey = u32::from_le_bytes(get(header, 20));
    let remote_address = u64::from_le_bytes(get(header, 24));
    let opcode = Opcode::from_u8(opcode).ok_or(EntryError::Opcode(opcode))?;
    let operation = match opcode {
        Opcode::Send => Operation::Send { immediate: None },
        Opcode::SendWithImmediate => Operation::Send { immediate: Some(immediate) },
        Opcode::Write => Operation::Write { remote_address, rkey, immediate: None },
        Opcode::WriteWithImmediate => Operation::Write { remote_address, rkey, immediate: Some(immediate) },
        Opcode::Read | Opcode::CompareAndSwap | Opcode::FetchAndAdd => return Err(EntryError::Unsupported(opcode)),
    };
    let is_send = matches!(operation, Operation::Send { .. });
    match () {
        () if operation.immediate().is_none() && immediate != 0 => Err(EntryError::NotZero(Field::Immediate)),
        () if is_send && rkey != 0 => Err(EntryError::NotZero(Field::Rkey)),
        () if is_send && remote_address != 0 => Err(EntryError::NotZero(Field::RemoteAddress)),
        () => Ok(operation),
    }
}
