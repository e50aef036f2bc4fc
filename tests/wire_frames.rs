//! The wire room against 47 sample frames, a second CRC, and whatever proptest thinks of.
//!
//! `data/frames/frames.hex.tsv` holds the frames by name, `index.tsv` their sizes: octets captured, and the model's size.

use std::collections::BTreeMap;
use std::net::Ipv4Addr;

use bytes::Bytes;
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use proptest::sample::{Index, select};
use rocemu::base::{Class, Octets, Psn, Qpn};
use rocemu::wire::*;

use Verdict::{Damaged, Reads, Refused};

#[derive(Debug)]
enum Verdict {
    /// As its line of text.
    Reads(&'static str),
    Refused(WireError),
    /// Refused, because the last four octets are not the CRC of the others.
    Damaged,
}

/// What becomes of each sample, in the order of the index.
#[rustfmt::skip]
const VERDICTS: [(&str, Verdict); 47] = [
    ("write_first",        Reads("WRITE First psn=0 qp=0x000012 4096 B")),
    ("write_middle",       Reads("WRITE Middle psn=1 qp=0x000012 4096 B")),
    ("write_last",         Reads("WRITE Last psn=2 qp=0x000012 4000 B")),
    ("ack_of_write",       Reads("ACK psn=2 msn=1")),
    ("write_only_1B",      Reads("WRITE Only psn=3 qp=0x000012 1 B")),
    ("write_only_0B",      Reads("WRITE Only psn=4 qp=0x000012 0 B")),
    ("write_only_imm",     Reads("WRITE Only + Imm psn=5 qp=0x000012 64 B imm=0xdeadbeef")),
    ("write_last_imm",     Reads("WRITE Last + Imm psn=6 qp=0x000012 64 B imm=0x01020304")),
    ("send_first",         Reads("SEND First psn=7 qp=0x000012 4096 B")),
    ("send_middle",        Reads("SEND Middle psn=8 qp=0x000012 4096 B")),
    ("send_last",          Reads("SEND Last psn=9 qp=0x000012 1001 B")),
    ("send_last_imm",      Reads("SEND Last + Imm psn=10 qp=0x000012 10 B imm=0x00000007")),
    ("send_only",          Reads("SEND Only psn=11 qp=0x000012 512 B")),
    ("send_only_imm",      Reads("SEND Only + Imm psn=12 qp=0x000012 3 B imm=0x00000008")),
    ("send_only_0B",       Reads("SEND Only psn=13 qp=0x000012 0 B")),
    // Credit codes are never acted upon.
    ("ack_credit0",        Reads("ACK psn=16777215 msn=11259375")),
    ("ack_credit_code10",  Reads("ACK psn=16777215 msn=11259375")),
    ("ack_credit_invalid", Reads("ACK psn=16777215 msn=11259375")),
    ("nak_psn_seq",        Reads("NAK psn=16777215 sequence error")),
    ("nak_inv_req",        Reads("NAK psn=16777215 invalid request")),
    ("nak_rem_access",     Reads("NAK psn=16777215 remote access error")),
    ("nak_rem_op",         Reads("NAK psn=16777215 remote operational error")),
    ("nak_inv_rd",         Reads("NAK psn=16777215 invalid RD request")),
    ("rnr_timer0",         Reads("RNR NAK psn=16777215 wait 655.36 ms")),
    ("rnr_timer12",        Reads("RNR NAK psn=16777215 wait 640 us")),
    ("aeth_reserved",      Reads("AETH 0x40 psn=16777215 msn=11259375")),
    ("cnp_0x81",           Reads("CNP qp=0x000011")),
    ("cnp_0x80_wireshark_label", Refused(WireError::UnknownOpcode(0x80))),
    ("write_only_CE",      Reads("WRITE Only psn=16777215 qp=0x000012 256 B CE")),
    ("write_only_class3",  Reads("WRITE Only psn=0 qp=0x000012 256 B")),
    ("write_only_vlan_pcp3", Refused(WireError::VlanTagged)),
    // Without an ICRC the last four octets are taken for one, whatever they are.
    ("write_only_no_icrc", Damaged),
    ("write_only_bad_icrc", Damaged),
    ("seed_literal_write_only_no_reth_no_icrc", Damaged),
    ("seed_literal_write_only_8B_no_reth_no_icrc", Damaged),
    ("seed_literal_write_middle_no_icrc", Damaged),
    ("ack_no_icrc",        Damaged),
    // Filler belongs behind the datagram, where the next two but one have it.
    ("ack_64B_payload_with_icrc", Refused(WireError::UnexpectedPayload { opcode: Opcode::ACKNOWLEDGE, octets: 64 })),
    ("ack_64B_payload_no_icrc", Damaged),
    ("ack_eth_trailer_to_122", Reads("ACK psn=2 msn=1")),
    ("cnp_eth_trailer_to_118", Reads("CNP qp=0x000011")),
    // Well formed; that no such queue pair exists is for the NIC to find.
    ("qpn1_data_as_MAD",   Reads("SEND Only psn=1 qp=0x000001 256 B")),
    ("pfc_xoff_c0",        Reads("PFC XOFF class 0 quanta 65535")),
    ("pfc_xoff_c0c1",      Reads("PFC XOFF class 0 quanta 65535, XOFF class 1 quanta 65535")),
    ("pfc_xon_c0",         Reads("PFC XON class 0")),
    ("pfc_xoff_c0_padded_80", Reads("PFC XOFF class 0 quanta 65535")),
    // Reads, with the reserved bits kept: see below.
    ("pfc_bad_reserved_vec", Reads("PFC XOFF class 0 quanta 1")),
];

struct Sample {
    frame: Bytes,
    captured: usize,
    model: Octets,
}

fn samples() -> BTreeMap<&'static str, Sample> {
    let unhex = |hex: &str| -> Bytes {
        hex.as_bytes()
            .chunks(2)
            .map(|pair| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap())
            .collect()
    };
    let frames: BTreeMap<_, _> =
        include_str!("data/frames/frames.hex.tsv").lines().map(|line| line.split_once('\t').unwrap()).collect();
    let index = include_str!("data/frames/index.tsv").lines().skip(1).map(|line| {
        let columns: Vec<_> = line.split('\t').collect();
        let (captured, model) = (columns[2].parse().unwrap(), Octets::new(columns[3].parse().unwrap()));
        (columns[1], Sample { frame: unhex(frames[columns[1]]), captured, model })
    });
    index.collect()
}

