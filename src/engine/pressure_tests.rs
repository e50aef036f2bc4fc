//! Pools, pauses and the PCIe link under pressure, and what a run says of it.
//!
//! Sizes and times as in `tests`. Payload octets of a PCIe 3.0 receiver leave its pool every 277,157 ps, 4,136 at a time,
//! while they come every 83,080 ps.

use std::ops::ControlFlow;

use bytes::Bytes;

use super::tests::{A, B, Log, pair, run, write};
use super::{Engine, MemoryWires, Outcome, Shortcoming};
use crate::base::{Class, Instant, Octets, Psn, Qpn, Rate, Share, Span};
use crate::link::{Action, Matcher, Rule};
use crate::record::{Attribution, Cause, Pressure, QueuePairTime};
use crate::scenario::{FaultKind, FaultPlan, Plan, PostPlan};
use crate::trace::{Event, EventKind, PacketKind, Sink};
use crate::wire::{MacAddr, PfcFrame};

/// A run with all that explains it.
struct Explained {
    outcome: Outcome,
    log: Log,
    pressure: Pressure,
    times: Vec<QueuePairTime>,
}

impl Explained {
    fn time(&self, queue_pair: usize, cause: Cause) -> u64 {
        self.times[queue_pair].times.of(cause).ps()
    }

    /// Times by cause of a queue pair, without those that are 0.
    fn causes(&self, queue_pair: usize) -> Vec<(Cause, u64)> {
        let times = self.times[queue_pair].times.iter();
        times.map(|(cause, span)| (cause, span.ps())).filter(|(_, ps)| *ps > 0).collect()
    }

    fn paused(&self, class: u8) -> u64 {
        self.pressure.paused(A, crate::base::PortId(0), Class::new(class).unwrap()).ps()
    }
}

fn explain(plan: &Plan) -> Explained {
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

#[test]
fn a_line_that_never_waits_is_the_cause_of_nearly_everything() {
    let plan = Plan { posts: vec![write(0, 1 << 20)], ..pair(1) };
    let explained = explain(&plan);
    // 80 ns to start, 1,555 + 69,289 ps for the first payload, 256 frames back to back, and the last ACK: 100 ns there,
    // 2,520 ps on the line, 100 ns back.
    assert_eq!(
        explained.causes(0),
        [(Cause::Sending, 256 * 83_080), (Cause::PcieRead, 150_844), (Cause::Acknowledgement, 202_520)]
    );
    // 11 tenths of a percent of 21,621,844 ps are missing after rounding down... none is lost.
    assert_eq!(explained.times[0].times.per_mille().iter().sum::<u64>(), 1_000);
    assert_eq!(explained.outcome.counters.node(A).pcie_to_host_octets, 256 * 98);
    assert_eq!(explained.outcome.counters.node(A).pcie_from_host_octets, 256 * 4_368);
    assert_eq!(explained.outcome.counters.node(B).pcie_to_host_octets, 256 * 4_368);
}

#[test]
fn an_egress_pool_of_one_packet_costs_the_start_of_generation() {
    let mut plan = Plan { posts: vec![write(0, 10 * 4_096)], ..pair(1) };
    plan.nics[0].config.egress.total = Octets::new(5_000);
    let explained = explain(&plan);
    // Every packet but the first waits 80 ns for the pool that its predecessor filled, then for its payload.
    assert_eq!(explained.time(0, Cause::Sending), 10 * 83_080);
    assert_eq!(explained.time(0, Cause::EgressPool), 9 * 80_000);
    assert_eq!(explained.time(0, Cause::PcieRead), 80_000 + 10 * 70_844);
    assert_eq!(explained.time(0, Cause::Acknowledgement), 202_520);
}

#[test]
fn two_queue_pairs_share_a_line() {
    let plan = Plan { posts: vec![write(0, 1 << 20), write(1, 1 << 20)], ..pair(2) };
    let explained = explain(&plan);
    for queue_pair in 0..2 {
        assert_eq!(explained.time(queue_pair, Cause::Sending), 256 * 83_080);
        // Its share of the line is a half.
        let behind = explained.time(queue_pair, Cause::LineBusy);
        assert!((253 * 83_080..=256 * 83_080).contains(&behind), "{:?}", explained.causes(queue_pair));
    }
}

#[test]
fn show() {
    for plan in [
        slow_host(Plan { posts: vec![write(0, 64 << 20)], ..pair(1) }),
        Plan { posts: vec![write(0, 1 << 20), write(1, 1 << 20)], ..pair(2) },
    ] {
        let explained = explain(&plan);
        println!(
            "{} {:?} {:?} {}",
            explained.outcome.end.ps(),
            explained.causes(0),
            explained.times.len(),
            explained.paused(0)
        );
        println!("{:?}", explained.outcome.counters.node(B));
    }
}
