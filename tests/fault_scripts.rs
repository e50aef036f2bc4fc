//! Whatever a script does to frames: everything arrives, once and in order, and the books balance.

use std::collections::BTreeMap;
use std::ops::ControlFlow;

use proptest::prelude::*;
use rocemu::base::{NodeId, Psn, Qpn};
use rocemu::engine::{Engine, MemoryWires, Outcome};
use rocemu::scenario;
use rocemu::trace::{Event, EventKind, Sink, Verdict};

/// Notes what no script may bring about.
#[derive(Default)]
struct Rules {
    /// The PSN that each responder has to accept next.
    expected: BTreeMap<(NodeId, Qpn), Psn>,
    /// What its last NAK asked for.
    asked: BTreeMap<(NodeId, Qpn), Psn>,
    broken: Vec<String>,
}

impl Sink for Rules {
    fn record(&mut self, event: &Event) -> std::io::Result<()> {
        match event.kind {
            EventKind::FrameReceived { packet, verdict: Verdict::Accepted, .. } => {
                let expected = self.expected.entry((event.node, packet.dest_qpn)).or_default();
                if *expected != packet.psn {
                    self.broken.push(format!("PSN {} accepted instead of {expected} at {}", packet.psn, event.at));
                }
                *expected = packet.psn.plus(1);
            }
            EventKind::NakMade { qpn, expected, .. }
                if self.asked.insert((event.node, qpn), expected) == Some(expected) =>
            {
                self.broken.push(format!("a second NAK for PSN {expected} at {}", event.at));
            }
            _ => {}
        }
        Ok(())
    }
}

/// A fault that happens to so few frames that the run ends.
fn fault() -> impl Strategy<Value = String> {
    let action = prop_oneof![
        Just("\"drop\"".to_owned()),
        Just("\"duplicate\"".to_owned()),
        (1..3_000_u32).prop_map(|ns| format!("\"delay\"\nby = \"{ns}ns\"")),
        (1..5_u32).prop_map(|after| format!("\"reorder\"\nafter = {after}")),
        (0..32_u32).prop_map(|bit| format!("\"corrupt\"\nfield = \"icrc\"\nbit = {bit}")),
        (0..96_u32).prop_map(|bit| format!("\"corrupt\"\nfield = \"bth\"\nbit = {bit}")),
    ];
    let conditions = prop_oneof![
        (0..40_u32, 1..4_u32).prop_map(|(psn, nth)| format!("kind = \"data\", psn = {psn}, transmission = {nth}")),
        (0..4_u32, 1..4_u32).prop_map(|(first, pass)| format!("psn = \"{first}..{}\", iteration = {pass}", first + 2)),
        (1..10_u32).prop_map(|nth| format!("kind = \"ack\", nth = {nth}")),
        (1..4_u32).prop_map(|nth| format!("kind = \"nak\", nth = {nth}")),
        (1..60_u32).prop_map(|nth| format!("nth = {nth}")),
        (1..200_u32, 1..20_u32).prop_map(|(share, times)| format!("probability = 0.{share:03}, times = {times}")),
    ];
    (any::<bool>(), action, conditions).prop_map(|(back, action, conditions)| {
        let (from, to) = if back { ("b", "a") } else { ("a", "b") };
        format!(
            "[[faults]]\noptional = true\nfrom = \"{from}\"\nto = \"{to}\"\naction = {action}\nmatch = {{ {conditions} }}\n"
        )
    })
}

fn posts() -> impl Strategy<Value = String> {
    (0..2_u32, any::<bool>(), any::<bool>(), 0..120_000_u32, 1..4_u32).prop_map(|(queue_pair, back, send, size, count)| {
        let (from, verb) = (if back { "b" } else { "a" }, if send { "send" } else { "write" });
        format!(
            "[[posts]]\nqueue_pair = \"q{queue_pair}\"\nfrom = \"{from}\"\nverb = \"{verb}\"\nsize = \"{size}B\"\ncount = {count}\n"
        )
    })
}

fn run(text: &str) -> (Outcome, Rules) {
    let plan = scenario::parse("script.toml", text).unwrap_or_else(|refused| panic!("{refused}")).plan;
    let mut wires = MemoryWires::default();
    let mut rules = Rules::default();
    let outcome = Engine::new(&plan, &mut wires).run(&mut rules, &mut |_| ControlFlow::Continue(()));
    // An imbalance of the books is an error.
    (outcome.unwrap_or_else(|error| panic!("{error}\n{text}")), rules)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    #[test]
    fn every_script_ends_with_every_octet_in_its_place(
        faults in prop::collection::vec(fault(), 1..8),
        posts in prop::collection::vec(posts(), 1..4),
        seed in any::<u32>(),
        egress_octets in prop_oneof![Just(9_000_u32), Just(60_000), Just(256_000)],
    ) {
        let head = format!(
            "[scenario]\nseed = {seed}\n\
             [nic]\nretransmit_timeout = \"50us\"\negress_buffer.total_buffer_size = \"{egress_octets}B\"\n\
             [nodes.a]\n[nodes.b]\n[[links]]\nends = [\"a\", \"b\"]\n\
             [[queue_pairs]]\nname = \"q0\"\nends = [\"a\", \"b\"]\n[[queue_pairs]]\nname = \"q1\"\nends = [\"a\", \"b\"]\n"
        );
        let text = format!("{head}{}{}", posts.concat(), faults.concat());
        let (outcome, rules) = run(&text);
        prop_assert!(rules.broken.is_empty(), "{:?}\n{}", rules.broken, text);
        prop_assert_eq!(&outcome.unfinished, &[], "{}", &text);
        prop_assert_eq!(&outcome.mismatches, &[], "{}", &text);
        let again = run(&text).0;
        prop_assert_eq!((again.end, again.counters), (outcome.end, outcome.counters), "{}", &text);
    }
}
