//! Pauses sent and received, and what happens where they come too late.

use super::*;
use crate::trace::{DropReason, PacketKind, Verdict};
use crate::wire::PFC_WIRE_LEN;

/// 3,960 B of payload are charged 4,000 B and last 4,018 B x 20 ps = 80,360 ps at 400 Gb/s.
const ROUND: usize = 3_960;
/// T(64 x 65,535 B, 400 Gb/s) + 500 ns of Delay.
const PAUSE_PS: u64 = 83_884_800 + 500_000;

#[derive(Debug, PartialEq, Eq)]
enum Asked {
    Xoff(u64),
    Again(u64),
    Xon(u64),
}

fn asked(bench: &Bench, of: u16) -> Vec<(u64, Asked)> {
    bench.told(|kind| match *kind {
        EventKind::PauseRequested { port, occupancy, refresh, .. } if port.0 == of => {
            Some(if refresh { Asked::Again(occupancy.get()) } else { Asked::Xoff(occupancy.get()) })
        }
        EventKind::ResumeRequested { port, occupancy, .. } if port.0 == of => Some(Asked::Xon(occupancy.get())),
        _ => None,
    })
}

fn drops(bench: &Bench) -> Vec<(u64, DropReason)> {
    bench.told(|kind| match kind {
        EventKind::FrameReceived { verdict: Verdict::Dropped(reason), .. } => Some(*reason),
        _ => None,
    })
}

/// Instants of lossless violations, what was full, what it held and what it lacked.
fn violations(bench: &Bench) -> Vec<(u64, (DropReason, u64, u64))> {
    bench.told(|kind| match kind {
        EventKind::LosslessViolated { reason, occupancy, missing, .. } => {
            Some((*reason, occupancy.get(), missing.get()))
        }
        _ => None,
    })
}

/// Class 0 of port 1 is paused at 0, so that what port 0 sends there stays: frame n arrives at 1,000 + n ps.
fn stuck(config: Config, frames: u64) -> Bench {
    let mut bench = Bench::new(config);
    bench.arrive(0, 1, pause(0, 65_535));
    for n in 0..frames {
        bench.arrive(1_000 + n, 0, data(0, 1, 0, ROUND, n as u32));
    }
    bench
}

#[test]
fn the_frame_that_passes_xoff_draws_one_pause() {
    // 175 x 4,000 = 700,000: at Xoff, not above it.
    let mut bench = stuck(ports(2), 175);
    assert_eq!(asked(&bench, 0), []);
    bench.arrive(2_000, 0, data(0, 1, 0, 0, 175));
    bench.arrive(2_001, 0, data(0, 1, 0, 0, 176));
    assert_eq!(asked(&bench, 0), [(2_000, Asked::Xoff(700_046))]);

    // It goes back to where the frames came from, under the port's own address.
    bench.run_until(10_000);
    let [(at, sent)] = &bench.sent[..] else { panic!("one XOFF") };
    // 84 B last 1,680 ps.
    assert_eq!((*at, sent.port, sent.packet.kind, sent.wire_len), (3_680, PortId(0), PacketKind::Xoff, PFC_WIRE_LEN));
    let pfc = PfcFrame::parse(&sent.frame).unwrap();
    assert_eq!((pfc.src, pfc.classes().collect::<Vec<_>>()), (mac_of(0), vec![(class(0), 65_535)]));
    assert_eq!(mac_of(0).to_string(), "02:01:00:00:00:00");
}

#[test]
fn the_release_that_reaches_xon_resumes() {
    // 704,000 in. 101 x 4,000 later it is 300,000: at Xon.
    let mut bench = stuck(ports(2), 176);
    bench.arrive(1_000_000, 1, pause(0, 0));
    bench.run();
    let xon_at = 1_000_000 + 101 * 80_360;
    assert_eq!(asked(&bench, 0), [(1_175, Asked::Xoff(704_000)), (xon_at, Asked::Xon(300_000))]);
    let counters = bench.counters();
    assert_eq!((counters.pfcxoff_tx, counters.pfcxon_tx, counters.pfcxoff_rx, counters.pfcxon_rx), (1, 1, 1, 1));
    assert_eq!((counters.pkts_forwarded, counters.rx_drops), (176, 0));
}

