//! Lumina's event scripts: what they mean here, and what is refused where.

use std::ops::ControlFlow;

use proptest::prelude::*;
use rocemu::base::{Instant, NodeId, Qpn};
use rocemu::engine::{Engine, MemoryWires, Outcome};
use rocemu::link::{Action, PsnMatch};
use rocemu::scenario::lumina::{self, EventKind};
use rocemu::scenario::{self, FaultKind, Plan};
use rocemu::trace::{self, Effect, Event, Sink};

const CONFIGURATION: &str = include_str!("data/scenarios/lumina.yml");

/// Four queue pairs, two messages of 16 packets on each.
fn plan() -> Plan {
    let mut text = "[nodes.a]\n[nodes.b]\n[[links]]\nends = [\"a\", \"b\"]\n".to_owned();
    for n in 0..5 {
        text += &format!("[[queue_pairs]]\nname = \"q{n}\"\nends = [\"a\", \"b\"]\n");
    }
    for n in 0..4 {
        text += &format!("[[posts]]\nqueue_pair = \"q{n}\"\nfrom = \"a\"\nsize = \"64KiB\"\ncount = 2\n");
    }
    scenario::parse("four.toml", &text).unwrap_or_else(|refused| panic!("{refused}")).plan
}

/// What links did to frames: transmission, index of the packet, queue pair.
#[derive(Default)]
struct Hits(Vec<(u32, u32, u32, Effect)>);

impl Sink for Hits {
    fn record(&mut self, event: &Event) -> std::io::Result<()> {
        if let trace::EventKind::FrameSent { packet, transmission, effects, .. } = &event.kind {
            let hit = |effect: &trace::RuleEffect| {
                (packet.dest_qpn.get() - 2, packet.psn.get(), *transmission, effect.effect)
            };
            self.0.extend(effects.iter().map(hit));
        }
        Ok(())
    }
}

fn run(plan: &Plan) -> (Outcome, Hits) {
    let mut wires = MemoryWires::default();
    let mut hits = Hits::default();
    let outcome = Engine::new(plan, &mut wires).run(&mut hits, &mut |_| ControlFlow::Continue(())).unwrap();
    (outcome, hits)
}

#[test]
fn a_configuration_is_read_unchanged() {
    let script = lumina::parse("lumina.yml", CONFIGURATION).unwrap_or_else(|refused| panic!("{refused}"));
    let events: Vec<_> = script.events().iter().map(|e| (e.qpn, e.psn, e.kind, e.iter)).collect();
    assert_eq!(
        events,
        [
            (0, Some(4), EventKind::Ecn, 1),
            (1, Some(4), EventKind::BitError, 1),
            (2, Some(3), EventKind::Drop, 1),
            (2, Some(15), EventKind::Drop, 2),
            (3, None, EventKind::Ecn, 1),
        ]
    );
    let list = CONFIGURATION.split_once("  data-pkt-events:").unwrap().1;
    let alone = lumina::parse("events.yml", &format!("data-pkt-events:{list}")).unwrap();
    assert_eq!(alone.events().len(), 5);
    assert_eq!(lumina::parse("none.yml", "traffic:\n  data-pkt-events:\n").unwrap().events(), []);
}

#[test]
fn events_become_faults_of_the_connection_they_name() {
    let mut plan = plan();
    lumina::parse("lumina.yml", CONFIGURATION).unwrap().apply(&mut plan).unwrap();
    let names: Vec<_> = plan.faults.iter().map(|fault| fault.name.as_str()).collect();
    assert_eq!(names[2], "lumina 3: drop of packet 3 in pass 1 of q2");
    assert_eq!(names[4], "lumina 5: ecn of every packet in pass 1 of q3");
    let FaultKind::Rule(rule) = &plan.faults[3].kind else { panic!("it injects nothing") };
    assert_eq!((plan.faults[3].link, plan.faults[3].from_end, plan.faults[3].optional), (0, 0, false));
    assert_eq!(rule.action, Action::Drop);
    assert_eq!(rule.matcher.destinations, [(std::net::Ipv4Addr::new(10, 0, 0, 2), Qpn::new(4).unwrap())]);
    assert_eq!((&rule.matcher.psns[..], &rule.matcher.iterations[..]), (&[PsnMatch::Relative(15)][..], &[2][..]));
}

#[test]
fn the_sample_plays_on_the_scenario_it_is_for() {
    let dir = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("netns");
    let read = |name: &str| std::fs::read_to_string(dir.join(name)).unwrap();
    let mut plan = scenario::parse("pair.toml", &read("pair.toml")).unwrap().plan;
    lumina::parse("pair-lumina.yml", &read("pair-lumina.yml")).unwrap().apply(&mut plan).unwrap();
    let (outcome, _) = run(&plan);
    assert_eq!(outcome.shortcomings(&plan), []);
    assert_eq!(outcome.faults.iter().map(|report| report.fired).collect::<Vec<_>>(), [1, 1, 1]);
}

