//! What single values of a switch cannot show.
//!
//! * Source: congestion.md §4.3; timing rule 13.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use super::attributes::SwitchSettings;
use super::check::after_pause;
use super::diagnostics::{Diagnostic, Report};
use super::network::Network;
use super::traffic::Traffic;
use crate::base::{Class, Octets};
use crate::port::Scheduling;
use crate::wire::{DATA_OVERHEAD, FRAMING};

const XOFF: &str = "switch.pfc_xoff_threshold";
const XON: &str = "switch.pfc_xon_threshold";
const HEADROOM: &str = "switch.pfc_headroom";
const PFC: &str = "switch.pfc_enable_vector";
const BUFFER: &str = "switch.total_buffer_size";

pub(super) fn all(network: &Network, traffic: &Traffic, report: &mut Report) {
    let ends = || traffic.queue_pairs.iter().flat_map(|queue_pair| queue_pair.plan.ends);
    let used: BTreeSet<Class> = ends().flat_map(|end| [end.data_class, end.control_class]).collect();
    let nics = || network.nodes[..network.nic_count].iter().map(|node| &node.settings.nic);
    let largest = nics().map(|nic| nic.mss + DATA_OVERHEAD).max().unwrap_or_default();
    let mtu = nics().map(|nic| nic.mtu).max().unwrap_or_default();
    for node in network.nic_count..network.nodes.len() {
        let check = Check { network, node, used: &used };
        check.marking(report);
        check.weights(report);
        check.pauses(report);
        check.room(largest, report);
        check.headroom(mtu, report);
        check.total(largest, report);
    }
}

/// Links of one switch may need as many amounts of headroom: so many, the largest, have a warning each.
const NEEDS_MAX: usize = 4;

/// `its links to a, b and 3 others`.
fn links_to(peers: &[&str]) -> String {
    const LISTED: usize = 4;
    let names: Vec<_> = peers.iter().take(LISTED).map(|peer| format!("`{peer}`")).collect();
    match (names.split_last(), peers.len().saturating_sub(LISTED)) {
        (None, _) => "its links".to_owned(),
        (Some((only, [])), _) => format!("its link to {only}"),
        (Some((last, others)), 0) => format!("its links to {} and {last}", others.join(", ")),
        (_, more) => format!("its links to {} and {more} more", names.join(", ")),
    }
}

struct Check<'n> {
    network: &'n Network,
    node: usize,
    /// Classes that some queue pair uses.
    used: &'n BTreeSet<Class>,
}

