//! The RDMA NIC, as a state machine without sockets or clocks.
//!
//! ```text
//!  post ─► generate (ready queue, reserve, fetch) ─► pcie ─► requester (PSN, timer) ─► transmit ─► line
//!                                                                                        ▲
//!  line ─► receive (charge, PSN check) ─► pcie ─► host memory                            │
//!             ├─► answer: ACK, NAK, CNP ────────────────────────────────────────────────┘
//!             ├─► acknowledge (retire, rewind, complete) ─► generate
//!             └─► congestion (CNP made, CNP obeyed) ─► rate ─► transmit
//!
//!  where doorbells are modelled: post ─► doorbell ─► pcie ─► WQE fetch ─► pcie ─► generate
//!  what goes wrong for good, at any of these ─► failure (queue pair in error, work flushed)
//! ```
//!
//! Contract: give it one [`Input`], then take outputs until there are none, then wait until [`Nic::next_wake`]. Time is
//! an argument and never goes back. What it decides is in the stages; this file only passes packets on between them.
//!
//! Not here: the wire itself, faults, who posts what. Read first: `tests::one_packet_takes_436_444_ps`,
//! `tests::a_stopped_generation_restarts_at_half`.

mod ack;
mod acknowledge;
mod answer;
mod config;
mod congestion;
mod content;
mod doorbell;
mod failure;
mod generate;
mod host_memory;
mod passes;
mod pcie;
mod placement;
mod queue_pair;
mod rate;
mod ready_queue;
mod receive;
mod requester;
mod responder;
mod segment;
mod send_queue;
mod shared_memory;
mod transmit;
#[cfg(test)]
mod verbs_tests;
mod work;

use std::collections::{BTreeMap, VecDeque};

use bytes::Bytes;

pub use ack::{AckCoalescer, AckDecision};
pub use config::{AckConfig, Address, Config, DoorbellCost, GENERATION_START, PcieConfig, PcieSide, SendQueueConfig};
pub use content::Held;
pub use host_memory::{Access, AccessError, Domain, HostMemory, MemoryKey, Registration, SharedRegion, Target};
pub use pcie::{TRANSFER_OVERHEAD, TRANSFER_PAYLOAD, transfer_count};
pub use queue_pair::{Connection, Service};
pub use rate::{
    CongestionConfig, CongestionControl, Controller, DcqcnNvidiaConfig, DcqcnPaperConfig, EcnLoopConfig,
    RateApplication,
};
pub use shared_memory::{LocalMemory, SharedMemory};
pub use transmit::headline;
pub use work::{Piece, Receive, Source, WorkRequest};

use crate::base::{Calendar, Class, Instant, MessageId, Octets, Origin, Phase, PortId, Qpn, Ticket, Wake};
use crate::port::{Egress, PauseSender, PerClass, Pools};
use crate::trace::{EventKind, FailureCause, Headline, PcieDirection};
use doorbell::WqeRequest;
use pcie::Direction;
use queue_pair::QueuePair;
use ready_queue::{Generation, ReadyQueue};
use receive::ReceivedData;
use requester::Fetch;
use send_queue::Doorbell;
use transmit::{Outgoing, ReceivedPause};

/// A NIC has one port.
const PORT: PortId = PortId(0);

/// What can happen to a NIC from outside.
#[derive(Clone, Debug)]
pub enum Input {
    /// The last bit of a frame has arrived. `wire_len` is the model's size of the frame that was sent; it counts only
    /// where the frame itself cannot be read.
    Frame { frame: Bytes, wire_len: Octets },
    /// The host posts a work request. A scenario's host rings for it, unless it is ringing for this queue pair already:
    /// then it rings once more when that doorbell has arrived. An application rings by itself.
    Post { qpn: Qpn, work: WorkRequest },
    /// An application rings: so many entries are new, posted before this or later. Of a BlueFlame post, the octets of the
    /// newest one come along; otherwise none.
    Ring { qpn: Qpn, entries: u32, blue_flame: Octets },
    /// The host posts a receive.
    PostReceive { qpn: Qpn, receive: Receive },
    /// Somebody outside ends a queue pair: its application has closed it or died, or its peer is gone.
    FailQueuePair { qpn: Qpn, cause: FailureCause },
    /// The instant of [`Nic::next_wake`] has come.
    Wake,
    /// The run is over: the NIC says what only it can add up.
    End,
}

