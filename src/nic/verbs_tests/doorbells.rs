//! Applications that ring, where doorbells are modelled. On the PCIe link 98 B take 1,555 ps, two such lines 3,109.

use super::*;

/// Slots of so many octets at both ends.
fn pair() -> Pair {
    let mut config = Config::default();
    config.send_queue.doorbell = DoorbellCost::Modelled;
    Pair::with(config, verbs())
}

fn in_slot_of(octets: u64, work: WorkRequest) -> WorkRequest {
    WorkRequest { slot: Some(Octets::new(octets)), ..work }
}

fn ring(pair: &mut Pair, ps: u64, entries: u32, blue_flame: u64) {
    let blue_flame = Octets::new(blue_flame);
    pair.act(ps, A, Act::Input(Input::Ring { qpn: qpn(), entries, blue_flame }));
}

#[test]
fn nothing_begins_before_the_application_rings() {
    let mut pair = pair();
    pair.post(0, A, in_slot_of(64, write(0, 4_096)));
    ring(&mut pair, 7_000, 1, 0);
    pair.run();
    assert_eq!(pair.ends(A), [format!("{} message 0 completed", 7_000 + 3 * 1_555 + ROUND)]);
}

#[test]
fn a_fetch_reads_the_slot_of_the_ring() {
    let mut pair = pair();
    pair.post(0, A, in_slot_of(256, write(0, 4_096)));
    ring(&mut pair, 0, 1, 0);
    pair.run();
    // 256 + 34 B: 4,600 ps.
    assert_eq!(pair.ends(A), [format!("{} message 0 completed", 2 * 1_555 + 4_600 + ROUND)]);
    assert_eq!(pair.counters(A).pcie_wqe_octets, 290);
}

#[test]
fn every_doorbell_of_an_application_costs_its_lines() {
    let mut pair = pair();
    pair.post(0, A, in_slot_of(64, write(0, 4_096)));
    ring(&mut pair, 0, 1, 48);
    pair.post(0, A, in_slot_of(64, write(1, 4_096)));
    ring(&mut pair, 0, 1, 0);
    // It rings again for nothing new.
    ring(&mut pair, 0, 0, 0);
    pair.run();
    let heard = |kind: &EventKind| matches!(kind, EventKind::DoorbellHeard { .. });
    assert_eq!(pair.times(heard), [3_109, 3_109 + 1_555, 3_109 + 2 * 1_555]);
    let a = pair.counters(A);
    assert_eq!((a.num_doorbells, a.num_blue_flame_posts, a.num_wqe_fetches), (3, 1, 1));
    assert_eq!(a.pcie_doorbell_octets, 4 * 98);
    let ends = [3_109 + ROUND, 3_109 + 2 * ROUND];
    assert_eq!(pair.ends(A), [0, 1].map(|n| format!("{} message {n} completed", ends[n])));
}

#[test]
fn entries_that_were_rung_for_may_be_posted_later() {
    let mut pair = pair();
    ring(&mut pair, 0, 2, 0);
    pair.post(0, A, in_slot_of(64, write(0, 4_096)));
    pair.post(100_000, A, in_slot_of(64, write(1, 4_096)));
    pair.run();
    let first = 3 * 1_555 + ROUND;
    assert_eq!(pair.ends(A), [(0, first), (1, first + ROUND)].map(|(n, ps)| format!("{ps} message {n} completed")));
    assert_eq!(pair.counters(A).num_wqe_prefetch_hits, 1);
}

#[test]
fn inline_data_that_an_application_posts_need_no_fetch_of_their_own() {
    let mut pair = pair();
    pair.receive(0, B, 5, 64);
    let source = Source::Inline(vec![9; 8].into());
    pair.post(0, A, in_slot_of(64, WorkRequest { source, ..send(0, 0) }));
    ring(&mut pair, 0, 1, 40);
    pair.run();
    // 80,000 to start, 1,320 for the frame, 202,520 until the ACK is there.
    assert_eq!(pair.ends(A), [format!("{} message 0 completed", 3_109 + 283_840)]);
}

#[test]
fn a_wait_for_a_receive_covers_the_fetch_of_what_goes_again() {
    let mut pair = pair();
    pair.post(0, A, in_slot_of(64, send(0, 4_096)));
    ring(&mut pair, 0, 1, 0);
    pair.receive(5_000_000, B, 1, 4_096);
    pair.run();
    // The read position goes back when the RNR NAK comes, and the WQE is there again long before the 10 us are over.
    assert_eq!(pair.ends(A), [format!("{} message 0 completed", 3 * 1_555 + ROUND + 10_000_000 + ROUND)]);
    assert_eq!(pair.counters(A).num_wqe_fetches, 2);
}

#[test]
fn a_doorbell_that_comes_to_a_queue_pair_in_error_is_not_heard() {
    let mut pair = pair();
    pair.post(0, A, in_slot_of(64, write(0, 4_096)));
    ring(&mut pair, 0, 1, 0);
    pair.fail(1_000, A, FailureCause::PeerGone);
    pair.post(2_000, A, in_slot_of(64, write(1, 4_096)));
    ring(&mut pair, 2_000, 1, 48);
    pair.run();
    assert!(pair.times(|kind| matches!(kind, EventKind::DoorbellHeard { .. })).is_empty());
    assert_eq!(
        (pair.counters(A).num_wqe_flushed + pair.counters(A).num_wqe_failed, pair.counters(A).num_doorbells),
        (2, 1)
    );
}

#[test]
fn an_application_that_never_stops_ringing_is_stopped() {
    let mut pair = pair();
    pair.post(0, A, in_slot_of(64, write(0, 4_096)));
    (0..65_537).for_each(|_| ring(&mut pair, 0, 0, 0));
    pair.run();
    let failed = |kind: &EventKind| matches!(kind, EventKind::QueuePairFailed { cause: FailureCause::BadDoorbell, .. });
    assert_eq!(pair.times(failed), [0]);
    assert_eq!(pair.counters(A).num_doorbells, 65_536);
}
