//! Any octets from a socket: reading them never panics, and what is read is written again octet for octet.

#![no_main]

use bytes::Bytes;
use libfuzzer_sys::fuzz_target;
use rocemu::wire::{self, IcrcCheck, Packet, Peek};

fuzz_target!(|octets: &[u8]| {
    let frame = Bytes::copy_from_slice(octets);
    let _ = Peek::of(&frame);
    let _ = wire::model_len(&frame);
    for marked in [wire::set_ce(&frame), wire::set_dscp(&frame, 24)] {
        assert_eq!(marked.len(), frame.len());
    }
    if let Ok(packet) = Packet::parse(&frame) {
        assert_eq!(packet.emit(), frame);
    }
    if let Ok(packet) = Packet::parse_with(&frame, IcrcCheck::Ignore) {
        let _ = packet.to_string();
        let mended = Packet::parse(&packet.emit());
        assert_eq!(mended.as_ref().map(Packet::wire_len), Ok(packet.wire_len()));
    }
});
