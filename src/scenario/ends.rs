//! The two ends of a link or of a queue pair, and values that may differ between them.

use std::ops::Range;

use toml::de::DeValue;

use super::diagnostics::{Diagnostic, Report};
use super::document::{Entry, Table, kind, shortened};
use super::network::{Ends, Network};
use super::values;

impl Network {
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

    /// Like [`Network::ends`], of NICs.
    pub(super) fn nic_ends(&self, table: &mut Table<'_>, report: &mut Report) -> Option<Ends> {
        let ends = self.ends(table, report)?;
        let mut are_nics = true;
        for (node, span) in ends.nodes.into_iter().zip(&ends.spans) {
            are_nics &= self.require_nic(node, span.clone(), report);
        }
        are_nics.then_some(ends)
    }

    /// Refuses switches where only a NIC will do.
    pub(super) fn require_nic(&self, node: usize, span: Range<usize>, report: &mut Report) -> bool {
        if self.is_switch(node) {
            report.push(
                Diagnostic::error(span, format!("`{}` is a switch", self.nodes[node].name))
                    .label("not a NIC")
                    .help("queue pairs and posts are between NICs: name the ones behind it"),
            );
        }
        !self.is_switch(node)
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
}
