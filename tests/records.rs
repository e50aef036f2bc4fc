//! What Wireshark makes of our captures. Where it is not installed these tests say so and pass.

use std::fs;
use std::io;
use std::path::Path;
use std::process::Command;

use bytes::Bytes;
use rocemu::base::{Class, Instant, NodeId, Octets, PortId, Psn, Qpn, Rate};
use rocemu::record::{Capture, CaptureMode};
use rocemu::trace::{
    DropReason, Event, EventKind, Headline, LinkFate, Names, NodeNames, PacketKind, PortNames, Sink, Verdict,
};

const A: NodeId = NodeId(0);
const B: NodeId = NodeId(1);

/// Ethernet to RETH of a WRITE FIRST of 4,096 octets.
const WRITE_FIRST: &str = "02000000000202000000000108004502103c00004000401116ad0a0000010a000002c12312b71028\
                           00000600ffff000000120000000000007f00000010000012345600002fa0";
const ACK: &str = "020000000001020000000002080045200030000040004011269b0a0000020a000001c12312b7001c0000\
                   1100ffff00000011000000021f0000014ad25e2f";
const XOFF: &str = "0180c2000001020000000002880801010001ffff0000000000000000000000000000000000000000000000\
                    0000000000000000000000000000000000";

fn octets(hex: &str) -> Vec<u8> {
    let digit = |d: &[u8]| u8::from_str_radix(std::str::from_utf8(d).unwrap(), 16).unwrap();
    hex.as_bytes().chunks(2).map(digit).collect()
}

/// Headers, then the payload of message 0 and an ICRC, which Wireshark does not compute.
fn write_first() -> Bytes {
    let payload = (0..4_096_u32).map(|i| (3 + 7 * i) as u8);
    octets(WRITE_FIRST).into_iter().chain(payload).chain([0x4a, 0xd2, 0x5e, 0x2f]).collect()
}

fn packet(kind: PacketKind, payload: u64) -> Headline {
    let (class, dest_qpn) = (Class::default(), Qpn::new(0x12).unwrap());
    Headline { kind, class, dest_qpn, psn: Psn::new(0), payload: Octets::new(payload) }
}

fn sent(ps: u64, node: NodeId, packet: Headline, wire_len: u64, transmission: u32, frame: &Bytes) -> Event {
    let (wire_len, fate, frame) = (Octets::new(wire_len), LinkFate::Carried, frame.clone());
    let kind =
        EventKind::FrameSent { port: PortId(0), packet, wire_len, transmission, fate, effects: Vec::new(), frame };
    Event { at: Instant::from_ps(ps), node, kind }
}

fn received(ps: u64, node: NodeId, packet: Headline, wire_len: u64, verdict: Verdict, frame: &Bytes) -> Event {
    let (wire_len, occupancy, frame) = (Octets::new(wire_len), Octets::ZERO, frame.clone());
    let kind = EventKind::FrameReceived { port: PortId(0), packet, wire_len, occupancy, verdict, frame };
    Event { at: Instant::from_ps(ps), node, kind }
}

fn capture(mode: CaptureMode, events: &[Event], path: &Path) -> io::Result<()> {
    let node = |name: &str, port: &str| NodeNames {
        name: name.into(),
        ports: vec![PortNames { name: port.into(), rate: Rate::from_gbps(400) }],
    };
    let names = Names { nodes: vec![node("a", "a:b"), node("b", "b:a")], rules: Vec::new() };
    let mut capture = Capture::new(Vec::new(), &names, mode, |_, _| true)?;
    events.iter().try_for_each(|event| capture.record(event))?;
    fs::write(path, capture.finish()?)
}

fn four_frames() -> Vec<Event> {
    let (data, ack, xoff) = (write_first(), Bytes::from(octets(ACK)), Bytes::from(octets(XOFF)));
    let (write, acknowledge) = (packet(PacketKind::Write, 4_096), packet(PacketKind::Ack, 0));
    let after_nak = Verdict::Dropped(DropReason::AfterNak);
    vec![
        sent(233_924, A, write, 4_154, 2, &data),
        received(333_924, B, write, 4_154, after_nak, &data),
        sent(86_400_000_000_336_444, B, acknowledge, 126, 0, &ack),
        sent(86_400_000_000_338_124, B, packet(PacketKind::Xoff, 0), 84, 0, &xoff),
    ]
}

