//! Nodes and links: who there is, with which attributes, and who is joined to whom.

use core::net::Ipv4Addr;
use std::collections::BTreeMap;
use std::ops::Range;

use toml::de::DeValue;

use super::attributes::{self, Settings};
use super::components;
use super::diagnostics::{Diagnostic, Report};
use super::document::{Entry, Table, kind, nearest, shortened, tables};
use super::settings::{Origins, apply};
use super::values;
use crate::base::{NodeId, PortId, Span};
use crate::nic::Address;
use crate::scenario::{LinkEnd, LinkPlan};
use crate::wire::MacAddr;

/// As many as IPv4 addresses 10.0.H.L have numbers, without the last.
pub(super) const NODES_MAX: usize = 65_534;
/// A name of an interface of Linux has at most 15 octets.
const NODE_NAME_MAX: usize = 15;

pub(super) struct Network {
    /// In file order; the index is the node's id.
    pub nodes: Vec<Node>,
    pub links: Vec<LinkPlan>,
    /// Some link could not be read: whether two nodes are joined is not known then.
    links_refused: bool,
    /// Where the values of `[nic]` stand.
    defaults: Origins,
    by_name: BTreeMap<String, usize>,
}

pub(super) struct Node {
    pub name: String,
    /// Where the file mentions it first.
    pub key: Range<usize>,
    pub settings: Settings,
    origins: Origins,
    /// Index of its link, and where the link names it.
    link: Option<(usize, Range<usize>)>,
}

/// Two different nodes, and where the file names them.
pub(super) struct Ends {
    pub nodes: [usize; 2],
    pub spans: [Range<usize>; 2],
    pub span: Range<usize>,
}

impl Network {
    pub(super) fn read(root: &mut Table<'_>, report: &mut Report) -> Self {
        let mut settings = Settings::default();
        let nic = root.take("nic").and_then(|entry| Table::read(&entry, "[nic]", report));
        let defaults = nic.map(|table| apply(&components::NIC, table, "", &mut settings, report)).unwrap_or_default();
        let mut network =
            Self { nodes: Vec::new(), links: Vec::new(), links_refused: false, defaults, by_name: BTreeMap::new() };
        network.read_nodes(root, &settings, report);
        let links = root.take("links").map(|entry| tables(&entry, report)).unwrap_or_default();
        for table in links {
            if network.read_link(table, report).is_none() {
                network.links_refused = true;
            }
        }
        network
    }

    fn read_nodes(&mut self, root: &mut Table<'_>, settings: &Settings, report: &mut Report) {
        let help = "name at least one node, for example [nodes.a]";
        let Some(entry) = root.require("nodes", help, report) else { return };
        let Some(table) = Table::read(&entry, "[nodes.NAME]", report) else { return };
        let entries = table.entries();
        if entries.is_empty() {
            report.push(Diagnostic::error(entry.key, "the scenario has no node").label("nobody").help(help));
        }
        if let Some(first) = entries.get(NODES_MAX) {
            report.push(
                Diagnostic::error(first.key.clone(), format!("the scenario has more than {NODES_MAX} nodes"))
                    .label("one too many")
                    .help("their numbers are the low sixteen bits of their addresses; remove some"),
            );
        }
        for entry in entries.iter().take(NODES_MAX) {
            self.read_node(entry, settings, report);
        }
    }

    /// Also enters nodes with a wrong name, so that those who refer to them are not refused as well.
    fn read_node(&mut self, entry: &Entry<'_>, settings: &Settings, report: &mut Report) {
        values::identifier("a node", entry.name, entry.key.clone(), NODE_NAME_MAX, false, report);
        let mut node = Node {
            name: entry.name.to_owned(),
            key: entry.key.clone(),
            settings: settings.clone(),
            origins: Origins::default(),
            link: None,
        };
        let header = format!("nodes.{}", shortened(entry.name));
        if let Some(mut table) = Table::read(entry, format!("[{header}]"), report) {
            let nic = table.take("nic").and_then(|entry| Table::read(&entry, format!("[{header}.nic]"), report));
            if let Some(nic) = nic {
                node.origins = apply(&components::NIC, nic, &format!("{header}."), &mut node.settings, report);
            }
            table.finish(|name| attributes::table_of(name, &format!("{header}.")), report);
        }
        self.by_name.insert(node.name.clone(), self.nodes.len());
        self.nodes.push(node);
    }

