//! Every key that a scenario file may have, one line each, for people who look one up.
//!
//! Attributes, events, counters and the words of faults come from the tables that drive the reading of files. The keys of
//! the other tables are listed here, and a test holds the list against what the reader asks for.

use super::attributes::{Attribute, attributes};
use super::expect::event_fields;
use super::quantity::Quantity;
use super::{faults, injection, matching};
use crate::trace::{EventKind, NodeCounters};

/// One part of the reference.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Topic {
    pub name: &'static str,
    /// One line.
    pub about: &'static str,
    /// One for each key: where it stands, the key with its default or an example, and what it means.
    pub lines: Vec<String>,
}

/// Keys of one kind of table: the topic, the table, and name, example and meaning of each.
type Section = (&'static str, &'static str, &'static [(&'static str, &'static str, &'static str)]);

const ABOUT: [(&str, &str); 17] = [
    ("scenario", "the scenario as a whole"),
    ("run", "how long it runs, and what it records"),
    ("topology", "nodes, switches and links in one line"),
    ("nic", "every NIC; of one NIC under [nodes.NAME.nic]"),
    ("switch", "every switch; of one switch under [switches.NAME]"),
    ("links", "who is joined to whom"),
    ("queue_pairs", "connections, for posts that name one"),
    ("posts", "who sends what, and when"),
    ("applications", "processes of their own that use a NIC"),
    ("faults", "what goes wrong on purpose"),
    ("match", "which frames a fault happens to; every condition may be a list, any of which will do"),
    ("frame", "a frame that a fault injects: octets in hex, or a table"),
    ("expect", "what has to hold of a run"),
    ("events", "what expectations and events.jsonl call what happens, with the fields of each"),
    ("counters", "what expectations and summary.json count, per node"),
    ("opcodes", "what `match` and `frame` call packets of messages"),
    ("units", "how quantities are written"),
];