/// What a NIC has to say.
#[derive(Clone, Debug)]
pub enum Output {
    /// The last bit of a frame has left the port.
    Transmit(Transmission),
    Event(EventKind),
}

/// A frame on its way out, with what the link and its faults may want to know about it.
#[derive(Clone, Debug)]
pub struct Transmission {
    pub port: PortId,
    pub packet: Headline,
    /// The model's size: nothing but the wire looks at the length of `frame`.
    pub wire_len: Octets,
    /// Of a data packet.
    pub origin: Option<Origin>,
    /// Destination MAC to ICRC, no FCS.
    pub frame: Bytes,
}

/// A fetch with the queue pair it is for.
type QpFetch = (Qpn, Fetch);

/// What crosses the PCIe link towards the host.
#[derive(Clone, Debug)]
enum Upstream {
    ReadRequest(QpFetch),
    WqeRequest(WqeRequest),
    Write(ReceivedData),
}

/// What crosses it from the host.
#[derive(Clone, Copy, Debug)]
enum Downstream {
    Payload(QpFetch),
    Wqe(WqeRequest),
    Doorbell(Qpn, Doorbell),
}

/// What the NIC has on its calendar.
#[derive(Clone, Copy, Debug)]
enum Alarm {
    TransmitEnd,
    UpstreamTransferEnd,
    DownstreamTransferEnd,
    PauseEnd(Class),
    PauseRefresh(Class),
    RateTimer(Qpn),
    AckDelay(Qpn),
    Retransmit(Qpn),
    DelayedCnp(Qpn),
    RnrWait(Qpn),
    Generate,
    PortChoice,
}

impl Alarm {
    /// Its place among the events of one instant (timing rule 3).
    const fn place(self) -> (Phase, u16) {
        match self {
            Self::TransmitEnd => (Phase::TransmitEnd, PORT.0),
            Self::UpstreamTransferEnd => (Phase::Pcie, 0),
            Self::DownstreamTransferEnd => (Phase::Pcie, 1),
            Self::PauseEnd(_) => (Phase::Timer, 0),
            Self::PauseRefresh(_) => (Phase::Timer, 1),
            Self::RateTimer(_) => (Phase::Timer, 2),
            Self::AckDelay(_) => (Phase::Timer, 3),
            Self::Retransmit(_) => (Phase::Timer, 4),
            Self::DelayedCnp(_) => (Phase::Timer, 5),
            Self::RnrWait(_) => (Phase::Timer, 6),
            Self::Generate => (Phase::Generate, 0),
            Self::PortChoice => (Phase::PortChoice, PORT.0),
        }
    }
}

/// An RDMA NIC with one port, its PCIe link and its host's memory.
#[derive(Debug)]
pub struct Nic {
    config: Config,
    address: Address,
    now: Instant,
    calendar: Calendar<Alarm>,
    outputs: VecDeque<Output>,
    memory: HostMemory,
    queue_pairs: BTreeMap<Qpn, QueuePair>,

    ready: ReadyQueue,
    generation: Generation<QpFetch>,
    egress_pools: Pools,
    upstream: Direction<Upstream>,
    downstream: Direction<Downstream>,
    /// Queue pairs whose WQE fetches wait for room in the PCIe transmit buffer, in the order of their turns.
    waiting_for_entries: VecDeque<Qpn>,

