//! What single values cannot show: attributes that contradict each other, and queue pairs that could never work.
//!
//! * Source: model.md §2.1, start-up refusals.

use std::ops::Range;

use super::diagnostics::{Diagnostic, Report};
use super::network::Network;
use super::plan::QueuePairEnd;
use super::traffic::{QueuePair, Traffic};
use crate::base::{Class, Octets, Rate, Share, Span};
use crate::nic::PcieSide;
use crate::port::{PerClass, Scheduling};
use crate::wire::{ACK_WIRE_LEN, DATA_OVERHEAD, FRAMING};

/// What every PCIe transfer of up to 512 octets adds (model.md §2.1).
const TRANSFER_OVERHEAD: u64 = 34;
const TRANSFER_MAX: u64 = 512;

pub(super) fn all(network: &Network, traffic: &Traffic, report: &mut Report) {
    for node in 0..network.nodes.len() {
        let check = Check { network, node };
        check.link(report);
        check.frame_size(report);
        check.weights(report);
        check.pauses(report);
        check.pcie_buffers(report);
        check.headroom(report);
    }
    for queue_pair in &traffic.queue_pairs {
        // An implicit connection carries data one way only.
        let senders: &[usize] = if queue_pair.plan.implicit { &[0] } else { &[0, 1] };
        for &sender in senders {
            classes(network, queue_pair, sender, report);
        }
    }
}

struct Check<'n> {
    network: &'n Network,
    node: usize,
}