const SECTIONS: [Section; 24] = [
    (
        "scenario",
        "[scenario]",
        &[
            ("name", "\"pair\"", "Of the output directory. The file's name unless given."),
            ("description", "\"…\"", "For people."),
            ("seed", "1", "Of every random choice: the same seed gives the same run."),
        ],
    ),
    (
        "run",
        "[run]",
        &[
            ("until", "\"10s\"", "time: Emulated end; what is unfinished then fails the run."),
            ("allow_lossless_drops", "false", "true or false: Whether frames of PFC classes may be dropped."),
        ],
    ),
    (
        "topology",
        "[topology]",
        &[
            ("star", "{ nics = 3 }", "NICs n1, n2 … around switch s1."),
            (
                "leaf_spine",
                "{ leaves = 2, spines = 2, nics_per_leaf = 2 }",
                "NICs n1, n2 …, switches leaf1 … and spine1 …",
            ),
        ],
    ),
    ("topology", "[topology] star", &[("nics", "3", "How many NICs.")]),
    (
        "topology",
        "[topology] leaf_spine",
        &[
            ("leaves", "2", "How many switches with NICs."),
            ("spines", "2", "How many switches between those."),
            ("nics_per_leaf", "2", "How many NICs at each leaf."),
        ],
    ),
    ("nic", "[nodes.NAME]", &[("nic", "{ mss = \"1024B\" }", "What differs from [nic] for this node.")]),
    (
        "links",
        "[[links]]",
        &[
            ("ends", "[\"a\", \"b\"]", "required: The nodes or switches at its ends."),
            (
                "delay",
                "\"100ns\"",
                "time: Propagation; of the sending end's `delay` unless given. May differ: { a = …, b = … }.",
            ),
            (
                "data_rate",
                "\"400Gbps\"",
                "rate: The lower one of both ends holds; theirs unless given. May differ, as `delay`.",
            ),
        ],
    ),
    (
        "queue_pairs",
        "[[queue_pairs]]",
        &[
            ("name", "\"q1\"", "required: For posts, faults and expectations to refer to."),
            ("ends", "[\"a\", \"b\"]", "required: The two NICs."),
            ("qpn", "2", "Number at both ends, or { a = 2, b = 7 }; from 2 upward unless given."),
            ("initial_psn", "0xfffff0", "First PSN, at both ends or per end; 0 unless given."),
            (
                "data_class",
                "0",
                "class 0 to 7: Of data; the NIC's rdma_data_packet_tc unless given. May differ per end.",
            ),
            (
                "control_class",
                "1",
                "class 0 to 7: Of ACKs; the NIC's rdma_control_packet_tc unless given. May differ per end.",
            ),
        ],
    ),
    (
        "posts",
        "[[posts]]",
        &[
            ("queue_pair", "\"q1\"", "The connection; without it, one is made from `from` to `to`."),
            ("from", "\"a\"", "required: Who sends; a pattern such as \"n*\" or a list means several."),
            ("to", "\"b\"", "Who receives."),
            ("shift", "2", "Instead of `to`: the sender that stands so many places further in `from`."),
            ("verb", "\"write\"", "write or send."),
            ("size", "\"1MiB\"", "size, required: Of each message, up to 2GiB."),
            ("at", "\"0ns\"", "time: When the first is posted."),
            ("count", "1", "How many."),
            ("every", "\"0ns\"", "time: From one to the next; all at once unless given."),
            ("inline", "false", "The payload is in the WQE: with modelled doorbells it is not fetched. Up to 480B."),
            ("blue_flame", "false", "With modelled doorbells: the WQE travels with the doorbell, and is not fetched."),
        ],
    ),
    (
        "applications",
        "[[applications]]",
        &[
            ("name", "\"client\"", "required: How it calls itself when it opens the device."),
            ("node", "\"a\"", "required: Whose NIC it uses."),
            ("at", "\"0ns\"", "time: When it has its first turn."),
        ],
    ),
    (
        "faults",
        "[[faults]]",
        &[
            ("name", "\"the loss\"", "For results and expectations to name it; \"fault 1\" … unless given."),
            ("from", "\"a\"", "required: With `to`, the two ends of one link, in the direction of travel."),
            ("to", "\"b\"", "required."),
            ("action", "\"drop\"", "required: What happens; see below."),
            (
                "optional",
                "false",
                "true or false: Whether it need not happen. Otherwise a fault that never does fails the run.",
            ),
            ("match", "{ psn = 3 }", "Which frames; all unless given. See `rocemu explain match`."),
            ("both_ways", "false", "true or false: Whether it also happens on the way back; `down` does."),
            ("by", "\"5us\"", "time: How much later a delayed frame arrives."),
            ("after", "2", "Behind how many later frames a reordered one arrives."),
            ("field", "\"payload\"", "What is corrupted: payload, bth or icrc."),
            ("bit", "0", "Which bit of it."),
            ("dscp", "24", "The DSCP to set, 0 to 63."),
            ("at", "\"5us\"", "time: When the link goes down, or the first frame is injected."),
            ("until", "\"7us\"", "time: When the link is up again."),
            ("every", "\"10us\"", "time: From one injected frame to the next."),
            ("count", "2", "How many are injected; one, or with `every` as many as fit, unless given."),
            ("frame", "{ kind = \"xoff\" }", "What is injected. See `rocemu explain frame`."),
        ],
    ),
    (
        "match",
        "match",
        &[
            ("kind", "\"data\"", "Of frame; see below."),
            ("opcode", "\"write_first\"", "See `rocemu explain opcodes`."),
            ("message", "0", "Message number, from 0 in the order of the file; \"3..5\" is a range."),
            ("queue_pair", "\"q1\"", "Its name, or \"a->b\" for the one that posts without a name make."),
            ("psn", "3", "PSN; \"100..110\" is a range."),
            ("packet", "3", "Packet of its message, from 0; \"3..5\" is a range."),
            ("transmission", "1", "Which transmission of its PSN, from 1."),
            ("iteration", "1", "Which pass over its message, from 1; each jump of the PSNs begins another."),
            ("since", "\"5us\"", "time: Not before."),
            ("until", "\"9us\"", "time: Not from then on."),
            ("probability", "0.001", "fraction: Drawn from the frames that all of this allows."),
            ("nth", "10", "By number among those that are left, from 1."),
            ("times", "1", "At most so often."),
        ],
    ),
    (
        "frame",
        "frame",
        &[("kind", "\"ack\"", "required: See below."), ("class", "0", "class 0 to 7: The queue pair's unless given.")],
    ),
    ("frame", "frame xoff", &[("quanta", "65535", "How long the pause asks for, in units of 512 bit times.")]),
    (
        "frame",
        "frame cnp",
        &[
            ("queue_pair", "\"q1\"", "For whom."),
            ("qpn", "77", "Or for the number of a queue pair that need not exist."),
            ("ce", "false", "true or false: Whether it has a congestion mark."),
        ],
    ),
    ("frame", "frame ack", &[("psn", "9000", "required."), ("msn", "0", "Number of messages that it acknowledges.")]),
    ("frame", "frame nak", &[("code", "\"psn_sequence_error\"", "Why; see below.")]),
    (
        "frame",
        "frame data",
        &[
            ("opcode", "\"write_first\"", "required: See `rocemu explain opcodes`."),
            ("psn", "0", "required."),
            ("payload", "\"64B\"", "size: Zeros that it carries."),
            ("address", "0x100000000", "Of its RETH."),
            ("rkey", "1", "Of its RETH."),
            ("length", "\"128B\"", "size: Of its RETH; the payload's unless given."),
        ],
    ),
    (
        "expect",
        "[[expect]]",
        &[
            ("name", "\"one NAK\"", "For results; \"expectation 1\" … unless given."),
            ("counter", "\"num_nacks_sent\"", "A counter. See `rocemu explain counters`."),
            ("message", "0", "A message, a range \"0..15\", or \"all\"."),
            ("event", "\"nak_made\"", "An event. See `rocemu explain events`."),
            (
                "order",
                "[\"paused\", \"resumed\"]",
                "Events, each the first after the one before; a table may say more of one.",
            ),
            ("rate", "\"delivery\"", "Payload over time: wire, delivery or goodput."),
            ("no_drops", "true", "No frame dropped, by links or nodes."),
            ("no_retransmissions", "true", "No packet sent again."),
            ("fault", "\"the loss\"", "A fault, by its name."),
            (
                "node",
                "\"a\"",
                "Of counters, events, no_drops and no_retransmissions: which node; all of them unless given.",
            ),
        ],
    ),
    (
        "expect",
        "[[expect]] counter",
        &[("equals", "1", "Exactly."), ("at_least", "1", "At least."), ("at_most", "1", "At most.")],
    ),
    (
        "expect",
        "[[expect]] message",
        &[
            ("status", "\"completed\"", "completed, delivered or unfinished."),
            ("completed", "\"64021975208ps\"", "time: Exactly when the sender knew."),
            ("completed_after", "\"1us\"", "time."),
            ("completed_before", "\"5us\"", "time."),
            ("delivered", "\"21us\"", "time: Exactly when the receiver had it."),
            ("delivered_after", "\"1us\"", "time."),
            ("delivered_before", "\"5us\"", "time."),
            ("retransmissions", "1", "Exactly so many packets sent again."),
            ("retransmissions_at_least", "1", "At least."),
            ("retransmissions_at_most", "1", "At most."),
            ("goodput_at_least", "\"390Gbps\"", "rate: Of each message, from post to completion."),
            ("goodput_at_most", "\"400Gbps\"", "rate."),
        ],
    ),
    (
        "expect",
        "[[expect]] event",
        &[
            ("where", "{ expected = 100 }", "Fields of the event that have to be so; a list means any."),
            ("at", "\"9us\"", "time: Exactly then; others are not counted."),
            ("after", "\"1us\"", "time: Only later ones."),
            ("before", "\"9us\"", "time: Only earlier ones."),
            ("within", "\"1us\"", "time: Only so soon after one that `of` describes."),
            ("of", "{ event = \"rewound\" }", "With `event`, `node` and `where`, as here."),
            ("count", "1", "Exactly so many; at least one unless anything is said."),
            ("at_least", "1", "At least."),
            ("at_most", "1", "At most."),
        ],
    ),
    (
        "expect",
        "[[expect]] rate",
        &[
            ("from", "\"a\"", "Of what this node sends."),
            ("to", "\"b\"", "Of what this node receives."),
            ("at_least", "\"390Gbps\"", "rate."),
            ("at_most", "\"400Gbps\"", "rate."),
        ],
    ),
    (
        "expect",
        "[[expect]] fault",
        &[("fired", "1", "Exactly so often."), ("at_least", "1", "At least."), ("at_most", "1", "At most.")],
    ),
];

