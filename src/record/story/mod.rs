//! Hand-made runs of two nodes for the tests of this room.
//!
//! 400 Gb/s, 100 ns of link, everything at its default. A full data frame lasts 83,080 ps, an ACK or NAK 2,520 ps, the
//! PCIe write of a full payload 69,289 ps; the first payload is there at 80,000 + 1,555 + 69,289 = 150,844 ps.

mod any;

use bytes::Bytes;

use super::{Congestion, MessageTable, Outcome, Peaks, Pressure, QueuePairTime, SummaryInput};
use crate::base::{Class, Instant, MessageId, NodeId, Octets, PortId, Psn, Qpn, Rate};
use crate::trace::{
    Counters, DropReason, Event, EventKind, Headline, IngressLimit, Ledger, Limits, LinkFate, Names, NodeLimits,
    NodeNames, PacketKind, PortNames, Queue, RateCause, Sink, Verdict,
};
use crate::wire::{ACK_WIRE_LEN, DATA_OVERHEAD, PFC_WIRE_LEN, Verb};

pub use any::any_events;

pub const A: NodeId = NodeId(0);
pub const B: NodeId = NodeId(1);
pub const PORT: PortId = PortId(0);
pub const LINK: [((NodeId, PortId), (NodeId, PortId)); 1] = [((A, PORT), (B, PORT))];

pub fn names() -> Names {
    Names { nodes: vec![named("a"), named("b")], rules: vec!["fault 1".into()] }
}

/// A node with one port, to the other of the two.
pub fn named(name: &str) -> NodeNames {
    let peer = if name == "a" { "b" } else { "a" };
    NodeNames {
        name: name.into(),
        ports: vec![PortNames { name: format!("{name}:{peer}"), rate: Rate::from_gbps(400) }],
    }
}

/// The sinks of a whole run that a summary is made from.
pub struct Run {
    pub names: Names,
    pub end: Instant,
    table: MessageTable<Vec<u8>>,
    pub counters: Counters,
    ledger: Ledger,
    pub peaks: Peaks,
    pub limits: Limits,
    pub pressure: Pressure,
    pub congestion: Congestion,
    /// Empty: these stories do not tell what the sender waits for.
    pub queue_pairs: Vec<QueuePairTime>,
}

/// The defaults of both buffers.
pub fn limits(node_count: usize) -> Limits {
    let ingress = |pool, xoff, xon| {
        let pfc = Some((Octets::new(xoff), Octets::new(xon)));
        Some(IngressLimit { pool: Octets::new(pool), pfc })
    };
    let mut node = NodeLimits { ports: vec![[None; Class::COUNT]], ..NodeLimits::default() };
    (node.egress[0], node.egress[1]) = (Some(Octets::new(230_400)), Some(Octets::new(25_600)));
    node.ports[0][0] = ingress(3_600_000, 2_880_000, 1_440_000);
    node.ports[0][1] = ingress(400_000, 320_000, 160_000);
    Limits { nodes: vec![node; node_count] }
}

impl Run {
    pub fn of(events: &[Event]) -> Self {
        let names = names();
        let mut run = Self {
            end: events.last().map_or(Instant::ZERO, |event| event.at),
            table: MessageTable::new(Vec::new(), &names).expect("memory takes all octets"),
            counters: Counters::new(names.nodes.len()),
            ledger: Ledger::default(),
            peaks: Peaks::new(&names),
            limits: limits(names.nodes.len()),
            pressure: Pressure::new(&names),
            congestion: Congestion::new(&names),
            queue_pairs: Vec::new(),
            names,
        };
        let mut sinks: Vec<Box<dyn Sink + '_>> = vec![
            Box::new(&mut run.table),
            Box::new(&mut run.counters),
            Box::new(&mut run.ledger),
            Box::new(&mut run.peaks),
            Box::new(&mut run.pressure),
            Box::new(&mut run.congestion),
        ];
        play(events, &mut sinks).expect("memory takes all octets");
        drop(sinks);
        run
    }

    pub fn input<'a>(&'a self, outcome: &'a Outcome) -> SummaryInput<'a> {
        SummaryInput {
            scenario: "story",
            seed: 1,
            version: "0.1.0",
            outcome,
            end: self.end,
            names: &self.names,
            messages: self.table.stats(),
            counters: &self.counters,
            ledger: &self.ledger,
            peaks: &self.peaks,
            limits: &self.limits,
            pressure: &self.pressure,
            congestion: &self.congestion,
            queue_pairs: &self.queue_pairs,
            compared: self.table.stats().totals().completed_bytes,
            has_capture: true,
        }
    }
}

