//! Writers over `impl Write`: what a run leaves behind for people and scripts.
//!
//! ```text
//!  events ─► Capture       capture.pcapng  frames at the ports, with what the emulator decided about each
//!         ─► MessageTable  messages.csv    a row per message, and the figures of the summary
//!         ─► EventLog      events.jsonl    everything that happened
//!         ─► Ladder        text            a line per frame between two nodes
//!         ─► RateTable     rates.csv       a row per change of a queue pair's rate
//!         ─► QueueTable    queues.csv      how long the queues of switches were
//!         ─► Attribution, Peaks, Pressure, Congestion ─┐
//!  end of run ─────────────────────────────────────────┴► write_summary (summary.json), digest (the terminal)
//! ```
//!
//! Writers stream: their memory does not grow with the frames of a run. They buffer, so an error of the file may show
//! at a later `record` or only in `finish`; no file counts as written before `finish` returned. Nothing here opens
//! files, reads clocks or knows the machine, so that two runs of a scenario give the same bytes.
//!
//! Read first: `ladder::tests::a_lost_packet_is_sent_again`, `messages::tests::a_row_waits_for_the_messages_before_it`.

mod attribution;
mod capture;
mod congestion;
mod digest;
mod doorbells;
mod event_log;
mod explain;
mod hw_counters;
mod ladder;
mod marked;
mod message_rows;
mod messages;
mod peaks;
mod pressure;
mod queues;
mod rates;
mod slowdown;
#[cfg(test)]
mod story;
mod summary;
mod traffic;
mod words;

use std::io::{self, BufWriter, Write};

pub use attribution::{Attribution, Cause, QueuePairTime, Times};
pub use capture::{Capture, CaptureMode};
pub use congestion::Congestion;
pub use digest::{counted, digest};
pub use event_log::{EventLog, event_object};
pub use ladder::{Ladder, LinkEnds};
pub use message_rows::{MessageRow, MessageRows, MessageStatus};
pub use messages::{MessageStats, MessageTable};
pub use peaks::Peaks;
pub use pressure::{PcieUse, Pressure};
pub use queues::QueueTable;
pub use rates::RateTable;
pub use summary::{Outcome, SummaryInput, write_summary};

/// Who wrote a file, as its metadata says it.
const WRITTEN_BY: &str = concat!("rocemu ", env!("CARGO_PKG_VERSION"));

/// Writes out what is buffered and gives the writer back.
fn into_inner<W: Write>(writer: BufWriter<W>) -> io::Result<W> {
    let mut writer = writer.into_inner().map_err(io::IntoInnerError::into_error)?;
    writer.flush()?;
    Ok(writer)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Every row has as many cells as the header.
    fn is_table(octets: &[u8]) -> bool {
        let mut reader = csv::Reader::from_reader(octets);
        let width = reader.headers().map_or(0, csv::StringRecord::len);
        width > 0 && reader.records().all(|row| row.is_ok_and(|row| row.len() == width))
    }

    proptest! {
        #[test]
        fn no_order_of_events_upsets_a_writer(events in story::any_events()) {
            let names = story::names();
            let mut capture = Capture::new(Vec::new(), &names, CaptureMode::Headers, |_, _| true).unwrap();
            story::play(&events, &mut capture).unwrap();
            prop_assert_eq!(capture.finish().unwrap().len() % 4, 0, "pcapng blocks are multiples of 4 octets");
            let mut table = MessageTable::new(Vec::new(), &names).unwrap();
            story::play(&events, &mut table).unwrap();
            prop_assert!(table.finish().is_ok());
            story::play(&events, &mut Peaks::new(&names)).unwrap();
            story::play(&events, &mut Pressure::new(&names)).unwrap();
            let mut rates = RateTable::new(Vec::new(), &names).unwrap();
            story::play(&events, &mut rates).unwrap();
            prop_assert!(is_table(&rates.finish().unwrap()));
            for interval in [0, 1, 1_000_000] {
                let mut queues = QueueTable::new(Vec::new(), &names, crate::base::Span::from_ps(interval)).unwrap();
                story::play(&events, &mut queues).unwrap();
                prop_assert!(is_table(&queues.finish().unwrap()));
            }
            let outcome = Outcome::AllWell;
            let run = story::Run::of(&events);
            let written = write_summary(Vec::new(), &run.input(&outcome)).unwrap();
            prop_assert!(serde_json::from_slice::<serde_json::Value>(&written).is_ok());
            prop_assert!(digest(&run.input(&outcome), None).ends_with('\n'));
            let mut attribution = Attribution::new(&names);
            story::play(&events, &mut attribution).unwrap();
            attribution.at_end(crate::base::Instant::MAX);
        }
    }
}
