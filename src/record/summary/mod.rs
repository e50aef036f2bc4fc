//! `summary.json`: the figures of a run.

mod nodes;

use std::io::{self, BufWriter, Write};

use serde::{Serialize, Serializer};

use super::attribution::QueuePairTime;
use super::congestion::{Congestion, Together};
use super::peaks::Peaks;
use super::pressure::Pressure;
use super::{MessageRow, MessageStats, MessageStatus, into_inner};
use crate::base::{Instant, MessageId, NodeId, Octets, Qpn, Rate, Span};
use crate::trace::{Counters, Ledger, Limits, Names, WorkStatus};
use crate::wire::Verb;
use nodes::Node;

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
    pub congestion: &'a Congestion,
    /// [`Attribution::at_end`](super::Attribution::at_end) of `end`.
    pub queue_pairs: &'a [QueuePairTime],
    /// Octets of receive memory that were compared with what was sent, and were equal.
    pub compared: Octets,
    /// Whether there is a capture for the digest to point at.
    pub has_capture: bool,
}

/// Writes `summary.json`: one object, its keys always in the same order.
///
/// `verdict` is `all_well` or `failed`, the latter with `reasons`. Times are picoseconds, `goodput_bps` is bit/s rounded
/// half up, the median is the lower middle one. What did not happen is null. What a node has by class stands under the
/// class's number.
///
/// * `messages.each` lists the first 1,000 messages, whose goodput is from post to completion; the figures beside it
///   cover all of them.
/// * `queue_pairs` says for every end that posted what its time went to: `time_ps` adds up to `end_ps`, in the order of
///   [`Cause`](super::Cause). `goodput_bps` is `delivered_octets` over `active_ps`, the time with something to send;
///   `lowest_rate_bps` is null if its rate never moved.
/// * `fairness` has an entry for every group of queue pairs that were active together and had one receiver
///   (`congestion::Together`): Jain's index of their goodputs in millionths, and the least, the
///   greatest, and what the one is of the other.
/// * `nodes`: peaks, pauses and marks only where there were any; `xoff_octets` and `xon_octets` where PFC is enabled,
///   `kmin_octets` and `kmax_octets` where a switch marks. `average_peak_octets` is the highest average that marking
///   went by. PCIe octets have their overhead with them; `use_per_mille` is their share of what the link could have
///   carried by `end_ps`. `hw_counters` are the counters of a NIC under the names that its driver would give them; a
///   switch has none.
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
    fairness: Vec<Fairness>,
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
    /// Of a failed message.
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<WorkStatus>,
}

#[derive(Serialize)]
struct QueuePair<'a> {
    node: &'a str,
    peer: &'a str,
    qpn: Qpn,
    delivered_octets: Octets,
    active_ps: Span,
    goodput_bps: Option<u64>,
    cnps_received: u64,
    congestion_episodes: u64,
    in_episodes_ps: Span,
    lowest_rate_bps: Option<Rate>,
    time_ps: Map<&'static str, Span>,
}

#[derive(Serialize)]
struct Fairness {
    queue_pairs: usize,
    from_ps: Option<Instant>,
    to_ps: Option<Instant>,
    jain_per_million: Option<u64>,
    min_bps: Option<u64>,
    max_bps: Option<u64>,
    min_per_mille_of_max: Option<u64>,
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
            queue_pairs: input.queue_pairs.iter().map(|time| QueuePair::new(input, time)).collect(),
            fairness: input.congestion.activity.together(input.end).iter().map(Fairness::new).collect(),
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
            error: row.failed,
        }
    }
}

impl<'a> QueuePair<'a> {
    fn new(input: &SummaryInput<'a>, time: &QueuePairTime) -> Self {
        let QueuePairTime { node, qpn, peer, times } = *time;
        let done = input.congestion.activity.of(node, qpn, input.end);
        let reaction = input.congestion.reactions.of(node, qpn);
        Self {
            node: input.names.node(node),
            peer: input.names.node(peer),
            qpn,
            delivered_octets: done.map_or(Octets::ZERO, |done| done.delivered),
            active_ps: done.map_or(Span::ZERO, |done| done.active),
            goodput_bps: done.filter(|done| done.active > Span::ZERO).map(|done| done.bps()),
            cnps_received: reaction.cnps_received,
            congestion_episodes: reaction.episodes,
            in_episodes_ps: reaction.in_episodes(input.end),
            lowest_rate_bps: reaction.lowest,
            time_ps: Map(times.iter().map(|(cause, span)| (cause.key(), span)).collect()),
        }
    }
}

impl Fairness {
    fn new(together: &Together) -> Self {
        let (span, spread) = (together.span(), together.spread());
        Self {
            queue_pairs: together.0.len(),
            from_ps: span.map(|(from, _)| from),
            to_ps: span.map(|(_, to)| to),
            jain_per_million: together.jain_per_million(),
            min_bps: spread.map(|(min, _)| min),
            max_bps: spread.map(|(_, max)| max),
            min_per_mille_of_max: together.min_per_mille_of_max(),
        }
    }
}

#[cfg(test)]
mod tests;
