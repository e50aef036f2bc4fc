//! Loss recovery on memory wires, checked against hand-derived picoseconds.

use super::tests::{A, B, Log, pair, run, write};
use super::{Engine, MemoryWires, Outcome};
use crate::base::{Instant, MessageId, Octets, Psn, Share, Span};
use crate::link::{Action, Corruption, Field, Matcher, PsnMatch, Rule};
use crate::scenario::{FaultKind, FaultPlan, Plan, PostPlan};
use crate::trace::{DropReason, EventKind, PacketKind, Verdict};

pub fn fault(from_end: usize, matcher: Matcher, action: Action) -> FaultPlan {
    FaultPlan {
        name: format!("fault from end {from_end}"),
        link: 0,
        from_end,
        optional: false,
        kind: FaultKind::Rule(Rule { matcher, action }),
    }
}

pub fn data(psn: u32, transmissions: &[u32]) -> Matcher {
    Matcher {
        kinds: vec![PacketKind::Write],
        psns: vec![PsnMatch::Absolute(Psn::new(psn))],
        transmissions: transmissions.to_vec(),
        ..Matcher::default()
    }
}

/// The 1 MiB WRITE with faults.
fn mebibyte(faults: Vec<FaultPlan>) -> (Outcome, Log) {
    let plan = Plan { posts: vec![write(0, 1 << 20)], faults, ..pair(1) };
    let (outcome, log) = run(&plan);
    assert_eq!(outcome.shortcomings(&plan), []);
    (outcome, log)
}

#[test]
fn a_lost_last_packet_costs_one_timeout() {
    let (outcome, log) = mebibyte(vec![fault(0, data(255, &[1]), Action::Drop)]);
    // The ACK of packet 255 arrives at 233,924 + 254 x 83,080 + 100,000 + 2,520 + 100,000 = 21,538,764 ps and restarts
    // the 64 ms timer. Then the packet alone: 80,000 + 1,555 + 69,289 + 83,080 + 100,000 + 2,520 + 100,000 = 436,444.
    let expired = log.times(|kind| matches!(kind, EventKind::TransportTimerExpired { .. }));
    assert_eq!(expired, [64_021_538_764]);
    assert_eq!(log.completed(0), 64_021_975_208);
    let a = outcome.counters.node(A);
    assert_eq!((a.num_rto, a.num_rtx, a.num_retransmitted_pkts), (1, 1, 1));
    assert_eq!(outcome.counters.node(B).num_nacks_sent, 0);
}

#[test]
fn a_lost_middle_packet_costs_a_nak_and_the_frames_behind_it() {
    for psn in [0, 1, 16, 50, 99, 100, 200, 250, 254] {
        let (outcome, log) = mebibyte(vec![fault(0, data(psn, &[1]), Action::Drop)]);
        let (a, b) = (outcome.counters.node(A), outcome.counters.node(B));
        assert_eq!((a.num_rto, b.num_nacks_sent, b.num_seq_out_of_order), (0, 1, 1), "PSN {psn}");
        // Everything sent beyond the gap is discarded, the packet that drew the NAK included, and sent again.
        let sent = a.num_verb_pkts_sent;
        assert_eq!(b.num_rx_drops_after_nak, sent - 256 - 1, "PSN {psn}");
        assert_eq!(a.num_retransmitted_pkts, b.num_rx_drops_after_nak + 1, "PSN {psn}");
        // Without the loss 21,621,844 ps: recovery takes the NAK's way back and the drain of the queue.
        let recovery = log.completed(0) - 21_621_844;
        assert!((500_000..=4_000_000).contains(&recovery), "PSN {psn}: {recovery} ps");
    }
}

#[test]
fn a_lost_nak_is_not_repeated_and_the_timer_recovers() {
    let nak = Matcher { kinds: vec![PacketKind::Nak], ..Matcher::default() };
    let (outcome, _) = mebibyte(vec![fault(0, data(100, &[1]), Action::Drop), fault(1, nak, Action::Drop)]);
    let (a, b) = (outcome.counters.node(A), outcome.counters.node(B));
    assert_eq!((a.num_rto, a.num_nacks_recvd, b.num_nacks_sent), (1, 0, 1));
}

#[test]
fn a_lost_retransmission_draws_no_second_nak() {
    let (outcome, _) = mebibyte(vec![fault(0, data(100, &[1, 2]), Action::Drop)]);
    let (a, b) = (outcome.counters.node(A), outcome.counters.node(B));
    assert_eq!((a.num_rto, b.num_nacks_sent), (1, 1));
}

#[test]
fn a_lost_ack_is_covered_by_the_next() {
    let ack = Matcher { kinds: vec![PacketKind::Ack], nth: vec![3], ..Matcher::default() };
    let (outcome, log) = mebibyte(vec![fault(1, ack, Action::Drop)]);
    assert_eq!(log.completed(0), 21_621_844);
    assert_eq!(outcome.counters.node(A).num_acks_recvd, 15);
}

#[test]
fn a_lost_last_ack_is_drawn_again_by_a_duplicate() {
    let ack = Matcher { kinds: vec![PacketKind::Ack], nth: vec![16], ..Matcher::default() };
    let (outcome, log) = mebibyte(vec![fault(1, ack, Action::Drop)]);
    let b = outcome.counters.node(B);
    assert_eq!(b.num_duplicate, 1, "packet 256 again; the ACK of 255 had arrived");
    assert_eq!(log.completed(0), 64_021_975_208);
}

