//! Hand-made runs of two nodes for the tests of this room.
//!
//! 400 Gb/s, 100 ns of link, everything at its default. A full data frame lasts 83,080 ps, an ACK or NAK 2,520 ps, the
//! PCIe write of a full payload 69,289 ps; the first payload is there at 80,000 + 1,555 + 69,289 = 150,844 ps.

use bytes::Bytes;
use proptest::prelude::*;

use super::{MessageTable, Outcome, Peaks, Pressure, QueuePairTime, SummaryInput};
use crate::base::{Class, Instant, MessageId, NodeId, Octets, PortId, Psn, Qpn, Rate, Span};
use crate::trace::{
    Counters, DropReason, Event, EventKind, Headline, IngressLimit, Ledger, Limits, LinkFate, Names, NodeLimits,
    NodeNames, PacketKind, PortNames, Queue, Sink, Verdict,
};
use crate::wire::{ACK_WIRE_LEN, DATA_OVERHEAD, PFC_WIRE_LEN, Verb, WireError};

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
            queue_pairs: Vec::new(),
            names,
        };
        let mut sinks: Vec<Box<dyn Sink + '_>> = vec![
            Box::new(&mut run.table),
            Box::new(&mut run.counters),
            Box::new(&mut run.ledger),
            Box::new(&mut run.peaks),
            Box::new(&mut run.pressure),
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

prop_compose! {
    fn headline()(kind in 0..8_usize, class in 0..8_u8, qpn in 0..=0xff_ffff_u32, psn: u32, payload: u64) -> Headline {
        use PacketKind::{Ack, Cnp, Nak, Other, Send, Write, Xoff, Xon};
        Headline {
            kind: [Send, Write, Ack, Nak, Cnp, Xoff, Xon, Other][kind],
            class: Class::new(class).unwrap(),
            dest_qpn: Qpn::new(qpn).expect("24 bits"),
            psn: Psn::new(psn),
            payload: Octets::new(payload),
        }
    }
}

fn verdict() -> impl Strategy<Value = Verdict> {
    prop_oneof![
        Just(Verdict::Accepted),
        Just(Verdict::Duplicate),
        Just(Verdict::Stale),
        Just(Verdict::Forwarded),
        Just(Verdict::Dropped(DropReason::NoRoute)),
        Just(Verdict::Dropped(DropReason::SwitchBufferFull)),
        Just(Verdict::Dropped(DropReason::PoolFull)),
        Just(Verdict::Dropped(DropReason::Malformed(WireError::BadIcrc { found: 1, computed: 2 }))),
    ]
}

fn kind() -> impl Strategy<Value = EventKind> {
    let (port, class) = (PORT, Class::default());
    prop_oneof![
        (0..3_u32, any::<u32>()).prop_map(|(message, bytes)| EventKind::MessagePosted {
            message: MessageId(message),
            peer: B,
            qpn: qpn(2),
            verb: Verb::Send,
            bytes: Octets::new(bytes.into()),
        }),
        any::<u32>().prop_map(|message| EventKind::MessageCompleted { message: MessageId(message), qpn: qpn(2) }),
        (0..3_u32).prop_map(|message| EventKind::MessageDelivered {
            message: MessageId(message),
            qpn: qpn(2),
            bytes: Octets::ZERO,
        }),
        (any::<u32>(), 0..4_u32).prop_map(|(psn, transmission)| EventKind::PacketNumbered {
            qpn: qpn(2),
            psn: Psn::new(psn),
            transmission,
        }),
        any::<u32>().prop_map(|to| EventKind::Rewound { qpn: qpn(2), to: Psn::new(to), packets: 1 }),
        Just(EventKind::GenerationIdle),
        (headline(), any::<u32>()).prop_map(move |(packet, waiting)| EventKind::FrameQueued {
            port,
            queue: Queue::Class(class),
            packet,
            qpn: Some(qpn(2)),
            waiting,
        }),
        (headline(), any::<u64>()).prop_map(move |(packet, bps)| EventKind::TransmitStarted {
            port,
            queue: Queue::Express,
            packet,
            qpn: packet.kind.is_data().then_some(qpn(2)),
            wire_len: Octets::new(bps),
            rate: Rate::from_bps(bps).unwrap_or(Rate::from_gbps(1)),
        }),
        (headline(), any::<u32>()).prop_map(move |(packet, transmission)| EventKind::FrameSent {
            port,
            packet,
            wire_len: packet.payload,
            transmission,
            fate: LinkFate::Carried,
            effects: Vec::new(),
            frame: Bytes::from_static(b"never written"),
        }),
        (headline(), verdict()).prop_map(move |(packet, verdict)| EventKind::FrameReceived {
            port,
            packet,
            wire_len: packet.payload,
            occupancy: packet.payload,
            verdict,
            frame: Bytes::new(),
        }),
        any::<u32>().prop_map(move |n| EventKind::QueueDepthChanged {
            port,
            class,
            depth: Octets::new(n.into()),
            average: f64::from(n) / 3.0,
        }),
        (headline(), any::<u32>()).prop_map(move |(packet, n)| EventKind::CeMarked {
            port,
            packet,
            average: f64::from(n) / 3.0,
            probability: 1.0 / f64::from(n),
        }),
        any::<u32>().prop_map(move |n| EventKind::IngressReleased {
            port,
            class,
            octets: Octets::new(n.into()),
            occupancy: Octets::ZERO,
        }),
        (any::<u16>(), any::<u64>()).prop_map(move |(quanta, ps)| EventKind::Paused {
            port,
            class,
            quanta,
            duration: Span::from_ps(ps),
        }),
    ]
}

/// Events as no run would give them: in any order, with any numbers.
pub fn any_events() -> impl Strategy<Value = Vec<Event>> {
    let event = (any::<u64>(), 0..2_u16, kind()).prop_map(|(ps, node, kind)| at(ps, NodeId(node), kind));
    prop::collection::vec(event, 0..60)
}