fn sample(name: &str) -> Bytes {
    samples()[name].frame.clone()
}

fn roce(name: &str) -> RocePacket {
    match Packet::parse(&sample(name)) {
        Ok(Packet::Roce(packet)) => packet,
        other => panic!("{name}: {other:?}"),
    }
}

fn qpn(n: u32) -> Qpn {
    Qpn::new(n).unwrap()
}

/// The way of the samples' data; their answers come back on it.
const FLOW: Endpoints = Endpoints {
    eth_dst: MacAddr([2, 0, 0, 0, 0, 2]),
    eth_src: MacAddr([2, 0, 0, 0, 0, 1]),
    ip_src: Ipv4Addr::new(10, 0, 0, 1),
    ip_dst: Ipv4Addr::new(10, 0, 0, 2),
    udp_src: 0xc123,
};

/// CRC-32 bit by bit, straight from the polynomial: shares nothing with the room's.
fn slow_icrc(frame: &[u8]) -> [u8; 4] {
    let end = 14 + usize::from(u16::from_be_bytes([frame[16], frame[17]])) - 4;
    let mut covered = [&[0xff; 8], &frame[14..end]].concat();
    for (at, len) in [(1, 1), (8, 1), (10, 2), (26, 2), (32, 1)] {
        covered[8 + at..][..len].fill(0xff);
    }
    let mut state = u32::MAX;
    for octet in covered {
        for bit in 0..8 {
            let feedback = (state ^ u32::from(octet >> bit)) & 1;
            state = (state >> 1) ^ (feedback * 0xedb8_8320);
        }
    }
    (!state).to_le_bytes()
}

