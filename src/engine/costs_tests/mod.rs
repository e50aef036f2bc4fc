//! Doorbells, WQE fetches and BlueFlame on memory wires, checked against hand-derived picoseconds.
//!
//! Defaults throughout, as in `tests`. On the PCIe link 98 B take 1,555 ps: a doorbell, a read request, a WQE of 64 B. So
//! a plain post has its WQE in the NIC after 3 x 1,555 = 4,665 ps, and an entry alone after 2 x 1,555 = 3,110. A BlueFlame
//! post of one more line is 2 x 98 B, rounded once: 3,109 ps.
//!
//! From there on it is as without costs. A WRITE of 8 B takes 80,000 to start, 1,555 for its read request, 666 for 8 + 34 B,
//! 1,320 for a frame of 66 B, and 100,000 + 2,520 + 100,000 until the ACK is there: 286,061. Inline, 2,221 less: 283,840.
//! One of 4,096 B takes 436,444.

mod any_run;

use super::Outcome;
use super::loss_tests::{data, fault};
use super::pressure_tests::explain;
use super::tests::{A, B, Log, pair, run, write};
use crate::base::{Instant, Octets};
use crate::link::Action;
use crate::nic::DoorbellCost;
use crate::record::Cause;
use crate::scenario::{Plan, PostPlan};
use crate::trace::EventKind;

const SMALL: u64 = 286_061;
const SMALL_INLINE: u64 = 283_840;
const FULL: u64 = 436_444;
/// The 64 ms of the transport timer.
const TIMER: u64 = 64_000_000_000;

fn modelled(posts: Vec<PostPlan>, wqe_prefetch: u32) -> Plan {
    let mut plan = Plan { posts, ..pair(2) };
    for nic in &mut plan.nics {
        nic.config.send_queue.doorbell = DoorbellCost::Modelled;
        nic.config.send_queue.wqe_prefetch = wqe_prefetch;
    }
    plan
}

fn blue_flame(size: u64) -> PostPlan {
    PostPlan { blue_flame: true, ..write(0, size) }
}

fn inline(post: PostPlan) -> PostPlan {
    PostPlan { inline: true, ..post }
}

fn completed(post: PostPlan) -> (u64, Outcome) {
    let (outcome, log) = run(&modelled(vec![post], 1));
    (log.completed(0), outcome)
}

#[test]
fn a_plain_post_pays_its_doorbell_and_its_wqe_fetch() {
    let (at, outcome) = completed(write(0, 8));
    assert_eq!(at, 4_665 + SMALL);
    let a = outcome.counters.node(A);
    assert_eq!((a.num_doorbells, a.num_wqe_fetches, a.num_wqe_prefetch_hits), (1, 1, 0));
    assert_eq!((a.pcie_doorbell_octets, a.pcie_wqe_request_octets, a.pcie_wqe_octets), (98, 98, 98));
    // The payload: another request, and 8 + 34 B.
    assert_eq!((a.pcie_to_host_octets, a.pcie_from_host_octets), (98 + 98, 98 + 98 + 42));
    assert_eq!(outcome.counters.node(B).num_doorbells, 0);
    assert_eq!(completed(write(0, 4_096)).0, 4_665 + FULL);
}

#[test]
fn a_blue_flame_post_pays_its_lines_and_no_fetch() {
    let (at, outcome) = completed(blue_flame(8));
    assert_eq!(at, 3_109 + SMALL);
    let a = outcome.counters.node(A);
    assert_eq!((a.num_doorbells, a.num_blue_flame_posts, a.num_wqe_fetches), (1, 1, 0));
    assert_eq!((a.pcie_doorbell_octets, a.pcie_to_host_octets, a.pcie_from_host_octets), (196, 98, 196 + 42));
    assert_eq!(completed(blue_flame(4_096)).0, 3_109 + FULL);
}

#[test]
fn inline_data_comes_with_the_wqe() {
    let (at, outcome) = completed(inline(blue_flame(8)));
    assert_eq!(at, 3_109 + SMALL_INLINE);
    let a = outcome.counters.node(A);
    assert_eq!((a.pcie_to_host_octets, a.pcie_from_host_octets), (0, 196));
    assert_eq!(completed(inline(write(0, 8))).0, 4_665 + SMALL_INLINE);
    // 32 + 100 B need a slot of 256: 290 B are 4,600 ps. The frame has 158 B: 3,160 ps instead of 1,320.
    assert_eq!(completed(inline(write(0, 100))).0, 1_555 + 1_555 + 4_600 + SMALL_INLINE + 1_840);
    // As a BlueFlame post, 132 B take three lines behind the doorbell: 392 B, 6,218 ps.
    assert_eq!(completed(inline(blue_flame(100))).0, 6_218 + SMALL_INLINE + 1_840);
}

