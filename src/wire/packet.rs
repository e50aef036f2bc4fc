//! Whole packets: parse once at an ingress port, emit once at an egress port.

use core::net::Ipv4Addr;

use bytes::Bytes;
use etherparse::{EtherType, Ethernet2Header, IpDscp, IpFragOffset, IpNumber, Ipv4Header, Ipv4Options, UdpHeader};

use super::ethernet::MAC_CONTROL;
use super::icrc::{self, ICRC_LEN, MASKED_LEN};
use super::ip::Datagram;
use super::size;
use super::{Aeth, Bth, Ecn, MacAddr, NakCode, Opcode, PfcFrame, ROCE_PORT, Reth, Syndrome, Verb, WireError};
use crate::base::Class;

/// Everything this room can read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Packet {
    Roce(RocePacket),
    Pfc(PfcFrame),
}

/// A RoCEv2 packet over IPv4, field by field.
///
/// [`RocePacket::emit`] writes what stands here; a parsed packet has exactly the extension headers of its opcode.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RocePacket {
    pub eth_dst: MacAddr,
    pub eth_src: MacAddr,
    pub ip_src: Ipv4Addr,
    pub ip_dst: Ipv4Addr,
    /// * Range: 6 bits; the upper three are the class.
    pub dscp: u8,
    pub ecn: Ecn,
    /// Any value, but the ICRC covers it.
    pub identification: u16,
    pub ttl: u8,
    pub dont_fragment: bool,
    pub udp_src: u16,
    /// 0 for none, as we send it. Kept as received and not verified: the ICRC guards more, and on a veth the kernel
    /// leaves this sum to hardware that is not there.
    pub udp_checksum: u16,
    pub bth: Bth,
    pub reth: Option<Reth>,
    pub immediate: Option<u32>,
    pub aeth: Option<Aeth>,
    /// The reserved octets of a CNP: zeros when we send.
    pub cnp_reserved: Option<[u8; 16]>,
    /// Without pad.
    pub payload: Bytes,
    /// Ethernet octets behind the IPv4 datagram: padding to a minimum, or a captured FCS.
    pub trailer: Bytes,
}

/// What a packet is to a NIC.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PacketKind {
    Data(Verb),
    Ack,
    /// With the code of the time to wait.
    RnrNak(u8),
    Nak(NakCode),
    Cnp,
    /// An acknowledgement of a reserved kind, to be ignored.
    Reserved,
}

/// Whether a wrong ICRC refuses a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum IcrcCheck {
    Verify,
    /// For tools that show damaged packets. What parses this way is emitted with a right ICRC.
    Ignore,
}

impl Packet {
    /// Reads a whole frame, from destination address to ICRC and trailer.
    ///
    /// * Errors: see [`WireError`] for the reasons and their order.
    /// * Panics: never.
    /// * Cost: one pass for the ICRC; payload and trailer are slices of `frame`, not copies.
    pub fn parse(frame: &Bytes) -> Result<Self, WireError> {
        Self::parse_with(frame, IcrcCheck::Verify)
    }

    /// [`Packet::parse`] with a choice.
    pub fn parse_with(frame: &Bytes, check: IcrcCheck) -> Result<Self, WireError> {
        match frame.get(12..14) {
            Some(ether_type) if ether_type == MAC_CONTROL.to_be_bytes() => PfcFrame::parse(frame).map(Self::Pfc),
            _ => RocePacket::parse_with(frame, check).map(Self::Roce),
        }
    }

    pub fn emit(&self) -> Bytes {
        match self {
            Self::Roce(packet) => packet.emit(),
            Self::Pfc(frame) => frame.emit(),
        }
    }

    /// The packet as a frame of at least the model's size, see [`RocePacket::padded_to_model`].
    pub fn padded_to_model(self) -> Self {
        match self {
            Self::Roce(packet) => Self::Roce(packet.padded_to_model()),
            Self::Pfc(frame) => Self::Pfc(frame.padded_to_model()),
        }
    }
}

impl From<RocePacket> for Packet {
    fn from(packet: RocePacket) -> Self {
        Self::Roce(packet)
    }
}

