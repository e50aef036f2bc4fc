//! Ways through switches: which NICs can reach each other, and by which ports.

use core::net::Ipv4Addr;
use std::collections::BTreeMap;

use super::diagnostics::{Diagnostic, Report};
use super::network::{Network, address};
use crate::base::{NodeId, PortId};
use crate::switch::{Routes, topology};

/// Of NICs at one switch.
const STAR_MAX: u64 = 2_000;

#[derive(Default)]
pub(super) struct Ways {
    /// By node: nodes with the same number reach each other through switches. `None` for a NIC without a switch.
    islands: Vec<Option<usize>>,
    /// By switch, in their order.
    routes: Vec<Routes>,
    /// They are too many to be found.
    pub(super) are_unknown: bool,
}

impl Ways {
    /// The ways of a network whose links have all been read.
    pub(super) fn find(network: &Network, report: &mut Report) -> Self {
        let islands = islands(network);
        let are_unknown = refuse_size(network, &islands, report);
        let routes = match are_unknown {
            true => vec![Routes::new(); network.nodes.len() - network.nic_count],
            false => routes(network, &islands),
        };
        Self { islands, routes, are_unknown }
    }

    pub(super) fn are_behind_switches(&self, a: usize, b: usize) -> bool {
        self.islands[a].is_some() && self.islands[a] == self.islands[b]
    }

    /// The ports of a switch on a shortest way to a NIC. Switches count from 0.
    pub(super) fn ports(&self, switch: usize, nic: usize) -> &[PortId] {
        self.routes[switch].get(&address(nic).ip).map_or(&[], Vec::as_slice)
    }

    pub(super) fn into_routes(self) -> Vec<Routes> {
        self.routes
    }
}

/// Goes from every switch to all it can reach.
fn islands(network: &Network) -> Vec<Option<usize>> {
    let mut islands = vec![None; network.nodes.len()];
    for first in network.nic_count..network.nodes.len() {
        let mut reached = vec![first];
        while let Some(node) = reached.pop() {
            if islands[node].is_some() {
                continue;
            }
            islands[node] = Some(first);
            // NICs pass nothing on, and have one port.
            reached.extend(network.nodes[node].ports.iter().map(|port| port.peer));
        }
    }
    islands
}

/// Whether ways can be found in a network of this size: NICs without a switch do not count. What it costs are the NICs times
/// the NICs, the switches and the links, and it may be as much as in the largest star.
pub(super) fn can_be_found(nics: u64, switches: u64, links: u64) -> bool {
    nics.saturating_mul(nics + switches + links) <= STAR_MAX * (STAR_MAX + 1 + STAR_MAX)
}

fn refuse_size(network: &Network, islands: &[Option<usize>], report: &mut Report) -> bool {
    let nics = islands[..network.nic_count].iter().flatten().count() as u64;
    let switches = (network.nodes.len() - network.nic_count) as u64;
    let is_too_large = !can_be_found(nics, switches, network.links.len() as u64);
    if is_too_large {
        let behind = if switches == 1 { "one switch".to_owned() } else { format!("{switches} switches") };
        report.push(
            Diagnostic::error(
                network.nodes[network.nic_count].key.clone(),
                format!("{nics} NICs behind {behind} have more ways to each other than can be found"),
            )
            .label("too large a network")
            .help(format!("one switch may have {STAR_MAX} NICs, and several switches fewer; remove some")),
        );
    }
    is_too_large
}

/// NICs without a switch are left out: nobody needs a route to them.
fn routes(network: &Network, islands: &[Option<usize>]) -> Vec<Routes> {
    let nics: Vec<_> = (0..network.nic_count).filter(|nic| islands[*nic].is_some()).collect();
    let nodes = || nics.iter().copied().chain(network.nic_count..network.nodes.len());
    let ids: BTreeMap<usize, NodeId> = nodes().zip(0..).map(|(node, id)| (node, NodeId(id))).collect();
    let ends = network.links.iter().map(|link| link.ends.map(|end| (ids.get(&end.node.index()), end.port)));
    let links: Vec<_> = ends.filter_map(|[(a, p), (b, q)]| Some([(*a?, p), (*b?, q)])).collect();
    let hops = topology::routes(nics.len(), ids.len(), &links).split_off(nics.len());
    let ip = |nic: NodeId| -> Ipv4Addr { address(nics[nic.index()]).ip };
    hops.into_iter().map(|hops| hops.into_iter().map(|(nic, ports)| (ip(nic), ports)).collect()).collect()
}
