//! The run itself.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;
use std::sync::Arc;

use bytes::Bytes;

use super::audit::{MessageAudit, registration};
use super::devices::Devices;
use super::injector::{Injected, Injector};
use super::moment::Moment;
use super::verdict::{Violation, Violations};
use super::wiring::{Cable, cables, connection, directions, longest_way, series};
use super::{Applications, ApplicationsError, ForeignFrames, Judged, Mismatch, Wires, WiresError};
use crate::base::{Instant, MessageId, NodeId, Octets, Origin, Phase, PortId, RuleId};
use crate::link::{self, Leg, Passing, RuleReport};
use crate::nic::{self, Domain, Holdings, Input, Nic, Piece, Receive, Source, WorkRequest, headline};
use crate::scenario::Plan;
use crate::scenario::expect::Judge;
use crate::switch::{self, Switch};
use crate::trace::{Account, Counters, Event, EventKind, Headline, Imbalance, Ledger, Sink};
use crate::wire::{self, IcrcCheck, Packet, Verb};
use crate::workload::{Due, Workload};

/// How many inputs are handled between two looks at the outside.
const INPUTS_PER_LOOK: u32 = 4_096;

/// A frame on its way to a port.
#[derive(Debug)]
struct Arrival {
    frame: Bytes,
    wire_len: Octets,
    origin: Option<Origin>,
}

/// Frames in flight, in the order of their arrival.
type Flight = BTreeMap<(Instant, NodeId, PortId, u64), Arrival>;

/// Joins the nodes of a plan over wires.
#[derive(Debug)]
pub struct Engine<'a> {
    pub(super) plan: &'a Plan,
    wires: &'a mut dyn Wires,
    pub(super) nics: Vec<Nic>,
    /// Their node ids follow the NICs'.
    switches: Vec<Switch>,
    /// By node, then port.
    cables: Vec<Vec<Cable>>,
    /// By hop.
    directions: Vec<link::Direction>,
    injector: Injector<'a>,
    workload: Workload,
    pub(super) devices: Devices<'a>,
    pub(super) applications: Option<&'a mut dyn Applications>,
    flight: Flight,
    flights: u64,
    /// Every node's next wake.
    wakes: BTreeSet<Moment>,
    /// The same by node, to take it back.
    wake_of: Vec<Option<Moment>>,
    pub(super) audit: MessageAudit,
    counters: Counters,
    ledger: Ledger,
    violations: Violations,
    judge: Judge<'a>,
    pub(super) now: Instant,
    progress: Progress,
}

/// How far a run has come.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    pub now: Instant,
    /// Payload delivered to hosts.
    pub delivered: Octets,
    /// Payload of all messages of the plan.
    pub total: Octets,
    /// Frames that left a port.
    pub frames: u64,
}

/// What became of a run.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// The last completion or delivery (timing rule 34); where the run was stopped, if it did not finish.
    pub end: Instant,
    /// Somebody stopped it.
    pub interrupted: bool,
    /// Messages posted and not both completed and delivered, and those never posted.
    pub unfinished: Vec<MessageId>,
    /// Messages that ended without being carried out.
    pub failed: Vec<MessageId>,
    /// Applications that were still there when the run ended.
    pub attached: Vec<String>,
    /// Why applications were given up that were still there.
    pub given_up: Vec<String>,
    /// Messages whose octets arrived changed.
    pub mismatches: Vec<Mismatch>,
    /// Octets compared between both ends' memories.
    pub compared: Octets,
    pub progress: Progress,
    pub counters: Counters,
    pub ledger: Ledger,
    pub foreign: ForeignFrames,
    /// Frames dropped although their class has PFC.
    pub violations: Violations,
    /// Every expectation of the plan, in its order.
    pub judged: Vec<Judged>,
    /// What each fault of the plan did, in its order.
    pub faults: Vec<RuleReport>,
}

