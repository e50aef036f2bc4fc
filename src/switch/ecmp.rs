//! Which of several equal ways a flow takes.

use core::net::Ipv4Addr;

use crate::base::Rng;
use crate::wire::{Peek, ROCE_PORT};

/// The five-tuple of a RoCEv2 frame. Its protocol is UDP and its destination port 4791.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Flow {
    pub ip_src: Ipv4Addr,
    pub ip_dst: Ipv4Addr,
    pub udp_src: u16,
}

const UDP: u8 = 17;

impl Flow {
    pub const fn of(peek: &Peek) -> Self {
        Self { ip_src: peek.ip_src, ip_dst: peek.ip_dst, udp_src: peek.udp_src }
    }

    /// The salted hash of the five-tuple: FNV-1a over salt, addresses, protocol and ports, most significant octet
    /// first, then one step of SplitMix64, since FNV alone hardly moves the upper bits for the last octets.
    ///
    /// Our own lines rather than a crate's: a flow must take the same way for ever.
    pub fn hash(&self, salt: u64) -> u64 {
        let salt = salt.to_be_bytes();
        let (src, dst) = (self.ip_src.octets(), self.ip_dst.octets());
        let (sport, dport) = (self.udp_src.to_be_bytes(), ROCE_PORT.to_be_bytes());
        let octets = salt.iter().chain(&src).chain(&dst).chain(&[UDP]).chain(&sport).chain(&dport);
        Rng::new(fnv_1a(octets)).next_u64()
    }

    /// The way to take of `ways`, counted from 0.
    ///
    /// * Range: `ways` from 1.
    pub fn choose(&self, salt: u64, ways: usize) -> usize {
        // The hash as a fraction of 2⁶⁴, times the ways.
        ((u128::from(self.hash(salt)) * ways as u128) >> 64) as usize
    }
}

/// * Source: Fowler, Noll, Vo; 64 bits.
fn fnv_1a<'a>(octets: impl IntoIterator<Item = &'a u8>) -> u64 {
    octets.into_iter().fold(0xcbf2_9ce4_8422_2325, |h, &octet| (h ^ u64::from(octet)).wrapping_mul(0x0100_0000_01b3))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flow(src: u8, dst: u8, udp_src: u16) -> Flow {
        Flow { ip_src: Ipv4Addr::new(10, 0, 0, src), ip_dst: Ipv4Addr::new(10, 0, 0, dst), udp_src }
    }

    #[test]
    fn fnv_gives_its_published_numbers() {
        for (text, hash) in
            [("", 0xcbf2_9ce4_8422_2325), ("a", 0xaf63_dc4c_8601_ec8c), ("foobar", 0x8594_4171_f739_67e8)]
        {
            assert_eq!(fnv_1a(text.as_bytes()), hash, "{text}");
        }
    }

    /// Computed outside this code: a scenario that ran once takes the same ways in every later version.
    #[test]
    fn flows_keep_their_hash_for_ever() {
        for (flow, salt, hash) in [
            (flow(1, 2, 0xc000), 0, 0xee53_47c0_6a7d_cd36),
            (flow(1, 2, 0xc000), 1, 0x1655_c66c_2b0c_5aa2),
            (flow(2, 1, 0xc000), 1, 0x1eae_2aa1_71d4_7c8d),
            (flow(1, 2, 0xffff), 0xdead_beef, 0xcf9e_2fa4_b277_3ee5),
        ] {
            assert_eq!(flow.hash(salt), hash, "{flow:?} under {salt}");
        }
    }

    #[test]
    fn flows_spread_over_all_ways() {
        for ways in [1, 2, 3, 4, 7, 16] {
            let mut taken = vec![0; ways];
            for udp_src in 0xc000..0xc000 + 4_096 {
                taken[flow(1, 2, udp_src).choose(1, ways)] += 1;
            }
            let even = 4_096 / ways;
            assert!(taken.iter().all(|&n| n > even * 3 / 4 && n < even * 5 / 4 + 1), "{ways}: {taken:?}");
        }
    }

    #[test]
    fn switches_of_other_salts_choose_apart() {
        let second = |salt| (0..1_000).filter(|n| flow(1, 2, 0xc000 + n).choose(salt, 2) == 1).count();
        let both = (0..1_000).filter(|n| [1, 2].map(|salt| flow(1, 2, 0xc000 + n).choose(salt, 2)) == [1, 1]).count();
        // A half each, a quarter of them by both.
        assert!((450..550).contains(&second(1)) && (450..550).contains(&second(2)), "{} {}", second(1), second(2));
        assert!((200..300).contains(&both), "{both}");
    }
}
