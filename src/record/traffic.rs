//! What every node sent and received, with whatever is worth a word.

use std::cmp::Reverse;

use super::digest::{columns, counted, grouped};
use super::summary::SummaryInput;
use crate::base::NodeId;
use crate::trace::NodeCounters;

/// A counter that is worth a word when it is not 0, and the word.
type Notable = (fn(&NodeCounters) -> u64, &'static str);

/// So many nodes have a line each. Of more, those with something to say, the worst first.
const EACH: usize = 10;

/// The worst first: a node is as bad as its first. Who causes others to wait stands before those who wait.
const NOTABLE: [Notable; 25] = [
    (|c| c.rx_lossless_drops, "LOSSLESS VIOLATIONS"),
    (|c| c.rx_drops, "dropped at a full ingress pool"),
    (|c| c.rx_drops_buffer, "dropped at a full switch buffer"),
    (|c| c.rx_drops_no_route, "without a route"),
    (|c| c.num_rto, "timeouts"),
    (|c| c.num_retransmitted_pkts, "retransmissions"),
    (|c| c.num_nacks_sent, "NAKs sent"),
    (|c| c.num_nacks_recvd, "NAKs received"),
    (|c| c.num_rx_drops_after_nak, "discarded after a NAK"),
    (|c| c.num_rx_drops_no_qp_data + c.num_rx_drops_no_qp_ctrl, "for unknown queue pairs"),
    (|c| c.num_rx_drops_ghost_ack, "ghost ACKs"),
    (|c| c.num_duplicate, "duplicates"),
    (|c| c.rx_icrc_encapsulated, "bad ICRCs"),
    (|c| c.rx_malformed + c.rx_pfc_no_class, "malformed"),
    (|c| c.rx_global_pause, "802.3x pauses ignored"),
    (|c| c.rx_wrong_address, "for other addresses"),
    (|c| c.rx_remote_access, "outside registered memory"),
    (|c| c.rx_invalid_request, "out of order in their message"),
    (|c| c.rx_unexpected_syndrome, "acknowledgements of an unexpected kind"),
    (|c| c.pfcxoff_tx, "XOFFs sent"),
    (|c| c.pkts_ecn_marked, "CE marks"),
    (|c| c.num_cnp_ignored, "CNPs ignored"),
    (|c| c.num_cnp_suppressed, "CNPs held back"),
    (|c| c.num_cnp_sent, "CNPs sent"),
    (|c| c.pfcxoff_rx, "XOFFs received"),
];

/// A node, or several together.
struct Row {
    name: String,
    counters: NodeCounters,
}

/// A line for each node; where there are many, for those with something to say and one for all others.
pub(super) fn traffic(input: &SummaryInput<'_>) -> Vec<String> {
    let mut rows: Vec<_> = (0..).map(NodeId).zip(input.counters.iter()).collect();
    let mut others = Vec::new();
    if rows.len() > EACH {
        let mut worst: Vec<_> = rows.iter().filter_map(|(node, counters)| Some((worst(counters)?, *node))).collect();
        worst.sort_unstable();
        let shown: Vec<_> = worst.into_iter().take(EACH).map(|(_, node)| node).collect();
        (rows, others) = rows.into_iter().partition(|(node, _)| shown.contains(node));
    }
    let is_any_shown = !rows.is_empty();
    let one = |(node, counters): (NodeId, &NodeCounters)| Row {
        name: input.names.node(node).to_owned(),
        counters: counters.clone(),
    };
    let mut rows: Vec<_> = rows.into_iter().map(one).collect();
    if !others.is_empty() {
        let mut counters = NodeCounters::default();
        others.iter().for_each(|(_, other)| counters.add(other));
        let which = if is_any_shown { "other node" } else { "node" };
        rows.push(Row { name: counted(others.len() as u64, which), counters });
    }
    columns(&rows.into_iter().map(cells).collect::<Vec<_>>())
}

/// The index of the worst that a node has to say, and then how much of it, the most first. `None` if it has nothing.
fn worst(counters: &NodeCounters) -> Option<(usize, Reverse<u64>)> {
    let counts = NOTABLE.iter().map(|(count, _)| count(counters));
    counts.enumerate().find(|(_, count)| *count > 0).map(|(index, count)| (index, Reverse(count)))
}

fn cells(row: Row) -> [String; 4] {
    let Row { name, counters } = row;
    let frames = |way, frames, bytes| format!("{way} {}, {} B", counted(frames, "frame"), grouped(bytes));
    let sent = frames("sent", counters.total_packets_tx, counters.total_bytes_tx);
    let received = frames("received", counters.total_packets_rx, counters.total_bytes_rx);
    let notable = NOTABLE.iter().map(|(count, words)| (count(&counters), words)).filter(|(n, _)| *n > 0);
    let notable: Vec<_> = notable.map(|(n, words)| format!("{words}: {}", grouped(n))).collect();
    [name, sent, received, notable.join(", ")]
}

#[cfg(test)]
mod tests {
    use super::super::story::{self, Run};
    use super::super::{Congestion, Outcome, Peaks, Pressure};
    use super::*;
    use crate::trace::{Counters, DropReason, Event, EventKind, PacketKind, Verdict};

    /// Of a run of `count` nodes, n0, n1 and so on.
    fn traffic_of(count: usize, events: &[Event]) -> String {
        let mut run = Run::of(&[]);
        run.names.nodes = (0..count).map(|n| story::named(&format!("n{n}"))).collect();
        run.counters = Counters::new(count);
        run.limits = story::limits(count);
        run.peaks = Peaks::new(&run.names);
        run.pressure = Pressure::new(&run.names);
        run.congestion = Congestion::new(&run.names);
        story::play(events, &mut run.counters).unwrap();
        let lines = traffic(&run.input(&Outcome::AllWell));
        lines.iter().map(|line| line.trim_end()).collect::<Vec<_>>().join("\n")
    }

    #[test]
    fn of_many_nodes_those_with_something_to_say_are_shown() {
        let sent = |node| story::sent(0, NodeId(node), PacketKind::Write, 0, 1);
        let lost = story::received(1, NodeId(7), PacketKind::Write, 0, Verdict::Dropped(DropReason::PoolFull));
        insta::assert_snapshot!(traffic_of(12, &[sent(0), sent(1), sent(7), lost]), @r"
          n7              sent 1 frame, 4,154 B   received 1 frame, 4,154 B  dropped at a full ingress pool: 1
          11 other nodes  sent 2 frames, 8,308 B  received 0 frames, 0 B
        ");
        insta::assert_snapshot!(traffic_of(12, &[sent(0)]), @"  12 nodes  sent 1 frame, 4,154 B  received 0 frames, 0 B");
    }

    #[test]
    fn of_many_with_something_to_say_the_worst_are_shown() {
        // 64 nodes send a CNP each and one of them two; another retransmits. Both lie behind the first ten.
        let cnp = |node| story::sent(0, NodeId(node), PacketKind::Cnp, 0, 0);
        let again = story::sent(1, NodeId(60), PacketKind::Write, 0, 2);
        let events: Vec<_> = (0..64).map(cnp).chain([cnp(50), again]).collect();
        let text = traffic_of(64, &events);
        assert_eq!(text.lines().count(), EACH + 1);
        let lines: Vec<_> = text.lines().collect();
        assert!(lines[0].starts_with("  n0 "), "{text}");
        assert!(lines[8].starts_with("  n50 ") && lines[8].ends_with("CNPs sent: 2"), "{text}");
        assert!(lines[9].starts_with("  n60 ") && lines[9].ends_with("retransmissions: 1, CNPs sent: 1"), "{text}");
        assert!(lines[10].starts_with("  54 other nodes") && lines[10].ends_with("CNPs sent: 54"), "{text}");
    }

    #[test]
    fn what_a_switch_did_is_worth_a_word() {
        let dropped = |reason| story::received(1, story::B, PacketKind::Write, 0, Verdict::Dropped(reason));
        let ignored = story::at(1, story::A, EventKind::CnpIgnored { qpn: story::qpn(2) });
        let events =
            [dropped(DropReason::SwitchBufferFull), dropped(DropReason::NoRoute), story::marked(2, story::B), ignored];
        insta::assert_snapshot!(traffic_of(2, &events), @r"
          n0  sent 0 frames, 0 B  received 0 frames, 0 B      CNPs ignored: 1
          n1  sent 0 frames, 0 B  received 2 frames, 8,308 B  dropped at a full switch buffer: 1, without a route: 1, CE marks: 1
        ");
    }
}
