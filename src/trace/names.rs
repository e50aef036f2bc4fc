//! The names of the scenario, for those who write for people.

use crate::base::{NodeId, PortId, Rate, RuleId};

/// Names of nodes and ports, in the order of their ids.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Names {
    pub nodes: Vec<NodeNames>,
    /// Fault rules, by their ids.
    pub rules: Vec<String>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeNames {
    pub name: String,
    pub ports: Vec<PortNames>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PortNames {
    /// `<node>:<peer>`, with `#2`, `#3` … for further links between the same two nodes.
    pub name: String,
    pub rate: Rate,
}

impl Names {
    pub fn node(&self, node: NodeId) -> &str {
        &self.nodes[node.index()].name
    }

    pub fn rule(&self, rule: RuleId) -> &str {
        &self.rules[rule.index()]
    }

    pub fn port(&self, node: NodeId, port: PortId) -> &str {
        &self.nodes[node.index()].ports[port.index()].name
    }
}
