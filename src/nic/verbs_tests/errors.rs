//! Work that cannot be carried out, and queue pairs in error.

use super::*;
use crate::trace::DropReason;
use crate::wire::{Bth, Ecn, NakCode, Opcode, Reth};

/// A WRITE that B refuses on its arrival: what the ends have to say. A has another message and a receive, B has two.
fn refused(work: WorkRequest) -> (Pair, Vec<String>, Vec<String>) {
    let mut pair = Pair::new();
    pair.register(B, 2, 4_095, true);
    pair.register(B, 3, 65_536, false);
    for (end, receive) in [(A, 10), (B, 20), (B, 21)] {
        pair.receive(0, end, receive, 4_095);
    }
    pair.post(0, A, work);
    pair.post(0, A, send(1, 1));
    pair.run();
    let (a, b) = (pair.ends(A), pair.ends(B));
    (pair, a, b)
}

fn to(address: u64, rkey: u32, size: u64) -> WorkRequest {
    WorkRequest { remote: MemoryKey { address, rkey }, ..write(0, size) }
}

#[test]
fn a_write_to_what_is_not_the_peers_to_write_ends_both_queue_pairs() {
    // No such key; one octet too many, at the end or before the start; read only.
    for work in [to(0x1000, 9, 4_096), to(0x1000, 2, 4_096), to(0xfff, 1, 4_096), to(0x1000, 3, 4_096)] {
        let (pair, a, b) = refused(work);
        let expected = ["error: access to memory is refused", "receive 20 flushed", "receive 21 flushed"];
        assert_eq!(b, expected.map(|text| format!("333924 {text}")));
        let expected = [
            "error: NAK remote access error",
            "message 0 remote access error",
            "message 1 flushed",
            "receive 10 flushed",
        ];
        assert_eq!(a, expected.map(|text| format!("{ROUND} {text}")));
        let (a, b) = (pair.counters(A), pair.counters(B));
        assert_eq!((a.num_nacks_recvd, a.num_error_naks_recvd, a.num_remote_access_errors), (1, 1, 1));
        assert_eq!((b.num_error_naks_sent, b.num_access_refused, b.rx_remote_access), (1, 1, 1));
        assert_eq!(b.num_seq_out_of_order, 0);
    }
    let (_, a, b) = refused(to(0x1000, 2, 4_095));
    assert_eq!((a[0].ends_with("message 0 completed"), b[0].ends_with("message 0 delivered")), (true, true));
}

#[test]
fn the_end_of_a_range_is_the_whole_message_from_its_first_packet_on() {
    let (_, a, b) = refused(to(0x1000, 2, 2 * 4_096));
    // The first packet is refused, though its own octets but one would fit.
    assert_eq!(b[0], "333924 error: access to memory is refused");
    assert_eq!(a[1], format!("{ROUND} message 0 remote access error"));
}

#[test]
fn a_send_longer_than_its_receive_ends_both() {
    let (pair, a, b) = refused(send(0, 4_096));
    let expected = ["error: a SEND is longer than its receive", "receive 20 local length error", "receive 21 flushed"];
    assert_eq!(b, expected.map(|text| format!("333924 {text}")));
    assert_eq!(a[1], format!("{ROUND} message 0 remote invalid request error"));
    assert_eq!(pair.counters(B).num_receive_length_errors, 1);
}

#[test]
fn a_send_that_grows_too_long_ends_the_receive_it_had_begun() {
    let mut pair = Pair::new();
    pair.receive(0, B, 20, 5_000);
    pair.receive(0, B, 21, 5_000);
    pair.post(0, A, send(0, 2 * 4_096));
    pair.run();
    // The second packet arrives at 417,004 ps, when the first has been written (403,213).
    let expected = ["error: a SEND is longer than its receive", "receive 20 local length error", "receive 21 flushed"];
    assert_eq!(pair.ends(B), expected.map(|text| format!("417004 {text}")));
    assert_eq!(pair.nics[B].holdings().partial_payload, 4_096);
}

/// A request of B's peer with an opcode of its own.
fn request(opcode: u8, psn: u32) -> RocePacket {
    let bth = Bth::new(Opcode::from_u8(opcode), qpn(), Psn::new(psn));
    let reth = Some(Reth { va: 0x1000, rkey: 1, length: 64 });
    RocePacket { reth, ..RocePacket::new(&flow(A), Class::DATA, Ecn::NotEct, bth) }
}