/// A writer with room for so many octets, like a disk that fills up.
pub struct Full(pub usize);

impl std::io::Write for Full {
    fn write(&mut self, octets: &[u8]) -> std::io::Result<usize> {
        if self.0 == 0 {
            return Err(std::io::ErrorKind::StorageFull.into());
        }
        let count = octets.len().min(self.0);
        self.0 -= count;
        Ok(count)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

pub fn play(events: &[Event], sink: &mut dyn Sink) -> std::io::Result<()> {
    events.iter().try_for_each(|event| sink.record(event))
}

pub fn qpn(n: u32) -> Qpn {
    Qpn::new(n).expect("a queue pair number of the story")
}

pub fn at(ps: u64, node: NodeId, kind: EventKind) -> Event {
    Event { at: Instant::from_ps(ps), node, kind }
}

pub fn posted(ps: u64, node: NodeId, message: u32, bytes: u64) -> Event {
    let peer = NodeId(1 - node.0);
    let (message, bytes) = (MessageId(message), Octets::new(bytes));
    at(ps, node, EventKind::MessagePosted { message, peer, qpn: qpn(2), verb: Verb::Write, bytes })
}

pub fn started(ps: u64, node: NodeId, message: u32, first_psn: u32, packets: u32) -> Event {
    let (message, first_psn) = (MessageId(message), Psn::new(first_psn));
    at(ps, node, EventKind::MessageStarted { message, qpn: qpn(2), first_psn, packets })
}

pub fn delivered(ps: u64, node: NodeId, message: u32, bytes: u64) -> Event {
    let (message, bytes) = (MessageId(message), Octets::new(bytes));
    at(ps, node, EventKind::MessageDelivered { message, qpn: qpn(2), bytes })
}

pub fn completed(ps: u64, node: NodeId, message: u32) -> Event {
    at(ps, node, EventKind::MessageCompleted { message: MessageId(message), qpn: qpn(2) })
}

/// The first bit of a data packet of queue pair `n` goes on the line, for the queue pair of the same number at the peer.
pub fn on_line(ps: u64, node: NodeId, n: u32) -> Event {
    let (packet, wire_len, _) = packet(PacketKind::Write, 0);
    let packet = Headline { dest_qpn: qpn(n), ..packet };
    let (queue, rate) = (Queue::Class(packet.class), Rate::from_gbps(400));
    at(ps, node, EventKind::TransmitStarted { port: PORT, queue, packet, qpn: Some(qpn(n)), wire_len, rate })
}

/// The queue of a switch's data class changes.
pub fn depth(ps: u64, node: NodeId, octets: u64, average: f64) -> Event {
    let (class, depth) = (Class::DATA, Octets::new(octets));
    at(ps, node, EventKind::QueueDepthChanged { port: PORT, class, depth, average })
}

/// A switch marks a packet.
pub fn marked(ps: u64, node: NodeId) -> Event {
    let (packet, ..) = packet(PacketKind::Write, 0);
    at(ps, node, EventKind::CeMarked { port: PORT, packet, average: 600_000.0, probability: 0.5 })
}

pub fn rate_changed(ps: u64, node: NodeId, gbps: u64) -> Event {
    let (current, target) = (Rate::from_gbps(gbps), Rate::from_gbps(400));
    at(ps, node, EventKind::RateChanged { qpn: qpn(2), current, target, cause: RateCause::Cut })
}

pub fn numbered(ps: u64, node: NodeId, psn: u32, transmission: u32) -> Event {
    at(ps, node, EventKind::PacketNumbered { qpn: qpn(2), psn: Psn::new(psn), transmission })
}

/// A packet with 4,096 octets of payload if it is data.
fn packet(kind: PacketKind, psn: u32) -> (Headline, Octets, Bytes) {
    let payload = Octets::new(if kind.is_data() { 4_096 } else { 0 });
    let wire_len = match kind {
        _ if kind.is_data() => payload + DATA_OVERHEAD,
        _ if kind.is_pfc() => PFC_WIRE_LEN,
        _ => ACK_WIRE_LEN,
    };
    let class = Class::default();
    // Lengths on the real wire: WRITE FIRST with RETH and ICRC, and an ACK.
    let frame = Bytes::from(vec![psn as u8; if kind.is_data() { 4_170 } else { 62 }]);
    (Headline { kind, class, dest_qpn: qpn(2), psn: Psn::new(psn), payload }, wire_len, frame)
}

pub fn sent(ps: u64, node: NodeId, kind: PacketKind, psn: u32, transmission: u32) -> Event {
    let (packet, wire_len, frame) = packet(kind, psn);
    let (fate, effects) = (LinkFate::Carried, Vec::new());
    at(ps, node, EventKind::FrameSent { port: PORT, packet, wire_len, transmission, fate, effects, frame })
}

pub fn received(ps: u64, node: NodeId, kind: PacketKind, psn: u32, verdict: Verdict) -> Event {
    let (packet, wire_len, frame) = packet(kind, psn);
    let occupancy = if verdict == Verdict::Accepted { wire_len - crate::wire::FRAMING } else { Octets::ZERO };
    at(ps, node, EventKind::FrameReceived { port: PORT, packet, wire_len, occupancy, verdict, frame })
}

/// A WRITE of 8,192 octets in two packets, acknowledged after the second.
pub fn clean() -> Vec<Event> {
    use PacketKind::{Ack, Write};
    vec![
        posted(0, A, 0, 8_192),
        started(0, A, 0, 0, 2),
        numbered(150_844, A, 0, 1),
        numbered(220_133, A, 1, 1),
        sent(233_924, A, Write, 0, 1),
        sent(317_004, A, Write, 1, 1),
        received(333_924, B, Write, 0, Verdict::Accepted),
        received(417_004, B, Write, 1, Verdict::Accepted),
        sent(419_524, B, Ack, 1, 0),
        delivered(486_293, B, 0, 8_192),
        received(519_524, A, Ack, 1, Verdict::Processed),
        completed(519_524, A, 0),
    ]
}

/// The same, but the ingress pool has no room for the first packet. The NAK it costs is made when the second packet
/// shows the gap, and the sender fetches and sends both again.
pub fn lossy() -> Vec<Event> {
    use PacketKind::{Ack, Nak, Write};
    vec![
        posted(0, A, 0, 8_192),
        started(0, A, 0, 0, 2),
        numbered(150_844, A, 0, 1),
        numbered(220_133, A, 1, 1),
        sent(233_924, A, Write, 0, 1),
        sent(317_004, A, Write, 1, 1),
        received(333_924, B, Write, 0, Verdict::Dropped(DropReason::PoolFull)),
        received(417_004, B, Write, 1, Verdict::Dropped(DropReason::AfterNak)),
        at(417_004, B, EventKind::NakMade { qpn: qpn(2), expected: Psn::new(0), got: Psn::new(1) }),
        sent(419_524, B, Nak, 0, 0),
        received(519_524, A, Nak, 0, Verdict::Processed),
        at(519_524, A, EventKind::Rewound { qpn: qpn(2), to: Psn::new(0), packets: 2 }),
        numbered(670_368, A, 0, 2),
        numbered(739_657, A, 1, 2),
        sent(753_448, A, Write, 0, 2),
        sent(836_528, A, Write, 1, 2),
        received(853_448, B, Write, 0, Verdict::Accepted),
        received(936_528, B, Write, 1, Verdict::Accepted),
        sent(939_048, B, Ack, 1, 0),
        delivered(1_005_817, B, 0, 8_192),
        received(1_039_048, A, Ack, 1, Verdict::Processed),
        completed(1_039_048, A, 0),
    ]
}
