//! Who posts to whom: one node to another, many to one, one to many, each to its own, or all to a neighbour.

use std::ops::Range;

use super::diagnostics::{Diagnostic, Report};
use super::document::{Entry, Table, shortened};
use super::network::Network;
use super::values;

/// A node, and where the file names it.
pub(super) type Named = (usize, Range<usize>);

const FROM_HELP: &str = "name the node that posts: from = \"a\"";

/// The sender of a post on a queue pair, and the receiver, which may be left out.
pub(super) fn one_sender(
    table: &mut Table<'_>,
    network: &Network,
    report: &mut Report,
) -> (Option<Named>, Option<Option<Named>>) {
    let from = table.require("from", FROM_HELP, report).and_then(|entry| node(&entry, network, report));
    let to = match table.take("to") {
        Some(entry) => node(&entry, network, report).map(Some),
        None => Some(None),
    };
    (from, to)
}

/// Nodes that a post names.
struct Several {
    nodes: Vec<Named>,
    /// Not by a pattern.
    each_by_name: bool,
    span: Range<usize>,
}

/// Senders and receivers of a post without a queue pair.
pub(super) fn pairs(table: &mut Table<'_>, network: &Network, report: &mut Report) -> Option<Vec<[Named; 2]>> {
    let from = table.require("from", FROM_HELP, report).map(|entry| several(&entry, network, report));
    let (to, shift) = (table.take("to"), table.take("shift"));
    if let Some(entry) = shift {
        if let Some(to) = to {
            report.push(
                Diagnostic::error(to.key, "a post has either `to` or `shift`")
                    .label("one too many")
                    .help("`shift` makes receivers of the senders; remove one of the two")
                    .related(entry.key, "the other one"),
            );
            return None;
        }
        return shifted(from??, &entry, report);
    }
    let Some(to) = to else {
        let message = format!("{} says neither `queue_pair` nor `to`", table.name);
        report.push(
            Diagnostic::error(table.span.clone(), message)
                .label("to whom?")
                .help("name a queue pair, or the receiving node: to = \"b\""),
        );
        return None;
    };
    let to = several(&to, network, report);
    let (from, to) = (from??, to?);
    let pairs: Vec<_> = match (&from.nodes[..], &to.nodes[..]) {
        ([one], _) => to.nodes.iter().map(|other| [one.clone(), other.clone()]).collect(),
        (_, [one]) => from.nodes.iter().map(|other| [other.clone(), one.clone()]).collect(),
        (senders, receivers) if senders.len() == receivers.len() => {
            senders.iter().cloned().zip(receivers.iter().cloned()).map(|(from, to)| [from, to]).collect()
        }
        (senders, receivers) => {
            let message = format!("{} nodes cannot post to {} one by one", senders.len(), receivers.len());
            report.push(
                Diagnostic::error(to.span, message)
                    .label("each sender needs a receiver")
                    .help("name one sender, one receiver, or as many of the one as of the other"),
            );
            return None;
        }
    };
    // Who is only meant by a pattern does not mean itself.
    let by_name = from.each_by_name && to.each_by_name;
    let others = pairs.into_iter().filter(|[from, to]| by_name || from.0 != to.0);
    Some(others.collect())
}

/// A permutation: each of the senders posts to the one that stands `shift` places further on, the last ones to the first.
fn shifted(from: Several, entry: &Entry<'_>, report: &mut Report) -> Option<Vec<[Named; 2]>> {
    let count = from.nodes.len();
    let most = (count as u64).saturating_sub(1);
    if most == 0 {
        report.push(
            Diagnostic::error(from.span, "one node alone cannot post to its neighbour")
                .label("name more than one")
                .help("`shift` is for several senders, for example from = \"n*\""),
        );
        return None;
    }
    let shift = values::whole(entry, 1, most, report)? as usize;
    let receiver = |at: usize| from.nodes[(at + shift) % count].clone();
    Some(from.nodes.iter().enumerate().map(|(at, sender)| [sender.clone(), receiver(at)]).collect())
}

/// The NICs of a name, of a pattern that ends in `*`, or of a list of both. Never none.
fn several(entry: &Entry<'_>, network: &Network, report: &mut Report) -> Option<Several> {
    let mut several = Several { nodes: Vec::new(), each_by_name: true, span: entry.value.span() };
    let mut is_sound = true;
    for one in values::each(entry, report) {
        let Some(prefix) = values::string(&one, report).map(|text| text.strip_suffix('*')) else {
            is_sound = false;
            continue;
        };
        let Some(prefix) = prefix else {
            let found = node(&one, network, report);
            is_sound &= found.is_some();
            several.nodes.extend(found);
            continue;
        };
        several.each_by_name = false;
        let nics = (0..network.nic_count).filter(|nic| network.nodes[*nic].name.starts_with(prefix));
        let before = several.nodes.len();
        several.nodes.extend(nics.map(|nic| (nic, one.value.span())));
        if several.nodes.len() == before {
            is_sound = false;
            report.push(
                Diagnostic::error(
                    one.value.span(),
                    format!("no NIC has a name that starts with `{}`", shortened(prefix)),
                )
                .label("nobody")
                .help("write the beginning of their names and a star: \"n*\", or \"*\" for every NIC"),
            );
        }
    }
    (is_sound && !several.nodes.is_empty()).then_some(several)
}

fn node(entry: &Entry<'_>, network: &Network, report: &mut Report) -> Option<Named> {
    let name = values::string(entry, report)?;
    let span = entry.value.span();
    let node = network.find(name, span.clone(), report)?;
    network.require_nic(node, span.clone(), report).then_some((node, span))
}

pub(super) fn refuse_same(name: &str, span: Range<usize>, report: &mut Report) {
    report.push(
        Diagnostic::error(span, format!("`{name}` cannot post to itself"))
            .label("the node that posts")
            .help("name another node in `to`"),
    );
}
