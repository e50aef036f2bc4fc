//! Faults and expectations of scenario files: what they say, and what is refused where.

mod refusals;

use rocemu::base::{Instant, MessageId, Psn, Qpn, Share, Span};
use rocemu::link::{Action, Corruption, Field, Matcher, PsnMatch, Rule};
use rocemu::scenario::{FaultKind, FaultPlan};
use rocemu::trace::PacketKind;
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
        ("queue_pair = \"q1\"", Matcher { dest_qpns: vec![Qpn::new(0x22).unwrap()], ..any.clone() }),
        ("queue_pair = [\"a->b\"]", Matcher { dest_qpns: vec![Qpn::new(0x80_0000).unwrap()], ..any.clone() }),
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
        ("action = \"inject\"\nframe = { kind = \"ack\", psn = 1, queue_pair = «\"q2\"» }", "has no end at `b`", "`c`"),
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
        ("queue_pair = «\"q2\"»", "has no end at `b`", "`c` and `d`"),
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
    assert_one(&all, rocemu::scenario::Severity::Error, &marked, "size", "unit");
}
