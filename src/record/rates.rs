//! `rates.csv`: how the rate of each queue pair moved.

use std::io::{self, Write};

use super::words;
use crate::base::{NodeId, PortId, Qpn, Rate};
use crate::trace::{Event, EventKind, Names, Sink};

/// Writes a row whenever the current rate or the target of a queue pair moves, in the order in which they move.
///
/// `t_ps,node,qpn,current_bps,target_bps,cause`: `node` is the sender, `cause` what moved the rates (`cut`,
/// `additive_reduction`, `fast_recovery`, `additive_increase`, `hyper_increase`). A rate holds until the next row of its
/// queue pair. An episode of congestion is framed by rows that show the line rate in both columns: `episode_started`,
/// right before the first cut, and `episode_ended`, after which nothing limits the queue pair. Before its first row a
/// queue pair may send at the line rate; one that was never congested has none.
///
/// * Errors: those of the writer.
pub struct RateTable<W: Write> {
    writer: csv::Writer<W>,
    names: Names,
}

impl<W: Write> RateTable<W> {
    /// Writes the header.
    pub fn new(writer: W, names: &Names) -> io::Result<Self> {
        let mut writer = csv::WriterBuilder::new().has_headers(false).from_writer(writer);
        writer.write_record(["t_ps", "node", "qpn", "current_bps", "target_bps", "cause"])?;
        Ok(Self { writer, names: names.clone() })
    }

    pub fn finish(self) -> io::Result<W> {
        words::finish_csv(self.writer)
    }

    /// Queue pairs are at NICs, and a NIC has one port.
    fn line_rate(&self, node: NodeId) -> Rate {
        self.names.nodes[node.index()].ports[PortId(0).index()].rate
    }

    fn write(&mut self, event: &Event, qpn: Qpn, [current, target]: [Rate; 2], cause: &str) -> io::Result<()> {
        self.writer.serialize((event.at, self.names.node(event.node), qpn, current, target, cause))?;
        Ok(())
    }
}

impl<W: Write> Sink for RateTable<W> {
    fn record(&mut self, event: &Event) -> io::Result<()> {
        match event.kind {
            EventKind::EpisodeStarted { qpn } => {
                self.write(event, qpn, [self.line_rate(event.node); 2], "episode_started")
            }
            EventKind::RateChanged { qpn, current, target, cause } => {
                self.write(event, qpn, [current, target], words::rate_cause(cause))
            }
            EventKind::EpisodeEnded { qpn, .. } => {
                self.write(event, qpn, [self.line_rate(event.node); 2], "episode_ended")
            }
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::story::{self, A, B, Full, at, qpn};
    use super::*;
    use crate::base::Span;
    use crate::trace::RateCause;

    const HEADER: &str = "t_ps,node,qpn,current_bps,target_bps,cause\n";

    fn table(events: &[Event]) -> io::Result<String> {
        let mut table = RateTable::new(Vec::new(), &story::names())?;
        story::play(events, &mut table)?;
        Ok(String::from_utf8(table.finish()?).unwrap())
    }

    fn changed(ps: u64, node: NodeId, gbps: [u64; 2], cause: RateCause) -> Event {
        let [current, target] = gbps.map(Rate::from_gbps);
        at(ps, node, EventKind::RateChanged { qpn: qpn(2), current, target, cause })
    }

    /// One CNP at 400 Gb/s with an estimate of 0.5: a cut by a quarter, then half the way back, twice.
    fn episode() -> Vec<Event> {
        vec![
            at(1_000, A, EventKind::EpisodeStarted { qpn: qpn(2) }),
            changed(1_000, A, [300, 400], RateCause::Cut),
            changed(22_501_000, A, [350, 400], RateCause::FastRecovery),
            changed(67_501_000, A, [400, 400], RateCause::FastRecovery),
            at(67_501_000, A, EventKind::EpisodeEnded { qpn: qpn(2), lasted: Span::from_us(67) }),
        ]
    }

    #[test]
    fn every_change_has_its_row_and_episodes_begin_and_end_at_the_line_rate() {
        let expected = "1000,a,2,400000000000,400000000000,episode_started\n\
                        1000,a,2,300000000000,400000000000,cut\n\
                        22501000,a,2,350000000000,400000000000,fast_recovery\n\
                        67501000,a,2,400000000000,400000000000,fast_recovery\n\
                        67501000,a,2,400000000000,400000000000,episode_ended\n";
        assert_eq!(table(&episode()).unwrap(), format!("{HEADER}{expected}"));
    }

    #[test]
    fn causes_are_the_words_of_the_event_log() {
        use RateCause::{AdditiveIncrease, AdditiveReduction, Cut, FastRecovery, HyperIncrease};
        for cause in [Cut, AdditiveReduction, FastRecovery, AdditiveIncrease, HyperIncrease] {
            assert_eq!(serde_json::to_value(cause).unwrap(), words::rate_cause(cause));
        }
    }

    #[test]
    fn a_run_without_congestion_leaves_the_header() {
        assert_eq!(table(&story::clean()).unwrap(), HEADER);
        assert_eq!(table(&[]).unwrap(), HEADER);
    }

    #[test]
    fn a_full_disk_is_an_error() {
        for room in [0, HEADER.len() + 10] {
            let written = RateTable::new(Full(room), &story::names()).and_then(|mut table| {
                story::play(&[episode(), vec![changed(9, B, [1, 2], RateCause::Cut)]].concat(), &mut table)?;
                table.finish()
            });
            assert_eq!(written.err().map(|e| e.kind()), Some(io::ErrorKind::StorageFull), "{room} octets of room");
        }
    }
}