    egress: Egress<Outgoing>,
    choice_scheduled: bool,
    /// When the first of the frames that pacing holds back may start; the port is idle until then.
    pace_wake: Option<Ticket>,
    received_pauses: PerClass<Option<ReceivedPause>>,

    ingress_pools: Pools,
    pause_senders: PerClass<Option<PauseSender>>,
    refreshes: PerClass<Option<Ticket>>,
    /// Data packets charged to an ingress pool and not yet accepted by the PCIe transmit buffer, oldest first.
    received: VecDeque<ReceivedData>,
    /// CNPs that were drawn and are still to be made.
    delayed_cnps: u32,
}

/// What a NIC holds at the end of a run, for the ledger.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Holdings {
    pub egress_frames: u64,
    pub egress_octets: u64,
    pub segments: u64,
    pub received_payload: u64,
    /// Payload written to the host that belongs to messages not yet complete.
    pub partial_payload: u64,
}

impl Nic {
    pub fn new(config: Config, address: Address) -> Self {
        let ingress_pools = Pools::new(config.ingress.total, &config.ingress.shares);
        let pause_senders = std::array::from_fn(|c| {
            let pool = ingress_pools.iter().nth(c)?.1;
            config.ingress.thresholds(c, pool.size()).map(|(xoff, xon)| PauseSender::new(xoff, xon))
        });
        Self {
            address,
            now: Instant::ZERO,
            calendar: Calendar::default(),
            outputs: VecDeque::new(),
            memory: HostMemory::default(),
            queue_pairs: BTreeMap::new(),
            ready: ReadyQueue::default(),
            generation: Generation::Idle,
            egress_pools: Pools::new(config.egress.total, &config.egress.shares),
            upstream: Direction::limited(&config.pcie.nic_side),
            downstream: Direction::unlimited(&config.pcie.host_side),
            waiting_for_entries: VecDeque::new(),
            egress: Egress::new(&config.egress),
            choice_scheduled: false,
            pace_wake: None,
            received_pauses: Default::default(),
            ingress_pools,
            pause_senders,
            refreshes: Default::default(),
            received: VecDeque::new(),
            delayed_cnps: 0,
            config,
        }
    }

    /// Creates the local end of a connection. Replaces nothing: an existing queue pair of that number stays.
    pub fn connect(&mut self, connection: Connection) {
        let queue_pair = || QueuePair::new(connection, self.address, &self.config);
        self.queue_pairs.entry(connection.qpn).or_insert_with(queue_pair);
    }

    /// * Panics: if there is no such queue pair. Packets and posts are checked before; queue pairs are never removed.
    fn queue_pair(&mut self, qpn: Qpn) -> &mut QueuePair {
        self.queue_pairs.get_mut(&qpn).expect("a queue pair outlives its packets, fetches and timers")
    }

    /// The memory of the host behind the NIC.
    pub fn memory(&self) -> &HostMemory {
        &self.memory
    }

    pub fn memory_mut(&mut self) -> &mut HostMemory {
        &mut self.memory
    }

    /// The application at the other end of `qpn` posts this message: the next that begins to arrive there, behind those
    /// announced before. RoCEv2 has no such news; it is told out of band, so that both ends call a message the same.
    ///
    /// * Order: before its first packet arrives. A message that nobody announced is refused.
    pub fn announce(&mut self, qpn: Qpn, message: MessageId) {
        self.queue_pair(qpn).responder.announce(message);
    }

    pub fn config(&self) -> &Config {
        &self.config
    }