/// All of it, in the order in which a reader wants to meet it.
pub fn topics() -> Vec<Topic> {
    ABOUT.into_iter().map(|(name, about)| Topic { name, about, lines: lines(name) }).collect()
}

/// The topic of a table, by what messages call it: `[nodes.a.nic.ecn]`, `[[posts]]`.
pub(super) fn topic_of(table: &str) -> &'static str {
    let mut words = table.split(|c: char| !c.is_ascii_alphanumeric() && c != '_').filter(|word| !word.is_empty());
    match words.next() {
        Some("nodes") => "nic",
        Some("switches") => "switch",
        Some("of" | "an") => "expect",
        Some(word) => ABOUT.iter().map(|(name, _)| *name).find(|name| *name == word).unwrap_or_default(),
        None => "",
    }
}

fn lines(topic: &str) -> Vec<String> {
    let sections = SECTIONS.iter().filter(|(of, ..)| *of == topic);
    let keys = sections.flat_map(|(_, table, keys)| {
        keys.iter().map(move |(name, example, meaning)| format!("{table}  {name} = {example}  # {meaning}"))
    });
    let owned = attributes().filter(|attribute| attribute.table.split('.').next() == Some(topic)).map(attribute);
    keys.chain(owned).chain(words(topic)).collect()
}