fn icrc_of(frame: &[u8]) -> [u8; 4] {
    let end = 14 + usize::from(u16::from_be_bytes([frame[16], frame[17]]));
    frame[end - 4..end].try_into().unwrap()
}

#[test]
fn every_sample_frame_has_its_verdict() {
    let samples = samples();
    assert_eq!(samples.len(), VERDICTS.len());
    for (name, verdict) in VERDICTS {
        let Sample { frame, captured, model } = &samples[name];
        assert_eq!(frame.len(), *captured, "{name}");
        match (Packet::parse(frame), verdict) {
            (Ok(packet), Reads(line)) => {
                assert_eq!(packet.to_string(), line, "{name}");
                assert_eq!(packet.emit(), frame, "{name} is emitted as it came");
                assert_eq!(packet.wire_len(), *model, "{name}");
                assert_eq!(model_len(frame), *model, "{name}, unparsed");
            }
            (Err(refusal), Refused(reason)) => assert_eq!(refusal, reason, "{name}"),
            (Err(refusal), Damaged) => {
                let [found, computed] = [icrc_of(frame), slow_icrc(frame)].map(u32::from_be_bytes);
                assert_eq!(refusal, WireError::BadIcrc { found, computed }, "{name}");
            }
            (result, verdict) => panic!("{name}: {verdict:?} expected, {result:?} found"),
        }
    }
}

#[test]
fn a_second_crc_agrees_on_every_good_sample() {
    let mut agreed = 0;
    for (name, Sample { frame, .. }) in samples() {
        if let Ok(Packet::Roce(_)) = Packet::parse(&frame) {
            assert_eq!(slow_icrc(&frame), icrc_of(&frame), "{name}");
            assert_eq!(verify_icrc(&frame), Ok(()), "{name}");
            agreed += 1;
        }
    }
    assert_eq!(agreed, 32);
}

#[test]
fn a_damaged_packet_can_still_be_shown() {
    let frame = sample("write_only_bad_icrc");
    let packet = Packet::parse_with(&frame, IcrcCheck::Ignore).unwrap();
    assert_eq!(packet.to_string(), "WRITE Only psn=2 qp=0x000012 256 B");
    assert_eq!(verify_icrc(&packet.emit()), Ok(()), "and is whole when it is emitted");
}

#[test]
fn what_a_nic_sends_is_what_the_samples_hold() {
    let (data, control) = (Class::new(0).unwrap(), Class::new(1).unwrap());
    let first = roce("write_first");
    let segment = |name: &str, verb, first_and_last: (bool, bool), psn| Segment {
        verb,
        first: first_and_last.0,
        last: first_and_last.1,
        dest_qpn: qpn(0x12),
        psn: Psn::new(psn),
        reth: first.reth.unwrap(),
        immediate: roce(name).immediate,
        payload: roce(name).payload,
    };
    for (name, verb, place, psn) in [
        ("write_first", Verb::Write, (true, false), 0),
        ("write_middle", Verb::Write, (false, false), 1),
        ("write_last", Verb::Write, (false, true), 2),
        ("write_last_imm", Verb::Write, (false, true), 6),
        ("send_first", Verb::Send, (true, false), 7),
        ("send_middle", Verb::Send, (false, false), 8),
        ("send_last", Verb::Send, (false, true), 9),
        ("send_only", Verb::Send, (true, true), 11),
        ("send_only_imm", Verb::Send, (true, true), 12),
    ] {
        let packet = RocePacket::data(&FLOW, data, Ecn::Ect0, segment(name, verb, place, psn));
        assert_eq!(packet.emit(), sample(name), "{name}");
        assert_eq!(packet.kind(), PacketKind::Data(verb));
    }

    let back = FLOW.reversed();
    let ack = RocePacket::ack(&back, control, qpn(0x11), Psn::new(2), 1);
    assert_eq!((ack.emit(), ack.kind()), (sample("ack_of_write"), PacketKind::Ack));
    assert_eq!(ack.padded_to_model().emit(), sample("ack_eth_trailer_to_122"));

    let code = NakCode::PsnSequenceError;
    let nak = RocePacket::nak(&back, control, qpn(0x11), Psn::new(0xff_ffff), code, 0xab_cdef);
    assert_eq!((nak.emit(), nak.kind()), (sample("nak_psn_seq"), PacketKind::Nak(code)));

    let cnp = RocePacket::cnp(&back, control, qpn(0x11));
    assert_eq!((cnp.emit(), cnp.kind()), (sample("cnp_0x81"), PacketKind::Cnp));
    assert_eq!(cnp.padded_to_model().emit(), sample("cnp_eth_trailer_to_118"));

    let pause = PfcFrame::pause(FLOW.eth_dst, data, 65_535);
    assert_eq!(pause.emit(), sample("pfc_xoff_c0"));
    assert_eq!(pause.padded_to_model().emit(), sample("pfc_xoff_c0_padded_80"));
    assert_eq!(PfcFrame::resume(FLOW.eth_dst, data).emit(), sample("pfc_xon_c0"));
}