impl Check<'_> {
    fn nic(&self) -> &crate::nic::Config {
        &self.network.nodes[self.node].settings.nic
    }

    /// Where the first of `slots` that the file sets stands, or else the node.
    fn place(&self, slots: &[&str]) -> Range<usize> {
        self.network.origin(self.node, slots).unwrap_or_else(|| self.network.nodes[self.node].key.clone())
    }

    fn are_sound(&self, slots: &[&str]) -> bool {
        self.network.are_sound(self.node, slots)
    }

    /// Whoever uses a node without a link is refused; nobody may be using it yet.
    fn link(&self, report: &mut Report) {
        let node = &self.network.nodes[self.node];
        if !self.network.has_link(self.node) {
            report.push(
                Diagnostic::warning(node.key.clone(), format!("`{}` has no link", node.name))
                    .label("on its own")
                    .help("join it to another node under [[links]], or remove it"),
            );
        }
    }

    fn frame_size(&self, report: &mut Report) {
        let (mss, mtu) = (self.nic().mss, self.nic().mtu);
        let frame = mss + DATA_OVERHEAD;
        if frame < mtu || !self.are_sound(&["mss", "mtu"]) {
            return;
        }
        report.push(
            Diagnostic::error(
                self.place(&["mss", "mtu"]),
                format!("a packet of MSS {mss} + {DATA_OVERHEAD} does not stay below the Mtu of {mtu}"),
            )
            .label("too large for the link")
            .help(format!(
                "make `mtu` larger than {frame}, or `mss` smaller than {}",
                mtu.saturating_sub(DATA_OVERHEAD)
            )),
        );
    }

    /// A class of weight 0 would never be served (model.md P7).
    fn weights(&self, report: &mut Report) {
        let nic = self.nic();
        let buffers = [
            ("egress_buffer", nic.egress.scheduling, &nic.egress.shares, &nic.egress.weights),
            ("ingress_buffer", nic.ingress.scheduling, &nic.ingress.shares, &nic.ingress.weights),
        ];
        for (buffer, scheduling, shares, weights) in buffers {
            let slots = ["wrr_queue_weights", "queue_scheduling_type", "pool_allocation_vector"]
                .map(|name| format!("{buffer}.{name}"));
            let slots = slots.each_ref().map(String::as_str);
            if scheduling != Scheduling::WeightedRoundRobin || !self.are_sound(&slots) {
                continue;
            }
            for class in Class::all().map(Class::index).filter(|c| !shares[*c].is_zero() && weights[*c] == 0) {
                report.push(
                    Diagnostic::error(
                        self.place(&slots),
                        format!("class {class} has a pool in `{buffer}` but weight 0 under WeightedRoundRobin"),
                    )
                    .label("it would never be served")
                    .help(format!("give entry {class} of `wrr_queue_weights` at least 1")),
                );
            }
        }
    }

    fn pauses(&self, report: &mut Report) {
        let ingress = &self.nic().ingress;
        for class in Class::all().map(Class::index).filter(|class| ingress.pfc_enabled[*class]) {
            let slots = ["ingress_buffer.quanta_value", "ingress_buffer.pfc_enable_vector"];
            if ingress.quanta[class] == 0 && self.are_sound(&slots) {
                report.push(
                    Diagnostic::error(
                        self.place(&slots),
                        format!("PFC is enabled for class {class} but its pauses would ask for 0 quanta"),
                    )
                    .label("quanta 0 resumes instead of pausing")
                    .help(format!("give entry {class} of `quanta_value` up to 65535, or disable PFC for the class")),
                );
            }
            let slots = ["ingress_buffer.pfc_xon_resume_threshold", "ingress_buffer.pfc_static_xoff_threshold"];
            let (xoff, xon) = (ingress.xoff[class], ingress.xon[class]);
            if xon >= xoff && !ingress.shares[class].is_zero() && self.are_sound(&slots) {
                report.push(
                    Diagnostic::warning(
                        self.place(&slots),
                        format!("class {class} resumes at {xon} of its pool but pauses only at {xoff}"),
                    )
                    .label("Xon is not below Xoff")
                    .help("the first release after a pause ends it, and the next arrival can start it again"),
                );
            }
        }
    }

    /// Each side holds at least one packet of what passes it (timing rule 32).
    fn pcie_buffers(&self, report: &mut Report) {
        let nic = self.nic();
        let sent = nic.mss;
        let peer = self.network.peer(self.node);
        let received = peer.map_or(sent, |peer| self.network.nodes[peer].settings.nic.mss);
        if !self.are_sound(&["mss"]) || peer.is_some_and(|peer| !self.network.are_sound(peer, &["mss"])) {
            return;
        }
        let headers = |payload: Octets| TRANSFER_OVERHEAD * payload.get().div_ceil(TRANSFER_MAX).max(1);
        // A read request takes one header and as much of the data buffer as it has octets.
        let up = (Octets::new(headers(received)), received.max(nic.pcie.read_request_size));
        let down = (Octets::new(headers(sent)), sent);
        let sides: [(&str, &str, &PcieSide, _, _); 2] = [
            ("nic_side", "the NIC side", &nic.pcie.nic_side, up, down),
            ("host_side", "the host side", &nic.pcie.host_side, down, up),
        ];
        for (side, side_name, buffers, transmit, receive) in sides {
            for (name, what, have, need) in [
                ("tx_header_buffer_size", "transmit buffer for headers", buffers.tx_header_buffer, transmit.0),
                ("tx_data_buffer_size", "transmit buffer for data", buffers.tx_data_buffer, transmit.1),
                ("rx_header_buffer_size", "receive buffer for headers", buffers.rx_header_buffer, receive.0),
                ("rx_data_buffer_size", "receive buffer for data", buffers.rx_data_buffer, receive.1),
            ] {
                let slot = format!("pcie.{side}.{name}");
                if have >= need || !self.are_sound(&[&slot, "pcie.read_request_size"]) {
                    continue;
                }
                report.push(
                    Diagnostic::error(
                        self.place(&[&slot, "pcie.read_request_size", "mss"]),
                        format!("{side_name}'s PCIe {what} holds {have}, but one packet needs {need}"),
                    )
                    .label("smaller than one packet")
                    .help(format!("give `{name}` at least \"{}B\"", need.get())),
                );
            }
        }
    }

    /// What still arrives after a pause has to fit above Xoff.
    fn headroom(&self, report: &mut Report) {
        const SLOTS: [&str; 6] = [
            "ingress_buffer.pfc_static_xoff_threshold",
            "ingress_buffer.pool_allocation_vector",
            "ingress_buffer.total_buffer_size",
            "delay",
            "data_rate",
            "mtu",
        ];
        let nic = self.nic();
        let Some(peer) = self.network.peer(self.node) else { return };
        if !self.are_sound(&SLOTS) {
            return;
        }
        let both_ways = self.network.delay(self.node) + self.network.delay(peer);
        let need = in_flight(nic.data_rate, both_ways).saturating_add(2 * nic.mtu.get());
        for class in Class::all().map(Class::index) {
            if !nic.ingress.pfc_enabled[class] || nic.ingress.shares[class].is_zero() {
                continue;
            }
            let pool = pool(&nic.ingress.shares, class, nic.ingress.total);
            let headroom = pool.saturating_sub(nic.ingress.xoff[class].ceil_of(pool));
            if headroom.get() < need {
                report.push(
                    Diagnostic::warning(
                        self.place(&SLOTS),
                        format!("class {class} has {headroom} of headroom above Xoff, less than {need} B"),
                    )
                    .label("pauses may come too late")
                    .help(
                        "2 x DataRate x Delay / 8 + 2 x Mtu still arrives after a pause: lower the class's \
                         `pfc_static_xoff_threshold` or give it a larger pool, or packets are lost",
                    ),
                );
            }
        }
    }
}