/// What a tool prints, or `None`, and a word about it, where it is not installed.
fn output(tool: &str, arguments: &[&str]) -> Option<String> {
    match Command::new(tool).args(arguments).output() {
        Ok(output) => {
            assert!(output.status.success(), "{tool}: {}", String::from_utf8_lossy(&output.stderr));
            Some(String::from_utf8(output.stdout).expect("tools print UTF-8"))
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            println!("skipped: {tool} is not installed");
            None
        }
        Err(error) => panic!("{tool}: {error}"),
    }
}

#[test]
fn tshark_shows_time_port_direction_and_comment() {
    let directory = tempfile::tempdir().unwrap();
    for mode in [CaptureMode::Full, CaptureMode::Headers] {
        let path = directory.path().join("capture.pcapng");
        capture(mode, &four_frames(), &path).unwrap();
        let fields = [
            "frame.time_epoch",
            "frame.interface_name",
            "frame.packet_flags_direction",
            "frame.len",
            "_ws.col.Protocol",
            "frame.comment",
        ];
        let mut arguments = vec!["-r", path.to_str().unwrap(), "-Tfields", "-Eseparator=|"];
        fields.iter().for_each(|field| arguments.extend(["-e", field]));
        let Some(text) = output("tshark", &arguments) else { return };
        let lines: Vec<_> = text.lines().collect();
        assert_eq!(
            lines,
            [
                "0.000000233|a:b|0x00000002|4170|RRoCE|wire_len=4154 t_ps=233924 transmission=2; retransmission 1",
                "0.000000333|b:a|0x00000001|4170|RRoCE|wire_len=4154 t_ps=333924 occupancy=0; discarded: after NAK",
                "86400.000000336|b:a|0x00000002|62|RRoCE|wire_len=126 t_ps=86400000000336444",
                "86400.000000338|b:a|0x00000002|60|MAC CTRL|wire_len=84 t_ps=86400000000338124",
            ],
            "{mode:?}"
        );
        let bad = ["-r", path.to_str().unwrap(), "-Y", "_ws.malformed || _ws.expert.severity >= 0x600000"];
        assert_eq!(output("tshark", &bad).as_deref(), Some(""), "{mode:?}: neither malformed nor a warning");
    }
}

#[test]
fn headers_mode_keeps_every_transport_header() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("capture.pcapng");
    capture(CaptureMode::Headers, &four_frames(), &path).unwrap();
    let fields = ["-e", "frame.cap_len", "-e", "infiniband.reth.dmalen", "-e", "infiniband.aeth.msn"];
    let mut arguments = vec!["-r", path.to_str().unwrap(), "-Tfields", "-Eseparator=|"];
    arguments.extend(fields);
    let Some(text) = output("tshark", &arguments) else { return };
    assert_eq!(text.lines().collect::<Vec<_>>(), ["96|12192|", "96|12192|", "62||1", "60||"]);
}

#[test]
fn capinfos_shows_the_interfaces_and_nothing_about_the_machine() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("capture.pcapng");
    for events in [four_frames(), Vec::new()] {
        capture(CaptureMode::Full, &events, &path).unwrap();
        let Some(text) = output("capinfos", &[path.to_str().unwrap()]) else { return };
        for line in ["Number of interfaces in file: 2", "Name = a:b", "Name = b:a", "Speed = 400000000000"] {
            assert!(text.contains(line), "{line:?} is missing in\n{text}");
        }
        assert!(text.contains("Time precision = nanoseconds (9)"), "{text}");
        assert!(text.contains(concat!("rocemu ", env!("CARGO_PKG_VERSION"))), "{text}");
        assert!(!text.contains("Hardware") && !text.contains("Capture oper-sys"), "{text}");
    }
}
