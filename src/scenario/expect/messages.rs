//! What is remembered of messages.

use super::watch::Finding;
use super::{Measure, Messages, rate, when};
use crate::base::Instant;
use crate::record::{MessageRow, MessageRows, MessageStatus};
use crate::scenario::Plan;
use crate::trace::{Event, EventKind};

#[derive(Debug)]
pub(super) struct MessageWatch<'p> {
    which: &'p Messages,
    measures: &'p [Measure],
    /// Messages that the plan posts.
    count: u64,
    rows: MessageRows,
}

impl<'p> MessageWatch<'p> {
    pub(super) fn new(which: &'p Messages, measures: &'p [Measure], plan: &Plan) -> Self {
        Self { which, measures, count: plan.message_count(), rows: MessageRows::default() }
    }

    pub(super) fn hear(&mut self, event: &Event) {
        // Of a message that was never posted, nothing else is remembered either.
        match event.kind {
            EventKind::MessagePosted { message, .. } if !self.which.contain(message) => {}
            _ => self.rows.hear(event),
        }
    }

    pub(super) fn finish(self) -> Finding {
        let expected: Vec<_> = self.measures.iter().map(|measure| measure.expected()).collect();
        let expected = format!("{} {}", self.which, expected.join(", "));
        let failing = self.rows.iter().find_map(|row| {
            let measure = self.measures.iter().find(|measure| !measure.holds(row))?;
            Some((row, measure))
        });
        if let Some((row, measure)) = failing {
            let got = format!("message {} {}", row.message, measure.got(row));
            let at = row.completed.or(row.delivered).unwrap_or(row.posted);
            return Finding { ok: false, expected, got, at: Some(at), node: Some(row.node) };
        }
        let wanted = match self.which {
            // Of none at all, anything could be said.
            Messages::All => self.count.max(1),
            Messages::Ranges(ranges) => distinct(ranges),
        };
        let posted = self.rows.iter().count() as u64;
        let got = match posted {
            0 => "no message was posted".to_owned(),
            _ if posted < wanted => format!("only {posted} were posted"),
            _ => "all of it".to_owned(),
        };
        Finding { ok: posted >= wanted, expected, got, at: None, node: None }
    }
}

impl Measure {
    fn expected(&self) -> String {
        match self {
            Self::Completed(bounds) => format!("completed {}", when(*bounds)),
            Self::Delivered(bounds) => format!("delivered {}", when(*bounds)),
            Self::Retransmissions(bounds) => format!("with {}", bounds.counted("retransmission")),
            Self::Goodput(bounds) => format!("with a goodput of {}", bounds.text(rate)),
            Self::Status(status) => status_text(*status).to_owned(),
        }
    }

    fn holds(&self, row: &MessageRow) -> bool {
        match self {
            Self::Completed(bounds) => row.completed.is_some_and(|at| bounds.hold(at.ps())),
            Self::Delivered(bounds) => row.delivered.is_some_and(|at| bounds.hold(at.ps())),
            Self::Retransmissions(bounds) => bounds.hold(row.retransmissions),
            Self::Goodput(bounds) => row.goodput_bps().is_some_and(|bps| bounds.hold(bps)),
            Self::Status(status) => row.status() == *status,
        }
    }

    fn got(&self, row: &MessageRow) -> String {
        let happened = |what: &str, at: Option<Instant>| match at {
            Some(at) => format!("{what} at {at}"),
            None => format!("not {what}"),
        };
        match self {
            Self::Completed(_) => happened("completed", row.completed),
            Self::Delivered(_) => happened("delivered", row.delivered),
            Self::Retransmissions(_) => format!("with {}", row.retransmissions),
            Self::Goodput(_) => match row.goodput_bps() {
                Some(bps) => format!("with {}", rate(bps)),
                None => "not completed".to_owned(),
            },
            Self::Status(_) => status_text(row.status()).to_owned(),
        }
    }
}

/// How many numbers lie in ranges that may overlap.
fn distinct(ranges: &[(u32, u32)]) -> u64 {
    let mut ranges = ranges.to_vec();
    ranges.sort_unstable();
    let (mut count, mut next) = (0, 0);
    for (first, last) in ranges {
        let (first, end) = (u64::from(first).max(next), u64::from(last) + 1);
        count += end.saturating_sub(first);
        next = next.max(end);
    }
    count
}

const fn status_text(status: MessageStatus) -> &'static str {
    match status {
        MessageStatus::Completed => "completed",
        MessageStatus::Delivered => "delivered and not completed",
        MessageStatus::Failed => "failed",
        MessageStatus::Unfinished => "unfinished",
    }
}

#[cfg(test)]
mod tests {
    use super::distinct;

    #[test]
    fn numbers_named_twice_count_once() {
        assert_eq!(distinct(&[(3, 3), (20, 20)]), 2);
        assert_eq!(distinct(&[(5, 9), (0, 6), (7, 7), (20, 20)]), 11);
        assert_eq!(distinct(&[(0, u32::MAX), (1, 2)]), 1 << 32);
    }
}
