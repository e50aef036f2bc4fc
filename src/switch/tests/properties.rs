//! What holds for any traffic.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;
use crate::port::pause_time;
use crate::trace::Verdict;

const PORTS: u16 = 4;
const CLASSES: [u8; 3] = [0, 1, 5];

/// A switch so small that every limit is reached.
fn tiny() -> Config {
    let mut config = ports(PORTS);
    let all = |octets| [Octets::new(octets); Class::COUNT];
    (config.pfc.xoff, config.pfc.xon, config.pfc.headroom) = (all(20_000), all(8_000), all(6_000));
    config.pfc.enabled[5] = false;
    config.total_buffer = Octets::new(60_000);
    config.marking.kmin = Octets::new(2_000);
    config.marking.kmax = Octets::new(20_000);
    config.ports[1].data_rate = Rate::from_gbps(100);
    config
}

#[derive(Clone, Debug)]
enum Arriving {
    Data { to: u16, class: u8, payload: usize },
    Pause { class: u8, quanta: u16 },
    Ack { to: u16 },
    Noise(Vec<u8>),
}

fn arriving() -> impl Strategy<Value = Arriving> {
    let class = || prop::sample::select(&CLASSES[..]);
    // To port 4 no way leads.
    prop_oneof![
        12 => (0..PORTS + 1, class(), 0..4_097_usize).prop_map(|(to, class, payload)| Arriving::Data { to, class, payload }),
        2 => (class(), prop_oneof![Just(0), 1..200_u16]).prop_map(|(class, quanta)| Arriving::Pause { class, quanta }),
        1 => (0..PORTS).prop_map(|to| Arriving::Ack { to }),
        1 => prop::collection::vec(any::<u8>(), 0..70).prop_map(Arriving::Noise),
    ]
}

fn arrivals() -> impl Strategy<Value = Vec<(u64, u16, Arriving)>> {
    prop::collection::vec((0..60_000_u64, 0..PORTS, arriving()), 1..150)
}

/// Every account holds what the frames that are there say, and nothing beyond its limit.
fn check_accounts(switch: &Switch) {
    let mut held = BTreeMap::new();
    let mut total = Octets::ZERO;
    for (from, class, charge) in switch.ports.iter().flat_map(|port| port.sender.charges()) {
        *held.entry((from, class)).or_insert(Octets::ZERO) += charge;
        total += charge;
    }
    for port in (0..switch.ports.len() as u16).map(PortId) {
        for class in Class::all() {
            let occupancy = switch.ingress_occupancy(port, class);
            assert_eq!(occupancy, held.remove(&(port, class)).unwrap_or_default(), "{port:?} {class}");
            assert!(occupancy <= switch.config.pfc.limit(class.index()));
        }
    }
    assert_eq!(switch.buffer.occupancy(), total);
    assert!(total <= switch.config.total_buffer);
}

fn played(arrivals: &[(u64, u16, Arriving)], config: Config) -> Bench {
    let mut bench = Bench::new(config);
    let mut now = 0;
    for (n, (gap, port, arriving)) in (0..).zip(arrivals) {
        now += gap;
        let frame = match arriving {
            Arriving::Data { to, class, payload } => data(*port, *to, *class, *payload, n),
            Arriving::Pause { class, quanta } => pause(*class, *quanta),
            Arriving::Ack { to } => ack(*port, *to),
            Arriving::Noise(octets) => octets.clone().into(),
        };
        bench.arrive(now, *port, frame);
        check_accounts(&bench.switch);
        bench.check_books();
    }
    bench
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn the_accounts_balance(arrivals in arrivals()) {
        let mut bench = played(&arrivals, tiny());
        while !bench.switch.is_quiet() {
            let wake = bench.switch.next_wake().expect("a frame that waits has a reason to");
            bench.input(wake.at, Input::Wake);
            check_accounts(&bench.switch);
        }
        bench.check_books();
        prop_assert_eq!(bench.switch.holdings(), Holdings::default());
        let forwarded = bench.counters().pkts_forwarded as usize;
        prop_assert_eq!(bench.sent.iter().filter(|(_, sent)| !sent.packet.kind.is_pfc()).count(), forwarded);
        // All that came was ECT(0) at most, so what carries CE got it here.
        let is_marked = |sent: &Transmission| wire::Peek::of(&sent.frame).is_ok_and(|peek| peek.ecn == Ecn::Ce);
        let marks = bench.counters().pkts_ecn_marked as usize;
        prop_assert_eq!(bench.sent.iter().filter(|(_, sent)| is_marked(sent)).count(), marks);
        // Nobody is left waiting for an XON.
        prop_assert!(bench.switch.next_wake().is_none_or(|wake| wake.phase == Phase::Timer));
        let refreshing = bench.switch.ports.iter().flat_map(|port| &port.accounts).filter(|account| account.is_paused());
        prop_assert_eq!(refreshing.count(), 0);
    }

    #[test]
    fn frames_of_one_flow_and_class_keep_their_order(arrivals in arrivals()) {
        let mut bench = played(&arrivals, tiny());
        bench.run();
        let mut last = BTreeMap::new();
        for (_, sent) in bench.sent.iter().filter(|(_, sent)| sent.packet.kind.is_data()) {
            let peek = wire::Peek::of(&sent.frame).unwrap();
            let before = last.insert((peek.ip_src, peek.ip_dst, peek.class), peek.psn.get());
            prop_assert!(before.is_none_or(|before| before < peek.psn.get()));
        }
    }

    #[test]
    fn the_same_seed_gives_the_same_run(arrivals in arrivals(), seed in 0..4_u64) {
        let run = || {
            let mut bench = played(&arrivals, Config { seed, ..tiny() });
            bench.run();
            (bench.log, bench.sent)
        };
        prop_assert_eq!(run(), run());
    }
}