    /// `None` if the link was refused.
    fn read_link(&mut self, mut table: Table<'_>, report: &mut Report) -> Option<()> {
        let ends = self.ends(&mut table, report);
        let delay = table.take("delay");
        let delays = match (&delay, &ends) {
            (Some(entry), Some(ends)) => self.per_end(entry, ends.nodes, values::span, report),
            _ => [None, None],
        };
        table.finish(|_| None, report);
        let ends = ends?;
        let taken = self.refuse_second_link(&ends, report);
        let index = self.links.len();
        for (node, span) in ends.nodes.into_iter().zip(&ends.spans) {
            self.nodes[node].link.get_or_insert((index, span.clone()));
        }
        if taken {
            return None;
        }
        self.settle_rate(&ends, report);
        for (node, delay) in ends.nodes.into_iter().zip(delays) {
            if let Some((delay, _)) = delay {
                self.nodes[node].settings.nic.delay = delay;
            }
        }
        let end =
            |node: usize| LinkEnd { node: node_id(node), port: PortId(0), delay: self.nodes[node].settings.nic.delay };
        self.links.push(LinkPlan { ends: ends.nodes.map(end) });
        Some(())
    }

    /// A NIC has one port (NumDownLinks).
    fn refuse_second_link(&self, ends: &Ends, report: &mut Report) -> bool {
        let mut refused = false;
        for (node, span) in ends.nodes.into_iter().zip(&ends.spans) {
            let Some((_, first)) = &self.nodes[node].link else { continue };
            refused = true;
            report.push(
                Diagnostic::error(span.clone(), format!("`{}` already has a link", self.nodes[node].name))
                    .label("a second link")
                    .help(
                        "a NIC has one port; to join more than two nodes a switch is needed, which this version \
                         does not support yet",
                    )
                    .related(first.clone(), "its first link"),
            );
        }
        refused
    }

    /// The lower one of both ends' rates is the rate of both (timing rule 33).
    fn settle_rate(&mut self, ends: &Ends, report: &mut Report) {
        let rates = ends.nodes.map(|node| self.nodes[node].settings.nic.data_rate);
        let lower = rates[0].min(rates[1]);
        if rates[0] != rates[1] {
            let [a, b] = ends.nodes.map(|node| &self.nodes[node].name);
            let message = format!("`{a}` has a data rate of {} and `{b}` one of {}", rates[0], rates[1]);
            report.push(
                Diagnostic::warning(ends.span.clone(), message).label(format!("both ends run at {lower}")).help(
                    "the lower rate holds at both ends, also for pause times; give both the same data_rate to say so",
                ),
            );
        }
        for node in ends.nodes {
            self.nodes[node].settings.nic.data_rate = lower;
        }
    }

