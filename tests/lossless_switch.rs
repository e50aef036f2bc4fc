//! Frames that a switch drops although their class has PFC: what is said of them, and what becomes of the run.

mod common;

use common::{Ran, program, run, run_well};

/// An incast of two into n3. Packets of both arrive at the switch at 333,924 + k x 83,080 ps, k from 0, each charged
/// 4,136 B; from the first on one of them leaves in every 83,080 ps, those of n1 and n2 in turn, and an instant's departure
/// comes before its arrivals. So behind the arrivals of number k the switch holds k + 2 packets, half of them of each.
fn incast(switch: &str) -> String {
    format!(
        "[topology]\nstar = {{ nics = 3 }}\n[nic]\nenable_ecn = false\n[switch]\npfc_xoff_threshold = \"50KB\"\n\
         pfc_xon_threshold = \"20KB\"\n{switch}\n[[posts]]\nfrom = [\"n1\", \"n2\"]\nto = \"n3\"\nsize = \"512KiB\"\n"
    )
}

/// A port holds 54,500 B: 13 packets, 53,768 B. Behind number 24 both hold so many. At 25 one of n1 leaves, and the next
/// of n2 finds no room, 53,768 + 4,136 - 54,500 = 3,404 B; at 26 it is the other way round. The XOFFs of number 24, where
/// 12 x 4,136 = 49,632 B are below Xoff and 13 are not, come too late.
const TOO_LITTLE_HEADROOM: &str = "pfc_headroom = \"4500B\"";
const FIRST: [&str; 2] = [
    "LOSSLESS VIOLATION: s1:n2 dropped WRITE 25 of 4096 B for queue pair 8388609 at 2.410924 us, though class 0 has PFC: \
     its pool held 53768 B, 3404 B too many for it",
    "LOSSLESS VIOLATION: s1:n1 dropped WRITE 26 of 4096 B for queue pair 8388608 at 2.494004 us, though class 0 has PFC: \
     its pool held 53768 B, 3404 B too many for it",
];

/// The scenario in memory, and on veth pairs where this machine can make them: the same files.
fn on_all_wires(scenario: &str, options: &[&str]) -> Vec<Ran> {
    let in_memory = run(scenario, &[options, &["--wires", "memory"]].concat());
    let real = run(scenario, options);
    if real.code == Some(3) {
        println!("not on veth pairs: {}", real.stderr);
        return vec![in_memory];
    }
    assert!(in_memory.files() == real.files(), "wires change nothing");
    vec![in_memory, real]
}

#[test]
fn too_little_headroom_at_a_switch_fails_the_run_and_says_what_was_lost() {
    for ran in on_all_wires(&incast(TOO_LITTLE_HEADROOM), &[]) {
        ran.assert_code(1);
        let failed: Vec<_> = ran.stdout.lines().filter_map(|line| line.strip_prefix("FAILED: ")).collect();
        assert_eq!(failed[..2], FIRST, "{}", ran.stdout);
        let all = ran.counter("s1", "rx_lossless_drops");
        assert_eq!(failed[3], format!("LOSSLESS VIOLATION: {} more, {all} in all", all - 3));
        assert_eq!((ran.counter("s1", "rx_drops"), ran.counter("s1", "rx_drops_buffer")), (all, 0));
        let counters = ran.stdout.lines().find(|line| line.starts_with("  s1 ")).unwrap();
        assert!(counters.contains(&format!("LOSSLESS VIOLATIONS: {all}")), "{counters}");
        // Go-back-N repairs it all the same.
        assert!(ran.messages().iter().all(|message| message.status == "completed"));
    }
}

#[test]
fn lossless_drops_at_a_switch_can_be_allowed_in_both_places() {
    let scenario = incast(TOO_LITTLE_HEADROOM);
    for ran in on_all_wires(&scenario, &["--allow-lossless-drops"]) {
        ran.assert_code(0);
        assert!(ran.counter("s1", "rx_lossless_drops") > 0);
    }
    run_well(&format!("{scenario}[run]\nallow_lossless_drops = true\n"), &["--wires", "memory"]);
}

#[test]
fn a_drop_of_a_class_without_pfc_is_no_violation() {
    let scenario = incast(&format!("{TOO_LITTLE_HEADROOM}\npfc_enable_vector = 0"));
    let ran = run_well(&scenario, &["--wires", "memory"]);
    assert!(ran.counter("s1", "rx_drops") > 0);
    assert_eq!(ran.counter("s1", "rx_lossless_drops"), 0);
}

/// 21 packets fit 90,000 B, 86,856 B, and that is what is there behind number 19. At 20 one leaves, that of n1 takes its
/// room, and that of n2 lacks 86,856 + 4,136 - 90,000 = 992 B, although its port holds no more than ten.
#[test]
fn regression_a_full_shared_buffer_is_said_to_be_what_was_full() {
    let ran = run(&incast("pfc_headroom = \"30KB\"\ntotal_buffer_size = \"90KB\""), &["--wires", "memory", "--events"]);
    ran.assert_code(1);
    let first = "FAILED: LOSSLESS VIOLATION: s1:n2 dropped WRITE 20 of 4096 B for queue pair 8388609 at 1.995524 us, though \
                 class 0 has PFC: the switch's buffer held 86856 B, 992 B too many for it";
    assert_eq!(ran.stdout.lines().find(|line| line.starts_with("FAILED")), Some(first), "{}", ran.stdout);
    let all = ran.counter("s1", "rx_lossless_drops");
    assert_eq!((ran.counter("s1", "rx_drops"), ran.counter("s1", "rx_drops_buffer")), (0, all));
    let events = ran.events();
    let event = events.iter().find(|event| event.is("s1", "lossless_violated")).unwrap();
    assert_eq!((event.text("port"), event.text("reason")), ("s1:n2", "switch_buffer_full"));
    assert_eq!((event.number("occupancy_octets"), event.number("missing_octets")), (86_856, 992));
}

/// 400 Gb/s x 2 x 100 ns / 8 + 2 x 4,184 B = 18,368 B; with 1 us on one link 108,368 B there.
#[test]
fn the_check_names_headroom_and_need_of_every_link_of_a_switch() {
    let dir = common::scratch();
    let scenario = incast("pfc_headroom = \"9000B\"")
        .replace("[[posts]]", "[nodes.far]\n[[links]]\nends = [\"far\", \"s1\"]\ndelay = \"1us\"\n[[posts]]");
    std::fs::write(dir.path().join("scenario.toml"), scenario).unwrap();
    let output = program(["check", "scenario.toml"]).current_dir(dir.path()).output().unwrap();
    assert_eq!(output.status.code(), Some(0));
    let said = String::from_utf8(output.stderr).unwrap();
    for warning in [
        "warning: class 0 has 9000 B of headroom at `s1`, less than 108368 B for its link to `far`",
        "warning: class 0 has 9000 B of headroom at `s1`, less than 18368 B for its links to `n1`, `n2` and `n3`",
    ] {
        assert!(said.lines().any(|line| line == warning), "`{warning}` is not in:\n{said}");
    }
}
