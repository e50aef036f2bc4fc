//! `events.jsonl`: everything that happened, for scripts.

use std::io::{self, BufWriter, Write};

use serde::Serialize;
use serde_json::Serializer;
use serde_json::ser::{CompactFormatter, Formatter};

use super::into_inner;
use crate::base::{NodeId, PortId};
use crate::trace::{Event, Names, Sink};

/// Writes every event as one JSON object on a line of its own, in the order in which they happened.
///
/// `t_ps`, `node` and `event` come first, then the fields of the event; objects are flat. Nodes and ports are names.
/// Quantities are integers whose key ends with the unit: `_ps` picoseconds, `_octets` octets, `_bps` bit/s, and `bytes`
/// for the size of a message. A packet is `packet` (its kind), `class`, `dest_qpn`, `psn` and `payload_octets`. A
/// verdict `dropped` is followed by its `reason`, a reason `malformed` by the parser's `error`.
///
/// ```text
/// {"t_ps":419524,"node":"b","event":"frame_sent","port":"b:a","packet":"ack","class":0,"dest_qpn":2,"psn":1, …
/// ```
///
/// * Errors: those of the writer.
pub struct EventLog<W: Write> {
    writer: BufWriter<W>,
    names: Names,
}

/// Writes JSON as the log wants it: ids under their names, and octets under a key that says so.
///
/// The ids themselves are plain numbers without a scenario to look their names up in.
struct Spelling<'a> {
    names: &'a Names,
    node: NodeId,
    is_key: bool,
    id: Id,
}

/// What the number under the key at hand is the id of.
#[derive(Clone, Copy)]
enum Id {
    Nothing,
    Node,
    Port,
}

/// Keys of octets that do not say so themselves.
const OCTETS: [(&str, &str); 10] = [
    ("carried", "carried_octets"),
    ("missing", "missing_octets"),
    ("rx_data_peak", "rx_data_peak_octets"),
    ("rx_header_peak", "rx_header_peak_octets"),
    ("tx_data_peak", "tx_data_peak_octets"),
    ("tx_header_peak", "tx_header_peak_octets"),
    ("needed", "needed_octets"),
    ("occupancy", "occupancy_octets"),
    ("payload", "payload_octets"),
    ("wire_len", "wire_len_octets"),
];

impl<W: Write> EventLog<W> {
    pub fn new(writer: W, names: &Names) -> Self {
        Self { writer: BufWriter::new(writer), names: names.clone() }
    }

    pub fn finish(self) -> io::Result<W> {
        into_inner(self.writer)
    }
}

impl<W: Write> Sink for EventLog<W> {
    fn record(&mut self, event: &Event) -> io::Result<()> {
        write_event(&mut self.writer, event, &self.names)?;
        self.writer.write_all(b"\n")
    }
}

/// One event as the object that the log has for it, without a line end.
pub fn event_object(event: &Event, names: &Names) -> io::Result<Vec<u8>> {
    let mut object = Vec::new();
    write_event(&mut object, event, names)?;
    Ok(object)
}

fn write_event(writer: &mut impl Write, event: &Event, names: &Names) -> io::Result<()> {
    let spelling = Spelling { names, node: event.node, is_key: false, id: Id::Nothing };
    Ok(event.serialize(&mut Serializer::with_formatter(writer, spelling))?)
}

impl Spelling<'_> {
    fn name(&self, id: u16) -> Option<&str> {
        match self.id {
            Id::Nothing => None,
            Id::Node => Some(self.names.node(NodeId(id))),
            Id::Port => Some(self.names.port(self.node, PortId(id))),
        }
    }
}

