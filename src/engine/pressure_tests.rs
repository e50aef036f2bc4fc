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
fn a_lost_packet_costs_the_timer_what_is_left_of_it() {
    let mut plan = Plan { posts: vec![write(0, 4_096)], ..pair(1) };
    let matcher = Matcher { nth: vec![1], ..Matcher::default() };
    plan.faults = vec![rule(0, matcher, Action::Drop)];
    let explained = explain(&plan);
    // The timer starts with the PSN, at 150,844 ps, and the packet leaves 83,080 ps later.
    assert_eq!(
        explained.causes(0),
        [
            (Cause::Sending, 2 * 83_080),
            (Cause::Timeout, 64_000_000_000 - 83_080),
            (Cause::PcieRead, 2 * 150_844),
            (Cause::Acknowledgement, 202_520)
        ]
    );
}

#[test]
fn an_unfinished_run_is_attributed_to_where_it_was_cut_off() {
    let plan = Plan { posts: vec![write(0, 1 << 20)], until: Instant::from_ps(1_000_000), ..pair(1) };
    let explained = explain(&plan);
    // The last event before the end: 10 frames and a part.
    assert_eq!(explained.outcome.unfinished.len(), 1);
    assert_eq!(explained.time(0, Cause::PcieRead), 150_844);
    assert_eq!(explained.time(0, Cause::Sending), explained.outcome.end.ps() - 150_844);
}

#[test]
fn an_egress_pool_of_three_packets_idles_the_line_once_every_two() {
    let mut plan = Plan { posts: vec![write(0, 20 * 4_096)], ..pair(1) };
    plan.nics[0].config.egress.total = Octets::new(14_000);
    let (_, log) = run(&plan);
    let sent = log.sent(PacketKind::Write);
    // A pool of 12,600 B holds three packets, and 6,300 B one: generation restarts only when two have left. At that
    // instant, R, the third goes on the line, until R + 83,080. The payload of the next is there at R + 150,844 (80,000 to
    // start, 1,555 + 69,289 to fetch), and its frame leaves at R + 233,924, when the one after it, fetched since
    // R + 220,133, is the only one held: again R. So two packets take as long as one does with a pool of one: the line
    // idles 67,764 ps in every two, where a restart at the first release would have kept it busy.
    let expected = (0..20).map(|n| match n {
        0 => 233_924,
        n if n % 2 == 1 => 317_004 + n / 2 * 233_924,
        n => 317_004 + (n / 2 - 1) * 233_924 + 83_080,
    });
    assert_eq!(sent, expected.collect::<Vec<u64>>());
}

#[test]
fn the_defaults_never_pause() {
    let plan = Plan { posts: vec![write(0, 8 << 20), PostPlan { from_end: 1, ..write(0, 8 << 20) }], ..pair(1) };
    let explained = explain(&plan);
    for node in [A, B] {
        let counters = explained.outcome.counters.node(node);
        assert_eq!((counters.pfcxoff_tx, counters.rx_drops, counters.num_retransmitted_pkts), (0, 0, 0));
    }
}

