//! The complete, checked description of a run. Whatever it says can be run.

use bytes::Bytes;

use super::expect::Expectation;
use super::network::ecmp_salt;
use crate::base::{Class, Instant, NodeId, Octets, PortId, Psn, Qpn, Rate, Span};
use crate::port::{IngressConfig, MarkConfig, PerClass, Pools};
use crate::trace::{IngressLimit, Limits, MarkLimit, Names, NodeLimits, NodeNames, PortNames};
use crate::wire::Verb;
use crate::{link, nic, switch};

/// Everything a run needs to know.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    /// One safe path component: it names the directory of the outputs.
    pub name: String,
    pub description: String,
    /// Root of every random stream.
    pub seed: u64,
    /// The run ends here at the latest; what is unfinished then fails it.
    pub until: Instant,
    /// Drops on classes with PFC do not fail the run.
    pub allow_lossless_drops: bool,
    /// Node ids 0, 1, …: NICs in file order.
    pub nics: Vec<NicPlan>,
    /// The node ids behind the NICs': switches in file order.
    pub switches: Vec<SwitchPlan>,
    pub links: Vec<LinkPlan>,
    pub queue_pairs: Vec<QueuePairPlan>,
    /// In file order; message numbers follow it.
    pub posts: Vec<PostPlan>,
    /// In file order, which is the order of their turns in one instant.
    pub applications: Vec<ApplicationPlan>,
    /// In file order; [`RuleId`](crate::base::RuleId)s follow it.
    pub faults: Vec<FaultPlan>,
    /// What has to hold of the run, in file order.
    pub expectations: Vec<Expectation>,
    /// Which records are written, and how often.
    pub records: Records,
}

/// What the specification's global parameters say about records.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Records {
    /// NDStatsReportInterval: between rows of nd-stats, roce-transport-stats and ecn-pfc-stats. Never zero.
    pub nd_stats_interval: Span,
    /// EnableRoceTransportStats.
    pub roce_transport_stats: bool,
    /// EnableNetworkBufferStatsReporting.
    pub net_buff_stats: bool,
    /// NetworkBufferStatsReportingInterval. Never zero.
    pub net_buff_stats_interval: Span,
    /// NICs whose pools take part in net-buff-stats (EnableBufferStats), in the order of their ids.
    pub net_buff_stats_nics: Vec<NodeId>,
}

impl Default for Records {
    fn default() -> Self {
        Self {
            nd_stats_interval: Span::from_ms(1),
            roce_transport_stats: true,
            net_buff_stats: false,
            net_buff_stats_interval: Span::from_ms(1),
            net_buff_stats_nics: Vec::new(),
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NicPlan {
    pub name: String,
    pub address: nic::Address,
    pub config: nic::Config,
}

/// A process of its own that uses a NIC.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ApplicationPlan {
    pub name: String,
    pub node: NodeId,
    /// When it has its first turn.
    pub at: Instant,
    /// Of the queue pairs that it makes.
    pub data_class: Class,
    pub control_class: Class,
}

/// A rack switch, complete with its routes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SwitchPlan {
    pub name: String,
    pub config: switch::Config,
    pub routes: switch::Routes,
    /// `marking_seed` is given, and does not follow the seed of the scenario.
    pub has_own_seed: bool,
    /// `ecmp_salt` is given, and does not follow the seed of the scenario.
    pub has_own_salt: bool,
}

/// A cable between two ports.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LinkPlan {
    pub ends: [LinkEnd; 2],
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LinkEnd {
    pub node: NodeId,
    pub port: PortId,
    /// Propagation delay of what this end sends.
    pub delay: Span,
}

/// A reliable connection between two NICs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QueuePairPlan {
    /// As in the file; `from->to` for an implicit one, which no name in a file can be.
    pub name: String,
    pub ends: [QueuePairEnd; 2],
    /// Made by the first post or packet instead of a connection (model.md T3): both ends have the same number.
    pub implicit: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QueuePairEnd {
    pub node: NodeId,
    pub qpn: Qpn,
    /// PSN of the first data packet that this end sends.
    pub initial_psn: Psn,
    pub data_class: Class,
    pub control_class: Class,
}

/// Work requests posted at one instant, or at regular intervals.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PostPlan {
    pub at: Instant,
    /// Index into [`Plan::queue_pairs`].
    pub queue_pair: usize,
    /// Which of the queue pair's ends posts: 0 or 1.
    pub from_end: usize,
    pub verb: Verb,
    /// Range: up to 2³¹ octets.
    pub size: Octets,
    pub count: u32,
    /// Its octets travel in the WQE. Range: only up to what the largest slot of a ring holds.
    pub inline: bool,
    /// Its WQE travels with the doorbell.
    pub blue_flame: bool,
    /// Between one work request of `count` and the next; zero posts them all at once.
    pub every: Span,
}

/// Something that goes wrong on purpose, on one direction of a link.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FaultPlan {
    pub name: String,
    /// Index into [`Plan::links`].
    pub link: usize,
    /// Which of the link's ends sends: 0 or 1.
    pub from_end: usize,
    /// It may go without ever happening; otherwise that fails the run.
    pub optional: bool,
    pub kind: FaultKind,
}

