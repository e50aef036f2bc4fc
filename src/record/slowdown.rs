//! What congestion did to a run, in a few lines for the digest.

use super::congestion::Together;
use super::digest::{counted, decimal, grouped, rate};
use super::summary::SummaryInput;
use crate::base::{Class, NodeId, Octets, PortId, Qpn, Rate, Span};
use crate::trace::{MarkLimit, NodeCounters};

/// At most four lines: where packets were marked, or how far from it the queues were; the CNPs that it drew; whom they
/// slowed down; how even the queue pairs fared.
pub(super) fn congestion(input: &SummaryInput<'_>) -> Vec<String> {
    [marks(input), cnps(input), slowed_down(input), fairness(input)].into_iter().flatten().collect()
}

/// The queue with the most marks; if there are none, the one that came closest to its first. `None` without a switch.
fn marks(input: &SummaryInput<'_>) -> Option<String> {
    if input.limits.nodes.iter().all(|limits| limits.is_nic()) {
        return None;
    }
    let mut queues: Vec<_> = input.congestion.queues.iter().filter(|(.., queue)| queue.marks > 0).collect();
    queues.sort_by_key(|(.., queue)| std::cmp::Reverse(queue.marks));
    let Some(((node, port, class, queue), others)) = queues.split_first() else { return Some(no_mark(input)) };
    let which = whose(input, *node, *port, *class);
    let mut line = format!(
        "  CE marks: {} at {which}, whose average peaked at {}",
        grouped(queue.marks),
        octets(queue.average_peak)
    );
    if let Some(MarkLimit { kmin, kmax }) = marking(input, *node, *class) {
        line += &format!(" (Kmin {}, Kmax {})", octets(kmin), octets(kmax));
    }
    if !others.is_empty() {
        let marks: u64 = others.iter().map(|(.., queue)| queue.marks).sum();
        line += &format!("; {} at {}", grouped(marks), counted(others.len() as u64, "other queue"));
    }
    Some(line)
}

fn no_mark(input: &SummaryInput<'_>) -> String {
    let mut closest: Option<(u128, String)> = None;
    let mut marks_any = false;
    for (node, port, class, queue) in input.congestion.queues.iter() {
        let Some(MarkLimit { kmin, .. }) = marking(input, node, class) else { continue };
        marks_any = true;
        // How much of Kmin was reached, in parts that tell any two apart.
        let reached = (u128::from(queue.average_peak.get()) << 64).checked_div(u128::from(kmin.get())).unwrap_or(0);
        if closest.as_ref().is_none_or(|(most, _)| reached > *most) {
            let (which, peak) = (whose(input, node, port, class), octets(queue.average_peak));
            closest = Some((
                reached,
                format!("  no CE mark: the average of {which} peaked at {peak} of {} Kmin", octets(kmin)),
            ));
        }
    }
    match closest {
        Some((1.., line)) => line,
        _ if marks_any => "  no CE mark: nothing passed a queue that marks".into(),
        _ => "  no CE mark: marking is enabled for no class".into(),
    }
}

fn cnps(input: &SummaryInput<'_>) -> Option<String> {
    let sum = |count: fn(&NodeCounters) -> u64| input.counters.iter().map(count).sum::<u64>();
    let (marked, sent, received) = (sum(|c| c.num_ce_recvd), sum(|c| c.num_cnp_sent), sum(|c| c.num_cnp_recvd));
    (marked + sent + received > 0).then(|| {
        let (marked, sent, received) = (counted(marked, "marked packet"), grouped(sent), grouped(received));
        format!("  CNPs: {sent} sent for {marked} received, {received} received")
    })
}

fn slowed_down(input: &SummaryInput<'_>) -> Option<String> {
    let mut count = 0;
    let mut lowest: Option<(Rate, NodeId, Qpn)> = None;
    let mut longest: Option<(Span, NodeId, Qpn)> = None;
    for (node, qpn, reaction) in input.congestion.reactions.iter().filter(|(.., reaction)| reaction.episodes > 0) {
        count += 1;
        if let Some(rate) = reaction.lowest
            && lowest.is_none_or(|(least, ..)| rate < least)
        {
            lowest = Some((rate, node, qpn));
        }
        let time = reaction.in_episodes(input.end);
        if longest.is_none_or(|(most, ..)| time > most) {
            longest = Some((time, node, qpn));
        }
    }
    let who = |node, qpn: Qpn| format!("queue pair {} of {}", qpn.get(), input.names.node(node));
    let (longest, at, number) = longest?;
    let mut line = format!("  slowed down: {}", counted(count, "queue pair"));
    if let Some((lowest, node, qpn)) = lowest {
        line += &format!(", down to {} ({})", rate(lowest.bps()), who(node, qpn));
    }
    Some(line + &format!(", for up to {longest} ({})", who(at, number)))
}

