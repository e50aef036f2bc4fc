//! Why a run took its time: where that of each queue pair went, who paused whom, and why nobody did.

use super::attribution::{Cause, QueuePairTime, Times};
use super::digest::{columns, counted, decimal, grouped};
use super::summary::SummaryInput;
use crate::base::{Class, NodeId, Octets, PortId, Span};
use crate::trace::{IngressLimit, PcieDirection};

/// So many queue pairs, and so many pauses, have a line each.
const EACH: usize = 10;
/// Of more pauses, so many: the worst.
const WORST: usize = 3;

/// A line, and how much there is behind it.
type Weighted = (u64, String);

/// Lines for the digest.
pub(super) fn explain(input: &SummaryInput<'_>) -> Vec<String> {
    let mut lines = times(input);
    lines.extend(shortened(paused(input)));
    lines.extend(shortened(pausing(input)));
    lines.extend(shortened(stopped(input)));
    lines
}

/// Where the time of every queue pair went, or of all of them together.
fn times(input: &SummaryInput<'_>) -> Vec<String> {
    let queue_pairs = input.queue_pairs;
    if queue_pairs.len() > EACH {
        let mut all = Times::default();
        queue_pairs.iter().for_each(|queue_pair| all.add(&queue_pair.times));
        let which = format!("time of all {} together", counted(queue_pairs.len() as u64, "queue pair"));
        return columns(&[[which, shares(&all)]]);
    }
    let cells = |queue_pair: &QueuePairTime| {
        let (node, peer) = (input.names.node(queue_pair.node), input.names.node(queue_pair.peer));
        [format!("queue pair {} {node} -> {peer}", queue_pair.qpn.get()), shares(&queue_pair.times)]
    };
    columns(&queue_pairs.iter().map(cells).collect::<Vec<_>>())
}

/// `sending 26.1 %, PFC pause 73.9 %`: they add up to 100 %.
fn shares(times: &Times) -> String {
    let shares = Cause::ALL.into_iter().zip(times.per_mille()).filter(|(_, share)| *share > 0);
    let texts: Vec<_> = shares.map(|(cause, share)| format!("{} {}", cause.text(), percent(share))).collect();
    texts.join(", ")
}

/// Classes that the peer held back.
fn paused(input: &SummaryInput<'_>) -> Vec<Weighted> {
    let mut lines = Vec::new();
    for (node, names) in (0..).map(NodeId).zip(&input.names.nodes) {
        for port in (0..names.ports.len()).map(|port| PortId(port as u16)) {
            for class in Class::all() {
                let paused = input.pressure.paused(node, port, class, input.end);
                if paused > Span::ZERO {
                    let share = u128::from(paused.ps()) * 1_000 + u128::from(input.end.ps() / 2);
                    let share = share.checked_div(u128::from(input.end.ps())).unwrap_or(0) as u64;
                    let whose = whose(input, node, port, class);
                    let line = format!("  {whose} paused by its peer for {paused}, {} of the run", percent(share));
                    lines.push((paused.ps(), line));
                }
            }
        }
    }
    lines
}

/// Classes that held the peer back; if there are none, the one that came closest to it.
fn pausing(input: &SummaryInput<'_>) -> Vec<Weighted> {
    let mut lines = Vec::new();
    let mut closest: Option<(u128, String)> = None;
    let mut has_pfc = false;
    for (node, port, class, limit) in input.limits.ingress() {
        let IngressLimit { pool, pfc: Some((xoff, _)) } = limit else { continue };
        has_pfc = true;
        let peak = input.peaks.ingress(node, port, class);
        let pauses = input.pressure.sent(node, port, class).xoff;
        let whose = whose(input, node, port, class);
        if pauses > 0 {
            let (peak, xoff, pool) = (octets(peak), octets(xoff), octets(pool));
            let mut line = format!("  {whose} asked for {}", counted(pauses, "pause"));
            line += &format!("; its pool peaked at {peak} (Xoff {xoff}, size {pool})");
            if let Some(pcie) = input.pressure.pcie(node, PcieDirection::ToHost) {
                line += &format!("; PCIe link to its host {} busy", percent(pcie.per_mille(input.end)));
            }
            lines.push((pauses, line));
            continue;
        }
        if peak.is_zero() {
            continue;
        }
        // How much of Xoff was reached, in parts that tell any two apart.
        let reached = (u128::from(peak.get()) << 64).checked_div(u128::from(xoff.get())).unwrap_or(0);
        if closest.as_ref().is_none_or(|(most, _)| reached > *most) {
            let (peak, xoff) = (grouped(peak.get()), octets(xoff));
            closest = Some((reached, format!("  no pause: {whose} peaked at {peak} of {xoff} Xoff")));
        }
    }
    if !has_pfc {
        return vec![(0, "  no pause: PFC is enabled for no class".into())];
    }
    if lines.is_empty() {
        lines.extend(closest.map(|(_, line)| (0, line)));
    }
    lines
}

/// A paused class that stopped everybody (model.md T8).
fn stopped(input: &SummaryInput<'_>) -> Vec<Weighted> {
    let mut lines = Vec::new();
    for (node, names) in (0..).map(NodeId).zip(&input.names.nodes) {
        for class in Class::all() {
            let stopped = input.pressure.stopped_by_pause(node, class, input.end);
            if stopped > Span::ZERO {
                let line = format!(
                    "  {}: generation stopped for all queue pairs by class {class}'s full egress pool, paused for {stopped}",
                    names.name
                );
                lines.push((stopped.ps(), line));
            }
        }
    }
    lines
}

