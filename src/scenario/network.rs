//! Nodes: who there is, with which attributes, and who can reach whom.

use core::net::Ipv4Addr;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use super::attributes::{self, Owner, Settings};
use super::components::{self, Component};
use super::diagnostics::{Diagnostic, Report};
use super::document::{Entry, Table, nearest, shortened};
use super::links;
use super::routes::Ways;
use super::settings::{Origins, apply};
use super::topology::Expansion;
use super::values;
use crate::base::{NodeId, PortId, Rate, Rng, Span};
use crate::nic::Address;
use crate::scenario::{LinkPlan, NicPlan, SwitchPlan};
use crate::switch::PortConfig;
use crate::wire::MacAddr;

/// As many as IPv4 addresses 10.0.H.L have numbers, without the last.
const NODES_MAX: usize = 65_534;
/// A name of an interface of Linux has at most 15 octets.
const NODE_NAME_MAX: usize = 15;

pub(super) struct Network {
    /// NICs, then switches, each in file order; the index is the node's id.
    pub nodes: Vec<Node>,
    pub nic_count: usize,
    pub links: Vec<LinkPlan>,
    /// Some link could not be read: whether two nodes are joined is not known then.
    pub(super) links_refused: bool,
    pub(super) ways: Ways,
    /// Where the values of `[nic]` and `[switch]` stand.
    nic_defaults: Origins,
    switch_defaults: Origins,
    by_name: BTreeMap<String, usize>,
}

pub(super) struct Node {
    pub name: String,
    /// Where the file mentions it first, or the topology that makes it.
    pub key: Range<usize>,
    /// Its NIC's or its switch's.
    pub settings: Settings,
    origins: Origins,
    /// In the order of the links; a NIC has at most one.
    pub ports: Vec<Port>,
}

/// One end of a link, seen from its node.
#[derive(Clone, Debug)]
pub(super) struct Port {
    /// Index into [`Network::links`].
    pub link: usize,
    pub from_end: usize,
    pub peer: usize,
    pub peer_port: usize,
    /// The lower one of both ends'.
    pub data_rate: Rate,
    /// Of what this end sends.
    pub delay: Span,
    /// Where the link names the node.
    pub span: Range<usize>,
}

/// Two different nodes, and where the file names them.
pub(super) struct Ends {
    pub nodes: [usize; 2],
    pub spans: [Range<usize>; 2],
    pub span: Range<usize>,
}

/// What tells NICs from switches when nodes are read.
struct Kind {
    /// The table of nodes, and what one of them is called.
    table: &'static str,
    what: &'static str,
    component: &'static Component,
}

const NICS: Kind = Kind { table: "nodes", what: "a node", component: &components::NIC };
const SWITCHES: Kind = Kind { table: "switches", what: "a switch", component: &components::SWITCH };

impl Network {
    /// `None` if the topology was refused: who there is is not known then.
    pub(super) fn read(root: &mut Table<'_>, report: &mut Report) -> Option<Self> {
        let (nic_settings, nic_defaults) = defaults(root, &NICS, Owner::Nics, report);
        let (switch_settings, switch_defaults) = defaults(root, &SWITCHES, Owner::Switches, report);
        let mut network = Self {
            nodes: Vec::new(),
            nic_count: 0,
            links: Vec::new(),
            links_refused: false,
            ways: Ways::default(),
            nic_defaults,
            switch_defaults,
            by_name: BTreeMap::new(),
        };
        let expansion = Expansion::read(root, report)?;
        network.read_nodes(root, &expansion, &nic_settings, report);
        network.read_switches(root, &expansion, &switch_settings, report);
        links::read(&mut network, root, &expansion, report);
        network.ways = Ways::find(&network, report);
        Some(network)
    }

    fn read_nodes(&mut self, root: &mut Table<'_>, expansion: &Expansion, settings: &Settings, report: &mut Report) {
        let help = "name at least one node, for example [nodes.a]";
        let is_made = !expansion.nics.is_empty();
        let entry = if is_made { root.take("nodes") } else { root.require("nodes", help, report) };
        let mut entries = Vec::new();
        if let Some(entry) = entry
            && let Some(table) = Table::read(&entry, "[nodes.NAME]", report)
        {
            entries = table.entries();
            if entries.is_empty() && !is_made {
                report.push(Diagnostic::error(entry.key, "the scenario has no node").label("nobody").help(help));
            }
        }
        self.enter(&NICS, &expansion.nics, &expansion.span, &entries, settings, report);
        self.nic_count = self.nodes.len();
    }

    fn read_switches(&mut self, root: &mut Table<'_>, expansion: &Expansion, settings: &Settings, report: &mut Report) {
        let entry = root.take("switches");
        let table = entry.and_then(|entry| Table::read(&entry, "[switches.NAME]", report));
        let entries = table.map(|table| table.entries()).unwrap_or_default();
        self.enter(&SWITCHES, &expansion.switches, &expansion.span, &entries, settings, report);
    }

