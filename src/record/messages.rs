//! `messages.csv`: a row per message, and the figures about messages that the summary shows.

use std::io::{self, Write};

use super::{MessageRow, MessageRows, words};
use crate::base::{Instant, MessageId, Octets, Span};
use crate::trace::{Event, EventKind, Names, Sink};

/// The figures of all messages so far.
///
/// * Memory: rows of open messages and of the first [`MessageStats::KEPT`], and 8 octets for each completed message.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MessageStats {
    /// Posted, and not yet final or waiting for one before it.
    open: MessageRows,
    /// The message whose row comes next.
    next: u32,
    kept: Vec<MessageRow>,
    completion_times: Vec<Span>,
    totals: MessageTotals,
}

/// Sums over all messages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MessageTotals {
    pub posted: u64,
    pub completed: u64,
    pub delivered: u64,
    pub retransmissions: u64,
    /// Of messages posted.
    pub bytes: Octets,
    /// Of messages completed.
    pub completed_bytes: Octets,
    pub first_posted: Option<Instant>,
    pub last_completed: Option<Instant>,
}

/// Writes `messages.csv`.
///
/// The columns are `message,node,peer,qpn,verb,bytes,posted_ps,completed_ps,delivered_ps,packets,retransmissions,status`;
/// node and peer are names, qpn is the sender's in decimal, times are picoseconds. What did not happen is empty. The
/// status of a failed message says why: `failed: remote access error`. Rows stand in the order of message numbers, so a
/// row is written when its message and all before it are completed and delivered, or have failed, the rest by `finish`.
/// A message that was not posted has no row.
///
/// * Errors: those of the writer.
/// * Memory: one row for each message from the first unfinished one on.
pub struct MessageTable<W: Write> {
    writer: csv::Writer<W>,
    names: Names,
    stats: MessageStats,
}

impl MessageStats {
    /// Rows that are kept for [`MessageStats::rows`].
    pub const KEPT: usize = 1_000;

    pub const fn totals(&self) -> &MessageTotals {
        &self.totals
    }

    /// The first [`MessageStats::KEPT`] messages, in the order of their numbers.
    pub fn rows(&self) -> impl Iterator<Item = &MessageRow> {
        // Open ones have higher numbers than those written.
        self.kept.iter().chain(self.open.iter()).take(Self::KEPT)
    }

    /// Messages without completion that have not failed either, in the order of their numbers.
    pub fn not_completed(&self) -> impl Iterator<Item = &MessageRow> {
        self.open.iter().filter(|row| row.completed.is_none() && row.failed.is_none())
    }

    /// The least, the median and the greatest completion time. Of an even number the median is the lower middle one, so
    /// that it is always a time that occurred.
    pub fn completion_times(&self) -> Option<[Span; 3]> {
        let mut times = self.completion_times.clone();
        times.sort_unstable();
        let last = times.len().checked_sub(1)?;
        Some([times[0], times[last / 2], times[last]])
    }

    /// Octets of completed messages from the first post to the last completion.
    ///
    /// * Units: bit/s, rounded half up.
    pub fn goodput_bps(&self) -> Option<u64> {
        let span = self.totals.last_completed?.since(self.totals.first_posted?);
        words::goodput_bps(self.totals.completed_bytes, span)
    }

    fn hear(&mut self, event: &Event) {
        self.open.hear(event);
        let totals = &mut self.totals;
        match event.kind {
            EventKind::MessagePosted { bytes, .. } => {
                totals.posted += 1;
                totals.bytes += bytes;
                totals.first_posted.get_or_insert(event.at);
            }
            EventKind::PacketNumbered { transmission, .. } if transmission > 1 => totals.retransmissions += 1,
            EventKind::MessageDelivered { .. } => totals.delivered += 1,
            EventKind::MessageCompleted { message, .. } => {
                totals.completed += 1;
                totals.last_completed = Some(event.at);
                if let Some(row) = self.open.get(message) {
                    totals.completed_bytes += row.bytes;
                    self.completion_times.extend(row.completion_time());
                }
            }
            _ => {}
        }
    }

    /// The next row, once it cannot change any more.
    fn close_next(&mut self) -> Option<MessageRow> {
        let row = self.open.take_final(MessageId(self.next))?;
        self.next += 1;
        if self.kept.len() < Self::KEPT {
            self.kept.push(row.clone());
        }
        Some(row)
    }
}

impl<W: Write> MessageTable<W> {
    pub fn new(writer: W, names: &Names) -> io::Result<Self> {
        let mut writer = csv::WriterBuilder::new().has_headers(false).from_writer(writer);
        writer.write_record([
            "message",
            "node",
            "peer",
            "qpn",
            "verb",
            "bytes",
            "posted_ps",
            "completed_ps",
            "delivered_ps",
            "packets",
            "retransmissions",
            "status",
        ])?;
        Ok(Self { writer, names: names.clone(), stats: MessageStats::default() })
    }

    /// The figures so far: those of the run once it has ended.
    ///
    /// * Order: call before `finish`.
    pub const fn stats(&self) -> &MessageStats {
        &self.stats
    }

    /// Writes the rows of the messages that did not finish.
    pub fn finish(mut self) -> io::Result<W> {
        for row in std::mem::take(&mut self.stats.open) {
            self.write(&row)?;
        }
        words::finish_csv(self.writer)
    }

    fn write(&mut self, row: &MessageRow) -> io::Result<()> {
        self.writer.serialize((
            row.message,
            self.names.node(row.node),
            self.names.node(row.peer),
            row.qpn,
            row.verb,
            row.bytes,
            row.posted,
            row.completed,
            row.delivered,
            row.packets,
            row.retransmissions,
            row.status_text(),
        ))?;
        Ok(())
    }
}

