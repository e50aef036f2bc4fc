//! Attributes of a NIC, with the specification's defaults.

use core::net::Ipv4Addr;

use super::rate::CongestionConfig;
use crate::base::{Class, Octets, Rate, Span};
use crate::port::{EgressConfig, IngressConfig};
use crate::wire::MacAddr;

/// Packet generation starts this long after it was asked for.
pub const GENERATION_START: Span = Span::from_ns(80);

/// Where a NIC is found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Address {
    pub mac: MacAddr,
    pub ip: Ipv4Addr,
}

/// Every attribute of one NIC. Values are complete and checked: the scenario room refuses what cannot run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// DataRate: the lower one of both ends of the link (timing rule 33).
    pub data_rate: Rate,
    /// Delay of the link in this NIC's sending direction (timing rule 31).
    pub delay: Span,
    /// Mtu: `mss` + 58 is below it.
    pub mtu: Octets,
    /// MSS: payload octets per packet. Range: 1..=9216.
    pub mss: Octets,
    pub egress: EgressConfig,
    pub ingress: IngressConfig,
    pub pcie: PcieConfig,
    pub send_queue: SendQueueConfig,
    pub ack: AckConfig,
    /// RetransmitTimeout.
    pub retransmit_timeout: Span,
    /// RdmaControlPacketTC: class of ACKs and NAKs on queue pairs that a packet opens (model.md T3).
    pub control_class: Class,
    /// EnableECN: data is ECT(0), CNPs slow queue pairs down. Without, data is Not-ECT and CNPs are ignored; they are
    /// made either way.
    pub enable_ecn: bool,
    pub congestion: CongestionConfig,
    /// Pads control frames with an Ethernet trailer to their model size (model.md W3).
    pub pad_to_model: bool,
    /// Solicited event only where the InfiniBand specification has it (model.md W7).
    pub strict_ib_flags: bool,
}

/// The PCIe link between the NIC and its host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PcieConfig {
    /// Sends read requests and received data.
    pub nic_side: PcieSide,
    /// Sends payload.
    pub host_side: PcieSide,
    /// ReadRequestSize, without the 34 octets of overhead.
    pub read_request_size: Octets,
}

/// One end of the PCIe link.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PcieSide {
    /// LaneBps: what this end sends per lane.
    pub lane_bps: Rate,
    /// LaneCount. Range: 1..=16.
    pub lane_count: u8,
    pub rx_header_buffer: Octets,
    pub tx_header_buffer: Octets,
    pub rx_data_buffer: Octets,
    pub tx_data_buffer: Octets,
}

/// What it costs until the NIC has a work queue element (WQE).
///
/// * Source: model.md R3, R4.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SendQueueConfig {
    pub doorbell: DoorbellCost,
    /// WqeSize: what a WQE fetch reads, unless the WQE says otherwise. Range: a power of two in 64..=512.
    pub wqe_size: Octets,
    /// WqePrefetch: so many entries are fetched ahead of the read position.
    ///
    /// One hides the fetch: a queue pair works on one message at a time, so an entry has all of the message before it to
    /// arrive in. More only matter where the link to the host is that busy.
    pub wqe_prefetch: u32,
    /// BlueFlameMax: a longer WQE is rung for like any other.
    pub blue_flame_max: Octets,
}

/// Whether doorbells and WQE fetches take time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DoorbellCost {
    /// What is posted is in the NIC at once.
    Free,
    /// Doorbells, WQEs and fetches cross the PCIe link.
    Modelled,
}

/// Acknowledgement coalescing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AckConfig {
    /// AckCoalescingEnabled.
    pub coalescing: bool,
    /// AckThreshold: so many packets are held, the next one is acknowledged.
    pub threshold: u32,
    /// AckDelay.
    pub delay: Span,
}

impl PcieSide {
    /// LaneBps × LaneCount.
    pub fn rate(&self) -> Rate {
        self.lane_bps.times(u64::from(self.lane_count))
    }
}

impl Default for Config {
    fn default() -> Self {
        Self {
            data_rate: Rate::from_gbps(400),
            delay: Span::from_ns(100),
            mtu: Octets::new(4_184),
            mss: Octets::new(4_096),
            egress: EgressConfig::default(),
            ingress: IngressConfig::default(),
            pcie: PcieConfig::default(),
            send_queue: SendQueueConfig::default(),
            ack: AckConfig::default(),
            retransmit_timeout: Span::from_ms(64),
            control_class: Class::CONTROL,
            enable_ecn: true,
            congestion: CongestionConfig::default(),
            pad_to_model: false,
            strict_ib_flags: false,
        }
    }
}

impl Default for PcieConfig {
    fn default() -> Self {
        Self { nic_side: PcieSide::default(), host_side: PcieSide::default(), read_request_size: Octets::new(64) }
    }
}

impl Default for PcieSide {
    /// Sixteen PCIe 5.0 lanes.
    fn default() -> Self {
        const LANE: Rate = match Rate::from_bps(31_520_000_000) {
            Some(rate) => rate,
            None => unreachable!(),
        };
        Self {
            lane_bps: LANE,
            lane_count: 16,
            rx_header_buffer: Octets::new(16_000),
            tx_header_buffer: Octets::new(16_000),
            rx_data_buffer: Octets::new(256_000),
            tx_data_buffer: Octets::new(256_000),
        }
    }
}

impl SendQueueConfig {
    pub fn is_modelled(&self) -> bool {
        self.doorbell == DoorbellCost::Modelled
    }
}

impl Default for SendQueueConfig {
    fn default() -> Self {
        Self {
            doorbell: DoorbellCost::Free,
            wqe_size: Octets::new(64),
            wqe_prefetch: 1,
            blue_flame_max: Octets::new(256),
        }
    }
}

impl Default for AckConfig {
    fn default() -> Self {
        Self { coalescing: true, threshold: 16, delay: Span::from_ms(1) }
    }
}
