//! The completion queue entry: how a work request ended.
//!
//! | octet | field | |
//! | --- | --- | --- |
//! | 0 | version | 1 |
//! | 1 | opcode | [`CompletionOpcode`] |
//! | 2 | status | [`Status`] |
//! | 3 | flags | 1 there is an immediate, 2 solicited; others are refused |
//! | 4..8 | length | octets of the message |
//! | 8..16 | `wr_id` | of the work request |
//! | 16..20 | immediate | 0 if there is none |
//! | 20..24 | QPN | of this end's queue pair, 24 bits |
//! | 24..64 | reserved | neither written nor read |
//!
//! Little-endian, in slots of 64 octets. An entry that decodes encodes to the same octets again.

use super::octets::{self, get, put};
use super::{EntryError, Field};
use crate::base::Qpn;

const VERSION: u8 = 1;
const HEADER: usize = 24;
const WITH_IMMEDIATE: u8 = 1 << 0;
const SOLICITED: u8 = 1 << 1;

/// How it ended; the numbers are those of verbs.
///
/// * Source: rdma-core, `enum ibv_wc_status`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Status {
    Success = 0,
    LocalLengthError = 1,
    LocalQpOperationError = 2,
    LocalProtectionError = 4,
    WorkRequestFlushed = 5,
    RemoteInvalidRequest = 9,
    RemoteAccessError = 10,
    RemoteOperationError = 11,
    RetryExceeded = 12,
    RnrRetryExceeded = 13,
    GeneralError = 21,
}

/// What has ended; the numbers are those of verbs.
///
/// * Source: rdma-core, `enum ibv_wc_opcode`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum CompletionOpcode {
    Send = 0,
    Write = 1,
    Receive = 128,
    /// A WRITE with immediate, which took a receive entry at this end.
    ReceiveWriteWithImmediate = 129,
}

/// A completion queue entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Cqe {
    pub wr_id: u64,
    pub status: Status,
    /// Like `length` and `immediate`, without meaning unless `status` is `Success`.
    pub opcode: CompletionOpcode,
    /// Octets received, or of the message sent.
    pub length: u32,
    pub immediate: Option<u32>,
    pub qpn: Qpn,
    /// The sender asked for it to wake a sleeper.
    pub solicited: bool,
}

impl Status {
    pub const ALL: [Self; 11] = [
        Self::Success,
        Self::LocalLengthError,
        Self::LocalQpOperationError,
        Self::LocalProtectionError,
        Self::WorkRequestFlushed,
        Self::RemoteInvalidRequest,
        Self::RemoteAccessError,
        Self::RemoteOperationError,
        Self::RetryExceeded,
        Self::RnrRetryExceeded,
        Self::GeneralError,
    ];
}

impl CompletionOpcode {
    pub const ALL: [Self; 4] = [Self::Send, Self::Write, Self::Receive, Self::ReceiveWriteWithImmediate];
}

impl Cqe {
    /// Octets of the slots of a completion queue.
    pub const SLOT: usize = super::LINE;

    /// Writes the entry into the front of a buffer and gives its octets.
    ///
    /// * Errors: `Short` if the buffer is.
    pub fn encode<'a>(&self, slot: &'a mut [u8]) -> Result<&'a [u8], EntryError> {
        let (header, _) = octets::split_mut::<HEADER>(slot)?;
        let flags = WITH_IMMEDIATE * u8::from(self.immediate.is_some()) + SOLICITED * u8::from(self.solicited);
        put(header, 0, [VERSION, self.opcode as u8, self.status as u8, flags]);
        put(header, 4, self.length.to_le_bytes());
        put(header, 8, self.wr_id.to_le_bytes());
        put(header, 16, self.immediate.unwrap_or(0).to_le_bytes());
        put(header, 20, self.qpn.get().to_le_bytes());
        Ok(header)
    }

    /// Reads an entry from a polled slot, believing nothing.
    ///
    /// * Errors: an [`EntryError`] that names the first wrong field.
    pub fn decode(slot: &[u8]) -> Result<Self, EntryError> {
        let (header, _) = octets::split::<HEADER>(slot)?;
        let &[version, opcode, status, flags, ..] = header;
        if version != VERSION {
            return Err(EntryError::Version(version));
        }
        if flags & !(WITH_IMMEDIATE | SOLICITED) != 0 {
            return Err(EntryError::Flags(flags));
        }
        let known = |all: &CompletionOpcode| *all as u8 == opcode;
        let opcode = CompletionOpcode::ALL.into_iter().find(known).ok_or(EntryError::Opcode(opcode))?;
        let status = Status::ALL.into_iter().find(|all| *all as u8 == status).ok_or(EntryError::Status(status))?;
        let immediate = match (flags & WITH_IMMEDIATE != 0, u32::from_le_bytes(get(header, 16))) {
            (true, immediate) => Some(immediate),
            (false, 0) => None,
            (false, _) => return Err(EntryError::NotZero(Field::Immediate)),
        };
        let qpn = u32::from_le_bytes(get(header, 20));
        Ok(Self {
            wr_id: u64::from_le_bytes(get(header, 8)),
            status,
            opcode,
            length: u32::from_le_bytes(get(header, 4)),
            immediate,
            qpn: Qpn::new(qpn).ok_or(EntryError::Qpn(qpn))?,
            solicited: flags & SOLICITED != 0,
        })
    }
}
