//! `capture.pcapng`: the frames at the ports, as Wireshark reads them.

use std::borrow::Cow;
use std::fmt::Write as _;
use std::io::{self, BufWriter, Write};
use std::time::Duration;

use pcap_file::pcapng::blocks::enhanced_packet::{EnhancedPacketBlock, EnhancedPacketOption};
use pcap_file::pcapng::blocks::interface_description::{
    InterfaceDescriptionBlock, InterfaceDescriptionOption, InterfaceTsResolution,
};
use pcap_file::pcapng::blocks::opt_common::CommonOption;
use pcap_file::pcapng::blocks::section_header::{SectionHeaderBlock, SectionHeaderOption};
use pcap_file::pcapng::{PcapNgWriteError, PcapNgWriter};
use pcap_file::{DataLink, Endianness};

use super::marked::Marked;
use super::{WRITTEN_BY, into_inner, words};
use crate::base::{NodeId, PortId};
use crate::trace::{Event, EventKind, Names, PortNames, Sink};

/// How much of each frame a capture keeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CaptureMode {
    /// The first 96 octets: every header, and enough payload to recognise it. ACK, NAK, CNP and PFC are whole.
    Headers,
    /// All of it.
    Full,
}

/// Writes the frames of chosen ports as pcapng: one interface per port, nanosecond stamps, direction flags, and a
/// comment with what the packet itself cannot say.
///
/// Blocks stand in the order of events; a frame that crosses a link between two captured ports shows up twice, when its
/// last bit leaves and when it has arrived. Lengths are those of the real frame; the model's is in the comment.
///
/// The comment is `key=value` pairs separated by spaces, then remarks, each after `"; "`. Scripts may rely on it:
///
/// | direction | pairs | remarks |
/// | --- | --- | --- |
/// | outbound | `wire_len` `t_ps`, and `transmission` where a PSN was given | `retransmission <n>` from the second transmission on, `CE set` where a switch marked it, then what each fault rule did to the frame, with the rule's name: `dropped by <rule>` … |
/// | inbound | `wire_len` `t_ps` `occupancy` | one verdict: `accepted`, `duplicate`, `processed`, `stale`, `forwarded`, `discarded: <reason>` |
///
/// `wire_len` and `occupancy` (of the ingress pool, after the verdict) are octets of the model, `t_ps` the exact time in
/// picoseconds, whose nanoseconds rounded down are the stamp.
///
/// * Errors: those of the writer.
/// * Source: timing rules 27 and 35; pcapng, draft-ietf-opsawg-pcapng.
pub struct Capture<W: Write> {
    writer: PcapNgWriter<BufWriter<W>>,
    /// Interface of each port of each node; `None` for a port that is not captured.
    interfaces: Vec<Vec<Option<u32>>>,
    snap_octets: usize,
    comment: String,
    marked: Marked,
    names: Names,
}

#[derive(Clone, Copy)]
#[repr(u32)]
enum Direction {
    Inbound = 1,
    Outbound = 2,
}

impl CaptureMode {
    /// Ethernet, IPv4, UDP, BTH, RETH and IMMDT are 14 + 20 + 8 + 12 + 16 + 4 = 74 octets. For "all" it is the usual limit
    /// of capture tools, longer than any frame; pcapng's own "no limit" is 0, which capinfos shows as a length of 0.
    const fn snap_octets(self) -> u32 {
        match self {
            Self::Headers => 96,
            Self::Full => 262_144,
        }
    }
}

impl<W: Write> Capture<W> {
    /// Writes the head of the file: an interface for every port that `is_chosen`, in the order of `names`.
    pub fn new(
        writer: W,
        names: &Names,
        mode: CaptureMode,
        is_chosen: impl Fn(NodeId, PortId) -> bool,
    ) -> io::Result<Self> {
        let section = SectionHeaderBlock {
            // Not the machine's: the same run gives the same bytes everywhere.
            endianness: Endianness::Little,
            options: vec![SectionHeaderOption::UserApplication(WRITTEN_BY.into())],
            ..Default::default()
        };
        let mut writer = PcapNgWriter::with_section_header(BufWriter::new(writer), section).map_err(io_error)?;
        let mut interfaces = Vec::new();
        let mut interface_count = 0;
        for (node, node_index) in names.nodes.iter().zip(0..) {
            let mut of_node = Vec::new();
            for (port, port_index) in node.ports.iter().zip(0..) {
                let interface = is_chosen(NodeId(node_index), PortId(port_index)).then_some(interface_count);
                if interface.is_some() {
                    writer.write_pcapng_block(description(port, mode)).map_err(io_error)?;
                    interface_count += 1;
                }
                of_node.push(interface);
            }
            interfaces.push(of_node);
        }
        Ok(Self {
            writer,
            interfaces,
            snap_octets: mode.snap_octets() as usize,
            comment: String::new(),
            marked: Marked::default(),
            names: names.clone(),
        })
    }

