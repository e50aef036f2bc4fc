//! Every interleaving, and every value that the memory model lets a load return, for rings of two and four slots.
//!
//! Entries carry their number twice, in words of their own, so that one half of an entry cannot pass for the whole.
//! `scripts/loom` runs these.

use loom::cell::UnsafeCell;
use loom::model;
use loom::sync::Arc;
use loom::thread;

use crate::ring::primitive::AtomicU64;
use crate::ring::*;

/// As memory that two owners share.
#[derive(Clone)]
struct Shared(Arc<Vec<AtomicU64>>);

impl AsRef<[AtomicU64]> for Shared {
    fn as_ref(&self) -> &[AtomicU64] {
        &self.0
    }
}

fn ring(slots: u32, slot_octets: u32) -> (Producer<Shared>, Consumer<Shared>) {
    let shape = Geometry::new(slots, slot_octets).unwrap();
    let memory = Shared(Arc::new((0..shape.memory_octets() / 8).map(|_| AtomicU64::new(0)).collect()));
    (Producer::new(memory.clone(), shape).unwrap(), Consumer::new(memory, shape).unwrap())
}

fn page(lines: u32) -> (DoorbellWriter<Shared>, Doorbells<Shared>) {
    let page = doorbell_page(lines).unwrap();
    let memory = Shared(Arc::new((0..page.memory_octets() / 8).map(|_| AtomicU64::new(0)).collect()));
    (DoorbellWriter::new(memory.clone(), page).unwrap(), Doorbells::new(memory, page).unwrap())
}

fn entry(number: u64) -> [u8; 16] {
    let mut entry = [0; 16];
    entry[..8].copy_from_slice(&number.to_le_bytes());
    entry[8..].copy_from_slice(&(!number).to_le_bytes());
    entry
}

/// The next entry, waiting for it if need be. It yields only in vain: a yield would bring the other side's stores along.
fn next(consumer: &mut Consumer<Shared>) -> [u8; 16] {
    while consumer.waiting() == 0 && consumer.refresh().unwrap() == 0 {
        thread::yield_now();
    }
    consumer.fetch(&mut [0; MAX_SLOT]).unwrap()[..16].try_into().unwrap()
}

/// Posts entries 1 and 2, waiting for room.
fn post_two(mut producer: Producer<Shared>) {
    for number in [1, 2] {
        while producer.post(&entry(number)) == Err(RingError::Full) {
            thread::yield_now();
        }
    }
}

#[test]
fn entries_are_fetched_whole_and_in_order() {
    for slots in [2, 4] {
        model(move || {
            let (producer, mut device) = ring(slots, 16);
            let application = thread::spawn(move || post_two(producer));
            for number in [1, 2] {
                assert_eq!(next(&mut device), entry(number));
                device.complete().unwrap();
            }
            application.join().unwrap();
        });
    }
}

#[test]
fn a_held_entry_is_built_again_while_the_application_posts() {
    for slots in [2, 4] {
        model(move || {
            let (producer, mut device) = ring(slots, 16);
            let application = thread::spawn(move || post_two(producer));
            for number in [1, 2] {
                assert_eq!(next(&mut device), entry(number));
                device.rewind();
                assert_eq!(next(&mut device), entry(number));
                device.complete().unwrap();
            }
            application.join().unwrap();
        });
    }
}

/// loom never lets a load return a store that comes later, so a slot given free too early does not show in its words. Here
/// each slot has a cell beside it, for which loom itself holds that reads and writes are ordered.
#[test]
fn no_slot_is_written_to_before_its_last_reading() {
    model(|| {
        let (mut producer, mut device) = ring(2, 16);
        let cells = Arc::new([UnsafeCell::new(()), UnsafeCell::new(())]);
        let ours = cells.clone();
        let application = thread::spawn(move || {
            for number in 1..=3 {
                while producer.free() == Ok(0) {
                    thread::yield_now();
                }
                ours[producer.producer_index() as usize].with_mut(|_| ());
                producer.post(&entry(number)).unwrap();
            }
        });
        for number in 1..=3 {
            let slot = device.read_position() as usize;
            assert_eq!(next(&mut device), entry(number));
            cells[slot].with(|_| ());
            device.complete().unwrap();
        }
        application.join().unwrap();
    });
}

#[test]
fn a_doorbell_brings_along_what_was_posted_before_it() {
    for blue_flame in [false, true] {
        model(move || {
            let (mut producer, mut device) = ring(2, 16);
            let (mut writer, mut doorbells) = page(4);
            let application = thread::spawn(move || {
                let index = producer.post(&entry(1)).unwrap();
                let rung = if blue_flame { writer.blue_flame(9, index, &entry(1)) } else { writer.ring(9, index) };
                rung.unwrap();
            });
            let doorbell = loop {
                match doorbells.poll().unwrap() {
                    Some(doorbell) => break doorbell,
                    None => thread::yield_now(),
                }
            };
            assert_eq!(doorbell.blue_flame[..], if blue_flame { entry(1).to_vec() } else { Vec::new() });
            // The device reads the producer index of no send queue: only the doorbell orders this fetch.
            assert_eq!((doorbell.queue_pair, device.announce(doorbell.producer_index)), (9, Ok(1)));
            assert_eq!(next(&mut device), entry(1));
            application.join().unwrap();
        });
    }
}

#[test]
fn completions_are_polled_whole_or_overrun_and_nothing_between() {
    for slots in [2, 4] {
        model(move || {
            let (mut producer, mut application) = ring(slots, 16);
            let device = thread::spawn(move || [1, 2].map(|number| producer.post(&entry(number)).is_ok()));
            let mut polled = Vec::new();
            for _ in 0..2 {
                polled.extend(application.poll(&mut [0; MAX_SLOT]).unwrap().map(|slot| slot.to_vec()));
            }
            let posted = device.join().unwrap();
            while let Some(slot) = application.poll(&mut [0; MAX_SLOT]).unwrap() {
                polled.push(slot.to_vec());
            }
            let expected = [1, 2].into_iter().zip(posted).filter(|(_, posted)| *posted).map(|(n, _)| entry(n).to_vec());
            assert_eq!(polled, expected.collect::<Vec<_>>());
            assert!(posted[0] && (posted[1] || slots == 2));
        });
    }
}

/// The models can fail: without the release, loom finds an entry that has not arrived.
#[test]
#[should_panic(expected = "an entry that has not arrived")]
fn a_ring_without_release_and_acquire_is_found_out() {
    model(|| {
        let memory = Arc::new([AtomicU64::new(0), AtomicU64::new(0)]);
        let ours = memory.clone();
        thread::spawn(move || ours.iter().for_each(|word| word.store(1, primitive::Ordering::Relaxed)));
        let index = memory[1].load(primitive::Ordering::Relaxed);
        let slot = memory[0].load(primitive::Ordering::Relaxed);
        assert!(slot >= index, "an entry that has not arrived");
    });
}