impl From<PfcFrame> for Packet {
    fn from(frame: PfcFrame) -> Self {
        Self::Pfc(frame)
    }
}

impl RocePacket {
    /// Octets before the extension headers.
    const FIXED: usize = Ethernet2Header::LEN + MASKED_LEN;

    fn parse_with(frame: &Bytes, check: IcrcCheck) -> Result<Self, WireError> {
        let datagram = Datagram::find(frame)?;
        datagram.verify_checksum()?;
        let transport = datagram.transport()?;
        let (eth, ip) = (datagram.eth, datagram.ip);
        match icrc::verify(&frame[Ethernet2Header::LEN..transport.end]) {
            Err(WireError::BadIcrc { .. }) if check == IcrcCheck::Ignore => {}
            verdict => verdict?,
        }

        let short = WireError::Short { need: Bth::LEN + ICRC_LEN, have: transport.octets.len() };
        let (bth, behind) = transport.octets.split_first_chunk().ok_or(short)?;
        let (body, _icrc) = behind.split_last_chunk::<ICRC_LEN>().ok_or(short)?;
        let (bth, pad) = Bth::parse(bth)?;
        let opcode = bth.opcode;
        opcode.require_known()?;

        let missing = WireError::MissingHeader { opcode, need: opcode.header_octets(), have: body.len() };
        let mut rest = body;
        let reth = take_if(opcode.has_reth(), &mut rest).ok_or(missing)?.map(Reth::parse);
        let immediate = take_if(opcode.has_immediate(), &mut rest).ok_or(missing)?.map(|i| u32::from_be_bytes(*i));
        let aeth = take_if(opcode.has_aeth(), &mut rest).ok_or(missing)?.map(Aeth::parse);
        let cnp_reserved = take_if(opcode == Opcode::CNP, &mut rest).ok_or(missing)?.copied();

        if !opcode.has_payload() && !rest.is_empty() {
            return Err(WireError::UnexpectedPayload { opcode, octets: rest.len() });
        }
        let bad_pad = WireError::BadPad { pad, octets: rest.len() };
        let payload = rest.len().checked_sub(usize::from(pad)).ok_or(bad_pad)?;
        if pad_of(payload) != pad || rest[payload..].iter().any(|&octet| octet != 0) {
            return Err(bad_pad);
        }
        let at = transport.end - ICRC_LEN - rest.len();
        Ok(Self {
            eth_dst: MacAddr(eth.destination()),
            eth_src: MacAddr(eth.source()),
            ip_src: ip.source_addr(),
            ip_dst: ip.destination_addr(),
            dscp: ip.dcp().value(),
            ecn: Ecn::from_bits(ip.ecn().value()),
            identification: ip.identification(),
            ttl: ip.ttl(),
            dont_fragment: ip.dont_fragment(),
            udp_src: transport.udp.source_port(),
            udp_checksum: transport.udp.checksum(),
            bth,
            reth,
            immediate,
            aeth,
            cnp_reserved,
            payload: frame.slice(at..at + payload),
            trailer: frame.slice(transport.end..),
        })
    }

    /// The frame, with a right IPv4 checksum and a right ICRC.
    ///
    /// * Panics: if the packet does not fit an IPv4 datagram of 65,535 octets (caller's bug: an MSS is at most 9,216).
    /// * Cost: one allocation, one copy of the payload, one pass for the ICRC.
    pub fn emit(&self) -> Bytes {
        let pad = pad_of(self.payload.len());
        let datagram_end = self.datagram_end(pad);
        let mut frame = Vec::with_capacity(datagram_end + self.trailer.len());
        self.emit_outer(datagram_end, &mut frame);
        frame.extend_from_slice(&self.bth.emit(pad));
        if let Some(reth) = &self.reth {
            frame.extend_from_slice(&reth.emit());
        }
        if let Some(immediate) = self.immediate {
            frame.extend_from_slice(&immediate.to_be_bytes());
        }
        if let Some(aeth) = &self.aeth {
            frame.extend_from_slice(&aeth.emit());
        }
        if let Some(reserved) = &self.cnp_reserved {
            frame.extend_from_slice(reserved);
        }
        frame.extend_from_slice(&self.payload);
        frame.extend_from_slice(&[0; 3][..usize::from(pad)]);
        let (headers, rest) = frame[Ethernet2Header::LEN..].split_first_chunk().expect("all headers are written");
        let icrc = icrc::icrc(headers, rest);
        frame.extend_from_slice(&icrc);
        frame.extend_from_slice(&self.trailer);
        frame.into()
    }