    pub fn finish(self) -> io::Result<W> {
        into_inner(self.writer.into_inner())
    }

    fn interface(&self, node: NodeId, port: PortId) -> Option<u32> {
        *self.interfaces.get(node.index())?.get(port.index())?
    }

    fn start_comment(&mut self, event: &Event, wire_len: u64) {
        self.comment.clear();
        self.pair("wire_len", wire_len);
        self.pair("t_ps", event.at.ps());
    }

    fn pair(&mut self, key: &str, value: u64) {
        let space = if self.comment.is_empty() { "" } else { " " };
        write!(self.comment, "{space}{key}={value}").expect("a string takes all text");
    }

    fn remark(&mut self, words: &str) {
        self.comment.push_str("; ");
        self.comment.push_str(words);
    }

    fn write_packet(&mut self, event: &Event, interface: u32, direction: Direction, frame: &[u8]) -> io::Result<()> {
        let kept = &frame[..frame.len().min(self.snap_octets)];
        let block = EnhancedPacketBlock {
            interface_id: interface,
            timestamp: Duration::from_nanos(event.at.ns_floor()),
            original_len: u32::try_from(frame.len()).map_err(io::Error::other)?,
            data: Cow::Borrowed(kept),
            options: vec![
                EnhancedPacketOption::Common(CommonOption::Comment(Cow::Borrowed(&self.comment))),
                EnhancedPacketOption::Flags(direction as u32),
            ],
        };
        self.writer.write_pcapng_block(block).map_err(io_error)?;
        Ok(())
    }
}

impl<W: Write> Sink for Capture<W> {
    fn record(&mut self, event: &Event) -> io::Result<()> {
        self.marked.hear(event);
        match &event.kind {
            EventKind::FrameSent { port, wire_len, transmission, effects, frame, .. } => {
                let is_marked = self.marked.take(event.node, *port);
                let Some(interface) = self.interface(event.node, *port) else { return Ok(()) };
                self.start_comment(event, wire_len.get());
                if *transmission > 0 {
                    self.pair("transmission", u64::from(*transmission));
                }
                if let Some(words) = words::retransmission(*transmission) {
                    self.remark(&words);
                }
                if is_marked {
                    self.remark(words::MARKED);
                }
                for &effect in effects {
                    self.remark(&words::effect(effect, &self.names));
                }
                self.write_packet(event, interface, Direction::Outbound, frame)
            }
            EventKind::FrameReceived { port, wire_len, occupancy, verdict, frame, .. } => {
                let Some(interface) = self.interface(event.node, *port) else { return Ok(()) };
                self.start_comment(event, wire_len.get());
                self.pair("occupancy", occupancy.get());
                self.remark(&words::verdict(*verdict));
                self.write_packet(event, interface, Direction::Inbound, frame)
            }
            _ => Ok(()),
        }
    }
}

fn description(port: &PortNames, mode: CaptureMode) -> InterfaceDescriptionBlock<'_> {
    InterfaceDescriptionBlock {
        linktype: DataLink::ETHERNET,
        snaplen: mode.snap_octets(),
        options: vec![
            InterfaceDescriptionOption::IfName(Cow::Borrowed(&port.name)),
            InterfaceDescriptionOption::IfSpeed(port.rate.bps()),
            InterfaceDescriptionOption::IfTsResol(InterfaceTsResolution::NANO),
        ],
    }
}

fn io_error(error: PcapNgWriteError) -> io::Error {
    match error {
        PcapNgWriteError::Io(error) => error,
        other => io::Error::other(other),
    }
}

#[cfg(test)]
mod tests {
    use pcap_parser::pcapng::{Block, PcapNGOption};
    use pcap_parser::{PcapBlockOwned, PcapNGReader, traits::PcapReaderIterator};

    use super::super::story::{self, B, Full};
    use super::*;

    /// What an independent reader finds: interfaces as `name speed tsresol snaplen`, packets as
    /// `interface stamp captured/original flags comment`.
    fn read(file: &[u8]) -> (Vec<String>, Vec<String>) {
        let mut reader = PcapNGReader::new(65_536, file).expect("a section header");
        let (mut interfaces, mut packets) = (Vec::new(), Vec::new());
        let text = |octets: &[u8]| String::from_utf8_lossy(octets).into_owned();
        // The reader's own slice runs on into the padding.
        let octets = |option: &PcapNGOption<'_>| option.value()[..usize::from(option.len)].to_vec();
        while let Ok((length, block)) = reader.next() {
            match block {
                PcapBlockOwned::NG(Block::SectionHeader(section)) => {
                    let options: Vec<_> = section.options.iter().map(|o| (o.code.0, text(&octets(o)))).collect();
                    assert_eq!(options[0], (4, format!("rocemu {}", env!("CARGO_PKG_VERSION"))));
                    assert!(options[1..].iter().all(|(code, _)| *code == 0), "nothing about the machine");
                }
                PcapBlockOwned::NG(Block::InterfaceDescription(i)) => {
                    let value = |code| i.options.iter().find(|o| o.code.0 == code).map(octets);
                    let speed = u64::from_le_bytes(value(8).and_then(|v| v.try_into().ok()).expect("a speed"));
                    let name = text(&value(2).expect("a name"));
                    interfaces.push(format!("{name} {speed} {} {}", i.if_tsresol, i.snaplen));
                }
                PcapBlockOwned::NG(Block::EnhancedPacket(p)) => {
                    let value = |code| p.options.iter().find(|o| o.code.0 == code).map(octets);
                    let stamp = u64::from(p.ts_high) << 32 | u64::from(p.ts_low);
                    let (flags, comment) = (value(2).expect("flags")[0], text(&value(1).expect("a comment")));
                    packets.push(format!("{} {stamp} {}/{} {flags} {comment}", p.if_id, p.caplen, p.origlen));
                }
                _ => panic!("a block that captures do not have"),
            }
            reader.consume(length);
        }
        (interfaces, packets)
    }