/// Why a run could not be carried through.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    #[error(transparent)]
    Wires(#[from] WiresError),
    #[error(transparent)]
    Applications(#[from] ApplicationsError),
    #[error("an output could not be written: {0}")]
    Record(#[from] std::io::Error),
    #[error("this machine has too little memory left for a message of {0} to be received")]
    Memory(Octets),
    #[error("{0}; this is a fault of the emulator, please report it with the scenario")]
    Books(#[from] Imbalance),
}

impl<'a> Engine<'a> {
    pub fn new(plan: &'a Plan, wires: &'a mut dyn Wires) -> Self {
        let mut nics: Vec<_> = plan.nics.iter().map(|nic| Nic::new(nic.config.clone(), nic.address)).collect();
        for queue_pair in plan.queue_pairs.iter().filter(|queue_pair| !queue_pair.implicit) {
            for end in 0..2 {
                nics[queue_pair.ends[end].node.index()].connect(connection(plan, queue_pair, end));
            }
        }
        let switches = plan.switches.iter().map(|s| Switch::new(s.config.clone(), s.routes.clone())).collect();
        let posted: u32 = plan.posts.iter().map(|post| post.count).sum();
        let total = plan.posts.iter().map(|post| Octets::new(post.size.get() * u64::from(post.count))).sum();
        Self {
            plan,
            wires,
            cables: cables(plan),
            directions: directions(plan),
            injector: Injector::new(plan),
            workload: Workload::new(plan.posts.iter().map(|post| series(plan, post)).collect()),
            devices: Devices::new(plan, posted, longest_way(plan)),
            applications: None,
            flight: Flight::new(),
            flights: 0,
            wakes: BTreeSet::new(),
            wake_of: vec![None; plan.node_count()],
            audit: MessageAudit::default(),
            counters: Counters::new(plan.node_count()),
            ledger: Ledger::default(),
            violations: Violations::default(),
            judge: Judge::new(plan),
            now: Instant::ZERO,
            progress: Progress { total, ..Progress::default() },
            nics,
            switches,
        }
    }

    /// The applications of the plan. Without, a run that needs them fails.
    pub fn serve(mut self, applications: &'a mut dyn Applications) -> Self {
        self.applications = Some(applications);
        self
    }

    /// Runs to the end: every message completed and delivered and no frame on its way, or `until`, or `look` says stop.
    ///
    /// * `sink` hears every event; `look` is called now and then with the progress.
    /// * Errors: the wires failed, an output could not be written, or the books do not balance.
    pub fn run(
        mut self,
        sink: &mut dyn Sink,
        look: &mut dyn FnMut(&Progress) -> ControlFlow<()>,
    ) -> Result<Outcome, RunError> {
        let mut inputs = 0_u32;
        let mut interrupted = false;
        let mut stalls = 0;
        while !self.is_over() {
            let Some(moment) = self.next_moment() else {
                // Told twice and still waiting: that is a deadlock.
                stalls += 1;
                if stalls <= 2 && self.devices.stall(self.now) { continue } else { break }
            };
            if moment.at > self.plan.until {
                self.now = self.plan.until;
                break;
            }
            self.now = moment.at;
            match self.step(moment, sink) {
                Err(RunError::Applications(ApplicationsError::Stopped { .. })) => {
                    interrupted = true;
                    break;
                }
                stepped => stepped?,
            }
            if moment.application().is_none() {
                stalls = 0;
            }
            inputs = inputs.wrapping_add(1);
            if inputs.is_multiple_of(INPUTS_PER_LOOK) {
                self.note_departures(sink)?;
                if look(&self.progress).is_break() {
                    interrupted = true;
                    break;
                }
            }
        }
        self.close(interrupted, sink)
    }

    fn is_over(&self) -> bool {
        self.workload.next().is_none()
            && self.audit.is_all_finished()
            && self.flight.is_empty()
            && self.nics.iter().all(Nic::is_quiet)
            && self.switches.iter().all(Switch::is_quiet)
            && self.devices.attached().next().is_none()
    }

    fn next_moment(&self) -> Option<Moment> {
        let wake = self.wakes.first().copied();
        let arrival = self.flight.first_key_value().map(|(&(at, node, port, _), _)| Moment {
            at,
            phase: Phase::Arrival,
            node,
            unit: port.0,
        });
        let post = self.workload.next().map(|due| Moment { at: due.at, phase: Phase::Post, node: due.node, unit: 0 });
        let injection = self.injector.next().map(|due| Moment {
            at: due.at,
            phase: Phase::Arrival,
            node: due.node,
            unit: due.port.0,
        });
        let turn = self.devices.next_turn().map(|(at, node, index)| Moment::turn(at, node, index));
        let ending = self.devices.next_ending().map(|(at, node)| Moment::ending(at, node));
        [wake, arrival, post, injection, turn, ending].into_iter().flatten().min()
    }

    fn step(&mut self, moment: Moment, sink: &mut dyn Sink) -> Result<(), RunError> {
        let node = moment.node;
        match moment.application() {
            Some(application) => return self.turn(application, sink),
            None if moment.is_ending() => {
                self.devices.end_next();
                return self.act(sink);
            }
            None => {}
        }
        // Arrivals and posts come from outside the nodes; all other phases are theirs.
        let frame = if moment.phase == Phase::Arrival { self.arrival(moment, sink)? } else { None };
        match node.index().checked_sub(self.nics.len()) {
            None => self.step_nic(moment, frame, sink)?,
            Some(index) => self.step_switch(index, moment, frame, sink)?,
        }
        self.note_wake(node);
        self.act(sink)
    }

    fn step_nic(&mut self, moment: Moment, frame: Option<Arrival>, sink: &mut dyn Sink) -> Result<(), RunError> {
        let node = moment.node;
        let input = match (moment.phase, frame) {
            (Phase::Arrival, Some(Arrival { frame, wire_len, .. })) => Input::Frame { frame, wire_len },
            (Phase::Post, _) => {
                let due = self.workload.pop().expect("the moment came from a post that is due");
                self.post(due)
            }
            _ => Input::Wake,
        };
        self.handle(node, input, sink)
    }

    pub(super) fn handle(&mut self, node: NodeId, input: Input, sink: &mut dyn Sink) -> Result<(), RunError> {
        self.nics[node.index()].handle_input(self.now, input);
        if let Some(size) = self.nics[node.index()].memory().shortage() {
            return Err(RunError::Memory(size));
        }
        while let Some(output) = self.nics[node.index()].poll_output() {
            match output {
                nic::Output::Event(kind) => self.tell(node, kind, sink)?,
                nic::Output::Transmit(sent) => {
                    let nic::Transmission { port, packet, wire_len, origin, frame } = sent;
                    let passing = Passing { packet, origin, wire_len, frame };
                    self.transmit(node, port, passing, sink)?;
                }
            }
        }
        Ok(())
    }

    fn step_switch(
        &mut self,
        index: usize,
        moment: Moment,
        frame: Option<Arrival>,
        sink: &mut dyn Sink,
    ) -> Result<(), RunError> {
        let input = match frame {
            Some(Arrival { frame, wire_len, origin }) => {
                switch::Input::Frame { port: PortId(moment.unit), frame, wire_len, origin }
            }
            None => switch::Input::Wake,
        };
        self.handle_at_switch(index, input, sink)
    }

    fn handle_at_switch(&mut self, index: usize, input: switch::Input, sink: &mut dyn Sink) -> Result<(), RunError> {
        let node = NodeId((self.nics.len() + index) as u16);
        self.switches[index].handle_input(self.now, input);
        while let Some(output) = self.switches[index].poll_output() {
            match output {
                switch::Output::Event(kind) => self.tell(node, kind, sink)?,
                switch::Output::Transmit(sent) => {
                    let switch::Transmission { port, packet, wire_len, origin, frame } = sent;
                    let passing = Passing { packet, origin, wire_len, frame };
                    self.transmit(node, port, passing, sink)?;
                }
            }
        }
        Ok(())
    }

    /// The frame that arrives now: one in flight, or else one that a fault script injects.
    fn arrival(&mut self, moment: Moment, sink: &mut dyn Sink) -> Result<Option<Arrival>, RunError> {
        let in_flight = self.flight.first_entry().filter(|entry| {
            let &(at, node, port, _) = entry.key();
            (at, node, port.0) == (moment.at, moment.node, moment.unit)
        });
        if let Some(entry) = in_flight {
            return Ok(Some(entry.remove()));
        }
        let Some(Injected { hop, from, rule, frame }) = self.injector.pop() else { return Ok(None) };
        let arrived = self.wires.carry(hop, &frame)?;
        let wire_len = wire::model_len(&frame);
        let packet = Packet::parse_with(&frame, IcrcCheck::Ignore);
        let packet = packet.map_or(Headline::UNREADABLE, |packet| headline(&packet));
        self.tell(from.node, EventKind::FrameInjected { port: from.port, rule, packet, frame }, sink)?;
        Ok(Some(Arrival { frame: arrived, wire_len, origin: None }))
    }

    pub(super) fn note_wake(&mut self, node: NodeId) {
        let wake = match node.index().checked_sub(self.nics.len()) {
            None => self.nics[node.index()].next_wake(),
            Some(index) => self.switches[index].next_wake(),
        };
        let moment = wake.map(|wake| Moment { at: wake.at, phase: wake.phase, node, unit: wake.unit });
        let known = std::mem::replace(&mut self.wake_of[node.index()], moment);
        if known != moment {
            if let Some(known) = known {
                self.wakes.remove(&known);
            }
            self.wakes.extend(moment);
        }
    }

    /// Registers a message's memory at both ends, and makes the work request.
    fn post(&mut self, due: Due) -> Input {
        let post = &self.plan.posts[due.series];
        let queue_pair = &self.plan.queue_pairs[post.queue_pair];
        let (own, peer) = (queue_pair.ends[post.from_end], queue_pair.ends[1 - post.from_end]);
        let registration = registration(due.message, post.size);
        if queue_pair.implicit {
            self.nics[own.node.index()].connect(connection(self.plan, queue_pair, post.from_end));
        }
        self.nics[own.node.index()].memory_mut().register_source(registration);
        let target = self.nics[peer.node.index()].memory_mut();
        target.register_target(registration);
        let pieces: Arc<[Piece]> = [Piece { key: registration.key, length: registration.size }].into();
        if post.verb == Verb::Send {
            target.post_receive(peer.qpn, Receive { id: u64::from(due.message.0), pieces: pieces.clone() });
        }
        self.audit.posted(due.message, own.node, peer.node);
        let mut source = Source::Gather(pieces);
        if post.inline {
            let memory = self.nics[own.node.index()].memory_mut();
            let octets = memory.read(Domain::SCENARIO, &source, Octets::ZERO, post.size);
            source = Source::Inline(octets.expect("the message's memory was registered a moment ago"));
        }
        let work = WorkRequest {
            message: due.message,
            peer: peer.node,
            verb: post.verb,
            source,
            remote: registration.key,
            immediate: None,
            solicited: true,
            slot: None,
            blue_flame: post.blue_flame,
        };
        Input::Post { qpn: own.qpn, work }
    }

    /// The last bit of a frame has left a port: what the link's rules leave of it crosses the wire now, and arrives
    /// after the link's Delay.
    fn transmit(&mut self, node: NodeId, port: PortId, passing: Passing, sink: &mut dyn Sink) -> Result<(), RunError> {
        let cable = self.cables[node.index()][port.index()];
        let (packet, wire_len) = (passing.packet, passing.wire_len);
        let transmission = passing.origin.map_or(0, |origin| origin.transmission);
        let frame = passing.frame.clone();
        let journey = self.directions[cable.hop.index()].pass(self.now, passing);
        for Leg { arrives_at, frame, wire_len, origin } in journey.legs {
            let frame = self.wires.carry(cable.hop, &frame)?;
            let key = (arrives_at, cable.peer, cable.peer_port, self.flights);
            self.flight.insert(key, Arrival { frame, wire_len, origin });
            self.flights += 1;
        }
        let (fate, effects) = (journey.fate, journey.effects);
        self.tell(node, EventKind::FrameSent { port, packet, wire_len, transmission, fate, effects, frame }, sink)
    }

    pub(super) fn tell(&mut self, node: NodeId, kind: EventKind, sink: &mut dyn Sink) -> Result<(), RunError> {
        let event = Event { at: self.now, node, kind };
        self.counters.record(&event)?;
        self.ledger.record(&event)?;
        self.judge.record(&event)?;
        sink.record(&event)?;
        self.progress.now = self.now;
        self.devices.note(node, &event.kind, self.now);
        match event.kind {
            EventKind::FrameSent { .. } => self.progress.frames += 1,
            EventKind::PayloadWritten { payload, .. } => self.progress.delivered += payload,
            EventKind::MessageDelivered { message, .. } => self.audit.delivered(self.now, message, &mut self.nics),
            EventKind::MessageCompleted { message, .. } => self.audit.completed(self.now, message, &mut self.nics),
            EventKind::MessageFailed { message, .. } => self.audit.failed(self.now, message),
            EventKind::DeliveryFailed { message, .. } => {
                self.audit.delivery_failed(self.now, message, &mut self.nics);
            }
            EventKind::LosslessViolated { port, packet, reason, occupancy, missing } => {
                let at = self.now;
                self.violations.add(Violation { at, node, port, packet, reason, occupancy, missing });
            }
            _ => {}
        }
        Ok(())
    }

    /// Closes the books.
    fn close(mut self, interrupted: bool, sink: &mut dyn Sink) -> Result<Outcome, RunError> {
        self.wires.finish()?;
        for node in (0..self.nics.len()).map(|index| NodeId(index as u16)) {
            self.handle(node, Input::End, sink)?;
        }
        for index in 0..self.switches.len() {
            self.handle_at_switch(index, switch::Input::End, sink)?;
        }
        let mut unfinished: Vec<_> = self.audit.unfinished().collect();
        let is_finished = self.is_over();
        while let Some(due) = self.workload.pop() {
            unfinished.push(due.message);
        }
        unfinished.sort_unstable();
        for nic in &self.nics {
            let Holdings { egress_frames, egress_octets, segments, received_payload, partial_payload } = nic.holdings();
            self.ledger.hold(Account::EgressFrames, egress_frames);
            self.ledger.hold(Account::EgressOctets, egress_octets);
            self.ledger.hold(Account::Segments, segments);
            self.ledger.hold(Account::ReceivedPayload, received_payload);
            self.ledger.hold(Account::DeliveredPayload, partial_payload);
        }
        for switch in &self.switches {
            let switch::Holdings { egress_frames, buffered_octets } = switch.holdings();
            self.ledger.hold(Account::EgressFrames, egress_frames);
            self.ledger.hold(Account::SwitchOctets, buffered_octets);
        }
        let held: usize = self.directions.iter().map(link::Direction::held_count).sum();
        self.ledger.hold(Account::LinkFrames, (self.flight.len() + held) as u64);
        self.ledger.hold(Account::Messages, self.audit.uncompleted());
        self.ledger.check()?;
        // Applications have turns after the last message as well.
        let is_done = is_finished && self.plan.applications.is_empty();
        let end = if is_done { self.audit.last_finish() } else { self.now };
        self.counters.end(end);
        let faults = self.fault_reports();
        let verdicts = self.judge.finish(&self.counters, &faults).into_iter();
        let judged = verdicts.map(|v| Judged { ok: v.ok, line: v.to_string(), at: v.at }).collect();
        Ok(Outcome {
            end,
            interrupted,
            unfinished,
            attached: self.devices.attached().map(str::to_owned).collect(),
            given_up: self.applications.as_deref().map_or_else(Vec::new, |served| served.given_up().to_vec()),
            failed: self.audit.failures().collect(),
            mismatches: self.audit.mismatches().to_vec(),
            compared: self.audit.compared(),
            progress: self.progress,
            counters: self.counters,
            ledger: self.ledger,
            foreign: self.wires.foreign().clone(),
            violations: self.violations,
            judged,
            faults,
        })
    }
}

impl Engine<'_> {
    fn fault_reports(&self) -> Vec<RuleReport> {
        let mut reports: Vec<_> = (0..self.plan.faults.len())
            .map(|rule| {
                let injected = self.injector.injected(RuleId(rule as u16));
                RuleReport { matched: injected, fired: injected, stuck: 0 }
            })
            .collect();
        for (rule, report) in self.directions.iter().flat_map(link::Direction::reports) {
            reports[rule.index()] = report;
        }
        reports
    }
}