impl Check<'_> {
    fn switch(&self) -> &SwitchSettings {
        &self.network.nodes[self.node].settings.switch
    }

    fn name(&self) -> &str {
        &self.network.nodes[self.node].name
    }

    /// Where the first of `slots` that the file sets stands, or else the switch.
    fn place(&self, slots: &[&str]) -> Range<usize> {
        self.network.origin(self.node, slots).unwrap_or_else(|| self.network.nodes[self.node].key.clone())
    }

    fn are_sound(&self, slots: &[&str]) -> bool {
        self.network.are_sound(self.node, slots)
    }

    /// Classes in use that this switch sends pauses for.
    fn paused_classes(&self) -> impl Iterator<Item = usize> {
        let enabled = self.switch().config.pfc.enabled;
        self.used.iter().map(|class| class.index()).filter(move |class| enabled[*class])
    }

    fn marking(&self, report: &mut Report) {
        const SLOTS: [&str; 2] = ["switch.ecn.min_threshold", "switch.ecn.max_threshold"];
        let marking = self.switch().config.marking;
        if marking.kmin > marking.kmax && self.are_sound(&SLOTS) {
            report.push(
                Diagnostic::error(
                    self.place(&SLOTS),
                    format!(
                        "`{}` begins to mark at {} but marks everything at {}",
                        self.name(),
                        marking.kmin,
                        marking.kmax
                    ),
                )
                .label("min_threshold is above max_threshold")
                .help("give `min_threshold` at most what `max_threshold` has; equal ones are a step"),
            );
        }
    }

    fn weights(&self, report: &mut Report) {
        const SLOTS: [&str; 2] = ["switch.wrr_queue_weights", "switch.queue_scheduling_type"];
        let config = &self.switch().config;
        if config.scheduling != Scheduling::WeightedRoundRobin || !self.are_sound(&SLOTS) {
            return;
        }
        for class in self.used.iter().map(|class| class.index()).filter(|class| config.weights[*class] == 0) {
            report.push(
                Diagnostic::error(
                    self.place(&SLOTS),
                    format!("class {class} is in use but has weight 0 under WeightedRoundRobin at `{}`", self.name()),
                )
                .label("it would never be served")
                .help(format!("give entry {class} of `wrr_queue_weights` at least 1")),
            );
        }
    }

    fn pauses(&self, report: &mut Report) {
        const QUANTA: [&str; 2] = ["switch.quanta_value", PFC];
        let pfc = &self.switch().config.pfc;
        for class in Class::all().map(Class::index).filter(|class| pfc.enabled[*class]) {
            if pfc.quanta[class] == 0 && self.are_sound(&QUANTA) {
                report.push(
                    Diagnostic::error(
                        self.place(&QUANTA),
                        format!("PFC is enabled for class {class} but its pauses would ask for 0 quanta"),
                    )
                    .label("quanta 0 resumes instead of pausing")
                    .help(format!("give entry {class} of `quanta_value` up to 65535, or disable PFC for the class")),
                );
            }
            let (xoff, xon) = (pfc.xoff[class], pfc.xon[class]);
            if xon >= xoff && self.are_sound(&[XON, XOFF]) {
                report.push(
                    Diagnostic::error(
                        self.place(&[XON, XOFF]),
                        format!("class {class} resumes at {xon} but pauses only above {xoff}"),
                    )
                    .label("Xon is not below Xoff")
                    .help("give `pfc_xon_threshold` less than `pfc_xoff_threshold`"),
                );
            }
        }
    }

    /// Without room for one packet nothing passes.
    fn room(&self, largest: Octets, report: &mut Report) {
        let config = &self.switch().config;
        let charge = largest.saturating_sub(FRAMING);
        let total = config.total_buffer;
        if total < charge && self.are_sound(&[BUFFER]) {
            report.push(
                Diagnostic::error(
                    self.place(&[BUFFER]),
                    format!("`{}` has a buffer of {total}, but one packet needs {charge}", self.name()),
                )
                .label("smaller than one packet")
                .help(format!("give `total_buffer_size` at least \"{}B\"", charge.get())),
            );
        }
        for class in self.used.iter().map(|class| class.index()) {
            let limit = config.pfc.xoff[class] + config.pfc.headroom[class];
            if limit < charge && self.are_sound(&[XOFF, HEADROOM]) {
                report.push(
                    Diagnostic::error(
                        self.place(&[XOFF, HEADROOM]),
                        format!(
                            "a port of `{}` holds {limit} of class {class}, but one packet needs {charge}",
                            self.name()
                        ),
                    )
                    .label("smaller than one packet")
                    .help(
                        "`pfc_xoff_threshold` and `pfc_headroom` together are what a port may hold: raise one of them",
                    ),
                );
            }
        }
    }

    /// What still arrives after a pause has to fit above Xoff.
    fn headroom(&self, mtu: Octets, report: &mut Report) {
        let headroom = &self.switch().config.pfc.headroom;
        if !self.are_sound(&[HEADROOM]) {
            return;
        }
        let mut links: BTreeMap<u64, Vec<&str>> = BTreeMap::new();
        for port in &self.network.nodes[self.node].ports {
            let peer = &self.network.nodes[port.peer].name;
            links.entry(after_pause(self.network, port, mtu)).or_default().push(peer);
        }
        let short = |class: &usize| links.range(headroom[*class].get() + 1..).rev().take(NEEDS_MAX);
        for (class, (need, peers)) in
            self.paused_classes().flat_map(|class| short(&class).map(move |links| (class, links)))
        {
            report.push(
                Diagnostic::warning(
                    self.place(&[HEADROOM, "switch.delay", "switch.data_rate"]),
                    format!(
                        "class {class} has {} of headroom at `{}`, less than {need} B for {}",
                        headroom[class],
                        self.name(),
                        links_to(peers)
                    ),
                )
                .label("pauses may come too late")
                .help(
                    "2 x DataRate x Delay / 8 + 2 x Mtu still arrives after a pause: raise `pfc_headroom`, or packets \
                     are lost",
                ),
            );
        }
    }

    /// The limits of all ports, and what they share.
    fn total(&self, largest: Octets, report: &mut Report) {
        const SLOTS: [&str; 3] = [BUFFER, XOFF, HEADROOM];
        let config = &self.switch().config;
        let ports = self.network.nodes[self.node].ports.len() as u64;
        let per_port: u64 =
            self.paused_classes().map(|class| (config.pfc.xoff[class] + config.pfc.headroom[class]).get()).sum();
        // Sizes were limited when they were read, and so was the number of ports.
        let need = per_port * ports;
        let has_room_for_one = config.total_buffer + FRAMING >= largest;
        if need > config.total_buffer.get() && has_room_for_one && self.are_sound(&SLOTS) {
            report.push(
                Diagnostic::warning(
                    self.place(&SLOTS),
                    format!(
                        "the {ports} ports of `{}` may hold {need} B of paused classes, more than its buffer of {}",
                        self.name(),
                        config.total_buffer
                    ),
                )
                .label("the buffer may fill before pauses work")
                .help("raise `total_buffer_size`, or lower `pfc_xoff_threshold`, or packets may be lost"),
            );
        }
    }
}
