//! A switch on a bench: frames in at given instants, and a log of what it did. Port p leads to NIC p, 10.0.0.p.

mod forwarding;
mod marking;
mod pfc;
mod properties;

use core::net::Ipv4Addr;

use bytes::Bytes;

use super::*;
use crate::base::{NodeId, Psn, Qpn, Rate, Span};
use crate::trace::{Account, Counters, Event, Ledger, LinkFate, NodeCounters, Sink};
use crate::wire::{self, Ecn, Endpoints, MacAddr, PfcFrame, Reth, RocePacket, Segment, Verb};

/// The switch; who sends to it is not on the bench.
const SWITCH: NodeId = NodeId(0);

pub struct Bench {
    pub switch: Switch,
    pub log: Vec<Event>,
    pub sent: Vec<(u64, Transmission)>,
    counters: Counters,
    ledger: Ledger,
}

pub fn class(n: u8) -> Class {
    Class::new(n).unwrap()
}

fn ip(nic: u16) -> Ipv4Addr {
    Ipv4Addr::new(10, 0, 0, nic as u8)
}

fn flow(from: u16, to: u16, udp_src: u16) -> Endpoints {
    let mac = |nic| MacAddr([2, 0, 0, 0, 0, nic as u8]);
    Endpoints { eth_dst: mac(to), eth_src: mac(from), ip_src: ip(from), ip_dst: ip(to), udp_src }
}

/// A SEND of one packet; the PSN tells frames apart.
pub fn data(from: u16, to: u16, class: u8, payload: usize, psn: u32) -> Bytes {
    data_of_flow(flow(from, to, 0xc000), class, Ecn::Ect0, payload, psn)
}

pub fn data_of_flow(flow: Endpoints, class: u8, ecn: Ecn, payload: usize, psn: u32) -> Bytes {
    let segment = Segment {
        verb: Verb::Send,
        first: true,
        last: true,
        dest_qpn: Qpn::new(2).unwrap(),
        psn: Psn::new(psn),
        reth: Reth { va: 0, rkey: 0, length: 0 },
        immediate: None,
        payload: vec![0x5a; payload].into(),
    };
    RocePacket::data(&flow, self::class(class), ecn, segment).emit()
}

pub fn ack(from: u16, to: u16) -> Bytes {
    RocePacket::ack(&flow(from, to, 0xc000), Class::CONTROL, Qpn::new(2).unwrap(), Psn::new(0), 0).emit()
}

pub fn cnp(from: u16, to: u16) -> Bytes {
    RocePacket::cnp(&flow(from, to, 0xc000), Class::CONTROL, Qpn::new(2).unwrap()).emit()
}

pub fn pause(class: u8, quanta: u16) -> Bytes {
    PfcFrame::pause(MacAddr([2, 0, 0, 0, 0, 9]), self::class(class), quanta).emit()
}

/// `count` ports of 400 Gb/s with 500 ns of Delay.
pub fn ports(count: u16) -> Config {
    let port = |p| PortConfig { data_rate: Rate::from_gbps(400), delay: Span::from_ns(500), mac: mac_of(p) };
    Config { ports: (0..count).map(port).collect(), ..Config::default() }
}

pub fn mac_of(port: u16) -> MacAddr {
    PortConfig::mac_of(SWITCH, PortId(port))
}

impl Bench {
    pub fn new(config: Config) -> Self {
        let routes = (0..config.ports.len() as u16).map(|port| (ip(port), vec![PortId(port)])).collect();
        Self::routed(config, routes)
    }

    pub fn routed(config: Config, routes: Routes) -> Self {
        Self {
            switch: Switch::new(config, routes),
            log: Vec::new(),
            sent: Vec::new(),
            counters: Counters::new(1),
            ledger: Ledger::default(),
        }
    }

    fn tell(&mut self, at: Instant, kind: EventKind) {
        let event = Event { at, node: SWITCH, kind };
        self.counters.record(&event).unwrap();
        self.ledger.record(&event).unwrap();
        self.log.push(event);
    }

    fn input(&mut self, at: Instant, input: Input) {
        self.switch.handle_input(at, input);
        while let Some(output) = self.switch.poll_output() {
            match output {
                Output::Event(kind) => self.tell(at, kind),
                Output::Transmit(sent) => {
                    let Transmission { port, packet, wire_len, frame, .. } = sent.clone();
                    let (fate, effects) = (LinkFate::Carried, Vec::new());
                    self.sent.push((at.ps(), sent));
                    self.tell(
                        at,
                        EventKind::FrameSent { port, packet, wire_len, transmission: 0, fate, effects, frame },
                    );
                }
            }
        }
    }

    /// Everything that is due before `moment`.
    fn run_before(&mut self, moment: Wake) {
        while let Some(wake) = self.switch.next_wake().filter(|wake| *wake < moment) {
            self.input(wake.at, Input::Wake);
        }
    }

    /// A frame's last bit arrives.
    pub fn arrive(&mut self, ps: u64, port: u16, frame: Bytes) {
        let at = Instant::from_ps(ps);
        self.run_before(Wake { at, phase: Phase::Arrival, unit: port });
        let wire_len = wire::model_len(&frame);
        let (port, packet) = (PortId(port), Headline::UNREADABLE);
        // Somebody sent it, or the books would not balance.
        self.ledger
            .record(&Event {
                at,
                node: NodeId(1),
                kind: EventKind::FrameInjected { port, rule: crate::base::RuleId(0), packet, frame: frame.clone() },
            })
            .unwrap();
        self.input(at, Input::Frame { port, frame, wire_len, origin: None });
    }

    /// Until `ps`, that instant included.
    pub fn run_until(&mut self, ps: u64) {
        self.run_before(Wake { at: Instant::from_ps(ps + 1), phase: Phase::TransmitEnd, unit: 0 });
    }

    /// Until no frame is left.
    pub fn run(&mut self) {
        while !self.switch.is_quiet() {
            let wake = self.switch.next_wake().expect("a frame that waits has a reason to");
            self.input(wake.at, Input::Wake);
        }
        self.check_books();
    }

    pub fn check_books(&self) {
        let mut ledger = self.ledger.clone();
        let Holdings { egress_frames, buffered_octets } = self.switch.holdings();
        ledger.hold(Account::EgressFrames, egress_frames);
        ledger.hold(Account::SwitchOctets, buffered_octets);
        // What it sent arrives at nobody.
        ledger.hold(Account::LinkFrames, self.sent.len() as u64);
        assert_eq!(ledger.check(), Ok(()));
    }

    pub fn counters(&self) -> &NodeCounters {
        self.counters.node(SWITCH)
    }

    /// When data frames left, and which, by their PSN.
    pub fn sent_psns(&self) -> Vec<(u64, u32)> {
        let data = self.sent.iter().filter(|(_, sent)| sent.packet.kind.is_data());
        data.map(|(at, sent)| (*at, sent.packet.psn.get())).collect()
    }

    /// What of the log `pick` has something to say about, with its instant.
    pub fn told<T>(&self, pick: impl Fn(&EventKind) -> Option<T>) -> Vec<(u64, T)> {
        self.log.iter().filter_map(|event| Some((event.at.ps(), pick(&event.kind)?))).collect()
    }
}