/// Somebody who sends frames to port 0 as fast as the line allows, and obeys pauses.
#[derive(Clone, Debug)]
struct Eager {
    left: u32,
    payload: usize,
    line_free: u64,
    paused_until: u64,
}

/// Runs the senders behind ports 1, 2, … against a switch; `delay` is that of their links, both ways.
fn incast(config: Config, senders: &mut [Eager], delay: u64) -> Bench {
    let port_config = |port: usize| config.ports[port];
    let rates: Vec<_> = (0..=senders.len()).map(port_config).collect();
    let mut bench = Bench::new(config);
    // Frames on their way to the switch, and pauses on their way back: instant, port.
    let mut flight: BTreeMap<(u64, u16, u32), Bytes> = BTreeMap::new();
    let mut back: BTreeMap<(u64, u16, usize), u16> = BTreeMap::new();
    let mut looked_at = 0;
    loop {
        // Who can send, and when.
        let next_send = (1..)
            .zip(&*senders)
            .filter(|(_, sender)| sender.left > 0)
            .map(|(port, sender)| (sender.line_free.max(sender.paused_until), port))
            .min();
        let next_arrival = flight.first_key_value().map(|(&(at, ..), _)| at);
        let next_pause = back.first_key_value().map(|(&(at, ..), _)| at);
        let next_wake = bench.switch.next_wake().map(|wake| wake.at.ps());
        let Some(now) = [next_send.map(|(at, _)| at), next_arrival, next_pause].into_iter().flatten().min() else {
            break;
        };
        if next_wake.is_some_and(|wake| wake < now) {
            bench.input(Instant::from_ps(next_wake.unwrap()), Input::Wake);
        } else if next_pause == Some(now) {
            let ((at, port, _), quanta) = back.pop_first().unwrap();
            let config = rates[usize::from(port)];
            let duration =
                if quanta == 0 { 0 } else { pause_time(quanta, config.data_rate, Span::from_ps(delay)).ps() };
            senders[usize::from(port) - 1].paused_until = at + duration;
        } else if next_arrival == Some(now) {
            let ((at, port, _), frame) = flight.pop_first().unwrap();
            bench.arrive(at, port, frame);
        } else if let Some((at, port)) = next_send {
            let sender = &mut senders[usize::from(port) - 1];
            let frame = data(port, 0, 0, sender.payload, sender.left);
            let end = at + rates[usize::from(port)].data_rate.time_for(wire::model_len(&frame)).ps();
            sender.left -= 1;
            sender.line_free = end;
            flight.insert((end + delay, port, u32::MAX - sender.left), frame);
        }
        for (n, (at, sent)) in bench.sent.iter().enumerate().skip(looked_at) {
            if let Ok(pfc) = PfcFrame::parse(&sent.frame) {
                back.extend(pfc.classes().map(|(_, quanta)| ((at + delay, sent.port.0, n), quanta)));
            }
        }
        looked_at = bench.sent.len();
    }
    bench.run();
    bench
}

fn drops(bench: &Bench) -> usize {
    let is_drop = |event: &&Event| matches!(event.kind, EventKind::FrameReceived { verdict: Verdict::Dropped(_), .. });
    bench.log.iter().filter(is_drop).count()
}

/// Ports of one rate, pauses after 30,000 B, and the headroom that the link asks for: what arrives until the pause is
/// there and the frame in progress has come, behind an XON on the line at the worst.
fn lossless(ports_count: u16, rate: Rate, delay: u64) -> Config {
    let mut config = ports(ports_count);
    for port in &mut config.ports {
        (port.data_rate, port.delay) = (rate, Span::from_ps(delay));
    }
    let on_the_way = u128::from(2 * delay) * u128::from(rate.bps()) / 8_000_000_000_000;
    let headroom = on_the_way as u64 + 2 * 84 + 2 * 4_154;
    (config.pfc.xoff[0], config.pfc.xon[0], config.pfc.headroom[0]) =
        (Octets::new(30_000), Octets::new(10_000), Octets::new(headroom));
    config
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]
    #[test]
    fn nothing_is_dropped_while_the_headroom_suffices(
        payloads in prop::collection::vec(256..4_097_usize, 2..5),
        gbps in prop::sample::select(&[25_u64, 100, 400][..]),
        delay in 0..2_000_000_u64,
    ) {
        let rate = Rate::from_gbps(gbps);
        let frames = |payload: usize| 400_000 / payload as u32;
        let eager = |&payload: &usize| Eager { left: frames(payload), payload, line_free: 0, paused_until: 0 };
        let mut senders: Vec<_> = payloads.iter().map(eager).collect();
        let bench = incast(lossless(payloads.len() as u16 + 1, rate, delay), &mut senders, delay);
        prop_assert_eq!(drops(&bench), 0);
        prop_assert!(bench.counters().pfcxoff_tx > 0, "the case says nothing");
        let all: u32 = payloads.iter().map(|&payload| frames(payload)).sum();
        prop_assert_eq!(bench.sent_psns().len(), all as usize);
    }
}

#[test]
fn a_headroom_below_what_the_link_holds_loses_frames() {
    let delay = 1_000_000;
    let mut config = lossless(3, Rate::from_gbps(400), delay);
    config.pfc.headroom[0] = Octets::new(20_000);
    let mut senders = vec![Eager { left: 200, payload: 4_096, line_free: 0, paused_until: 0 }; 2];
    assert!(drops(&incast(config, &mut senders, delay)) > 0);
}