#[test]
fn a_data_packet_needs_no_filler() {
    assert_eq!(roce("write_middle").padded_to_model(), roce("write_middle"));
    assert_eq!(roce("write_only_0B").padded_to_model(), roce("write_only_0B"));
}

#[test]
fn reserved_bits_of_a_pause_are_told_to_the_nic() {
    let Ok(Packet::Pfc(pause)) = Packet::parse(&sample("pfc_bad_reserved_vec")) else { panic!("a pause") };
    assert_eq!((pause.reserved, pause.enabled, pause.quanta[0]), (1, 1, 1));
}

/// Puts a right checksum and a right ICRC on a frame, so that only what was done to it on purpose is wrong.
fn mended(mut frame: Vec<u8>) -> Bytes {
    if frame.len() >= 34 {
        frame[24..26].fill(0);
        let sum: u32 = frame[14..34].chunks(2).map(|word| u32::from(u16::from_be_bytes([word[0], word[1]]))).sum();
        let sum = (sum & 0xffff) + (sum >> 16);
        frame[24..26].copy_from_slice(&(!(sum as u16)).to_be_bytes());
        let end = 14 + usize::from(u16::from_be_bytes([frame[16], frame[17]]));
        if (58..=frame.len()).contains(&end) {
            let icrc = slow_icrc(&frame);
            frame[end - 4..end].copy_from_slice(&icrc);
        }
    }
    frame.into()
}

fn forged(name: &str, change: impl FnOnce(&mut Vec<u8>)) -> Result<Packet, WireError> {
    let mut frame = sample(name).to_vec();
    change(&mut frame);
    Packet::parse(&mended(frame))
}

/// Shortens or lengthens a frame to `len` octets, all of them inside its datagram.
fn resize(frame: &mut Vec<u8>, len: usize) {
    frame.resize(len, 0);
    frame[16..18].copy_from_slice(&(len as u16 - 14).to_be_bytes());
    frame[38..40].copy_from_slice(&(len as u16 - 34).to_be_bytes());
}

