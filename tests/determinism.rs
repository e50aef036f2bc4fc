//! The same scenario gives the same files, to the last octet: twice, on any wires, for any user, in any company.

mod common;

use std::thread;

use common::{assert_same_files, is_root, mixed, one_write, run_as_ordinary_user, run_well, skip};

const EVERYTHING: &[&str] = &["--events", "--queues"];

#[test]
fn two_runs_leave_the_same_octets() {
    for scenario in [one_write("1MiB"), mixed()] {
        let [one, other] = [(), ()].map(|()| run_well(&scenario, EVERYTHING).files());
        let names: Vec<_> = one.keys().map(String::as_str).collect();
        let expected = "capture.pcapng events.jsonl ladder.txt messages.csv queues.csv rates.csv summary.json";
        assert_eq!(names.join(" "), expected);
        assert!(one.values().all(|octets| !octets.is_empty()));
        assert_same_files("the second run", &one, &other);
    }
}

#[test]
fn veth_and_memory_leave_the_same_octets() {
    for scenario in [one_write("1MiB"), mixed()] {
        let veth = run_well(&scenario, EVERYTHING).files();
        let memory = run_well(&scenario, &["--events", "--queues", "--wires", "memory"]).files();
        assert_same_files("in memory", &veth, &memory);
    }
}

#[test]
fn namespaces_with_names_change_nothing() {
    if !is_root() {
        skip("needs root");
        return;
    }
    let plain = run_well(&mixed(), EVERYTHING).files();
    let named = run_well(&mixed(), &["--events", "--queues", "--named"]);
    let announced = named.stderr.lines().filter(|line| line.starts_with("namespace rocemu-")).count();
    assert_eq!(announced, 2, "{}", named.stderr);
    assert_same_files("with names", &plain, &named.files());
}

#[test]
fn an_ordinary_user_gets_the_same_octets() {
    let Some(ordinary) = run_as_ordinary_user(&mixed(), EVERYTHING) else { return };
    ordinary.assert_code(0);
    assert_same_files("as an ordinary user", &run_well(&mixed(), EVERYTHING).files(), &ordinary.files());
}

#[test]
fn runs_side_by_side_do_not_disturb_each_other() {
    let alone = run_well(&mixed(), EVERYTHING).files();
    let options: &[&str] = if is_root() { &["--events", "--queues", "--named"] } else { EVERYTHING };
    thread::scope(|scope| {
        let runs = [(); 6].map(|()| scope.spawn(|| run_well(&mixed(), options).files()));
        for run in runs {
            assert_same_files("side by side", &alone, &run.join().expect("all is well"));
        }
    });
}

#[test]
fn what_is_kept_does_not_change_what_happens() {
    let full = run_well(&mixed(), EVERYTHING).files();
    for options in [
        &["--events", "--queues", "--capture", "headers"][..],
        &["--events", "--queues", "--capture", "off"],
        &["--events", "--queues", "--capture-ports", "b:a"],
        &["--events", "--queues", "--quiet", "--ladder"],
    ] {
        let kept = run_well(&mixed(), options).files();
        for name in ["events.jsonl", "messages.csv", "queues.csv", "rates.csv", "summary.json"] {
            assert!(kept[name] == full[name], "{name} with {options:?}");
        }
    }
}

/// No fault and no marking draws on the random streams here, so another seed only shows in the summary.
#[test]
fn a_run_without_chance_does_not_depend_on_the_seed() {
    let mut one = run_well(&mixed(), EVERYTHING).files();
    let mut other = run_well(&mixed(), &["--events", "--queues", "--seed", "8"]).files();
    assert!(one.remove("summary.json") != other.remove("summary.json"));
    assert_same_files("with another seed", &one, &other);
}
