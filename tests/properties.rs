//! Random scenarios: whatever the rates, pools, sizes and settings, all arrives, the books balance, and the same plan
//! gives the same events.

use std::fmt::Write as _;

use proptest::prelude::*;
use proptest::sample::select;
use rocemu::{Run, Scenario};

/// A scenario file that is valid by construction.
fn scenarios() -> impl Strategy<Value = String> {
    let queue_pairs = prop::collection::vec((0..1_u32 << 24, 0..1_u32 << 24), 1..=4);
    let posts = prop::collection::vec(
        (
            any::<prop::sample::Index>(),
            select(&["a", "b"][..]),
            select(&["write", "send"][..]),
            prop_oneof![0..=20_u64, 4_000..=4_200_u64, 0..=200_000_u64],
            1..=3_u32,
            0..50_000_u64,
            0..5_000_u64,
        ),
        1..=6,
    );
    (nics(), nics(), 0..20_000_u64, queue_pairs, posts).prop_map(|(a, b, delay, queue_pairs, posts)| {
        let mut text =
            format!("[nodes.a.nic]\n{a}[nodes.b.nic]\n{b}[[links]]\nends = [\"a\", \"b\"]\ndelay = \"{delay}ns\"\n");
        for (n, (first, second)) in queue_pairs.iter().enumerate() {
            let ends = "ends = [\"a\", \"b\"]";
            write!(text, "[[queue_pairs]]\nname = \"q{n}\"\n{ends}\ninitial_psn = [{first}, {second}]\n").unwrap();
        }
        for (queue_pair, from, verb, size, count, at, every) in posts {
            let queue_pair = queue_pair.index(queue_pairs.len());
            write!(
                text,
                "[[posts]]\nqueue_pair = \"q{queue_pair}\"\nfrom = \"{from}\"\nverb = \"{verb}\"\nsize = \"{size}B\"\n\
                 count = {count}\nat = \"{at}ns\"\nevery = \"{every}ns\"\n"
            )
            .unwrap();
        }
        text
    })
}

/// What stands in a `[nodes.x.nic]` table.
fn nics() -> impl Strategy<Value = String> {
    let rate = select(&["10Gbps", "25Gbps", "40Gbps", "100Gbps", "400Gbps", "800Gbps"][..]);
    let lane = select(&["2Gbps", "7.88Gbps", "15.76Gbps", "31.52Gbps", "63.04Gbps"][..]);
    let egress = prop_oneof![5_000..=20_000_u64, 5_000..=256_000_u64];
    let acks = (any::<bool>(), 0..40_u32, select(&["0ns", "100ns", "3us", "1ms"][..]));
    (rate, lane, 1..=16_u8, prop_oneof![200..=4_096_u64, Just(4_096)], egress, acks, any::<bool>()).prop_map(
        |(rate, lane, lanes, mss, egress, (coalescing, threshold, delay), ecn)| {
            format!(
                "data_rate = \"{rate}\"\nmss = \"{mss}B\"\nack_coalescing_enabled = {coalescing}\n\
                 ack_threshold = {threshold}\nack_delay = \"{delay}\"\nenable_ecn = {ecn}\n\
                 pcie.lane_bps = \"{lane}\"\npcie.lane_count = {lanes}\n\
                 egress_buffer.total_buffer_size = \"{egress}B\"\n"
            )
        },
    )
}

/// Everything that must hold of any run.
fn check(text: &str, run: &Run) -> Result<(), TestCaseError> {
    // That the run came to an end at all means that its ledger balances.
    let outcome = run.outcome();
    prop_assert_eq!(&outcome.mismatches, &[], "{}", text);
    prop_assert_eq!(&outcome.unfinished, &[], "{}", text);
    prop_assert!(run.shortcomings().is_empty(), "{:?}\n{}", run.shortcomings(), text);
    let octets: u64 = run.plan().posts.iter().map(|post| post.size.get() * u64::from(post.count)).sum();
    prop_assert_eq!(outcome.compared.get(), octets, "{}", text);
    prop_assert_eq!(outcome.foreign.count, 0);
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, max_shrink_iters: 400, ..ProptestConfig::default() })]

    #[test]
    fn everything_arrives_and_the_same_plan_gives_the_same_events(text in scenarios()) {
        let scenario = Scenario::from_toml(text.as_str());
        let run = scenario.run_in_memory().map_err(|error| TestCaseError::fail(format!("{error}\n{text}")))?;
        check(&text, &run)?;
        let again = scenario.run_in_memory().map_err(|error| TestCaseError::fail(error.to_string()))?;
        prop_assert!(run.events() == again.events(), "two runs differ:\n{}", text);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 8, max_shrink_iters: 20, ..ProptestConfig::default() })]

    #[test]
    fn veth_pairs_change_nothing(text in scenarios()) {
        let scenario = Scenario::from_toml(text.as_str());
        let veth = scenario.run().map_err(|error| TestCaseError::fail(format!("{error}\n{text}")))?;
        check(&text, &veth)?;
        let memory = scenario.run_in_memory().map_err(|error| TestCaseError::fail(error.to_string()))?;
        prop_assert!(veth.events() == memory.events(), "veth and memory differ:\n{}", text);
    }
}