/// Occupancy at Xoff, XOFF, the sender's class paused, no release, no generation until XON: in this order.
#[test]
fn a_slow_host_stops_the_sender_step_by_step() {
    let explained = explain(&slow_host(Plan { posts: vec![write(0, 8 << 20)], ..pair(1) }));
    let log = &explained.log;
    let first = |pick: fn(&EventKind) -> bool| log.times(pick)[0];
    let requested = first(|kind| matches!(kind, EventKind::PauseRequested { .. }));
    let sent = log.sent(PacketKind::Xoff)[0];
    let paused = first(|kind| matches!(kind, EventKind::Paused { .. }));
    let resume_requested = first(|kind| matches!(kind, EventKind::ResumeRequested { .. }));
    let resumed = first(|kind| matches!(kind, EventKind::Resumed { .. }));
    assert_eq!(
        [requested, sent, paused, resume_requested, resumed],
        [89_811_084, 89_811_084 + 1_680, 89_811_084 + 101_680, 131_803_484, 131_803_484 + 101_680]
    );
    let between = |times: Vec<u64>| times.into_iter().filter(|at| (paused..resumed).contains(at)).collect::<Vec<_>>();
    // The frame on the line finishes and is released; nothing else is, and nothing is generated.
    let in_flight = between(log.sent(PacketKind::Write));
    assert_eq!(in_flight.len(), 1);
    assert!(in_flight[0] - paused < 83_080);
    let released = log.times(|kind| matches!(kind, EventKind::EgressReleased { class, .. } if *class == Class::DATA));
    assert_eq!(between(released), in_flight);
    assert_eq!(between(log.times(|kind| matches!(kind, EventKind::SegmentReserved { .. }))), [0; 0]);
    assert_eq!(between(log.times(|kind| matches!(kind, EventKind::GenerationScheduled { .. }))), [0; 0]);
    // XOFF and XON take the same way: the pause lasts half a pause time, as long as the pool is below Xoff by then.
    assert_eq!(resumed - paused, 41_992_400);
    let on_line = |kind: &EventKind| matches!(kind, EventKind::TransmitStarted { packet, .. } if packet.kind.is_data());
    assert!(log.times(on_line).contains(&resumed), "the class sends in the instant of XON");
    // What the queue pair says of it: paused but for the frames in flight.
    let pauses = explained.paused(0);
    assert!(explained.time(0, Cause::Pause) <= pauses && explained.time(0, Cause::Pause) + 3 * 83_080 > pauses);
    assert_eq!(explained.outcome.counters.node(A).pfc_time_paused_ps, pauses);
}

#[test]
fn a_pool_that_stays_at_xoff_repeats_its_pause_every_half_pause_time() {
    let mut plan = Plan { posts: vec![write(0, 40 * 4_096)], ..pair(1) };
    plan.nics[1].config.ingress.total = Octets::new(100_000);
    // 16 Mb/s: in half a pause time 84 octets go to the host.
    plan.nics[1].config.pcie.nic_side.lane_bps = Rate::from_bps(1_000_000).unwrap();
    plan.nics[1].config.pcie.nic_side.tx_header_buffer = Octets::new(300);
    let explained = explain(&plan);
    let requested = explained.log.times(|kind| matches!(kind, EventKind::PauseRequested { .. }));
    let refreshed = explained.log.times(|kind| matches!(kind, EventKind::PauseRequested { refresh: true, .. }));
    assert!(refreshed.len() > 40, "{}", refreshed.len());
    let gaps: Vec<_> = requested.windows(2).map(|pair| pair[1] - pair[0]).collect();
    let refresh_gaps = requested.windows(2).filter(|pair| refreshed.contains(&pair[1]));
    assert!(refresh_gaps.clone().count() > 40 && refresh_gaps.clone().all(|p| p[1] - p[0] == 41_992_400), "{gaps:?}");
    // A pause refreshed in time never runs out.
    let ends = explained.log.times(|kind| matches!(kind, EventKind::Resumed { by_xon: false, .. }));
    assert_eq!(ends, [0; 0]);
    assert_eq!(explained.outcome.counters.node(B).rx_drops, 0);
}

#[test]
fn a_pause_that_nobody_repeats_lasts_its_quanta_and_the_delay() {
    let mut plan = Plan { posts: vec![write(0, 1 << 20)], ..pair(1) };
    inject(&mut plan, 5_000_000, Span::ZERO, 1, pause(0, 65_535).emit());
    let explained = explain(&plan);
    let (from, to) = (5_000_000, 5_000_000 + 83_984_800);
    let resumed = explained.log.times(|kind| matches!(kind, EventKind::Resumed { by_xon: false, .. }));
    assert_eq!(resumed, [to]);
    let started =
        explained.log.times(|k| matches!(k, EventKind::TransmitStarted { packet, .. } if packet.kind.is_data()));
    assert_eq!(started.iter().filter(|at| (from..to).contains(at)).count(), 0);
    assert!(started.contains(&to));
    // The frame on the line at 5 us finishes: 150,844 + 59 x 83,080 = 5,052,564.
    let sent = explained.log.sent(PacketKind::Write);
    assert_eq!(sent.iter().copied().filter(|at| (from..to).contains(at)).collect::<Vec<_>>(), [5_052_564]);
    assert_eq!(explained.time(0, Cause::Pause), to - 5_052_564);
    assert_eq!(explained.outcome.counters.node(A).pfc_time_paused_ps, 83_984_800);
    // Full of 55 packets from before the pause until it ends.
    let stopped = explained.pressure.stopped_by_pause(A, Class::DATA).ps();
    assert!((83_984_800..=83_984_800 + 2_500_000).contains(&stopped), "{stopped}");
}