    /// Enters what the topology makes, each with its own table if it has one, and then the rest of the tables.
    fn enter(
        &mut self,
        kind: &Kind,
        made: &[String],
        made_at: &Range<usize>,
        entries: &[Entry<'_>],
        settings: &Settings,
        report: &mut Report,
    ) {
        let given: BTreeMap<&str, &Entry<'_>> = entries.iter().map(|entry| (entry.name, entry)).collect();
        for name in made {
            let entry = given.get(name.as_str()).copied();
            let key = entry.map_or(made_at, |entry| &entry.key).clone();
            self.read_node(kind, name, key, entry, settings, report);
        }
        let made: BTreeSet<&str> = made.iter().map(String::as_str).collect();
        for entry in entries.iter().filter(|entry| !made.contains(entry.name)) {
            if self.nodes.len() == NODES_MAX {
                report.push(
                    Diagnostic::error(entry.key.clone(), format!("the scenario has more than {NODES_MAX} nodes"))
                        .label("one too many")
                        .help("their numbers are the low sixteen bits of their addresses; remove some"),
                );
                break;
            }
            self.read_node(kind, entry.name, entry.key.clone(), Some(entry), settings, report);
        }
    }

    /// Also enters nodes with a wrong name, so that those who refer to them are not refused as well.
    fn read_node(
        &mut self,
        kind: &Kind,
        name: &str,
        key: Range<usize>,
        entry: Option<&Entry<'_>>,
        settings: &Settings,
        report: &mut Report,
    ) {
        values::identifier(kind.what, name, key.clone(), NODE_NAME_MAX, false, report);
        let mut node = Node {
            name: name.to_owned(),
            key: key.clone(),
            settings: settings.clone(),
            origins: Origins::default(),
            ports: Vec::new(),
        };
        if let Some(entry) = entry {
            node.origins = own_attributes(kind, entry, &mut node.settings, report);
        }
        if let Some(first) = self.by_name.get(name) {
            let first = self.nodes[*first].key.clone();
            report.push(
                Diagnostic::error(key, format!("there are a NIC and a switch named `{}`", shortened(name)))
                    .label("the second one")
                    .help("links name nodes and switches alike: give each a name of its own")
                    .related(first, "the first one"),
            );
        } else {
            self.by_name.insert(name.to_owned(), self.nodes.len());
        }
        self.nodes.push(node);
    }

    pub(super) fn is_switch(&self, node: usize) -> bool {
        node >= self.nic_count
    }

    pub(super) fn index(&self, name: &str) -> Option<usize> {
        self.by_name.get(name).copied()
    }

    /// The node called `name`, or an error that names the nearest.
    pub(super) fn find(&self, name: &str, span: Range<usize>, report: &mut Report) -> Option<usize> {
        let found = self.index(name);
        if found.is_none() && !report.is_full() {
            let names = || self.nodes.iter().map(|node| node.name.as_str());
            let label = nearest(name, names()).map_or("unknown".to_owned(), |near| format!("did you mean `{near}`?"));
            const LISTED: usize = 20;
            let mut known: Vec<_> = names().take(LISTED).collect();
            known.extend((self.nodes.len() > LISTED).then_some("\u{2026}"));
            report.push(
                Diagnostic::error(span, format!("there is no node `{}`", shortened(name)))
                    .label(label)
                    .help(format!("known nodes: {}", known.join(", "))),
            );
        }
        found
    }

    /// Whether one link joins `a` and `b`, as far as that is known.
    pub(super) fn are_joined(&self, [a, b]: [usize; 2]) -> bool {
        self.links_refused || self.way(a, b).is_some()
    }

    /// Whether what NIC `a` sends can reach NIC `b`, as far as that is known.
    pub(super) fn can_reach(&self, [a, b]: [usize; 2]) -> bool {
        self.links_refused || self.way(a, b).is_some() || self.ways.are_behind_switches(a, b)
    }

    /// The link that carries what `from` sends to `to`, and which of its ends sends: the first of several. `None` also
    /// if a link was refused.
    pub(super) fn way(&self, from: usize, to: usize) -> Option<(usize, usize)> {
        let port = self.nodes[from].ports.iter().find(|port| port.peer == to)?;
        Some((port.link, port.from_end))
    }

    /// Whether `node` has a link, as far as that is known.
    pub(super) fn has_link(&self, node: usize) -> bool {
        self.links_refused || !self.nodes[node].ports.is_empty()
    }

    /// Where the first of `slots` that the file sets for `node` stands: in the node's own table before the defaults.
    pub(super) fn origin(&self, node: usize, slots: &[&str]) -> Option<Range<usize>> {
        let among = |origins: &Origins| slots.iter().find_map(|slot| origins.span(slot));
        among(&self.nodes[node].origins).or_else(|| among(self.defaults(node)))
    }

    /// Whether all of `slots` have the values that the file means.
    pub(super) fn are_sound(&self, node: usize, slots: &[&str]) -> bool {
        let own = &self.nodes[node].origins;
        slots.iter().all(|slot| match own.span(slot) {
            Some(_) => own.is_sound(slot),
            None => self.defaults(node).is_sound(slot),
        })
    }

    fn defaults(&self, node: usize) -> &Origins {
        if self.is_switch(node) { &self.switch_defaults } else { &self.nic_defaults }
    }

    /// Of a switch: that of its first port.
    pub(super) fn address(&self, node: usize) -> Address {
        let address = address(node);
        let mac = if self.is_switch(node) { PortConfig::mac_of(node_id(node), PortId(0)) } else { address.mac };
        Address { mac, ..address }
    }

    /// Everybody, complete.
    pub(super) fn into_plans(self, seed: u64) -> (Vec<NicPlan>, Vec<SwitchPlan>, Vec<LinkPlan>) {
        let mut nodes = self.nodes;
        let switches = nodes.split_off(self.nic_count);
        let nics = nodes.into_iter().enumerate().map(|(index, node)| NicPlan {
            name: node.name,
            address: address(index),
            config: node.settings.nic,
        });
        let switches = switches.into_iter().zip(self.ways.into_routes()).enumerate().map(|(index, (node, routes))| {
            let id = node_id(self.nic_count + index);
            let settings = node.settings.switch;
            let mut config = settings.config;
            let port = |(port, site): (usize, &Port)| PortConfig {
                data_rate: site.data_rate,
                delay: site.delay,
                mac: PortConfig::mac_of(id, links::port_id(port)),
            };
            config.ports = node.ports.iter().enumerate().map(port).collect();
            config.seed = settings.marking_seed.unwrap_or(seed);
            config.ecmp_salt = settings.ecmp_salt.unwrap_or_else(|| ecmp_salt(seed, &node.name));
            let (has_own_seed, has_own_salt) = (settings.marking_seed.is_some(), settings.ecmp_salt.is_some());
            SwitchPlan { name: node.name, config, routes, has_own_seed, has_own_salt }
        });
        (nics.collect(), switches.collect(), self.links)
    }
}

/// What `[nic]` or `[switch]` says.
fn defaults(root: &mut Table<'_>, kind: &Kind, owner: Owner<'_>, report: &mut Report) -> (Settings, Origins) {
    let mut settings = Settings::default();
    let name = kind.component.names[0];
    let table = root.take(name).and_then(|entry| Table::read(&entry, format!("[{name}]"), report));
    let origins = table.map(|table| apply(kind.component, table, owner, &mut settings, report)).unwrap_or_default();
    (settings, origins)
}

/// What the table of one node says. A switch's attributes stand in it, a NIC's in a table of their own.
fn own_attributes(kind: &Kind, entry: &Entry<'_>, settings: &mut Settings, report: &mut Report) -> Origins {
    let name = shortened(entry.name);
    let header = format!("{}.{name}", kind.table);
    let Some(mut table) = Table::read(entry, format!("[{header}]"), report) else { return Origins::default() };
    if std::ptr::eq(kind.component, &components::SWITCH) {
        return apply(kind.component, table, Owner::Switch(&name), settings, report);
    }
    let owner = Owner::Nic(&name);
    let nic = table.take("nic").and_then(|entry| Table::read(&entry, format!("[{header}.nic]"), report));
    let origins = nic.map(|nic| apply(kind.component, nic, owner, settings, report)).unwrap_or_default();
    table.finish(|name| attributes::table_of(name, owner), report);
    origins
}

/// The salt of a switch that is given none: switches of one scenario choose independently of each other.
pub(super) fn ecmp_salt(seed: u64, switch: &str) -> u64 {
    Rng::named(seed, &format!("switch/{switch}/ecmp")).next_u64()
}

/// * Panics: never; there are at most [`NODES_MAX`] nodes.
pub(super) fn node_id(index: usize) -> NodeId {
    NodeId(u16::try_from(index).expect("the number of nodes was limited when they were read"))
}

/// MAC 02:00:00:00:HH:LL and IPv4 10.0.H.L with the node's number, from 1, in the low octets.
pub(super) fn address(index: usize) -> Address {
    let [high, low] = (node_id(index).0 + 1).to_be_bytes();
    Address { mac: MacAddr([2, 0, 0, 0, high, low]), ip: Ipv4Addr::new(10, 0, high, low) }
}
