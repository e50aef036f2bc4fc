//! Pools, pauses and the PCIe link under pressure, and what a run says of it.
//!
//! Sizes and times as in `tests`. Payload octets of a PCIe 3.0 receiver leave its pool every 277,157 ps, 4,136 at a time,
//! while they come every 83,080 ps.

mod any_plan;
mod causes;
mod pressure;
mod received;

use std::ops::ControlFlow;

use bytes::Bytes;

use super::tests::{A, B, Log, pair, run, write};
use super::{Engine, MemoryWires, Outcome, Shortcoming};
use crate::base::{Class, Instant, Octets, Psn, Qpn, Rate, Share, Span};
use crate::link::{Action, Matcher, Rule};
use crate::nic::RateApplication;
use crate::record::{Attribution, Cause, Pressure, QueuePairTime};
use crate::scenario::{FaultKind, FaultPlan, Plan, PostPlan};
use crate::trace::{Event, EventKind, PacketKind, Sink};
use crate::wire::{MacAddr, PfcFrame};

/// A run with all that explains it.
pub struct Explained {
    pub outcome: Outcome,
    pub log: Log,
    pressure: Pressure,
    pub times: Vec<QueuePairTime>,
}

impl Explained {
    fn time(&self, queue_pair: usize, cause: Cause) -> u64 {
        self.times[queue_pair].times.of(cause).ps()
    }

    /// Times by cause of a queue pair, without those that are 0.
    pub fn causes(&self, queue_pair: usize) -> Vec<(Cause, u64)> {
        let times = self.times[queue_pair].times.iter();
        times.map(|(cause, span)| (cause, span.ps())).filter(|(_, ps)| *ps > 0).collect()
    }

    fn paused(&self, class: u8) -> u64 {
        self.pressure.paused(A, crate::base::PortId(0), Class::new(class).unwrap(), self.outcome.end).ps()
    }
}

pub fn explain(plan: &Plan) -> Explained {
    let names = plan.names();
    let (mut log, mut pressure, mut attribution) = (Log::default(), Pressure::new(&names), Attribution::new(&names));
    let mut wires = MemoryWires::default();
    let mut sinks: Vec<Box<dyn Sink + '_>> =
        vec![Box::new(&mut log), Box::new(&mut pressure), Box::new(&mut attribution)];
    let outcome = Engine::new(plan, &mut wires)
        .run(&mut sinks, &mut |_| ControlFlow::Continue(()))
        .expect("memory wires lose nothing and the books balance");
    drop(sinks);
    let times = attribution.at_end(outcome.end);
    for time in &times {
        assert_eq!(time.times.total(), outcome.end.since(Instant::ZERO), "{time:?}");
    }
    Explained { outcome, log, pressure, times }
}

/// The plan with a receiver at the PCIe 3.0 rate.
fn slow_host(mut plan: Plan) -> Plan {
    let lane = Rate::from_bps(7_880_000_000).unwrap();
    let pcie = &mut plan.nics[1].config.pcie;
    (pcie.nic_side.lane_bps, pcie.host_side.lane_bps) = (lane, lane);
    plan
}

/// Frames that nobody sent arrive at `a`.
fn inject(plan: &mut Plan, at_ps: u64, every: Span, count: u32, frame: Bytes) {
    plan.faults.push(FaultPlan {
        name: format!("injected {}", plan.faults.len()),
        link: 0,
        from_end: 1,
        optional: false,
        kind: FaultKind::Inject { first_at: Instant::from_ps(at_ps), every, count, frame },
    });
}

fn pause(class: u8, quanta: u16) -> PfcFrame {
    PfcFrame::pause(MacAddr([2, 0, 0, 0, 0, 2]), Class::new(class).unwrap(), quanta)
}

fn psns_sent(log: &Log, qpn: u32) -> Vec<u64> {
    log.times(|kind| {
        matches!(kind, EventKind::FrameSent { packet, .. }
            if packet.kind == PacketKind::Write && packet.dest_qpn == Qpn::new(qpn).unwrap())
    })
}

fn rule(from_end: usize, matcher: Matcher, action: Action) -> FaultPlan {
    let kind = FaultKind::Rule(Rule { matcher, action });
    FaultPlan { name: format!("rule of end {from_end}"), link: 0, from_end, optional: true, kind }
}
