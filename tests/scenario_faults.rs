//! Faults and expectations of scenario files: what they say, and what is refused where.

mod refusals;

use std::collections::BTreeSet;
use std::ops::ControlFlow;

use proptest::prelude::*;
use rocemu::base::{Instant, MessageId, Psn, Qpn, Share, Span};
use rocemu::engine::{Engine, MemoryWires};
use rocemu::link::{Action, Corruption, Field, Matcher, PsnMatch, Rule};
use rocemu::record::event_object;
use rocemu::scenario::expect::Judge;
use rocemu::scenario::{self, FaultKind, FaultPlan};
use rocemu::trace::{Event, EventKind, Names, PacketKind, Sink};
use rocemu::wire::{Ecn, NakCode, Opcode, Packet, RocePacket, Syndrome};

use refusals::{assert_one, assert_refused, parsed, refused, unmark};

/// Message 0 has 256 packets and goes from a to b, message 1 has one and goes back.
const PAIR: &str = r#"
[run]
until = "1s"
[nodes.a]
[nodes.b]
[nodes.c]
[nodes.d]
[[links]]
ends = ["a", "b"]
[[links]]
ends = ["c", "d"]
[[queue_pairs]]
name = "q1"
ends = ["a", "b"]
qpn = [0x11, 0x22]
[[queue_pairs]]
name = "q2"
ends = ["c", "d"]
[[posts]]
queue_pair = "q1"
from = "a"
size = "1MiB"
[[posts]]
queue_pair = "q1"
from = "b"
size = "0B"
[[posts]]
from = "a"
to = "b"
size = "1B"
[[faults]]
"#;
/// What most of the faults below have in common.
const WAY: &str = "from = \"a\"\nto = \"b\"\n";

fn faults(text: &str) -> Vec<FaultPlan> {
    parsed(&format!("{PAIR}{WAY}{text}")).plan.faults
}

fn rule(text: &str) -> Rule {
    match &faults(text)[0].kind {
        FaultKind::Rule(rule) => rule.clone(),
        FaultKind::Inject { .. } => panic!("it injects: {text}"),
    }
}

fn matcher(text: &str) -> Matcher {
    rule(&format!("action = \"drop\"\nmatch = {{ {text} }}")).matcher
}

fn injected(frame: &str) -> RocePacket {
    let all = faults(&format!("action = \"inject\"\nframe = {{ {frame} }}"));
    let FaultKind::Inject { frame, .. } = &all[0].kind else { panic!("it injects") };
    match Packet::parse(frame) {
        Ok(Packet::Roce(packet)) => packet,
        other => panic!("{other:?}"),
    }
}

fn at(span: Span) -> Option<Instant> {
    Some(Instant::ZERO + span)
}

#[test]
fn a_fault_without_conditions_happens_to_every_frame() {
    let all = faults("action = \"drop\"");
    assert_eq!(all.len(), 1);
    assert_eq!((all[0].name.as_str(), all[0].link, all[0].from_end, all[0].optional), ("fault 1", 0, 0, false));
    assert_eq!(all[0].kind, FaultKind::Rule(Rule { matcher: Matcher::default(), action: Action::Drop }));
    let back = parsed(&format!("{PAIR}from = \"b\"\nto = \"a\"\nname = \"x\"\noptional = true\naction = \"drop\""))
        .plan
        .faults;
    assert_eq!((back[0].name.as_str(), back[0].from_end, back[0].optional), ("x", 1, true));
}

#[test]
fn every_action_has_its_parameters() {
    for (text, action) in [
        ("action = \"drop\"", Action::Drop),
        ("action = \"duplicate\"", Action::Duplicate),
        ("action = \"delay\"\nby = \"5us\"", Action::Delay(Span::from_us(5))),
        ("action = \"reorder\"\nafter = 2", Action::Reorder { after: 2 }),
        ("action = \"corrupt\"", Action::Corrupt(Corruption { field: Field::Payload, bit: 0 })),
        ("action = \"corrupt\"\nfield = \"bth\"\nbit = 95", Action::Corrupt(Corruption { field: Field::Bth, bit: 95 })),
        (
            "action = \"corrupt\"\nfield = \"icrc\"\nbit = 31",
            Action::Corrupt(Corruption { field: Field::Icrc, bit: 31 }),
        ),
        ("action = \"set_ce\"", Action::SetCe),
        ("action = \"set_dscp\"\ndscp = 24", Action::SetDscp(24)),
    ] {
        assert_eq!(rule(text), Rule { matcher: Matcher::default(), action }, "{text}");
    }
}