#[test]
fn a_pause_that_outlasts_the_run_counts_as_far_as_it_came() {
    let mut plan = Plan { posts: vec![write(0, 1 << 20)], ..pair(1) };
    // All is sent at 21,419,324 ps; the run ends with its last ACK, at 21,621,844.
    inject(&mut plan, 21_500_000, Span::ZERO, 1, pause(0, 65_535).emit());
    let explained = explain(&plan);
    assert_eq!(explained.outcome.end.ps(), 21_621_844);
    assert_eq!(explained.outcome.counters.node(A).pfc_time_paused_ps, 121_844);
    assert_eq!((explained.paused(0), explained.time(0, Cause::Pause)), (121_844, 0));
}

/// What a run of 1 MiB makes of frames that arrive at its sender at 5, 6, … us.
fn after_frames(frames: &[Bytes]) -> Explained {
    let mut plan = Plan { posts: vec![write(0, 1 << 20)], ..pair(1) };
    for (at_us, frame) in (5..).zip(frames) {
        inject(&mut plan, at_us * 1_000_000, Span::ZERO, 1, frame.clone());
    }
    explain(&plan)
}

#[test]
fn pfc_frames_that_say_nothing_are_counted_and_ignored() {
    let no_class = PfcFrame { enabled: 0, ..pause(0, 65_535) }.emit();
    let mut elsewhere = pause(0, 65_535).emit().to_vec();
    elsewhere[5] = 2;
    let mut to_the_nic = pause(0, 65_535).emit().to_vec();
    to_the_nic[..6].copy_from_slice(&[2, 0, 0, 0, 0, 1]);
    let mut global = pause(0, 65_535).emit().to_vec();
    global[14..16].copy_from_slice(&[0, 1]);
    let cut_short = pause(0, 65_535).emit().slice(..30);
    let mut other_opcode = pause(0, 65_535).emit().to_vec();
    other_opcode[14..16].copy_from_slice(&[1, 2]);
    let frames = [no_class, elsewhere.into(), to_the_nic.into(), global.into(), cut_short, other_opcode.into()];
    let explained = after_frames(&frames);
    let a = explained.outcome.counters.node(A);
    assert_eq!((a.rx_pfc_no_class, a.rx_global_pause, a.rx_malformed), (1, 1, 4));
    assert_eq!((a.pfcxoff_rx, a.pfcxon_rx, a.pfc_time_paused_ps), (0, 0, 0));
    assert_eq!(explained.log.completed(0), 21_621_844, "nothing happened");
}

#[test]
fn reserved_bits_of_a_class_vector_are_ignored_and_its_classes_obeyed() {
    let explained = after_frames(&[PfcFrame { reserved: 0xff, ..pause(0, 65_535) }.emit()]);
    let a = explained.outcome.counters.node(A);
    assert_eq!((a.pfcxoff_rx, a.rx_malformed, a.pfc_time_paused_ps), (1, 0, 83_984_800));
}

#[test]
fn a_fresh_pause_restarts_the_time_and_quanta_0_ends_it() {
    let refreshed = after_frames(&[pause(0, 65_535).emit(), pause(0, 65_535).emit()]);
    assert_eq!(refreshed.outcome.counters.node(A).pfc_time_paused_ps, 1_000_000 + 83_984_800);
    let shortened = after_frames(&[pause(0, 65_535).emit(), pause(0, 100).emit()]);
    // 64 octets x 100 at 400 Gb/s are 128 ns, and 100 ns of Delay.
    assert_eq!(shortened.outcome.counters.node(A).pfc_time_paused_ps, 1_000_000 + 228_000);
    let ended = after_frames(&[pause(0, 65_535).emit(), pause(0, 0).emit(), pause(0, 0).emit()]);
    let a = ended.outcome.counters.node(A);
    assert_eq!((a.pfc_time_paused_ps, a.pfcxoff_rx, a.pfcxon_rx), (1_000_000, 1, 2));
}

