//! Links: who is joined to whom, at which rate, and how long it takes.

use std::ops::Range;

use super::diagnostics::{Diagnostic, Report};
use super::document::{Table, tables};
use super::network::{Ends, Network, Port, node_id};
use super::topology::Expansion;
use super::values;
use crate::base::{PortId, Rate, Span};
use crate::scenario::{LinkEnd, LinkPlan};

/// More would leave no numbers for the timers of a switch's port.
const PORTS_MAX: usize = 1 << 15;

/// Joins what the topology joins, then what the links of the file do.
pub(super) fn read(network: &mut Network, root: &mut Table<'_>, expansion: &Expansion, report: &mut Report) {
    for pair in &expansion.links {
        let nodes = pair.each_ref().map(|name| network.index(name));
        let [Some(a), Some(b)] = nodes else { continue };
        let at = || expansion.span.clone();
        let ends = Ends { nodes: [a, b], spans: [at(), at()], span: at() };
        join(network, &ends, [None, None], [None, None], report);
    }
    let links = root.take("links").map(|entry| tables(&entry, report)).unwrap_or_default();
    for table in links {
        if read_link(network, table, report).is_none() {
            network.links_refused = true;
        }
    }
}

/// `None` if the link was refused.
fn read_link(network: &mut Network, mut table: Table<'_>, report: &mut Report) -> Option<()> {
    let ends = network.ends(&mut table, report);
    let (delay, rate) = (table.take("delay"), table.take("data_rate"));
    let delays = match (&delay, &ends) {
        (Some(entry), Some(ends)) => network.per_end(entry, ends.nodes, values::span, report),
        _ => [None, None],
    };
    let rates = match (&rate, &ends) {
        (Some(entry), Some(ends)) => network.per_end(entry, ends.nodes, values::rate, report),
        _ => [None, None],
    };
    table.finish(|_| None, report);
    let ends = ends?;
    if refuse_ports(network, &ends, report) {
        return None;
    }
    let given = |delay: Option<(Span, _)>| delay.map(|(delay, _): (Span, Range<usize>)| delay);
    let delays = delays.map(given);
    join(network, &ends, delays, rates.map(|rate| rate.map(|(rate, _)| rate)), report);
    Some(())
}

/// A NIC has one port (NumDownLinks), a switch any number within reason.
fn refuse_ports(network: &Network, ends: &Ends, report: &mut Report) -> bool {
    let mut refused = false;
    for (node, span) in ends.nodes.into_iter().zip(&ends.spans) {
        let Some(first) = network.nodes[node].ports.first() else { continue };
        let name = &network.nodes[node].name;
        if !network.is_switch(node) {
            refused = true;
            report.push(
                Diagnostic::error(span.clone(), format!("`{name}` already has a link"))
                    .label("a second link")
                    .help(
                        "a NIC has one port; to join more than two nodes, link each of them to a switch: [switches.s1]",
                    )
                    .related(first.span.clone(), "its first link"),
            );
        } else if network.nodes[node].ports.len() == PORTS_MAX {
            refused = true;
            report.push(
                Diagnostic::error(span.clone(), format!("`{name}` has more than {PORTS_MAX} links"))
                    .label("one too many")
                    .help("spread them over several switches"),
            );
        }
    }
    refused
}

fn join(network: &mut Network, ends: &Ends, delays: [Option<Span>; 2], rates: [Option<Rate>; 2], report: &mut Report) {
    let rate = settle_rate(network, ends, rates, report);
    let delays = settle_delays(network, ends, delays);
    let link = network.links.len();
    let ports = ends.nodes.map(|node| network.nodes[node].ports.len());
    for (end, (own, delay)) in ends.nodes.into_iter().zip(delays).enumerate() {
        let port = Port {
            link,
            from_end: end,
            peer: ends.nodes[1 - end],
            peer_port: ports[1 - end],
            data_rate: rate,
            delay,
            span: ends.spans[end].clone(),
        };
        if !network.is_switch(own) {
            let nic = &mut network.nodes[own].settings.nic;
            (nic.data_rate, nic.delay) = (rate, delay);
        }
        network.nodes[own].ports.push(port);
    }
    let end = |end: usize| LinkEnd { node: node_id(ends.nodes[end]), port: port_id(ports[end]), delay: delays[end] };
    network.links.push(LinkPlan { ends: [end(0), end(1)] });
}

/// The lower one of both ends' rates is the rate of both (timing rule 33).
///
/// Nobody is told of a NIC that is slower than its switch: that is what NICs are.
fn settle_rate(network: &Network, ends: &Ends, given: [Option<Rate>; 2], report: &mut Report) -> Rate {
    let own = |end: usize| {
        let settings = &network.nodes[ends.nodes[end]].settings;
        let own = if network.is_switch(ends.nodes[end]) { settings.switch.data_rate } else { settings.nic.data_rate };
        given[end].unwrap_or(own)
    };
    let rates = [own(0), own(1)];
    let lower = rates[0].min(rates[1]);
    let slower = usize::from(rates[1] == lower);
    let is_usual = !network.is_switch(ends.nodes[slower]) && network.is_switch(ends.nodes[1 - slower]);
    if rates[0] != rates[1] && !is_usual {
        let [a, b] = ends.nodes.map(|node| &network.nodes[node].name);
        let message = format!("`{a}` has a data rate of {} and `{b}` one of {}", rates[0], rates[1]);
        report.push(
            Diagnostic::warning(ends.span.clone(), message).label(format!("both ends run at {lower}")).help(
                "the lower rate holds at both ends, also for pause times; give both the same data_rate to say so",
            ),
        );
    }
    lower
}

/// The delay of what each end sends: the link's own, or the NIC's in both directions, or the sending switch's.
fn settle_delays(network: &Network, ends: &Ends, given: [Option<Span>; 2]) -> [Span; 2] {
    let of_nic = |end: usize| {
        let node = ends.nodes[end];
        (!network.is_switch(node)).then(|| given[end].unwrap_or(network.nodes[node].settings.nic.delay))
    };
    [0, 1].map(|end: usize| {
        let of_switch = network.nodes[ends.nodes[end]].settings.switch.delay;
        given[end].or(of_nic(end)).or(of_nic(1 - end)).unwrap_or(of_switch)
    })
}

/// * Panics: never; a switch has at most [`PORTS_MAX`] ports.
pub(super) fn port_id(index: usize) -> PortId {
    PortId(u16::try_from(index).expect("the number of ports was limited when links were read"))
}