#[test]
fn conditions_are_one_value_or_several() {
    let psn = |psn| PsnMatch::Absolute(Psn::new(psn));
    let any = Matcher::default();
    let end = |node, qpn| (std::net::Ipv4Addr::new(10, 0, 0, node), Qpn::new(qpn).unwrap());
    for (text, expected) in [
        ("psn = 100", Matcher { psns: vec![psn(100)], ..any.clone() }),
        ("psn = [100, 0xffffff]", Matcher { psns: vec![psn(100), psn(0xff_ffff)], ..any.clone() }),
        (
            "psn = \"16777214..3\"",
            Matcher { psns: vec![PsnMatch::AbsoluteRange(Psn::new(0xff_fffe), Psn::new(3))], ..any.clone() },
        ),
        (
            "packet = [0, \"254 .. 255\"]",
            Matcher { psns: vec![PsnMatch::Relative(0), PsnMatch::RelativeRange(254, 255)], ..any.clone() },
        ),
        ("kind = \"data\"", Matcher { kinds: vec![PacketKind::Send, PacketKind::Write], ..any.clone() }),
        (
            "kind = [\"ack\", \"pfc\"]",
            Matcher { kinds: vec![PacketKind::Ack, PacketKind::Xoff, PacketKind::Xon], ..any.clone() },
        ),
        ("opcode = \"WRITE First\"", Matcher { opcodes: vec![Opcode::WRITE_FIRST], ..any.clone() }),
        (
            "opcode = [\"write_first\", \"SEND Last + Imm\", \"cnp\"]",
            Matcher { opcodes: vec![Opcode::WRITE_FIRST, Opcode::SEND_LAST_IMM, Opcode::CNP], ..any.clone() },
        ),
        ("message = [0, 2]", Matcher { messages: vec![MessageId(0), MessageId(2)], ..any.clone() }),
        ("queue_pair = \"q1\"", Matcher { destinations: vec![end(1, 0x11), end(2, 0x22)], ..any.clone() }),
        (
            "queue_pair = [\"a->b\"]",
            Matcher { destinations: vec![end(1, 0x80_0000), end(2, 0x80_0000)], ..any.clone() },
        ),
        ("transmission = [1, 2]", Matcher { transmissions: vec![1, 2], ..any.clone() }),
        ("iteration = 2", Matcher { iterations: vec![2], ..any.clone() }),
        ("nth = \"3..5\"", Matcher { nth: vec![3, 4, 5], ..any.clone() }),
        ("times = 7", Matcher { times: Some(7), ..any.clone() }),
        (
            "since = \"5us\", until = \"6us\"",
            Matcher { from: at(Span::from_us(5)), until: at(Span::from_us(6)), ..any.clone() },
        ),
    ] {
        assert_eq!(matcher(text), expected, "{text}");
    }
}

#[test]
fn a_probability_is_taken_by_its_digits() {
    for text in ["0.001", "\"0.001\"", "1e-3", "0.001000"] {
        assert_eq!(
            matcher(&format!("probability = {text}")).probability,
            Some(Share::from_parts(1_000_000_000)),
            "{text}"
        );
    }
    assert_eq!(matcher("probability = 1").probability, Some(Share::from_percent(100)));
    assert_eq!(matcher("probability = 0.000000000001").probability, Some(Share::from_parts(1)));
}

#[test]
fn match_can_be_a_table_of_its_own() {
    assert_eq!(rule("action = \"drop\"\n[faults.match]\npsn = 1\nnth = 2").matcher, matcher("psn = 1, nth = 2"));
}

#[test]
fn a_link_goes_down_both_ways_and_must_hit_someone_on_the_way_that_is_named() {
    let window = Matcher { from: at(Span::from_us(5)), until: at(Span::from_us(9)), ..Matcher::default() };
    let all = faults("name = \"flap\"\naction = \"down\"\nat = \"5us\"\nuntil = \"9us\"");
    let seen: Vec<_> = all.iter().map(|f| (f.name.as_str(), f.from_end, f.optional)).collect();
    assert_eq!(seen, [("flap", 0, false), ("flap (back)", 1, true)]);
    for fault in &all {
        assert_eq!(fault.kind, FaultKind::Rule(Rule { matcher: window.clone(), action: Action::Down }));
    }
    assert_eq!(faults("action = \"down\"\nat = \"5us\"\nboth_ways = false").len(), 1);
    assert_eq!(faults("action = \"drop\"\nboth_ways = true").len(), 2);
}

#[test]
fn frames_are_injected_once_or_at_intervals() {
    let series =
        |text: &str| match faults(&format!("action = \"inject\"\n{text}\nframe = {{ kind = \"xon\" }}"))[0].kind {
            FaultKind::Inject { first_at, every, count, .. } => (first_at.ps(), every.ps(), count),
            FaultKind::Rule(_) => panic!("it injects"),
        };
    assert_eq!(series(""), (0, 0, 1));
    assert_eq!(series("at = \"1us\""), (1_000_000, 0, 1));
    assert_eq!(series("at = \"1us\"\nevery = \"2us\"\ncount = 3"), (1_000_000, 2_000_000, 3));
    assert_eq!(series("every = \"2us\""), (0, 2_000_000, u32::MAX));
}

#[test]
fn injected_pauses_come_from_the_node_that_is_named() {
    let pause = |text: &str| match &faults(&format!("action = \"inject\"\nframe = {{ {text} }}"))[0].kind {
        FaultKind::Inject { frame, .. } => match Packet::parse(frame) {
            Ok(Packet::Pfc(pause)) => (pause.src.0[5], pause.classes().map(|(c, q)| (c.get(), q)).collect::<Vec<_>>()),
            other => panic!("{other:?}"),
        },
        FaultKind::Rule(_) => panic!("it injects"),
    };
    assert_eq!(pause("kind = \"xoff\""), (1, vec![(0, 65_535)]));
    assert_eq!(pause("kind = \"xoff\", class = 3, quanta = 7"), (1, vec![(3, 7)]));
    assert_eq!(pause("kind = \"xon\", class = 3"), (1, vec![(3, 0)]));
}

