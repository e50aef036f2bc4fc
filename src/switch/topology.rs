//! Static routes over any graph of NICs and switches: every shortest way, and no loop.
//!
//! ```text
//!        spine0   spine1          leaf0 to c: both uplinks, in port order
//!         │  ╲   ╱  │             spine0 to c: its port to leaf1
//!        leaf0     leaf1
//!        a   b     c   d
//! ```
//!
//! Read first: `tests::a_leaf_knows_both_spines`.

use std::collections::{BTreeMap, VecDeque};

use crate::base::{NodeId, PortId};

/// A link by the ports it joins.
pub type Ends = [(NodeId, PortId); 2];

/// At one node: to every NIC that can be reached, the ports on a shortest way there, in port order.
pub type NextHops = BTreeMap<NodeId, Vec<PortId>>;

/// The routes of every node, in the order of node ids.
///
/// A way is as long as the links on it are many. NICs are where ways begin and end: they pass nothing on. Every hop of
/// a route is one nearer to the destination than the one before, so there is no loop, whatever the graph.
///
/// * Shape: nodes 0 to `nic_count` − 1 are NICs, the rest up to `node_count` − 1 are switches.
/// * Panics: if a link ends at a node that is not there (caller's bug).
/// * Cost: O(NICs × (nodes + links)).
pub fn routes(nic_count: usize, node_count: usize, links: &[Ends]) -> Vec<NextHops> {
    let mut neighbours: Vec<Vec<(PortId, usize)>> = vec![Vec::new(); node_count];
    for [one, other] in links {
        neighbours[one.0.index()].push((one.1, other.0.index()));
        neighbours[other.0.index()].push((other.1, one.0.index()));
    }
    for ports in &mut neighbours {
        ports.sort_unstable();
    }
    let mut routes = vec![NextHops::new(); node_count];
    for nic in 0..nic_count {
        let passes_on = |node: usize| node == nic || node >= nic_count;
        let distances = distances(nic, &neighbours, passes_on);
        for (node, ports) in neighbours.iter().enumerate() {
            let Some(nearer) = distances[node].and_then(|distance: u32| distance.checked_sub(1)) else { continue };
            let leads_there = |&&(_, peer): &&(PortId, usize)| passes_on(peer) && distances[peer] == Some(nearer);
            let hops = ports.iter().filter(leads_there).map(|&(port, _)| port).collect();
            routes[node].insert(NodeId(nic as u16), hops);
        }
    }
    routes
}

