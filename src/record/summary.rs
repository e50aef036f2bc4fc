//! `summary.json`: the figures of a run.

use std::io::{self, BufWriter, Write};

use serde::{Serialize, Serializer};

use super::into_inner;
use super::messages::{MessageRow, MessageStats, MessageStatus};
use super::peaks::Peaks;
use crate::base::{Class, Instant, MessageId, NodeId, Octets, PortId, Rate, Span};
use crate::trace::{Counters, Ledger, Names, NodeCounters};
use crate::wire::Verb;

/// How a run ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    AllWell,
    /// The reasons, for people, most important first.
    Failed(Vec<String>),
}

/// What summary and digest are made from: the sinks of a run, and what only its caller knows.
#[derive(Clone, Copy, Debug)]
pub struct SummaryInput<'a> {
    pub scenario: &'a str,
    pub seed: u64,
    /// Of the emulator.
    pub version: &'a str,
    pub outcome: &'a Outcome,
    /// The last completion or delivery, or where the run was cut off.
    pub end: Instant,
    pub names: &'a Names,
    pub messages: &'a MessageStats,
    pub counters: &'a Counters,
    pub ledger: &'a Ledger,
    pub peaks: &'a Peaks,
    /// Octets of receive memory that were compared with what was sent, and were equal.
    pub compared: Octets,
    /// Whether there is a capture for the digest to point at.
    pub has_capture: bool,
}

/// Writes `summary.json`: one object, its keys always in the same order.
///
/// `verdict` is `all_well` or `failed`, the latter with `reasons`. Times are picoseconds, `goodput_bps` is bit/s from
/// post to completion rounded half up, the median is the lower middle one. What did not happen is null. `messages.each`
/// lists the first 1,000 messages; the figures beside it cover all of them. Of `peaks`, only pools that were used stand
/// there.
///
/// * Errors: those of the writer.
pub fn write_summary<W: Write>(writer: W, input: &SummaryInput<'_>) -> io::Result<W> {
    let mut writer = BufWriter::new(writer);
    serde_json::to_writer_pretty(&mut writer, &Summary::new(input))?;
    writer.write_all(b"\n")?;
    into_inner(writer)
}

#[derive(Serialize)]
struct Summary<'a> {
    scenario: &'a str,
    seed: u64,
    version: &'a str,
    verdict: &'static str,
    reasons: &'a [String],
    end_ps: Instant,
    compared_octets: Octets,
    messages: Messages<'a>,
    nodes: Vec<Node<'a>>,
    ledger: Map<&'static str, Account>,
}

#[derive(Serialize)]
struct Messages<'a> {
    posted: u64,
    completed: u64,
    delivered: u64,
    bytes: Octets,
    completed_bytes: Octets,
    retransmissions: u64,
    completion_ps: Option<Spread>,
    goodput_bps: Option<u64>,
    each: Vec<Message<'a>>,
}

#[derive(Serialize)]
struct Spread {
    min: Span,
    median: Span,
    max: Span,
}

#[derive(Serialize)]
struct Message<'a> {
    message: MessageId,
    node: &'a str,
    peer: &'a str,
    verb: Verb,
    bytes: Octets,
    posted_ps: Instant,
    completed_ps: Option<Instant>,
    delivered_ps: Option<Instant>,
    completion_ps: Option<Span>,
    goodput_bps: Option<u64>,
    retransmissions: u64,
    status: MessageStatus,
}

#[derive(Serialize)]
struct Node<'a> {
    node: &'a str,
    counters: Map<&'static str, u64>,
    /// By class.
    egress_peak_octets: Map<Class, Octets>,
    ports: Vec<Port<'a>>,
}

#[derive(Serialize)]
struct Port<'a> {
    port: &'a str,
    rate_bps: Rate,
    /// By class.
    ingress_peak_octets: Map<Class, Octets>,
}

#[derive(Serialize)]
struct Account {
    entered: u64,
    left: u64,
    dropped: u64,
    held: u64,
}

/// An object whose keys stand in the order of the list.
struct Map<K, V>(Vec<(K, V)>);

impl<K: Serialize, V: Serialize> Serialize for Map<K, V> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|(key, value)| (key, value)))
    }
}

impl<'a> Summary<'a> {
    fn new(input: &SummaryInput<'a>) -> Self {
        let (verdict, reasons) = match input.outcome {
            Outcome::AllWell => ("all_well", [].as_slice()),
            Outcome::Failed(reasons) => ("failed", reasons.as_slice()),
        };
        let nodes = (0..).map(NodeId).zip(input.counters.iter());
        let accounts = input.ledger.iter().map(|(account, b)| {
            let balance = Account { entered: b.entered, left: b.left, dropped: b.dropped, held: b.held };
            (account.name(), balance)
        });
        Self {
            scenario: input.scenario,
            seed: input.seed,
            version: input.version,
            verdict,
            reasons,
            end_ps: input.end,
            compared_octets: input.compared,
            messages: Messages::new(input),
            nodes: nodes.map(|(node, counters)| Node::new(input, node, counters)).collect(),
            ledger: Map(accounts.collect()),
        }
    }
}

