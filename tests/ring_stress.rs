//! The shared rings under two real threads, which loom's small rings do not stand for: long runs, many wraps, all sizes.
//!
//! Every octet of an entry follows from its number, so an entry that is torn, lost, doubled or out of order shows.

use std::sync::atomic::AtomicU64;
use std::thread;

use rocemu::ring::{
    Consumer, DoorbellWriter, Doorbells, Geometry, MAX_SLOT, Operation, Payload, Producer, RingError, Wqe,
    doorbell_page,
};

fn memory(shape: Geometry) -> Vec<AtomicU64> {
    let memory: Vec<_> = (0..shape.memory_octets() / 8).map(|_| AtomicU64::new(0)).collect();
    shape.format(&memory).unwrap();
    memory
}

/// Tries until there is room.
fn insist<T>(mut attempt: impl FnMut() -> Result<T, RingError>) -> T {
    loop {
        match attempt() {
            Ok(value) => return value,
            Err(RingError::Full) => thread::yield_now(),
            Err(error) => panic!("{error}"),
        }
    }
}

fn entry(number: u64) -> [u8; 64] {
    let mut entry = [0; 64];
    for (word, octets) in (0..).zip(entry.chunks_mut(8)) {
        octets.copy_from_slice(&number.rotate_left(8 * word).to_le_bytes());
    }
    entry
}

#[test]
fn every_entry_arrives_once_in_order_and_whole() {
    for (slots, count) in [(2, 20_000), (4, 50_000), (256, 150_000)] {
        let shape = Geometry::new(slots, 64).unwrap();
        let memory = memory(shape);
        let mut producer = Producer::new(&memory[..], shape).unwrap();
        let mut consumer = Consumer::new(&memory[..], shape).unwrap();
        thread::scope(|scope| {
            scope.spawn(move || {
                for number in 0..count {
                    insist(|| producer.post(&entry(number)));
                }
            });
            let mut buffer = [0; MAX_SLOT];
            let mut completed = 0;
            while completed < count {
                if consumer.refresh().unwrap() == 0 && consumer.waiting() == 0 {
                    thread::yield_now();
                }
                let mut fetched = completed;
                while let Some(slot) = consumer.fetch(&mut buffer) {
                    assert_eq!(slot, entry(fetched));
                    fetched += 1;
                }
                // Now and then a NAK: all that is held comes again, as it was.
                if completed % 7 == 3 {
                    consumer.rewind();
                    for number in completed..fetched {
                        assert_eq!(consumer.fetch(&mut buffer), Some(&entry(number)[..]));
                    }
                }
                while consumer.held() > 0 {
                    consumer.complete().unwrap();
                    completed += 1;
                }
            }
            assert_eq!(consumer.refresh(), Ok(0));
        });
    }
}

/// Two queue pairs, posted to in turn: by BlueFlame, by a doorbell each, and by one doorbell for three.
#[test]
fn doorbells_across_queue_pairs_keep_their_order_and_bring_whole_entries() {
    const COUNT: u64 = 20_000;
    let (shape, page) = (Geometry::new(8, 128).unwrap(), doorbell_page(16).unwrap());
    let rings = [memory(shape), memory(shape)];
    let lines = memory(page);
    let wqe = |number: u64| Wqe {
        wr_id: number,
        operation: Operation::Write { remote_address: !number, rkey: number as u32, immediate: None },
        signaled: number.is_multiple_of(2),
        solicited: false,
        payload: Payload::Inline((0..96).map(|n| (number as u8).wrapping_add(n)).collect()),
    };
    let queue_pair = |number: u64| (number / 3 % 2) as usize;
    thread::scope(|scope| {
        scope.spawn(|| {
            let mut queues = rings.each_ref().map(|ring| Producer::new(&ring[..], shape).unwrap());
            let mut doorbells = DoorbellWriter::new(&lines[..], page).unwrap();
            for number in 0..COUNT {
                let handle = queue_pair(number);
                let mut slot = [0; 128];
                let wqe = wqe(number).encode(&mut slot).unwrap().to_vec();
                let index = insist(|| queues[handle].post(&wqe));
                match number / 6 % 3 {
                    0 => insist(|| doorbells.blue_flame(handle as u32, index, &wqe)),
                    1 => insist(|| doorbells.ring(handle as u32, index)),
                    _ if number % 3 == 2 || number + 1 == COUNT => insist(|| doorbells.ring(handle as u32, index)),
                    _ => {}
                }
            }
        });
        let mut queues = rings.each_ref().map(|ring| Consumer::new(&ring[..], shape).unwrap());
        let mut doorbells = Doorbells::new(&lines[..], page).unwrap();
        let mut buffer = [0; MAX_SLOT];
        let mut next = 0;
        while next < COUNT {
            let Some(doorbell) = doorbells.poll().unwrap() else {
                thread::yield_now();
                continue;
            };
            let queue = &mut queues[doorbell.queue_pair as usize];
            let fresh = queue.announce(doorbell.producer_index).unwrap();
            assert!(fresh > 0);
            for _ in 0..fresh {
                assert_eq!(queue_pair(next), doorbell.queue_pair as usize);
                let slot = queue.fetch(&mut buffer).unwrap();
                assert!(slot.starts_with(&doorbell.blue_flame));
                assert_eq!(Wqe::decode(slot), Ok(wqe(next)));
                queue.complete().unwrap();
                next += 1;
            }
        }
        assert_eq!(doorbells.poll(), Ok(None));
    });
}
