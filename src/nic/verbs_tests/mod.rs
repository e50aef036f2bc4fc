//! Queue pairs of applications: two NICs, a wire of 100 ns between them, times derived by hand.
//!
//! Defaults throughout: 400 Gb/s, MSS 4096. A full frame of 4,154 B lasts 83,080 ps, an acknowledgement of 126 B 2,520 ps;
//! 80 ns to start, 1,555 ps for a read request, 69,289 ps for 4,096 B over PCIe. So a message of 4,096 B is numbered at
//! 150,844 ps, has left at 233,924 and arrived at 333,924, is delivered at 403,213 and completed at 436,444.

mod any_work;
mod doorbells;
mod errors;
mod not_ready;
mod work;

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;

use super::*;
use crate::base::{NodeId, Psn, RuleId, Span};
use crate::trace::{Account, Counters, Event, Ledger, LinkFate, NodeCounters, PacketKind, Sink, Verdict};
use crate::wire::{Aeth, Endpoints, MacAddr, RocePacket, Syndrome, Verb};

/// The ends, as nodes.
const A: usize = 0;
const B: usize = 1;
const OWN: Domain = Domain(1);
/// A full packet from post to completion.
const ROUND: u64 = 436_444;

fn at(ps: u64) -> Instant {
    Instant::from_ps(ps)
}

fn qpn() -> Qpn {
    Qpn::new(2).unwrap()
}

fn verbs() -> Service {
    Service::Verbs { domain: OWN, min_rnr_timer: 1, rnr_retry: 2, retry: 1 }
}

fn address(end: usize) -> Address {
    let number = end as u8 + 1;
    Address { mac: MacAddr([2, 0, 0, 0, 0, number]), ip: core::net::Ipv4Addr::new(10, 0, 0, number) }
}

/// What happens from outside at an end.
#[derive(Clone, Debug)]
enum Act {
    Input(Input),
    /// A message is posted, and announced at the other end.
    Post(WorkRequest),
    Deregister(u32),
}

/// Which frames the wire loses: told by the sender, and how many frames came before.
type Loses = Box<dyn FnMut(usize, u64) -> bool>;

/// Two NICs with one connection of applications, and everything that happened.
struct Pair {
    nics: [Nic; 2],
    memories: [LocalMemory; 2],
    acts: BTreeMap<(Instant, usize, usize), Act>,
    acted: usize,
    flight: BTreeMap<(Instant, usize, u64), (Bytes, Octets)>,
    frames: u64,
    loses: Loses,
    /// An end whose application closed its queue pair: its peer is told.
    tells_peer: bool,
    now: Instant,
    log: Vec<Event>,
    counters: Counters,
    ledger: Ledger,
}

impl Pair {
    fn new() -> Self {
        Self::with(Config::default(), verbs())
    }

    /// Each end has 64 KiB under rkey 1, all of which may be written, at address 0x1000.
    fn with(config: Config, service: Service) -> Self {
        let nic = |end: usize| {
            let mut nic = Nic::new(config.clone(), address(end));
            nic.connect(Connection {
                qpn: qpn(),
                peer_qpn: qpn(),
                peer_address: address(1 - end),
                initial_psn: Psn::new(0),
                peer_initial_psn: Psn::new(0),
                data_class: Class::DATA,
                control_class: Class::CONTROL,
                service,
            });
            nic
        };
        let mut pair = Self {
            nics: [nic(A), nic(B)],
            memories: [A, B].map(|end| LocalMemory::new((0..65_536_u32).map(|i| (i * 7 + end as u32) as u8).collect())),
            acts: BTreeMap::new(),
            acted: 0,
            flight: BTreeMap::new(),
            frames: 0,
            loses: Box::new(|_, _| false),
            tells_peer: false,
            now: Instant::ZERO,
            log: Vec::new(),
            counters: Counters::new(2),
            ledger: Ledger::default(),
        };
        for end in [A, B] {
            pair.register(end, 1, 65_536, true);
        }
        pair
    }

    fn register(&mut self, end: usize, rkey: u32, size: u64, may_write: bool) {
        let region = SharedRegion {
            domain: OWN,
            key: MemoryKey { address: 0x1000, rkey },
            size: Octets::new(size),
            memory: Arc::new(self.memories[end].clone()),
            offset: 0,
            local_write: may_write,
            remote_write: may_write,
        };
        self.nics[end].memory_mut().register_shared(region).unwrap();
    }