impl<W: Write> Sink for MessageTable<W> {
    fn record(&mut self, event: &Event) -> io::Result<()> {
        self.stats.hear(event);
        while let Some(row) = self.stats.close_next() {
            self.write(&row)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::story::{self, A, B, Full, completed, delivered, posted, started};
    use super::*;

    const HEADER: &str =
        "message,node,peer,qpn,verb,bytes,posted_ps,completed_ps,delivered_ps,packets,retransmissions,status\n";

    fn table(events: &[Event]) -> MessageTable<Vec<u8>> {
        let mut table = MessageTable::new(Vec::new(), &story::names()).unwrap();
        story::play(events, &mut table).unwrap();
        table
    }

    /// The rows below the header.
    fn rows(events: &[Event]) -> String {
        let text = String::from_utf8(table(events).finish().unwrap()).unwrap();
        text.strip_prefix(HEADER).expect("the header comes first").to_owned()
    }

    #[test]
    fn a_message_has_its_row() {
        assert_eq!(rows(&story::clean()), "0,a,b,2,write,8192,0,519524,486293,2,0,completed\n");
    }

    #[test]
    fn retransmissions_are_counted_for_their_message() {
        assert_eq!(rows(&story::lossy()), "0,a,b,2,write,8192,0,1039048,1005817,2,2,completed\n");
    }

    #[test]
    fn what_did_not_happen_is_empty() {
        let events = [
            posted(0, A, 0, 10),
            posted(0, B, 1, 11),
            posted(5, A, 2, 0),
            started(0, A, 0, 0, 1),
            started(0, B, 1, 0, 1),
            delivered(7, B, 0, 10),
            completed(9, B, 1),
        ];
        let expected = "0,a,b,2,write,10,0,,7,1,0,delivered\n\
                        1,b,a,2,write,11,0,9,,1,0,completed\n\
                        2,a,b,2,write,0,5,,,,0,unfinished\n";
        assert_eq!(rows(&events), expected);
    }

    #[test]
    fn a_failed_message_says_why_and_holds_up_nobody() {
        use crate::trace::WorkStatus::{RemoteAccessError, WorkRequestFlushed};
        let failed = |ps, message, status| {
            story::at(ps, A, EventKind::MessageFailed { message: MessageId(message), qpn: story::qpn(2), status })
        };
        let events = [
            posted(0, A, 0, 10),
            posted(0, A, 1, 20),
            started(0, A, 0, 0, 1),
            failed(5, 0, RemoteAccessError),
            failed(5, 1, WorkRequestFlushed),
        ];
        assert_eq!(table(&events).stats().open.iter().count(), 0);
        let expected = "0,a,b,2,write,10,0,,,1,0,failed: remote access error\n\
                        1,a,b,2,write,20,0,,,,0,failed: flushed\n";
        assert_eq!(rows(&events), expected);
    }

    #[test]
    fn a_row_waits_for_the_messages_before_it() {
        let mut table = table(&[posted(0, A, 1, 10), posted(0, A, 2, 20), posted(1, B, 0, 30)]);
        let mut open_after = |events: [Event; 2]| {
            story::play(&events, &mut table).unwrap();
            table.stats().open.iter().count()
        };
        assert_eq!(open_after([delivered(4, B, 1, 10), completed(5, A, 1)]), 3);
        assert_eq!(open_after([completed(6, B, 0), delivered(7, A, 0, 30)]), 1, "0 lets 1 go, 2 is still open");
        assert_eq!(open_after([delivered(8, B, 2, 20), completed(9, A, 2)]), 0);
        let text = String::from_utf8(table.finish().unwrap()).unwrap();
        let order: Vec<_> = text.lines().skip(1).map(|line| &line[..1]).collect();
        assert_eq!(order, ["0", "1", "2"]);
    }

    #[test]
    fn the_figures_cover_finished_and_unfinished_messages() {
        let events = [
            posted(100, A, 0, 1_000),
            posted(100, A, 1, 1_000),
            posted(100, A, 2, 500),
            completed(300, A, 0),
            delivered(300, B, 0, 1_000),
            completed(500, A, 1),
        ];
        let table = table(&events);
        let stats = table.stats();
        assert_eq!(stats.completion_times(), Some([200, 200, 400].map(Span::from_ps)), "the lower middle one");
        // 2,000 octets in 400 ps.
        assert_eq!(stats.goodput_bps(), Some(40_000_000_000_000));
        assert_eq!(stats.rows().map(|row| row.message.0).collect::<Vec<_>>(), [0, 1, 2]);
        assert_eq!(stats.not_completed().map(|row| row.message.0).collect::<Vec<_>>(), [2]);
        let totals = stats.totals();
        assert_eq!((totals.posted, totals.completed, totals.delivered, totals.bytes.get()), (3, 2, 1, 2_500));
    }

    #[test]
    fn no_messages_leave_the_header() {
        assert_eq!(rows(&[]), "");
        assert_eq!(table(&[]).stats().completion_times(), None);
    }

    #[test]
    fn a_full_disk_is_an_error() {
        for room in [0, HEADER.len(), HEADER.len() + 10] {
            let written = MessageTable::new(Full(room), &story::names()).and_then(|mut table| {
                story::play(&story::clean(), &mut table)?;
                table.finish()
            });
            assert_eq!(written.err().map(|e| e.kind()), Some(io::ErrorKind::StorageFull), "{room} octets of room");
        }
    }
}