#[test]
fn a_wqe_too_long_for_blue_flame_is_rung_for_and_fetched() {
    // 32 + 224 B just pass the default of 256 B.
    let (_, outcome) = completed(inline(blue_flame(224)));
    assert_eq!(outcome.counters.node(A).num_blue_flame_posts, 1);
    // 257 B need a slot of 512: 546 B are 8,661 ps. The frame has 283 B: 5,660 ps.
    let (at, outcome) = completed(inline(blue_flame(225)));
    assert_eq!(at, 1_555 + 1_555 + 8_661 + SMALL_INLINE - 1_320 + 5_660);
    let a = outcome.counters.node(A);
    assert_eq!((a.num_doorbells, a.num_blue_flame_posts, a.num_blue_flame_fallbacks, a.num_wqe_fetches), (1, 0, 1, 1));
    assert_eq!(a.pcie_doorbell_octets, 98);
}

#[test]
fn where_doorbells_are_free_nothing_of_it_counts() {
    for post in [write(0, 8), blue_flame(8), inline(blue_flame(8)), inline(write(0, 8))] {
        let (outcome, log) = run(&Plan { posts: vec![post], ..pair(1) });
        assert_eq!(log.completed(0), SMALL);
        let a = outcome.counters.node(A);
        let costs = [a.num_doorbells, a.num_wqe_fetches, a.num_blue_flame_posts, a.num_blue_flame_fallbacks];
        assert_eq!(costs, [0; 4]);
        assert_eq!((a.pcie_to_host_octets, a.pcie_from_host_octets), (98, 42));
    }
}

#[test]
fn ten_messages_wait_for_nine_fetches_or_find_them_prefetched() {
    let ten = |size| vec![PostPlan { count: 10, ..write(0, size) }];
    let ends = |prefetch| {
        let (outcome, log) = run(&modelled(ten(8), prefetch));
        let a = outcome.counters.node(A);
        // The first post rings; the nine that come meanwhile are told of when it has arrived.
        assert_eq!((a.num_doorbells, a.num_wqe_fetches), (2, 10));
        (log.completed(9), a.num_wqe_prefetch_hits)
    };
    // The first entry is there at 4,665 either way: the second doorbell is on the link from 1,555 to 3,110, and the WQE
    // follows it. With prefetch, all other entries are there long before their turn.
    assert_eq!(ends(0), (4_665 + 10 * SMALL + 9 * 3_110, 0));
    assert_eq!(ends(1), (4_665 + 10 * SMALL, 9));
    assert_eq!(ends(4), (4_665 + 10 * SMALL, 9));
    // Without costs, for comparison.
    assert_eq!(run(&Plan { posts: ten(8), ..pair(1) }).1.completed(9), 10 * SMALL);
}

#[test]
fn ten_blue_flame_posts_ring_ten_times() {
    let (outcome, log) = run(&modelled(vec![PostPlan { count: 10, ..blue_flame(8) }], 0));
    // Ten doorbells of 196 B are over after 31,090 ps, before the first payload is asked for.
    assert_eq!(log.completed(9), 3_109 + 10 * SMALL);
    let a = outcome.counters.node(A);
    assert_eq!((a.num_doorbells, a.num_wqe_fetches, a.num_wqe_prefetch_hits), (10, 0, 0));
}

#[test]
fn a_blue_flame_post_announces_what_waits_to_be_rung_for() {
    let posts = vec![write(0, 8), write(0, 8), blue_flame(8)];
    let (outcome, log) = run(&modelled(posts, 1));
    let heard = log.0.iter().filter_map(|event| match event.kind {
        EventKind::DoorbellHeard { entries, .. } => Some((event.at.ps(), entries)),
        _ => None,
    });
    // 1,555, and 3,109 behind it.
    assert_eq!(heard.collect::<Vec<_>>(), [(1_555, 1), (4_664, 2)]);
    assert_eq!(outcome.counters.node(A).num_wqe_fetches, 2);
}

