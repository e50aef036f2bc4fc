//! Random scenarios under random fault scripts: whatever is thrown at it, go-back-N delivers every octet once and in
//! order, and the books balance.
//!
//! Every scenario is drawn from one seed: rates, delays, MSS, buffers, coalescing, queue pairs, messages and faults. A
//! failure prints the line that plays it again. `ROCEMU_SEED=n` plays one, `ROCEMU_SEEDS=count` more of them.

use std::collections::BTreeMap;
use std::ops::ControlFlow;

use rocemu::base::{Instant, MessageId, NodeId, Octets, Psn, Qpn, Rate, Rng, Share, Span};
use rocemu::engine::{Engine, MemoryWires};
use rocemu::link::{Action, Corruption, Field, Matcher, PsnMatch, Rule};
use rocemu::scenario::{FaultKind, FaultPlan, Plan, parse};
use rocemu::trace::{DropReason, Event, EventKind, PacketKind, Sink, Verdict};
use rocemu::wire::Verb;

const SEEDS: u64 = 300;

/// Draws a value; the names of the streams keep one part of a scenario from moving another.
struct Draw(Rng);

impl Draw {
    fn below(&mut self, bound: u64) -> u64 {
        self.0.next_u64() % bound
    }

    fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.below(from.len() as u64) as usize]
    }

    fn one_in(&mut self, n: u64) -> bool {
        self.below(n) == 0
    }
}

fn plan(seed: u64) -> Plan {
    let mut draw = Draw(Rng::named(seed, "swarm/plan"));
    let queue_pairs = 1 + draw.below(4);
    let mut text = String::from("[nodes.a]\n[nodes.b]\n[[links]]\nends = [\"a\", \"b\"]\n");
    for n in 0..queue_pairs {
        text += &format!("[[queue_pairs]]\nname = \"q{n}\"\nends = [\"a\", \"b\"]\n");
    }
    for _ in 0..1 + draw.below(6) {
        let size = draw.pick(&[0, 1, 100, 4_095, 4_096, 4_097, 30_000, 200_000]);
        let (queue_pair, at) = (draw.below(queue_pairs), draw.below(30_000));
        let (from, verb) = (draw.pick(&["a", "b"]), draw.pick(&["write", "send"]));
        let count = 1 + draw.below(3);
        text += &format!(
            "[[posts]]\nqueue_pair = \"q{queue_pair}\"\nfrom = \"{from}\"\nverb = \"{verb}\"\n\
             size = \"{size}B\"\nat = \"{at}ns\"\ncount = {count}\n"
        );
    }
    let mut plan = parse("swarm.toml", &text).unwrap_or_else(|errors| panic!("{errors}")).plan;
    plan.seed = seed;
    // Ingress pools are drawn too small on purpose.
    plan.allow_lossless_drops = true;
    let rate = draw.pick(&[10, 100, 400, 800]);
    for nic in &mut plan.nics {
        let config = &mut nic.config;
        config.data_rate = Rate::from_gbps(rate);
        config.mss = Octets::new(draw.pick(&[256, 1_000, 1_024, 4_096]));
        // Short, so that silence ends soon; long enough for any round trip here.
        config.retransmit_timeout = Span::from_us(200 + draw.below(300));
        config.ack.coalescing = !draw.one_in(4);
        config.ack.threshold = draw.below(20) as u32;
        config.ack.delay = Span::from_us(1 + draw.below(50));
        config.egress.total = Octets::new(draw.pick(&[6_000, 20_000, 256_000]));
        config.ingress.total = Octets::new(draw.pick(&[20_000, 100_000, 4_000_000]));
        config.pcie.nic_side.lane_bps = Rate::from_gbps(draw.pick(&[1, 8, 32]));
        config.pcie.host_side.lane_bps = Rate::from_gbps(draw.pick(&[1, 8, 32]));
    }
    let delay = Span::from_ns(draw.below(2_000));
    for end in plan.links.iter_mut().flat_map(|link| &mut link.ends) {
        end.delay = delay;
    }
    for nic in &mut plan.nics {
        nic.config.delay = delay;
    }
    for end in plan.queue_pairs.iter_mut().flat_map(|queue_pair| &mut queue_pair.ends) {
        end.initial_psn = Psn::new(draw.pick(&[0, 5, 0xff_fff0, 0xff_ffff]));
    }
    plan.faults = (0..draw.below(5)).map(|n| fault(n, &mut draw)).collect();
    plan
}