    fn act(&mut self, ps: u64, end: usize, act: Act) {
        self.acts.insert((at(ps), end, self.acted), act);
        self.acted += 1;
    }

    fn post(&mut self, ps: u64, end: usize, work: WorkRequest) {
        self.act(ps, end, Act::Post(work));
    }

    fn receive(&mut self, ps: u64, end: usize, id: u64, size: u64) {
        let receive = Receive { id, pieces: [piece(0, size)].into() };
        self.act(ps, end, Act::Input(Input::PostReceive { qpn: qpn(), receive }));
    }

    fn fail(&mut self, ps: u64, end: usize, cause: FailureCause) {
        self.act(ps, end, Act::Input(Input::FailQueuePair { qpn: qpn(), cause }));
    }

    /// A frame that nobody sent arrives from the other end.
    fn inject(&mut self, ps: u64, end: usize, packet: &RocePacket) {
        let (frame, wire_len) = (packet.emit(), packet.wire_len());
        let (port, rule, headline) = (PORT, RuleId(0), headline(&packet.clone().into()));
        let event = EventKind::FrameInjected { port, rule, packet: headline, frame: frame.clone() };
        self.flight.insert((at(ps), end, u64::MAX - ps), (frame, wire_len));
        self.ledger.record(&Event { at: at(ps), node: NodeId(1 - end as u16), kind: event }).unwrap();
    }

    /// Until nothing happens any more, and the books balance.
    fn run(&mut self) {
        while let Some((moment, end)) = self.next() {
            self.now = moment.at;
            let input = match moment.phase {
                Phase::Arrival => {
                    let (frame, wire_len) = self.flight.pop_first().unwrap().1;
                    Input::Frame { frame, wire_len }
                }
                Phase::Post => match self.acts.pop_first().unwrap().1 {
                    Act::Input(input) => input,
                    Act::Post(work) => {
                        self.nics[1 - end].announce(qpn(), work.message);
                        Input::Post { qpn: qpn(), work }
                    }
                    Act::Deregister(rkey) => {
                        self.nics[end].memory_mut().deregister(rkey);
                        continue;
                    }
                },
                _ => Input::Wake,
            };
            self.handle(end, input);
        }
        for end in [A, B] {
            assert!(self.nics[end].is_quiet());
            let holdings = self.nics[end].holdings();
            self.ledger.hold(Account::EgressFrames, holdings.egress_frames);
            self.ledger.hold(Account::EgressOctets, holdings.egress_octets);
            self.ledger.hold(Account::Segments, holdings.segments);
            self.ledger.hold(Account::ReceivedPayload, holdings.received_payload);
            self.ledger.hold(Account::DeliveredPayload, holdings.partial_payload);
        }
        self.ledger.check().unwrap();
    }

    fn next(&self) -> Option<(Wake, usize)> {
        let wake = |end: usize| self.nics[end].next_wake().map(|wake| (wake, end));
        let outside = |at, phase, end| (Wake { at, phase, unit: 0 }, end);
        let arrival = self.flight.first_key_value().map(|(&(at, end, _), _)| outside(at, Phase::Arrival, end));
        let act = self.acts.first_key_value().map(|(&(at, end, _), _)| outside(at, Phase::Post, end));
        let key = |(wake, end): &(Wake, usize)| (wake.at, wake.phase, *end, wake.unit);
        [wake(A), wake(B), arrival, act].into_iter().flatten().min_by_key(key)
    }

    fn handle(&mut self, end: usize, input: Input) {
        self.nics[end].handle_input(self.now, input);
        while let Some(output) = self.nics[end].poll_output() {
            match output {
                Output::Event(kind) => self.tell(end, kind),
                Output::Transmit(sent) => {
                    let Transmission { port, packet, wire_len, origin, frame } = sent;
                    let transmission = origin.map_or(0, |origin| origin.transmission);
                    let fate = match (self.loses)(end, self.frames) {
                        true => LinkFate::Dropped { rule: RuleId(0) },
                        false => LinkFate::Carried,
                    };
                    if fate == LinkFate::Carried {
                        let arrives = self.now + Span::from_ns(100);
                        self.flight.insert((arrives, 1 - end, self.frames), (frame.clone(), wire_len));
                    }
                    self.frames += 1;
                    let effects = Vec::new();
                    let sent = EventKind::FrameSent { port, packet, wire_len, transmission, fate, effects, frame };
                    self.tell(end, sent);
                }
            }
        }
    }

