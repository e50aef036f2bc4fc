//! The end of a run on the terminal: what a person wants to know first.

use std::time::Duration;

use super::doorbells::doorbells;
use super::explain::explain;
use super::slowdown::congestion;
use super::summary::{Outcome, SummaryInput};
use super::traffic::traffic;
use super::{MessageRow, MessageStats, words};
use crate::base::{Octets, Span};
use crate::trace::NodeCounters;

/// So many messages have a line each; of more, the spread is shown.
const EACH: usize = 10;

/// The digest of a run, in lines: what ran, its messages, the traffic of each node with whatever went wrong there, where
/// the time went, the verdict, and where to look next.
///
/// * Shape: `wall` is the real time the run took, for the slow-down; it is the caller's, who has a clock.
pub fn digest(input: &SummaryInput<'_>, wall: Option<Duration>) -> String {
    let totals = input.messages.totals();
    let mut lines = vec![format!(
        "{} (seed {}): {} between {}, {} emulated",
        input.scenario,
        input.seed,
        counted(totals.posted, "message"),
        counted(input.names.nodes.len() as u64, "node"),
        input.end,
    )];
    if let Some(slow_down) = wall.and_then(|wall| slow_down(wall, input)) {
        lines.push(slow_down);
    }
    lines.push(String::new());
    lines.extend(if totals.posted <= EACH as u64 { each_message(input) } else { all_messages(input.messages) });
    if totals.posted > 0 {
        lines.push(String::new());
    }
    lines.extend(traffic(input));
    lines.push(String::new());
    let mut why = explain(input);
    why.extend(doorbells(input));
    why.extend(congestion(input));
    if !why.is_empty() {
        lines.extend(why);
        lines.push(String::new());
    }
    lines.extend(verdict(input));
    lines.push(format!("next: {}", next(input)));
    lines.iter().flat_map(|line| [line.trim_end(), "\n"]).collect()
}

fn slow_down(wall: Duration, input: &SummaryInput<'_>) -> Option<String> {
    let (wall_ps, end_ps) = (wall.as_nanos().checked_mul(1_000)?, u128::from(input.end.ps()));
    // Below 10, one decimal says more than none.
    let factor = match wall_ps.checked_div(end_ps)? {
        0..10 => decimal(u64::try_from((wall_ps * 10 + end_ps / 2) / end_ps).ok()?, 10, 1),
        _ => grouped(u64::try_from((wall_ps + end_ps / 2) / end_ps).ok()?),
    };
    Some(format!("slow-down {factor} x ({} for {} emulated)", wall_text(wall), input.end))
}

fn each_message(input: &SummaryInput<'_>) -> Vec<String> {
    let cells = |row: &MessageRow| {
        [
            format!("message {}", row.message),
            format!("{} -> {}", input.names.node(row.node), input.names.node(row.peer)),
            format!("{} {}", words::verb(row.verb), size(row.bytes)),
            match (row.completion_time(), row.failed, row.delivered) {
                (Some(time), ..) => format!("completed in {time}"),
                (None, Some(_), _) => row.status_text().into_owned(),
                (None, None, Some(_)) => "delivered, not completed".into(),
                (None, None, None) => "not delivered".into(),
            },
            goodput(row),
        ]
    };
    columns(&input.messages.rows().map(cells).collect::<Vec<_>>())
}

/// Of a message: what its sender sees and, if its payload was slower than that to reach the receiving host, that as well:
/// an ACK says that the NIC has it.
fn goodput(row: &MessageRow) -> String {
    let Some(completed) = row.goodput_bps() else { return String::new() };
    match row.delivery_bps() {
        Some(delivered) if delivered < completed / 100 * 99 => {
            format!("{}, {} into the host", rate(completed), rate(delivered))
        }
        _ => rate(completed),
    }
}

fn all_messages(messages: &MessageStats) -> Vec<String> {
    let totals = messages.totals();
    let mut lines = vec![format!("  {} of {} completed", grouped(totals.completed), counted(totals.posted, "message"))];
    if let Some([min, median, max]) = messages.completion_times() {
        lines.push(format!("  completion time: min {min}, median {median}, max {max}"));
    }
    if let Some(bps) = messages.goodput_bps() {
        lines.push(format!("  goodput of all {} together: {}", size(totals.completed_bytes), rate(bps)));
    }
    lines
}

fn verdict(input: &SummaryInput<'_>) -> Vec<String> {
    let totals = input.messages.totals();
    match input.outcome {
        Outcome::AllWell => {
            let done = format!("{} of {} completed", grouped(totals.completed), counted(totals.posted, "message"));
            // Payload of applications is theirs to compare.
            let equal = match input.compared {
                Octets::ZERO => String::new(),
                compared => format!(", {} compared and equal", size(compared)),
            };
            vec![match totals.completed == totals.posted {
                true => format!("all well: {done}{equal}"),
                // None of the scenario's own: that would have failed the run.
                false => format!("ended: {done}{equal}; the others are for the applications to judge"),
            }]
        }
        Outcome::Failed(reasons) if reasons.is_empty() => vec!["FAILED".into()],
        Outcome::Failed(reasons) => reasons.iter().map(|reason| format!("FAILED: {reason}")).collect(),
    }
}