/// Of the largest group of queue pairs that had one receiver and were active together.
fn fairness(input: &SummaryInput<'_>) -> Option<String> {
    let groups = input.congestion.activity.together(input.end);
    // At the same size the first.
    let largest: &Together = groups.iter().rev().max_by_key(|group| group.0.len())?;
    let ((min, max), jain) = (largest.spread()?, largest.jain_per_million()?);
    let count = counted(largest.0.len() as u64, "queue pair");
    let index = decimal(jain, 1_000_000, 6);
    let mut line =
        format!("  fairness of {count} active together: Jain's index {index}, {} to {} each", rate(min), rate(max));
    if groups.len() > 1 {
        line += &format!("; {} in summary.json", counted(groups.len() as u64 - 1, "other group"));
    }
    Some(line)
}

fn marking(input: &SummaryInput<'_>, node: NodeId, class: Class) -> Option<MarkLimit> {
    input.limits.nodes.get(node.index())?.marking[class.index()]
}

fn whose(input: &SummaryInput<'_>, node: NodeId, port: PortId, class: Class) -> String {
    format!("class {class} of {}", input.names.port(node, port))
}

fn octets(octets: Octets) -> String {
    format!("{} B", grouped(octets.get()))
}

#[cfg(test)]
mod tests {
    use super::super::Outcome;
    use super::super::story::{self, A, B, Run, at, depth, marked, qpn, rate_changed, received};
    use super::*;
    use crate::base::Psn;
    use crate::trace::{Event, EventKind, NodeLimits, PacketKind, Verdict};

    /// Of a run in which b is a switch that marks where it is said to.
    fn said(marking: Option<MarkLimit>, events: &[Event]) -> String {
        let mut run = Run::of(events);
        run.limits.nodes[1] = NodeLimits { egress: Default::default(), ..run.limits.nodes[1].clone() };
        run.limits.nodes[1].marking[0] = marking;
        congestion(&run.input(&Outcome::AllWell)).join("\n")
    }

    const SMALL: Option<MarkLimit> = Some(MarkLimit { kmin: Octets::new(300_000), kmax: Octets::new(1_200_000) });

    #[test]
    fn a_congested_run_in_four_lines() {
        let events = [
            depth(1, B, 1_000_000, 600_000.0),
            marked(1, B),
            marked(2, B),
            at(3, A, EventKind::CongestionSeen { qpn: qpn(2), psn: Psn::new(0) }),
            story::sent(4, A, PacketKind::Cnp, 0, 0),
            received(5, A, PacketKind::Cnp, 0, Verdict::Processed),
            at(5, A, EventKind::EpisodeStarted { qpn: qpn(2) }),
            rate_changed(5, A, 200),
            at(1_005, A, EventKind::EpisodeEnded { qpn: qpn(2), lasted: Span::from_ps(1_000) }),
        ];
        insta::assert_snapshot!(said(SMALL, &events), @r"
          CE marks: 2 at class 0 of b:a, whose average peaked at 600,000 B (Kmin 300,000 B, Kmax 1,200,000 B)
          CNPs: 1 sent for 1 marked packet received, 1 received
          slowed down: 1 queue pair, down to 200 Gb/s (queue pair 2 of a), for up to 1 ns (queue pair 2 of a)
        ");
    }

    #[test]
    fn a_run_that_never_marked_says_how_far_it_was() {
        let events = [depth(1, B, 100_000, 41_200.4), depth(2, B, 0, 41_200.4)];
        let expected = "  no CE mark: the average of class 0 of b:a peaked at 41,200 B of 300,000 B Kmin";
        assert_eq!(said(SMALL, &events), expected);
        assert_eq!(said(None, &events), "  no CE mark: marking is enabled for no class");
        assert_eq!(said(SMALL, &[]), "  no CE mark: nothing passed a queue that marks");
    }

    #[test]
    fn a_run_without_a_switch_has_nothing_to_say() {
        assert_eq!(congestion(&Run::of(&story::clean()).input(&Outcome::AllWell)), Vec::<String>::new());
    }
}