    fn tell(&mut self, end: usize, kind: EventKind) {
        if let EventKind::QueuePairFailed { cause: FailureCause::Closed, .. } = kind
            && self.tells_peer
        {
            self.fail(self.now.ps() + 1_000_000, 1 - end, FailureCause::PeerGone);
        }
        let event = Event { at: self.now, node: NodeId(end as u16), kind };
        self.counters.record(&event).unwrap();
        self.ledger.record(&event).unwrap();
        self.log.push(event);
    }

    /// How messages, receives and the queue pair of an end ended, and when: one line each, in order.
    fn ends(&self, end: usize) -> Vec<String> {
        let of_end = self.log.iter().filter(|event| event.node.index() == end);
        let line = |event: &Event| {
            let text = match event.kind {
                EventKind::MessageCompleted { message, .. } => format!("message {message} completed"),
                EventKind::MessageFailed { message, status, .. } => format!("message {message} {}", status.text()),
                EventKind::MessageDelivered { message, .. } => format!("message {message} delivered"),
                EventKind::DeliveryFailed { message, .. } => format!("message {message} lost"),
                EventKind::ReceiveCompleted { receive, bytes, .. } => format!("receive {receive} {bytes}"),
                EventKind::ReceiveFailed { receive, status, .. } => format!("receive {receive} {}", status.text()),
                EventKind::QueuePairFailed { cause, .. } => format!("error: {}", cause.text()),
                _ => return None,
            };
            Some(format!("{} {text}", event.at.ps()))
        };
        of_end.filter_map(line).collect()
    }

    fn times(&self, mut pick: impl FnMut(&EventKind) -> bool) -> Vec<u64> {
        self.log.iter().filter(|event| pick(&event.kind)).map(|event| event.at.ps()).collect()
    }

    /// What became of the packets of one kind that arrived at an end.
    fn verdicts(&self, end: usize, kind: PacketKind) -> Vec<(u64, Verdict)> {
        let of_end = self.log.iter().filter(|event| event.node.index() == end);
        let verdict = |event: &Event| match event.kind {
            EventKind::FrameReceived { packet, verdict, .. } if packet.kind == kind => Some((event.at.ps(), verdict)),
            _ => None,
        };
        of_end.filter_map(verdict).collect()
    }

    fn counters(&self, end: usize) -> &NodeCounters {
        self.counters.node(NodeId(end as u16))
    }
}

/// The way from one end to the other.
fn flow(from: usize) -> Endpoints {
    let (own, peer) = (address(from), address(1 - from));
    Endpoints { eth_dst: peer.mac, eth_src: own.mac, ip_src: own.ip, ip_dst: peer.ip, udp_src: 0xc000 }
}

/// What B could have answered.
fn answer(psn: u32, syndrome: Syndrome) -> RocePacket {
    RocePacket::answer(&flow(B), Class::CONTROL, qpn(), Psn::new(psn), Aeth { syndrome, msn: 0 })
}

/// Octets of the region at rkey 1.
fn piece(offset: u64, length: u64) -> Piece {
    Piece { key: MemoryKey { address: 0x1000 + offset, rkey: 1 }, length: Octets::new(length) }
}

/// A SEND from the start of the region.
fn send(message: u32, size: u64) -> WorkRequest {
    WorkRequest {
        message: MessageId(message),
        peer: NodeId(1),
        verb: Verb::Send,
        source: Source::Gather([piece(0, size)].into()),
        remote: MemoryKey { address: 0x1000, rkey: 1 },
        immediate: None,
        solicited: false,
        slot: None,
        blue_flame: false,
    }
}

/// A WRITE to the start of the region at the other end.
fn write(message: u32, size: u64) -> WorkRequest {
    WorkRequest { verb: Verb::Write, ..send(message, size) }
}