    /// The two nodes of `ends = ["a", "b"]`.
    pub(super) fn ends(&self, table: &mut Table<'_>, report: &mut Report) -> Option<Ends> {
        const HELP: &str = "name the nodes at the two ends: ends = [\"a\", \"b\"]";
        let entry = table.require("ends", HELP, report)?;
        let wrong =
            |message: String, label: &str| Diagnostic::error(entry.value.span(), message).label(label).help(HELP);
        let DeValue::Array(list) = entry.value.get_ref() else {
            report.push(wrong(format!("`ends` is {}, not an array", kind(entry.value.get_ref())), "not an array"));
            return None;
        };
        let [first, second] = &list[..] else {
            report.push(wrong(format!("`ends` names {} nodes; there are two ends", list.len()), "two are needed"));
            return None;
        };
        let mut find = |value| {
            let element = Entry { name: "ends", key: entry.key.clone(), value };
            values::string(&element, report).and_then(|name| self.find(name, element.value.span(), report))
        };
        let nodes = [find(first), find(second)];
        let [Some(a), Some(b)] = nodes else { return None };
        if a == b {
            report.push(wrong(format!("both ends are `{}`", self.nodes[a].name), "the same node twice"));
            return None;
        }
        Some(Ends { nodes: [a, b], spans: [first.span(), second.span()], span: entry.value.span() })
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

    /// One value for both ends, `[first, second]` in the order of `ends`, or `{ a = …, b = … }` by the nodes' names.
    pub(super) fn per_end<T: Clone>(
        &self,
        entry: &Entry<'_>,
        nodes: [usize; 2],
        read: impl Fn(&Entry<'_>, &mut Report) -> Option<T>,
        report: &mut Report,
    ) -> [Option<(T, Range<usize>)>; 2] {
        let names = nodes.map(|node| self.nodes[node].name.as_str());
        let help = || {
            format!(
                "write one value for both ends, two in the order of `ends`, or {{ {} = \u{2026}, {} = \u{2026} }}",
                names[0], names[1]
            )
        };
        let read_one = |value, report: &mut Report| {
            let one = Entry { name: entry.name, key: entry.key.clone(), value };
            read(&one, report).map(|read| (read, one.value.span()))
        };
        match entry.value.get_ref() {
            DeValue::Array(list) => {
                let [first, second] = &list[..] else {
                    let message = format!("`{}` has {} values; there are two ends", entry.name, list.len());
                    report.push(Diagnostic::error(entry.value.span(), message).label("two are needed").help(help()));
                    return [None, None];
                };
                [read_one(first, report), read_one(second, report)]
            }
            DeValue::Table(entries) => {
                let mut values = [None, None];
                for by_name in Table::new(entries, entry.key.clone(), entry.name).entries() {
                    match names.iter().position(|name| *name == by_name.name) {
                        Some(end) => values[end] = read_one(by_name.value, report),
                        None => report.push(
                            Diagnostic::error(by_name.key, format!("`{}` is at neither end", shortened(by_name.name)))
                                .label(format!("not `{}` or `{}`", names[0], names[1]))
                                .help(help()),
                        ),
                    }
                }
                values
            }
            _ => {
                let both = read_one(entry.value, report);
                [both.clone(), both]
            }
        }
    }

    /// Whether `a` and `b` are joined, as far as that is known.
    pub(super) fn are_joined(&self, [a, b]: [usize; 2]) -> bool {
        self.links_refused || self.peer(a) == Some(b)
    }

    /// The link that carries what `from` sends to `to`, and which of its ends sends. `None` also if a link was refused.
    pub(super) fn way(&self, from: usize, to: usize) -> Option<(usize, usize)> {
        let (link, _) = self.nodes[from].link.as_ref()?;
        let ends = self.links.get(*link)?.ends.map(|end| end.node.index());
        let from_end = ends.iter().position(|node| *node == from)?;
        (ends[1 - from_end] == to).then_some((*link, from_end))
    }

    /// The node at the other end of the link of `node`.
    pub(super) fn peer(&self, node: usize) -> Option<usize> {
        let (link, _) = self.nodes[node].link.as_ref()?;
        let [a, b] = self.links.get(*link)?.ends.map(|end| end.node.index());
        Some(if a == node { b } else { a })
    }

    /// Whether `node` has a link, as far as that is known.
    pub(super) fn has_link(&self, node: usize) -> bool {
        self.links_refused || self.nodes[node].link.is_some()
    }

    /// Where the first of `slots` that the file sets for `node` stands: in the node's own table before `[nic]`.
    pub(super) fn origin(&self, node: usize, slots: &[&str]) -> Option<Range<usize>> {
        let among = |origins: &Origins| slots.iter().find_map(|slot| origins.span(slot));
        among(&self.nodes[node].origins).or_else(|| among(&self.defaults))
    }

    /// Whether all of `slots` have the values that the file means.
    pub(super) fn are_sound(&self, node: usize, slots: &[&str]) -> bool {
        let own = &self.nodes[node].origins;
        slots.iter().all(|slot| match own.span(slot) {
            Some(_) => own.is_sound(slot),
            None => self.defaults.is_sound(slot),
        })
    }

    pub(super) fn address(&self, node: usize) -> Address {
        address(node)
    }

    /// What this end of a link sends is on its way for so long.
    pub(super) fn delay(&self, node: usize) -> Span {
        self.nodes[node].settings.nic.delay
    }
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