impl Formatter for Spelling<'_> {
    fn begin_object_key<W: ?Sized + Write>(&mut self, writer: &mut W, first: bool) -> io::Result<()> {
        self.is_key = true;
        CompactFormatter.begin_object_key(writer, first)
    }

    fn end_object_key<W: ?Sized + Write>(&mut self, _: &mut W) -> io::Result<()> {
        self.is_key = false;
        Ok(())
    }

    fn write_string_fragment<W: ?Sized + Write>(&mut self, writer: &mut W, fragment: &str) -> io::Result<()> {
        if !self.is_key {
            return writer.write_all(fragment.as_bytes());
        }
        self.id = match fragment {
            "node" | "peer" => Id::Node,
            "port" => Id::Port,
            _ => Id::Nothing,
        };
        let key = OCTETS.iter().find(|(key, _)| *key == fragment).map_or(fragment, |(_, key)| key);
        writer.write_all(key.as_bytes())
    }

    fn write_u16<W: ?Sized + Write>(&mut self, writer: &mut W, value: u16) -> io::Result<()> {
        match self.name(value) {
            Some(name) => Ok(serde_json::to_writer(writer, name)?),
            None => CompactFormatter.write_u16(writer, value),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::story::{self, A, B, Full, PORT, at, qpn};
    use super::*;
    use crate::base::{Class, Octets, Psn, Span};
    use crate::trace::{DropReason, EventKind, Headline, PacketKind, Queue, Verdict};
    use crate::wire::WireError;

    fn log(events: &[Event]) -> String {
        let mut log = EventLog::new(Vec::new(), &story::names());
        story::play(events, &mut log).unwrap();
        String::from_utf8(log.finish().unwrap()).unwrap()
    }

    #[test]
    fn an_event_is_a_flat_line_with_names_and_units() {
        let clean = story::clean();
        let expected = [
            r#"{"t_ps":0,"node":"a","event":"message_posted","message":0,"peer":"b","qpn":2,"verb":"write","bytes":8192}"#,
            r#"{"t_ps":0,"node":"a","event":"message_started","message":0,"qpn":2,"first_psn":0,"packets":2}"#,
            r#"{"t_ps":150844,"node":"a","event":"packet_numbered","qpn":2,"psn":0,"transmission":1}"#,
        ];
        assert_eq!(log(&clean[..3]).lines().collect::<Vec<_>>(), expected);
        let expected = [
            r#"{"t_ps":233924,"node":"a","event":"frame_sent","port":"a:b","packet":"write","class":0,"dest_qpn":2,"psn":0,"payload_octets":4096,"wire_len_octets":4154,"transmission":1,"fate":"carried"}"#,
            r#"{"t_ps":333924,"node":"b","event":"frame_received","port":"b:a","packet":"write","class":0,"dest_qpn":2,"psn":0,"payload_octets":4096,"wire_len_octets":4154,"occupancy_octets":4136,"verdict":"accepted"}"#,
        ];
        assert_eq!(log(&[clean[4].clone(), clean[6].clone()]).lines().collect::<Vec<_>>(), expected);
    }

    #[test]
    fn queues_verdicts_and_reasons_are_words() {
        let class = Class::new(3).unwrap();
        let packet =
            Headline { kind: PacketKind::Cnp, class, dest_qpn: qpn(9), psn: Psn::new(0), payload: Octets::ZERO };
        let queued = |queue| at(1, B, EventKind::FrameQueued { port: PORT, queue, packet, qpn: None, waiting: 1 });
        let received = |reason| story::received(1, B, PacketKind::Ack, 0, Verdict::Dropped(reason));
        let text = log(&[
            queued(Queue::Express),
            queued(Queue::Class(class)),
            received(DropReason::AfterNak),
            received(DropReason::Malformed(WireError::BadIcrc { found: 1, computed: 2 })),
        ]);
        let ends = [
            r#""event":"frame_queued","port":"b:a","queue":"express","packet":"cnp","class":3,"dest_qpn":9,"psn":0,"payload_octets":0,"waiting":1}"#,
            r#""event":"frame_queued","port":"b:a","queue":"class","queue_class":3,"packet":"cnp","class":3,"dest_qpn":9,"psn":0,"payload_octets":0,"waiting":1}"#,
            r#""verdict":"dropped","reason":"after_nak"}"#,
            r#""verdict":"dropped","reason":"malformed","error":"ICRC 0x00000001 instead of 0x00000002"}"#,
        ];
        for (line, end) in text.lines().zip(ends) {
            assert!(line.ends_with(end), "{line}");
        }
    }

    #[test]
    fn numbers_that_are_no_ids_stay_numbers() {
        let paused = EventKind::Paused { port: PORT, class: Class::default(), quanta: 0, duration: Span::from_ns(1) };
        let expected = r#"{"t_ps":2,"node":"a","event":"paused","port":"a:b","class":0,"quanta":0,"duration_ps":1000}"#;
        assert_eq!(log(&[at(2, A, paused)]).trim_end(), expected);
    }

    #[test]
    fn no_events_leave_an_empty_file() {
        assert_eq!(log(&[]), "");
    }

    #[test]
    fn a_full_disk_is_an_error() {
        for room in [0, 100] {
            let mut log = EventLog::new(Full(room), &story::names());
            let written = story::play(&story::clean(), &mut log).and_then(|()| log.finish());
            assert_eq!(written.err().map(|e| e.kind()), Some(io::ErrorKind::StorageFull));
        }
    }

    mod any_event {
        use proptest::prelude::*;

        use super::*;

        proptest! {
            #[test]
            fn becomes_a_well_formed_flat_line(events in story::any_events()) {
                // Names are the scenario author's: they may need escapes.
                let mut names = story::names();
                names.nodes[0].name = "a\"\\\n".into();
                let mut log = EventLog::new(Vec::new(), &names);
                story::play(&events, &mut log).unwrap();
                let text = String::from_utf8(log.finish().unwrap()).unwrap();
                prop_assert_eq!(text.lines().count(), events.len());
                for (line, event) in text.lines().zip(&events) {
                    let start = format!("{{\"t_ps\":{},\"node\":\"", event.at.ps());
                    prop_assert!(line.starts_with(&start), "{}", line);
                    let object: serde_json::Map<String, serde_json::Value> = serde_json::from_str(line).unwrap();
                    prop_assert_eq!(object["node"].as_str(), Some(names.node(event.node)));
                    prop_assert!(object.values().all(|value| !value.is_object() && !value.is_array()), "{}", line);
                    // A key written twice would be lost in the object.
                    prop_assert_eq!(line.matches("\":").count(), object.len(), "{}", line);
                }
            }
        }
    }
}