#[expect(clippy::large_enum_variant, reason = "a scenario has few of them, and they are made once")]
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FaultKind {
    /// Happens to frames that the nodes send.
    Rule(link::Rule),
    /// Frames that nobody sent arrive at the far end, at one instant or at regular intervals.
    Inject { first_at: Instant, every: Span, count: u32, frame: Bytes },
}

impl Plan {
    /// Gives the scenario another seed. Switches with a marking seed or a salt of their own keep it.
    pub fn reseed(&mut self, seed: u64) {
        for switch in &mut self.switches {
            if !switch.has_own_seed {
                switch.config.seed = seed;
            }
            if !switch.has_own_salt {
                switch.config.ecmp_salt = ecmp_salt(seed, &switch.name);
            }
        }
        self.seed = seed;
    }

    /// Names of nodes and ports, for those who write for people.
    pub fn names(&self) -> Names {
        let names = self.nics.iter().map(|nic| &nic.name).chain(self.switches.iter().map(|switch| &switch.name));
        let mut nodes: Vec<_> = names.map(|name| NodeNames { name: name.clone(), ports: Vec::new() }).collect();
        for link in &self.links {
            for (end, peer) in [(link.ends[0], link.ends[1]), (link.ends[1], link.ends[0])] {
                let base = format!("{}:{}", nodes[end.node.index()].name, nodes[peer.node.index()].name);
                let ports = &mut nodes[end.node.index()].ports;
                let twins = ports.iter().filter(|port| port.name.split('#').next() == Some(&base)).count();
                let name = if twins == 0 { base } else { format!("{base}#{}", twins + 1) };
                ports.push(PortNames { name, rate: self.data_rate(end) });
            }
        }
        Names { nodes, rules: self.faults.iter().map(|fault| fault.name.clone()).collect() }
    }

    /// DataRate of a port.
    pub fn data_rate(&self, end: LinkEnd) -> Rate {
        match self.switch_at(end.node) {
            Some(switch) => switch.config.ports[end.port.index()].data_rate,
            None => self.nics[end.node.index()].config.data_rate,
        }
    }

    /// The switch with this node id; `None` if it is a NIC's.
    pub fn switch_at(&self, node: NodeId) -> Option<&SwitchPlan> {
        node.index().checked_sub(self.nics.len()).and_then(|index| self.switches.get(index))
    }

    /// NICs and switches together.
    pub fn node_count(&self) -> usize {
        self.nics.len() + self.switches.len()
    }

    /// Sizes and thresholds of the buffers, for those who write for people.
    pub fn limits(&self) -> Limits {
        let switches = self.switches.iter().map(|switch| switch_limits(&switch.config));
        let mut nodes: Vec<_> = self.nics.iter().map(|nic| nic_limits(&nic.config)).chain(switches).collect();
        for end in self.links.iter().flat_map(|link| &link.ends) {
            let classes = match self.switch_at(end.node) {
                Some(switch) => switch_ingress_limits(&switch.config),
                None => nic_ingress_limits(&self.nics[end.node.index()].config.ingress),
            };
            nodes[end.node.index()].ports.push(classes);
        }
        Limits { nodes }
    }

    /// The two ports of every link, its first end first.
    pub fn link_ends(&self) -> Vec<((NodeId, PortId), (NodeId, PortId))> {
        self.links.iter().map(|link| link.ends.map(|end| (end.node, end.port))).map(|[a, b]| (a, b)).collect()
    }

    /// How many messages all posts together make.
    pub fn message_count(&self) -> u64 {
        self.posts.iter().map(|post| u64::from(post.count)).sum()
    }
}

fn nic_ingress_limits(ingress: &IngressConfig) -> PerClass<Option<IngressLimit>> {
    let mut classes = [None; Class::COUNT];
    for (class, pool) in Pools::new(ingress.total, &ingress.shares).iter() {
        let pfc = ingress.thresholds(class.index(), pool.size());
        classes[class.index()] = Some(IngressLimit { pool: pool.size(), pfc });
    }
    classes
}

/// What one port of a switch may be charged, per class.
fn switch_ingress_limits(config: &switch::Config) -> PerClass<Option<IngressLimit>> {
    let pfc = &config.pfc;
    std::array::from_fn(|class| {
        let thresholds = pfc.enabled[class].then_some((pfc.xoff[class], pfc.xon[class]));
        Some(IngressLimit { pool: pfc.xoff[class] + pfc.headroom[class], pfc: thresholds })
    })
}

/// What a NIC has without its ports.
fn nic_limits(config: &nic::Config) -> NodeLimits {
    let mut egress = [None; Class::COUNT];
    for (class, pool) in Pools::new(config.egress.total, &config.egress.shares).iter() {
        egress[class.index()] = Some(pool.size());
    }
    NodeLimits { egress, ..NodeLimits::default() }
}

/// What a switch has at all of its ports.
fn switch_limits(config: &switch::Config) -> NodeLimits {
    let MarkConfig { kmin, kmax, .. } = config.marking;
    let marking = config.marking_enabled.map(|is_enabled| is_enabled.then_some(MarkLimit { kmin, kmax }));
    NodeLimits { marking, ..NodeLimits::default() }
}