/// The one place to look at first.
fn next(input: &SummaryInput<'_>) -> String {
    let any = |count: fn(&NodeCounters) -> u64| input.counters.iter().any(|counters| count(counters) > 0);
    let unfinished: Vec<_> = input.messages.not_completed().map(|row| row.message.to_string()).collect();
    if let [first, ..] = unfinished.as_slice() {
        let others = unfinished.len() - 1;
        let others = if others > 0 { format!(" and {}", counted(others as u64, "other")) } else { String::new() };
        return format!("messages.csv for how far message {first}{others} got, and --events for what held it up");
    }
    if !input.has_capture {
        return "messages.csv, a row per message".into();
    }
    let word = if any(|c| c.rx_drops + c.num_rx_drops + c.rx_icrc_encapsulated + c.rx_malformed + c.rx_remote_access) {
        "discarded"
    } else if any(|c| c.num_retransmitted_pkts) {
        "retransmission"
    } else {
        return "messages.csv, a row per message; wireshark capture.pcapng, every frame".into();
    };
    format!("tshark -r capture.pcapng -Y 'frame.comment contains \"{word}\"'")
}

/// Cells under each other, as wide as the widest.
pub(super) fn columns<const N: usize>(rows: &[[String; N]]) -> Vec<String> {
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
    let widths: [usize; N] = std::array::from_fn(width);
    let line = |row: &[String; N]| row.iter().zip(widths).map(|(cell, width)| format!("  {cell:width$}")).collect();
    rows.iter().map(line).collect()
}

/// `1 frame`, `1,234 frames`.
pub fn counted(count: u64, thing: &str) -> String {
    format!("{} {thing}{}", grouped(count), if count == 1 { "" } else { "s" })
}

/// Decimal digits in groups of three.
pub(super) fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let groups: Vec<_> = digits.as_bytes().rchunks(3).rev().map(String::from_utf8_lossy).collect();
    groups.join(",")
}

