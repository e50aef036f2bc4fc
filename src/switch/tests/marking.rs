//! Which frames carry CE on.

use super::*;
use crate::base::Share;
use crate::port::MarkConfig;
use crate::wire::{Packet, verify_icrc};

/// The average is the length at the last admission, and decides without doubt.
fn step(at: u64) -> MarkConfig {
    let threshold = Octets::new(at);
    MarkConfig { kmin: threshold, kmax: threshold, weight: Share::from_percent(100), ..MarkConfig::default() }
}

fn marked(bench: &Bench) -> Vec<u32> {
    let is_marked = |frame| matches!(Packet::parse(frame), Ok(Packet::Roce(roce)) if roce.ecn == Ecn::Ce);
    bench.sent.iter().filter(|(_, sent)| is_marked(&sent.frame)).map(|(_, sent)| sent.packet.psn.get()).collect()
}

#[test]
fn a_mark_leaves_the_icrc_valid_and_all_else_as_it_was() {
    let mut bench = Bench::new(Config { marking: step(0), ..ports(2) });
    let frame = data(0, 1, 3, 1_000, 5);
    bench.arrive(0, 0, frame.clone());
    bench.run();
    let sent = &bench.sent[0].1.frame;
    // Parsing checks the IPv4 header and the ICRC.
    let (Ok(Packet::Roce(before)), Ok(Packet::Roce(after))) = (Packet::parse(&frame), Packet::parse(sent)) else {
        panic!("both are packets");
    };
    assert_eq!(verify_icrc(sent), Ok(()));
    assert_eq!(after, RocePacket { ecn: Ecn::Ce, ..before });
    // TOS and the IPv4 checksum.
    let changed: Vec<_> = (0..frame.len()).filter(|&at| frame[at] != sent[at]).collect();
    assert_eq!(changed, [15, 25]);
    assert_eq!(bench.counters().pkts_ecn_marked, 1);
}

#[test]
fn only_frames_that_understand_are_marked() {
    let mut bench = Bench::new(Config { marking: step(0), ..ports(2) });
    for (n, ecn) in [Ecn::NotEct, Ecn::Ect1, Ecn::Ect0, Ecn::Ce].into_iter().enumerate() {
        bench.arrive(0, 0, data_of_flow(flow(0, 1, 0xc000), 0, ecn, 10, n as u32));
    }
    bench.arrive(0, 0, ack(0, 1));
    bench.arrive(0, 0, cnp(0, 1));
    bench.run();
    assert_eq!(marked(&bench), [1, 2, 3], "the last one came with its mark");
    assert_eq!(bench.counters().pkts_ecn_marked, 2);
}

#[test]
fn the_average_counts_waiting_frames_and_moves_at_admission() {
    let mut bench = Bench::new(ports(2));
    bench.arrive(0, 0, data(0, 1, 0, 3_960, 0));
    bench.arrive(1, 0, data(0, 1, 0, 3_960, 1));
    bench.arrive(2, 0, data(0, 1, 0, 3_960, 2));
    bench.run();
    let depths = bench.told(|kind| match *kind {
        EventKind::QueueDepthChanged { port: PortId(1), depth, average, .. } => Some((depth.get(), average)),
        _ => None,
    });
    // 0.1 x 4,000; the frame goes on the line. 0.9 x 400 + 0.1 x 4,000 = 760; 0.9 x 760 + 0.1 x 8,000 = 1,484.
    let expected = [
        (0, (4_000, 400.0)),
        (0, (0, 400.0)),
        (1, (4_000, 760.0)),
        (2, (8_000, 1_484.0)),
        (80_360, (4_000, 1_484.0)),
        (160_720, (0, 1_484.0)),
    ];
    assert_eq!(depths, expected);
}

#[test]
fn a_decision_goes_by_the_average_of_the_last_admission() {
    // Two wait when the third arrives: 8,000. Nobody comes after them, so all that follow are marked, the first was not.
    let mut bench = Bench::new(Config { marking: step(8_000), ..ports(2) });
    for n in 0..3 {
        bench.arrive(n, 0, data(0, 1, 0, 3_960, n as u32));
    }
    bench.run();
    assert_eq!(marked(&bench), [1, 2]);
    let told = bench.told(|kind| match *kind {
        EventKind::CeMarked { port, packet, average, probability } => {
            Some((port.0, packet.psn.get(), average, probability))
        }
        _ => None,
    });
    assert_eq!(told, [(80_360, (1, 1, 8_000.0, 1.0)), (160_720, (1, 2, 8_000.0, 1.0))]);
}

#[test]
fn every_port_and_class_has_an_average_of_its_own() {
    let mut bench = Bench::new(Config { marking: step(12_000), ..ports(3) });
    for n in 0..3 {
        // Frames of class 1 go first, so all three of class 0 wait: 12,000.
        bench.arrive(n, 0, data(0, 1, 0, 3_960, n as u32));
        bench.arrive(n, 0, data(0, 1, 1, 3_960, 10 + n as u32));
        bench.arrive(n, 0, data(0, 2, 0, 3_960, 20 + n as u32));
    }
    bench.run();
    assert_eq!(marked(&bench), [0, 1, 2]);
}

#[test]
fn a_class_without_marking_is_never_marked() {
    let mut config = Config { marking: step(0), ..ports(2) };
    config.marking_enabled[0] = false;
    let mut bench = Bench::new(config);
    bench.arrive(0, 0, data(0, 1, 0, 100, 0));
    bench.arrive(0, 0, data(0, 1, 1, 100, 1));
    bench.run();
    assert_eq!(marked(&bench), [1]);
}

/// 150 frames in no time, of which all but the first find a chance of a half, about.
fn doubtful(seed: u64) -> Vec<u32> {
    let marking = MarkConfig { kmin: Octets::ZERO, kmax: Octets::new(1_200_000), ..step(0) };
    let mut bench = Bench::new(Config { marking, seed, ..ports(2) });
    for n in 0..150 {
        bench.arrive(n, 0, data(0, 1, 0, 3_960, n as u32));
    }
    bench.run();
    marked(&bench)
}

#[test]
fn the_same_seed_gives_the_same_marks() {
    let marks = doubtful(1);
    assert!((45..105).contains(&marks.len()), "{}", marks.len());
    assert_eq!(marks, doubtful(1));
    assert_ne!(marks, doubtful(2));
}

#[test]
fn marks_follow_the_generator_number_by_number() {
    // After the first frame, which finds an average of 4,000, all 149 others decide by 149 x 4,000 = 596,000.
    let mut rng = Rng::new(1);
    let chances =
        std::iter::once(4_000.0).chain(std::iter::repeat_n(596_000.0, 149)).map(|average| average / 1_200_000.0);
    let expected: Vec<_> = (0..).zip(chances).filter(|(_, chance)| rng.unit() < *chance).map(|(n, _)| n).collect();
    assert_eq!(doubtful(1), expected);
}
