//! What a NIC sends, with the fields that never vary filled in.

use bytes::Bytes;

use super::{Aeth, Bth, Ecn, Endpoints, NakCode, Opcode, Reth, RocePacket, Syndrome, Verb};
use crate::base::{Class, Psn, Qpn};

/// One data packet of a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Segment {
    pub verb: Verb,
    pub first: bool,
    pub last: bool,
    pub dest_qpn: Qpn,
    pub psn: Psn,
    /// Where the message goes; sent on the first packet of a WRITE alone.
    pub reth: Reth,
    /// Sent on the last packet alone.
    pub immediate: Option<u32>,
    pub payload: Bytes,
}

impl RocePacket {
    /// As hosts send it: Linux' default, also in captures of hardware.
    pub const TTL: u8 = 64;

    /// A packet without extension headers and payload.
    pub fn new(flow: &Endpoints, class: Class, ecn: Ecn, bth: Bth) -> Self {
        Self {
            eth_dst: flow.eth_dst,
            eth_src: flow.eth_src,
            ip_src: flow.ip_src,
            ip_dst: flow.ip_dst,
            dscp: class.dscp(),
            ecn,
            identification: 0,
            ttl: Self::TTL,
            dont_fragment: true,
            udp_src: flow.udp_src,
            udp_checksum: 0,
            bth,
            reth: None,
            immediate: None,
            aeth: None,
            cnp_reserved: None,
            payload: Bytes::new(),
            trailer: Bytes::new(),
        }
    }

    /// A packet of a SEND or a WRITE. The last of a message is solicited and asks for an ACK: the first bit is how the
    /// model says it, the second how InfiniBand does (model.md W7).
    ///
    /// * Range: payload <= 9,216 octets.
    pub fn data(flow: &Endpoints, class: Class, ecn: Ecn, segment: Segment) -> Self {
        let Segment { verb, first, last, dest_qpn, psn, reth, immediate, payload } = segment;
        let immediate = immediate.filter(|_| last);
        let opcode = Opcode::for_segment(verb, first, last);
        let opcode = if immediate.is_some() { opcode.with_immediate() } else { opcode };
        let bth = Bth { solicited: last, ack_req: last, ..Bth::new(opcode, dest_qpn, psn) };
        let reth = opcode.has_reth().then_some(reth);
        Self { reth, immediate, payload, ..Self::new(flow, class, ecn, bth) }
    }

    /// * Order: `psn` is the highest received in order; `msn` already counts the message this packet completed.
    pub fn ack(flow: &Endpoints, class: Class, dest_qpn: Qpn, psn: Psn, msn: u32) -> Self {
        Self::answer(
            flow,
            class,
            dest_qpn,
            psn,
            Aeth { syndrome: Syndrome::Ack { credits: Syndrome::NO_CREDITS }, msn },
        )
    }

    /// * Order: `psn` is the expected one.
    pub fn nak(flow: &Endpoints, class: Class, dest_qpn: Qpn, psn: Psn, code: NakCode, msn: u32) -> Self {
        Self::answer(flow, class, dest_qpn, psn, Aeth { syndrome: Syndrome::Nak(code), msn })
    }

    /// An acknowledgement of any kind. Never ECN-capable, so no switch marks it.
    pub fn answer(flow: &Endpoints, class: Class, dest_qpn: Qpn, psn: Psn, aeth: Aeth) -> Self {
        let bth = Bth::new(Opcode::ACKNOWLEDGE, dest_qpn, psn);
        Self { aeth: Some(aeth), ..Self::new(flow, class, Ecn::NotEct, bth) }
    }

    /// Tells the sender of a marked packet that its queue pair `dest_qpn` is to slow down.
    pub fn cnp(flow: &Endpoints, class: Class, dest_qpn: Qpn) -> Self {
        let bth = Bth { becn: true, ..Bth::new(Opcode::CNP, dest_qpn, Psn::new(0)) };
        Self { cnp_reserved: Some([0; 16]), ..Self::new(flow, class, Ecn::NotEct, bth) }
    }
}