    fn emit_outer(&self, datagram_end: usize, frame: &mut Vec<u8>) {
        let eth = Ethernet2Header { source: self.eth_src.0, destination: self.eth_dst.0, ether_type: EtherType::IPV4 };
        let length = datagram_end - Ethernet2Header::LEN;
        let length = u16::try_from(length).expect("a packet fits an IPv4 datagram, as its MSS is at most 9,216 octets");
        let mut ip = Ipv4Header {
            dscp: IpDscp::try_new(self.dscp & 0x3f).unwrap_or_default(),
            ecn: self.ecn.to_etherparse(),
            total_len: length,
            identification: self.identification,
            dont_fragment: self.dont_fragment,
            more_fragments: false,
            fragment_offset: IpFragOffset::ZERO,
            time_to_live: self.ttl,
            protocol: IpNumber::UDP,
            header_checksum: 0,
            source: self.ip_src.octets(),
            destination: self.ip_dst.octets(),
            options: Ipv4Options::new(),
        };
        ip.header_checksum = ip.calc_header_checksum();
        let udp = UdpHeader {
            source_port: self.udp_src,
            destination_port: ROCE_PORT,
            length: length - Ipv4Header::MIN_LEN as u16,
            checksum: self.udp_checksum,
        };
        frame.extend_from_slice(&eth.to_bytes());
        frame.extend_from_slice(&ip.to_bytes());
        frame.extend_from_slice(&udp.to_bytes());
    }

    fn datagram_end(&self, pad: u8) -> usize {
        let extensions = self.reth.map_or(0, |_| Reth::LEN)
            + self.immediate.map_or(0, |_| Opcode::IMMDT_LEN)
            + self.aeth.map_or(0, |_| Aeth::LEN)
            + self.cnp_reserved.map_or(0, |_| Opcode::CNP_RESERVED_LEN);
        Self::FIXED + extensions + self.payload.len() + usize::from(pad) + ICRC_LEN
    }

    /// The packet with as many zeros behind it as bring its frame, FCS included, to the model's size (model.md W3).
    ///
    /// Only control packets are smaller than the model says; a data packet stays as it is.
    pub fn padded_to_model(self) -> Self {
        let trailer = size::filler(self.datagram_end(pad_of(self.payload.len())), self.wire_len());
        Self { trailer, ..self }
    }

    pub fn kind(&self) -> PacketKind {
        match (self.bth.opcode.verb(), self.aeth.map(|aeth| aeth.syndrome)) {
            (Some(verb), _) => PacketKind::Data(verb),
            (None, Some(Syndrome::Ack { .. })) => PacketKind::Ack,
            (None, Some(Syndrome::RnrNak { timer })) => PacketKind::RnrNak(timer),
            (None, Some(Syndrome::Nak(code))) => PacketKind::Nak(code),
            (None, None) if self.bth.opcode == Opcode::CNP => PacketKind::Cnp,
            (None, _) => PacketKind::Reserved,
        }
    }

    pub const fn class(&self) -> Class {
        Class::from_dscp(self.dscp)
    }

    /// Whether the requester wants to hear at once: either of the two bits will do (model.md W7).
    pub const fn wants_ack(&self) -> bool {
        self.bth.solicited || self.bth.ack_req
    }
}

/// Zeros that bring a payload to a multiple of four.
const fn pad_of(payload: usize) -> u8 {
    (payload.wrapping_neg() & 0b11) as u8
}

/// The next `N` octets if the header is `present`; the outer `None` if they are not there.
fn take_if<'a, const N: usize>(present: bool, rest: &mut &'a [u8]) -> Option<Option<&'a [u8; N]>> {
    if !present {
        return Some(None);
    }
    let (header, behind) = rest.split_first_chunk()?;
    *rest = behind;
    Some(Some(header))
}