#[test]
fn every_class_that_a_frame_names_is_paused_or_resumed() {
    let mut quanta = [0; Class::COUNT];
    (quanta[0], quanta[7]) = (1_000, 2_000);
    // Class 3 has quanta but is not named; class 1 is named and resumes, though it was not paused.
    quanta[3] = 5;
    let explained = after_frames(&[PfcFrame { enabled: 0b1000_0011, quanta, ..pause(0, 0) }.emit()]);
    let a = explained.outcome.counters.node(A);
    assert_eq!((a.pfcxoff_rx, a.pfcxon_rx), (2, 1));
    // 1,280 and 2,560 ns, and 100 ns of Delay each.
    assert_eq!([0, 1, 3, 7].map(|class| explained.paused(class)), [1_380_000, 0, 0, 2_660_000]);
}

/// Two queue pairs of classes 0 and 2, in pools of their own; ACKs go in class 1.
fn two_classes() -> Plan {
    let mut plan = Plan { posts: vec![write(0, 1 << 20), write(1, 1 << 20)], ..pair(2) };
    let class = Class::new(2).unwrap();
    for end in &mut plan.queue_pairs[1].ends {
        end.data_class = class;
    }
    for nic in &mut plan.nics {
        let shares = [Share::from_percent(45), Share::from_percent(10), Share::from_percent(45)];
        nic.config.egress.shares[..3].copy_from_slice(&shares);
        nic.config.ingress.shares[..3].copy_from_slice(&shares);
    }
    plan
}

#[test]
fn a_paused_class_stops_its_neighbour_once_its_pool_is_full() {
    let mut plan = two_classes();
    inject(&mut plan, 5_000_000, Span::ZERO, 1, pause(0, 65_535).emit());
    let explained = explain(&plan);
    let (from, to) = (5_000_000, 88_984_800);
    let during = |qpn| psns_sent(&explained.log, qpn).into_iter().filter(|at| (from..to).contains(at)).count();
    // Of class 0 at most the frame in flight; of class 2, which goes first, what was queued or fetched. Each of its
    // segments had its turn behind one of class 0, whose pool (27 packets) was nearly full by then.
    assert!(during(2) <= 1, "{}", during(2));
    assert!((1..=27).contains(&during(3)), "{}", during(3));
    let last = psns_sent(&explained.log, 3).into_iter().rfind(|at| *at < to).unwrap();
    assert!(last < from + 10_000_000, "{last}");
    // The neighbour waits for a pool that is not its own, and the run says whose.
    assert!(explained.time(1, Cause::EgressPool) > 70_000_000, "{:?}", explained.causes(1));
    assert_eq!(explained.time(1, Cause::Pause), 0);
    assert!(explained.time(0, Cause::Pause) > 80_000_000, "{:?}", explained.causes(0));
    assert!(explained.pressure.stopped_by_pause(A, Class::DATA).ps() > 70_000_000);
    assert_eq!(explained.pressure.stopped_by_pause(A, Class::new(2).unwrap()), Span::ZERO);
}

/// Pool of 90,000 B for class 0 and Xoff at its very end.
fn without_headroom() -> Plan {
    let mut plan = slow_host(Plan { posts: vec![write(0, 250 * 4_096)], ..pair(1) });
    let ingress = &mut plan.nics[1].config.ingress;
    ingress.total = Octets::new(100_000);
    ingress.xoff[0] = Share::from_percent(100);
    plan
}

