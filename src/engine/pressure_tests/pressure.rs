//! Pools that fill: egress that stops generation, ingress that pauses or drops.

use super::*;

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
    assert!(explained.pressure.stopped_by_pause(A, Class::DATA, explained.outcome.end).ps() > 70_000_000);
    assert_eq!(explained.pressure.stopped_by_pause(A, Class::new(2).unwrap(), explained.outcome.end), Span::ZERO);
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
