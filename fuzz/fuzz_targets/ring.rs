//! Any octets as entries of rings, as a ring and as a page of doorbells: reading them never panics and never goes on for
//! ever, and an entry that is read is written again octet for octet.

#![no_main]

use std::sync::atomic::AtomicU64;

use libfuzzer_sys::fuzz_target;
use rocemu::ring::{Consumer, Cqe, Doorbells, Geometry, LINE, MAX_SLOT, ReceiveEntry, Wqe, doorbell_page};

fuzz_target!(|octets: &[u8]| {
    let mut slot = [0; MAX_SLOT];
    if let Ok(wqe) = Wqe::decode(octets) {
        assert!(octets.starts_with(wqe.encode(&mut slot).unwrap()));
    }
    if let Ok(entry) = ReceiveEntry::decode(octets) {
        assert!(octets.starts_with(entry.encode(&mut slot).unwrap()));
    }
    if let Ok(cqe) = Cqe::decode(octets) {
        assert!(octets.starts_with(cqe.encode(&mut slot).unwrap()));
    }
    let memory: Vec<_> = octets.as_chunks::<8>().0.iter().map(|word| AtomicU64::new(u64::from_ne_bytes(*word))).collect();
    if let Ok(shape) = Geometry::read(&memory) {
        let mut ring = Consumer::new(&memory[..], shape).unwrap();
        let mut entries = 0;
        while let Ok(Some(_)) = ring.poll(&mut slot) {
            entries += 1;
        }
        assert!(entries <= shape.capacity());
    }
    let lines = (octets.len() / LINE).saturating_sub(3).next_power_of_two() as u32 / 2;
    if let Ok(page) = doorbell_page(lines)
        && let Ok(mut doorbells) = Doorbells::new(&memory[..], page)
    {
        let mut heard = 0;
        while let Ok(Some(_)) = doorbells.poll() {
            heard += 1;
        }
        assert!(heard <= page.capacity());
    }
});