#[test]
fn without_headroom_frames_are_lost_recovered_and_reported() {
    let plan = without_headroom();
    let (outcome, log) = run(&plan);
    let b = outcome.counters.node(B);
    assert!(b.rx_drops > 0 && b.rx_drops == b.rx_lossless_drops && b.pfcxoff_tx > 0, "{b:?}");
    // The frame that reaches Xoff finds no room, each time. Those that were on their way behind it show the gap, if one
    // of them finds room: it draws the NAK, is discarded, and gives its room back at once.
    assert!(b.rx_drops >= b.pfcxoff_tx);
    assert!(outcome.counters.node(A).num_rtx > 0 && outcome.counters.node(A).num_rto == 0);
    assert_eq!(outcome.compared.get(), 250 * 4_096, "go-back-N brought all of it");
    assert_eq!(outcome.violations.count, b.rx_drops);
    let first = outcome.violations.first[0];
    // 21 packets of 4,136 B fit into 90,000 B, and the next lacks 992 B.
    assert_eq!((first.occupancy.get(), first.missing.get()), (21 * 4_136, 992));
    assert_eq!(
        log.times(|kind| matches!(kind, EventKind::PauseRequested { .. }))[0],
        first.at.ps(),
        "pause first (P1)"
    );
    let shortcomings = outcome.shortcomings(&plan);
    let lines: Vec<_> = shortcomings.iter().map(Shortcoming::to_string).collect();
    assert!(lines[0].starts_with("LOSSLESS VIOLATION: b:a dropped WRITE "), "{lines:?}");
    assert!(lines[0].ends_with("though class 0 has PFC: its pool held 86856 B, 992 B too many for it"), "{lines:?}");
    assert_eq!(lines.len(), 4, "three in full and a count: {lines:?}");

    let allowed = Plan { allow_lossless_drops: true, ..plan.clone() };
    assert_eq!(outcome.shortcomings(&allowed), []);
    let mut lossy = plan;
    lossy.nics[1].config.ingress.pfc_enabled[0] = false;
    let (outcome, _) = run(&lossy);
    assert!(outcome.counters.node(B).rx_drops > 0);
    assert_eq!(outcome.shortcomings(&lossy), [], "a class without PFC may lose frames");
}

fn rule(from_end: usize, matcher: Matcher, action: Action) -> FaultPlan {
    let kind = FaultKind::Rule(Rule { matcher, action });
    FaultPlan { name: format!("rule of end {from_end}"), link: 0, from_end, optional: true, kind }
}

mod any_plan {
    use proptest::prelude::*;

    use super::*;

    fn posts(ends: usize, from_size: u64) -> impl Strategy<Value = Vec<PostPlan>> {
        let post =
            (0..2_usize, 0..ends, from_size..300_000_u64, 0..20_u64).prop_map(|(queue_pair, from_end, size, at_us)| {
                PostPlan { from_end, at: Instant::from_ps(at_us * 1_000_000), ..write(queue_pair, size) }
            });
        prop::collection::vec(post, 1..5)
    }

    prop_compose! {
        /// Any rates, delays and packet sizes; a slow receiver with small pools; random losses.
        fn plan()(
            gbps in prop::sample::select(vec![10_u64, 25, 40, 100, 400]),
            delay_ns in 0..2_000_u64,
            mss in 64..4_097_u64,
            lane_mbps in 200..32_000_u64,
            egress in 10_000..300_000_u64,
            ingress in 20_000..300_000_u64,
            xoff in 20..101_u64,
            pfc: bool,
            loss in 0..20_u64,
            posts in posts(2, 0),
        ) -> Plan {
            let mut plan = Plan { posts, ..pair(2) };
            plan.queue_pairs[1].ends.iter_mut().for_each(|end| end.initial_psn = Psn::new(0xff_fffe));
            let delay = Span::from_ns(delay_ns);
            for nic in &mut plan.nics {
                let config = &mut nic.config;
                (config.data_rate, config.delay, config.mss) = (Rate::from_gbps(gbps), delay, Octets::new(mss));
                config.retransmit_timeout = Span::from_us(300);
                config.egress.total = Octets::new(egress);
                config.ingress.total = Octets::new(ingress);
                config.ingress.xoff[0] = Share::from_percent(xoff);
                config.ingress.pfc_enabled[0] = pfc;
                config.ingress.quanta[0] = 2_000;
                config.pcie.nic_side.lane_bps = Rate::from_bps(lane_mbps * 1_000_000).unwrap();
            }
            plan.links[0].ends.iter_mut().for_each(|end| end.delay = delay);
            for end in 0..2 {
                let probability = Some(Share::from_percent(loss));
                plan.faults.push(rule(end, Matcher { probability, ..Matcher::default() }, Action::Drop));
            }
            plan
        }
    }