#[test]
fn injected_packets_have_the_addresses_of_the_link_and_the_fields_that_are_named() {
    let ack = injected("kind = \"ack\", queue_pair = \"q1\", psn = 9000, msn = 5");
    assert_eq!((ack.ip_src.octets(), ack.ip_dst.octets()), ([10, 0, 0, 1], [10, 0, 0, 2]));
    assert_eq!((ack.eth_src.0[5], ack.eth_dst.0[5]), (1, 2));
    assert_eq!((ack.bth.dest_qpn.get(), ack.bth.psn.get(), ack.class().get()), (0x22, 9_000, 1));
    let aeth = ack.aeth.unwrap();
    assert!(matches!(aeth.syndrome, Syndrome::Ack { .. }));
    assert_eq!(aeth.msn, 5);

    let nak = injected("kind = \"nak\", qpn = 77, psn = 3, code = \"invalid_request\", class = 2");
    assert_eq!((nak.bth.dest_qpn.get(), nak.bth.psn.get(), nak.class().get()), (77, 3, 2));
    assert_eq!(nak.aeth.unwrap().syndrome, Syndrome::Nak(NakCode::InvalidRequest));

    let cnp = injected("kind = \"cnp\", queue_pair = \"q1\", ce = true");
    assert_eq!((cnp.bth.opcode, cnp.bth.dest_qpn.get(), cnp.ecn), (Opcode::CNP, 0x22, Ecn::Ce));

    let data = injected(
        "kind = \"data\", queue_pair = \"q1\", opcode = \"WRITE Only\", psn = 1, payload = \"6B\", address = 4, rkey = 5",
    );
    assert_eq!((data.bth.opcode, data.bth.psn.get(), data.payload.len()), (Opcode::WRITE_ONLY, 1, 6));
    let reth = data.reth.unwrap();
    assert_eq!((reth.va, reth.rkey, reth.length, data.class().get()), (4, 5, 6, 0));
    let middle = injected("kind = \"data\", queue_pair = \"q1\", opcode = \"send_middle\", psn = 1");
    assert_eq!((middle.bth.opcode, middle.reth), (Opcode::SEND_MIDDLE, None));
}

#[test]
fn an_injected_frame_in_hex_is_taken_as_it_stands() {
    let all = faults("action = \"inject\"\nframe = \"0180:c200_0001 020000000001 88 08 01 01 DEADBEEF\"");
    let FaultKind::Inject { frame, .. } = &all[0].kind else { panic!("it injects") };
    assert_eq!(frame[..6], [0x01, 0x80, 0xc2, 0, 0, 1]);
    assert_eq!(frame[16..], [0xde, 0xad, 0xbe, 0xef]);
}

/// `fault` follows the way from a to b.
fn refuse(fault: &str, message: &str, help: &str) {
    assert_refused(&format!("{PAIR}{WAY}{fault}"), message, help);
}

/// `conditions` stand in the `match` of a drop from a to b.
fn refuse_match(conditions: &str, message: &str, help: &str) {
    refuse(&format!("action = \"drop\"\nmatch = {{ {conditions} }}"), message, help);
}

