//! What a switch writes into a frame that passes: ECN and DSCP. The ICRC masks them, the IPv4 checksum is mended.

use bytes::Bytes;
use etherparse::{EtherType, Ethernet2Header, Ipv4Header};

use super::Ecn;

/// The frame with congestion experienced.
///
/// Whether a packet may be marked at all is for the switch to say: it asks [`Ecn::is_capable`].
///
/// * Errors: none; a frame that is not IPv4 comes back as it is.
/// * Cost: one copy of the frame; none if it is marked already.
pub fn set_ce(frame: &Bytes) -> Bytes {
    set_ecn(frame, Ecn::Ce)
}

/// [`set_ce`] for any ECN field.
pub fn set_ecn(frame: &Bytes, ecn: Ecn) -> Bytes {
    set_tos(frame, |tos| tos & !0b11 | ecn.bits())
}

/// [`set_ce`] for the other six bits: moves a packet to another class.
///
/// * Range: the low six bits of `dscp` count.
pub fn set_dscp(frame: &Bytes, dscp: u8) -> Bytes {
    set_tos(frame, |tos| dscp << 2 | tos & 0b11)
}

fn set_tos(frame: &Bytes, change: impl FnOnce(u8) -> u8) -> Bytes {
    const IP: usize = Ethernet2Header::LEN;
    const VERSION: usize = IP;
    const TOS: usize = IP + 1;
    const SUM: usize = IP + 10;

    let is_ipv4 = frame.len() >= IP + Ipv4Header::MIN_LEN
        && frame[12..14] == EtherType::IPV4.0.to_be_bytes()
        && frame[VERSION] >> 4 == 4;
    if !is_ipv4 {
        return frame.clone();
    }
    let (old, new) = (frame[TOS], change(frame[TOS]));
    if old == new {
        return frame.clone();
    }
    let mut marked = frame.to_vec();
    marked[TOS] = new;
    // Mended rather than computed anew: a header that was damaged stays damaged. RFC 1624: HC' = ~(~HC + ~m + m').
    let sum = u16::from_be_bytes([marked[SUM], marked[SUM + 1]]);
    let word = |tos| u16::from_be_bytes([marked[VERSION], tos]);
    let total = u32::from(!sum) + u32::from(!word(old)) + u32::from(word(new));
    let total = (total & 0xffff) + (total >> 16);
    let total = (total & 0xffff) + (total >> 16);
    marked[SUM..SUM + 2].copy_from_slice(&(!(total as u16)).to_be_bytes());
    marked.into()
}
