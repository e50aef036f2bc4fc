//! A peer that has posted no receive.

use super::*;
use crate::trace::DropReason;
use crate::wire::NakCode;

/// An RNR timer of code 1.
const WAIT: u64 = 10_000_000;

#[test]
fn a_send_waits_for_the_receive_it_needs() {
    let mut pair = Pair::new();
    pair.post(0, A, send(0, 4_096));
    pair.receive(5_000_000, B, 1, 4_096);
    pair.run();
    // The NAK is there when the ACK would have been; after the wait the whole way again.
    assert_eq!(pair.ends(A), [format!("{} message 0 completed", ROUND + WAIT + ROUND)]);
    assert_eq!(pair.ends(B)[1], format!("{} receive 1 4096 B", ROUND + WAIT + 403_213));
    let not_ready = Verdict::Dropped(DropReason::ReceiverNotReady);
    let expected = [(333_924, not_ready), (ROUND + WAIT + 333_924, Verdict::Accepted)];
    assert_eq!(pair.verdicts(B, PacketKind::Send), expected);
    assert_eq!(pair.verdicts(A, PacketKind::RnrNak), [(ROUND, Verdict::Processed)]);
    let (a, b) = (pair.counters(A), pair.counters(B));
    assert_eq!((a.num_rnr_naks_recvd, a.num_rnr_waits, a.num_rto, a.num_nacks_recvd), (1, 1, 0, 0));
    assert_eq!((b.num_rnr_naks_sent, b.rx_receiver_not_ready, b.num_seq_out_of_order), (1, 1, 0));
}

#[test]
fn the_packets_behind_are_dropped_in_silence() {
    let mut pair = Pair::new();
    pair.post(0, A, send(0, 3 * 4_096));
    pair.receive(1_000_000, B, 1, 3 * 4_096);
    pair.run();
    // The first arrives at 333,924 and draws the NAK, the others at 417,004 and 500,084. All three go again, one frame
    // time apart.
    assert_eq!(pair.ends(A), [format!("{} message 0 completed", ROUND + WAIT + ROUND + 2 * 83_080)]);
    let b = pair.counters(B);
    assert_eq!((b.num_rnr_naks_sent, b.num_nacks_sent, b.num_rx_drops_after_nak), (1, 0, 2));
}

#[test]
fn a_write_needs_its_receive_at_the_packet_with_the_immediate() {
    let mut pair = Pair::new();
    pair.post(0, A, WorkRequest { immediate: Some(1), ..write(0, 2 * 4_096) });
    pair.receive(5_000_000, B, 1, 0);
    pair.run();
    // The second packet arrives one frame time after the first; only that one goes again.
    let nak_arrives = ROUND + 83_080;
    assert_eq!(pair.ends(A), [format!("{} message 0 completed", nak_arrives + WAIT + ROUND)]);
    assert_eq!(pair.counters(A).num_retransmitted_pkts, 1);
    assert_eq!(pair.times(|kind| matches!(kind, EventKind::PacketsRetired { retired: 1, .. })).len(), 2);
}

#[test]
fn retries_come_to_an_end() {
    let mut pair = Pair::new();
    pair.post(0, A, send(0, 4_096));
    pair.post(0, A, send(1, 1));
    pair.receive(0, A, 9, 1);
    pair.run();
    // Two retries are allowed: the third NAK ends it.
    let end = 3 * ROUND + 2 * WAIT;
    let expected = ["error: the peer posts no receive", "message 0 RNR retries exceeded", "message 1 flushed"];
    assert_eq!(pair.ends(A)[..3], expected.map(|text| format!("{end} {text}")));
    assert_eq!(pair.ends(A)[3], format!("{end} receive 9 flushed"));
    assert_eq!(pair.ends(B), [""; 0], "the other end is none the wiser");
    let a = pair.counters(A);
    assert_eq!((a.num_rnr_naks_recvd, a.num_rnr_waits, a.num_wqe_failed, a.num_wqe_flushed), (3, 2, 1, 1));
}

