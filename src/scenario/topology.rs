//! Topologies that many scenarios share, in one line: `[topology]` makes nodes, switches and links with known names.
//!
//! ```text
//! star = { nics = 3 }           leaf_spine = { leaves = 2, spines = 2, nics_per_leaf = 2 }
//!
//!        s1                           spine1   spine2
//!      ╱  │  ╲                         │   ╲ ╱   │
//!    n1   n2   n3                    leaf1     leaf2
//!                                    n1 n2     n3 n4
//! ```
//!
//! The tables `[nodes.n1]` and `[switches.s1]` of a file change what is made here; others add to it.

use std::ops::Range;

use super::diagnostics::{Diagnostic, Report};
use super::document::{Entry, Table};
use super::network::NODES_MAX;
use super::values;

/// More are a slip of the numbers.
const LINKS_MAX: u64 = 100_000;
/// Of NICs at a switch, and of switches of one kind: two of these together stay within the ports of a switch.
const COUNT_MAX: u64 = 10_000;

#[derive(Default)]
pub(super) struct Expansion {
    pub nics: Vec<String>,
    pub switches: Vec<String>,
    /// NICs first at every switch, in their order, then its links to other switches.
    pub links: Vec<[String; 2]>,
    /// Where it is asked for.
    pub span: Range<usize>,
}

impl Expansion {
    pub(super) fn read(root: &mut Table<'_>, report: &mut Report) -> Self {
        let entry = root.take("topology");
        let Some(mut table) = entry.and_then(|entry| Table::read(&entry, "[topology]", report)) else {
            return Self::default();
        };
        let (star, leaf_spine) = (table.take("star"), table.take("leaf_spine"));
        if let (Some(star), Some(leaf_spine)) = (&star, &leaf_spine) {
            let second = if star.key.start < leaf_spine.key.start { leaf_spine } else { star };
            report.push(
                Diagnostic::error(second.key.clone(), "a scenario has one topology")
                    .label("the second one")
                    .help("keep one of the two; nodes, switches and links of your own can add to it"),
            );
        } else if star.is_none() && leaf_spine.is_none() {
            report.push(
                Diagnostic::error(table.span.clone(), "[topology] names no topology")
                    .label("which one?")
                    .help("write star = { nics = 16 } or leaf_spine = { leaves = 4, spines = 2, nics_per_leaf = 4 }"),
            );
        }
        table.finish(|_| None, report);
        let expansion = match (star, leaf_spine) {
            (Some(entry), None) => read_star(&entry, report),
            (None, Some(entry)) => read_leaf_spine(&entry, report),
            _ => None,
        };
        expansion.unwrap_or_default()
    }

    fn new(span: Range<usize>) -> Self {
        Self { span, ..Self::default() }
    }

    fn link(&mut self, one: &str, other: &str) {
        self.links.push([one.to_owned(), other.to_owned()]);
    }
}

fn read_star(entry: &Entry<'_>, report: &mut Report) -> Option<Expansion> {
    let mut table = Table::read(entry, "[topology] star", report)?;
    let nics = count(&mut table, "nics", report);
    table.finish(|_| None, report);
    let nics = nics?;
    fits(entry, nics + 1, nics, report)?;
    let mut star = Expansion::new(entry.key.clone());
    star.switches.push("s1".to_owned());
    for nic in 1..=nics {
        let name = format!("n{nic}");
        star.link(&name, "s1");
        star.nics.push(name);
    }
    Some(star)
}

fn read_leaf_spine(entry: &Entry<'_>, report: &mut Report) -> Option<Expansion> {
    let mut table = Table::read(entry, "[topology] leaf_spine", report)?;
    let [leaves, spines, nics_per_leaf] =
        ["leaves", "spines", "nics_per_leaf"].map(|key| count(&mut table, key, report));
    table.finish(|_| None, report);
    let (leaves, spines, nics_per_leaf) = (leaves?, spines?, nics_per_leaf?);
    fits(entry, leaves * (nics_per_leaf + 1) + spines, leaves * (nics_per_leaf + spines), report)?;
    let mut fabric = Expansion::new(entry.key.clone());
    let spines: Vec<_> = (1..=spines).map(|spine| format!("spine{spine}")).collect();
    for leaf in 1..=leaves {
        let leaf_name = format!("leaf{leaf}");
        for nic in 1..=nics_per_leaf {
            let name = format!("n{}", (leaf - 1) * nics_per_leaf + nic);
            fabric.link(&name, &leaf_name);
            fabric.nics.push(name);
        }
        for spine in &spines {
            fabric.link(&leaf_name, spine);
        }
        fabric.switches.push(leaf_name);
    }
    fabric.switches.extend(spines);
    Some(fabric)
}

fn count(table: &mut Table<'_>, key: &'static str, report: &mut Report) -> Option<u64> {
    let help = format!("say how many: {key} = 4");
    let entry = table.require(key, &help, report)?;
    values::whole(&entry, 1, COUNT_MAX, report)
}

fn fits(entry: &Entry<'_>, nodes: u64, links: u64, report: &mut Report) -> Option<()> {
    if nodes <= NODES_MAX as u64 && links <= LINKS_MAX {
        return Some(());
    }
    report.push(
        Diagnostic::error(entry.value.span(), format!("this topology has {nodes} nodes and {links} links"))
            .label("too large")
            .help(format!("a scenario has at most {NODES_MAX} nodes, and a topology at most {LINKS_MAX} links")),
    );
    None
}
