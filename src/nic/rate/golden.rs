//! The reference model's traces, step for step: rates to 6 decimals, estimates to 9.

use super::*;

/// Name, trace, and how many rows it has.
const LOOPS: [(&str, &str, usize); 5] = [
    ("s1", include_str!("../../../tests/data/congestion/scala_s1_single_cnp.csv"), 8),
    ("s2", include_str!("../../../tests/data/congestion/scala_s2_two_hot_intervals.csv"), 28),
    ("s3", include_str!("../../../tests/data/congestion/scala_s3_persistent_half_marked.csv"), 41),
    ("s4", include_str!("../../../tests/data/congestion/scala_s4_ai_reduce.csv"), 26),
    ("s5", include_str!("../../../tests/data/congestion/scala_s5_floor.csv"), 40),
];

/// The rows of a trace under its head, of which there must be so many: a trace cut short would show nothing.
fn rows(csv: &str, count: usize) -> impl Iterator<Item = Vec<&str>> {
    assert_eq!(csv.lines().count(), 1 + count);
    csv.lines().skip(1).map(|line| line.split(',').collect())
}

/// Microseconds with up to three decimals.
fn instant(text: &str) -> Instant {
    let (whole, decimals) = text.split_once('.').unwrap_or((text, ""));
    let ns: u64 = format!("{whole}{decimals:0<3}").parse().unwrap();
    Instant::from_ps(ns * 1_000)
}

fn gbps(value: f64) -> String {
    format!("{value:.6}")
}

fn nine(value: f64) -> String {
    format!("{value:.9}")
}

/// Feeds the packets and CNPs that came since the last row, then runs the half of the row.
fn replay_loop((name, csv, count): (&str, &str, usize)) {
    let mut it = EcnLoop::new(&EcnLoopConfig::default(), Rate::from_gbps(400));
    let mut counted = (0, 0);
    for row in rows(csv, count) {
        let [run, t_us, half, packets, cnps, estimate, action, count, current, target, congested] = row[..] else {
            panic!("{name}: {row:?}");
        };
        let now = instant(t_us);
        let totals: (u64, u64) = (packets.parse().unwrap(), cnps.parse().unwrap());
        (counted.0..totals.0).for_each(|_| it.on_data_sent(now));
        // The first CNP runs the first half; from then on the loop knows itself which one is next.
        let own_half = it.next_half().unwrap_or("reduction");
        assert_eq!(own_half, half, "{name} {run}");
        let cause = if run == "0" {
            assert_eq!(totals.1, 1, "{name}: the first CNP runs the first half");
            it.on_cnp(now)
        } else {
            (counted.1..totals.1).for_each(|_| assert_eq!(it.on_cnp(now), None, "{name} {run}"));
            assert_eq!(it.next_timer(), Some(now), "{name} {run}");
            it.on_timer(now)
        };
        counted = if own_half == "reduction" { (0, 0) } else { totals };
        let own_action = match cause {
            None if own_half == "reduction" => "hold",
            None => "skip",
            Some(RateCause::Cut) => "cut",
            Some(RateCause::AdditiveReduction) => "ai-reduce",
            Some(RateCause::FastRecovery) => "fr-increase",
            Some(RateCause::AdditiveIncrease) => "ai-increase",
            Some(RateCause::HyperIncrease) => "hyper",
        };
        let end = if it.is_congested() { "" } else { "+end" };
        assert_eq!(format!("{own_action}{end}"), action, "{name} {run}");
        let state = [nine(it.estimate()), it.recoveries().to_string(), gbps(it.current()), gbps(it.target())];
        assert_eq!(state, [estimate, count, current, target], "{name} {run}");
        assert_eq!(it.is_congested(), congested == "1", "{name} {run}");
    }
}

#[test]
fn a_single_cnp() {
    replay_loop(LOOPS[0]);
}

#[test]
fn two_hot_intervals() {
    replay_loop(LOOPS[1]);
}

#[test]
fn half_of_the_packets_marked_for_ever() {
    replay_loop(LOOPS[2]);
}

#[test]
fn reductions_inside_additive_increase() {
    replay_loop(LOOPS[3]);
}

#[test]
fn the_floor() {
    replay_loop(LOOPS[4]);
}

fn replay_paper(csv: &str, count: usize, line: Rate) {
    let mut it = DcqcnPaper::new(&DcqcnPaperConfig::default(), line);
    for row in rows(csv, count) {
        let [t_us, event, alpha, current, target, timer_stage, byte_stage] = row[..] else { panic!("{row:?}") };
        let now = instant(t_us);
        let (name, cause) = event.split_once(':').unwrap_or((event, ""));
        assert!(it.next_decay().is_none_or(|at| at >= now), "{t_us}: every decay before it had its row");
        match name {
            "cnp" => assert_eq!(it.on_cnp(now), Some(RateCause::Cut)),
            "timer" => {
                assert_eq!(it.next_timer(), Some(now), "{t_us}");
                assert_eq!(it.on_timer(now).map(spelled), Some(cause), "{t_us}");
            }
            "alpha-decay" => assert_eq!(it.next_decay(), Some(now), "{t_us}"),
            "start" => {}
            other => panic!("{other}"),
        }
        // A CNP restarts alpha's timer, so that looking at it afterwards makes no tick.
        let state = [nine(it.alpha_at(now)), gbps(it.current()), gbps(it.target())];
        assert_eq!(state, [alpha, current, target], "{t_us} {event}");
        let stages = (timer_stage.parse().unwrap(), byte_stage.parse().unwrap());
        assert_eq!(it.stages(), stages, "{t_us} {event}");
    }
}

fn spelled(cause: RateCause) -> &'static str {
    match cause {
        RateCause::FastRecovery => "fast-recovery",
        RateCause::AdditiveIncrease => "additive",
        RateCause::HyperIncrease => "hyper",
        RateCause::Cut => "cut",
        RateCause::AdditiveReduction => "additive-reduction",
    }
}

#[test]
fn dcqcn_of_the_paper_at_40_gbps() {
    replay_paper(include_str!("../../../tests/data/congestion/dcqcn_paper_p1_40g.csv"), 54, Rate::from_gbps(40));
}

#[test]
fn dcqcn_of_the_paper_at_400_gbps() {
    replay_paper(include_str!("../../../tests/data/congestion/dcqcn_paper_p2_400g.csv"), 54, Rate::from_gbps(400));
}

#[test]
fn dcqcn_as_nvidia_parameterises_it() {
    let csv = include_str!("../../../tests/data/congestion/dcqcn_mlx_m1_defaults.csv");
    let mut it = DcqcnNvidia::new(&DcqcnNvidiaConfig::default(), Rate::from_gbps(400));
    for row in rows(csv, 16) {
        let [t_us, event, alpha, current, target, stage] = row[..] else { panic!("{row:?}") };
        let now = instant(t_us);
        let (name, cause) = event.split_once(':').unwrap_or((event, "cut"));
        let own_alpha = match name {
            // It is the first event of its instant: alpha's tick is still to come.
            "start" | "cnp" => it.alpha_before(now),
            _ => it.alpha_at(now),
        };
        match name {
            "start" => {}
            "cnp" => assert_eq!(it.on_cnp(now), None),
            _ => {
                assert_eq!(it.next_timer(), Some(now), "{t_us}");
                assert_eq!(it.on_timer(now).map(spelled), Some(cause), "{t_us}");
            }
        }
        let state = [nine(own_alpha), gbps(it.current()), gbps(it.target()), it.stage().to_string()];
        assert_eq!(state, [alpha, current, target, stage], "{t_us} {event}");
    }
}
