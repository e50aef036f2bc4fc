//! BTH: the header every packet of RoCEv2 has.

use super::{Opcode, WireError};
use crate::base::{Psn, Qpn};

/// The base transport header. The pad count is not here: it follows from the payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Bth {
    pub opcode: Opcode,
    /// Solicited event. Between emulated NICs: acknowledge at once (model.md W7).
    pub solicited: bool,
    /// Path migration; meaningless here. Sent as 0, taken either way.
    pub mig_req: bool,
    pub p_key: u16,
    /// Congestion seen on the way here; not covered by the ICRC.
    pub fecn: bool,
    /// Congestion seen on the way there: set in a CNP; not covered by the ICRC.
    pub becn: bool,
    pub dest_qpn: Qpn,
    /// The requester asks for an acknowledgement.
    pub ack_req: bool,
    pub psn: Psn,
    /// Six reserved bits beside FECN and BECN, seven beside AckReq. Sent as 0, kept as received.
    pub reserved: [u8; 2],
}

impl Bth {
    pub const LEN: usize = 12;
    /// The default partition, full member.
    pub const DEFAULT_P_KEY: u16 = 0xffff;

    /// All flags clear.
    pub const fn new(opcode: Opcode, dest_qpn: Qpn, psn: Psn) -> Self {
        Self {
            opcode,
            solicited: false,
            mig_req: false,
            p_key: Self::DEFAULT_P_KEY,
            fecn: false,
            becn: false,
            dest_qpn,
            ack_req: false,
            psn,
            reserved: [0; 2],
        }
    }

    /// The header and its pad count.
    ///
    /// * Errors: `BadTransportVersion`. An opcode is not judged here.
    pub fn parse(octets: &[u8; Self::LEN]) -> Result<(Self, u8), WireError> {
        let [opcode, flags, p_key @ .., congestion, q0, q1, q2, ack, p0, p1, p2] = *octets;
        if flags & 0x0f != 0 {
            return Err(WireError::BadTransportVersion(flags & 0x0f));
        }
        let bth = Self {
            opcode: Opcode::from_u8(opcode),
            solicited: flags & 0x80 != 0,
            mig_req: flags & 0x40 != 0,
            p_key: u16::from_be_bytes(p_key),
            fecn: congestion & 0x80 != 0,
            becn: congestion & 0x40 != 0,
            dest_qpn: qpn([q0, q1, q2]),
            ack_req: ack & 0x80 != 0,
            psn: Psn::new(u32::from_be_bytes([0, p0, p1, p2])),
            reserved: [congestion & 0x3f, ack & 0x7f],
        };
        Ok((bth, flags >> 4 & 0b11))
    }

    /// * Range: `pad` in 0..4.
    pub fn emit(&self, pad: u8) -> [u8; Self::LEN] {
        let flags = u8::from(self.solicited) << 7 | u8::from(self.mig_req) << 6 | (pad & 0b11) << 4;
        let congestion = u8::from(self.fecn) << 7 | u8::from(self.becn) << 6 | self.reserved[0] & 0x3f;
        let ack = u8::from(self.ack_req) << 7 | self.reserved[1] & 0x7f;
        let [k0, k1] = self.p_key.to_be_bytes();
        let [_, q0, q1, q2] = self.dest_qpn.get().to_be_bytes();
        let [_, p0, p1, p2] = self.psn.get().to_be_bytes();
        [self.opcode.get(), flags, k0, k1, congestion, q0, q1, q2, ack, p0, p1, p2]
    }
}

pub(super) fn qpn([a, b, c]: [u8; 3]) -> Qpn {
    Qpn::new(u32::from_be_bytes([0, a, b, c])).expect("three octets are 24 bits")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_field_of_a_bth_has_its_place() {
        let octets = [0x0a, 0xf0, 0x12, 0x34, 0xd5, 0x00, 0x00, 0x11, 0x83, 0xab, 0xcd, 0xef];
        let (bth, pad) = Bth::parse(&octets).unwrap();
        let expected = Bth {
            opcode: Opcode::WRITE_ONLY,
            solicited: true,
            mig_req: true,
            p_key: 0x1234,
            fecn: true,
            becn: true,
            dest_qpn: Qpn::new(0x11).unwrap(),
            ack_req: true,
            psn: Psn::new(0xab_cdef),
            reserved: [0x15, 0x03],
        };
        assert_eq!((bth, pad), (expected, 3));
        assert_eq!(bth.emit(pad), octets);
    }

    #[test]
    fn another_transport_version_is_refused() {
        let mut octets = Bth::new(Opcode::SEND_ONLY, Qpn::new(2).unwrap(), Psn::new(0)).emit(0);
        octets[1] |= 0x01;
        assert_eq!(Bth::parse(&octets), Err(WireError::BadTransportVersion(1)));
    }
}