#[test]
fn reads_and_atomics_are_refused() {
    // READ request, compare and swap, fetch and add, both SENDs with invalidate.
    for opcode in [0x0c, 0x13, 0x14, 0x16, 0x17] {
        let mut pair = Pair::new();
        pair.receive(0, B, 20, 5_000);
        pair.post(0, A, send(0, 4_096));
        pair.inject(300_000, B, &request(opcode, 0));
        pair.run();
        assert_eq!(pair.ends(B), ["300000 error: a request is refused", "300000 receive 20 flushed"]);
        // The NAK takes 2,520 and 100,000 ps; the SEND is still on its way to a queue pair in error.
        let expected = ["error: NAK invalid request", "message 0 remote invalid request error"];
        assert_eq!(pair.ends(A), expected.map(|text| format!("402520 {text}")));
        let in_error = Verdict::Dropped(DropReason::QueuePairFailed);
        assert_eq!(pair.verdicts(B, PacketKind::Send), [(333_924, in_error)]);
        assert_eq!(pair.counters(B).rx_qp_failed, 1);
    }
}

#[test]
fn a_read_that_is_not_next_is_not_answered_as_one() {
    let mut pair = Pair::new();
    pair.receive(0, B, 20, 5_000);
    pair.post(0, A, send(0, 4_096));
    // A gap draws the usual NAK, which is a ghost at A's end; an answer to a READ is no request.
    pair.inject(100_000, B, &request(0x0c, 3));
    pair.inject(120_000, B, &request(0x0d, 0));
    pair.inject(1_000_000, B, &request(0x0c, 0));
    pair.run();
    assert_eq!(pair.ends(A), [format!("{ROUND} message 0 completed")]);
    assert_eq!(pair.times(|kind| matches!(kind, EventKind::NakMade { .. })), [100_000]);
    assert_eq!(pair.counters(B).num_error_naks_sent, 0);
}

#[test]
fn a_middle_without_a_first_is_refused() {
    let mut pair = Pair::new();
    pair.inject(100_000, B, &RocePacket { reth: None, ..request(Opcode::WRITE_MIDDLE.get(), 0) });
    pair.run();
    assert_eq!(pair.ends(B), ["100000 error: a request is refused"]);
    // A never sent that PSN.
    assert_eq!(pair.verdicts(A, PacketKind::Nak), [(202_520, Verdict::Dropped(DropReason::GhostAck))]);
    assert_eq!(pair.ends(A), [""; 0]);
}

#[test]
fn a_message_that_nobody_announced_is_refused() {
    let mut pair = Pair::new();
    pair.receive(0, B, 20, 10);
    pair.inject(100_000, B, &RocePacket { reth: None, ..request(Opcode::SEND_ONLY.get(), 0) });
    pair.run();
    assert_eq!(pair.ends(B), ["100000 error: a request is refused", "100000 receive 20 flushed"]);
}

#[test]
fn a_nak_from_outside_is_obeyed() {
    let mut pair = Pair::new();
    pair.receive(0, B, 1, 4_096);
    pair.post(0, A, send(0, 4_096));
    pair.inject(300_000, A, &answer(0, Syndrome::Nak(NakCode::RemoteOperationalError)));
    pair.run();
    let expected = ["error: NAK remote operational error", "message 0 remote operational error"];
    assert_eq!(pair.ends(A), expected.map(|text| format!("300000 {text}")));
    // The frame had left: what was sent arrives, and its ACK comes to a queue pair in error.
    assert_eq!(pair.ends(B)[0], "403213 message 0 delivered");
    let in_error = Verdict::Dropped(DropReason::QueuePairFailed);
    assert_eq!(pair.verdicts(A, PacketKind::Ack), [(ROUND, in_error)]);
}

#[test]
fn a_source_outside_its_region_sends_nothing() {
    let gather = |pieces: &[Piece]| Source::Gather(pieces.into());
    let foreign = Piece { key: MemoryKey { address: 0x1000, rkey: 8 }, length: Octets::new(1) };
    for source in [gather(&[piece(0, 65_537)]), gather(&[piece(0, 4_096), foreign])] {
        let mut pair = Pair::new();
        pair.post(0, A, WorkRequest { source, ..send(0, 0) });
        pair.run();
        let expected = ["0 error: a message is not in registered memory", "0 message 0 local protection error"];
        assert_eq!(pair.ends(A), expected);
        assert_eq!(pair.frames, 0);
    }
    let mut pair = Pair::new();
    let source = gather(&vec![piece(0, 65_536); 32_769]);
    pair.post(0, A, WorkRequest { source, ..send(0, 0) });
    pair.run();
    assert_eq!(pair.ends(A), ["0 error: a message is too long", "0 message 0 local length error"]);
}

#[test]
fn memory_taken_back_while_it_is_read_ends_the_message() {
    let mut pair = Pair::new();
    pair.post(0, A, send(0, 2 * 4_096));
    pair.act(100_000, A, Act::Deregister(1));
    pair.run();
    // The first payload is there at 150,844 ps, the second 69,289 later, useless by then.
    let expected = ["error: a message is not in registered memory", "message 0 local protection error"];
    assert_eq!(pair.ends(A), expected.map(|text| format!("150844 {text}")));
    assert_eq!(pair.times(|kind| matches!(kind, EventKind::PayloadDiscarded { .. })), [150_844, 220_133]);
    assert_eq!((pair.frames, pair.counters(A).num_tx_payload_discards), (0, 2));
}

