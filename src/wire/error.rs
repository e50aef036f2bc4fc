//! Why a frame is refused.

use super::{MacAddr, Opcode};

/// The reason a frame is no packet of ours; exactly one per way of being wrong.
///
/// * Order: the outermost damage is named. Lengths and the IPv4 header come first, then the ICRC, then what the BTH says:
///   nothing behind a wrong ICRC is believed, so a damaged opcode counts as damage and not as an unknown opcode.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
pub enum WireError {
    /// A header does not fit into what is there.
    #[error("{have} octets where a header needs {need}")]
    Short { need: usize, have: usize },
    /// The frame ends before its IPv4 datagram does.
    #[error("frame carries {have} of the {need} octets of its IPv4 datagram")]
    Truncated { need: usize, have: usize },
    #[error("VLAN tag")]
    VlanTagged,
    /// Neither IPv4 nor MAC control.
    #[error("EtherType {0:#06x}")]
    UnknownEtherType(u16),
    #[error("IP version {0} behind the EtherType of IPv4")]
    BadIpVersion(u8),
    /// The header length field says less than the header has.
    #[error("IPv4 header of {0} words")]
    BadIpHeaderLength(u8),
    /// RoCEv2 has no IPv4 options: the ICRC's mask is defined without them.
    #[error("IPv4 options")]
    IpOptions,
    /// The flag that is reserved and zero.
    #[error("reserved IPv4 flag set")]
    ReservedIpFlag,
    #[error("IPv4 checksum {found:#06x} instead of {computed:#06x}")]
    IpChecksum { found: u16, computed: u16 },
    #[error("IPv4 fragment")]
    Fragment,
    #[error("IP protocol {0} instead of UDP")]
    NotUdp(u8),
    #[error("UDP port {0} instead of 4791")]
    WrongPort(u16),
    /// The UDP datagram does not fill the IPv4 datagram.
    #[error("UDP length {udp} in an IPv4 payload of {ip}")]
    LengthMismatch { ip: usize, udp: usize },
    /// As the octets stand on the wire, which is how packet analyzers print them.
    #[error("ICRC {found:#010x} instead of {computed:#010x}")]
    BadIcrc { found: u32, computed: u32 },
    #[error("transport header version {0} instead of 0")]
    BadTransportVersion(u8),
    /// No opcode of InfiniBand that we have heard of.
    #[error("unknown opcode {0:#04x}")]
    UnknownOpcode(u8),
    /// An opcode of InfiniBand that this emulator does not carry: READ, atomics, SEND with invalidate, UC, UD.
    #[error("opcode {0:#04x} is not emulated")]
    UnsupportedOpcode(u8),
    /// The packet ends inside the headers its opcode promises.
    #[error("{opcode} with {have} of {need} octets of extension headers")]
    MissingHeader { opcode: Opcode, need: usize, have: usize },
    /// Octets behind the headers of a packet that carries none.
    #[error("{opcode} with {octets} octets of payload")]
    UnexpectedPayload { opcode: Opcode, octets: usize },
    /// Payload and pad are no multiple of four, the pad is longer than both, or a pad octet is not zero.
    #[error("pad of {pad} in {octets} octets of payload and pad")]
    BadPad { pad: u8, octets: usize },
    /// IEEE 802.3x pause of the whole link, which lossless classes do not use.
    #[error("802.3x pause of all classes")]
    GlobalPause,
    #[error("MAC control opcode {0:#06x}")]
    UnknownMacControl(u16),
    /// A priority pause that is not for the link's other end.
    #[error("PFC frame to {0}")]
    PfcDestination(MacAddr),
}
