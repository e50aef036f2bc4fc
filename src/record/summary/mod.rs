//! `summary.json`: the figures of a run.

use std::io::{self, BufWriter, Write};

use serde::{Serialize, Serializer};

use super::attribution::QueuePairTime;
use super::into_inner;
use super::messages::{MessageRow, MessageStats, MessageStatus};
use super::peaks::Peaks;
use super::pressure::{PcieUse, Pressure};
use crate::base::{Class, Instant, MessageId, NodeId, Octets, PortId, Qpn, Rate, Span};
use crate::trace::{Counters, Ledger, Limits, Names, NodeCounters, PcieDirection, PortNames};
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
    /// Sizes and thresholds that the peaks compare with.
    pub limits: &'a Limits,
    pub pressure: &'a Pressure,
    /// [`Attribution::at_end`](super::Attribution::at_end) of `end`.
    pub queue_pairs: &'a [QueuePairTime],
    /// Octets of receive memory that were compared with what was sent, and were equal.
    pub compared: Octets,
    /// Whether there is a capture for the digest to point at.
    pub has_capture: bool,
}

/// Writes `summary.json`: one object, its keys always in the same order.
///
/// `verdict` is `all_well` or `failed`, the latter with `reasons`. Times are picoseconds, `goodput_bps` is bit/s from
/// post to completion rounded half up, the median is the lower middle one. What did not happen is null. `messages.each`
/// lists the first 1,000 messages; the figures beside it cover all of them. `queue_pairs` says for every end that posted
/// what its time went to: `time_ps` adds up to `end_ps`, in the order of [`Cause`](super::Cause). What a node has by
/// class stands under the class's number, peaks and pauses only where there were any; `xoff_octets` and `xon_octets` only
/// where PFC is enabled. PCIe octets have their overhead with them; `use_per_mille` is their share of what the link could
/// have carried by `end_ps`.
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
    queue_pairs: Vec<QueuePair<'a>>,
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
struct QueuePair<'a> {
    node: &'a str,
    peer: &'a str,
    qpn: Qpn,
    time_ps: Map<&'static str, Span>,
}

#[derive(Serialize)]
struct Node<'a> {
    node: &'a str,
    counters: Map<&'static str, u64>,
    /// By class.
    egress_peak_octets: Map<Class, Octets>,
    egress_pool_octets: Map<Class, Octets>,
    /// By the paused class whose full egress pool did it, to all queue pairs.
    generation_stopped_ps: Map<Class, Span>,
    pcie: Map<&'static str, Pcie>,
    ports: Vec<Port<'a>>,
}

#[derive(Serialize)]
struct Pcie {
    rate_bps: Rate,
    octets: Octets,
    use_per_mille: u64,
    tx_header_peak_octets: Octets,
    tx_data_peak_octets: Octets,
    rx_header_peak_octets: Octets,
    rx_data_peak_octets: Octets,
}

#[derive(Serialize)]
struct Port<'a> {
    port: &'a str,
    rate_bps: Rate,
    /// By class.
    ingress_peak_octets: Map<Class, Octets>,
    ingress_pool_octets: Map<Class, Octets>,
    xoff_octets: Map<Class, Octets>,
    xon_octets: Map<Class, Octets>,
    /// What this port asked of its peer, refreshes included.
    pauses_requested: Map<Class, u64>,
    /// For how long its peer held it back.
    paused_ps: Map<Class, Span>,
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
            queue_pairs: input.queue_pairs.iter().map(|time| QueuePair::new(input.names, time)).collect(),
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

impl<'a> QueuePair<'a> {
    fn new(names: &'a Names, time: &QueuePairTime) -> Self {
        Self {
            node: names.node(time.node),
            peer: names.node(time.peer),
            qpn: time.qpn,
            time_ps: Map(time.times.iter().map(|(cause, span)| (cause.key(), span)).collect()),
        }
    }
}

impl<'a> Node<'a> {
    fn new(input: &SummaryInput<'a>, node: NodeId, counters: &NodeCounters) -> Self {
        let limits = &input.limits.nodes[node.index()];
        let ports = input.names.nodes[node.index()].ports.iter().zip((0..).map(PortId));
        let pcie = [("to_host", PcieDirection::ToHost), ("from_host", PcieDirection::FromHost)];
        let pcie = pcie.map(|(key, direction)| Some((key, Pcie::new(input, input.pressure.pcie(node, direction)?))));
        Self {
            node: input.names.node(node),
            counters: Map(counters.iter().collect()),
            egress_peak_octets: by_class(|class| some(input.peaks.egress(node, class))),
            egress_pool_octets: by_class(|class| limits.egress[class.index()]),
            generation_stopped_ps: by_class(|class| some(input.pressure.stopped_by_pause(node, class))),
            pcie: Map(pcie.into_iter().flatten().collect()),
            ports: ports.map(|(names, port)| Port::new(input, names, node, port)).collect(),
        }
    }
}