    fn written(events: &[Event], mode: CaptureMode, is_chosen: impl Fn(NodeId, PortId) -> bool) -> Vec<u8> {
        let mut capture = Capture::new(Vec::new(), &story::names(), mode, is_chosen).unwrap();
        story::play(events, &mut capture).unwrap();
        capture.finish().unwrap()
    }

    #[test]
    fn every_frame_is_seen_leaving_and_arriving() {
        let (interfaces, packets) = read(&written(&story::clean(), CaptureMode::Full, |_, _| true));
        assert_eq!(interfaces, ["a:b 400000000000 9 262144", "b:a 400000000000 9 262144"]);
        assert_eq!(
            packets,
            [
                "0 233 4170/4170 2 wire_len=4154 t_ps=233924 transmission=1",
                "0 317 4170/4170 2 wire_len=4154 t_ps=317004 transmission=1",
                "1 333 4170/4170 1 wire_len=4154 t_ps=333924 occupancy=4136; accepted",
                "1 417 4170/4170 1 wire_len=4154 t_ps=417004 occupancy=4136; accepted",
                "1 419 62/62 2 wire_len=126 t_ps=419524",
                "0 519 62/62 1 wire_len=126 t_ps=519524 occupancy=0; processed",
            ]
        );
    }

    #[test]
    fn a_capture_of_headers_keeps_the_length_of_the_frame() {
        let (interfaces, packets) = read(&written(&story::lossy(), CaptureMode::Headers, |node, _| node == B));
        assert_eq!(interfaces, ["b:a 400000000000 9 96"]);
        assert_eq!(packets[0], "0 333 96/4170 1 wire_len=4154 t_ps=333924 occupancy=0; discarded: ingress pool full");
        assert_eq!(packets[1], "0 417 96/4170 1 wire_len=4154 t_ps=417004 occupancy=0; discarded: after NAK");
        assert_eq!(packets.len(), 6, "those of the other port are not there");
    }

    #[test]
    fn a_retransmission_says_so() {
        let (_, packets) = read(&written(&story::lossy(), CaptureMode::Headers, |_, _| true));
        let again = "0 753 96/4170 2 wire_len=4154 t_ps=753448 transmission=2; retransmission 1";
        assert!(packets.iter().any(|packet| packet == again), "{packets:#?}");
    }

    #[test]
    fn a_mark_stands_at_the_frame_that_got_it() {
        use crate::trace::PacketKind::Write;
        let frame = |ps, psn| story::sent(ps, B, Write, psn, 0);
        let events = [story::marked(1_000, B), frame(2_000, 0), frame(3_000, 1)];
        let (_, packets) = read(&written(&events, CaptureMode::Headers, |_, _| true));
        assert!(packets[0].ends_with("wire_len=4154 t_ps=2000; CE set"), "{packets:?}");
        assert!(packets[1].ends_with("wire_len=4154 t_ps=3000"), "{packets:?}");
    }

    #[test]
    fn a_run_without_frames_leaves_a_valid_file() {
        let (interfaces, packets) = read(&written(&[], CaptureMode::Full, |_, _| true));
        assert_eq!((interfaces.len(), packets.len()), (2, 0));
        let (interfaces, packets) = read(&written(&[], CaptureMode::Full, |_, _| false));
        assert_eq!((interfaces.len(), packets.len()), (0, 0));
    }

    #[test]
    fn a_full_disk_is_an_error_wherever_it_strikes() {
        let whole = written(&story::clean(), CaptureMode::Full, |_, _| true).len();
        for room in (0..whole).step_by(97) {
            let written =
                Capture::new(Full(room), &story::names(), CaptureMode::Full, |_, _| true).and_then(|mut c| {
                    story::play(&story::clean(), &mut c)?;
                    c.finish()
                });
            assert_eq!(written.err().map(|e| e.kind()), Some(io::ErrorKind::StorageFull), "{room} octets of room");
        }
    }
}