#[test]
fn every_way_of_being_wrong_has_a_reason_of_its_own() {
    use WireError::*;
    let write = "write_only_CE";
    let set = |at: usize, octet: u8| move |frame: &mut Vec<u8>| frame[at] = octet;
    let opcode = Opcode::WRITE_ONLY;
    for (found, reason) in [
        (forged(write, set(12, 0x86)), UnknownEtherType(0x8600)),
        (forged(write, set(14, 0x65)), BadIpVersion(6)),
        (forged(write, set(14, 0x44)), BadIpHeaderLength(4)),
        (forged(write, set(14, 0x46)), IpOptions),
        (forged(write, set(20, 0xc0)), ReservedIpFlag),
        (forged(write, set(20, 0x20)), Fragment),
        (forged(write, set(21, 0x01)), Fragment),
        (forged(write, set(23, 6)), NotUdp(6)),
        (forged(write, set(37, 0xb8)), WrongPort(4792)),
        (forged(write, set(39, 0x27)), LengthMismatch { ip: 296, udp: 295 }),
        (forged(write, |frame| frame.truncate(329)), Truncated { need: 316, have: 315 }),
        (forged(write, |frame| resize(frame, 41)), Short { need: 28, have: 27 }),
        (forged(write, |frame| resize(frame, 57)), Short { need: 16, have: 15 }),
        (forged(write, set(43, 0x82)), BadTransportVersion(2)),
        (forged(write, set(42, 0x0c)), UnsupportedOpcode(0x0c)),
        (forged(write, set(42, 0x13)), UnsupportedOpcode(0x13)),
        (forged(write, set(42, 0x80)), UnknownOpcode(0x80)),
        (forged(write, |frame| resize(frame, 58)), MissingHeader { opcode, need: 16, have: 0 }),
        (forged(write, |frame| resize(frame, 73)), MissingHeader { opcode, need: 16, have: 15 }),
        (forged("cnp_0x81", |frame| resize(frame, 73)), MissingHeader { opcode: Opcode::CNP, need: 16, have: 15 }),
        (forged("cnp_0x81", |frame| resize(frame, 78)), UnexpectedPayload { opcode: Opcode::CNP, octets: 4 }),
        (forged(write, |frame| resize(frame, 331)), BadPad { pad: 0, octets: 257 }),
        (forged("ack_of_write", set(43, 0x10)), BadPad { pad: 1, octets: 0 }),
        (forged("write_only_0B", set(43, 0xb0)), BadPad { pad: 3, octets: 0 }),
        (forged("write_only_1B", set(73, 1)), BadPad { pad: 3, octets: 4 }),
    ] {
        assert_eq!(found.map(|packet| packet.to_string()), Err(reason));
    }

    let mut frame = sample(write).to_vec();
    frame[22] -= 1;
    assert!(matches!(Packet::parse(&frame.into()), Err(IpChecksum { .. })), "a TTL that was not paid for");
    assert_eq!(Packet::parse(&Bytes::from_static(&[0; 13])), Err(Short { need: 14, have: 13 }));
}

#[test]
fn a_udp_checksum_and_reserved_bits_are_taken_and_kept() {
    let Ok(Packet::Roce(packet)) = forged("write_only_CE", |frame| {
        frame[40] = 0x12;
        frame[46] = 0xbf;
        frame[50] |= 0x7f;
    }) else {
        panic!("they are no reason to refuse")
    };
    assert_eq!(packet.udp_checksum, 0x1200);
    assert_eq!((packet.bth.fecn, packet.bth.becn, packet.bth.reserved), (true, false, [0x3f, 0x7f]));
}

fn data_packet() -> impl Strategy<Value = RocePacket> {
    let place = (select(vec![Verb::Send, Verb::Write]), any::<bool>(), any::<bool>(), option::of(any::<u32>()));
    let remote = (any::<u64>(), any::<u32>(), any::<u32>());
    (place, remote, vec(any::<u8>(), 0..600), 0..1_u32 << 24, any::<u32>()).prop_map(
        |((verb, first, last, immediate), (va, rkey, length), payload, dest_qpn, psn)| {
            let (dest_qpn, psn, reth) = (qpn(dest_qpn), Psn::new(psn), Reth { va, rkey, length });
            let segment = Segment { verb, first, last, dest_qpn, psn, reth, immediate, payload: payload.into() };
            RocePacket::data(&FLOW, Class::default(), Ecn::Ect0, segment)
        },
    )
}

fn control_packet() -> impl Strategy<Value = RocePacket> {
    let aeth = (any::<u8>(), 0..1_u32 << 24);
    (option::of(aeth), 0..1_u32 << 24, any::<u32>()).prop_map(|(aeth, dest_qpn, psn)| match aeth {
        Some((syndrome, msn)) => {
            let aeth = Aeth { syndrome: Syndrome::from_u8(syndrome), msn };
            RocePacket::answer(&FLOW, Class::default(), qpn(dest_qpn), Psn::new(psn), aeth)
        }
        None => RocePacket::cnp(&FLOW, Class::default(), qpn(dest_qpn)),
    })
}