#[test]
fn faults_that_cannot_happen_are_refused() {
    for (fault, message, help) in [
        ("action = «\"lose\"»", "`lose` is not an action", "write \"drop\""),
        ("action = «7»", "`action` is a whole number", "quotation marks"),
        ("action = \"drop\"\n«tims» = 1", "has no key `tims`", "known keys: name"),
        ("action = \"drop\"\n«by» = \"5us\"", "action \"drop\" has no `by`", "belongs to \"delay\""),
        ("action = \"delay\"\nby = «\"0ns\"»", "a delay of nothing", "above 0"),
        ("action = \"delay\"\nby = «5»", "needs a unit", "\"100ns\""),
        ("action = \"reorder\"\nafter = «0»", "cannot be 0", "from 1"),
        ("action = \"corrupt\"\nfield = «\"reth\"»", "`reth` is not a field", "write \"payload\""),
        ("action = \"corrupt\"\nfield = \"bth\"\nbit = «96»", "cannot be 96", "from 0 to 95"),
        ("action = \"corrupt\"\nfield = \"icrc\"\nbit = «32»", "cannot be 32", "from 0 to 31"),
        ("action = \"corrupt\"\nbit = «32768»", "cannot be 32768", "from 0 to 32767"),
        ("action = \"corrupt\"\n«match» = { kind = \"ack\" }", "only data packets have a payload", "another `kind`"),
        ("action = \"set_ce\"\n«match» = { kind = \"pfc\" }", "a PFC frame has no IP header", "another `kind`"),
        ("action = \"set_dscp\"\ndscp = «64»", "cannot be 64", "from 0 to 63"),
        ("action = \"down\"\nat = \"5us\"\nuntil = «\"5us\"»", "ends at 5 us and begins at 5 us", "later"),
        ("action = \"down\"\nat = «\"1s\"»", "the run ends at 1 s", "earlier"),
        ("action = \"down\"\n«match» = { psn = 1 }", "action \"down\" has no `match`", "belongs to \"drop\""),
        ("action = \"inject\"\nframe = { kind = \"xon\" }\n«both_ways» = true", "has no `both_ways`", "belongs to"),
        ("action = \"inject\"\nframe = { kind = \"xon\" }\nevery = «\"0ns\"»", "never end", "count = 2"),
        ("action = \"inject\"\nframe = { kind = \"xon\" }\ncount = «0»", "cannot be 0", "from 1"),
        ("action = \"inject\"\nframe = { kind = \"xon\" }\nat = «\"2s\"»", "the run ends at 1 s", "earlier"),
        ("action = \"inject\"\nframe = «\"0102\"»", "has 2 octets", "without FCS"),
        ("action = \"inject\"\nframe = «\"0180c20000010200000000018808f\"»", "middle of an octet", "in hex"),
        ("action = \"inject\"\nframe = «\"hello, world\"»", "no hexadecimal digits", "in hex"),
        ("action = \"inject\"\nframe = { kind = «\"pause\"» }", "is not a kind of frame", "write \"xoff\""),
        ("action = \"inject\"\n«frame» = { psn = 1 }", "has no `kind`", "kind = \"ack\""),
        ("action = \"inject\"\nframe = { kind = \"xoff\", «psn» = 1 }", "has no key `psn`", "quanta"),
        ("action = \"inject\"\nframe = { kind = \"xoff\", quanta = «0» }", "cannot be 0", "from 1"),
        ("action = \"inject\"\n«frame» = { kind = \"ack\", psn = 1 }", "names no queue pair", "qpn = 77"),
        ("action = \"inject\"\n«frame» = { kind = \"ack\", qpn = 1 }", "has no `psn`", "psn = 0"),
        (
            "action = \"inject\"\nframe = { kind = \"ack\", psn = 1, queue_pair = «\"q2\"» }",
            "has no packets from `a` to `b`",
            "`c`",
        ),
        ("action = \"inject\"\nframe = { kind = \"data\", qpn = 2, psn = 1, opcode = «\"cnp\"» }", "no data", "WRITE"),
        (
            "action = \"inject\"\nframe = { kind = \"data\", qpn = 2, psn = 1, opcode = \"send_only\", payload = «\"1MB\"» }",
            "cannot carry",
            "9216B",
        ),
        ("name = «\"\"»\naction = \"drop\"", "cannot be a name", "64"),
    ] {
        refuse(fault, message, help);
    }
}

#[test]
fn a_fault_has_to_say_where_and_what() {
    let whole = |fault: &str| format!("{}{fault}", PAIR.replace("[[faults]]", "«[[faults]]»"));
    for (fault, message, help) in [
        ("to = \"b\"\naction = \"drop\"", "has no `from`", "from = \"a\""),
        ("from = \"a\"\naction = \"drop\"", "has no `to`", "to = \"b\""),
        ("from = \"a\"\nto = \"b\"", "has no `action`", "action = \"drop\""),
        ("from = \"a\"\nto = \"b\"\naction = \"delay\"", "needs `by`", "by = \"5us\""),
        ("from = \"a\"\nto = \"b\"\naction = \"reorder\"", "needs `after`", "after = 1"),
        ("from = \"a\"\nto = \"b\"\naction = \"set_dscp\"", "needs `dscp`", "0 to 63"),
        ("from = \"a\"\nto = \"b\"\naction = \"inject\"", "needs `frame`", "in hex"),
    ] {
        assert_refused(&whole(fault), message, help);
    }
    for (way, message) in [
        ("from = \"a\"\nto = «\"c\"»", "no link between `a` and `c`"),
        ("from = \"a\"\nto = «\"a\"»", "no link between `a` and `a`"),
        ("from = «\"x\"»\nto = \"b\"", "there is no node `x`"),
    ] {
        assert_refused(&format!("{PAIR}{way}\naction = \"drop\""), message, "node");
    }
    let twins =
        format!("{PAIR}{WAY}name = \"x\"\naction = \"drop\"\n«[[faults]]»\n{WAY}name = \"x\"\naction = \"drop\"");
    assert_refused(&twins, "two faults named `x`", "a name of its own");
    let back = format!(
        "{PAIR}{WAY}name = \"x\"\naction = \"down\"\n«[[faults]]»\n{WAY}name = \"x (back)\"\naction = \"drop\""
    );
    assert_refused(&back, "two faults named `x (back)`", "a name of its own");
}

