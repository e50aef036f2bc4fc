//! Runs on memory wires, checked against hand-derived picoseconds.
//!
//! Defaults throughout: 400 Gb/s, 100 ns, MSS 4096. A full frame of 4,154 B lasts 83,080 ps, an ACK of 126 B 2,520 ps;
//! 80 ns to start, 1,555 ps for a read request, 69,289 ps for 4,096 B over PCIe.

mod congestion;

use std::ops::ControlFlow;

use super::{Engine, MemoryWires, Outcome};
use crate::base::{Class, Instant, MessageId, NodeId, Octets, PortId, Psn, Qpn, Rate, Span};
use crate::nic;
use crate::scenario::{LinkEnd, LinkPlan, NicPlan, Plan, PostPlan, QueuePairEnd, QueuePairPlan};
use crate::trace::{Event, EventKind, PacketKind, Sink};
use crate::wire::{MacAddr, Verb};

/// Keeps every event.
#[derive(Default)]
pub struct Log(pub Vec<Event>);

impl Sink for Log {
    fn record(&mut self, event: &Event) -> std::io::Result<()> {
        self.0.push(event.clone());
        Ok(())
    }
}

impl Log {
    /// Times of the events that `pick` picks.
    pub fn times(&self, mut pick: impl FnMut(&EventKind) -> bool) -> Vec<u64> {
        self.0.iter().filter(|event| pick(&event.kind)).map(|event| event.at.ps()).collect()
    }

    pub fn completed(&self, message: u32) -> u64 {
        self.times(|kind| matches!(kind, EventKind::MessageCompleted { message: m, .. } if m.0 == message))[0]
    }

    pub fn delivered(&self, message: u32) -> u64 {
        self.times(|kind| matches!(kind, EventKind::MessageDelivered { message: m, .. } if m.0 == message))[0]
    }

    pub fn sent(&self, packet_kind: PacketKind) -> Vec<u64> {
        self.times(|kind| matches!(kind, EventKind::FrameSent { packet, .. } if packet.kind == packet_kind))
    }
}

pub const A: NodeId = NodeId(0);
pub const B: NodeId = NodeId(1);

pub fn nic_plan(number: u8) -> NicPlan {
    NicPlan {
        name: char::from(b'a' + number - 1).to_string(),
        address: nic::Address { mac: MacAddr([2, 0, 0, 0, 0, number]), ip: core::net::Ipv4Addr::new(10, 0, 0, number) },
        config: nic::Config::default(),
    }
}

/// Two NICs, `queue_pairs` connections, nothing posted.
pub fn pair(queue_pairs: u32) -> Plan {
    let end = |node, qpn| QueuePairEnd {
        node,
        qpn: Qpn::new(qpn).unwrap(),
        initial_psn: Psn::new(0),
        data_class: Class::DATA,
        control_class: Class::CONTROL,
    };
    let link_end = |node| LinkEnd { node, port: PortId(0), delay: Span::from_ns(100) };
    Plan {
        name: "pair".into(),
        description: String::new(),
        seed: 1,
        until: Instant::ZERO + Span::from_secs(10),
        allow_lossless_drops: false,
        nics: vec![nic_plan(1), nic_plan(2)],
        switches: Vec::new(),
        links: vec![LinkPlan { ends: [link_end(A), link_end(B)] }],
        queue_pairs: (0..queue_pairs)
            .map(|n| QueuePairPlan { name: format!("q{n}"), ends: [end(A, 2 + n), end(B, 2 + n)], implicit: false })
            .collect(),
        posts: Vec::new(),
        applications: Vec::new(),
        faults: Vec::new(),
        expectations: Vec::new(),
        records: Default::default(),
    }
}

pub fn write(queue_pair: usize, size: u64) -> PostPlan {
    PostPlan {
        at: Instant::ZERO,
        queue_pair,
        from_end: 0,
        verb: Verb::Write,
        size: Octets::new(size),
        inline: false,
        blue_flame: false,
        count: 1,
        every: Span::ZERO,
    }
}

