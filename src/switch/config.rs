//! Attributes of a switch, with defaults for a small laboratory.

use core::net::Ipv4Addr;
use std::collections::BTreeMap;

use crate::base::{Class, NodeId, Octets, PortId, Rate, Share, Span};
use crate::port::{EgressConfig, MarkConfig, PerClass, Scheduling};
use crate::wire::MacAddr;

/// The ports that lead to an address, each on a shortest way, in port order.
pub type Routes = BTreeMap<Ipv4Addr, Vec<PortId>>;

/// One port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PortConfig {
    /// DataRate: the lower one of both ends of the link (timing rule 33). Ports of one switch may differ.
    pub data_rate: Rate,
    /// Delay of the link in this port's sending direction (timing rule 31).
    pub delay: Span,
    /// The source of the PFC frames it sends; see [`PortConfig::mac_of`].
    pub mac: MacAddr,
}

/// When a switch pauses those who send to it: a value per class, the same at every port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PfcConfig {
    /// For which classes this switch sends pauses. A class without has the same limit, and drops beyond it.
    pub enabled: PerClass<bool>,
    /// How long a pause asks for, in units of 512 bit times. Range: from 1 where `enabled`.
    pub quanta: PerClass<u16>,
    /// A port's charge above this draws XOFF; at it, not yet (model.md P3).
    pub xoff: PerClass<Octets>,
    /// A port's charge at this or below draws XON.
    pub xon: PerClass<Octets>,
    /// What a port may be charged beyond `xoff`, for frames that the pause was too late for.
    pub headroom: PerClass<Octets>,
}

/// Every attribute of one switch. Values are complete and checked: the scenario room refuses what cannot run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    pub ports: Vec<PortConfig>,
    pub pfc: PfcConfig,
    /// What the frames of all ports may take together.
    pub total_buffer: Octets,
    /// How the classes of a port take turns; PFC frames are ahead of all.
    pub scheduling: Scheduling,
    /// In packets, for weighted round robin.
    pub weights: PerClass<u32>,
    /// For which classes this switch marks.
    pub marking_enabled: PerClass<bool>,
    pub marking: MarkConfig,
    /// Of the marking decisions: one stream for all ports.
    pub seed: u64,
    /// Makes switches choose apart among equal ways: with one salt for all, the second choice follows the first.
    pub ecmp_salt: u64,
    /// Pads PFC frames with an Ethernet trailer to their model size (model.md W3).
    pub pad_to_model: bool,
}

impl PortConfig {
    /// The address of a switch's port: `02:01`, node, port.
    ///
    /// * Range: locally administered. NICs of a scenario have `02:00` in front.
    pub const fn mac_of(switch: NodeId, port: PortId) -> MacAddr {
        let ([n1, n0], [p1, p0]) = (switch.0.to_be_bytes(), port.0.to_be_bytes());
        MacAddr([0x02, 0x01, n1, n0, p1, p0])
    }
}

impl PfcConfig {
    /// The most that a port can be charged in a class.
    pub(super) fn limit(&self, class: usize) -> Octets {
        self.xoff[class] + self.headroom[class]
    }
}

impl Config {
    /// The queues of a port: one for every class. A switch has no egress pools, so the shares only say that there are
    /// eight.
    pub(super) fn egress(&self) -> EgressConfig {
        let shares = [Share::from_percent(100); Class::COUNT];
        EgressConfig { total: self.total_buffer, shares, scheduling: self.scheduling, weights: self.weights }
    }
}

impl Default for PfcConfig {
    /// * Source: congestion.md §4.3; timing rule 13.
    fn default() -> Self {
        let all = |octets| [Octets::new(octets); Class::COUNT];
        Self {
            enabled: [true; Class::COUNT],
            quanta: [65_535; Class::COUNT],
            xoff: all(700_000),
            xon: all(300_000),
            headroom: all(256_000),
        }
    }
}

impl Default for Config {
    fn default() -> Self {
        Self {
            ports: Vec::new(),
            pfc: PfcConfig::default(),
            total_buffer: Octets::new(256_000_000),
            scheduling: Scheduling::StrictPriority,
            weights: [1; Class::COUNT],
            marking_enabled: [true; Class::COUNT],
            marking: MarkConfig::default(),
            seed: 1,
            ecmp_salt: 0,
            pad_to_model: false,
        }
    }
}
