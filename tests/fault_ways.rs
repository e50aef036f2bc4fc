//! Faults on links behind switches: what they hit, when, and what is refused because it cannot come by.

mod common;
mod refusals;

use rocemu::engine::Shortcoming;
use rocemu::trace::{EventKind, PacketKind};
use rocemu::{Run, Scenario};

use refusals::{assert_refused, parsed};

/// Around a switch: message 0 goes from n3 to n4 and message 1 from n2 to n1, three packets each, by queue pairs that
/// have the number 2 at every end. Links are those of the defaults: 400 Gb/s, 100 ns.
const STAR: &str = r#"
[topology]
star = { nics = 4 }
[nic]
retransmit_timeout = "10us"
[[queue_pairs]]
name = "q0"
ends = ["n3", "n4"]
[[queue_pairs]]
name = "q1"
ends = ["n2", "n1"]
[[posts]]
queue_pair = "q0"
from = "n3"
size = "12KiB"
[[posts]]
queue_pair = "q1"
from = "n2"
size = "12KiB"
"#;

/// Two leaves with a NIC each, and two spines between them; one message.
const FABRIC: &str = r#"
[topology]
leaf_spine = { leaves = 2, spines = 2, nics_per_leaf = 1 }
[[posts]]
from = "n1"
to = "n2"
size = "12KiB"
"#;

fn fault(from: &str, to: &str, rest: &str) -> String {
    format!("[[faults]]\nfrom = \"{from}\"\nto = \"{to}\"\n{rest}\n")
}

fn run(text: &str) -> Run {
    Scenario::from_toml(text).run_in_memory().unwrap_or_else(|error| panic!("{error}"))
}

/// When events of a kind happened, in ps.
fn times(run: &Run, pick: impl Fn(&EventKind) -> bool) -> Vec<u64> {
    run.events().iter().filter(|event| pick(&event.kind)).map(|event| event.at.ps()).collect()
}

fn fired(run: &Run) -> Vec<u64> {
    run.outcome().faults.iter().map(|report| report.fired).collect()
}

fn completed(run: &Run) -> [u64; 2] {
    [0, 1].map(|message| run.completion_time(message).unwrap().ps())
}

/// Without a fault: packets leave the NIC at 233,924, 317,004 and 400,084 ps (80,000 of generation, 1,555 and 69,289 of
/// PCIe, 83,080 each on the line), the switch 183,080 later, and are there 100,000 later; the ACK of the last takes
/// 2 x (2,520 + 100,000).
const UNHARMED: u64 = 400_084 + 183_080 + 100_000 + 205_040;

#[test]
fn the_first_transmission_of_one_packet_of_one_message_is_lost_behind_the_switch() {
    let lost = "name = \"the loss\"\nmatch = { message = 1, packet = 1, transmission = 1 }\naction = \"drop\"";
    for conditions in [lost, &lost.replace("message = 1, packet = 1", "queue_pair = \"q1\", psn = 1")] {
        let run = run(&format!("{STAR}{}", fault("s1", "n1", conditions)));
        run.assert_all_well();
        // Packet 1 leaves the switch at 317,004 + 183,080 and is lost there; packet 2 is at n1 at 683,164 and draws the
        // NAK, which is at n2 205,040 later. 233,924 from there packet 1 is sent again, and packet 2 behind it, and all
        // takes as long as it did.
        let rewound = 683_164 + 205_040;
        assert_eq!(times(&run, |kind| matches!(kind, EventKind::NakMade { .. })), [683_164]);
        assert_eq!(times(&run, |kind| matches!(kind, EventKind::Rewound { .. })), [rewound]);
        let again = rewound + 233_924;
        assert_eq!(completed(&run), [UNHARMED, again + 83_080 + 183_080 + 100_000 + 205_040]);
        let [sender, receiver] = ["n2", "n1"].map(|node| run.counters(node));
        assert_eq!((sender.num_rtx, sender.num_rto, sender.num_retransmitted_pkts), (1, 0, 2));
        assert_eq!((receiver.num_nacks_sent, receiver.num_rx_drops_after_nak), (1, 1));
        // What the switch passes on is no retransmission of its own.
        assert_eq!(run.counters("s1").num_retransmitted_pkts, 0);

        let ladder = run.ladder();
        let line = |time: &str| {
            let line = ladder.lines().find(|line| line.trim_start().starts_with(time));
            line.unwrap_or_else(|| panic!("no line at {time}:\n{ladder}"))
                .split_whitespace()
                .collect::<Vec<_>>()
                .join(" ")
        };
        assert_eq!(line("500.084"), "500.084 n1 | x----------WRITE 1--| s1 2 dropped by the loss");
        // 888,204 + 233,924, and 183,080 later behind the switch.
        assert_eq!(line("1122.128"), "1122.128 n2 |--WRITE 1-------------->| s1 2 retransmission 1");
        assert_eq!(line("1305.208"), "1305.208 n1 |<--------------WRITE 1--| s1 2 retransmission 1");
    }
}

