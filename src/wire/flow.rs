//! Who talks to whom: the addresses under a queue pair, and the source port that names it to the network.

use core::net::Ipv4Addr;

use super::MacAddr;
use crate::base::Qpn;

/// The UDP destination port of RoCEv2.
pub const ROCE_PORT: u16 = 4791;

/// The addresses of one direction of a conversation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Endpoints {
    pub eth_dst: MacAddr,
    pub eth_src: MacAddr,
    pub ip_src: Ipv4Addr,
    pub ip_dst: Ipv4Addr,
    /// * Range: 0xC000..=0xFFFF when we send; a receiver accepts any.
    pub udp_src: u16,
}

impl Endpoints {
    /// The way back. The source port is that of the queue pair, the same in both directions.
    pub const fn reversed(self) -> Self {
        Self {
            eth_dst: self.eth_src,
            eth_src: self.eth_dst,
            ip_src: self.ip_dst,
            ip_dst: self.ip_src,
            udp_src: self.udp_src,
        }
    }
}

/// The UDP source port of a connection, the same seen from either end.
///
/// Switches that hash the five-tuple keep a connection on one path by it, and spread connections.
///
/// * Range: 0xC000..=0xFFFF.
/// * Source: soft-RoCE, flow label 0 (`rdma_calc_flow_label`, `rdma_flow_label_to_udp_sport`), measured.
pub const fn udp_source_port(local: Qpn, remote: Qpn) -> u16 {
    let mut v = local.get() as u64 * remote.get() as u64;
    v ^= v >> 20;
    v ^= v >> 40;
    let label = (v & 0xf_ffff) as u32;
    0xc000 | ((label & 0x3fff) ^ (label >> 14)) as u16
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Queue pair numbers and ports as two hosts with soft-RoCE chose them.
    #[test]
    fn source_ports_are_those_of_soft_roce() {
        for (both, port) in [(17, 0xc121), (19, 0xc169), (22, 0xc1e4), (23, 0xc211), (25, 0xc271), (32, 0xc400)] {
            let qpn = Qpn::new(both).unwrap();
            assert_eq!(udp_source_port(qpn, qpn), port, "{qpn}");
        }
    }

    #[test]
    fn both_ends_derive_the_same_source_port() {
        let qpn = |n| Qpn::new(n).unwrap();
        for (local, remote, port) in [(17, 18, 0xc132), (0x1234, 0x4321, 0xf4ef)] {
            assert_eq!(udp_source_port(qpn(local), qpn(remote)), port, "{local:#x} {remote:#x}");
            assert_eq!(udp_source_port(qpn(remote), qpn(local)), port, "{remote:#x} {local:#x}");
        }
        assert!(udp_source_port(qpn(0xff_ffff), qpn(0xff_fffe)) >= 0xc000);
    }

    #[test]
    fn the_way_back_swaps_everything_but_the_port() {
        let there = Endpoints {
            eth_dst: MacAddr([2, 0, 0, 0, 0, 2]),
            eth_src: MacAddr([2, 0, 0, 0, 0, 1]),
            ip_src: Ipv4Addr::new(10, 0, 0, 1),
            ip_dst: Ipv4Addr::new(10, 0, 0, 2),
            udp_src: 0xc123,
        };
        let back = there.reversed();
        assert_eq!((back.eth_dst, back.ip_src, back.udp_src), (there.eth_src, there.ip_dst, 0xc123));
        assert_eq!(back.reversed(), there);
    }
}
