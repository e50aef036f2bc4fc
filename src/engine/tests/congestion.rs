//! Congestion from a marked packet to the rate of the next frame.
//!
//! A marked first packet has arrived at 333,924 ps: 150,844 ps until its first bit, 83,080 on the line, 100,000 of
//! Delay. Its CNP of 122 B lasts 2,440 ps and arrives at 436,364. By then three packets have been sent, the last one at
//! 400,084, and the fourth is on the line until 483,164.

use super::*;
use crate::link::{Action, Matcher, PsnMatch, Rule};
use crate::nic::{CongestionConfig, CongestionControl, RateApplication};
use crate::scenario::{FaultKind, FaultPlan};
use crate::trace::RateCause;
use crate::wire::{Ecn, Packet};

const CNP_ARRIVES: u64 = 436_364;
const MIB: u64 = 1 << 20;
const DATA: [PacketKind; 1] = [PacketKind::Write];

fn fault(from_end: usize, matcher: Matcher, action: Action) -> FaultPlan {
    FaultPlan {
        name: format!("{action:?}"),
        link: 0,
        from_end,
        optional: false,
        kind: FaultKind::Rule(Rule { matcher, action }),
    }
}

/// The first transmission of these PSNs.
fn first(psns: &[u32]) -> Matcher {
    let psns = psns.iter().map(|&psn| PsnMatch::Absolute(Psn::new(psn))).collect();
    Matcher { kinds: DATA.into(), psns, transmissions: vec![1], ..Matcher::default() }
}

fn all_data() -> Matcher {
    Matcher { kinds: DATA.into(), ..Matcher::default() }
}

/// One WRITE from A to B; the link marks these of its packets.
fn marked(size: u64, matcher: Matcher) -> Plan {
    Plan { posts: vec![write(0, size)], faults: vec![fault(0, matcher, Action::SetCe)], ..pair(1) }
}

/// The same with the controller of both NICs changed.
fn configured(mut plan: Plan, change: impl Fn(&mut CongestionConfig)) -> Plan {
    plan.nics.iter_mut().for_each(|nic| change(&mut nic.config.congestion));
    plan
}

impl Log {
    /// Time, current and target rate in bit/s, cause.
    fn rates(&self) -> Vec<(u64, u64, u64, RateCause)> {
        let rate = |event: &Event| match event.kind {
            EventKind::RateChanged { current, target, cause, .. } => {
                Some((event.at.ps(), current.bps(), target.bps(), cause))
            }
            _ => None,
        };
        self.0.iter().filter_map(rate).collect()
    }

    /// Start, end and rate in bit/s of every frame of A's that `pick` picks.
    fn frames(&self, pick: impl Fn(PacketKind) -> bool) -> Vec<(u64, u64, u64)> {
        let of_a = self.0.iter().filter(|event| event.node == A);
        let (mut frames, mut started) = (Vec::new(), (0, 0));
        for event in of_a {
            match event.kind {
                EventKind::TransmitStarted { rate, .. } => started = (event.at.ps(), rate.bps()),
                EventKind::FrameSent { packet, .. } if pick(packet.kind) => {
                    frames.push((started.0, event.at.ps(), started.1));
                }
                _ => {}
            }
        }
        frames
    }

    fn ecn_of_data(&self) -> Vec<Ecn> {
        let ecn = |event: &Event| match &event.kind {
            EventKind::FrameSent { packet, frame, .. } if packet.kind.is_data() => match Packet::parse(frame) {
                Ok(Packet::Roce(roce)) => Some(roce.ecn),
                _ => None,
            },
            _ => None,
        };
        self.0.iter().filter_map(ecn).collect()
    }
}