#[test]
fn a_capture_behind_the_switch_says_what_is_sent_again_and_what_is_lost() {
    let lost = "name = \"the loss\"\nmatch = { message = 1, packet = 1, transmission = 1 }\naction = \"drop\"";
    let options = ["--wires", "memory", "--capture-ports", "s1:n1"];
    let ran = common::run_well(&format!("{STAR}{}", fault("s1", "n1", lost)), &options);
    let capture = std::fs::read(ran.path("capture.pcapng")).unwrap();
    let said = |words: &str| capture.windows(words.len()).filter(|window| *window == words.as_bytes()).count();
    assert_eq!((said("dropped by the loss"), said("retransmission 1")), (1, 2));
    assert_eq!((ran.counter("n2", "num_retransmitted_pkts"), ran.counter("s1", "num_retransmitted_pkts")), (2, 0));
}

#[test]
fn a_retransmission_lost_behind_the_switch_is_left_to_the_timer() {
    let lost = "match = { message = 1, packet = 1, transmission = [1, 2] }\naction = \"drop\"";
    let run = run(&format!("{STAR}{}", fault("s1", "n1", lost)));
    run.assert_all_well();
    assert_eq!(fired(&run), [2]);
    // The window is empty after the rewind at 888,204; the packet gets its PSN again 80,000 + 1,555 + 69,289 later, and
    // 10 us from there nothing has come: no second NAK is made for one gap.
    let expired = 888_204 + 150_844 + 10_000_000;
    assert_eq!(times(&run, |kind| matches!(kind, EventKind::TransportTimerExpired { .. })), [expired]);
    assert_eq!(run.counters("n1").num_nacks_sent, 1);
    assert_eq!(completed(&run)[1], expired + 233_924 + 83_080 + 183_080 + 100_000 + 205_040);
    assert!(run.ladder().contains("retransmission 1, dropped by fault 1"), "{}", run.ladder());
    assert!(run.ladder().contains("retransmission 2"), "{}", run.ladder());
}

#[test]
fn a_queue_pair_is_not_another_of_the_same_number_at_another_node() {
    // n1 acknowledges both q0 and q1, and both go to queue pair 2 of somebody.
    let both = STAR.replace("ends = [\"n3\", \"n4\"]", "ends = [\"n3\", \"n1\"]");
    let lost = "match = { kind = \"ack\", queue_pair = \"q0\", times = 1 }\naction = \"drop\"";
    let run = run(&format!("{both}{}", fault("n1", "s1", lost)));
    run.assert_all_well();
    assert_eq!(["n2", "n3"].map(|node| run.counters(node).num_rto), [0, 1]);
    let acks = run.events().iter().filter_map(|event| match event.kind {
        EventKind::FrameSent { packet, ref effects, .. } if packet.kind == PacketKind::Ack && event.node.0 == 0 => {
            Some((packet.dest_qpn.get(), effects.len()))
        }
        _ => None,
    });
    let acks: Vec<_> = acks.collect();
    assert!(acks.iter().all(|(qpn, _)| *qpn == 2), "both are queue pair 2: {acks:?}");
    assert_eq!(acks.iter().filter(|(_, effects)| *effects > 0).count(), 1);
}

#[test]
fn acknowledgements_can_be_named_on_every_link_of_their_way() {
    for (from, to, on) in [("n1", "s1", "q1"), ("s1", "n2", "q1"), ("n4", "s1", "q0"), ("s1", "n3", "q0")] {
        let conditions = format!("match = {{ kind = \"ack\", queue_pair = \"{on}\", times = 1 }}\naction = \"drop\"");
        let run = run(&format!("{STAR}{}", fault(from, to, &conditions)));
        run.assert_all_well();
        let timeouts = [("q0", "n3"), ("q1", "n2")].map(|(_, node)| run.counters(node).num_rto);
        assert_eq!(timeouts, if on == "q0" { [1, 0] } else { [0, 1] }, "{from} to {to}");
    }
}

