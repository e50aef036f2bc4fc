//! The rack switch, as a state machine without sockets or clocks: store and forward, and no time to think.
//!
//! ```text
//!  line ─► forward (read, route, ECMP) ─► ingress (Xoff, admission, charge) ─► egress (class queues) ─► line
//!                                            │ XOFF, XON                          ▲   (mark at the start,
//!                                            └─────► express queue of that port ──┘    release at the end)
//! ```
//!
//! Contract: give it one [`Input`], then take outputs until there are none, then wait until [`Switch::next_wake`]. Time
//! is an argument and never goes back. A frame passes as it came: addresses, TTL and ICRC are not touched, and CE is all
//! that is ever written into it.
//!
//! Invariants:
//! * What an input port is charged is what the frames that came by it and have not left take, to the octet.
//! * Frames of one flow and class leave in the order in which they came.
//! * Frames to the MAC control address are never forwarded.
//!
//! Not here: the wire itself, faults, where routes come from ([`topology`] finds them). Read first:
//! `tests::forwarding::a_frame_leaves_one_serialization_after_it_arrived`, `tests::pfc::the_frame_that_passes_xoff_draws_one_pause`.
//!
//! Acronyms: ECMP equal-cost multipath, CE congestion experienced, ECT ECN-capable transport.

mod config;
mod ecmp;
mod egress;
mod forward;
mod ingress;
pub mod topology;

#[cfg(test)]
mod tests;

use std::collections::VecDeque;

use bytes::Bytes;

pub use config::{Config, PfcConfig, PortConfig, Routes};
pub use ecmp::Flow;

use crate::base::{Calendar, Class, Instant, Octets, Origin, Phase, PortId, Rng, Ticket, Wake};
use crate::port::{PerClass, Pool};
use crate::trace::{EventKind, Headline};
use egress::Sender;
use ingress::Account;

/// What can happen to a switch from outside.
#[derive(Clone, Debug)]
pub enum Input {
    /// The last bit of a frame has arrived at `port`. `wire_len` is the model's size of the frame that was sent, `origin`
    /// what its NIC said of it: both pass as they came.
    Frame { port: PortId, frame: Bytes, wire_len: Octets, origin: Option<Origin> },
    /// The instant of [`Switch::next_wake`] has come.
    Wake,
    /// The run is over: the switch says what only it can add up.
    End,
}

/// What a switch has to say.
#[derive(Clone, Debug)]
pub enum Output {
    /// The last bit of a frame has left a port.
    Transmit(Transmission),
    Event(EventKind),
}

/// A frame on its way out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Transmission {
    pub port: PortId,
    pub packet: Headline,
    /// The model's size: nothing but the wire looks at the length of `frame`.
    pub wire_len: Octets,
    /// Of a data packet that passes.
    pub origin: Option<Origin>,
    /// Destination MAC to ICRC, no FCS.
    pub frame: Bytes,
}

/// What a switch has on its calendar.
#[derive(Clone, Copy, Debug)]
enum Alarm {
    TransmitEnd(PortId),
    PauseEnd(PortId, Class),
    PauseRefresh(PortId, Class),
    PortChoice(PortId),
}

impl Alarm {
    /// Its place among the events of one instant: timers by kind, then port (timing rule 3).
    const fn place(self) -> (Phase, u16) {
        match self {
            Self::TransmitEnd(port) => (Phase::TransmitEnd, port.0),
            Self::PauseEnd(port, _) => (Phase::Timer, port.0),
            Self::PauseRefresh(port, _) => (Phase::Timer, MAX_PORTS as u16 + port.0),
            Self::PortChoice(port) => (Phase::PortChoice, port.0),
        }
    }
}

/// More ports would leave no numbers for the timers of a port.
const MAX_PORTS: usize = 1 << 15;

#[derive(Debug)]
struct Port {
    config: PortConfig,
    accounts: PerClass<Account>,
    sender: Sender,
}

