//! The few fields a switch or a link needs, without a pass over the payload.

use core::net::Ipv4Addr;

use super::bth::qpn;
use super::ip::Datagram;
use super::{Bth, Ecn, Opcode, WireError, size};
use crate::base::{Class, Octets, Psn, Qpn};

/// A look at a RoCEv2 frame. Neither checksum nor ICRC is verified, and the opcode may be one nobody knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Peek {
    pub class: Class,
    pub dscp: u8,
    pub ecn: Ecn,
    pub ip_src: Ipv4Addr,
    pub ip_dst: Ipv4Addr,
    /// With the addresses, and protocol and destination port that never vary, the five-tuple to hash.
    pub udp_src: u16,
    pub opcode: Opcode,
    pub dest_qpn: Qpn,
    pub psn: Psn,
    /// The model's size.
    pub wire_len: Octets,
}

impl Peek {
    /// * Errors: `Short`, `Truncated`, and the refusals of the layers below RoCEv2.
    /// * Cost: O(1), no allocation.
    pub fn of(frame: &[u8]) -> Result<Self, WireError> {
        let datagram = Datagram::find(frame)?;
        let transport = datagram.transport()?;
        let short = WireError::Short { need: Bth::LEN, have: transport.octets.len() };
        let (bth, behind) = transport.octets.split_first_chunk::<{ Bth::LEN }>().ok_or(short)?;
        let [code, flags, _, _, _, q0, q1, q2, _, p0, p1, p2] = *bth;
        let opcode = Opcode::from_u8(code);
        let pad = usize::from(flags >> 4 & 0b11);
        let payload = behind.len().saturating_sub(opcode.header_octets() + pad + 4);
        let dscp = datagram.ip.dcp().value();
        Ok(Self {
            class: Class::from_dscp(dscp),
            dscp,
            ecn: Ecn::from_bits(datagram.ip.ecn().value()),
            ip_src: datagram.ip.source_addr(),
            ip_dst: datagram.ip.destination_addr(),
            udp_src: transport.udp.source_port(),
            opcode,
            dest_qpn: qpn([q0, q1, q2]),
            psn: Psn::new(u32::from_be_bytes([0, p0, p1, p2])),
            wire_len: size::of(opcode, payload),
        })
    }
}
