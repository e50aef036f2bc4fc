//! The sizes and thresholds of the scenario's buffers, for those who write for people.

use crate::base::{Class, NodeId, Octets, PortId};

/// Limits of every node, in the order of their ids.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Limits {
    pub nodes: Vec<NodeLimits>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NodeLimits {
    /// Pool sizes by class.
    pub egress: EgressLimits,
    /// By port, then class.
    pub ports: Vec<[Option<IngressLimit>; Class::COUNT]>,
    /// When a switch marks packets, by class, where it does; the same at every port.
    pub marking: [Option<MarkLimit>; Class::COUNT],
}

/// The size of each class's egress pool, where it has one.
pub type EgressLimits = [Option<Octets>; Class::COUNT];

/// The ingress pool of one class.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IngressLimit {
    pub pool: Octets,
    /// Xoff and Xon, where PFC is enabled for the class.
    pub pfc: Option<(Octets, Octets)>,
}

/// The averages between which a queue's packets are marked more and more often.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MarkLimit {
    pub kmin: Octets,
    pub kmax: Octets,
}

impl NodeLimits {
    /// Whether this is a NIC: a switch has no egress pools.
    pub fn is_nic(&self) -> bool {
        self.egress.iter().any(Option::is_some)
    }
}

impl Limits {
    /// Every ingress pool, by node, port and class.
    pub fn ingress(&self) -> impl Iterator<Item = (NodeId, PortId, Class, IngressLimit)> {
        (0..).map(NodeId).zip(&self.nodes).flat_map(|(node, limits)| {
            (0..).map(PortId).zip(&limits.ports).flat_map(move |(port, classes)| {
                let limits = Class::all().zip(classes);
                limits.filter_map(move |(class, limit)| limit.map(|limit| (node, port, class, limit)))
            })
        })
    }
}