    /// One thing happens.
    ///
    /// * Order: `now` never decreases, and is that of [`Nic::next_wake`] for [`Input::Wake`]. Take all outputs before
    ///   the next input.
    pub fn handle_input(&mut self, now: Instant, input: Input) {
        assert!(now >= self.now, "time never goes back");
        self.now = now;
        match input {
            Input::Frame { frame, wire_len } => self.receive(frame, wire_len),
            Input::Post { qpn, work } => self.post(qpn, work),
            Input::Ring { qpn, entries, blue_flame } => self.application_rings(qpn, entries, blue_flame),
            Input::PostReceive { qpn, receive } => self.post_receive(qpn, receive),
            Input::FailQueuePair { qpn, cause } => self.fail_queue_pair(qpn, cause),
            Input::Wake => {
                if let Some((_, alarm)) = self.calendar.pop() {
                    self.ring(alarm);
                }
            }
            Input::End => {
                self.cut_pauses_off();
                self.emit(self.upstream.report(PcieDirection::ToHost));
                self.emit(self.downstream.report(PcieDirection::FromHost));
            }
        }
    }

    fn ring(&mut self, alarm: Alarm) {
        match alarm {
            Alarm::TransmitEnd => self.transmit_ended(),
            Alarm::UpstreamTransferEnd => self.upstream_transfer_ended(),
            Alarm::DownstreamTransferEnd => self.downstream_transfer_ended(),
            Alarm::PauseEnd(class) => self.resume(class, false),
            Alarm::PauseRefresh(class) => self.refresh_pause(class),
            Alarm::AckDelay(qpn) => self.ack_delay_expired(qpn),
            Alarm::RateTimer(qpn) => self.rate_timer_expired(qpn),
            Alarm::Retransmit(qpn) => self.transport_timer_expired(qpn),
            Alarm::DelayedCnp(qpn) => self.delayed_cnp_is_due(qpn),
            Alarm::RnrWait(qpn) => self.rnr_wait_is_over(qpn),
            Alarm::Generate => self.generate(),
            Alarm::PortChoice => self.choose_frame(),
        }
    }

    /// The next output; `None` when the NIC has no more to say about its last input.
    #[must_use]
    pub fn poll_output(&mut self) -> Option<Output> {
        self.outputs.pop_front()
    }

    /// When the NIC wants [`Input::Wake`] next.
    pub fn next_wake(&self) -> Option<Wake> {
        self.calendar.next()
    }

    /// Nothing is on its way inside the NIC: no frame, no segment, no received data, no CNP to be made. Idle timers do
    /// not count.
    pub fn is_quiet(&self) -> bool {
        self.egress.frame_count() == 0
            && self.received.is_empty()
            && self.delayed_cnps == 0
            && self.upstream.is_idle()
            && self.downstream.is_idle()
            && self.ready.is_empty()
    }

    /// Frames, octets and segments that the NIC holds.
    pub fn holdings(&self) -> Holdings {
        let mut holdings = Holdings {
            egress_frames: self.egress.frame_count() as u64,
            egress_octets: self.egress_pools.occupancy().get(),
            segments: self.downstream.messages().filter(|m| matches!(m, Downstream::Payload(_))).count() as u64,
            received_payload: self.received.iter().map(|data| data.payload.len() as u64).sum(),
            partial_payload: 0,
        };
        for message in self.upstream.messages() {
            match message {
                Upstream::ReadRequest(_) => holdings.segments += 1,
                Upstream::WqeRequest(_) => {}
                Upstream::Write(data) => holdings.received_payload += data.payload.len() as u64,
            }
        }
        holdings.segments += u64::from(matches!(self.generation, Generation::Blocked(_)));
        holdings.partial_payload = self.queue_pairs.values().map(|qp| qp.partial_payload.get()).sum();
        holdings
    }

    fn emit(&mut self, event: EventKind) {
        self.outputs.push_back(Output::Event(event));
    }

    fn schedule(&mut self, at: Instant, alarm: Alarm) -> Ticket {
        let (phase, unit) = alarm.place();
        self.calendar.schedule(Wake { at, phase, unit }, alarm)
    }

    fn cancel(&mut self, ticket: Option<Ticket>) {
        if let Some(ticket) = ticket {
            self.calendar.cancel(ticket);
        }
    }
}