/// Any packet a peer may send: every field that is not structure holds anything.
fn packet() -> impl Strategy<Value = RocePacket> {
    let addresses = (any::<[[u8; 6]; 2]>(), any::<[u32; 2]>(), any::<[u16; 3]>());
    let ip = (0..64_u8, 0..4_u8, any::<u8>(), any::<bool>());
    let flags = (any::<[bool; 5]>(), any::<u16>(), (0..64_u8, 0..128_u8));
    let packet = prop_oneof![3 => data_packet().boxed(), 1 => control_packet().boxed()];
    (packet, addresses, ip, flags, vec(any::<u8>(), 0..70)).prop_map(|(packet, addresses, ip, flags, trailer)| {
        let ([eth_dst, eth_src], [ip_src, ip_dst], [identification, udp_src, udp_checksum]) = addresses;
        let (dscp, ecn, ttl, dont_fragment) = ip;
        let ([solicited, mig_req, fecn, becn, ack_req], p_key, (r0, r1)) = flags;
        let reserved = [r0, r1];
        RocePacket {
            eth_dst: MacAddr(eth_dst),
            eth_src: MacAddr(eth_src),
            ip_src: ip_src.into(),
            ip_dst: ip_dst.into(),
            dscp,
            ecn: Ecn::from_bits(ecn),
            identification,
            ttl,
            dont_fragment,
            udp_src,
            udp_checksum,
            bth: Bth { solicited, mig_req, fecn, becn, ack_req, p_key, reserved, ..packet.bth },
            trailer: trailer.into(),
            ..packet
        }
    })
}

fn any_sample() -> impl Strategy<Value = Bytes> {
    select(samples().into_values().map(|sample| sample.frame).collect::<Vec<_>>())
}

/// The room's law, for any octets at all.
fn reads_whole_or_refuses(frame: &Bytes) -> Result<(), TestCaseError> {
    let _ = (Peek::of(frame), model_len(frame), verify_icrc(frame), set_ce(frame), set_dscp(frame, 63));
    let _ = Packet::parse_with(frame, IcrcCheck::Ignore).map(|packet| packet.to_string());
    if let Ok(packet) = Packet::parse(frame) {
        prop_assert_eq!(packet.emit(), frame);
        prop_assert_eq!(packet.wire_len(), model_len(frame));
    }
    Ok(())
}