/// Binary units where they are exact: `1 MiB`, `4,097 B`.
fn size(octets: Octets) -> String {
    let octets = octets.get();
    let units = [(1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")];
    match units.into_iter().find(|(unit, _)| octets >= *unit && octets.is_multiple_of(*unit)) {
        Some((unit, name)) => format!("{} {name}", grouped(octets / unit)),
        None => format!("{} B", grouped(octets)),
    }
}

/// A rate to three decimals.
pub(super) fn rate(bps: u64) -> String {
    let units = [(1_000_000_000, "Gb/s"), (1_000_000, "Mb/s"), (1_000, "kb/s")];
    match units.into_iter().find(|(unit, _)| bps >= *unit) {
        Some((unit, name)) => format!("{} {name}", decimal(bps, unit, 3)),
        None => format!("{bps} b/s"),
    }
}

/// Real time to three digits, or to the nanosecond.
fn wall_text(wall: Duration) -> String {
    let ns = u64::try_from(wall.as_nanos()).unwrap_or(u64::MAX);
    let units = [(1_000_000_000, "s"), (1_000_000, "ms"), (1_000, "us")];
    match units.into_iter().find(|(unit, _)| ns >= *unit) {
        Some((unit, name)) => {
            let decimals = 2_u32.saturating_sub((ns / unit).ilog10());
            format!("{} {name}", decimal(ns, unit, decimals))
        }
        None => Span::from_ns(ns).to_string(),
    }
}

/// `value / unit`, rounded half up to so many decimals, without trailing zeros. `unit` is a power of ten.
pub(super) fn decimal(value: u64, unit: u64, decimals: u32) -> String {
    let parts = 10_u128.pow(decimals);
    let scaled = (u128::from(value) * parts + u128::from(unit) / 2) / u128::from(unit);
    let (whole, rest) = (grouped((scaled / parts) as u64), scaled % parts);
    if rest == 0 {
        return whole;
    }
    let digits = format!("{rest:0width$}", width = decimals as usize);
    format!("{whole}.{}", digits.trim_end_matches('0'))
}

#[cfg(test)]
mod tests {
    use super::super::story::{self, A, Run, posted};
    use super::*;
    use crate::base::MessageId;
    use crate::trace::{Event, EventKind, WorkStatus};

    fn digest_of(events: &[Event], outcome: &Outcome, wall: Option<Duration>) -> String {
        digest(&Run::of(events).input(outcome), wall)
    }

    #[test]
    fn a_clean_run_at_a_glance() {
        let text = digest_of(&story::clean(), &Outcome::AllWell, Some(Duration::from_micros(641)));
        insta::assert_snapshot!(text, @r"
            story (seed 1): 1 message between 2 nodes, 519.524 ns emulated
            slow-down 1,234 x (641 us for 519.524 ns emulated)

              message 0  a -> b  WRITE 8 KiB  completed in 519.524 ns  126.146 Gb/s

              a  sent 2 frames, 8,308 B  received 1 frame, 126 B
              b  sent 1 frame, 126 B     received 2 frames, 8,308 B

              no pause: class 0 of b peaked at 4,136 of 2,880,000 B Xoff

            all well: 1 of 1 message completed, 8 KiB compared and equal
            next: messages.csv, a row per message; wireshark capture.pcapng, every frame
        ");
    }

    #[test]
    fn losses_stand_with_the_node_that_saw_them() {
        insta::assert_snapshot!(digest_of(&story::lossy(), &Outcome::AllWell, None), @r#"
            story (seed 1): 1 message between 2 nodes, 1.039048 us emulated

              message 0  a -> b  WRITE 8 KiB  completed in 1.039048 us  63.073 Gb/s

              a  sent 4 frames, 16,616 B  received 2 frames, 252 B     retransmissions: 2, NAKs received: 1
              b  sent 2 frames, 252 B     received 4 frames, 16,616 B  dropped at a full ingress pool: 1, NAKs sent: 1, discarded after a NAK: 1

              no pause: class 0 of b peaked at 4,136 of 2,880,000 B Xoff

            all well: 1 of 1 message completed, 8 KiB compared and equal
            next: tshark -r capture.pcapng -Y 'frame.comment contains "discarded"'
        "#);
    }

    #[test]
    fn a_failure_says_why_and_where_to_look() {
        let outcome = Outcome::Failed(vec!["message 0 is unfinished at 333.924 ns".into()]);
        insta::assert_snapshot!(digest_of(&story::clean()[..7], &outcome, None), @r"
            story (seed 1): 1 message between 2 nodes, 333.924 ns emulated

              message 0  a -> b  WRITE 8 KiB  not delivered

              a  sent 2 frames, 8,308 B  received 0 frames, 0 B
              b  sent 0 frames, 0 B      received 1 frame, 4,154 B

              no pause: class 0 of b peaked at 4,136 of 2,880,000 B Xoff

            FAILED: message 0 is unfinished at 333.924 ns
            next: messages.csv for how far message 0 got, and --events for what held it up
        ");
    }

    #[test]
    fn what_applications_failed_to_send_is_not_all_well() {
        let status = WorkStatus::RemoteAccessError;
        let failed = story::at(9, A, EventKind::MessageFailed { message: MessageId(1), qpn: story::qpn(2), status });
        let events = [posted(0, A, 0, 8), posted(0, A, 1, 8), story::completed(5, A, 0), failed];
        let text = digest_of(&events, &Outcome::AllWell, None);
        let line = text.lines().find(|line| line.starts_with("ended: 1 of 2 messages completed"));
        assert!(line.is_some_and(|line| line.ends_with("; the others are for the applications to judge")), "{text}");
    }

    #[test]
    fn many_messages_are_shown_by_their_spread() {
        let messages = 0..1_234;
        let events: Vec<_> = (messages.clone().map(|n| posted(0, A, n, 1_024)))
            .chain(messages.flat_map(|n| {
                let at = 1_000 * u64::from(n + 1);
                [story::delivered(at, story::B, n, 1_024), story::completed(at, A, n)]
            }))
            .collect();
        insta::assert_snapshot!(digest_of(&events, &Outcome::AllWell, None), @r"
            story (seed 1): 1,234 messages between 2 nodes, 1.234 us emulated

              1,234 of 1,234 messages completed
              completion time: min 1 ns, median 617 ns, max 1.234 us
              goodput of all 1,234 KiB together: 8,192 Gb/s

              a  sent 0 frames, 0 B  received 0 frames, 0 B
              b  sent 0 frames, 0 B  received 0 frames, 0 B

            all well: 1,234 of 1,234 messages completed, 1,234 KiB compared and equal
            next: messages.csv, a row per message; wireshark capture.pcapng, every frame
        ");
    }

    #[test]
    fn a_run_without_messages_has_a_digest() {
        insta::assert_snapshot!(digest_of(&[], &Outcome::AllWell, Some(Duration::from_millis(1))), @r"
            story (seed 1): 0 messages between 2 nodes, 0 ps emulated

              a  sent 0 frames, 0 B  received 0 frames, 0 B
              b  sent 0 frames, 0 B  received 0 frames, 0 B

            all well: 0 of 0 messages completed
            next: messages.csv, a row per message; wireshark capture.pcapng, every frame
        ");
    }

    #[test]
    fn numbers_are_short_and_exact_where_they_can_be() {
        assert_eq!([0, 999, 1_000, 1_234_567].map(grouped), ["0", "999", "1,000", "1,234,567"]);
        assert_eq!(
            [0, 1_024, 4_097, 1 << 20, 3 << 30].map(|n| size(Octets::new(n))),
            ["0 B", "1 KiB", "4,097 B", "1 MiB", "3 GiB"]
        );
        assert_eq!(
            [999, 1_500, 387_969_500_123, 400_000_000_000].map(rate),
            ["999 b/s", "1.5 kb/s", "387.97 Gb/s", "400 Gb/s"]
        );
        let wall = [999, 26_649_000, 266_490_000, 61_000_000_000].map(|ns| wall_text(Duration::from_nanos(ns)));
        assert_eq!(wall, ["999 ns", "26.6 ms", "266 ms", "61 s"]);
    }
}
