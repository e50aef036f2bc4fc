//! What `summary.json` says about each node.

use serde::Serialize;

use super::super::hw_counters::hw_counters;
use super::super::pressure::PcieUse;
use super::{Map, SummaryInput};
use crate::base::{Class, NodeId, Octets, PortId, Rate, Span};
use crate::trace::{NodeCounters, PcieDirection, PortNames};

#[derive(Serialize)]
pub(super) struct Node<'a> {
    node: &'a str,
    counters: Map<&'static str, u64>,
    hw_counters: Option<Map<String, u64>>,
    /// By class.
    egress_peak_octets: Map<Class, Octets>,
    egress_pool_octets: Map<Class, Octets>,
    /// By the paused class whose full egress pool did it, to all queue pairs.
    generation_stopped_ps: Map<Class, Span>,
    pcie: Map<&'static str, Pcie>,
    /// The same at every port of a switch.
    kmin_octets: Map<Class, Octets>,
    kmax_octets: Map<Class, Octets>,
    ports: Vec<Port<'a>>,
}

#[derive(Serialize)]
struct Pcie {
    rate_bps: Rate,
    octets: Octets,
    use_per_mille: u64,
    tx_header_peak_octets: Octets,
    tx_data_peak_octets: Octets,
    rx_header_peak_octets: Octets,
    rx_data_peak_octets: Octets,
}

#[derive(Serialize)]
struct Port<'a> {
    port: &'a str,
    rate_bps: Rate,
    /// By class.
    ingress_peak_octets: Map<Class, Octets>,
    ingress_pool_octets: Map<Class, Octets>,
    xoff_octets: Map<Class, Octets>,
    xon_octets: Map<Class, Octets>,
    /// What this port asked of its peer, refreshes included, and what its peer asked of it.
    pauses_requested: Map<Class, u64>,
    resumes_requested: Map<Class, u64>,
    pauses_received: Map<Class, u64>,
    resumes_received: Map<Class, u64>,
    /// For how long its peer held it back.
    paused_ps: Map<Class, Span>,
    queue_peak_octets: Map<Class, Octets>,
    average_peak_octets: Map<Class, Octets>,
    ce_marks: Map<Class, u64>,
}

impl<'a> Node<'a> {
    pub(super) fn new(input: &SummaryInput<'a>, node: NodeId, counters: &NodeCounters) -> Self {
        let limits = &input.limits.nodes[node.index()];
        let ports = input.names.nodes[node.index()].ports.iter().zip((0..).map(PortId));
        let pcie = [("to_host", PcieDirection::ToHost), ("from_host", PcieDirection::FromHost)];
        let pcie = pcie.map(|(key, direction)| Some((key, Pcie::new(input, input.pressure.pcie(node, direction)?))));
        Self {
            node: input.names.node(node),
            counters: Map(counters.iter().collect()),
            hw_counters: limits.is_nic().then(|| {
                let is_used = |class: Class| {
                    let has_ingress = limits.ports.iter().any(|classes| classes[class.index()].is_some());
                    has_ingress || limits.egress[class.index()].is_some()
                };
                Map(hw_counters(node, counters, input.pressure, input.end, is_used))
            }),
            egress_peak_octets: by_class(|class| some(input.peaks.egress(node, class))),
            egress_pool_octets: by_class(|class| limits.egress[class.index()]),
            generation_stopped_ps: by_class(|class| some(input.pressure.stopped_by_pause(node, class, input.end))),
            pcie: Map(pcie.into_iter().flatten().collect()),
            kmin_octets: by_class(|class| Some(limits.marking[class.index()]?.kmin)),
            kmax_octets: by_class(|class| Some(limits.marking[class.index()]?.kmax)),
            ports: ports.map(|(names, port)| Port::new(input, names, node, port)).collect(),
        }
    }
}

impl Pcie {
    fn new(input: &SummaryInput<'_>, pcie: PcieUse) -> Self {
        Self {
            rate_bps: pcie.rate,
            octets: pcie.carried,
            use_per_mille: pcie.per_mille(input.end),
            tx_header_peak_octets: pcie.tx_header_peak,
            tx_data_peak_octets: pcie.tx_data_peak,
            rx_header_peak_octets: pcie.rx_header_peak,
            rx_data_peak_octets: pcie.rx_data_peak,
        }
    }
}

impl<'a> Port<'a> {
    fn new(input: &SummaryInput<'a>, names: &'a PortNames, node: NodeId, port: PortId) -> Self {
        let limits = input.limits.nodes[node.index()].ports[port.index()];
        let limit = |class: Class| limits[class.index()];
        let sent = |class| input.pressure.sent(node, port, class);
        let received = |class| input.pressure.received(node, port, class);
        let queue = |class| input.congestion.queues.of(node, port, class);
        Self {
            port: &names.name,
            rate_bps: names.rate,
            ingress_peak_octets: by_class(|class| some(input.peaks.ingress(node, port, class))),
            ingress_pool_octets: by_class(|class| Some(limit(class)?.pool)),
            xoff_octets: by_class(|class| Some(limit(class)?.pfc?.0)),
            xon_octets: by_class(|class| Some(limit(class)?.pfc?.1)),
            pauses_requested: by_class(|class| some(sent(class).xoff)),
            resumes_requested: by_class(|class| some(sent(class).xon)),
            pauses_received: by_class(|class| some(received(class).xoff)),
            resumes_received: by_class(|class| some(received(class).xon)),
            paused_ps: by_class(|class| some(input.pressure.paused(node, port, class, input.end))),
            queue_peak_octets: by_class(|class| some(queue(class).peak)),
            average_peak_octets: by_class(|class| some(queue(class).average_peak)),
            ce_marks: by_class(|class| some(queue(class).marks)),
        }
    }
}

/// The classes that have a value, lowest first.
fn by_class<V>(value: impl Fn(Class) -> Option<V>) -> Map<Class, V> {
    Map(Class::all().filter_map(|class| Some((class, value(class)?))).collect())
}

/// `None` for nothing.
fn some<V: Default + PartialEq>(value: V) -> Option<V> {
    (value != V::default()).then_some(value)
}
