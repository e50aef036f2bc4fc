//! RETH: where a WRITE goes.

/// The RDMA extended transport header, once per WRITE, on its first packet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Reth {
    /// Virtual address in the responder's memory.
    pub va: u64,
    pub rkey: u32,
    /// * Units: octets of the whole message. A message of 0 octets carries (0, 0, 0).
    pub length: u32,
}

impl Reth {
    pub const LEN: usize = 16;

    pub fn parse(octets: &[u8; Self::LEN]) -> Self {
        let all = u128::from_be_bytes(*octets);
        Self { va: (all >> 64) as u64, rkey: (all >> 32) as u32, length: all as u32 }
    }

    pub fn emit(&self) -> [u8; Self::LEN] {
        (u128::from(self.va) << 64 | u128::from(self.rkey) << 32 | u128::from(self.length)).to_be_bytes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reth_is_address_key_and_length_in_network_order() {
        let octets = *b"\x00\x00\x7f\x00\x00\x00\x10\x00\x00\x12\x34\x56\x00\x00\x2f\xa0";
        let reth = Reth { va: 0x7f00_0000_1000, rkey: 0x0012_3456, length: 12_192 };
        assert_eq!(Reth::parse(&octets), reth);
        assert_eq!(reth.emit(), octets);
    }
}