impl<'a> Messages<'a> {
    fn new(input: &SummaryInput<'a>) -> Self {
        let totals = input.messages.totals();
        Self {
            posted: totals.posted,
            completed: totals.completed,
            delivered: totals.delivered,
            bytes: totals.bytes,
            completed_bytes: totals.completed_bytes,
            retransmissions: totals.retransmissions,
            completion_ps: input.messages.completion_times().map(|[min, median, max]| Spread { min, median, max }),
            goodput_bps: input.messages.goodput_bps(),
            each: input.messages.rows().map(|row| Message::new(input.names, row)).collect(),
        }
    }
}

impl<'a> Message<'a> {
    fn new(names: &'a Names, row: &MessageRow) -> Self {
        Self {
            message: row.message,
            node: names.node(row.node),
            peer: names.node(row.peer),
            verb: row.verb,
            bytes: row.bytes,
            posted_ps: row.posted,
            completed_ps: row.completed,
            delivered_ps: row.delivered,
            completion_ps: row.completion_time(),
            goodput_bps: row.goodput_bps(),
            retransmissions: row.retransmissions,
            status: row.status(),
        }
    }
}

impl<'a> Node<'a> {
    fn new(input: &SummaryInput<'a>, node: NodeId, counters: &NodeCounters) -> Self {
        let used = |peak: &dyn Fn(Class) -> Octets| {
            Map(Class::all().map(|class| (class, peak(class))).filter(|(_, peak)| !peak.is_zero()).collect())
        };
        let ports = input.names.nodes[node.index()].ports.iter().zip((0..).map(PortId));
        Self {
            node: input.names.node(node),
            counters: Map(counters.iter().collect()),
            egress_peak_octets: used(&|class| input.peaks.egress(node, class)),
            ports: ports
                .map(|(names, port)| Port {
                    port: &names.name,
                    rate_bps: names.rate,
                    ingress_peak_octets: used(&|class| input.peaks.ingress(node, port, class)),
                })
                .collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::story::{Full, Run, clean};
    use super::*;

    fn written(run: &Run, outcome: &Outcome) -> String {
        String::from_utf8(write_summary(Vec::new(), &run.input(outcome)).unwrap()).unwrap()
    }

    #[test]
    fn the_summary_of_a_clean_run() {
        let text = written(&Run::of(&clean()), &Outcome::AllWell);
        insta::assert_snapshot!(text.split_once("\"num_pkts_sent\"").unwrap().0, @r#"
        {
          "scenario": "story",
          "seed": 1,
          "version": "0.1.0",
          "verdict": "all_well",
          "reasons": [],
          "end_ps": 519524,
          "compared_octets": 8192,
          "messages": {
            "posted": 1,
            "completed": 1,
            "delivered": 1,
            "bytes": 8192,
            "completed_bytes": 8192,
            "retransmissions": 0,
            "completion_ps": {
              "min": 519524,
              "median": 519524,
              "max": 519524
            },
            "goodput_bps": 126146241560,
            "each": [
              {
                "message": 0,
                "node": "a",
                "peer": "b",
                "verb": "write",
                "bytes": 8192,
                "posted_ps": 0,
                "completed_ps": 519524,
                "delivered_ps": 486293,
                "completion_ps": 519524,
                "goodput_bps": 126146241560,
                "retransmissions": 0,
                "status": "completed"
              }
            ]
          },
          "nodes": [
            {
              "node": "a",
              "counters": {
                "total_packets_tx": 2,
                "total_packets_rx": 1,
                "total_bytes_tx": 8308,
                "total_bytes_rx": 126,
                "rx_drops": 0,
        "#);
        let read: serde_json::Value = serde_json::from_str(&text).unwrap();
        assert_eq!(read["nodes"][1]["node"], "b");
        let port = json!({ "port": "b:a", "rate_bps": 400_000_000_000_u64, "ingress_peak_octets": { "0": 4_136 } });
        assert_eq!(read["nodes"][1]["ports"][0], port);
        assert_eq!(read["ledger"]["messages"], json!({ "entered": 1, "left": 1, "dropped": 0, "held": 0 }));
    }

    #[test]
    fn a_failed_run_says_why() {
        let outcome = Outcome::Failed(vec!["message 0 is unfinished".into()]);
        let read: serde_json::Value = serde_json::from_str(&written(&Run::of(&clean()[..7]), &outcome)).unwrap();
        assert_eq!(read["verdict"], "failed");
        assert_eq!(read["reasons"], json!(["message 0 is unfinished"]));
        assert_eq!(read["messages"]["each"][0]["status"], "unfinished");
        assert!(read["messages"]["each"][0]["goodput_bps"].is_null() && read["messages"]["completion_ps"].is_null());
    }

    #[test]
    fn an_empty_run_has_a_summary() {
        let read: serde_json::Value = serde_json::from_str(&written(&Run::of(&[]), &Outcome::AllWell)).unwrap();
        assert_eq!(read["messages"]["each"], json!([]));
        assert_eq!(read["end_ps"], 0);
    }

    #[test]
    fn a_full_disk_is_an_error() {
        let run = Run::of(&clean());
        let written = write_summary(Full(10), &run.input(&Outcome::AllWell));
        assert_eq!(written.err().map(|e| e.kind()), Some(io::ErrorKind::StorageFull));
    }
}
