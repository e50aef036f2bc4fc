//! Pauses that still run when a run ends: every figure counts them up to there, and no further.

mod common;

use common::{Ran, run, run_well};

/// Two NICs, `conditions` of the run or the NICs, one WRITE of two packets; XOFF for class 0 arrives at a at `xoff`.
///
/// a generates and fetches for 150,844 ps; packet 0 is on its line until 233,924 ps and packet 1 until 317,004.
fn paused(conditions: &str, xoff: &str, quanta: u32) -> String {
    common::pair(&format!(
        "{conditions}\n[[posts]]\nfrom = \"a\"\nto = \"b\"\nsize = \"8KiB\"\n[[faults]]\nfrom = \"b\"\nto = \"a\"\n\
         action = \"inject\"\nat = \"{xoff}\"\nframe = {{ kind = \"xoff\", quanta = {quanta} }}\n"
    ))
}

/// Every figure of how long class 0 of `node` was paused is `ps`, and `share` of the run in words.
fn assert_paused(ran: &Ran, node: &str, port: usize, ps: u64, words: &str) {
    let summary = ran.summary();
    let nodes = summary["nodes"].as_array().unwrap();
    let of_node = nodes.iter().find(|one| one["node"] == node).unwrap();
    assert_eq!(of_node["counters"]["pfc_time_paused_ps"], ps);
    assert_eq!(of_node["ports"][port]["paused_ps"]["0"], ps);
    let said = ran.stdout.lines().find(|line| line.contains("paused by its peer")).unwrap_or_default();
    assert!(said.ends_with(words), "`{said}` is not `{words}`");
    if let Some(duration) = of_node["hw_counters"].get("rx_prio0_pause_duration") {
        assert_eq!(*duration, (ps + 500_000) / 1_000_000);
    }
}

/// Time of the only queue pair by its cause; it adds up to `end`.
fn times(ran: &Ran, end: u64) -> Vec<(String, u64)> {
    let summary = ran.summary();
    assert_eq!(summary["end_ps"], end);
    let [queue_pair] = &summary["queue_pairs"].as_array().unwrap()[..] else { panic!("one queue pair") };
    let times = queue_pair["time_ps"].as_object().unwrap();
    let times: Vec<_> = times.iter().map(|(cause, ps)| (cause.clone(), ps.as_u64().unwrap())).collect();
    assert_eq!(times.iter().map(|(_, ps)| ps).sum::<u64>(), end);
    times.into_iter().filter(|(_, ps)| *ps > 0).collect()
}

fn causes(times: &[(&str, u64)]) -> Vec<(String, u64)> {
    times.iter().map(|(cause, ps)| ((*cause).to_owned(), *ps)).collect()
}

#[test]
fn a_run_cut_off_in_a_pause_counts_it_up_to_there() {
    // The XOFF finds packet 0 on the line; packet 1 is queued from then on, as it would be until 84 us.
    for options in [&["--wires", "memory", "--until", "2us"][..], &["--wires", "memory"]] {
        let until = if options.len() > 2 { "" } else { "[run]\nuntil = \"2us\"" };
        let ran = run(&paused(until, "200ns", 65_535), options);
        ran.assert_code(1);
        assert_paused(&ran, "a", 0, 1_800_000, "paused by its peer for 1.8 us, 90.0 % of the run");
        let mut expected =
            causes(&[("pcie_read", 150_844), ("sending", 83_080), ("pfc_pause", 2_000_000 - 150_844 - 83_080)]);
        expected.sort();
        let mut found = times(&ran, 2_000_000);
        found.sort();
        assert_eq!(found, expected);
        assert_eq!(ran.summary()["nodes"][0]["counters"]["pfcxoff_rx"], 1);
    }
}

#[test]
fn a_pause_that_is_over_in_the_last_instant_has_ended() {
    // 1,000 x 512 bits at 400 Gb/s and 100 ns: 1,380,000 ps.
    let ran = run(&paused("", "200ns", 1_000), &["--wires", "memory", "--until", "1580ns", "--events"]);
    assert_paused(&ran, "a", 0, 1_380_000, "paused by its peer for 1.38 us, 87.3 % of the run");
    let ends: Vec<_> =
        ["resumed", "pause_cut_off"].map(|name| ran.events().iter().filter(|e| e.is("a", name)).count()).into();
    assert_eq!(ends, [1, 0]);
}

/// Without a fault the second ACK, 417,004 + 2,520 + 100,000, completes the message, and the run ends.
const END: u64 = 519_524;

#[test]
fn a_pause_that_outlives_the_last_message_counts_up_to_its_completion() {
    let ran = run_well(&paused("", "400ns", 65_535), &["--wires", "memory"]);
    assert_paused(&ran, "a", 0, END - 400_000, "paused by its peer for 119.524 ns, 23.0 % of the run");
    let found = times(&ran, END);
    assert!(found.iter().all(|(cause, _)| cause != "pfc_pause"), "nothing waited for it: {found:?}");
}

#[test]
fn regression_frames_that_arrive_behind_the_end_do_not_lengthen_a_pause() {
    // Every packet is acknowledged. The first ACK is late by 5 us, the second completes the message at 519,524 ps and is
    // the end of the run, although the first is still on its way: it arrives at 333,924 + 102,520 + 5,000,000.
    let late = "[nic]\nack_coalescing_enabled = false\n[[faults]]\nfrom = \"b\"\nto = \"a\"\n\
                match = { kind = \"ack\", nth = 1 }\naction = \"delay\"\nby = \"5us\"";
    // Cut off, and ended in between: 400,000 + 1,380,000.
    for quanta in [65_535, 1_000] {
        let ran = run_well(&paused(late, "400ns", quanta), &["--wires", "memory", "--events"]);
        assert_eq!(ran.events().last().map(|event| event.t_ps()), Some(5_436_444));
        assert_paused(&ran, "a", 0, END - 400_000, "paused by its peer for 119.524 ns, 23.0 % of the run");
        times(&ran, END);
    }
}

#[test]
fn a_switch_counts_what_its_peer_held_back_in_the_same_way() {
    // b holds the switch back from 350 ns on; packet 0 is on the switch's line from 333,924 to 417,004.
    let star = "[topology]\nstar = { nics = 2 }\n[[posts]]\nfrom = \"n1\"\nto = \"n2\"\nsize = \"8KiB\"\n[[faults]]\n\
                from = \"n2\"\nto = \"s1\"\naction = \"inject\"\nat = \"350ns\"\nframe = { kind = \"xoff\" }\n";
    let ran = run(star, &["--wires", "memory", "--until", "2us"]);
    ran.assert_code(1);
    assert_paused(&ran, "s1", 1, 1_650_000, "class 0 of s1:n2 paused by its peer for 1.65 us, 82.5 % of the run");
    // To n1 that is no pause: it has sent everything.
    let found = times(&ran, 2_000_000);
    assert!(found.contains(&("waiting_for_ack".to_owned(), 2_000_000 - 317_004)), "{found:?}");
}