#[test]
fn a_pause_is_repeated_every_half_of_its_time_and_never_ended_by_that() {
    // Xon never comes: class 0 of port 1 sends a hundred frames, and is paused again for as long as it takes.
    let mut bench = stuck(ports(2), 176);
    bench.arrive(1_000_000, 1, pause(0, 0));
    bench.arrive(1_000_000 + 100 * 80_360 - 1, 1, pause(0, 65_535));
    bench.arrive(60_000_000, 1, pause(0, 65_535));
    bench.run_until(100_000_000);
    // 704,000 - 100 x 4,000: below Xoff, above Xon.
    let half = PAUSE_PS / 2;
    let expected = [
        (1_175, Asked::Xoff(704_000)),
        (1_175 + half, Asked::Again(304_000)),
        (1_175 + 2 * half, Asked::Again(304_000)),
    ];
    assert_eq!(asked(&bench, 0), expected);
    bench.check_books();
}

#[test]
fn a_slower_port_refreshes_in_its_own_time() {
    let mut config = ports(2);
    config.ports[0].data_rate = Rate::from_gbps(100);
    config.pfc.xoff[0] = Octets::ZERO;
    config.pfc.xon[0] = Octets::ZERO;
    let mut bench = stuck(config, 1);
    bench.arrive(80_000_000, 1, pause(0, 65_535));
    bench.arrive(160_000_000, 1, pause(0, 65_535));
    bench.run_until(200_000_000);
    // Half of 4 x 83,884,800 + 500,000 ps.
    assert_eq!(asked(&bench, 0), [(1_000, Asked::Xoff(4_000)), (1_000 + 168_019_600, Asked::Again(4_000))]);
}

#[test]
fn what_passes_the_headroom_is_dropped() {
    // 239 x 4,000 = 956,000 = Xoff + headroom.
    let mut bench = stuck(ports(3), 241);
    assert_eq!(drops(&bench), [(1_239, DropReason::PoolFull), (1_240, DropReason::PoolFull)]);
    let violation = (DropReason::PoolFull, 956_000, 4_000);
    assert_eq!(violations(&bench), [(1_239, violation), (1_240, violation)]);
    // Another class and another port have their own.
    bench.arrive(2_000, 0, data(0, 1, 1, ROUND, 0));
    bench.arrive(2_000, 2, data(2, 1, 0, ROUND, 0));
    assert_eq!(drops(&bench).len(), 2);
    assert_eq!((bench.counters().rx_drops, bench.counters().rx_drops_buffer), (2, 0));
    bench.check_books();
}

#[test]
fn without_pfc_a_drop_is_no_violation() {
    let mut config = ports(3);
    config.pfc.enabled[0] = false;
    let bench = stuck(config, 241);
    assert_eq!((drops(&bench).len(), violations(&bench)), (2, vec![]));
    assert_eq!(bench.counters().rx_lossless_drops, 0);
}

#[test]
fn the_ports_share_a_buffer_with_an_end() {
    let mut bench = stuck(Config { total_buffer: Octets::new(10_000), ..ports(3) }, 2);
    bench.arrive(2_000, 2, data(2, 1, 0, ROUND, 2));
    bench.arrive(2_001, 2, data(2, 1, 0, 1_961, 3));
    // 8,000 + 2,000: full to the octet.
    bench.arrive(2_002, 2, data(2, 1, 0, 1_960, 4));
    assert_eq!(drops(&bench), [(2_000, DropReason::SwitchBufferFull), (2_001, DropReason::SwitchBufferFull)]);
    // Port 2 itself holds nothing: what was full is the buffer, which held the 8,000 of port 0 both times.
    let violation = |missing| (DropReason::SwitchBufferFull, 8_000, missing);
    assert_eq!(violations(&bench), [(2_000, violation(2_000)), (2_001, violation(1))]);
    assert_eq!((bench.counters().rx_drops, bench.counters().rx_drops_buffer), (0, 2));
    assert_eq!(bench.counters().rx_lossless_drops, 2);
    assert_eq!(bench.switch.buffer_peak().get(), 10_000);
    bench.run();
}

