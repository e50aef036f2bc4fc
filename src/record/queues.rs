//! `queues.csv`: how long the queues of switches were.

use std::collections::BTreeMap;
use std::io::{self, Write};

use super::words;
use crate::base::{Class, Instant, NodeId, Octets, PortId, Span};
use crate::trace::{Event, EventKind, Names, Sink};

/// Writes what waited in the queues of each switch's ports, sampled at an interval.
///
/// `t_ps,node,port,class,depth_octets,average_octets,peak_octets`: a row for every queue whose depth changed within an
/// interval, when that is over. `t_ps` is its end, where the run went on for so long, and otherwise the time of the last
/// event; `depth_octets` is the depth by then and `average_octets` what marking went by, rounded half up; `peak_octets`
/// is the greatest depth within the interval, so that no spike gets lost however long that is. Rows stand in the order
/// of time, then node, port and class. A queue without a row kept the depth of its last one; before its first it was
/// empty.
///
/// An interval of zero writes every change.
///
/// * Units: octets as charged to the switch's buffer; the frame on the line is not in its queue any more.
/// * Errors: those of the writer.
/// * Memory: a sample for each queue that was ever used.
pub struct QueueTable<W: Write> {
    writer: csv::Writer<W>,
    names: Names,
    interval: Span,
    /// What changed in the interval in progress.
    samples: BTreeMap<(NodeId, PortId, Class), Sample>,
    /// Which interval that is: its end.
    end: Instant,
    last: Instant,
}

#[derive(Clone, Copy)]
struct Sample {
    depth: Octets,
    average: f64,
    peak: Octets,
}

impl<W: Write> QueueTable<W> {
    /// Writes the header.
    pub fn new(writer: W, names: &Names, interval: Span) -> io::Result<Self> {
        let mut writer = csv::WriterBuilder::new().has_headers(false).from_writer(writer);
        writer.write_record(["t_ps", "node", "port", "class", "depth_octets", "average_octets", "peak_octets"])?;
        let (end, last) = (Instant::ZERO + interval, Instant::ZERO);
        Ok(Self { writer, names: names.clone(), interval, samples: BTreeMap::new(), end, last })
    }

    /// Writes the rows of the interval in which the run ended.
    pub fn finish(mut self) -> io::Result<W> {
        self.write_samples(self.end.min(self.last))?;
        words::finish_csv(self.writer)
    }

    /// Closes the interval in progress if `now` is beyond it. What happens in the instant of its end belongs to it: the
    /// sample is what the queue was when that instant was over.
    fn advance(&mut self, now: Instant) -> io::Result<()> {
        self.last = now;
        if now <= self.end {
            return Ok(());
        }
        self.write_samples(self.end)?;
        let intervals = now.ps().div_ceil(self.interval.ps().max(1));
        self.end = Instant::from_ps(intervals.saturating_mul(self.interval.ps()));
        Ok(())
    }

    fn write_samples(&mut self, at: Instant) -> io::Result<()> {
        while let Some((queue, sample)) = self.samples.pop_first() {
            self.write(at, queue, sample)?;
        }
        Ok(())
    }

    fn write(&mut self, at: Instant, queue: (NodeId, PortId, Class), sample: Sample) -> io::Result<()> {
        let (node, port, class) = queue;
        let Sample { depth, average, peak } = sample;
        let (node, port) = (self.names.node(node), self.names.port(node, port));
        self.writer.serialize((at, node, port, class, depth, words::whole(average), peak))?;
        Ok(())
    }
}

impl<W: Write> Sink for QueueTable<W> {
    fn record(&mut self, event: &Event) -> io::Result<()> {
        if self.interval > Span::ZERO {
            self.advance(event.at)?;
        }
        let EventKind::QueueDepthChanged { port, class, depth, average } = event.kind else { return Ok(()) };
        let queue = (event.node, port, class);
        if self.interval == Span::ZERO {
            return self.write(event.at, queue, Sample { depth, average, peak: depth });
        }
        let sample = self.samples.entry(queue).or_insert(Sample { depth, average, peak: depth });
        *sample = Sample { depth, average, peak: sample.peak.max(depth) };
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::story::{self, A, B, Full, PORT, at};
    use super::*;

    const HEADER: &str = "t_ps,node,port,class,depth_octets,average_octets,peak_octets\n";

    fn changed(ps: u64, node: NodeId, class: u8, depth: u64, average: f64) -> Event {
        let (class, depth) = (Class::new(class).unwrap(), Octets::new(depth));
        at(ps, node, EventKind::QueueDepthChanged { port: PORT, class, depth, average })
    }

    fn rows(interval: Span, events: &[Event]) -> String {
        let mut table = QueueTable::new(Vec::new(), &story::names(), interval).unwrap();
        story::play(events, &mut table).unwrap();
        let text = String::from_utf8(table.finish().unwrap()).unwrap();
        text.strip_prefix(HEADER).expect("the header comes first").to_owned()
    }

    /// Two frames come and one leaves within the first nanosecond, the other in the fourth.
    fn story() -> Vec<Event> {
        vec![
            changed(100, B, 0, 4_136, 413.6),
            changed(200, B, 0, 8_272, 1_199.44),
            changed(900, B, 0, 4_136, 1_199.44),
            changed(950, A, 3, 1_000, 100.0),
            changed(3_500, B, 0, 0, 1_199.44),
        ]
    }

    #[test]
    fn an_interval_has_a_row_for_each_queue_that_changed() {
        // The last interval ends with the run.
        let expected = "1000,a,a:b,3,1000,100,1000\n\
                        1000,b,b:a,0,4136,1199,8272\n\
                        3500,b,b:a,0,0,1199,0\n";
        assert_eq!(rows(Span::from_ns(1), &story()), expected);
    }

    #[test]
    fn what_happens_in_the_instant_of_an_intervals_end_belongs_to_it() {
        let events = [changed(1_000, B, 0, 1, 0.5), changed(1_001, B, 0, 2, 0.49), changed(9_999, A, 0, 3, 0.0)];
        let expected = "1000,b,b:a,0,1,1,1\n2000,b,b:a,0,2,0,2\n9999,a,a:b,0,3,0,3\n";
        assert_eq!(rows(Span::from_ns(1), &events), expected);
    }

    #[test]
    fn without_an_interval_every_change_is_written() {
        let rows = rows(Span::ZERO, &story());
        assert_eq!(rows.lines().count(), 5);
        assert_eq!(rows.lines().nth(1), Some("200,b,b:a,0,8272,1199,8272"));
    }

    #[test]
    fn a_run_without_a_switch_leaves_the_header() {
        assert_eq!(rows(Span::from_us(1), &story::clean()), "");
        assert_eq!(rows(Span::from_us(1), &[]), "");
    }

    #[test]
    fn a_full_disk_is_an_error() {
        for (interval, room) in [(0, 0), (0, HEADER.len() + 1), (1, HEADER.len() + 1), (1_000, HEADER.len() + 1)] {
            let written =
                QueueTable::new(Full(room), &story::names(), Span::from_ns(interval)).and_then(|mut table| {
                    story::play(&story(), &mut table)?;
                    table.finish()
                });
            assert_eq!(written.err().map(|e| e.kind()), Some(io::ErrorKind::StorageFull), "{interval} {room}");
        }
    }
}