impl Pcie {
    fn new(input: &SummaryInput<'_>, pcie: PcieUse) -> Self {
        Self {
            rate_bps: pcie.rate,
            octets: pcie.carried,
            use_per_mille: pcie.per_mille(input.end),
            tx_header_peak_octets: pcie.tx_header_peak,
            tx_data_peak_octets: pcie.tx_data_peak,
            rx_header_peak_octets: pcie.rx_header_peak,
            rx_data_peak_octets: pcie.rx_data_peak,
        }
    }
}

impl<'a> Port<'a> {
    fn new(input: &SummaryInput<'a>, names: &'a PortNames, node: NodeId, port: PortId) -> Self {
        let limits = input.limits.nodes[node.index()].ports[port.index()];
        let limit = |class: Class| limits[class.index()];
        Self {
            port: &names.name,
            rate_bps: names.rate,
            ingress_peak_octets: by_class(|class| some(input.peaks.ingress(node, port, class))),
            ingress_pool_octets: by_class(|class| Some(limit(class)?.pool)),
            xoff_octets: by_class(|class| Some(limit(class)?.pfc?.0)),
            xon_octets: by_class(|class| Some(limit(class)?.pfc?.1)),
            pauses_requested: by_class(|class| some(input.pressure.pauses_sent(node, port, class))),
            paused_ps: by_class(|class| some(input.pressure.paused(node, port, class))),
        }
    }
}

/// The classes that have a value, lowest first.
fn by_class<V>(value: impl Fn(Class) -> Option<V>) -> Map<Class, V> {
    Map(Class::all().filter_map(|class| Some((class, value(class)?))).collect())
}

/// `None` for nothing.
fn some<V: Default + PartialEq>(value: V) -> Option<V> {
    (value != V::default()).then_some(value)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::Attribution;
    use super::super::story::{self, Full, Run, clean};
    use super::*;

    fn written(run: &Run, outcome: &Outcome) -> String {
        String::from_utf8(write_summary(Vec::new(), &run.input(outcome)).unwrap()).unwrap()
    }

    #[test]
    fn the_summary_of_a_clean_run() {
        let mut run = Run::of(&clean());
        // The story does not tell when the payload came: it was waited for all the time.
        let mut attribution = Attribution::new(&run.names);
        story::play(&clean(), &mut attribution).unwrap();
        run.queue_pairs = attribution.at_end(run.end);
        let text = written(&run, &Outcome::AllWell);
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
          "queue_pairs": [
            {
              "node": "a",
              "peer": "b",
              "qpn": 2,
              "time_ps": {
                "sending": 0,
                "timeout": 0,
                "pfc_pause": 0,
                "allowed_rate": 0,
                "line_busy": 0,
                "egress_pool": 0,
                "pcie_read": 519524,
                "waiting_for_ack": 0,
                "idle": 0
              }
            }
          ],
          "nodes": [
            {
              "node": "a",
              "counters": {
                "total_packets_tx": 2,
                "total_packets_rx": 1,
                "total_bytes_tx": 8308,
                "total_bytes_rx": 126,
                "rx_drops": 0,
                "rx_lossless_drops": 0,
        "#);
        let read: serde_json::Value = serde_json::from_str(&text).unwrap();
        assert_eq!(read["nodes"][1]["node"], "b");
        let port = json!({
            "port": "b:a",
            "rate_bps": 400_000_000_000_u64,
            "ingress_peak_octets": { "0": 4_136 },
            "ingress_pool_octets": { "0": 3_600_000, "1": 400_000 },
            "xoff_octets": { "0": 2_880_000, "1": 320_000 },
            "xon_octets": { "0": 1_440_000, "1": 160_000 },
            "pauses_requested": {},
            "paused_ps": {},
        });
        assert_eq!(read["nodes"][1]["ports"][0], port);
        let time = read["queue_pairs"][0]["time_ps"].as_object().unwrap();
        assert_eq!(time.values().map(|ps| ps.as_u64().unwrap()).sum::<u64>(), 519_524);
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
