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
use super::routes;
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

/// What a topology is made of.
struct Size {
    nics: u64,
    switches: u64,
    links: u64,
}

impl Expansion {
    /// Empty if nothing is asked for; `None` if it was refused.
    pub(super) fn read(root: &mut Table<'_>, report: &mut Report) -> Option<Self> {
        let Some(entry) = root.take("topology") else { return Some(Self::default()) };
        let mut table = Table::read(&entry, "[topology]", report)?;
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
        match (star, leaf_spine) {
            (Some(entry), None) => read_star(&entry, report),
            (None, Some(entry)) => read_leaf_spine(&entry, report),
            _ => None,
        }
    }

    fn new(span: Range<usize>) -> Self {
        Self { span, ..Self::default() }
    }

    fn link(&mut self, one: &str, other: &str) {
        self.links.push([one.to_owned(), other.to_owned()]);
    }
}

impl Size {
    fn star(nics: u64) -> Self {
        Self { nics, switches: 1, links: nics }
    }

    fn leaf_spine(leaves: u64, spines: u64, nics_per_leaf: u64) -> Self {
        Self { nics: leaves * nics_per_leaf, switches: leaves + spines, links: leaves * (nics_per_leaf + spines) }
    }

    fn is_possible(&self) -> bool {
        self.links <= LINKS_MAX && routes::can_be_found(self.nics, self.switches, self.links)
    }
}

fn read_star(entry: &Entry<'_>, report: &mut Report) -> Option<Expansion> {
    let mut table = Table::read(entry, "[topology] star", report)?;
    let nics = count(&mut table, "nics", most(Size::star), report);
    table.finish(|_| None, report);
    let nics = nics?;
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
    let leaves = count(&mut table, "leaves", most(|n| Size::leaf_spine(n, 1, 1)), report);
    let spines = count(&mut table, "spines", most(|n| Size::leaf_spine(1, n, 1)), report);
    let nics_per_leaf = count(&mut table, "nics_per_leaf", most(|n| Size::leaf_spine(1, 1, n)), report);
    table.finish(|_| None, report);
    let (leaves, spines, nics_per_leaf) = (leaves?, spines?, nics_per_leaf?);
    let size = Size::leaf_spine(leaves, spines, nics_per_leaf);
    if !size.is_possible() {
        let Size { nics, switches, links } = size;
        let message = format!("this topology has {nics} NICs, {switches} switches and {links} links");
        let help = match most(|n| Size::leaf_spine(leaves, spines, n)) {
            0 => "there are too many leaves and spines even with one NIC per leaf: have fewer of them".to_owned(),
            most => format!("with so many leaves and spines, nics_per_leaf can be {most} at most"),
        };
        report.push(Diagnostic::error(entry.value.span(), message).label("too large").help(help));
        return None;
    }
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

/// The largest number with which a topology is possible; 0 if there is none.
fn most(size: impl Fn(u64) -> Size) -> u64 {
    (1..=COUNT_MAX).rev().find(|&number| size(number).is_possible()).unwrap_or(0)
}

fn count(table: &mut Table<'_>, key: &'static str, most: u64, report: &mut Report) -> Option<u64> {
    let help = format!("say how many: {key} = 4");
    let entry = table.require(key, &help, report)?;
    values::whole(&entry, 1, most, report)
}
