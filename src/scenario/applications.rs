//! `[[applications]]`: processes of their own that use a NIC of the scenario.
//!
//! ```toml
//! [[applications]]
//! name = "client"       # what it calls itself when it opens the device
//! node = "a"            # whose NIC it uses
//! at = "10us"           # when its first turn comes; 0 unless given
//! ```

use std::collections::BTreeMap;

use super::diagnostics::{Diagnostic, Report};
use super::document::{Table, shortened, tables};
use super::network::{Network, node_id};
use super::plan::ApplicationPlan;
use super::values;
use crate::base::{Instant, Span};

const NAME_MAX: usize = 64;
/// Each has a turn of its own, and the run waits for all of them.
const APPLICATIONS_MAX: usize = 256;

pub(super) fn read(
    root: &mut Table<'_>,
    network: &Network,
    until: Instant,
    report: &mut Report,
) -> Vec<ApplicationPlan> {
    let tables = root.take("applications").map(|entry| tables(&entry, report)).unwrap_or_default();
    let mut applications = Vec::new();
    let mut by_name = BTreeMap::new();
    for (index, mut table) in tables.into_iter().enumerate() {
        let span = table.span.clone();
        if index == APPLICATIONS_MAX {
            report.push(
                Diagnostic::error(span, format!("there are more than {APPLICATIONS_MAX} applications"))
                    .label("one too many")
                    .help("one application can use many queue pairs"),
            );
            break;
        }
        let name = table.require("name", "give it the name by which it opens the device: name = \"client\"", report);
        let name = name.and_then(|entry| {
            let name = values::string(&entry, report)?;
            let span = entry.value.span();
            Some((values::identifier("an application", name, span.clone(), NAME_MAX, true, report)?, span))
        });
        let node = table.require("node", "say whose NIC it uses: node = \"a\"", report);
        let node = node.and_then(|entry| {
            let node = network.find(values::string(&entry, report)?, entry.value.span(), report)?;
            if network.is_switch(node) {
                report.push(
                    Diagnostic::error(entry.value.span(), "a switch has no host that an application could run on")
                        .label("a switch")
                        .help("name a node of [nodes]"),
                );
                return None;
            }
            Some(node)
        });
        let at = table.take("at");
        let starts = at.as_ref().map_or(Some(Span::ZERO), |entry| values::span(entry, report));
        table.finish(|_| None, report);
        if let (Some(at), Some(starts)) = (&at, starts)
            && Instant::ZERO + starts >= until
        {
            report.push(
                Diagnostic::error(at.value.span(), format!("the run ends at {until}, before it has its first turn"))
                    .label("too late")
                    .help("start it earlier, or give `until` in [run] a later time"),
            );
        }
        let (Some((name, name_span)), Some(node), Some(starts)) = (name, node, starts) else { continue };
        if let Some(first) = by_name.insert(name.to_owned(), name_span.clone()) {
            report.push(
                Diagnostic::error(name_span, format!("there are two applications named `{}`", shortened(name)))
                    .label("the second one")
                    .help("give each a name of its own")
                    .related(first, "the first one"),
            );
            continue;
        }
        let settings = &network.nodes[node].settings;
        applications.push(ApplicationPlan {
            name: name.to_owned(),
            node: node_id(node),
            at: Instant::ZERO + starts,
            data_class: settings.data_class,
            control_class: settings.nic.control_class,
        });
    }
    applications
}
