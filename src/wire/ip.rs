//! The outer layers down to the BTH: Ethernet, IPv4, UDP.

use etherparse::err::ipv4::{HeaderError, HeaderSliceError};
use etherparse::{EtherType, Ethernet2Header, Ethernet2HeaderSlice, IpEcn, IpNumber, Ipv4Header, Ipv4HeaderSlice};
use etherparse::{UdpHeader, UdpHeaderSlice};

use super::{ROCE_PORT, WireError};

/// The two ECN bits of an IPv4 header.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Ecn {
    /// Never marked: control packets, and data when ECN is off.
    #[default]
    NotEct,
    Ect1,
    /// What data carries when ECN is on.
    Ect0,
    /// Congestion experienced.
    Ce,
}

impl Ecn {
    /// * Range: the low two bits count.
    pub const fn from_bits(bits: u8) -> Self {
        match bits & 0b11 {
            0 => Self::NotEct,
            1 => Self::Ect1,
            2 => Self::Ect0,
            _ => Self::Ce,
        }
    }

    pub const fn bits(self) -> u8 {
        self as u8
    }

    /// Whether a switch may mark it.
    pub const fn is_capable(self) -> bool {
        !matches!(self, Self::NotEct)
    }

    pub(super) const fn to_etherparse(self) -> IpEcn {
        match self {
            Self::NotEct => IpEcn::NotEct,
            Self::Ect1 => IpEcn::Ect1,
            Self::Ect0 => IpEcn::Ect0,
            Self::Ce => IpEcn::CongestionExperienced,
        }
    }
}

/// An IPv4 header without options, and where its datagram lies.
pub(super) struct Datagram<'a> {
    pub eth: Ethernet2HeaderSlice<'a>,
    pub ip: Ipv4HeaderSlice<'a>,
    frame: &'a [u8],
}

/// A datagram to the port of RoCEv2.
pub(super) struct Transport<'a> {
    pub udp: UdpHeaderSlice<'a>,
    /// BTH to ICRC.
    pub octets: &'a [u8],
    /// Where it ends in the frame; behind it is Ethernet's trailer.
    pub end: usize,
}

impl<'a> Datagram<'a> {
    const AT: usize = Ethernet2Header::LEN;

    pub fn find(frame: &'a [u8]) -> Result<Self, WireError> {
        let short = || WireError::Short { need: Self::AT, have: frame.len() };
        let eth = Ethernet2HeaderSlice::from_slice(frame).map_err(|_| short())?;
        match eth.ether_type() {
            EtherType::IPV4 => {}
            EtherType::VLAN_TAGGED_FRAME | EtherType::PROVIDER_BRIDGING | EtherType::VLAN_DOUBLE_TAGGED_FRAME => {
                return Err(WireError::VlanTagged);
            }
            other => return Err(WireError::UnknownEtherType(other.0)),
        }
        let ip = Ipv4HeaderSlice::from_slice(&frame[Self::AT..]).map_err(|error| match error {
            HeaderSliceError::Len(len) => WireError::Short { need: len.required_len, have: len.len },
            HeaderSliceError::Content(HeaderError::UnexpectedVersion { version_number }) => {
                WireError::BadIpVersion(version_number)
            }
            HeaderSliceError::Content(HeaderError::HeaderLengthSmallerThanHeader { ihl }) => {
                WireError::BadIpHeaderLength(ihl)
            }
        })?;
        if ip.slice().len() > Ipv4Header::MIN_LEN {
            return Err(WireError::IpOptions);
        }
        // etherparse has no name for this bit, so it would be lost, and with it the checksum.
        if ip.slice()[6] & 0x80 != 0 {
            return Err(WireError::ReservedIpFlag);
        }
        Ok(Self { eth, ip, frame })
    }

    pub fn verify_checksum(&self) -> Result<(), WireError> {
        let (found, computed) = (self.ip.header_checksum(), self.ip.to_header().calc_header_checksum());
        if found == computed { Ok(()) } else { Err(WireError::IpChecksum { found, computed }) }
    }

    pub fn transport(&self) -> Result<Transport<'a>, WireError> {
        if self.ip.is_fragmenting_payload() {
            return Err(WireError::Fragment);
        }
        if self.ip.protocol() != IpNumber::UDP {
            return Err(WireError::NotUdp(self.ip.protocol().0));
        }
        let (need, have) = (usize::from(self.ip.total_len()), self.frame.len() - Self::AT);
        if need > have {
            return Err(WireError::Truncated { need, have });
        }
        const HEADERS: usize = Ipv4Header::MIN_LEN + UdpHeader::LEN;
        if need < HEADERS {
            return Err(WireError::Short { need: HEADERS, have: need });
        }
        let end = Self::AT + need;
        let datagram = &self.frame[Self::AT + Ipv4Header::MIN_LEN..end];
        let short = || WireError::Short { need: UdpHeader::LEN, have: datagram.len() };
        let udp = UdpHeaderSlice::from_slice(datagram).map_err(|_| short())?;
        if udp.destination_port() != ROCE_PORT {
            return Err(WireError::WrongPort(udp.destination_port()));
        }
        let length = usize::from(udp.length());
        if length != datagram.len() {
            return Err(WireError::LengthMismatch { ip: datagram.len(), udp: length });
        }
        Ok(Transport { udp, octets: &datagram[UdpHeader::LEN..], end })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ecn_codepoints_are_those_of_rfc_3168() {
        assert_eq!([0, 1, 2, 3].map(Ecn::from_bits), [Ecn::NotEct, Ecn::Ect1, Ecn::Ect0, Ecn::Ce]);
        for bits in 0..4 {
            assert_eq!(Ecn::from_bits(bits).bits(), bits);
            assert_eq!(Ecn::from_bits(bits).to_etherparse().value(), bits);
        }
    }
}
