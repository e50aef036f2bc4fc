//! Who held whom back: pauses received and sent, generation stopped by them, and the PCIe link.

use std::io;

use crate::base::{Class, Instant, NodeId, Octets, PortId, Rate, Span};
use crate::trace::{Event, EventKind, Names, PcieDirection, Sink, UntilEnd};

type ByClass<T> = [T; Class::COUNT];

/// Adds up, by node, port and class, what pauses did.
///
/// Pauses are counted up to the end of the run, which those who ask have to say: the last completion or delivery, or the
/// instant at which an unfinished run was cut off.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pressure {
    nodes: Vec<Node>,
    /// The last completion or delivery so far.
    last_finish: Instant,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Node {
    ports: Vec<Port>,
    /// The class whose full egress pool stops generation.
    stopped_by: Option<Class>,
    stopped_since: Option<Instant>,
    stopped_by_pause: ByClass<UntilEnd>,
    pcie: [Option<PcieUse>; 2],
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Port {
    is_paused: ByClass<bool>,
    paused: ByClass<UntilEnd>,
    pauses_ended: ByClass<u64>,
    sent: ByClass<PfcFrames>,
    received: ByClass<PfcFrames>,
}

/// PFC frames that speak of one class.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PfcFrames {
    /// Refreshes included.
    pub xoff: u64,
    /// Needed or not.
    pub xon: u64,
}

/// What crossed a PCIe link in one direction, and how full the buffers at its ends became.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PcieUse {
    pub carried: Octets,
    pub rate: Rate,
    pub tx_header_peak: Octets,
    pub tx_data_peak: Octets,
    pub rx_header_peak: Octets,
    pub rx_data_peak: Octets,
}

impl PcieUse {
    /// How much of the time from 0 to `end` the link was in use.
    ///
    /// * Units: per mille, rounded half up; 0 for no time at all.
    pub fn per_mille(&self, end: Instant) -> u64 {
        let used = u128::from(self.carried.get()) * 8 * 1_000_000_000_000 * 1_000;
        let available = u128::from(self.rate.bps()) * u128::from(end.ps());
        (used + available / 2).checked_div(available).map_or(0, |share| u64::try_from(share).unwrap_or(u64::MAX))
    }
}

impl Pressure {
    pub fn new(names: &Names) -> Self {
        let node = |ports| Node { ports: vec![Port::default(); ports], ..Node::default() };
        let nodes = names.nodes.iter().map(|names| node(names.ports.len())).collect();
        Self { nodes, last_finish: Instant::ZERO }
    }

    /// How long the peer held the class back.
    pub fn paused(&self, node: NodeId, port: PortId, class: Class, end: Instant) -> Span {
        self.nodes[node.index()].ports[port.index()].paused[class.index()].until(end)
    }

    /// PFC frames that the port asked for.
    pub fn sent(&self, node: NodeId, port: PortId, class: Class) -> PfcFrames {
        self.nodes[node.index()].ports[port.index()].sent[class.index()]
    }

    /// PFC frames of the peer.
    pub fn received(&self, node: NodeId, port: PortId, class: Class) -> PfcFrames {
        self.nodes[node.index()].ports[port.index()].received[class.index()]
    }

    /// How often the peer held the class back and then no more.
    pub fn pauses_ended(&self, node: NodeId, port: PortId, class: Class) -> u64 {
        self.nodes[node.index()].ports[port.index()].pauses_ended[class.index()]
    }

    /// How long nothing was generated for any queue pair because the egress pool of this class was full and the peer
    /// held the class back (model.md T8).
    pub fn stopped_by_pause(&self, node: NodeId, class: Class, end: Instant) -> Span {
        self.nodes[node.index()].stopped_by_pause[class.index()].until(end)
    }

    /// `None` for nodes without a host.
    pub fn pcie(&self, node: NodeId, direction: PcieDirection) -> Option<PcieUse> {
        self.nodes[node.index()].pcie[direction as usize]
    }
}

impl Sink for Pressure {
    fn record(&mut self, event: &Event) -> io::Result<()> {
        if matches!(event.kind, EventKind::MessageCompleted { .. } | EventKind::MessageDelivered { .. }) {
            self.last_finish = event.at;
        }
        let finish = self.last_finish;
        let (now, node) = (event.at, &mut self.nodes[event.node.index()]);
        match event.kind {
            EventKind::PauseRequested { port, class, .. } => {
                node.ports[port.index()].sent[class.index()].xoff += 1;
            }
            EventKind::ResumeRequested { port, class, .. } => {
                node.ports[port.index()].sent[class.index()].xon += 1;
            }
            EventKind::ResumeReceived { port, class, .. } => {
                node.ports[port.index()].received[class.index()].xon += 1;
            }
            EventKind::Paused { port, class, .. } => {
                node.ports[port.index()].received[class.index()].xoff += 1;
                node.ports[port.index()].is_paused[class.index()] = true;
                node.note_stop(now, finish);
            }
            EventKind::Resumed { port, class, paused, .. } | EventKind::PauseCutOff { port, class, paused } => {
                let port = &mut node.ports[port.index()];
                port.is_paused[class.index()] = false;
                port.paused[class.index()].add(paused, now, finish);
                // A pause that the end of the run cut off did not end.
                port.pauses_ended[class.index()] += u64::from(matches!(event.kind, EventKind::Resumed { .. }));
                node.note_stop(now, finish);
            }
            EventKind::GenerationStopped { class, .. } => {
                node.stopped_by = Some(class);
                node.note_stop(now, finish);
            }
            EventKind::SegmentReserved { .. } if node.stopped_by.is_some() => {
                node.end_stop(now, finish);
                node.stopped_by = None;
            }
            EventKind::PcieCarried {
                direction,
                carried,
                rate,
                tx_header_peak,
                tx_data_peak,
                rx_header_peak,
                rx_data_peak,
            } => {
                let pcie = PcieUse { carried, rate, tx_header_peak, tx_data_peak, rx_header_peak, rx_data_peak };
                node.pcie[direction as usize] = Some(pcie);
            }
            _ => {}
        }
        Ok(())
    }
}

impl Node {
    /// Whether a paused class stops generation may have changed.
    fn note_stop(&mut self, now: Instant, finish: Instant) {
        let Some(class) = self.stopped_by else { return };
        let is_paused = self.ports.iter().any(|port| port.is_paused[class.index()]);
        match (is_paused, self.stopped_since) {
            (true, None) => self.stopped_since = Some(now),
            (false, Some(_)) => self.end_stop(now, finish),
            _ => {}
        }
    }

    fn end_stop(&mut self, now: Instant, finish: Instant) {
        if let (Some(class), Some(since)) = (self.stopped_by, self.stopped_since.take()) {
            self.stopped_by_pause[class.index()].add(now.since(since), now, finish);
        }
    }
}