#[test]
fn a_pass_over_a_message_is_the_senders_wherever_it_is_asked_for() {
    // Packet 1 is lost before the switch. What the switch sends then, 0 and 2, belongs to the first pass, although it
    // jumps; 1 and 2 to the second. A DSCP that is there already changes nothing.
    let mark = |pass| format!("match = {{ message = 1, iteration = {pass} }}\naction = \"set_dscp\"\ndscp = 0");
    let lost = fault("n2", "s1", "match = { message = 1, packet = 1, transmission = 1 }\naction = \"drop\"");
    let run = run(&format!("{STAR}{lost}{}{}", fault("s1", "n1", &mark(1)), fault("s1", "n1", &mark(2))));
    run.assert_all_well();
    assert_eq!(fired(&run), [1, 2, 2]);
}

#[test]
fn a_copy_is_the_same_transmission_and_a_frame_held_back_keeps_its_origin() {
    let copy = fault("n2", "s1", "match = { message = 1, packet = 1 }\naction = \"duplicate\"");
    let held =
        fault("n2", "s1", "match = { message = 1, packet = 0, transmission = 1 }\naction = \"reorder\"\nafter = 1");
    let seen = |packet: u32| {
        let conditions = format!("match = {{ message = 1, packet = {packet}, transmission = 1 }}");
        fault("s1", "n1", &format!("{conditions}\naction = \"set_dscp\"\ndscp = 0"))
    };
    let run = run(&format!("{STAR}{copy}{held}{}{}", seen(1), seen(0)));
    run.assert_all_well();
    assert_eq!(fired(&run)[2..], [2, 1]);
}

#[test]
fn both_ways_of_a_queue_pair_are_two_links_directions_behind_a_switch_too() {
    let both = "match = { queue_pair = \"q1\" }\naction = \"set_dscp\"\ndscp = 0\nboth_ways = true";
    let run = run(&format!("{STAR}{}", fault("s1", "n1", both)));
    run.assert_all_well();
    // Three packets of data; their ACK on the way back.
    assert_eq!(fired(&run), [3, 1]);
}

#[test]
fn on_the_way_that_a_flow_did_not_take_a_rule_never_fires() {
    let lost = |spine: &str, optional: bool| {
        let conditions = "match = { message = 0, packet = 1, transmission = 1 }\naction = \"drop\"";
        fault("leaf1", spine, &format!("name = \"{spine}\"\noptional = {optional}\n{conditions}"))
    };
    let strict = run(&format!("{FABRIC}{}{}", lost("spine1", false), lost("spine2", false)));
    let fired = fired(&strict);
    assert!(fired == [1, 0] || fired == [0, 1], "one of the two ways is taken: {fired:?}");
    let unused = ["spine1", "spine2"][usize::from(fired[1] == 0)].to_owned();
    assert_eq!(strict.shortcomings(), [Shortcoming::FaultNeverFired { name: unused, matched: 0 }]);
    assert_eq!(strict.counters("n2").num_nacks_sent, 1);
    run(&format!("{FABRIC}{}{}", lost("spine1", true), lost("spine2", true))).assert_all_well();
    // What goes back is on the same links the other way round.
    let ack = "match = { kind = \"ack\", queue_pair = \"n1->n2\" }\naction = \"set_dscp\"\ndscp = 0\noptional = true";
    let back = run(&format!("{FABRIC}{}{}", fault("leaf2", "spine1", ack), fault("leaf2", "spine2", ack)));
    back.assert_all_well();
    assert_eq!(back.outcome().faults.iter().map(|report| report.fired).sum::<u64>(), 1);
}