#[test]
fn the_first_cnp_cuts_in_the_instant_of_its_arrival_and_the_next_frame_is_stretched() {
    let (outcome, log) = run(&marked(MIB, first(&[0])));
    // One CNP for three packets, half of it new: the estimate is 1/6, the cut 1/12 of 400 Gb/s.
    assert_eq!(log.rates()[0], (CNP_ARRIVES, 366_666_666_667, 400_000_000_000, RateCause::Cut));
    let data = log.frames(PacketKind::is_data);
    assert_eq!(data[3], (400_084, 483_164, 400_000_000_000), "a frame in progress is left alone");
    // 4,154 B at 366.666666667 Gb/s: 90,632.7 ps.
    assert_eq!(data[4], (483_164, 573_797, 366_666_666_667));
    assert_eq!(data[5], (573_797, 664_430, 366_666_666_667));
    let (a, b) = (outcome.counters.node(A), outcome.counters.node(B));
    assert_eq!((b.num_ce_recvd, b.num_cnp_sent, a.num_cnp_recvd), (1, 1, 1));
    assert_eq!((a.num_congestion_episodes, a.num_cnp_ignored, a.num_ce_recvd), (1, 0, 0));
}

#[test]
fn after_the_cut_the_rate_comes_back_every_45_us_from_22_5_us_on() {
    let (_, log) = run(&marked(24 * MIB, first(&[0])));
    let rates = log.rates();
    let times: Vec<_> = rates.iter().map(|&(at, ..)| at).collect();
    let expected: Vec<_> =
        std::iter::once(CNP_ARRIVES).chain((0..9).map(|k| CNP_ARRIVES + 22_500_000 + 45_000_000 * k)).collect();
    assert_eq!(times, expected);
    // The gap of 33.33 Gb/s halves nine times, to 0.065: near enough to end.
    let currents: Vec<_> = rates.iter().map(|&(_, current, ..)| current).collect();
    let expected = [
        366_666_666_667,
        383_333_333_333,
        391_666_666_667,
        395_833_333_333,
        397_916_666_667,
        398_958_333_333,
        399_479_166_667,
        399_739_583_333,
        399_869_791_667,
        400_000_000_000,
    ];
    assert_eq!(currents, expected);
    assert!(rates.iter().all(|&(_, _, target, _)| target == 400_000_000_000));
    let causes: Vec<_> = rates.iter().map(|&(.., cause)| cause).collect();
    let mut expected = [RateCause::AdditiveIncrease; 10];
    expected[0] = RateCause::Cut;
    expected[1..4].fill(RateCause::FastRecovery);
    assert_eq!(causes, expected);
    let ended = log.0.iter().find_map(|event| match event.kind {
        EventKind::EpisodeEnded { lasted, .. } => Some((event.at.ps(), lasted)),
        _ => None,
    });
    assert_eq!(ended, Some((382_936_364, Span::from_ns(382_500))));
    assert_eq!(log.frames(PacketKind::is_data).last().unwrap().2, 400_000_000_000);
}

#[test]
fn at_the_floor_a_packet_occupies_the_port_for_830_8_ns() {
    let (outcome, log) = run(&marked(8 * MIB, all_data()));
    let rates = log.rates();
    assert_eq!(rates.iter().map(|&(_, current, ..)| current).min(), Some(40_000_000_000));
    let data = log.frames(PacketKind::is_data);
    let at_floor: Vec<_> = data.iter().filter(|&&(.., rate)| rate == 40_000_000_000).collect();
    assert!(!at_floor.is_empty());
    assert!(at_floor.iter().all(|(start, end, _)| end - start == 830_800));
    // CNPs all the time: an increase costs five skipped halves.
    let increases: Vec<_> = rates.iter().filter(|&&(.., cause)| cause != RateCause::Cut).map(|&(at, ..)| at).collect();
    assert!(increases.len() > 1);
    assert!(increases.windows(2).all(|pair| pair[1] - pair[0] >= 270_000_000), "{increases:?}");
    let (a, b) = (outcome.counters.node(A), outcome.counters.node(B));
    assert_eq!([b.num_ce_recvd, b.num_cnp_sent, a.num_cnp_recvd], [2_048; 3]);
}

#[test]
fn what_is_not_data_goes_at_line_rate() {
    let mut plan = marked(2 * MIB, all_data());
    plan.posts.push(PostPlan { from_end: 1, ..write(0, 2 * MIB) });
    let (_, log) = run(&plan);
    let control = log.frames(|kind| !kind.is_data());
    // 512 packets draw an ACK for every 17.
    assert!(control.len() > 30);
    assert!(control.iter().all(|&(.., rate)| rate == 400_000_000_000));
}