pub fn run(plan: &Plan) -> (Outcome, Log) {
    let mut wires = MemoryWires::default();
    let mut log = Log::default();
    let outcome = Engine::new(plan, &mut wires)
        .run(&mut log, &mut |_| ControlFlow::Continue(()))
        .expect("memory wires lose nothing and the books balance");
    assert_eq!(outcome.unfinished, []);
    assert_eq!(outcome.mismatches, []);
    (outcome, log)
}

fn run_writes(sizes: &[u64]) -> (Outcome, Log) {
    let plan = Plan { posts: sizes.iter().map(|&size| write(0, size)).collect(), ..pair(1) };
    run(&plan)
}

#[test]
fn the_1_mib_write_completes_when_the_specification_says() {
    let (outcome, log) = run_writes(&[1 << 20]);
    assert_eq!(log.completed(0), 21_621_844);
    assert_eq!(log.delivered(0), 21_588_613);
    assert_eq!(outcome.end.ps(), 21_621_844);
    assert_eq!(outcome.compared.get(), 1 << 20);

    let data = log.sent(PacketKind::Write);
    assert_eq!(data.len(), 256);
    // The first payload after 80 + 1.555 + 69.289 ns, its frame's last bit 83.08 ns later, then one every 83.08 ns.
    let expected: Vec<_> = (0..256).map(|n| 150_844 + 83_080 * (n + 1)).collect();
    assert_eq!(data, expected);
}

#[test]
fn sixteen_acks_cover_256_packets() {
    let (outcome, log) = run_writes(&[1 << 20]);
    let acked: Vec<_> = log
        .0
        .iter()
        .filter_map(|event| match event.kind {
            EventKind::AckMade { psn, .. } => Some(psn.get()),
            _ => None,
        })
        .collect();
    // Packets 17, 34, …, 255 and 256; PSNs count from 0.
    let expected: Vec<_> = (1..=15).map(|k| 17 * k - 1).chain([255]).collect();
    assert_eq!(acked, expected);
    let b = outcome.counters.node(B);
    assert_eq!((b.num_acks_sent, b.total_bytes_tx), (16, 2_016));
}

#[test]
fn a_packet_alone_takes_a_round_trip_and_its_own_sizes() {
    // 80,000 + 1,555 + 69,289 + 83,080 + 100,000 + 2,520 + 100,000.
    assert_eq!(run_writes(&[4_096]).1.completed(0), 436_444);
    // No fetch; 58 B last 1,160 ps.
    assert_eq!(run_writes(&[0]).1.completed(0), 283_680);
}

#[test]
fn messages_are_cut_into_packets_of_the_mss() {
    for (size, packets) in [(0, 1), (1, 1), (4_095, 1), (4_096, 1), (4_097, 2)] {
        let (outcome, _) = run_writes(&[size]);
        assert_eq!(outcome.counters.node(A).num_verb_pkts_sent, packets, "{size} B");
    }
}

#[test]
fn messages_of_one_queue_pair_never_overlap() {
    let (_, log) = run_writes(&[4_096, 4_096]);
    // The second starts when the first has completed, and pays the 80 ns again.
    assert_eq!((log.completed(0), log.completed(1)), (436_444, 2 * 436_444));
}

#[test]
fn messages_of_two_queue_pairs_do_overlap() {
    let plan = Plan { posts: vec![write(0, 4_096), write(1, 4_096)], ..pair(2) };
    let (_, log) = run(&plan);
    assert_eq!(log.completed(0), 436_444);
    // One frame behind it.
    assert_eq!(log.completed(1), 436_444 + 83_080);
}

#[test]
fn a_pcie_3_sender_is_limited_by_its_link() {
    let mut plan = Plan { posts: vec![write(0, 1 << 20)], ..pair(1) };
    let lane = Rate::from_bps(7_880_000_000).unwrap();
    let pcie = &mut plan.nics[0].config.pcie;
    (pcie.nic_side.lane_bps, pcie.host_side.lane_bps) = (lane, lane);
    let (_, log) = run(&plan);
    let data = log.sent(PacketKind::Write);
    // 4,368 B at 126.08 Gb/s: 277,157.36 ps, each completion rounded by itself.
    assert!(data.windows(2).all(|w| w[1] - w[0] == 277_157), "{:?}", &data[..4]);
    // 4096 x 8 / 277,157 ps = 118.2 Gb/s.
}

