//! The scenarios about pauses that people run: on real veth pairs where this machine can make them, and in memory.

use rocemu::trace::EventKind;
use rocemu::{Error, Run, Scenario};

/// The scenario on every kind of wires that there is.
fn runs(name: &str) -> Vec<Run> {
    let scenario = Scenario::from_file(format!("netns/{name}.toml")).unwrap();
    let in_memory = scenario.run_in_memory().unwrap_or_else(|error| panic!("{name}: {error}"));
    match scenario.run() {
        Ok(run) => {
            assert_eq!(run.events(), in_memory.events(), "{name}: wires change nothing");
            vec![in_memory, run]
        }
        Err(error @ Error::Scenario(_)) => panic!("{name}: {error}"),
        Err(error) => {
            println!("{name}: not on veth pairs: {error}");
            vec![in_memory]
        }
    }
}

/// The lossless drops of a run, which its scenario allows.
fn violations(run: &Run) -> Vec<String> {
    run.assert_all_well();
    run.outcome().violations.lines(&run.plan().names())
}

#[test]
fn too_little_headroom_is_a_violation() {
    for run in runs("headroom-too-small") {
        let b = run.counters("b");
        assert_eq!((b.rx_drops, b.rx_lossless_drops, b.pfcxoff_tx, b.num_nacks_sent), (4, 4, 4, 4));
        assert_eq!(run.counters("a").num_rtx, 4);
        let violations = violations(&run);
        let first = "LOSSLESS VIOLATION: b:a dropped WRITE 117 of 4096 B for queue pair 2 at 10.054284 us, though class 0 \
                     has PFC: its pool held 99264 B, 3400 B too many for it";
        // Three of them in words, and how many there are.
        assert_eq!((violations.len(), violations[0].as_str()), (4, first));
        assert_eq!(run.outcome().compared.get(), 1 << 20, "go-back-N repairs it");
    }
}

#[test]
fn the_headroom_of_the_guidance_is_too_little_for_a_pause_that_waits() {
    for run in runs("two-way-headroom") {
        assert_eq!(run.counters("b").rx_lossless_drops, 1);
        let at = |pick: fn(&EventKind) -> bool| {
            run.events().iter().find(|event| pick(&event.kind)).map(|event| event.at.ps()).unwrap()
        };
        assert_eq!(at(|kind| matches!(kind, EventKind::PauseRequested { .. })), 10_318_644);
        // Waits for 68,545 ps, then 1,680 on the line and 100,000 on the way.
        assert_eq!(at(|kind| matches!(kind, EventKind::Paused { .. })), 10_318_644 + 68_545 + 101_680);
        assert_eq!(at(|kind| matches!(kind, EventKind::LosslessViolated { .. })), 10_653_484);
    }
}

#[test]
fn one_way_the_guidance_is_enough() {
    let text = std::fs::read_to_string("netns/two-way-headroom.toml").unwrap();
    let (one_way, _) = text.rsplit_once("[[posts]]").unwrap();
    let run = Scenario::from_toml(one_way).run_in_memory().unwrap();
    run.assert_all_well();
    assert_eq!(run.counters("b").pfcxoff_tx, 4);
}

#[test]
fn a_neighbour_stops_with_the_class_that_is_paused() {
    for run in runs("noisy-neighbour") {
        run.assert_all_well();
        let classes = run.events().iter().filter_map(|event| match event.kind {
            EventKind::Paused { class, .. } => Some(class.get()),
            _ => None,
        });
        assert_eq!(classes.collect::<Vec<_>>(), [0; 8]);
        assert_eq!(run.counters("a").pfc_time_paused_ps, 8 * 41_992_400);
    }
}