fn attribute(attribute: &Attribute) -> String {
    let Attribute { table, name, default, meaning, seed_name, .. } = attribute;
    let alias = seed_name.map(|seed| format!(" ({seed})")).unwrap_or_default();
    format!("[{table}]  {name} = {default}  # {}: {meaning}{alias}", attribute.unit())
}

/// What values can be, where they are words.
fn words(topic: &str) -> Vec<String> {
    match topic {
        "faults" => {
            faults::actions().map(|(action, keys)| format!("action  \"{action}\"  # {}", keys.join(", "))).collect()
        }
        "match" => matching::kinds_known().map(|kind| format!("kind  \"{kind}\"")).collect(),
        "frame" => {
            let kinds = injection::kinds_known().map(|kind| format!("kind  \"{kind}\""));
            kinds.chain(injection::codes_known().map(|code| format!("code  \"{code}\""))).collect()
        }
        "events" => {
            let event = |name: &&str| format!("event  {name}  # {}", event_fields(name).join(", "));
            EventKind::NAMES.iter().map(event).collect()
        }
        "counters" => NodeCounters::meanings().map(|(name, meaning)| format!("counter  {name}  # {meaning}")).collect(),
        "opcodes" => matching::opcodes_known().map(|(word, _)| format!("opcode  \"{word}\"")).collect(),
        "units" => Quantity::ALL.iter().map(|quantity| format!("{}: {}", quantity.name(), quantity.help())).collect(),
        _ => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    const NETWORK: &str = "[nodes.a]\n[nodes.b]\n[[links]]\nends = ['a', 'b']\n[[queue_pairs]]\nname = 'q1'\n\
                           ends = ['a', 'b']\n[[posts]]\nqueue_pair = 'q1'\nfrom = 'a'\nsize = '1KiB'\n";

    /// The keys that the reader says it knows where it meets `zzz`.
    fn known(table: &str) -> BTreeSet<String> {
        let text = format!("{table}\n{NETWORK}");
        let refused = super::super::parse("zzz.toml", &text).expect_err(&text);
        let helps = refused.iter().filter(|diagnostic| diagnostic.message.ends_with("has no key `zzz`"));
        let helps: Vec<_> = helps.map(|diagnostic| diagnostic.help.as_str()).collect();
        let [help] = helps[..] else { panic!("{text}: {refused}") };
        let (_, list) = help.split_once("known keys: ").expect(help);
        let (list, _) = list.split_once("; `rocemu explain").unwrap_or((list, ""));
        assert!(!list.contains('\u{2026}'), "{list}");
        list.split(", ").map(str::to_owned).collect()
    }

    /// The keys of some tables of the reference.
    fn listed(tables: &[&str]) -> BTreeSet<String> {
        let sections = SECTIONS.iter().filter(|(_, table, _)| tables.contains(table));
        let keys: BTreeSet<_> =
            sections.flat_map(|(.., keys)| keys.iter().map(|(name, ..)| (*name).to_owned())).collect();
        assert!(!keys.is_empty(), "{tables:?}");
        keys
    }

    #[test]
    fn the_reference_has_every_key_that_the_reader_knows_and_no_other() {
        let frame =
            |rest: &str| format!("[[faults]]\naction = 'inject'\nfrom = 'a'\nto = 'b'\nframe = {{ {rest}, zzz = 1 }}");
        let expect = |rest: &str| format!("[[expect]]\nzzz = 1\n{rest}");
        let cases = [
            ("[scenario]\nzzz = 1".to_owned(), &["[scenario]"][..]),
            ("[topology]\nzzz = 1".to_owned(), &["[topology]"]),
            ("[topology]\nstar = { nics = 1, zzz = 1 }".to_owned(), &["[topology] star"]),
            ("[topology]\nleaf_spine = { zzz = 1 }".to_owned(), &["[topology] leaf_spine"]),
            ("[nodes.c]\nzzz = 1".to_owned(), &["[nodes.NAME]"]),
            ("[[links]]\nzzz = 1".to_owned(), &["[[links]]"]),
            ("[[queue_pairs]]\nzzz = 1".to_owned(), &["[[queue_pairs]]"]),
            ("[[faults]]\nzzz = 1".to_owned(), &["[[faults]]"]),
            ("[[applications]]\nzzz = 1".to_owned(), &["[[applications]]"]),
            ("[[faults]]\nfrom = 'a'\nto = 'b'\naction = 'drop'\nmatch = { zzz = 1 }".to_owned(), &["match"]),
            (frame("kind = 'xoff'"), &["frame", "frame xoff"]),
            (frame("kind = 'xon'"), &["frame"]),
            (frame("kind = 'cnp'"), &["frame", "frame cnp"]),
            (frame("kind = 'ack'"), &["frame", "frame cnp", "frame ack"]),
            (frame("kind = 'nak'"), &["frame", "frame cnp", "frame ack", "frame nak"]),
            (frame("kind = 'data'"), &["frame", "frame cnp", "frame data"]),
            (expect("counter = 'num_rto'"), &["[[expect]]", "[[expect]] counter"]),
            (expect("event = 'rewound'"), &["[[expect]]", "[[expect]] event"]),
            (expect("no_drops = true"), &["[[expect]]"]),
        ];
        for (text, tables) in cases {
            assert_eq!(known(&text), listed(tables), "{text}");
        }
        // Those of one subject that another has not: `node` is only where it means something.
        for (text, tables) in [
            (expect("message = 0"), ["[[expect]]", "[[expect]] message"]),
            (expect("rate = 'wire'"), ["[[expect]]", "[[expect]] rate"]),
            (expect("fault = 'x'"), ["[[expect]]", "[[expect]] fault"]),
        ] {
            let mut listed = listed(&tables);
            assert!(listed.remove("node"));
            assert_eq!(known(&text), listed, "{text}");
        }
        // A post has `shift` where it names no queue pair.
        let post = known("[[posts]]\nfrom = 'a'\nto = 'b'\nsize = '1B'\nzzz = 1");
        assert_eq!(post, listed(&["[[posts]]"]));
        let attributes =
            attributes().filter(|attribute| attribute.table == "run").map(|attribute| attribute.name.to_owned());
        assert_eq!(known("[run]\nzzz = 1"), listed(&["[run]"]).into_iter().chain(attributes).collect());
        // And every table is in some topic.
        for table in known("zzz = 1") {
            assert!(!topic_of(&table).is_empty(), "{table}");
        }
    }

    #[test]
    fn every_line_is_short_and_every_topic_has_some() {
        for topic in topics() {
            assert!(!topic.lines.is_empty(), "{}", topic.name);
            for line in topic.lines {
                assert!(line.chars().count() < 240 && !line.contains('\n'), "{line}");
            }
        }
        let all: Vec<_> = topics().into_iter().flat_map(|topic| topic.lines).collect();
        for words in ["[nic]  mss = \"4096B\"", "event  nak_made  # qpn, expected, got", "counter  num_rto  # Expiries"]
        {
            assert!(all.iter().any(|line| line.starts_with(words)), "{words}");
        }
        for owned in attributes() {
            assert!(all.contains(&attribute(owned)), "{} of {} is in no topic", owned.name, owned.table);
        }
    }
}