proptest! {
    #[test]
    fn what_is_emitted_parses_to_the_same(packet in packet()) {
        let frame = packet.emit();
        prop_assert_eq!(slow_icrc(&frame), icrc_of(&frame));
        let peek = Peek::of(&frame).unwrap();
        prop_assert_eq!(
            (peek.opcode, peek.dest_qpn, peek.psn, peek.wire_len),
            (packet.bth.opcode, packet.bth.dest_qpn, packet.bth.psn, packet.wire_len())
        );
        prop_assert_eq!((peek.class, peek.dscp, peek.ecn), (packet.class(), packet.dscp, packet.ecn));
        prop_assert_eq!((peek.ip_src, peek.ip_dst, peek.udp_src), (packet.ip_src, packet.ip_dst, packet.udp_src));
        prop_assert_eq!(Packet::parse(&frame), Ok(packet.into()));
    }

    #[test]
    fn a_pause_parses_to_the_same(src: [u8; 6], reserved: u8, enabled: u8, quanta: [u16; 8], padding in vec(any::<u8>(), 0..60)) {
        let pause = PfcFrame { dst: MacAddr::MAC_CONTROL, src: MacAddr(src), reserved, enabled, quanta, padding: padding.into() };
        prop_assert_eq!(Packet::parse(&pause.emit()), Ok(pause.into()));
    }

    #[test]
    fn a_mark_leaves_icrc_and_checksum_right(packet in packet(), dscp in 0..64_u8) {
        let frame = packet.emit();
        let marked = set_ce(&frame);
        prop_assert_eq!(icrc_of(&marked), icrc_of(&frame));
        prop_assert_eq!(Packet::parse(&marked), Ok(RocePacket { ecn: Ecn::Ce, ..packet.clone() }.into()));
        prop_assert_eq!(Packet::parse(&set_dscp(&marked, dscp)), Ok(RocePacket { ecn: Ecn::Ce, dscp, ..packet.clone() }.into()));
        prop_assert_eq!(set_ecn(&marked, packet.ecn), frame);
    }

    #[test]
    fn a_mark_does_not_heal_a_damaged_header(packet in packet(), at in 14..34_usize, bit in 0..8) {
        let mut frame = packet.emit().to_vec();
        frame[at] ^= 1_u8 << bit;
        let frame = Bytes::from(frame);
        prop_assert!(Packet::parse(&frame).is_err());
        prop_assert!(Packet::parse(&set_ce(&frame)).is_err());
    }

    #[test]
    fn one_flipped_bit_is_noticed_unless_it_is_masked(packet in packet(), at in any::<Index>(), bit in 0..8) {
        let mut frame = packet.emit().to_vec();
        let at = 14 + at.index(frame.len() - 14 - packet.trailer.len());
        frame[at] ^= 1_u8 << bit;
        // UDP checksum, and the octet of FECN and BECN: outside the ICRC, and inside no other sum.
        let unguarded = matches!(at, 40 | 41 | 46);
        prop_assert_eq!(Packet::parse(&frame.into()).is_ok(), unguarded);
    }

    #[test]
    fn random_octets_are_read_whole_or_refused(frame in vec(any::<u8>(), 0..200)) {
        reads_whole_or_refuses(&frame.into())?;
    }

    #[test]
    fn mutated_samples_are_read_whole_or_refused(
        frame in any_sample(),
        changes in vec((any::<Index>(), any::<u8>()), 1..6),
        keep in option::of(any::<Index>()),
    ) {
        let mut frame = frame.to_vec();
        for (at, octet) in changes {
            // Headers are where the decisions are.
            let at = at.index(frame.len().min(90));
            frame[at] = octet;
        }
        frame.truncate(keep.map_or(frame.len(), |keep| keep.index(frame.len() + 1)));
        reads_whole_or_refuses(&frame.into())?;
    }

    #[test]
    fn forged_samples_are_read_whole_or_refused(frame in any_sample(), changes in vec((14..90_usize, any::<u8>()), 1..4)) {
        let mut frame = frame.to_vec();
        for (at, octet) in changes {
            if let Some(place) = frame.get_mut(at) {
                *place = octet;
            }
        }
        reads_whole_or_refuses(&mended(frame))?;
    }
}

#[test]
fn a_mark_passes_by_what_is_no_ipv4() {
    for name in ["pfc_xoff_c0", "write_only_vlan_pcp3", "write_only_CE"] {
        let frame = sample(name);
        assert_eq!(set_ce(&frame).as_ptr(), frame.as_ptr(), "{name} is not even copied");
    }
    assert_eq!(set_ce(&Bytes::from_static(b"short")), "short");
}

#[test]
fn a_payload_is_a_slice_of_its_frame() {
    let frame = sample("write_first");
    let Ok(Packet::Roce(packet)) = Packet::parse(&frame) else { panic!("a packet") };
    assert_eq!(packet.payload.as_ptr(), frame[70..].as_ptr());
}

/// A link or a switch has to give a damaged frame its time on the line too.
#[test]
fn a_frame_that_does_not_parse_has_a_size() {
    let model = |name: &str| model_len(&sample(name)).get();
    assert_eq!(model("write_only_bad_icrc"), 314, "its headers still say how large it is");
    assert_eq!(model("write_only_vlan_pcp3"), 338, "what is not ours has its own octets and an FCS");
    assert_eq!(model("cnp_0x80_wireshark_label"), 78);
    assert_eq!(model_len(&[]).get(), 4);
}
