//! Pauses that arrive, the right ones and the wrong ones.

use super::*;

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
    let stopped = explained.pressure.stopped_by_pause(A, Class::DATA, explained.outcome.end).ps();
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

/// A scenario file of `netns/`.
fn scenario(file_name: &str, text: &str) -> Plan {
    crate::scenario::parse(file_name, text).unwrap_or_else(|refused| panic!("{refused}")).plan
}

#[test]
fn the_conformance_scenario_obeys_what_it_should() {
    let plan = scenario("pfc-conformance.toml", include_str!("../../../netns/pfc-conformance.toml"));
    let explained = explain(&plan);
    let a = explained.outcome.counters.node(A);
    assert_eq!((a.rx_pfc_no_class, a.rx_malformed, a.rx_global_pause), (1, 1, 1));
    assert_eq!((a.pfcxoff_rx, a.pfcxon_rx), (6, 1));
    // 10 quanta are 12.8 ns, 1,000 are 1,280 and 2,000 are 2,560, each with 100 ns of Delay; 2 us until XON.
    let paused = [0, 1, 3].map(|class| explained.paused(class));
    assert_eq!(paused, [112_800 + 2_000_000 + 1_380_000, 2_660_000, 1_380_000]);
    assert_eq!(explained.log.completed(0), 24_958_400);
    assert_eq!(explained.outcome.shortcomings(&plan), []);
}

#[test]
fn a_storm_holds_its_class_and_the_victim_as_long_as_it_lasts() {
    let plan = scenario("pause-storm.toml", include_str!("../../../netns/pause-storm.toml"));
    let explained = explain(&plan);
    // The last XOFF comes at 5 + 24 x 40 us, and the pause that it starts runs out.
    assert_eq!(explained.paused(0), 24 * 40_000_000 + 83_984_800);
    assert_eq!(explained.outcome.counters.node(A).pfcxoff_rx, 25);
    let quiet = explained.log.sent(PacketKind::Write).windows(2).map(|pair| pair[1] - pair[0]).max().unwrap();
    assert!(quiet > 1_000_000_000, "{quiet}");
    assert!(explained.time(1, Cause::EgressPool) > 1_000_000_000, "{:?}", explained.causes(1));
    assert_eq!(explained.outcome.shortcomings(&plan), []);
}
