//! Reading, routing, queueing, sending.

use super::*;
use crate::trace::{DropReason, PacketKind, Queue, Verdict};
use crate::wire::WireError;

fn verdicts(bench: &Bench) -> Vec<(u64, Verdict)> {
    bench
        .told(|kind| match kind {
            EventKind::FrameReceived { verdict, occupancy, .. } => Some((*verdict, occupancy.get())),
            _ => None,
        })
        .into_iter()
        .map(|(_, (verdict, occupancy))| (occupancy, verdict))
        .collect()
}

#[test]
fn a_frame_leaves_one_serialization_after_it_arrived() {
    let mut bench = Bench::new(ports(3));
    let frame = data(0, 2, 0, 4_096, 7);
    bench.arrive(1_000_000, 0, frame.clone());
    bench.run();
    // 4,154 B at 400 Gb/s last 83,080 ps.
    let [(at, sent)] = &bench.sent[..] else { panic!("one frame") };
    assert_eq!((*at, sent.port, sent.wire_len.get()), (1_083_080, PortId(2), 4_154));
    assert_eq!(sent.frame, frame, "nothing is written into it");
    assert_eq!(bench.counters().pkts_forwarded, 1);
    assert_eq!(bench.counters().num_pkts_sent, 0, "it is somebody else's packet");
}

#[test]
fn a_slower_port_takes_its_own_time() {
    let mut config = ports(2);
    config.ports[1].data_rate = Rate::from_gbps(25);
    let mut bench = Bench::new(config);
    bench.arrive(0, 0, data(0, 1, 0, 4_096, 1));
    bench.arrive(0, 1, data(1, 0, 0, 4_096, 2));
    bench.run();
    // 4,154 B at 25 Gb/s: sixteen times 83,080 ps.
    assert_eq!(bench.sent_psns(), [(83_080, 2), (1_329_280, 1)]);
}

#[test]
fn frames_of_one_instant_leave_in_the_order_of_their_ports() {
    let mut bench = Bench::new(ports(4));
    for port in [0, 1, 2] {
        bench.arrive(500, port, data(port, 3, 0, 4_096, port.into()));
    }
    bench.run();
    assert_eq!(bench.sent_psns(), [(83_580, 0), (166_660, 1), (249_740, 2)]);
}

#[test]
fn pfc_goes_first_then_the_highest_class() {
    let mut config = ports(3);
    config.pfc.xoff[5] = Octets::ZERO;
    let mut bench = Bench::new(config);
    bench.arrive(0, 0, data(0, 2, 0, 4_096, 1));
    bench.arrive(10, 0, data(0, 2, 0, 4_096, 2));
    bench.arrive(20, 1, data(1, 2, 3, 4_096, 3));
    bench.arrive(30, 1, data(1, 2, 7, 4_096, 4));
    // It takes port 2 past its Xoff of 0: an XOFF joins the others there, behind the frame on the line.
    bench.arrive(40, 2, data(2, 0, 5, 4_096, 5));
    bench.run();
    let by_port_2: Vec<_> = bench
        .sent
        .iter()
        .filter(|(_, sent)| sent.port == PortId(2))
        .map(|(at, sent)| (*at, sent.packet.kind, sent.packet.psn.get()))
        .collect();
    use PacketKind::{Send, Xoff, Xon};
    // The frame of class 5 leaves by port 0 at 83,120 ps: an XON, 84 B of 1,680 ps, waits for the third frame's end.
    let order = [
        (83_080, Send, 1),
        (84_760, Xoff, 0),
        (86_440, Xon, 0),
        (169_520, Send, 4),
        (252_600, Send, 3),
        (335_680, Send, 2),
    ];
    assert_eq!(by_port_2, order);
}

#[test]
fn a_cnp_is_a_frame_of_its_class() {
    let mut bench = Bench::new(ports(2));
    bench.arrive(0, 0, cnp(0, 1));
    let queued = bench.told(|kind| match kind {
        EventKind::FrameQueued { queue, .. } => Some(*queue),
        _ => None,
    });
    assert_eq!(queued, [(0, Queue::Class(Class::CONTROL))]);
}

#[test]
fn a_frame_is_charged_its_size_less_18_and_at_least_46() {
    // 4,154, 126, 122 and 58 B: the last would be 40.
    for (frame, charge) in
        [(data(0, 1, 0, 4_096, 0), 4_136), (ack(0, 1), 108), (cnp(0, 1), 104), (data(0, 1, 0, 0, 0), 46)]
    {
        let mut bench = Bench::new(ports(2));
        bench.arrive(0, 0, frame);
        assert_eq!(verdicts(&bench), [(charge, Verdict::Forwarded)]);
        assert_eq!(bench.switch.holdings(), Holdings { egress_frames: 1, buffered_octets: charge });
        bench.run();
        assert_eq!(bench.switch.holdings(), Holdings::default());
    }
}

