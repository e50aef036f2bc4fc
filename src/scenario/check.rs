//! What single values cannot show: attributes that contradict each other, and queue pairs that could never work.
//!
//! * Source: model.md §2.1, start-up refusals.

use std::collections::BTreeMap;
use std::ops::Range;

use super::check_switch;
use super::diagnostics::{Diagnostic, Report};
use super::network::{Network, Port};
use super::plan::QueuePairEnd;
use super::traffic::{QueuePair, Traffic};
use crate::base::{Class, Octets, Rate, Share, Span};
use crate::nic::{CongestionControl, PcieSide};
use crate::port::{PerClass, Scheduling};
use crate::wire::{ACK_WIRE_LEN, DATA_OVERHEAD, FRAMING};

/// What every PCIe transfer of up to 512 octets adds (model.md §2.1).
const TRANSFER_OVERHEAD: u64 = 34;
const TRANSFER_MAX: u64 = 512;

pub(super) fn all(network: &Network, traffic: &Traffic, report: &mut Report) {
    let received = largest_received(network, traffic);
    for node in 0..network.nodes.len() {
        link(network, node, report);
    }
    for (node, received) in received.into_iter().enumerate() {
        let check = Check { network, node };
        check.frame_size(report);
        check.weights(report);
        check.pauses(report);
        check.rates(report);
        check.pcie_buffers(received, report);
        check.headroom(report);
    }
    check_switch::all(network, traffic, report);
    memory(traffic, report);
    for queue_pair in &traffic.queue_pairs {
        // An implicit connection carries data one way only.
        let senders: &[usize] = if queue_pair.plan.implicit { &[0] } else { &[0, 1] };
        for &sender in senders {
            classes(network, queue_pair, sender, report);
            receivable(network, queue_pair, sender, report);
        }
    }
}

/// The MSS of the largest packets that each NIC may receive: those of its queue pairs' other ends, or as large as its
/// own. `None` if that is not known.
fn largest_received(network: &Network, traffic: &Traffic) -> Vec<Option<Octets>> {
    let mut largest: Vec<Option<Option<Octets>>> = vec![None; network.nic_count];
    let mss = |node: usize| network.are_sound(node, &["mss"]).then(|| network.nodes[node].settings.nic.mss);
    for queue_pair in &traffic.queue_pairs {
        let nodes = queue_pair.plan.ends.map(|end| end.node.index());
        for [own, other] in [nodes, [nodes[1], nodes[0]]] {
            let other = mss(other);
            let known = largest[own].get_or_insert(other);
            *known = known.zip(other).map(|(known, other)| known.max(other));
        }
    }
    largest.into_iter().enumerate().map(|(node, largest)| largest.unwrap_or_else(|| mss(node))).collect()
}

/// More than this is worth a word: it is a good part of what small machines have.
const MEMORY_REMARKED: Octets = Octets::new(1 << 30);

/// What messages under way may take of this machine's memory: each direction of each queue pair receives one at a time.
fn memory(traffic: &Traffic, report: &mut Report) {
    let mut largest: BTreeMap<(usize, usize), Octets> = BTreeMap::new();
    for post in &traffic.posts {
        let size = largest.entry((post.queue_pair, post.from_end)).or_default();
        *size = post.size.max(*size);
    }
    let sum: Octets = largest.values().copied().sum();
    let Some((&(most, _), _)) = largest.iter().max_by_key(|(_, size)| **size) else { return };
    if sum <= MEMORY_REMARKED {
        return;
    }
    report.push(
        Diagnostic::warning(
            traffic.queue_pairs[most].span.clone(),
            format!("messages under way at once may take {} MiB of this machine's memory", sum.get() >> 20),
        )
        .label("the largest are this queue pair's")
        .help("what has arrived of a message is kept until all of it has, to be compared; smaller messages take less"),
    );
}

/// Whoever uses a node without a link is refused; nobody may be using it yet.
fn link(network: &Network, node: usize, report: &mut Report) {
    if network.has_link(node) {
        return;
    }
    let node = &network.nodes[node];
    report.push(
        Diagnostic::warning(node.key.clone(), format!("`{}` has no link", node.name))
            .label("on its own")
            .help("join it to another node under [[links]], or remove it"),
    );
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

    /// A floor above the line rate would speed up whom it should slow down.
    fn rates(&self, report: &mut Report) {
        let nic = self.nic();
        let congestion = &nic.congestion;
        let floors = [
            ("dcqcn_paper.minimum_rate", congestion.dcqcn_paper.minimum_rate, CongestionControl::DcqcnPaper),
            ("dcqcn_nvidia.rpg_min_rate", Some(congestion.dcqcn_nvidia.minimum_rate), CongestionControl::DcqcnNvidia),
        ];
        for (slot, floor, control) in floors {
            let Some(floor) = floor.filter(|floor| *floor > nic.data_rate && congestion.control == control) else {
                continue;
            };
            if self.are_sound(&[slot, "data_rate"]) {
                let name = &self.network.nodes[self.node].name;
                report.push(
                    Diagnostic::error(
                        self.place(&[slot]),
                        format!("the floor of {floor} is above the data rate of `{name}`, {}", nic.data_rate),
                    )
                    .label("above the line rate")
                    .help("a congested queue pair keeps at least this rate: write less than the data rate"),
                );
            }
        }
    }

    /// Each side holds at least one packet of what passes it (timing rule 32).
    fn pcie_buffers(&self, received: Option<Octets>, report: &mut Report) {
        let nic = self.nic();
        let sent = nic.mss;
        let Some(received) = received.filter(|_| self.are_sound(&["mss"])) else { return };
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
        let Some(port) = self.network.nodes[self.node].ports.first() else { return };
        if !self.are_sound(&SLOTS) {
            return;
        }
        let need = after_pause(self.network, port, nic.mtu);
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

/// What still arrives at a port after it has asked for a pause: 2 × DataRate × Delay ÷ 8 + 2 × Mtu (model.md §1), with
/// the delays of both directions.
pub(super) fn after_pause(network: &Network, port: &Port, mtu: Octets) -> u64 {
    let back = network.nodes[port.peer].ports[port.peer_port].delay;
    in_flight(port.data_rate, port.delay + back).saturating_add(2 * mtu.get())
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

/// What one end sends is no longer than the other end's Mtu allows.
fn receivable(network: &Network, queue_pair: &QueuePair, sender: usize, report: &mut Report) {
    let [from, to] = [sender, 1 - sender].map(|end| queue_pair.plan.ends[end].node.index());
    let (mss, mtu) = (network.nodes[from].settings.nic.mss, network.nodes[to].settings.nic.mtu);
    let are_sound = network.are_sound(from, &["mss", "mtu"]) && network.are_sound(to, &["mtu"]);
    // A sender's own Mtu is checked where the sender is.
    if mss + DATA_OVERHEAD < mtu || mss + DATA_OVERHEAD >= network.nodes[from].settings.nic.mtu || !are_sound {
        return;
    }
    let [from_name, to_name] = [from, to].map(|node| &network.nodes[node].name);
    report.push(
        Diagnostic::error(
            network.origin(to, &["mtu"]).unwrap_or_else(|| queue_pair.span.clone()),
            format!("packets of `{from_name}` have {}, but `{to_name}` has an Mtu of {mtu}", mss + DATA_OVERHEAD),
        )
        .label("too small for what it receives")
        .help(format!("give `{to_name}` a larger `mtu`, or `{from_name}` a smaller `mss`")),
    );
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
