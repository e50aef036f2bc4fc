//! What only queue pairs of applications send, as other implementations read it: an RNR NAK, a NAK remote access error,
//! immediate data.

mod common;

use std::fs;
use std::path::Path;
use std::process::Command;

use bytes::Bytes;
use common::{has, scratch, skip, tshark_fields};
use rocemu::base::{Class, Instant, MessageId, NodeId, Octets, Psn, Qpn};
use rocemu::nic::{Address, Config, Connection, Domain, Input, MemoryKey, Nic, Output, Service, Source, WorkRequest};
use rocemu::record::{Capture, CaptureMode};
use rocemu::trace::{Event, EventKind, LinkFate, Names, NodeNames, PortNames, Sink};
use rocemu::wire::{MacAddr, Verb};

const RNR_TIMER_640_US: u8 = 12;

fn qpn() -> Qpn {
    Qpn::new(2).unwrap()
}

fn address(number: u8) -> Address {
    Address { mac: MacAddr([2, 0, 0, 0, 0, number]), ip: core::net::Ipv4Addr::new(10, 0, 0, number) }
}

fn nic(own: u8, peer: u8) -> Nic {
    let mut nic = Nic::new(Config::default(), address(own));
    nic.connect(Connection {
        qpn: qpn(),
        peer_qpn: qpn(),
        peer_address: address(peer),
        initial_psn: Psn::new(0),
        peer_initial_psn: Psn::new(0),
        data_class: Class::DATA,
        control_class: Class::CONTROL,
        service: Service::Verbs { domain: Domain(1), min_rnr_timer: RNR_TIMER_640_US, rnr_retry: 7, retry: 7 },
    });
    nic
}

/// Five octets with immediate data.
fn work(message: u32, verb: Verb) -> WorkRequest {
    WorkRequest {
        message: MessageId(message),
        peer: NodeId(1),
        verb,
        source: Source::Inline(Bytes::from_static(b"rocks")),
        remote: MemoryKey { address: 0x7000, rkey: 77 },
        immediate: Some(0x1234_5678),
        solicited: false,
        slot: None,
        blue_flame: false,
    }
}

/// Hands an input over and takes what is sent until the NIC rests, in the capture as well.
fn frames(nic: &mut Nic, node: u16, from: Instant, input: Input, capture: &mut impl Sink) -> (Instant, Vec<Bytes>) {
    let (mut now, mut frames, mut next) = (from, Vec::new(), Some(input));
    while let Some(input) = next {
        nic.handle_input(now, input);
        while let Some(output) = nic.poll_output() {
            if let Output::Transmit(sent) = output {
                frames.push(sent.frame.clone());
                let (fate, effects, transmission) =
                    (LinkFate::Carried, Vec::new(), sent.origin.map_or(0, |origin| origin.transmission));
                let (port, packet, wire_len, frame) = (sent.port, sent.packet, sent.wire_len, sent.frame);
                let kind = EventKind::FrameSent { port, packet, wire_len, transmission, fate, effects, frame };
                capture.record(&Event { at: now, node: NodeId(node), kind }).unwrap();
            }
        }
        // Nothing takes a millisecond here but timers that wait for an answer.
        let wake = nic.next_wake().filter(|wake| wake.at.since(from).ps() < 100_000_000);
        next = wake.map(|_| Input::Wake);
        now = wake.map_or(now, |wake| wake.at);
    }
    (now, frames)
}

/// A SEND with immediate data and no receive for it, and what B answers; then, from another A, a WRITE with immediate data
/// to memory that is not there.
fn capture(path: &Path) {
    let name = |name: &str, port: &str| NodeNames {
        name: name.into(),
        ports: vec![PortNames { name: port.into(), rate: Config::default().data_rate }],
    };
    let names = Names { nodes: vec![name("a", "a:b"), name("b", "b:a")], rules: Vec::new() };
    let mut capture = Capture::new(fs::File::create(path).unwrap(), &names, CaptureMode::Full, |_, _| true).unwrap();
    let (mut a, mut b) = (nic(1, 2), nic(2, 1));
    let arrives = |frame: &Bytes| Input::Frame { frame: frame.clone(), wire_len: Octets::new(frame.len() as u64 + 4) };
    b.announce(qpn(), MessageId(0));
    let (now, sent) =
        frames(&mut a, 0, Instant::ZERO, Input::Post { qpn: qpn(), work: work(0, Verb::Send) }, &mut capture);
    let (now, _) = frames(&mut b, 1, now, arrives(&sent[0]), &mut capture);

    let mut a = nic(1, 2);
    b.announce(qpn(), MessageId(1));
    let (now, sent) = frames(&mut a, 0, now, Input::Post { qpn: qpn(), work: work(1, Verb::Write) }, &mut capture);
    frames(&mut b, 1, now, arrives(&sent[0]), &mut capture);
    capture.finish().unwrap();
}

#[test]
fn wireshark_reads_them_as_they_were_meant() {
    let dir = scratch();
    let path = dir.path().join("verbs.pcapng");
    capture(&path);
    let fields = [
        "infiniband.bth.opcode",
        "infiniband.immdt",
        "infiniband.bth.padcnt",
        "infiniband.reth.r_key",
        "infiniband.aeth.syndrome.opcode",
        "infiniband.aeth.syndrome.timer",
        "infiniband.aeth.syndrome.error_code",
        "frame.len",
    ];
    let Some(rows) = tshark_fields(&path, "", fields) else { return };
    // Wireshark 4.0 shows immediate data twice.
    let once = |field: &String| field.split(',').next().unwrap_or_default().to_owned();
    let rows: Vec<_> = rows.iter().map(|row| row.each_ref().map(once)).collect();
    assert_eq!(
        rows,
        [
            // Five octets and three of padding, behind 58 of headers and ICRC and 4 of immediate data.
            ["5", "12345678", "3", "", "", "", "", "70"],
            // RNR NAK, code 12: 640 us.
            ["17", "", "0", "", "1", "12", "", "62"],
            // 16 octets of RETH more.
            ["11", "12345678", "3", "0x0000004d", "", "", "", "86"],
            ["17", "", "0", "", "3", "", "2", "62"],
        ]
    );
}

/// Every frame is taken apart, given an ICRC anew and put together again.
const CONFIRM: &str = "
import sys
from scapy.contrib.roce import BTH
from scapy.layers.l2 import Ether
from scapy.utils import RawPcapNgReader
for octets, about in RawPcapNgReader(sys.argv[1]):
    packet = Ether(octets)
    packet[BTH].icrc = None
    print(packet[BTH].opcode, bytes(packet) == octets)
";

#[test]
fn scapy_computes_the_same_icrc() {
    let has_scapy = has("python3")
        && Command::new("python3").args(["-c", "import scapy.contrib.roce"]).output().is_ok_and(|o| o.status.success());
    if !has_scapy {
        return skip("needs python3 with scapy");
    }
    let dir = scratch();
    let path = dir.path().join("verbs.pcapng");
    capture(&path);
    let output = Command::new("python3").args(["-c", CONFIRM]).arg(&path).output().unwrap();
    assert_eq!(String::from_utf8(output.stdout).unwrap(), "5 True\n17 True\n11 True\n17 True\n");
}