#[test]
fn the_charge_is_released_when_the_transmission_ends() {
    let mut bench = Bench::new(ports(2));
    bench.arrive(0, 0, data(0, 1, 0, 4_096, 0));
    bench.run_until(83_079);
    assert_eq!(bench.switch.ingress_occupancy(PortId(0), class(0)).get(), 4_136);
    bench.run_until(83_080);
    assert_eq!(bench.switch.ingress_occupancy(PortId(0), class(0)).get(), 0);
    assert_eq!(bench.switch.buffer_peak().get(), 4_136);
}

#[test]
fn what_has_no_way_or_makes_no_sense_is_dropped_for_that_reason() {
    let mut bench = Bench::new(ports(2));
    bench.arrive(0, 0, data(0, 77, 0, 100, 0));
    let mut other_port = data(0, 1, 0, 100, 0).to_vec();
    other_port[36..38].copy_from_slice(&80_u16.to_be_bytes());
    bench.arrive(1, 0, other_port.into());
    bench.arrive(2, 0, Bytes::from_static(&[0; 60]));
    let reasons = [
        DropReason::NoRoute,
        DropReason::Malformed(WireError::WrongPort(80)),
        DropReason::Malformed(WireError::UnknownEtherType(0)),
    ];
    assert_eq!(verdicts(&bench), reasons.map(|reason| (0, Verdict::Dropped(reason))));
    bench.run();
    let counters = bench.counters();
    assert_eq!((counters.rx_drops_no_route, counters.rx_malformed, counters.rx_drops), (1, 2, 0));
    assert_eq!((counters.total_packets_rx, counters.total_packets_tx, counters.pkts_forwarded), (3, 0, 0));
}

#[test]
fn frames_to_the_mac_control_address_go_no_further() {
    let mut bench = Bench::new(ports(2));
    bench.arrive(0, 0, pause(0, 100));
    let mut global = pause(0, 100).to_vec();
    global[14..16].copy_from_slice(&[0x00, 0x01]);
    bench.arrive(1, 0, global.into());
    let mut roce = data(0, 1, 0, 100, 0).to_vec();
    roce[..6].copy_from_slice(&MacAddr::MAC_CONTROL.0);
    bench.arrive(2, 0, roce.into());
    let verdicts: Vec<_> = verdicts(&bench).into_iter().map(|(_, verdict)| verdict).collect();
    let malformed = |error| Verdict::Dropped(DropReason::Malformed(error));
    let expected =
        [Verdict::Processed, malformed(WireError::GlobalPause), malformed(WireError::UnknownEtherType(0x0800))];
    assert_eq!(verdicts, expected);
    bench.run();
    assert_eq!(bench.sent, []);
}

#[test]
fn damage_is_for_the_receiver_to_find() {
    let mut frame = data(0, 1, 0, 100, 3).to_vec();
    frame[60] ^= 1;
    let mut bench = Bench::new(ports(2));
    bench.arrive(0, 0, frame.clone().into());
    bench.run();
    assert_eq!(bench.sent[0].1.frame, frame);
}

#[test]
fn flows_spread_over_equal_ways_and_stay_on_theirs() {
    let routes = [(ip(9), vec![PortId(1), PortId(2), PortId(3)])].into_iter().collect();
    let mut bench = Bench::routed(Config { ecmp_salt: 5, ..ports(4) }, routes);
    for round in 0..3_u64 {
        for n in 0..60 {
            let frame = data_of_flow(flow(0, 9, 0xc000 + n), 0, Ecn::NotEct, 10, n.into());
            bench.arrive(round * 1_000_000 + u64::from(n), 0, frame);
        }
        bench.run();
    }
    let mut port_of = vec![None; 60];
    let mut taken = [0; 4];
    for (_, sent) in &bench.sent {
        taken[sent.port.index()] += 1;
        let known = &mut port_of[sent.packet.psn.get() as usize];
        assert_eq!(*known.get_or_insert(sent.port), sent.port, "a flow does not change its way");
    }
    // 60 each of 180 if all were equal.
    assert_eq!(taken[0], 0);
    assert!(taken[1..].iter().all(|&n| (30..90).contains(&n)), "{taken:?}");
}

#[test]
#[should_panic(expected = "routes lead to ports of the switch")]
fn a_route_to_a_port_that_is_not_there_is_a_bug() {
    let _ = Switch::new(ports(2), [(ip(1), vec![PortId(2)])].into_iter().collect());
}