    prop_compose! {
        /// A receiver with as much headroom as theory asks for, slower than its line.
        fn plan_with_headroom()(
            gbps in prop::sample::select(vec![10_u64, 25, 40, 50, 100, 200, 400]),
            delay_ns in 0..3_000_u64,
            mss in 68..4_097_u64,
            slowness in 2..40_u64,
            above in 0..50_000_u64,
            posts in posts(1, 150_000),
        ) -> Plan {
            let mut plan = Plan { posts, ..pair(2) };
            let (delay, rate, mtu) = (Span::from_ns(delay_ns), Rate::from_gbps(gbps), mss + 58);
            let headroom = (2 * gbps * delay_ns).div_ceil(8) + 3 * mtu + 84;
            let pool = headroom + 2 * mtu + above;
            for nic in &mut plan.nics {
                let config = &mut nic.config;
                (config.data_rate, config.delay, config.mss) = (rate, delay, Octets::new(mss));
                let ingress = &mut config.ingress;
                ingress.shares[..2].copy_from_slice(&[Share::from_percent(50), Share::from_percent(50)]);
                ingress.total = Octets::new(2 * pool);
                let parts = u128::from(pool - headroom) * u128::from(Share::UNIT) / u128::from(pool);
                ingress.xoff[0] = Share::from_parts(parts as u64);
                // At or above Xoff, it would resume the sender while the headroom is in use.
                ingress.xon[0] = Share::from_parts(parts as u64 / 2);
            }
            let pcie = &mut plan.nics[1].config.pcie.nic_side;
            (pcie.lane_bps, pcie.lane_count) = (Rate::from_bps(gbps * 1_000_000_000 / slowness).unwrap(), 1);
            (pcie.tx_header_buffer, pcie.tx_data_buffer) = (Octets::new(400), Octets::new(5_000));
            plan.links[0].ends.iter_mut().for_each(|end| end.delay = delay);
            plan
        }
    }

    /// No pool ever holds more than it can; the egress pool of the control class aside (model.md T12).
    fn check_pools(plan: &Plan, log: &Log) -> Result<(), TestCaseError> {
        let limits = plan.limits();
        for Event { at, node, kind } in &log.0 {
            let (class, occupancy, size) = match kind {
                EventKind::SegmentReserved { class, occupancy, .. } => {
                    (*class, *occupancy, limits.nodes[node.index()].egress[class.index()])
                }
                EventKind::FrameReceived { packet, occupancy, .. } if !packet.kind.is_pfc() => {
                    let limit = limits.nodes[node.index()].ports[0][packet.class.index()];
                    (packet.class, *occupancy, limit.map(|limit| limit.pool))
                }
                _ => continue,
            };
            prop_assert!(
                size.is_some_and(|size| occupancy <= size),
                "{at} {node:?} class {class}: {occupancy} of {size:?}"
            );
        }
        Ok(())
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(48))]

        #[test]
        fn holds_no_more_than_its_pools_and_accounts_for_every_picosecond(plan in plan()) {
            // `explain` checks that every queue pair's causes add up to the run's time; an account that would go
            // negative panics.
            let explained = explain(&plan);
            prop_assert_eq!(&explained.outcome.unfinished, &[]);
            check_pools(&plan, &explained.log)?;
            let paused = explained.outcome.counters.node(A).pfc_time_paused_ps;
            prop_assert_eq!(paused, (0..8).map(|class| explained.paused(class)).sum::<u64>());
        }

        #[test]
        fn loses_nothing_with_enough_headroom(plan in plan_with_headroom()) {
            let explained = explain(&plan);
            let b = explained.outcome.counters.node(B);
            prop_assume!(b.pfcxoff_tx > 0);
            prop_assert_eq!((b.rx_drops, explained.outcome.counters.node(A).num_rtx), (0, 0));
            check_pools(&plan, &explained.log)?;
        }
    }
}
