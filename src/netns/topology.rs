//! What to build: nodes, the cables between their ports, and what the interfaces are called.

use std::collections::BTreeSet;

use super::Error;

/// Nodes and the cables between them. Each node becomes a network namespace, each cable a veth pair.
///
/// * Range: every end names a node of the list, and no two ends the same port; [`build`](super::build) checks it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Topology {
    /// Names, as people know the nodes; also the namespaces' names under `--named`.
    pub nodes: Vec<String>,
    /// Both ends of each cable. Cable `n`, from its first end to its second, is hop 2n of the engine.
    pub cables: Vec<[End; 2]>,
}

/// Where a cable is plugged in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct End {
    /// Index into [`Topology::nodes`].
    pub node: usize,
    /// Port of that node, 0-based; used once.
    pub port: usize,
}

/// Names that a fresh namespace may already hold (the kernel's fallback tunnels) or that `/proc/sys/net` reserves.
const TAKEN: [&str; 14] = [
    "lo", "all", "default", "tunl0", "gre0", "gretap0", "erspan0", "ip_vti0", "ip6_vti0", "sit0", "ip6tnl0", "ip6gre0",
    "teql0", "dummy0",
];

/// Longest interface name.
///
/// * Source: Linux, IFNAMSIZ less its final zero.
const NAME_OCTETS_MAX: usize = 15;

impl Topology {
    /// * Errors: `NoSuchNode` if an end names a node beyond the list, `PortTakenTwice` if two ends are one port.
    pub(super) fn check(&self) -> Result<(), Error> {
        let mut seen = BTreeSet::new();
        for (cable, end) in self.cables.iter().enumerate().flat_map(|(n, ends)| ends.iter().map(move |end| (n, end))) {
            if end.node >= self.nodes.len() {
                return Err(Error::NoSuchNode { cable, node: end.node });
            }
            if !seen.insert(*end) {
                return Err(Error::PortTakenTwice { node: self.nodes[end.node].clone(), port: end.port });
            }
        }
        Ok(())
    }

    /// `<node>:<peer>`, as people know the port at end `from_end` of `cable`.
    pub fn port_name(&self, cable: usize, from_end: usize) -> String {
        let ends = self.cables[cable];
        format!("{}:{}", self.nodes[ends[from_end].node], self.nodes[ends[1 - from_end].node])
    }

    /// Interface names inside their namespaces, per cable and end: the peer's name where it can be one, else `p<port>`.
    ///
    /// In a namespace called `a`, `ip link` then shows `b`: the far end's name, as on a well-labelled patch panel.
    pub fn interfaces(&self) -> Vec<[String; 2]> {
        let wish = |cable: usize, from_end: usize| self.nodes[self.cables[cable][1 - from_end].node].as_str();
        let mut peers = BTreeSet::new();
        let mut repeated = BTreeSet::new();
        for (cable, ends) in self.cables.iter().enumerate() {
            for (from_end, end) in ends.iter().enumerate() {
                let key = (end.node, wish(cable, from_end));
                if !peers.insert(key) {
                    repeated.insert(key);
                }
            }
        }
        let name = |cable: usize, from_end: usize| {
            let (end, wish) = (self.cables[cable][from_end], wish(cable, from_end));
            if can_be_interface(wish) && !repeated.contains(&(end.node, wish)) {
                wish.to_owned()
            } else {
                format!("p{}", end.port)
            }
        };
        (0..self.cables.len()).map(|cable| [name(cable, 0), name(cable, 1)]).collect()
    }
}

/// Whether the kernel takes the name, and neither it nor our own `p<port>` could already be there.
fn can_be_interface(name: &str) -> bool {
    let like_a_port = name.strip_prefix('p').is_some_and(|n| n.bytes().all(|b| b.is_ascii_digit()));
    !name.is_empty()
        && name.len() <= NAME_OCTETS_MAX
        // The kernel refuses '/', ':' and white space, and counts '%d' up; '.' and '..' are directories.
        && name.bytes().all(|b| b.is_ascii_graphic() && !matches!(b, b'/' | b':' | b'%'))
        && name != "."
        && name != ".."
        && !like_a_port
        && !TAKEN.contains(&name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn topology(nodes: &[&str], cables: &[[(usize, usize); 2]]) -> Topology {
        let end = |(node, port)| End { node, port };
        Topology {
            nodes: nodes.iter().map(|&n| n.to_owned()).collect(),
            cables: cables.iter().map(|ends| ends.map(end)).collect(),
        }
    }

    #[test]
    fn an_interface_is_called_after_the_node_at_its_far_end() {
        let pair = topology(&["a", "b"], &[[(0, 0), (1, 0)]]);
        assert_eq!(pair.interfaces(), [["b".to_owned(), "a".to_owned()]]);
        assert_eq!(pair.port_name(0, 1), "b:a");
    }

    #[test]
    fn names_that_cannot_be_interfaces_fall_back_to_the_port() {
        let nodes = ["a", "a-name-of-many-letters", "lo", "p3", "x y", "sit0", "%d", ""];
        let cables: Vec<_> = (1..nodes.len()).map(|peer| [(0, peer - 1), (peer, 0)]).collect();
        let interfaces = topology(&nodes, &cables).interfaces();
        let at_a: Vec<_> = interfaces.iter().map(|ends| ends[0].as_str()).collect();
        assert_eq!(at_a, ["p0", "p1", "p2", "p3", "p4", "p5", "p6"]);
        assert!(interfaces.iter().all(|ends| ends[1] == "a"));
    }

    #[test]
    fn two_cables_to_the_same_peer_are_told_apart_by_port() {
        let interfaces = topology(&["a", "b"], &[[(0, 0), (1, 4)], [(0, 1), (1, 5)]]).interfaces();
        assert_eq!(interfaces, [["p0".to_owned(), "p4".to_owned()], ["p1".to_owned(), "p5".to_owned()]]);
    }

    #[test]
    fn an_impossible_topology_is_refused() {
        assert!(matches!(topology(&["a"], &[[(0, 0), (1, 0)]]).check(), Err(Error::NoSuchNode { cable: 0, node: 1 })));
        let twice = topology(&["a", "b", "c"], &[[(0, 0), (1, 0)], [(0, 0), (2, 0)]]);
        assert!(matches!(twice.check(), Err(Error::PortTakenTwice { port: 0, .. })));
    }
}
