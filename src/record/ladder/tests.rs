use proptest::prelude::*;

use super::super::story::{self, A, B, Full, LINK, at, qpn, received, sent};
use super::*;
use crate::base::{Class, Instant, MessageId, Psn, Rate, RuleId, Span};
use crate::trace::{FailureCause, NodeNames, PortNames, WorkStatus};
use crate::wire::WireError;

fn ladder(events: &[Event]) -> String {
    let mut ladder = Ladder::new(Vec::new(), &story::names(), &LINK).unwrap();
    story::play(events, &mut ladder).unwrap();
    String::from_utf8(ladder.finish().unwrap()).unwrap()
}

#[test]
fn a_clean_run_is_a_sequence_diagram() {
    insta::assert_snapshot!(ladder(&story::clean()), @r"
         ns      frame                                qp  what was decided
          0.000  a * message 0 posted: WRITE of 8192 B to b
        233.924  a |--WRITE 0-------------->| b        2
        317.004  a |--WRITE 1-------------->| b        2
        419.524  a |<----------------ACK 1--| b        2
        486.293  b * message 0 delivered
        519.524  a * message 0 completed
    ");
}

#[test]
fn a_lost_packet_is_sent_again() {
    insta::assert_snapshot!(ladder(&story::lossy()), @r"
          ns      frame                                qp  what was decided
           0.000  a * message 0 posted: WRITE of 8192 B to b
         233.924  a |--WRITE 0-------------->| b        2  discarded: ingress pool full
         317.004  a |--WRITE 1-------------->| b        2  discarded: after NAK
         419.524  a |<----------------NAK 0--| b        2
         519.524  a * goes back to PSN 0, 2 packets taken back
         753.448  a |--WRITE 0-------------->| b        2  retransmission 1
         836.528  a |--WRITE 1-------------->| b        2  retransmission 1
         939.048  a |<----------------ACK 1--| b        2
        1005.817  b * message 0 delivered
        1039.048  a * message 0 completed
    ");
}

#[test]
fn pauses_and_timeouts_explain_the_silence() {
    let (port, class, paused) = (PortId(0), Class::default(), Span::from_ps(83_984_800));
    let events = [
        sent(1_680, B, PacketKind::Xoff, 0, 0),
        received(101_680, A, PacketKind::Xoff, 0, Verdict::Processed),
        at(101_680, A, EventKind::Paused { port, class, quanta: 65_535, duration: paused }),
        at(84_086_480, A, EventKind::Resumed { port, class, paused, by_xon: false }),
        at(64_000_000_000, A, EventKind::TransportTimerExpired { qpn: qpn(2), oldest: Psn::new(7) }),
    ];
    insta::assert_snapshot!(ladder(&events), @r"
              ns      frame                                qp  what was decided
               1.680  a |<---------XOFF class 0--| b
             101.680  a * class 0 paused for 83.9848 us
           84086.480  a * class 0 resumes after 83.9848 us: the pause is over
        64000000.000  a * timeout, the oldest PSN without an acknowledgement is 7
    ");
}

#[test]
fn what_never_arrived_is_still_on_its_way() {
    insta::assert_snapshot!(ladder(&story::clean()[4..7]), @r"
         ns      frame                                qp  what was decided
        233.924  a |--WRITE 0-------------->| b        2
        317.004  a |--WRITE 1-------------->| b        2  still on its way
    ");
}

#[test]
fn frames_out_of_turn_are_told_by_their_packet() {
    use PacketKind::Write;
    let malformed = Verdict::Dropped(DropReason::Malformed(WireError::BadIcrc { found: 1, computed: 2 }));
    let events = [
        sent(1_000, A, Write, 0, 1),
        sent(2_000, A, Write, 1, 1),
        sent(3_000, A, Write, 2, 1),
        received(4_000, B, Write, 1, Verdict::Dropped(DropReason::AfterNak)),
        received(5_000, B, PacketKind::Other, 0, malformed),
        received(6_000, B, Write, 2, Verdict::Duplicate),
        received(7_000, B, Write, 9, Verdict::Duplicate),
    ];
    insta::assert_snapshot!(ladder(&events), @r"
        ns      frame                                qp  what was decided
         1.000  a |--WRITE 0-------------->| b        2  discarded: bad ICRC
         2.000  a |--WRITE 1-------------->| b        2  discarded: after NAK
         3.000  a |--WRITE 2-------------->| b        2  duplicate
         7.000  b * receives what nobody sent: WRITE 9
    ");
}

/// a and b at either side of the switch s, which has its first port to a.
mod through_a_switch {
    use super::*;

    const S: NodeId = NodeId(2);

    fn ladder(events: &[Event]) -> String {
        let node = |name: &str, peers: &[&str]| NodeNames {
            name: name.into(),
            ports: peers
                .iter()
                .map(|peer| PortNames { name: format!("{name}:{peer}"), rate: Rate::from_gbps(400) })
                .collect(),
        };
        let nodes = vec![node("a", &["s"]), node("b", &["s"]), node("s", &["a", "b", "b#2"])];
        let names = Names { nodes, rules: vec!["bad cable".into()] };
        let links = [0, 1].map(|nic| ((NodeId(nic), PortId(0)), (S, PortId(nic))));
        let mut ladder = Ladder::new(Vec::new(), &names, &links).unwrap();
        story::play(events, &mut ladder).unwrap();
        String::from_utf8(ladder.finish().unwrap()).unwrap()
    }

    /// The event, at another port of the switch.
    fn at_port(port: u16, mut event: Event) -> Event {
        match &mut event.kind {
            EventKind::FrameSent { port: at, .. }
            | EventKind::FrameReceived { port: at, .. }
            | EventKind::CeMarked { port: at, .. } => *at = PortId(port),
            _ => {}
        }
        event
    }

    #[test]
    fn each_hop_has_its_line_and_a_mark_stands_where_it_was_set() {
        let events = [
            sent(1_000, A, PacketKind::Write, 7, 1),
            received(2_000, S, PacketKind::Write, 7, Verdict::Forwarded),
            at_port(1, story::marked(2_000, S)),
            at_port(1, sent(3_000, S, PacketKind::Write, 7, 0)),
            received(4_000, B, PacketKind::Write, 7, Verdict::Accepted),
            sent(5_000, B, PacketKind::Cnp, 0, 0),
            at_port(1, received(6_000, S, PacketKind::Cnp, 0, Verdict::Forwarded)),
            sent(7_000, S, PacketKind::Cnp, 0, 0),
            received(8_000, A, PacketKind::Cnp, 0, Verdict::Processed),
        ];
        insta::assert_snapshot!(ladder(&events), @r"
            ns      frame                                qp  what was decided
             1.000  a |--WRITE 7-------------->| s        2
             3.000  b |<--------------WRITE 7--| s        2  CE set
             5.000  b |--CNP------------------>| s        2
             7.000  a |<------------------CNP--| s        2
        ");
    }

    /// A switch checks no ICRC: what a fault made of a packet passes it under another name.
    #[test]
    fn damaged_frames_are_somebodys() {
        let bad = Verdict::Dropped(DropReason::Malformed(WireError::BadIcrc { found: 1, computed: 2 }));
        let corrupted = |mut event: Event| {
            let effect = RuleEffect { rule: RuleId(0), effect: Effect::Corrupted };
            if let EventKind::FrameSent { effects, .. } = &mut event.kind {
                effects.push(effect);
            }
            event
        };
        let events = [
            sent(1_000, A, PacketKind::Write, 7, 1),
            corrupted(sent(2_000, A, PacketKind::Write, 8, 1)),
            corrupted(sent(3_000, A, PacketKind::Write, 9, 1)),
            received(3_000, S, PacketKind::Write, 7, Verdict::Forwarded),
            // Another PSN, and another opcode.
            received(3_500, S, PacketKind::Write, 77, Verdict::Forwarded),
            received(4_000, S, PacketKind::Other, 9, Verdict::Forwarded),
            at_port(1, sent(5_000, S, PacketKind::Write, 77, 0)),
            at_port(1, sent(6_000, S, PacketKind::Other, 9, 0)),
            received(7_000, B, PacketKind::Other, 0, bad),
            received(8_000, B, PacketKind::Other, 0, bad),
        ];
        insta::assert_snapshot!(ladder(&events), @r"
            ns      frame                                qp  what was decided
             1.000  a |--WRITE 7-------------->| s        2
             2.000  a |--WRITE 8-------------->| s        2  corrupted by bad cable
             3.000  a |--WRITE 9-------------->| s        2  corrupted by bad cable
             5.000  b |<-------------WRITE 77--| s        2  discarded: bad ICRC
             6.000  b |<----------------frame--| s        2  discarded: bad ICRC
        ");
    }

    #[test]
    fn of_several_links_between_two_nodes_the_port_tells_which() {
        let names = Names {
            nodes: ["s", "t"]
                .map(|name| {
                    let peer = if name == "s" { "t" } else { "s" };
                    let port = |end: &str| PortNames { name: format!("{name}:{peer}{end}"), rate: Rate::from_gbps(1) };
                    NodeNames { name: name.into(), ports: vec![port(""), port("#2")] }
                })
                .into(),
            rules: Vec::new(),
        };
        let links = [0, 1].map(|link| ((A, PortId(link)), (B, PortId(link))));
        let mut ladder = Ladder::new(Vec::new(), &names, &links).unwrap();
        let events = [sent(1_000, A, PacketKind::Ack, 1, 0), at_port(1, sent(2_000, B, PacketKind::Ack, 2, 0))];
        story::play(&events, &mut ladder).unwrap();
        insta::assert_snapshot!(String::from_utf8(ladder.finish().unwrap()).unwrap(), @r"
            ns      frame                                qp  what was decided
             1.000  s |--ACK 1---------------->| t        2  still on its way
             2.000  s |<----------------ACK 2--| t        2  by t:s#2, still on its way
        ");
    }
}

#[test]
fn an_arrow_ends_where_its_frame_did() {
    assert_eq!(arrow("WRITE 7", true, State::Arrived), "--WRITE 7-------------->");
    assert_eq!(arrow("WRITE 7", true, State::Dropped), "--WRITE 7----------x    ");
    assert_eq!(arrow("NAK 7", false, State::Arrived), "<----------------NAK 7--");
    assert_eq!(arrow("NAK 7", false, State::Dropped), "    x------------NAK 7--");
    assert_eq!(arrow("WRITE 16777215", true, State::Arrived).len(), ARROW);
}

#[test]
fn a_peer_without_a_receive_and_the_end_of_a_queue_pair_are_told() {
    let qpn = qpn(2);
    let (psn, until) = (Psn::new(0), Instant::from_ps(10_436_444));
    let text = ladder(&[
        sent(233_924, A, PacketKind::Send, 0, 1),
        received(333_924, B, PacketKind::Send, 0, Verdict::Dropped(DropReason::ReceiverNotReady)),
        sent(336_444, B, PacketKind::RnrNak, 0, 0),
        received(436_444, A, PacketKind::RnrNak, 0, Verdict::Processed),
        at(436_444, A, EventKind::RnrWaitStarted { qpn, psn, until, attempt: 1 }),
        at(500_000, A, EventKind::QueuePairFailed { qpn, cause: FailureCause::PeerGone }),
        at(500_000, A, EventKind::MessageFailed { message: MessageId(0), qpn, status: WorkStatus::WorkRequestFlushed }),
    ]);
    insta::assert_snapshot!(text, @r"
     ns      frame                                qp  what was decided
    233.924  a |--SEND 0--------------->| b        2  discarded: receiver not ready
    336.444  a |<------------RNR NAK 0--| b        2
    436.444  a * waits 10 us for a receive at the peer, PSN 0, attempt 1
    500.000  a * queue pair 2 in error: the peer is gone
    500.000  a * message 0 failed: flushed
    ");
}

#[test]
fn patience_has_an_end() {
    let mut ladder = Ladder::new(Vec::new(), &story::names(), &LINK).unwrap();
    for psn in 0..Ladder::<Vec<u8>>::PATIENCE as u32 + 10 {
        ladder.record(&sent(0, A, PacketKind::Write, psn, 1)).unwrap();
    }
    assert_eq!(ladder.waiting.len(), Ladder::<Vec<u8>>::PATIENCE);
    // Its line is out already; it arrives without harm.
    ladder.record(&received(1, B, PacketKind::Write, 0, Verdict::Accepted)).unwrap();
    assert_eq!(ladder.waiting.len(), Ladder::<Vec<u8>>::PATIENCE);
}

#[test]
fn a_full_disk_is_an_error() {
    let written = Ladder::new(Full(60), &story::names(), &LINK).and_then(|mut ladder| {
        story::play(&story::lossy(), &mut ladder)?;
        ladder.finish()
    });
    assert_eq!(written.err().map(|e| e.kind()), Some(io::ErrorKind::StorageFull));
}

proptest! {
    #[test]
    fn every_frame_sent_has_its_line(events in story::any_events()) {
        let lines = ladder(&events);
        let frames = events.iter().filter(|event| matches!(event.kind, EventKind::FrameSent { .. })).count();
        prop_assert_eq!(lines.lines().filter(|line| line.contains('|')).count(), frames);
    }
}
