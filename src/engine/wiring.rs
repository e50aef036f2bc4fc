//! What the plan says of links, queue pairs and posts, as the engine needs it.

use super::Hop;
use crate::base::{NodeId, Octets, PortId, Rng, RuleId, Span};
use crate::link;
use crate::nic::{Connection, Service};
use crate::scenario::{FaultKind, Plan, PostPlan, QueuePairPlan};
use crate::workload::Series;

/// What a frame has beyond its payload, at most: every header there is, pad, ICRC and the gap.
const LONGEST_HEADERS: Octets = Octets::new(128);

/// Where the frames of a port go.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cable {
    pub hop: Hop,
    pub peer: NodeId,
    pub peer_port: PortId,
}

/// One end's view of a connection.
pub(super) fn connection(plan: &Plan, queue_pair: &QueuePairPlan, end: usize) -> Connection {
    let (own, peer) = (queue_pair.ends[end], queue_pair.ends[1 - end]);
    Connection {
        qpn: own.qpn,
        peer_qpn: peer.qpn,
        peer_address: plan.nics[peer.node.index()].address,
        initial_psn: own.initial_psn,
        peer_initial_psn: peer.initial_psn,
        data_class: own.data_class,
        control_class: own.control_class,
        service: Service::Scripted,
    }
}

pub(super) fn series(plan: &Plan, post: &PostPlan) -> Series {
    let node = plan.queue_pairs[post.queue_pair].ends[post.from_end].node;
    Series { node, first_at: post.at, every: post.every, count: post.count }
}

/// Where the frames of every port go, by node and port.
pub(super) fn cables(plan: &Plan) -> Vec<Vec<Cable>> {
    let mut cables: Vec<Vec<(PortId, Cable)>> = vec![Vec::new(); plan.node_count()];
    for (link_index, link) in (0..).zip(&plan.links) {
        for from_end in 0..2 {
            let (own, peer) = (link.ends[from_end], link.ends[1 - from_end]);
            let hop = Hop::new(link_index, from_end as u32);
            let cable = Cable { hop, peer: peer.node, peer_port: peer.port };
            cables[own.node.index()].push((own.port, cable));
        }
    }
    cables
        .into_iter()
        .map(|mut ports| {
            ports.sort_by_key(|(port, _)| *port);
            ports.into_iter().map(|(_, cable)| cable).collect()
        })
        .collect()
}

/// Every direction of every link, by hop, with the rules on it.
pub(super) fn directions(plan: &Plan) -> Vec<link::Direction> {
    let ends = plan.links.iter().flat_map(|link| link.ends);
    let mut directions: Vec<_> = ends.map(|end| link::Direction::new(end.delay)).collect();
    for (id, fault) in (0..).zip(&plan.faults) {
        if let FaultKind::Rule(rule) = &fault.kind {
            let hop = Hop::new(fault.link as u32, fault.from_end as u32);
            let rng = Rng::named(plan.seed, &format!("fault/{}", fault.name));
            directions[hop.index()].arm(RuleId(id), rule.clone(), rng);
        }
    }
    directions
}

/// No frame is longer on its way between two NICs, as far as that is known beforehand: out of a port and over a link, again at
/// each switch, and held up by every fault. How long it waits in queues, nobody knows.
pub(super) fn longest_way(plan: &Plan) -> Span {
    let link = plan.links.iter().flat_map(|link| link.ends).map(|end| end.delay).max().unwrap_or_default();
    let largest = plan.nics.iter().map(|nic| nic.config.mss + LONGEST_HEADERS).max().unwrap_or_default();
    let nics = plan.nics.iter().map(|nic| nic.config.data_rate);
    let ports = plan.switches.iter().flat_map(|switch| &switch.config.ports).map(|port| port.data_rate);
    let hop = link + nics.chain(ports).min().map_or(Span::ZERO, |rate| rate.time_for(largest));
    let faults = plan.faults.iter().map(|fault| match &fault.kind {
        FaultKind::Rule(link::Rule { action: link::Action::Delay(by), .. }) => *by,
        _ => Span::ZERO,
    });
    let hops = std::iter::repeat_n(hop, 1 + plan.switches.len());
    hops.chain(faults).fold(Span::ZERO, |way, part| way + part)
}
