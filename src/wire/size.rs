//! The model's size of a packet: what timers, pools, rates and counters are charged.
//!
//! The model knows no ICRC and no RETH and fills its control packets up; the real frame differs, and only a socket cares.
//! Sizes include the Ethernet header and the FCS.

use bytes::Bytes;
use etherparse::Ethernet2HeaderSlice;

use super::ethernet::MAC_CONTROL;
use super::{Opcode, Packet, Peek, PfcFrame, RocePacket};
use crate::base::Octets;

/// A data packet's size beyond its payload.
pub const DATA_OVERHEAD: Octets = Octets::new(58);
/// An ACK or a NAK of any kind.
pub const ACK_WIRE_LEN: Octets = Octets::new(126);
pub const CNP_WIRE_LEN: Octets = Octets::new(122);
pub const PFC_WIRE_LEN: Octets = Octets::new(84);
/// Ethernet header and FCS: part of the size, not charged to an ingress pool.
pub const FRAMING: Octets = Octets::new(18);

const FCS: u64 = 4;
/// What the smallest Ethernet frame carries.
const MIN_CHARGE: u64 = 46;

/// What a frame of `wire_len` takes of a switch's buffer.
///
/// * Source: timing rule 12.
pub const fn buffer_charge(wire_len: Octets) -> Octets {
    let octets = wire_len.saturating_sub(FRAMING).get();
    Octets::new(if octets < MIN_CHARGE { MIN_CHARGE } else { octets })
}

/// By opcode, with the payload a data packet would have.
pub(super) fn of(opcode: Opcode, payload: usize) -> Octets {
    match opcode {
        Opcode::ACKNOWLEDGE => ACK_WIRE_LEN,
        Opcode::CNP => CNP_WIRE_LEN,
        _ => DATA_OVERHEAD + Octets::new(payload as u64),
    }
}

/// The model's size of any frame, also of one that does not parse: it still took its time on the line.
///
/// A packet of ours is sized by its headers, whatever its ICRC; everything else by its octets and an FCS.
pub fn model_len(frame: &[u8]) -> Octets {
    if Ethernet2HeaderSlice::from_slice(frame).is_ok_and(|eth| eth.ether_type().0 == MAC_CONTROL) {
        return PFC_WIRE_LEN;
    }
    match Peek::of(frame) {
        Ok(peek) if peek.opcode.is_known() => peek.wire_len,
        _ => Octets::new(frame.len() as u64 + FCS),
    }
}

impl RocePacket {
    /// The model's size.
    pub fn wire_len(&self) -> Octets {
        of(self.bth.opcode, self.payload.len())
    }
}

impl PfcFrame {
    /// The model's size.
    pub const fn wire_len(&self) -> Octets {
        PFC_WIRE_LEN
    }
}

impl Packet {
    /// The model's size.
    ///
    /// * Source: wire.md §1.1, model.md W5.
    pub fn wire_len(&self) -> Octets {
        match self {
            Self::Roce(packet) => packet.wire_len(),
            Self::Pfc(frame) => frame.wire_len(),
        }
    }
}

/// The zeros that bring a frame of `octets` to the model's size on a real line, where Ethernet adds the FCS.
pub(super) fn filler(octets: usize, model: Octets) -> Bytes {
    // An ACK lacks most: 62 octets of 122.
    static ZEROS: [u8; 60] = [0; 60];
    let lacking = (model.get() - FCS).saturating_sub(octets as u64);
    Bytes::from_static(&ZEROS[..ZEROS.len().min(lacking as usize)])
}