#[test]
fn without_ecn_data_is_not_ect_and_cnps_are_made_and_ignored() {
    for (enable_ecn, ecn) in [(false, Ecn::NotEct), (true, Ecn::Ect0)] {
        let mut plan = marked(MIB, first(&[0]));
        plan.nics.iter_mut().for_each(|nic| nic.config.enable_ecn = enable_ecn);
        let (outcome, log) = run(&plan);
        assert!(log.ecn_of_data().iter().all(|&found| found == ecn));
        let a = outcome.counters.node(A);
        assert_eq!((a.num_cnp_recvd, a.num_cnp_ignored), (1, u64::from(!enable_ecn)));
        assert_eq!(log.rates().is_empty(), !enable_ecn);
        // The CNP costs nobody anything else.
        assert_eq!(log.completed(0) == 21_621_844, !enable_ecn);
    }
}

#[test]
fn the_four_switches_are_independent() {
    type Change = fn(&mut CongestionConfig);
    let no_reaction: Change = |config| config.reaction = false;
    let no_control: Change = |config| config.control = CongestionControl::None;
    for change in [no_reaction, no_control] {
        let (outcome, log) = run(&configured(marked(MIB, first(&[0])), change));
        assert!(log.ecn_of_data().iter().all(|&found| found == Ecn::Ect0));
        assert_eq!((outcome.counters.node(A).num_cnp_ignored, log.completed(0)), (1, 21_621_844));
    }
    let (outcome, log) = run(&configured(marked(MIB, all_data()), |config| config.cnp_generation = false));
    assert_eq!((outcome.counters.node(B).num_ce_recvd, outcome.counters.node(B).num_cnp_sent), (256, 0));
    assert_eq!(log.completed(0), 21_621_844);
}

#[test]
fn duplicates_and_packets_behind_a_gap_draw_cnps() {
    let mut plan = marked(MIB, first(&[3, 6]));
    plan.faults.push(fault(0, first(&[3]), Action::Duplicate));
    plan.faults.push(fault(0, first(&[5]), Action::Drop));
    let (outcome, _) = run(&plan);
    let (a, b) = (outcome.counters.node(A), outcome.counters.node(B));
    assert!(b.num_duplicate > 0 && b.num_rx_drops_after_nak > 0);
    // Packet 3 twice, packet 6 once.
    assert_eq!([b.num_ce_recvd, b.num_cnp_sent, a.num_cnp_recvd], [3; 3]);
}

#[test]
fn marked_acks_and_cnps_draw_nothing() {
    let mut plan = marked(MIB, first(&[0]));
    let control = Matcher { kinds: vec![PacketKind::Ack, PacketKind::Cnp], ..Matcher::default() };
    plan.faults.push(fault(1, control, Action::SetCe));
    let (outcome, _) = run(&plan);
    assert_eq!(outcome.faults[1].fired, 17);
    assert_eq!((outcome.counters.node(A).num_ce_recvd, outcome.counters.node(A).num_cnp_sent), (0, 0));
}

#[test]
fn every_mark_is_received_and_answered_where_nothing_is_lost() {
    for percent in [1, 10, 50] {
        let matcher = Matcher { probability: Some(crate::base::Share::from_percent(percent)), ..all_data() };
        let mut plan = marked(4 * MIB, matcher);
        plan.posts.push(write(0, 123));
        let (outcome, _) = run(&plan);
        let marks = outcome.faults[0].fired;
        let (a, b) = (outcome.counters.node(A), outcome.counters.node(B));
        assert!(marks > 0);
        assert_eq!([b.num_ce_recvd, b.num_cnp_sent, a.num_cnp_recvd], [marks; 3]);
    }
}

#[test]
fn a_cnp_goes_ahead_of_the_ack_that_its_packet_draws() {
    // 436,444 and the 2,440 ps of the CNP.
    assert_eq!(run(&marked(4_096, first(&[0]))).1.completed(0), 438_884);
}

#[test]
fn a_slow_notification_point_makes_its_cnp_later_and_the_run_waits_for_it() {
    let plan = configured(marked(4_096, first(&[0])), |config| config.np_delay = Span::from_us(55));
    let (outcome, log) = run(&plan);
    assert_eq!(log.times(|kind| matches!(kind, EventKind::CnpMade { .. })), [333_924 + 55_000_000]);
    assert_eq!(log.rates()[0].0, CNP_ARRIVES + 55_000_000);
    assert_eq!((outcome.end.ps(), log.completed(0)), (436_444, 436_444));
}