/// How many links lie between every node and `target`; `None` where no way leads.
fn distances(
    target: usize,
    neighbours: &[Vec<(PortId, usize)>],
    passes_on: impl Fn(usize) -> bool,
) -> Vec<Option<u32>> {
    let mut distances = vec![None; neighbours.len()];
    let mut reached = VecDeque::from([(target, 0)]);
    distances[target] = Some(0);
    while let Some((node, distance)) = reached.pop_front() {
        if !passes_on(node) {
            continue;
        }
        for &(_, peer) in &neighbours[node] {
            if distances[peer].is_none() {
                distances[peer] = Some(distance + 1);
                reached.push_back((peer, distance + 1));
            }
        }
    }
    distances
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Links between the named nodes, each at the next free port of both.
    fn cabled(pairs: &[(usize, usize)]) -> Vec<Ends> {
        let mut used = BTreeMap::new();
        let mut next = |node: usize| {
            let port = used.entry(node).or_insert(0);
            *port += 1;
            (NodeId(node as u16), PortId(*port - 1))
        };
        pairs.iter().map(|&(one, other)| [next(one), next(other)]).collect()
    }

    fn ports(hops: &NextHops, nic: u16) -> Vec<u16> {
        hops[&NodeId(nic)].iter().map(|port| port.0).collect()
    }

    #[test]
    fn a_star_has_one_way_to_everybody() {
        let routes = routes(3, 4, &cabled(&[(0, 3), (1, 3), (2, 3)]));
        for nic in 0..3 {
            assert_eq!(ports(&routes[3], nic), [nic]);
        }
        assert_eq!((ports(&routes[0], 2), ports(&routes[2], 0)), (vec![0], vec![0]));
        assert!(!routes[0].contains_key(&NodeId(0)), "nobody is on the way to itself");
    }

    #[test]
    fn a_leaf_knows_both_spines() {
        // NICs a b c d = 0 to 3, leaves 4 and 5, spines 6 and 7. Ports 0 and 1 of a leaf lead down, 2 and 3 up.
        let links = cabled(&[(0, 4), (1, 4), (2, 5), (3, 5), (4, 6), (4, 7), (5, 6), (5, 7)]);
        let routes = routes(4, 8, &links);
        assert_eq!(ports(&routes[4], 1), [1], "a neighbour is not reached by a spine");
        assert_eq!(ports(&routes[4], 2), [2, 3]);
        assert_eq!(ports(&routes[5], 0), [2, 3]);
        assert_eq!((ports(&routes[6], 0), ports(&routes[6], 3)), (vec![0], vec![1]));
    }

    #[test]
    fn parallel_links_are_equal_ways() {
        assert_eq!(ports(&routes(2, 4, &cabled(&[(0, 2), (2, 3), (2, 3), (1, 3)]))[2], 1), [1, 2]);
    }

    #[test]
    fn nics_pass_nothing_on() {
        // 0 has a port at each of two switches, which have no other link.
        let routes = routes(3, 5, &cabled(&[(0, 3), (0, 4), (1, 3), (2, 4)]));
        assert!(!routes[1].contains_key(&NodeId(2)));
        assert_eq!(ports(&routes[1], 0), [0]);
    }

    #[test]
    fn two_nics_need_no_switch() {
        let routes = routes(2, 2, &cabled(&[(0, 1)]));
        assert_eq!((ports(&routes[0], 1), ports(&routes[1], 0)), (vec![0], vec![0]));
    }

    /// The shortest ways, found another way: by relaxing every link until nothing changes.
    fn relaxed(nic: usize, nic_count: usize, node_count: usize, pairs: &[(usize, usize)]) -> Vec<Option<u32>> {
        let mut distances = vec![None; node_count];
        distances[nic] = Some(0);
        for _ in 0..node_count {
            for (from, to) in pairs.iter().flat_map(|&(one, other)| [(one, other), (other, one)]) {
                if (from == nic || from >= nic_count)
                    && let Some(distance) = distances[from]
                {
                    distances[to] = Some(distances[to].map_or(distance + 1, |known: u32| known.min(distance + 1)));
                }
            }
        }
        distances
    }

    /// NICs, nodes, and the pairs of nodes that a link joins; also to themselves, also twice.
    fn graph() -> impl Strategy<Value = (usize, usize, Vec<(usize, usize)>)> {
        (1..6_usize, 0..8_usize).prop_flat_map(|(nics, switches)| {
            let nodes = nics + switches;
            (Just(nics), Just(nodes), prop::collection::vec((0..nodes, 0..nodes), 0..24))
        })
    }

    proptest! {
        #[test]
        fn routes_are_all_shortest_ways_and_loop_free((nic_count, node_count, pairs) in graph()) {
            let links = cabled(&pairs);
            let routes = routes(nic_count, node_count, &links);
            let mut peers = BTreeMap::new();
            for [one, other] in &links {
                peers.insert(*one, other.0);
                peers.insert(*other, one.0);
            }
            for nic in 0..nic_count {
                let target = NodeId(nic as u16);
                let distances = relaxed(nic, nic_count, node_count, &pairs);
                for node in 0..node_count {
                    let hops = routes[node].get(&target);
                    // Everybody who can reach it knows a way, and nobody else does.
                    prop_assert_eq!(hops.is_some(), distances[node].is_some_and(|distance| distance > 0));
                    let Some(hops) = hops else { continue };
                    prop_assert!(!hops.is_empty() && hops.is_sorted());
                    // Every hop is one nearer: shortest, and no loop. All that are one nearer are there.
                    let nearer = distances[node].map(|distance| distance - 1);
                    for (&(from, port), &peer) in peers.iter().filter(|((from, _), _)| from.index() == node) {
                        let passes_on = peer == target || peer.index() >= nic_count;
                        let is_nearer = passes_on && distances[peer.index()] == nearer;
                        prop_assert_eq!(hops.contains(&port), is_nearer, "{:?} to {:?}", from, target);
                    }
                }
            }
        }
    }
}
