//! Which directions of links the packets between two NICs can pass.

use std::collections::BTreeSet;

use super::network::Network;

/// One direction of a link: its index, and which of its ends sends.
pub(super) type Side = (usize, usize);

impl Network {
    /// Every direction of a link that what NIC `from` sends to NIC `to` can pass, the nearest first: where several ways
    /// are equally short, the flow chooses, so the links of each are possible.
    ///
    /// Empty if there is no way, or if the links are not all known.
    pub(super) fn passage(&self, from: usize, to: usize) -> Vec<Side> {
        let mut sides = Vec::new();
        let mut reached = BTreeSet::new();
        let mut nodes = vec![from];
        while !nodes.is_empty() {
            let mut next = Vec::new();
            for node in nodes {
                for port in self.ports_towards(node, to) {
                    let port = &self.nodes[node].ports[port];
                    sides.push((port.link, port.from_end));
                    if reached.insert(port.peer) && port.peer != to {
                        next.push(port.peer);
                    }
                }
            }
            nodes = next;
        }
        sides
    }

    /// Whether what NIC `from` sends to NIC `to` can pass a direction of a link, as far as that is known.
    pub(super) fn can_pass(&self, side: Side, from: usize, to: usize) -> bool {
        self.links_refused
            || self.ways.are_unknown
            || !self.can_reach([from, to])
            || self.passage(from, to).contains(&side)
    }

    /// `a` -> `s1`, `s1` -> `b`: what of a passage has room in a message.
    pub(super) fn passage_text(&self, from: usize, to: usize) -> String {
        const LISTED: usize = 8;
        let sides = self.passage(from, to);
        let name = |side: &Side, end: usize| &self.nodes[self.links[side.0].ends[end].node.index()].name;
        let hop = |side: &Side| format!("`{}` -> `{}`", name(side, side.1), name(side, 1 - side.1));
        let mut hops: Vec<_> = sides.iter().take(LISTED).map(hop).collect();
        hops.extend((sides.len() > LISTED).then(|| "\u{2026}".to_owned()));
        hops.join(", ")
    }

    /// Indices of the ports of `node` that lead to NIC `to`.
    fn ports_towards(&self, node: usize, to: usize) -> Vec<usize> {
        match node.checked_sub(self.nic_count) {
            Some(switch) => self.ways.ports(switch, to).iter().map(|port| port.index()).collect(),
            // A NIC has one port at most.
            None => {
                let leads_there = |peer| peer == to || self.is_switch(peer) && self.ways.are_behind_switches(node, to);
                self.nodes[node].ports.iter().take(1).filter(|port| leads_there(port.peer)).map(|_| 0).collect()
            }
        }
    }
}