#[test]
fn without_pfc_the_limit_is_the_same_and_nobody_is_told() {
    let mut config = ports(2);
    config.pfc.enabled[0] = false;
    let bench = stuck(config, 240);
    assert_eq!(drops(&bench), [(1_239, DropReason::PoolFull)]);
    assert_eq!(asked(&bench, 0), []);
}

#[test]
fn a_frame_that_is_dropped_may_still_draw_the_pause() {
    let mut config = ports(2);
    (config.pfc.xoff[0], config.pfc.headroom[0]) = (Octets::new(4_000), Octets::ZERO);
    let bench = stuck(config, 2);
    assert_eq!(asked(&bench, 0), [(1_001, Asked::Xoff(8_000))]);
    assert_eq!(drops(&bench), [(1_001, DropReason::PoolFull)]);
}

#[test]
fn a_pause_stops_its_class_and_only_it() {
    let mut bench = Bench::new(ports(3));
    bench.arrive(0, 2, pause(3, 65_535));
    bench.arrive(1_000, 0, data(0, 2, 3, ROUND, 3));
    bench.arrive(1_000, 1, data(1, 2, 0, ROUND, 0));
    bench.arrive(1_000, 1, data(1, 2, 4, ROUND, 4));
    // The same class by another port.
    bench.arrive(1_000, 2, data(2, 0, 3, ROUND, 33));
    bench.run();
    let paused_one = PAUSE_PS + 80_360;
    assert_eq!(bench.sent_psns(), [(81_360, 33), (81_360, 4), (161_720, 0), (paused_one, 3)]);
    assert_eq!(bench.counters().pfc_time_paused_ps, PAUSE_PS);
}

#[test]
fn a_further_pause_starts_anew_and_an_xon_ends_it_at_once() {
    let mut bench = Bench::new(ports(2));
    bench.arrive(0, 1, pause(0, 65_535));
    bench.arrive(1_000, 0, data(0, 1, 0, ROUND, 1));
    bench.arrive(50_000_000, 1, pause(0, 65_535));
    bench.run_until(PAUSE_PS);
    assert_eq!(bench.sent, [], "the first pause would be over");
    bench.arrive(100_000_000, 1, pause(0, 0));
    bench.run();
    assert_eq!(bench.sent_psns(), [(100_080_360, 1)]);
    let resumed = bench.told(|kind| match kind {
        EventKind::Resumed { paused, by_xon, .. } => Some((paused.ps(), *by_xon)),
        _ => None,
    });
    assert_eq!(resumed, [(100_000_000, (100_000_000, true))]);
}

#[test]
fn a_pause_waits_for_the_frame_on_the_line() {
    let mut bench = Bench::new(ports(2));
    bench.arrive(0, 0, data(0, 1, 0, ROUND, 1));
    bench.arrive(1, 0, data(0, 1, 0, ROUND, 2));
    bench.arrive(2, 1, pause(0, 65_535));
    bench.run();
    assert_eq!(bench.sent_psns(), [(80_360, 1), (PAUSE_PS + 2 + 80_360, 2)]);
}

#[test]
fn one_frame_may_speak_for_several_classes() {
    let mut frame = PfcFrame::pause(mac_of(9), class(0), 65_535);
    frame.enabled = 0b101;
    let mut bench = Bench::new(ports(2));
    bench.arrive(0, 1, pause(2, 65_535));
    // Class 0 pauses, class 2, named with 0 quanta, resumes; class 1 has quanta but is not named.
    frame.quanta[1] = 65_535;
    bench.arrive(10, 1, frame.emit());
    for n in 0..3 {
        bench.arrive(20, 0, data(0, 1, n, ROUND, n.into()));
    }
    bench.run_until(1_000_000);
    assert_eq!(bench.sent_psns(), [(80_380, 2), (160_740, 1)]);
}

#[test]
fn a_padded_pause_has_the_models_size_on_the_wire() {
    let mut config = ports(2);
    (config.pfc.xoff[0], config.pad_to_model) = (Octets::ZERO, true);
    let mut bench = Bench::new(config);
    bench.arrive(0, 0, data(0, 1, 0, ROUND, 1));
    bench.run_until(1_680);
    assert_eq!(bench.sent[0].1.frame.len(), 80);
}