#[test]
fn a_copy_of_a_packet_is_a_duplicate_and_harms_nothing() {
    let (outcome, log) = mebibyte(vec![fault(0, data(77, &[]), Action::Duplicate)]);
    assert_eq!(outcome.counters.node(B).num_duplicate, 1);
    assert_eq!(log.completed(0), 21_621_844);
}

#[test]
fn a_damaged_packet_is_discarded_before_any_charge_and_recovered() {
    for field in [Field::Payload, Field::Bth, Field::Icrc] {
        let (outcome, log) =
            mebibyte(vec![fault(0, data(40, &[1]), Action::Corrupt(Corruption { field, bit: 70 % 32 }))]);
        let b = outcome.counters.node(B);
        assert_eq!((b.rx_icrc_encapsulated, b.num_nacks_sent), (1, 1), "{field:?}");
        let occupancies = log.0.iter().filter_map(|event| match event.kind {
            EventKind::FrameReceived { verdict: Verdict::Dropped(DropReason::Malformed(_)), occupancy, .. } => {
                Some(occupancy.get())
            }
            _ => None,
        });
        assert_eq!(occupancies.collect::<Vec<_>>(), [0], "{field:?}");
    }
}

#[test]
fn a_reordered_packet_draws_a_nak_and_a_delayed_one_too() {
    for action in [Action::Reorder { after: 3 }, Action::Delay(Span::from_ns(300))] {
        let (outcome, _) = mebibyte(vec![fault(0, data(40, &[1]), action)]);
        let b = outcome.counters.node(B);
        assert_eq!(b.num_nacks_sent, 2, "{action:?}: it came late, and the one behind it had been discarded");
    }
}

#[test]
fn a_link_that_goes_down_and_up_loses_what_ends_meanwhile() {
    let window = Matcher {
        from: Some(Instant::from_ps(1_000_000)),
        until: Some(Instant::from_ps(3_000_000)),
        ..Matcher::default()
    };
    let (outcome, _) = mebibyte(vec![fault(0, window, Action::Down)]);
    // Frames end at 233,924 + n x 83,080: n = 10 at 1,064,724 is the first, n = 33 at 2,975,564 the last.
    assert_eq!(outcome.faults[0].fired, 24);
    assert_eq!(outcome.counters.node(A).num_rto, 0);
}

#[test]
fn random_loss_delivers_every_octet_the_same_way_twice() {
    let lossy = Matcher { probability: Some(Share::from_parts(Share::UNIT / 1_000)), ..Matcher::default() };
    let posts = (0..16).map(|queue_pair| write(queue_pair, 4 << 20)).collect();
    let faults = vec![fault(0, lossy.clone(), Action::Drop), fault(1, lossy, Action::Drop)];
    let plan = Plan { posts, faults, ..pair(16) };
    let (outcome, log) = run(&plan);
    assert_eq!(outcome.compared.get(), 64 << 20);
    assert!(outcome.faults.iter().all(|report| report.fired > 0));
    let (again, log_again) = run(&plan);
    assert_eq!(outcome.counters, again.counters);
    assert!(log.0 == log_again.0, "every event is the same");
    let other = Plan { seed: 2, ..plan };
    assert_ne!(run(&other).1.0.len(), log.0.len());
}

#[test]
fn a_wrap_of_the_psn_survives_loss() {
    for lost in [0xff_fff0, 0xff_ffff, 0, 1] {
        let mut plan =
            Plan { posts: vec![write(0, 1 << 20)], faults: vec![fault(0, data(lost, &[1]), Action::Drop)], ..pair(1) };
        plan.queue_pairs[0].ends[0].initial_psn = Psn::new(0xff_fff0);
        let (outcome, _) = run(&plan);
        assert_eq!(outcome.counters.node(B).num_nacks_sent, 1, "PSN {lost:#x}");
    }
}

#[test]
fn a_fault_that_never_happens_fails_the_run() {
    let plan = Plan { posts: vec![write(0, 4_096)], faults: vec![fault(0, data(7, &[]), Action::Drop)], ..pair(1) };
    let (outcome, _) = run(&plan);
    let said: Vec<_> = outcome.shortcomings(&plan).iter().map(ToString::to_string).collect();
    assert_eq!(said, ["fault `fault from end 0` never happened: no frame matched"]);
}

#[test]
fn regression_a_message_behind_a_lost_one_keeps_its_order() {
    let posts = vec![PostPlan { count: 5, ..write(0, 20_000) }];
    let lost = Matcher { messages: vec![MessageId(2)], nth: vec![2], ..Matcher::default() };
    let plan = Plan { posts, faults: vec![fault(0, lost, Action::Drop)], ..pair(1) };
    let (outcome, _) = run(&plan);
    assert_eq!(outcome.compared, Octets::new(100_000));
}

#[test]
fn a_run_cut_off_in_the_middle_of_a_recovery_still_balances() {
    for until in (0..30).map(|n| n * 200_000) {
        let plan = Plan {
            posts: vec![write(0, 1 << 20)],
            until: Instant::from_ps(until),
            faults: vec![fault(0, data(3, &[1]), Action::Drop)],
            ..pair(1)
        };
        let mut wires = MemoryWires::default();
        let outcome = Engine::new(&plan, &mut wires)
            .run(&mut Log::default(), &mut |_| std::ops::ControlFlow::Continue(()))
            .unwrap_or_else(|error| panic!("cut off at {until}: {error}"));
        assert_eq!(outcome.unfinished, [MessageId(0)]);
    }
}