fn fault(number: u64, draw: &mut Draw) -> FaultPlan {
    let mut matcher = Matcher::default();
    match draw.below(5) {
        0 => matcher.kinds = vec![draw.pick(&[PacketKind::Ack, PacketKind::Nak, PacketKind::Write, PacketKind::Send])],
        1 => matcher.psns = vec![PsnMatch::Relative(draw.below(10) as u32)],
        2 => matcher.messages = vec![MessageId(draw.below(6) as u32)],
        3 => matcher.from = Some(Instant::from_ps(draw.below(20_000_000))),
        _ => {}
    }
    // Nothing may go on for ever, or nothing could complete.
    match draw.below(3) {
        0 => matcher.nth = (0..1 + draw.below(4)).map(|_| 1 + draw.below(30)).collect(),
        1 => matcher.transmissions = vec![1 + draw.below(2) as u32],
        _ => matcher.probability = Some(Share::from_percent(1 + draw.below(20))),
    }
    let action = match draw.below(8) {
        0..3 => Action::Drop,
        3 => Action::Duplicate,
        4 => Action::Delay(Span::from_ns(draw.below(20_000))),
        5 => Action::Reorder { after: 1 + draw.below(8) as u32 },
        6 => {
            let field = draw.pick(&[Field::Payload, Field::Bth, Field::Icrc]);
            Action::Corrupt(Corruption { field, bit: draw.below(96) as u32 })
        }
        _ => Action::SetCe,
    };
    FaultPlan {
        name: format!("fault {number}"),
        link: 0,
        from_end: draw.below(2) as usize,
        optional: true,
        kind: FaultKind::Rule(Rule { matcher, action }),
    }
}

/// Listens for what must never happen.
#[derive(Default)]
struct Watch {
    events: u64,
    /// PSN expected next, by receiver and queue pair: each is accepted exactly once, in order.
    expected: BTreeMap<(NodeId, Qpn), Psn>,
    /// The PSN that a NAK named and that has not arrived yet.
    open_naks: BTreeMap<(NodeId, Qpn), Psn>,
    wrong: Vec<String>,
}

impl Sink for Watch {
    fn record(&mut self, event: &Event) -> std::io::Result<()> {
        self.events += 1;
        match event.kind {
            EventKind::FrameReceived { packet, verdict: Verdict::Accepted, .. } if packet.kind.is_data() => {
                let key = (event.node, packet.dest_qpn);
                let expected = self.expected.entry(key).or_insert(packet.psn);
                if *expected != packet.psn {
                    self.wrong.push(format!("{key:?} accepted PSN {} instead of {expected}", packet.psn));
                }
                *expected = packet.psn.plus(1);
                self.open_naks.remove(&key);
            }
            EventKind::NakMade { qpn, expected, .. } => {
                if let Some(open) = self.open_naks.insert((event.node, qpn), expected) {
                    self.wrong.push(format!("{} {qpn}: NAK {expected} while NAK {open} is open", event.node.0));
                }
            }
            EventKind::FrameReceived { verdict: Verdict::Dropped(DropReason::NoQueuePairData), .. } => {
                self.wrong.push("a data packet lost its queue pair".into());
            }
            _ => {}
        }
        Ok(())
    }
}

fn check(seed: u64) -> Result<u64, String> {
    let plan = plan(seed);
    let mut watch = Watch::default();
    let outcome = Engine::new(&plan, &mut MemoryWires::default())
        .run(&mut watch, &mut |_| ControlFlow::Continue(()))
        .map_err(|error| error.to_string())?;
    let mut wrong = watch.wrong;
    // Rules are optional; what is left are messages that did not finish or arrived changed.
    wrong.extend(outcome.shortcomings(&plan).iter().map(ToString::to_string));
    let octets: u64 = plan.posts.iter().map(|post| post.size.get() * u64::from(post.count)).sum();
    if outcome.compared.get() != octets {
        wrong.push(format!("{} octets compared instead of {octets}", outcome.compared));
    }
    if wrong.is_empty() { Ok(watch.events) } else { Err(wrong.join("\n")) }
}

fn number(variable: &str) -> Option<u64> {
    std::env::var(variable).ok().map(|text| text.parse().expect("a seed is a number"))
}

#[test]
fn every_fault_script_is_survived() {
    let seeds = match number("ROCEMU_SEED") {
        Some(seed) => seed..seed + 1,
        None => 0..number("ROCEMU_SEEDS").unwrap_or(SEEDS),
    };
    let mut events = 0;
    for seed in seeds {
        match check(seed) {
            Ok(count) => events += count,
            Err(why) => panic!("{why}\nreplay: ROCEMU_SEED={seed} cargo test --test swarm"),
        }
    }
    assert!(events > 0);
}

/// A scenario without anything to send would survive everything.
#[test]
fn the_swarm_meets_what_it_looks_for() {
    let plans: Vec<_> = (0..SEEDS).map(plan).collect();
    let any = |found: &dyn Fn(&Plan) -> bool| plans.iter().filter(|plan| found(plan)).count();
    assert!(any(&|plan| plan.faults.len() > 2) > 20);
    assert!(any(&|plan| plan.posts.iter().any(|post| post.verb == Verb::Send)) > 20);
    assert!(any(&|plan| plan.queue_pairs.len() == 4) > 20);
    let dropping = |plan: &Plan| {
        plan.faults.iter().any(|fault| matches!(&fault.kind, FaultKind::Rule(rule) if rule.action == Action::Drop))
    };
    assert!(any(&dropping) > 100);
}
