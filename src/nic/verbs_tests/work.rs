//! Work that goes well.

use super::*;

#[test]
fn a_send_into_a_posted_receive_takes_as_long_as_a_scripted_one() {
    let mut pair = Pair::new();
    pair.receive(0, B, 70, 5_000);
    pair.post(0, A, send(3, 4_096));
    pair.run();
    assert_eq!(pair.ends(A), ["436444 message 3 completed"]);
    assert_eq!(pair.ends(B), ["403213 message 3 delivered", "403213 receive 70 4096 B"]);
    assert_eq!(pair.memories[B].to_vec()[..4_096], pair.memories[A].to_vec()[..4_096]);
    let (a, b) = (pair.counters(A), pair.counters(B));
    assert_eq!((a.num_wqe_completed, b.num_receives_posted, b.num_receives_completed), (1, 1, 1));
}

#[test]
fn messages_take_receives_in_the_order_of_both() {
    let mut pair = Pair::new();
    for receive in 0..3 {
        pair.receive(0, B, receive, 100 * (receive + 1));
    }
    pair.post(0, A, send(0, 0));
    pair.post(0, A, write(1, 100));
    pair.post(0, A, send(2, 200));
    pair.post(0, A, WorkRequest { immediate: Some(0xdead_beef), ..write(3, 100) });
    pair.run();
    let taken: Vec<_> = pair
        .log
        .iter()
        .filter_map(|event| match event.kind {
            EventKind::ReceiveCompleted { receive, verb, bytes, immediate, .. } => {
                Some((receive, verb, bytes.get(), immediate))
            }
            _ => None,
        })
        .collect();
    // A plain WRITE takes none, one with immediate data does.
    let expected = [(0, Verb::Send, 0, None), (1, Verb::Send, 200, None), (2, Verb::Write, 100, Some(0xdead_beef))];
    assert_eq!(taken, expected);
    assert_eq!(pair.counters(A).num_wqe_completed, 4);
}

#[test]
fn octets_are_gathered_and_scattered() {
    let mut pair = Pair::new();
    // 3 octets from 10, 5,000 from 20,000, 2 from 0: two packets, cut at 4,096.
    let source = Source::Gather([piece(10, 3), piece(20_000, 5_000), piece(0, 2)].into());
    let receive = Receive { id: 1, pieces: [piece(60_000, 4_000), piece(50_000, 2_000)].into() };
    pair.act(0, B, Act::Input(Input::PostReceive { qpn: qpn(), receive }));
    pair.post(0, A, WorkRequest { source, ..send(0, 0) });
    pair.run();
    let (sent, got) = (pair.memories[A].to_vec(), pair.memories[B].to_vec());
    let sent = [&sent[10..13], &sent[20_000..25_000], &sent[0..2]].concat();
    assert_eq!(sent, [&got[60_000..64_000], &got[50_000..51_005]].concat());
}

#[test]
fn inline_octets_are_sent_in_the_same_time() {
    let mut pair = Pair::new();
    pair.receive(0, B, 1, 4_096);
    pair.post(0, A, WorkRequest { source: Source::Inline(vec![9; 4_096].into()), ..send(0, 0) });
    pair.run();
    assert_eq!(pair.ends(A), ["436444 message 0 completed"]);
    assert_eq!(pair.memories[B].to_vec()[..4_096], [9; 4_096]);
}

#[test]
fn immediate_data_is_sent_and_not_charged() {
    let mut pair = Pair::new();
    pair.receive(0, B, 1, 4_096);
    pair.post(0, A, WorkRequest { immediate: Some(7), ..send(0, 4_096) });
    pair.run();
    assert_eq!(pair.ends(A), ["436444 message 0 completed"]);
    let frames: Vec<_> = pair
        .log
        .iter()
        .filter_map(|event| match &event.kind {
            EventKind::FrameSent { wire_len, frame, .. } => Some((wire_len.get(), frame.len())),
            _ => None,
        })
        .collect();
    // Four octets more on the wire: 4,096 + 58 + 4.
    assert_eq!(frames, [(4_154, 4_158), (126, 62)]);
}

#[test]
fn solicited_is_said_where_flags_are_strict() {
    for (strict, expected) in [(false, [true; 3]), (true, [false, true, true])] {
        let mut pair = Pair::with(Config { strict_ib_flags: strict, ..Config::default() }, verbs());
        for receive in 0..3 {
            pair.receive(0, B, receive, 10);
        }
        pair.post(0, A, send(0, 1));
        pair.post(0, A, WorkRequest { solicited: true, ..send(1, 1) });
        pair.post(0, A, WorkRequest { solicited: true, immediate: Some(1), ..write(2, 1) });
        pair.run();
        let solicited = pair.log.iter().filter_map(|event| match event.kind {
            EventKind::ReceiveCompleted { solicited, .. } => Some(solicited),
            _ => None,
        });
        assert_eq!(solicited.collect::<Vec<_>>(), expected);
    }
}

#[test]
fn a_write_of_nothing_needs_no_memory() {
    let mut pair = Pair::new();
    pair.post(0, A, WorkRequest { remote: MemoryKey { address: 0, rkey: 0 }, ..write(0, 0) });
    pair.run();
    // No fetch: 80,000 + 1,160 (58 B) + 100,000 + 2,520 + 100,000.
    assert_eq!(pair.ends(A), ["283680 message 0 completed"]);
}