#[test]
fn without_retries_the_first_nak_ends_it_and_with_seven_none_does() {
    let run = |rnr_retry| {
        let service = Service::Verbs { domain: OWN, min_rnr_timer: 1, rnr_retry, retry: 1 };
        let mut pair = Pair::with(Config::default(), service);
        pair.post(0, A, send(0, 4_096));
        pair.receive(20 * WAIT, B, 1, 4_096);
        pair.run();
        pair.ends(A).pop().unwrap()
    };
    assert_eq!(run(0), format!("{ROUND} message 0 RNR retries exceeded"));
    // The last NAK is the 20th: it arrives at 20 rounds and 19 waits, 198,728,880 ps; the next attempt finds the receive.
    assert_eq!(run(7), format!("{} message 0 completed", 21 * ROUND + 20 * WAIT));
}

#[test]
fn an_rnr_nak_of_what_is_past_or_was_never_sent_is_ignored() {
    let mut pair = Pair::new();
    pair.post(0, A, send(0, 4_096));
    pair.receive(5_000_000, B, 1, 4_096);
    let again = Syndrome::RnrNak { timer: 31 };
    pair.inject(1_000_000, A, &answer(0, again));
    pair.inject(2_000_000, A, &answer(5, again));
    pair.inject(20_000_000, A, &answer(0, again));
    pair.run();
    let expected = [
        (ROUND, Verdict::Processed),
        (1_000_000, Verdict::Stale),
        (2_000_000, Verdict::Dropped(DropReason::GhostAck)),
        (20_000_000, Verdict::Stale),
    ];
    assert_eq!(pair.verdicts(A, PacketKind::RnrNak), expected);
    assert_eq!(pair.ends(A), [format!("{} message 0 completed", ROUND + WAIT + ROUND)]);
}

#[test]
fn an_acknowledgement_ends_the_wait() {
    let mut pair = Pair::new();
    pair.post(0, A, send(0, 4_096));
    pair.inject(1_000_000, A, &answer(0, Syndrome::Ack { credits: 31 }));
    pair.run();
    assert_eq!(pair.ends(A), ["1000000 message 0 completed"]);
    assert_eq!(pair.times(|kind| matches!(kind, EventKind::RnrWaitEnded { .. })), [1_000_000]);
}

#[test]
fn a_lost_rnr_nak_costs_a_timeout() {
    let mut pair = Pair::new();
    pair.post(0, A, send(0, 4_096));
    pair.receive(5_000_000, B, 1, 4_096);
    pair.loses = Box::new(|end, nth| end == B && nth == 1);
    pair.run();
    // The timer starts when the packet is numbered, at 150,844 ps; then the whole way again.
    assert_eq!(pair.ends(A), [format!("{} message 0 completed", 64_000_150_844 + ROUND)]);
}

#[test]
fn a_scripted_queue_pair_waits_for_nobody_and_says_nothing() {
    let mut pair = Pair::with(Config::default(), Service::Scripted);
    let key = MemoryKey { address: 0, rkey: 5 };
    let size = Octets::new(4_096);
    pair.nics[A].memory_mut().register_source(Registration { message: MessageId(0), key, size });
    pair.post(0, A, WorkRequest { source: Source::Gather([Piece { key, length: size }].into()), ..send(0, 0) });
    pair.inject(400_000, A, &answer(0, Syndrome::RnrNak { timer: 1 }));
    pair.inject(500_000, A, &answer(0, Syndrome::Nak(NakCode::RemoteAccessError)));
    pair.inject(600_000, A, &answer(0, Syndrome::Ack { credits: 31 }));
    pair.run();
    let unexpected = Verdict::Dropped(DropReason::UnexpectedSyndrome);
    assert_eq!(pair.verdicts(B, PacketKind::Send), [(333_924, Verdict::Dropped(DropReason::RemoteAccess))]);
    assert_eq!(pair.verdicts(A, PacketKind::RnrNak), [(400_000, unexpected)]);
    assert_eq!(pair.verdicts(A, PacketKind::Nak), [(500_000, unexpected)]);
    assert_eq!(pair.ends(A), ["600000 message 0 completed"]);
}