#[test]
fn memory_taken_back_while_it_is_written_loses_the_message() {
    let mut pair = Pair::new();
    pair.receive(0, B, 20, 4_096);
    pair.receive(0, B, 21, 4_096);
    pair.post(0, A, send(0, 4_096));
    pair.act(350_000, B, Act::Deregister(1));
    pair.run();
    let expected = [
        "message 0 lost",
        "receive 20 local protection error",
        "error: memory is gone that was to be written",
        "receive 21 flushed",
    ];
    assert_eq!(pair.ends(B), expected.map(|text| format!("403213 {text}")));
    assert_eq!(pair.ends(A), [format!("{ROUND} message 0 completed")], "the ACK is made at the arrival");
}

#[test]
fn a_receive_outside_its_region_is_the_receivers_fault() {
    let mut pair = Pair::new();
    pair.receive(0, B, 20, 65_537);
    pair.post(0, A, send(0, 4_096));
    pair.run();
    let expected = ["error: a receive is not in registered memory", "receive 20 local protection error"];
    // Its octets lie in the region; the receive is judged by what is written.
    assert_eq!(pair.ends(B)[0], "403213 message 0 delivered");
    let mut pair = Pair::new();
    pair.receive(0, B, 20, 4_096);
    pair.act(1_000, B, Act::Deregister(1));
    pair.post(0, A, send(0, 4_096));
    pair.run();
    assert_eq!(pair.ends(B), expected.map(|text| format!("333924 {text}")));
    assert_eq!(pair.ends(A)[1], format!("{ROUND} message 0 remote operational error"));
}

#[test]
fn work_is_flushed_in_its_order_and_what_is_posted_later_at_once() {
    let mut pair = Pair::new();
    for (message, size) in [(0, 4_096), (1, 10), (2, 20)] {
        pair.post(0, A, send(message, size));
        pair.receive(0, A, 50 + u64::from(message), 9);
    }
    pair.fail(100_000, A, FailureCause::Closed);
    pair.post(500_000, A, send(3, 1));
    pair.receive(600_000, A, 60, 1);
    pair.run();
    let mut expected = vec!["100000 error: closed".to_owned()];
    expected.extend((0..3).map(|n| format!("100000 message {n} flushed")));
    expected.extend((50..53).map(|n| format!("100000 receive {n} flushed")));
    expected.extend(["500000 message 3 flushed".into(), "600000 receive 60 flushed".into()]);
    assert_eq!(pair.ends(A), expected);
    // The payload was on its way.
    let discarded = pair.times(|kind| matches!(kind, EventKind::PayloadDiscarded { .. }));
    assert_eq!((discarded, pair.frames), (vec![150_844], 0));
}

#[test]
fn frames_that_are_queued_leave_and_packets_that_were_accepted_arrive() {
    let mut pair = Pair::new();
    pair.receive(0, B, 20, 4_096);
    pair.receive(0, B, 21, 4_096);
    pair.post(0, A, send(0, 4_096));
    // The frame is on the line until 233,924; at B the packet is accepted at 333,924 and written at 403,213.
    pair.fail(200_000, A, FailureCause::Closed);
    pair.fail(350_000, B, FailureCause::PeerGone);
    pair.receive(360_000, B, 22, 4_096);
    pair.run();
    assert_eq!(pair.ends(A), ["200000 error: closed", "200000 message 0 flushed"]);
    let written = ["message 0 delivered", "receive 20 4096 B", "receive 21 flushed", "receive 22 flushed"];
    let mut expected = vec!["350000 error: the peer is gone".to_owned()];
    expected.extend(written.map(|text| format!("403213 {text}")));
    assert_eq!(pair.ends(B), expected, "in the order in which they were posted");
}

#[test]
fn a_peer_that_is_told_ends_as_well() {
    let mut pair = Pair::new();
    pair.tells_peer = true;
    pair.receive(0, A, 10, 1);
    pair.receive(0, B, 20, 1);
    pair.fail(5_000, B, FailureCause::Closed);
    pair.fail(6_000, B, FailureCause::PeerGone);
    pair.run();
    assert_eq!(pair.ends(B), ["5000 error: closed", "5000 receive 20 flushed"], "once");
    assert_eq!(pair.ends(A), ["1005000 error: the peer is gone", "1005000 receive 10 flushed"]);
}

#[test]
fn a_peer_that_does_not_answer_is_given_up() {
    let mut pair = Pair::new();
    pair.fail(0, B, FailureCause::Closed);
    pair.post(0, A, send(0, 4_096));
    pair.run();
    // Numbered at 150,844 ps, and 64 ms later the same again; one retry is allowed.
    let end = 2 * 64_000_150_844_u64;
    let expected = ["error: the peer does not answer", "message 0 retries exceeded"];
    assert_eq!(pair.ends(A), expected.map(|text| format!("{end} {text}")));
    assert_eq!(pair.counters(A).num_rto, 2);
}