/// Octets on the line during `span`, rounded up.
fn in_flight(rate: Rate, span: Span) -> u64 {
    const OCTET_PS: u128 = 8 * 1_000_000_000_000;
    // Both factors have 64 bits.
    let octets = (u128::from(rate.bps()) * u128::from(span.ps())).div_ceil(OCTET_PS);
    u64::try_from(octets).unwrap_or(u64::MAX)
}

fn pool(shares: &PerClass<Share>, class: usize, total: Octets) -> Octets {
    shares[class].floor_of(total)
}

/// Data packets go from the sender to the receiver, control packets back.
#[derive(Clone, Copy)]
enum Kind {
    Data,
    Control,
}

/// A pool that packets of one kind need at one node.
struct Need<'q> {
    kind: Kind,
    class: Class,
    node: usize,
    buffer: &'static str,
    pool: Octets,
    /// Of one packet.
    octets: Octets,
    /// Where the queue pair gives the class.
    given: &'q Option<Range<usize>>,
}

/// The classes of what one end sends, and of what answers it, have the pools they need at both ends.
fn classes(network: &Network, queue_pair: &QueuePair, sender: usize, report: &mut Report) {
    let [from, to] = [sender, 1 - sender].map(|end| &queue_pair.plan.ends[end]);
    let egress = |kind, end: &QueuePairEnd, class: Class, octets, given| {
        let buffer = &network.nodes[end.node.index()].settings.nic.egress;
        let pool = pool(&buffer.shares, class.index(), buffer.total);
        Need { kind, class, node: end.node.index(), buffer: "egress_buffer", pool, octets, given }
    };
    let ingress = |kind, end: &QueuePairEnd, class: Class, octets, given| {
        let buffer = &network.nodes[end.node.index()].settings.nic.ingress;
        let pool = pool(&buffer.shares, class.index(), buffer.total);
        Need { kind, class, node: end.node.index(), buffer: "ingress_buffer", pool, octets, given }
    };
    let packet = network.nodes[from.node.index()].settings.nic.mss + DATA_OVERHEAD;
    let (data, data_given) = (from.data_class, &queue_pair.data_class_spans[sender]);
    let (control, control_given) = (to.control_class, &queue_pair.control_class_spans[1 - sender]);
    for need in [
        egress(Kind::Data, from, data, packet, data_given),
        ingress(Kind::Data, to, data, packet - FRAMING, data_given),
        // Acknowledgements are queued even when their pool is full (model.md T12), but it has to exist.
        egress(Kind::Control, to, control, Octets::new(1), control_given),
        ingress(Kind::Control, from, control, ACK_WIRE_LEN - FRAMING, control_given),
    ] {
        if need.pool < need.octets && network.are_sound(from.node.index(), &["mss"]) {
            need.refuse(network, queue_pair, report);
        }
    }
}

impl Need<'_> {
    fn refuse(&self, network: &Network, queue_pair: &QueuePair, report: &mut Report) {
        let (kind, class_slot) = match self.kind {
            Kind::Data => ("data", "rdma_data_packet_tc"),
            Kind::Control => ("control", "rdma_control_packet_tc"),
        };
        let Self { class, node, buffer, pool, octets, .. } = *self;
        let slots = [format!("{buffer}.pool_allocation_vector"), format!("{buffer}.total_buffer_size")];
        let slots = slots.each_ref().map(String::as_str);
        if !network.are_sound(node, &slots) || !network.are_sound(node, &[class_slot]) {
            return;
        }
        let place = self.given.clone().or_else(|| network.origin(node, &slots));
        let place = place.or_else(|| network.origin(node, &[class_slot, "mss"]));
        let has = if pool.is_zero() { "no pool".to_owned() } else { format!("only {pool}") };
        let name = &network.nodes[node].name;
        report.push(
            Diagnostic::error(
                place.unwrap_or_else(|| queue_pair.span.clone()),
                format!(
                    "{kind} packets of queue pair `{}` have class {class}, which has {has} in the {buffer} of `{name}`",
                    queue_pair.plan.name
                ),
            )
            .label(format!("one packet needs {octets}"))
            .help(format!(
                "choose a class with a large enough pool, or give class {class} a larger one: \
                 `pool_allocation_vector` and `total_buffer_size` in [nodes.{name}.nic.{buffer}]"
            )),
        );
    }
}
