//! The scenarios of congestion under `netns/`, run on memory wires: what their comments say is so.

use rocemu::trace::EventKind;
use rocemu::{Run, Scenario};

fn scenario(name: &str) -> String {
    let file = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("netns").join(format!("{name}.toml"));
    std::fs::read_to_string(file).unwrap()
}

/// A scenario without what it expects, to be changed.
fn situation(name: &str) -> String {
    let text = scenario(name);
    text[..text.find("[[expect]]").unwrap_or(text.len())].to_owned()
}

fn run_text(text: &str) -> Run {
    let run = Scenario::from_toml(text).run_in_memory().unwrap_or_else(|error| panic!("{error}"));
    assert!(run.shortcomings().is_empty(), "{:?}", run.shortcomings());
    run
}

/// Runs a file as it stands; nothing may be lost, dropped or sent twice, and every mark has its CNP or is too close to one.
fn run_lossless(text: &str) -> Run {
    let run = run_text(text);
    let [mut marked, mut seen, mut sent] = [0; 3];
    for (name, node) in nodes(&run) {
        assert_eq!((node.rx_drops, node.num_retransmitted_pkts, node.num_nacks_sent), (0, 0, 0), "{name}");
        marked += node.pkts_ecn_marked;
        seen += node.num_ce_recvd;
        sent += node.num_cnp_sent;
    }
    let suppressed = count(&run, |kind| matches!(kind, EventKind::CnpSuppressed { .. })) as u64;
    assert_eq!((marked, seen), (seen, sent + suppressed));
    run
}

fn nodes(run: &Run) -> Vec<(String, &rocemu::trace::NodeCounters)> {
    run.plan().names().nodes.into_iter().map(|node| (node.name.clone(), run.counters(&node.name))).collect()
}

fn completions_us(run: &Run) -> Vec<f64> {
    let messages = u32::try_from(run.plan().message_count()).unwrap();
    (0..messages).map(|message| run.completion_time(message).unwrap().ps() as f64 / 1e6).collect()
}

fn count(run: &Run, pick: impl Fn(&EventKind) -> bool) -> usize {
    run.events().iter().filter(|event| pick(&event.kind)).count()
}

fn pauses(run: &Run) -> usize {
    count(run, |kind| matches!(kind, EventKind::PauseRequested { .. }))
}

fn rate_changes(run: &Run) -> usize {
    count(run, |kind| matches!(kind, EventKind::RateChanged { .. }))
}

/// Jain's index of fairness: 1 if all are equal.
fn fairness(values: &[f64]) -> f64 {
    let sum: f64 = values.iter().sum();
    sum * sum / (values.len() as f64 * values.iter().map(|value| value * value).sum::<f64>())
}

#[test]
fn an_incast_of_three_loses_nothing_and_is_fair() {
    let run = run_lossless(&scenario("incast-3to1"));
    assert!(pauses(&run) > 0 && rate_changes(&run) > 0);
    assert_eq!(run.counters("s1").pkts_ecn_marked, run.counters("n1").num_cnp_sent);
    assert!(fairness(&completions_us(&run)) > 0.999);
}

#[test]
fn an_incast_of_fifteen_is_saved_by_pauses() {
    let run = run_lossless(&scenario("incast-15to1"));
    assert_eq!(run.plan().message_count(), 15);
    for sender in 2..=16 {
        assert!(run.counters(&format!("n{sender}")).pfc_time_paused_ps > 100_000_000, "n{sender}");
    }
    let completions = completions_us(&run);
    // 15 x 256 frames of 83.08 ns are 319.0 us: the line to n1 is never idle.
    assert!(completions.iter().all(|us| (316.0..320.0).contains(us)), "{completions:?}");
}