#[test]
fn conditions_that_hold_for_no_frame_are_refused() {
    for (conditions, message, help) in [
        ("«qp» = 1", "has no key `qp`", "queue_pair"),
        ("kind = «\"rst\"»", "is not a kind of frame", "\"data\""),
        ("kind = «[]»", "is an empty list", "leave the key out"),
        ("opcode = «\"write_frist\"»", "is not an opcode", "write_first"),
        ("kind = \"ack\", opcode = «\"write_first\"»", "`kind` allows no packet with this `opcode`", "one of the two"),
        ("kind = \"ack\", «packet» = 3", "only data packets have what `packet` asks for", "one of the two"),
        ("kind = \"nak\", «transmission» = 1", "only data packets", "one of the two"),
        ("kind = \"pfc\", «psn» = 3", "only packets of queue pairs", "one of the two"),
        ("psn = «16777216»", "cannot be 16777216", "from 0 to 16777215"),
        ("psn = «\"3\"»", "is not a range", "\"100..110\""),
        ("psn = «\"1..x\"»", "is not a range", "\"100..110\""),
        ("psn = 1, «packet» = 1", "two ways to name a packet", "the index in the message"),
        ("packet = «256»", "no message here has a packet 256", "the last one is 255"),
        ("packet = «\"3..300\"»", "no message here has a packet 300", "the last one is 255"),
        ("message = 2, packet = «1»", "no message here has a packet 1", "the last one is 0"),
        ("packet = «\"3..1\"»", "is not a range", "both its ends"),
        ("message = «3»", "there is no message 3", "0 to 2"),
        ("message = «1»", "message 1 does not go from `a` to `b`", "in the order of [[posts]]"),
        ("queue_pair = «\"q3\"»", "there is no queue pair `q3`", "q1"),
        ("queue_pair = «\"b->a\"»", "there is no queue pair `b->a`", "q1"),
        (
            "queue_pair = «\"q2\"»",
            "has no packets from `a` to `b`",
            "its ends are `c` and `d`; its packets can pass `c` -> `d`, and",
        ),
        ("transmission = «0»", "cannot be 0", "from 1"),
        ("iteration = «0»", "cannot be 0", "from 1"),
        ("nth = «0»", "cannot be 0", "from 1"),
        ("nth = «\"1..20000\"»", "names 20000 numbers", "`times`"),
        ("times = «0»", "cannot be 0", "from 1"),
        ("probability = «0»", "never happens", "0.001"),
        ("probability = «1.5»", "more than certain", "0.001"),
        ("probability = «\"one\"»", "probability", "0.001"),
        ("probability = «-0.1»", "probability", "0.001"),
        ("since = \"2us\", until = «\"1us\"»", "ends at 1 us and begins at 2 us", "later"),
        ("until = «\"0ns\"»", "ends at 0 ps", "later"),
        ("since = «\"1s\"»", "the run ends at 1 s", "earlier"),
    ] {
        refuse_match(conditions, message, help);
    }
}

#[test]
fn several_errors_of_faults_are_reported_together() {
    let text = format!(
        "{PAIR}from = \"x\"\nto = \"b\"\naction = \"dorp\"\nmatch = {{ psn = -1, nth = 0 }}\n[[faults]]\n{WAY}action = \"delay\""
    );
    let all = refused(&text);
    assert_eq!(all.len(), 5, "{all}");
}

#[test]
fn what_an_error_hides_is_not_concluded() {
    // The post is refused: whether the message is long enough is not known.
    let marked =
        format!("{PAIR}{WAY}action = \"drop\"\nmatch = {{ packet = 999, message = 7 }}").replacen("\"1MiB\"", "«1»", 1);
    let all = refused(&unmark(&marked).0);
    assert_one(&all, scenario::Severity::Error, &marked, "size", "unit");
}

/// Runs a scenario on memory wires and says everything that fell short.
fn shortcomings(file: &str, text: &str) -> Vec<String> {
    let parsed = scenario::parse(file, text).unwrap_or_else(|refused| panic!("{refused}"));
    // Too little headroom is what two of them are about.
    let is_meant = |warning: &scenario::Diagnostic| warning.message.contains("headroom");
    assert!(parsed.warnings.iter().all(is_meant), "{}", parsed.warnings);
    let plan = parsed.plan;
    let mut judge = Judge::new(&plan);
    let mut wires = MemoryWires::default();
    let outcome = Engine::new(&plan, &mut wires)
        .run(&mut judge, &mut |_| ControlFlow::Continue(()))
        .unwrap_or_else(|error| panic!("{file}: {error}"));
    let verdicts = judge.finish(&outcome.counters, &outcome.faults);
    assert_eq!(verdicts.len(), plan.expectations.len());
    let failed = verdicts.iter().filter(|verdict| !verdict.ok).map(|verdict| verdict.to_string());
    outcome.shortcomings(&plan).iter().map(ToString::to_string).chain(failed).collect()
}

