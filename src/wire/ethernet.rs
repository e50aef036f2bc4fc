//! Ethernet addresses and the EtherTypes this room tells apart.

use std::fmt;

/// MAC control: PFC and 802.3x pause.
pub(super) const MAC_CONTROL: u16 = 0x8808;

/// An Ethernet address.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MacAddr(pub [u8; 6]);

impl MacAddr {
    /// Where MAC control frames go: never forwarded, so always the other end of the link.
    pub const MAC_CONTROL: Self = Self([0x01, 0x80, 0xc2, 0x00, 0x00, 0x01]);
}

impl fmt::Display for MacAddr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [a, b, c, d, e, g] = self.0;
        f.pad(&format!("{a:02x}:{b:02x}:{c:02x}:{d:02x}:{e:02x}:{g:02x}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_prints_as_six_hexadecimal_pairs() {
        assert_eq!(MacAddr::MAC_CONTROL.to_string(), "01:80:c2:00:00:01");
    }
}