#[test]
fn every_event_happens_to_every_message_and_the_pass_is_not_the_transmission() {
    let mut plan = plan();
    lumina::parse("lumina.yml", CONFIGURATION).unwrap().apply(&mut plan).unwrap();
    let (outcome, hits) = run(&plan);
    assert_eq!(outcome.shortcomings(&plan), []);
    let fired: Vec<_> = outcome.faults.iter().map(|report| report.fired).collect();
    // Two messages each; of the last queue pair 2 x 16 packets.
    assert_eq!(fired, [2, 2, 2, 2, 32]);
    assert_eq!(outcome.counters.node(NodeId(1)).rx_icrc_encapsulated, 2);
    let dropped: Vec<_> = hits.0.iter().filter(|hit| hit.3 == Effect::Dropped).map(|hit| (hit.0, hit.1)).collect();
    // The second message begins at PSN 16.
    assert_eq!(dropped, [(2, 3), (2, 15), (2, 19), (2, 31)]);
    assert!(outcome.end > Instant::from_ps(64_000_000_000), "the last packet was lost: only the timer helps");
}

fn refuse(text: &str, place: &str, message: &str, help: &str) {
    let refused = match lumina::parse("events.yml", text) {
        Err(refused) => refused,
        Ok(script) => script.apply(&mut plan()).expect_err(text),
    };
    assert_eq!(refused.len(), 1, "{refused}");
    assert!(refused[0].message.contains(message), "{message} is not in\n{refused}");
    assert!(refused[0].help.contains(help), "{help} is not in\n{refused}");
    assert!(refused.render(false).contains("events.yml:"), "{refused}");
    let marked = &text[refused[0].span.start..];
    assert!(marked.starts_with(place), "`{marked}` is not `{place}`\n{refused}");
}

#[test]
fn events_that_cannot_happen_are_refused_with_their_place() {
    let event = |text: &str| format!("data-pkt-events:\n  - {{{text}}}\n");
    for (text, place, message, help) in [
        ("qpn: 0, psn: 4, type: lose, iter: 1", "lose", "is not a type of event", "bit-error"),
        ("qpn: 0, psn: 4, type: drop, iter: 0", "0", "`iter` cannot be 0", "from 1"),
        ("qpn: -1, psn: 4, type: drop, iter: 1", "-1", "`qpn` cannot be -1", "from 0"),
        ("qpn: 0, psn: some, type: drop, iter: 1", "some", "`psn` cannot be \"some\"", "from 0"),
        ("qpn: 0, psn: 4, type: drop", "{", "has no `iter`", "from 1"),
        ("qpn: 0, psn: 4, type: drop, iter: 1, itr: 2", "2", "no key `itr`", "known keys: qpn"),
        ("qpn: 5, psn: 4, type: drop, iter: 1", "{", "no connection 5", "has 5"),
        ("qpn: 4, psn: 4, type: drop, iter: 1", "{", "nobody posts to queue pair `q4`", "used"),
        (
            "qpn: 0, psn: 16, type: drop, iter: 1",
            "{",
            "no message of queue pair `q0` has a packet 16",
            "longest has 16",
        ),
    ] {
        refuse(&event(text), place, message, help);
    }
    refuse("traffic:\n  num-qps: 4\n", "", "no `data-pkt-events`", "under `traffic`");
    refuse("data-pkt-events: 7\n", "7", "expected sequence", "list");
    refuse("data-pkt-events: [\n", "[", "unclosed bracket", "list");
    refuse("a: 1\n\u{e4}: *x\n", "*x", "unknown anchor", "list");
    refuse("", "", "no `data-pkt-events`", "list");
}

#[test]
fn a_short_text_stays_a_small_document() {
    let mut bomb = "x0: &x0 [0, 0, 0, 0, 0, 0, 0, 0, 0]\n".to_owned();
    for n in 1..30 {
        bomb += &format!("x{n}: &x{n} [*x{0}, *x{0}, *x{0}, *x{0}, *x{0}, *x{0}, *x{0}, *x{0}, *x{0}]\n", n - 1);
    }
    assert!(lumina::parse("bomb.yml", &format!("{bomb}data-pkt-events: *x29\n")).is_err());
    assert!(lumina::parse("deep.yml", &"[".repeat(100_000)).is_err());
    assert!(lumina::parse("long.yml", &" ".repeat(2 << 20)).is_err());
}

proptest! {
    #[test]
    fn any_text_has_an_answer(text in any::<String>()) {
        answer(&text);
    }

    #[test]
    fn a_broken_configuration_has_an_answer(
        mutations in prop::collection::vec((any::<prop::sample::Index>(), 0..30_usize, 0..PIECES.len()), 1..6),
    ) {
        answer(&mutations.into_iter().fold(CONFIGURATION.to_owned(), |text, (from, length, piece)| {
            let from = text.floor_char_boundary(from.index(text.len() + 1));
            let to = text.ceil_char_boundary((from + length).min(text.len()));
            format!("{}{}{}", &text[..from], PIECES[piece], &text[to..])
        }));
    }
}

const PIECES: [&str; 20] = [
    "",
    " ",
    "\n",
    ":",
    "- ",
    "&a ",
    "*a",
    "<<: ",
    "{",
    "}",
    "[",
    "]",
    "\"",
    "!!int ",
    "| ",
    "---",
    "all",
    "99999999999",
    "~",
    "\u{e4}\t",
];

/// Whatever the text says: events that fit a plan or do not, or refusals that can be shown.
fn answer(text: &str) {
    match lumina::parse("any.yml", text) {
        Ok(script) => drop(script.apply(&mut plan()).map_err(|refused| refused.render(true))),
        Err(refused) => assert!(refused.has_errors() && !refused.render(true).is_empty()),
    }
}