#[test]
fn without_a_reaction_pauses_go_on_to_the_end() {
    let run = run_lossless(&scenario("ecn-no-reaction"));
    assert_eq!(rate_changes(&run), 0);
    assert!(run.counters("n1").num_cnp_sent > 0);
    let last = run.events().iter().rfind(|event| matches!(event.kind, EventKind::PauseRequested { .. })).unwrap();
    assert!(last.at.ps() > 200_000_000, "{last:?}");
    // 3 x 1,024 frames of 83.08 ns are 255.2 us.
    assert!(completions_us(&run).iter().all(|us| *us < 256.0));
}

#[test]
fn a_victim_waits_behind_a_paused_port() {
    let run = run_lossless(&scenario("victim-flow"));
    let text = situation("victim-flow");
    let posts: Vec<_> = text.match_indices("[[posts]]").map(|(at, _)| at).collect();
    let alone = run_lossless(&format!("{}{}", &text[..posts[0]], &text[posts[1]..]));
    assert_eq!(pauses(&alone), 0);
    let (with_others, alone) = (completions_us(&run)[3], completions_us(&alone)[0]);
    assert!((86.0..88.0).contains(&alone), "{alone}");
    assert!(with_others > 2.5 * alone, "{with_others} against {alone}");
    assert!(run.counters("victim").pfc_time_paused_ps > 100_000_000);
}

#[test]
fn a_class_of_its_own_does_not_wait_for_bulk() {
    let run = run_lossless(&scenario("two-classes"));
    let completions = completions_us(&run);
    // 0.728 us without others; a frame of 83 ns that has started is not interrupted, at each port on the way.
    assert!(completions[2..12].iter().all(|us| (0.728..0.9).contains(us)), "{completions:?}");
    assert!(completions[12..22].iter().all(|us| *us > 20.0), "{completions:?}");
    let of_class = |class: u8| {
        count(&run, |kind| matches!(kind, EventKind::PauseRequested { class: paused, .. } if paused.get() == class))
    };
    assert!(of_class(0) > 0 && of_class(2) == 0);
}

#[test]
fn equal_ways_are_not_equally_used_and_always_the_same() {
    let text = scenario("leaf-spine-permutation");
    let run = run_lossless(&text);
    let completions = completions_us(&run);
    let (alone, shared) = (completions.iter().filter(|us| **us < 14.0).count(), completions.len());
    assert!((1..shared).contains(&alone), "{completions:?}");
    assert_eq!(completions, completions_us(&run_lossless(&text)), "the same seed, the same ways");
    assert_ne!(
        completions,
        completions_us(&run_lossless(&situation("leaf-spine-permutation").replace("seed = 1", "seed = 2")))
    );
}

#[test]
fn a_slow_notification_point_makes_pauses_that_are_not_there_without() {
    let text = scenario("np-delay");
    let slow = run_lossless(&text);
    let quick = run_lossless(&situation("np-delay").replace("np_delay = \"55us\"", "np_delay = \"0us\""));
    assert!(pauses(&slow) > 0);
    assert_eq!(pauses(&quick), 0);
    let first_cut = |run: &Run| {
        run.events().iter().find(|event| matches!(event.kind, EventKind::RateChanged { .. })).unwrap().at.ps()
    };
    assert_eq!(first_cut(&slow) - first_cut(&quick), 55_000_000);
}

#[test]
fn sixty_four_nics_share_one_switch() {
    let run = run_lossless(
        "[topology]\nstar = { nics = 64 }\n[[posts]]\nfrom = \"n*\"\nshift = 1\nsize = \"16KiB\"\n\
         [[posts]]\nat = \"5us\"\nfrom = \"n*\"\nto = \"n1\"\nsize = \"4KiB\"\n",
    );
    assert_eq!(run.plan().node_count(), 65);
    assert_eq!(completions_us(&run).len(), 64 + 63);
    // Neighbours do not meet: four frames back to back, and an ACK, through one switch, all at the same instant.
    assert!(completions_us(&run)[..64].iter().all(|us| *us == completions_us(&run)[0]));
}