#[test]
fn every_case_of_loss_recovery_is_as_derived() {
    let netns = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("netns");
    let mut files: Vec<_> = std::fs::read_dir(netns).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.retain(|file| file.extension().is_some_and(|extension| extension == "toml"));
    files.sort();
    assert!(files.len() >= 13, "{files:?}");
    let mut wrong = Vec::new();
    for file in files {
        let name = file.file_name().unwrap().to_str().unwrap();
        let text = std::fs::read_to_string(&file).unwrap();
        let found = shortcomings(name, &text);
        wrong.extend(found.into_iter().map(|shortcoming| format!("{name}: {shortcoming}")));
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// A run of four packets, of which the second is lost once, and one expectation.
const LOSSY: &str = r#"
[nodes.a]
[nodes.b]
[[links]]
ends = ["a", "b"]
[[posts]]
from = "a"
to = "b"
size = "16KiB"
[[faults]]
name = "the loss"
from = "a"
to = "b"
match = { psn = 1, transmission = 1 }
action = "drop"
[[expect]]
"#;

/// The one verdict on `expectation`: whether it held, and what is said.
fn verdict(expectation: &str) -> (bool, String) {
    let plan = parsed(&format!("{LOSSY}{expectation}")).plan;
    let mut judge = Judge::new(&plan);
    let mut wires = MemoryWires::default();
    let outcome = Engine::new(&plan, &mut wires).run(&mut judge, &mut |_| ControlFlow::Continue(())).unwrap();
    let verdicts = judge.finish(&outcome.counters, &outcome.faults);
    assert_eq!(verdicts.len(), 1);
    assert!(!verdicts[0].ok || verdicts[0].at.is_none());
    (verdicts[0].ok, verdicts[0].to_string())
}

#[test]
fn expectations_hold_or_say_what_was_there() {
    // Frame n leaves at 150,844 + 83,080 x (n + 1) ps; PSN 2 draws the NAK at 500,084 ps, which is at a at 602,604 ps.
    // By then all four payloads have come, so 1 to 3 start over: 150,844 + 83,080 x 3 + 202,520 ps to 1,205,208 ps.
    let good = [
        "counter = \"num_nacks_sent\"\nnode = \"b\"\nequals = 1",
        "counter = \"num_nacks_sent\"\nat_least = 1\nat_most = 1",
        "message = 0\nstatus = \"completed\"\ncompleted = \"1205208ps\"\nretransmissions = 3",
        "message = \"all\"\ncompleted_after = \"1205207ps\"\ncompleted_before = \"1205209ps\"",
        "message = [0]\ndelivered_before = \"1.2us\"\ngoodput_at_least = \"108Gbps\"\ngoodput_at_most = \"109Gbps\"",
        "event = \"nak_made\"",
        "event = \"nak_made\"\nnode = \"b\"\nwhere = { expected = 1, got = [2, 3] }\nat = \"500084ps\"\ncount = 1",
        "event = \"nak_made\"\nnode = \"a\"\ncount = 0",
        "event = \"nak_made\"\nbefore = \"500084ps\"\ncount = 0",
        "event = \"frame_sent\"\nwhere = { port = \"a:b\", packet = \"write\", transmission = 2 }\ncount = 3",
        "event = \"rewound\"\nwithin = \"0ns\"\nof = { event = \"frame_received\", node = \"a\", where = { packet = \"nak\" } }",
        "event = \"nak_made\"\nwithin = \"1us\"\nof = { event = \"rewound\" }\ncount = 0",
        "order = [\"nak_made\", { event = \"rewound\", node = \"a\", where = { to = 1 } }, \"message_completed\"]",
        "rate = \"wire\"\nfrom = \"a\"\nto = \"b\"\nat_least = \"200Gbps\"\nat_most = \"400Gbps\"",
        "rate = \"delivery\"\nfrom = \"a\"\nto = \"b\"\nat_most = \"400Gbps\"",
        "rate = \"goodput\"\nat_least = \"108Gbps\"\nat_most = \"109Gbps\"",
        "fault = \"the loss\"\nfired = 1",
        "no_drops = true\nnode = \"c\"",
        "no_retransmissions = true\nnode = \"b\"",
    ];
    for expectation in good {
        let expectation = expectation.replace("node = \"c\"", "node = \"a\"");
        let (ok, text) = verdict(&expectation);
        // a itself sends the frame that the link drops.
        assert_eq!(ok, !expectation.contains("no_drops"), "{expectation}\n{text}");
    }
    for (expectation, said) in [
        (
            "name = \"one NAK\"\ncounter = \"num_nacks_sent\"\nnode = \"b\"\nequals = 2",
            "one NAK: expected num_nacks_sent at b: 2; got 1",
        ),
        ("counter = \"num_rto\"\nat_least = 1", "expectation 1: expected num_rto: at least 1; got 0"),
        (
            "message = 0\ncompleted = \"1us\"",
            "expectation 1: expected message 0 completed at 1 us; got message 0 completed at 1.205208 us (look around \
             1.205208 us)",
        ),
        (
            "message = 0\nretransmissions_at_most = 2",
            "expectation 1: expected message 0 with at most 2 retransmissions; got message 0 with 3 (look around \
             1.205208 us)",
        ),
        (
            "message = 0\nstatus = \"unfinished\"",
            "expectation 1: expected message 0 unfinished; got message 0 completed (look around 1.205208 us)",
        ),
        (
            "event = \"transport_timer_expired\"",
            "expectation 1: expected transport_timer_expired: at least 1 time; got none",
        ),
        (
            "event = \"nak_made\"\nnode = \"b\"\nwhere = { expected = 1 }\nafter = \"1us\"",
            "expectation 1: expected nak_made at b with expected = 1: at least 1 time, after 1 us; got 0 in \
             time (one at 500.084 ns) (look around 500.084 ns)",
        ),
        (
            "event = \"frame_sent\"\nwhere = { packet = \"write\" }\nat_most = 2",
            "expectation 1: expected frame_sent with packet = \"write\": at most 2 times; got 7, the first at 233.924 ns, \
             the last at 1.002688 us (look around 233.924 ns)",
        ),
        (
            "order = [\"rewound\", \"nak_made\"]",
            "expectation 1: expected in this order: rewound, nak_made; got rewound at 602.604 ns, and then no nak_made \
             (look around 602.604 ns)",
        ),
        (
            "order = [\"paused\", \"nak_made\"]",
            "expectation 1: expected in this order: paused, nak_made; got no paused",
        ),
        (
            "rate = \"delivery\"\nto = \"b\"\nat_least = \"399Gbps\"",
            "expectation 1: expected payload delivered to b: at least 399 Gb/s; got 127.87279321 Gb/s from 403.213 ns to \
             1.171977 us (look around 403.213 ns)",
        ),
        (
            "no_drops = true",
            "expectation 1: expected no frame dropped; got 3, the first at a at 317.004 ns: PSN 1 dropped by a fault (look \
             around 317.004 ns)",
        ),
        (
            "no_drops = true\nnode = \"b\"",
            "expectation 1: expected no frame dropped at b; got 2, the first at b at 500.084 ns: PSN 2: after NAK (look \
             around 500.084 ns)",
        ),
        (
            "no_retransmissions = true",
            "expectation 1: expected no retransmission; got 3, the first at a at 836.528 ns: PSN 1, transmission 2 (look \
             around 836.528 ns)",
        ),
        (
            "fault = \"the loss\"\nfired = 2",
            "expectation 1: expected fault `the loss` fires: 2; got 1 of 1 frames that matched",
        ),
    ] {
        assert_eq!(verdict(expectation), (false, said.to_owned()), "{expectation}");
    }
}

#[test]
fn expectations_that_mean_nothing_are_refused() {
    for (expectation, message, help) in [
        ("counter = «\"num_nack_sent\"»\nequals = 1", "is not a counter", "\"num_nacks_sent\""),
        ("counter = \"num_rto\"\nequals = «-1»", "cannot be -1", "from 0"),
        ("counter = \"num_rto\"\nequals = 1\n«at_most» = 2", "`equals` leaves nothing for `at_most`", "keep one"),
        ("counter = \"num_rto\"\nat_least = 3\nat_most = «2»", "no value lies between", "around"),
        ("counter = \"num_rto\"\nequals = 1\nnode = «\"x\"»", "there is no node `x`", "a, b"),
        ("counter = \"num_rto\"\nequals = 1\n«wher» = 1", "has no key `wher`", "known keys"),
        ("counter = \"num_rto\"\nequals = 1\n«fault» = \"the loss\"", "both `counter` and `fault`", "two tables"),
        ("message = «1»\nstatus = \"completed\"", "there is no message 1", "1 message,"),
        ("message = «\"some\"»\nstatus = \"completed\"", "is not a range", "both its ends"),
        ("message = 0\nstatus = «\"done\"»", "is not a status", "\"completed\""),
        ("«message» = 0", "expects nothing of the message", "status"),
        ("message = 0\ncompleted = «5»", "needs a unit", "\"100ns\""),
        ("message = 0\ncompleted_before = «\"0ns\"»", "before the run begins", "later"),
        ("message = 0\ncompleted = \"1us\"\n«completed_after» = \"1us\"", "leaves nothing", "keep one"),
        ("message = 0\ngoodput_at_least = «1»", "needs a unit", "Gbps"),
        ("event = «\"nack_made\"»", "is not an event", "\"nak_made\""),
        ("event = \"nak_made\"\nwhere = { «psn» = 1 }", "has no field `psn`", "expected"),
        ("event = \"nak_made\"\nwhere = { expected = «1.5» }", "is a number, not a whole number", "whole number"),
        ("event = \"nak_made\"\n«within» = \"1us\"", "means nothing without `of`", "write both"),
        ("event = \"nak_made\"\n«of» = { event = \"rewound\" }", "means nothing without `within`", "write both"),
        ("event = \"nak_made\"\nwithin = \"1us\"\n«of» = { node = \"a\" }", "has no `event`", "nak_made"),
        ("order = «[\"nak_made\"]»", "one event has no order", "event ="),
        ("order = «[]»", "is an empty list", "several"),
        ("order = [\"nak_made\", «\"rewind\"»]", "is not an event", "rocemu explain events"),
        ("rate = «\"line\"»\nat_least = \"1Gbps\"", "is not a rate", "\"wire\""),
        ("fault = «\"the los\"»\nfired = 1", "there is no fault `the los`", "the loss"),
        ("no_drops = «false»", "expects nothing", "remove"),
        ("name = «\"\"»\nno_drops = true", "cannot be a name", "64"),
    ] {
        assert_refused(&format!("{LOSSY}{expectation}"), message, help);
    }
    let whole = |expectation: &str| format!("{}{expectation}", LOSSY.replace("[[expect]]", "«[[expect]]»"));
    for (expectation, message, help) in [
        ("name = \"x\"", "does not say what it is about", "counter, message"),
        ("counter = \"num_rto\"", "does not say what is expected", "equals = 1"),
        ("rate = \"wire\"", "does not say what is expected", "at_least"),
        ("fault = \"the loss\"", "does not say what is expected", "fired = 1"),
    ] {
        assert_refused(&whole(expectation), message, help);
    }
}

/// Keeps which keys each event has in the event log.
#[derive(Default)]
struct Keys {
    names: Names,
    seen: BTreeSet<(&'static str, String)>,
}

impl Sink for Keys {
    fn record(&mut self, event: &Event) -> std::io::Result<()> {
        let object: serde_json::Map<_, _> = serde_json::from_slice(&event_object(event, &self.names)?)?;
        assert_eq!(object["event"], event.kind.name());
        let scalars = object.into_iter().filter(|(_, value)| !value.is_array()).map(|(key, _)| key);
        self.seen.extend(scalars.map(|key| (event.kind.name(), key)));
        Ok(())
    }
}

#[test]
fn events_have_the_names_and_fields_that_expectations_can_name() {
    let narrow = include_str!("../netns/pair.toml").replace("31.52Gbps", "7.88Gbps");
    let mut keys = Keys::default();
    for text in [
        include_str!("../netns/middle-packet-lost.toml"),
        include_str!("../netns/injected-pause.toml"),
        include_str!("../netns/duplicate.toml"),
        include_str!("../netns/ghosts.toml"),
        narrow.as_str(),
    ] {
        let plan = parsed(text).plan;
        keys.names = plan.names();
        let mut wires = MemoryWires::default();
        Engine::new(&plan, &mut wires).run(&mut keys, &mut |_| ControlFlow::Continue(())).unwrap();
    }
    assert!(keys.seen.len() > 100, "{}", keys.seen.len());
    for (name, key) in keys.seen.iter().filter(|(_, key)| !["t_ps", "node", "event"].contains(&key.as_str())) {
        let text = format!("{LOSSY}event = \"{name}\"\nwhere = {{ {key} = 1 }}");
        assert!(scenario::parse("x.toml", &text).is_ok(), "{name}: {key}");
    }
}

#[test]
fn every_event_there_is_can_be_expected() {
    for name in EventKind::NAMES {
        let all = refused(&format!("{LOSSY}event = \"{name}\"\nwhere = {{ nothing = 1 }}"));
        assert_eq!(all[0].message, format!("event `{name}` has no field `nothing`"));
        let has_none = *name == "generation_idle";
        assert_eq!(all[0].help == "its fields in events.jsonl: ", has_none, "{name} has no list of its fields");
    }
}

const PIECES: &[&str] = &[
    "",
    " ",
    "\n",
    "=",
    "[",
    "]",
    "{",
    "}",
    ",",
    ".",
    "\"",
    "-",
    "0",
    "1",
    "1.5",
    "-1",
    "\"1..2\"",
    "\"..\"",
    "[]",
    "{}",
    "true",
    "[[faults]]",
    "[[expect]]",
    "match",
    "psn",
    "packet",
    "kind",
    "\"pfc\"",
    "\"ack\"",
    "message",
    "\"all\"",
    "queue_pair",
    "\"q1\"",
    "\"a->b\"",
    "opcode",
    "\"write_only\"",
    "nth",
    "times",
    "probability",
    "0.5",
    "since",
    "until",
    "\"1us\"",
    "\"0ns\"",
    "action",
    "\"drop\"",
    "\"inject\"",
    "\"down\"",
    "\"corrupt\"",
    "field",
    "\"icrc\"",
    "bit",
    "frame",
    "\"0180\"",
    "every",
    "count",
    "both_ways",
    "event",
    "\"nak_made\"",
    "where",
    "of",
    "within",
    "order",
    "rate",
    "\"wire\"",
    "at_least",
    "at_most",
    "equals",
    "counter",
    "\"num_rto\"",
    "fault",
    "no_drops",
    "18446744073709551615",
    "4294967296",
];

proptest! {
    #[test]
    fn a_broken_file_with_faults_has_an_answer(
        file in 0..4_usize,
        mutations in prop::collection::vec((any::<prop::sample::Index>(), 0..30_usize, 0..PIECES.len()), 1..6),
    ) {
        let text = [
            include_str!("../netns/middle-packet-lost.toml"),
            include_str!("../netns/corrupt.toml"),
            include_str!("../netns/ghosts.toml"),
            LOSSY,
        ][file];
        let mutated = mutations.into_iter().fold(text.to_owned(), |text, (from, length, piece)| {
            let from = text.floor_char_boundary(from.index(text.len() + 1));
            let to = text.ceil_char_boundary((from + length).min(text.len()));
            format!("{}{}{}", &text[..from], PIECES[piece], &text[to..])
        });
        match scenario::parse("any.toml", &mutated) {
            Ok(parsed) => {
                // Whatever it says can be watched.
                Judge::new(&parsed.plan);
            }
            Err(refused) => {
                prop_assert!(refused.has_errors());
                prop_assert!(refused.iter().all(|one| !one.help.is_empty()), "{}", refused);
            }
        }
    }
}