#[test]
fn a_doorbell_and_a_wqe_wait_behind_payload() {
    let late = PostPlan { at: Instant::from_ps(120_000), ..write(1, 8) };
    let mut plan = modelled(vec![PostPlan { blue_flame: true, ..write(0, 1 << 20) }, late], 1);
    plan.nics[0].config.send_queue.wqe_size = Octets::new(64);
    let (_, log) = run(&plan);
    // The 1 MiB WRITE starts at 3,109 and runs at 83,109; its requests arrive every 1,555 ps from 84,664 on, so that by
    // 120,000 there are floor(36,891 / 1,555) = 23 payloads in the host's queue, which began to leave at 84,664. The
    // doorbell is behind them.
    let heard = 84_664 + 23 * 69_289 + 1_555;
    let times = log.times(|kind| matches!(kind, EventKind::DoorbellHeard { .. }));
    assert_eq!(times, [3_109, heard]);
    // 55 fit the egress pool. The WQE is asked for while the other 32 wait, and is behind them.
    let fetched = heard + 32 * 69_289 + 1_555;
    assert_eq!(log.times(|kind| matches!(kind, EventKind::WqeFetched { .. })), [fetched]);
}

/// The first transmission of its only packet is lost.
fn resent(post: PostPlan) -> (u64, Outcome) {
    let plan = Plan { faults: vec![fault(0, data(0, &[1]), Action::Drop)], ..modelled(vec![post], 1) };
    let (outcome, log) = run(&plan);
    (log.completed(0), outcome)
}

#[test]
fn a_retransmission_pays_its_wqe_fetch_again() {
    // The timer starts when the packet is numbered, 150,844 after the WQE was there.
    let (at, outcome) = resent(write(0, 4_096));
    assert_eq!(at, 4_665 + 150_844 + TIMER + 3_110 + FULL);
    assert_eq!(outcome.counters.node(A).num_wqe_fetches, 2);
    // What came by BlueFlame is rebuilt from its slot as well.
    let (at, outcome) = resent(blue_flame(4_096));
    assert_eq!(at, 3_109 + 150_844 + TIMER + 3_110 + FULL);
    assert_eq!((outcome.counters.node(A).num_doorbells, outcome.counters.node(A).num_wqe_fetches), (1, 1));
    // And inline data come with it once more: numbered 80,000 after the WQE was there.
    let (at, outcome) = resent(inline(blue_flame(8)));
    assert_eq!(at, 3_109 + 80_000 + TIMER + 3_110 + SMALL_INLINE);
    assert_eq!(outcome.counters.node(A).pcie_to_host_octets, 98);
}

#[test]
fn a_rewind_throws_prefetched_entries_away() {
    let posts = vec![write(0, 3 * 4_096), write(0, 8)];
    let plan = Plan { faults: vec![fault(0, data(0, &[1]), Action::Drop)], ..modelled(posts, 1) };
    let explained = explain(&plan);
    let log: &Log = &explained.log;
    // The first payload is there at 4,665 + 150,844; packet 1 leaves two frames later and reveals the gap 100,000 after
    // that; the NAK takes 102,520.
    let nak = 4_665 + 150_844 + 2 * 83_080 + 100_000 + 102_520;
    assert_eq!(log.times(|kind| matches!(kind, EventKind::SendQueueRewound { entries: 2, .. })), [nak]);
    // The oldest entry is there after 3,110; then three packets as at first.
    let first = nak + 3_110 + 150_844 + 3 * 83_080 + 202_520;
    assert_eq!(log.completed(0), first);
    assert_eq!(log.completed(1), first + SMALL);
    let a = explained.outcome.counters.node(A);
    assert_eq!((a.num_wqe_fetches, a.num_wqe_prefetch_hits, a.num_wqe_discards), (4, 1, 0));
    assert!(explained.causes(0).contains(&(Cause::WqeFetch, 4_665 + 3_110)));
}

#[test]
fn waiting_for_a_wqe_is_a_cause_of_its_own() {
    let expected = [
        (Cause::Sending, 1_320),
        (Cause::WqeFetch, 4_665),
        (Cause::PcieRead, 82_221),
        (Cause::Acknowledgement, 202_520),
    ];
    assert_eq!(explain(&modelled(vec![write(0, 8)], 1)).causes(0), expected);
}