/// A switch with its ports and the buffer they share.
#[derive(Debug)]
pub struct Switch {
    config: Config,
    routes: Routes,
    now: Instant,
    calendar: Calendar<Alarm>,
    outputs: VecDeque<Output>,
    ports: Vec<Port>,
    /// What the frames of all ports take together.
    buffer: Pool,
    marks: Rng,
}

/// What a switch holds at the end of a run, for the ledger.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Holdings {
    /// Waiting or on a line, the switch's own PFC frames included.
    pub egress_frames: u64,
    /// What the forwarded ones among them take of the buffer.
    pub buffered_octets: u64,
}

impl Switch {
    /// * Panics: if a route names a port that is not there, or ports are more than 32,768 (caller's bug).
    pub fn new(config: Config, routes: Routes) -> Self {
        assert!(config.ports.len() <= MAX_PORTS, "a switch has at most {MAX_PORTS} ports");
        let exists = |port: &PortId| port.index() < config.ports.len();
        assert!(routes.values().flatten().all(exists), "routes lead to ports of the switch");
        let ports = config.ports.iter().map(|port| Port {
            config: *port,
            accounts: std::array::from_fn(|class| Account::new(config.pfc.limit(class))),
            sender: Sender::new(&config),
        });
        Self {
            ports: ports.collect(),
            routes,
            now: Instant::ZERO,
            calendar: Calendar::default(),
            outputs: VecDeque::new(),
            buffer: Pool::new(config.total_buffer),
            marks: Rng::new(config.seed),
            config,
        }
    }

    pub fn config(&self) -> &Config {
        &self.config
    }

    /// One thing happens.
    ///
    /// * Order: `now` never decreases, and is that of [`Switch::next_wake`] for [`Input::Wake`]. Take all outputs before
    ///   the next input.
    /// * Panics: if a frame arrives at a port that is not there (caller's bug).
    pub fn handle_input(&mut self, now: Instant, input: Input) {
        assert!(now >= self.now, "time never goes back");
        self.now = now;
        match input {
            Input::Frame { port, frame, wire_len, origin } => self.receive(port, frame, wire_len, origin),
            Input::Wake => {
                if let Some((_, alarm)) = self.calendar.pop() {
                    self.ring(alarm);
                }
            }
            Input::End => self.cut_pauses_off(),
        }
    }

    fn ring(&mut self, alarm: Alarm) {
        match alarm {
            Alarm::TransmitEnd(port) => self.transmit_ended(port),
            Alarm::PauseEnd(port, class) => self.resume(port, class, false),
            Alarm::PauseRefresh(port, class) => self.refresh_pause(port, class),
            Alarm::PortChoice(port) => self.choose_frame(port),
        }
    }

    /// The next output; `None` when the switch has no more to say about its last input.
    #[must_use]
    pub fn poll_output(&mut self) -> Option<Output> {
        self.outputs.pop_front()
    }

    /// When the switch wants [`Input::Wake`] next.
    pub fn next_wake(&self) -> Option<Wake> {
        self.calendar.next()
    }

    /// No frame is inside the switch. Idle timers do not count.
    pub fn is_quiet(&self) -> bool {
        self.ports.iter().all(|port| port.sender.frame_count() == 0)
    }

    /// Frames that the switch holds, counted from its queues.
    pub fn holdings(&self) -> Holdings {
        let senders = || self.ports.iter().map(|port| &port.sender);
        Holdings {
            egress_frames: senders().map(|sender| sender.frame_count() as u64).sum(),
            buffered_octets: senders().flat_map(Sender::charges).map(|(_, _, charge)| charge.get()).sum(),
        }
    }

    /// What the frames that came by `port` in `class` take of the buffer.
    pub fn ingress_occupancy(&self, port: PortId, class: Class) -> Octets {
        self.ports[port.index()].accounts[class.index()].occupancy()
    }

    /// The highest that all ports together took of the buffer.
    pub fn buffer_peak(&self) -> Octets {
        self.buffer.peak()
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