#[test]
fn the_cnp_interval_holds_per_queue_pair() {
    let mut plan = configured(pair(2), |config| {
        config.cnp_interval = Span::from_us(4);
        config.reaction = false;
    });
    plan.posts = vec![write(0, MIB), write(1, MIB)];
    plan.faults = vec![fault(0, all_data(), Action::SetCe)];
    let (outcome, log) = run(&plan);
    for qpn in [2, 3] {
        let made = log.times(|kind| matches!(kind, EventKind::CnpMade { qpn: own } if *own == Qpn::new(qpn).unwrap()));
        assert!(made.len() > 5);
        assert!(made.windows(2).all(|pair| pair[1] - pair[0] >= 4_000_000), "{made:?}");
    }
    let b = outcome.counters.node(B);
    assert_eq!((b.num_ce_recvd, b.num_ce_recvd - b.num_cnp_suppressed), (512, b.num_cnp_sent));
}

#[test]
fn pacing_sends_at_line_rate_and_keeps_the_starts_apart() {
    let plan = configured(marked(MIB, first(&[0])), |config| config.rate_application = RateApplication::Pace);
    let (_, log) = run(&plan);
    let data = log.frames(PacketKind::is_data);
    assert!(data.iter().all(|&(start, end, rate)| (end - start, rate) == (83_080, 400_000_000_000)));
    // The fourth started before the cut and keeps the fifth away for its own length only.
    let starts: Vec<_> = data[3..8].iter().map(|&(start, ..)| start).collect();
    assert_eq!(starts, [400_084, 483_164, 573_797, 664_430, 755_063]);
}

#[test]
fn pacing_leaves_the_port_to_others_meanwhile() {
    // How long an ACK of A's waits at most while A's own data is slowed down.
    let longest_wait = |rate_application| {
        let mut plan = configured(marked(2 * MIB, all_data()), |config| config.rate_application = rate_application);
        plan.posts.push(PostPlan { from_end: 1, ..write(0, 2 * MIB) });
        let (_, log) = run(&plan);
        let queued = log.0.iter().filter(|event| event.node == A).filter_map(|event| match event.kind {
            EventKind::FrameQueued { packet, .. } if packet.kind == PacketKind::Ack => Some(event.at.ps()),
            _ => None,
        });
        let started = log.frames(|kind| kind == PacketKind::Ack).into_iter().map(|(start, ..)| start);
        queued.zip(started).map(|(queued, started)| started - queued).max().unwrap()
    };
    assert!(longest_wait(RateApplication::Pace) < 83_080);
    assert!(longest_wait(RateApplication::Serialize) > 83_080);
}

#[test]
fn both_dcqcns_cut_when_they_should() {
    let first_rate = |control| {
        let plan = configured(marked(4 * MIB, first(&[0])), |config| config.control = control);
        run(&plan).1.rates()
    };
    let line = 400_000_000_000;
    let paper = first_rate(CongestionControl::DcqcnPaper);
    assert_eq!(paper[0], (CNP_ARRIVES, 200_000_000_000, line, RateCause::Cut));
    assert_eq!(paper[1], (CNP_ARRIVES + 55_000_000, 300_000_000_000, line, RateCause::FastRecovery));
    // At the end of its window of 4 us, to the trace's 204.069258 Gb/s.
    let nvidia = first_rate(CongestionControl::DcqcnNvidia);
    assert_eq!((nvidia[0].0, nvidia[0].2), (CNP_ARRIVES + 4_000_000, line));
    assert_eq!(nvidia[0].1 / 1_000, 204_069_258);
}

#[test]
fn a_slower_line_has_its_own_floor_and_step() {
    let mut plan = marked(MIB, all_data());
    plan.nics.iter_mut().for_each(|nic| nic.config.data_rate = Rate::from_gbps(25));
    let (_, log) = run(&plan);
    let lowest = log.rates().iter().map(|&(_, current, ..)| current).min();
    assert_eq!(lowest, Some(2_500_000_000));
}