fn whose(input: &SummaryInput<'_>, node: NodeId, port: PortId, class: Class) -> String {
    let names = &input.names.nodes[node.index()];
    let name = if names.ports.len() == 1 { &names.name } else { &names.ports[port.index()].name };
    format!("class {class} of {name}")
}

fn octets(octets: Octets) -> String {
    format!("{} B", grouped(octets.get()))
}

/// Tenths of a percent, with their decimal.
fn percent(per_mille: u64) -> String {
    let text = decimal(per_mille, 10, 1);
    if text.contains('.') { format!("{text} %") } else { format!("{text}.0 %") }
}

/// All lines in their order; of too many the worst, those first.
fn shortened(mut lines: Vec<Weighted>) -> Vec<String> {
    let others = if lines.len() > EACH { lines.len() - WORST } else { 0 };
    if others > 0 {
        lines.sort_by_key(|(weight, _)| std::cmp::Reverse(*weight));
        lines.truncate(WORST);
    }
    let mut lines: Vec<_> = lines.into_iter().map(|(_, line)| line).collect();
    if others > 0 {
        lines.push(format!("  … and {} in summary.json", counted(others as u64, "other")));
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::super::attribution::Attribution;
    use super::super::story::{self, A, B, PORT, Run, at, qpn};
    use super::*;
    use crate::base::{Psn, Rate};
    use crate::record::Outcome;
    use crate::trace::{Event, EventKind};

    fn explained(events: &[Event]) -> String {
        let mut run = Run::of(events);
        let mut attribution = Attribution::new(&run.names);
        story::play(events, &mut attribution).unwrap();
        run.queue_pairs = attribution.at_end(run.end);
        explain(&run.input(&Outcome::AllWell)).join("\n")
    }

    /// a sends until b pauses it at 300 ns, for 500 ns; its pool is full from 400 ns on. The run ends at 1 us.
    fn a_pause() -> Vec<Event> {
        let (port, class) = (PORT, Class::default());
        let occupancy = Octets::new(2_880_000);
        let carried = EventKind::PcieCarried {
            direction: PcieDirection::ToHost,
            carried: Octets::new(12_500),
            rate: Rate::from_gbps(126),
            tx_header_peak: Octets::ZERO,
            tx_data_peak: Octets::ZERO,
            rx_header_peak: Octets::ZERO,
            rx_data_peak: Octets::ZERO,
        };
        let stopped = EventKind::GenerationStopped { class, qpn: qpn(2), occupancy, needed: occupancy };
        let (payload, psn) = (Octets::new(1), Psn::new(9));
        vec![
            story::posted(0, A, 0, 8_192),
            at(298_320, B, EventKind::PauseRequested { port, class, quanta: 1, occupancy, refresh: false }),
            at(300_000, A, EventKind::Paused { port, class, quanta: 1, duration: Span::from_ns(500) }),
            at(400_000, A, stopped),
            at(800_000, A, EventKind::Resumed { port, class, paused: Span::from_ns(500), by_xon: false }),
            at(880_000, A, EventKind::SegmentReserved { qpn: qpn(3), psn, payload, class, occupancy }),
            story::completed(1_000_000, A, 0),
            at(1_000_000, B, carried),
        ]
    }

    #[test]
    fn pauses_say_who_why_and_for_how_long() {
        insta::assert_snapshot!(explained(&a_pause()[1..]), @r"
          class 0 of a paused by its peer for 500 ns, 50.0 % of the run
          class 0 of b asked for 1 pause; its pool peaked at 0 B (Xoff 2,880,000 B, size 3,600,000 B); PCIe link to its host 79.4 % busy
          a: generation stopped for all queue pairs by class 0's full egress pool, paused for 400 ns
        ");
    }

    #[test]
    fn shares_of_time_add_up_to_all_of_it() {
        let thirds = Times::of_ps([1, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0]);
        assert_eq!(shares(&thirds), "sending 33.4 %, timeout 33.3 %, PFC pause 33.3 %");
        assert_eq!(shares(&Times::of_ps([1, 0, 1_999, 0, 0, 0, 0, 0, 0, 0, 0])), "sending 0.1 %, PFC pause 99.9 %");
        assert_eq!(shares(&Times::default()), "");
    }

    #[test]
    fn without_a_pause_the_fullest_pool_says_how_full_it_was() {
        assert_eq!(explained(&story::clean()[6..]), "  no pause: class 0 of b peaked at 4,136 of 2,880,000 B Xoff");
        let mut run = Run::of(&story::clean());
        run.limits = Default::default();
        let text = explain(&run.input(&Outcome::AllWell)).join("\n");
        assert_eq!(text, "  no pause: PFC is enabled for no class");
    }

    #[test]
    fn of_many_lines_the_worst_are_shown() {
        let lines = |count: u64| (0..count).map(|n| (n % 7, format!("{n}"))).collect::<Vec<_>>();
        assert_eq!(shortened(lines(10)).len(), 10);
        assert_eq!(shortened(lines(11)), ["6", "5", "4", "  … and 8 others in summary.json"]);
        assert_eq!(shortened(lines(64))[..3], ["6", "13", "20"], "of equals the first");
    }
}