#[test]
fn what_cannot_come_by_is_refused_with_the_way_it_goes() {
    let drop = |conditions: &str| format!("match = {{ {conditions} }}\naction = \"drop\"");
    let fabric_way = "`n1` -> `leaf1`, `leaf1` -> `spine1`, `leaf1` -> `spine2`, `spine1` -> `leaf2`, `spine2` -> `leaf2`, \
                      `leaf2` -> `n2`";
    for (text, from, to, conditions, message, help) in [
        (
            STAR,
            "n1",
            "s1",
            "message = «1»",
            "message 1 does not go from `n1` to `s1`",
            "`n2` -> `s1`, `s1` -> `n1`; mess",
        ),
        (
            STAR,
            "s1",
            "n4",
            "message = «[0, 1]»",
            "message 1 does not go from `s1` to `n4`",
            "`n2` -> `s1`, `s1` -> `n1`",
        ),
        (STAR, "s1", "n4", "message = «2»", "there is no message 2", "0 to 1"),
        (STAR, "s1", "n1", "packet = «3»", "no message here has a packet 3", "the last one is 2"),
        (STAR, "n1", "s1", "packet = «0»", "no message goes this way", "turn"),
        (STAR, "s1", "n1", "queue_pair = «\"q0\"»", "has no packets from `s1` to `n1`", "`n3` -> `s1`, `s1` -> `n4`"),
        (FABRIC, "leaf2", "spine1", "message = «0»", "message 0 does not go from `leaf2` to `spine1`", fabric_way),
        (FABRIC, "n2", "leaf2", "message = «0»", "message 0 does not go from `n2` to `leaf2`", fabric_way),
    ] {
        assert_refused(&format!("{text}{}", fault(from, to, &drop(conditions))), message, help);
    }
    for (from, to) in [("n1", "leaf1"), ("leaf1", "spine1"), ("leaf1", "spine2"), ("spine2", "leaf2"), ("leaf2", "n2")]
    {
        parsed(&format!("{FABRIC}{}", fault(from, to, &drop("message = 0, packet = 2, transmission = 3"))));
    }
}

#[test]
fn a_bit_of_a_payload_is_one_that_a_packet_there_can_have() {
    let small = STAR.replace("[nic]\n", "[nodes.n2]\nnic.mss = \"1024B\"\n[nic]\n");
    let large = STAR.replace("[nic]\n", "[nodes.n2]\nnic.mss = \"8192B\"\n[nic]\nmtu = \"9KB\"\n");
    let corrupt = |rest: &str| fault("s1", "n1", &format!("action = \"corrupt\"\n{rest}"));
    assert_refused(&format!("{small}{}", corrupt("bit = «8192»")), "cannot be 8192", "from 0 to 8191");
    assert_refused(&format!("{large}{}", corrupt("bit = «65536»")), "cannot be 65536", "from 0 to 65535");
    // With messages of both kinds on the link, those that are named count.
    let mixed = format!("{small}[[posts]]\nfrom = \"n3\"\nto = \"n1\"\nsize = \"4KiB\"\n");
    let named = corrupt("bit = «8192»\nmatch = { message = 1 }");
    assert_refused(&format!("{mixed}{named}"), "cannot be 8192", "from 0 to 8191");
    assert_refused(&format!("{mixed}{}", corrupt("bit = «32768»")), "cannot be 32768", "from 0 to 32767");
    // The last bit there is: the frame is discarded for its ICRC, and sent again.
    let once = "bit = 8191\nmatch = { message = 1, packet = 11, transmission = 1 }\noptional = true";
    let last = run(&format!("{small}{}", corrupt(once)));
    last.assert_all_well();
    assert_eq!((fired(&last), last.counters("n1").rx_icrc_encapsulated), (vec![1], 1));
}

#[test]
fn an_injected_packet_of_a_queue_pair_has_its_addresses_on_every_link() {
    // A NAK for packet 1, on the last link before n2: nobody sent it, and n2 goes back.
    let nak = "at = \"300ns\"\naction = \"inject\"\nframe = { kind = \"nak\", queue_pair = \"q1\", psn = 0 }";
    for (from, to) in [("s1", "n2"), ("n1", "s1")] {
        let run = run(&format!("{STAR}{}", fault(from, to, nak)));
        run.assert_all_well();
        assert_eq!((run.counters("n2").num_nacks_recvd, run.counters("n2").num_rtx), (1, 1), "{from} to {to}");
    }
    let elsewhere = "action = \"inject\"\nframe = { kind = \"nak\", queue_pair = «\"q1\"», psn = 0 }";
    assert_refused(
        &format!("{STAR}{}", fault("s1", "n1", elsewhere).replace("«\"q1\"»", "«\"q0\"»")),
        "has no packets",
        "n4",
    );
}