#[test]
fn an_egress_pool_of_one_packet_spaces_frames_by_a_whole_turn() {
    let mut plan = Plan { posts: vec![write(0, 10 * 4_096)], ..pair(1) };
    plan.nics[0].config.egress.total = Octets::new(5_000);
    let (_, log) = run(&plan);
    let data = log.sent(PacketKind::Write);
    assert!(data.windows(2).all(|w| w[1] - w[0] == 233_924), "{data:?}");
}

#[test]
fn both_directions_at_once_and_sends_arrive_intact() {
    let mut plan = pair(2);
    plan.posts = vec![
        write(0, 300_000),
        PostPlan { from_end: 1, ..write(0, 123_457) },
        PostPlan { verb: Verb::Send, count: 3, ..write(1, 50_001) },
        PostPlan { verb: Verb::Send, from_end: 1, at: Instant::from_ps(5_000), ..write(1, 0) },
    ];
    let (outcome, _) = run(&plan);
    assert_eq!(outcome.compared.get(), 300_000 + 123_457 + 150_003);
}

#[test]
fn an_implicit_queue_pair_appears_with_its_first_packet() {
    let mut plan = Plan { posts: vec![write(0, 10_000), PostPlan { from_end: 1, ..write(0, 10_000) }], ..pair(1) };
    plan.queue_pairs[0].implicit = true;
    for end in &mut plan.queue_pairs[0].ends {
        end.qpn = Qpn::new(Qpn::IMPLICIT_BASE).unwrap();
    }
    let (outcome, _) = run(&plan);
    assert_eq!(outcome.counters.node(B).num_rx_drops, 0);
}

#[test]
fn psns_wrap_at_24_bits() {
    let mut plan = Plan { posts: vec![write(0, 1 << 20)], ..pair(1) };
    for end in &mut plan.queue_pairs[0].ends {
        end.initial_psn = Psn::new(0xff_fff0);
    }
    let (_, log) = run(&plan);
    assert_eq!(log.completed(0), 21_621_844);
}

#[test]
fn an_unfinished_run_names_what_is_missing() {
    let plan = Plan {
        posts: vec![write(0, 1 << 20), PostPlan { at: Instant::from_ps(90_000_000), ..write(0, 1) }],
        until: Instant::from_ps(1_000_000),
        ..pair(1)
    };
    let mut wires = MemoryWires::default();
    let outcome = Engine::new(&plan, &mut wires).run(&mut Log::default(), &mut |_| ControlFlow::Continue(())).unwrap();
    assert_eq!(outcome.unfinished, [MessageId(0), MessageId(1)]);
    assert!(outcome.end <= plan.until);
}

/// Sizes and times of the specification's slow host: a receiver at the PCIe 3.0 rate.
#[test]
fn a_slow_host_pauses_the_sender_and_nothing_is_lost() {
    let mut plan = Plan { posts: vec![write(0, 64 << 20)], ..pair(1) };
    let lane = Rate::from_bps(7_880_000_000).unwrap();
    let pcie = &mut plan.nics[1].config.pcie;
    (pcie.nic_side.lane_bps, pcie.host_side.lane_bps) = (lane, lane);
    let (outcome, log) = run(&plan);
    let pauses: Vec<_> = log
        .0
        .iter()
        .filter_map(|event| match event.kind {
            EventKind::PauseRequested { occupancy, .. } => Some((event.at.ps(), occupancy.get(), "xoff")),
            EventKind::ResumeRequested { occupancy, .. } => Some((event.at.ps(), occupancy.get(), "xon")),
            _ => None,
        })
        .collect();
    // Held before the packet that reaches Xoff, and at the refresh half a pause time (41,992,400 ps) later.
    assert_eq!(pauses[0], (89_811_084, 2_878_656 + 4_136, "xoff"));
    assert_eq!(pauses[1], (131_803_484, 2_266_528, "xon"));
    let b = outcome.counters.node(B);
    assert_eq!((b.rx_drops, outcome.counters.node(A).num_retransmitted_pkts), (0, 0));
    let rate = (64_u64 << 20) as f64 * 8.0 / log.delivered(0) as f64 * 1_000.0;
    assert!((rate - 118.2).abs() < 0.1, "{rate}");
}
