//! Rings and doorbells against the specification, an oracle, and the other side's malice.

use std::collections::VecDeque;

use proptest::prelude::*;

use crate::ring::primitive::{AtomicU64, Ordering};
use crate::ring::*;

fn memory(shape: Geometry) -> Vec<AtomicU64> {
    let memory: Vec<_> = (0..shape.memory_octets() / 8).map(|_| AtomicU64::new(0)).collect();
    shape.format(&memory).unwrap();
    memory
}

type Ends<'a> = (Producer<&'a [AtomicU64]>, Consumer<&'a [AtomicU64]>);

fn ends(memory: &[AtomicU64]) -> Ends<'_> {
    let shape = Geometry::read(memory).unwrap();
    (Producer::new(memory, shape).unwrap(), Consumer::new(memory, shape).unwrap())
}

fn fetch(consumer: &mut Consumer<&[AtomicU64]>) -> Option<u64> {
    let mut buffer = [0; MAX_SLOT];
    consumer.fetch(&mut buffer).map(|entry| u64::from_le_bytes(entry[..8].try_into().unwrap()))
}

fn completion(wr_id: u64) -> Cqe {
    let (status, opcode, qpn) = (Status::Success, CompletionOpcode::Send, crate::base::Qpn::new(2).unwrap());
    Cqe { wr_id, status, opcode, length: 8, immediate: None, qpn, solicited: false }
}

/// The animation of the specification's page on the send queue ring, step by step in its order.
#[test]
fn the_fourteen_steps_of_the_send_queue_ring() {
    let (ring, page, completions) =
        (Geometry::new(8, 64).unwrap(), doorbell_page(8).unwrap(), Geometry::new(8, 64).unwrap());
    let (ring, lines, completions) = (memory(ring), memory(page), memory(completions));
    let (mut application, mut device) = ends(&ring);
    let (mut device_completes, mut application_polls) = ends(&completions);
    let (mut writer, mut doorbells) =
        (DoorbellWriter::new(&lines[..], page).unwrap(), Doorbells::new(&lines[..], page).unwrap());
    let mut buffer = [0; MAX_SLOT];
    // Entries 0 and 2 are unsignaled, entry 1 is signaled.
    let wqe = |wr_id: u64| Wqe {
        wr_id,
        operation: Operation::Send { immediate: None },
        signaled: wr_id == 1,
        solicited: false,
        payload: Payload::Inline((0..8).map(|n| wr_id as u8 + n).collect()),
    };
    let mut post = |wr_id| application.post(wqe(wr_id).encode(&mut [0; 64]).unwrap());

    // 1. An empty ring: the indices are equal.
    assert_eq!((device.consumer_index(), device.refresh()), (0, Ok(0)));
    // 2. Three work requests are posted; nothing has reached the adapter.
    assert_eq!([post(0), post(1), post(2)], [Ok(1), Ok(2), Ok(3)]);
    assert_eq!((device.waiting(), doorbells.poll()), (0, Ok(None)));
    // 3. The doorbell carries the new producer index.
    writer.ring(5, 3).unwrap();
    // 4. Three entries are waiting.
    let doorbell = doorbells.poll().unwrap().unwrap();
    assert_eq!((doorbell.queue_pair, doorbell.producer_index), (5, 3));
    assert_eq!(device.announce(doorbell.producer_index), Ok(3));
    // 5., 6. Fetched and sent, the entries keep their slots.
    for wr_id in 0..3 {
        assert_eq!(Wqe::decode(device.fetch(&mut buffer).unwrap()), Ok(wqe(wr_id)));
    }
    assert!(device.fetch(&mut buffer).is_none());
    assert_eq!((device.read_position(), device.consumer_index(), device.held()), (3, 0, 3));
    // 7. An ACK covers entry 0.
    device.complete().unwrap();
    assert_eq!((device.consumer_index(), device.held()), (1, 2));
    // 8. A NAK names entry 1: back to the consumer index.
    device.rewind();
    assert_eq!((device.read_position(), device.consumer_index(), device.waiting()), (1, 1, 2));
    // 9. Both are still in place, and are built again from their slots.
    for wr_id in 1..3 {
        assert_eq!(Wqe::decode(device.fetch(&mut buffer).unwrap()), Ok(wqe(wr_id)));
    }
    // 10., 11. Both are acknowledged. CI moves for unsignaled ones as well; only the completion is optional.
    for wr_id in 1..3 {
        device.complete().unwrap();
        if wqe(wr_id).signaled {
            device_completes.post(completion(wr_id).encode(&mut [0; 64]).unwrap()).unwrap();
        }
    }
    assert_eq!((device.consumer_index(), device.held(), device.waiting()), (3, 0, 0));
    let cqe = application_polls.poll(&mut buffer).unwrap().map(|slot| Cqe::decode(slot).unwrap());
    assert_eq!(cqe, Some(completion(1)));
    assert_eq!(application_polls.poll(&mut buffer), Ok(None));
    // 12. Five more, into slots 3 to 7: the index wraps.
    assert_eq!([3, 4, 5, 6, 7].map(&mut post), [Ok(4), Ok(5), Ok(6), Ok(7), Ok(0)]);
    // 13. Two more, into slots 0 and 1: seven are held.
    assert_eq!([post(8), post(9)], [Ok(1), Ok(2)]);
    // 14. Full: CI = 3, PI = 2, N = 8.
    assert_eq!(post(10), Err(RingError::Full));
    assert_eq!((application.producer_index(), application.free()), (2, Ok(0)));

    // A NAK on the second of them: RP = CI, and nothing was overwritten.
    assert_eq!(device.announce(2), Ok(7));
    assert_eq!((0..7).filter(|_| device.skip().is_some()).count(), 7);
    device.complete().unwrap();
    device.rewind();
    assert_eq!((device.read_position(), device.consumer_index()), (4, 4));
    for wr_id in 4..10 {
        assert_eq!(Wqe::decode(device.fetch(&mut buffer).unwrap()), Ok(wqe(wr_id)));
    }
}

#[derive(Clone, Copy, Debug)]
enum Step {
    Post,
    Announce,
    Fetch,
    Complete,
    Rewind,
}

proptest! {
    #[test]
    fn a_ring_is_a_queue_that_forgets_nothing_before_it_completes(
        log2 in 1u32..=4,
        operations in prop::collection::vec(
            prop_oneof![
                4 => Just(Step::Post),
                3 => Just(Step::Announce),
                4 => Just(Step::Fetch),
                3 => Just(Step::Complete),
                1 => Just(Step::Rewind),
            ],
            0..400,
        ),
    ) {
        let memory = memory(Geometry::new(1 << log2, 64).unwrap());
        let (mut producer, mut consumer) = ends(&memory);
        let capacity = (1 << log2) - 1;
        // The oracle: what is between CI and PI, and how much of it was announced and fetched.
        let (mut queue, mut announced, mut fetched, mut next) = (VecDeque::new(), 0, 0, 0u64);
        for operation in operations {
            match operation {
                Step::Post if queue.len() == capacity => {
                    prop_assert_eq!(producer.post(&[0xff; 64]), Err(RingError::Full));
                }
                Step::Post => {
                    let index = producer.post(&next.to_le_bytes());
                    queue.push_back(next);
                    next += 1;
                    prop_assert_eq!(index, Ok((next % (1 << log2)) as u32));
                }
                Step::Announce => {
                    let fresh = consumer.announce(producer.producer_index());
                    prop_assert_eq!(fresh, Ok((queue.len() - announced) as u32));
                    announced = queue.len();
                }
                Step::Fetch => {
                    let expected = queue.get(fetched).copied().filter(|_| fetched < announced);
                    prop_assert_eq!(fetch(&mut consumer), expected);
                    fetched += usize::from(expected.is_some());
                }
                Step::Complete if fetched == 0 => {
                    prop_assert_eq!(consumer.complete(), Err(RingError::NothingFetched));
                }
                Step::Complete => {
                    prop_assert_eq!(consumer.complete(), Ok(()));
                    queue.pop_front();
                    (announced, fetched) = (announced - 1, fetched - 1);
                }
                Step::Rewind => {
                    consumer.rewind();
                    fetched = 0;
                }
            }
            prop_assert_eq!(consumer.held() as usize, fetched);
            prop_assert_eq!(consumer.waiting() as usize, announced - fetched);
            prop_assert_eq!(producer.free(), Ok((capacity - queue.len()) as u32));
        }
    }
}

/// What a ring of N slots can be in: CI, entries posted behind it, and how many of those are fetched.
#[derive(Clone, Copy, Debug)]
struct State {
    slots: u32,
    consumer: u32,
    posted: u32,
    fetched: u32,
}

impl State {
    fn every() -> impl Iterator<Item = Self> {
        let all = |slots| (0..slots).flat_map(move |consumer| (0..slots).map(move |posted| (slots, consumer, posted)));
        [2, 4, 8].into_iter().flat_map(all).flat_map(|(slots, consumer, posted)| {
            (0..=posted).map(move |fetched| Self { slots, consumer, posted, fetched })
        })
    }

    fn memory(self) -> Vec<AtomicU64> {
        memory(Geometry::new(self.slots, 64).unwrap())
    }

    /// Both ends, brought into this state over empty memory.
    fn ends(self, memory: &[AtomicU64]) -> Ends<'_> {
        let (mut producer, mut consumer) = ends(memory);
        for _ in 0..self.consumer {
            producer.post(&[0]).unwrap();
            consumer.poll(&mut [0; MAX_SLOT]).unwrap();
        }
        producer.free().unwrap();
        (0..self.posted).for_each(|_| assert!(producer.post(&[0]).is_ok()));
        consumer.refresh().unwrap();
        (0..self.fetched).for_each(|_| assert!(consumer.skip().is_some()));
        (producer, consumer)
    }

    /// Every index, and numbers that are none; with how far behind CI each is.
    fn claims(self) -> impl Iterator<Item = (u64, Option<u32>)> {
        let slots = u64::from(self.slots);
        let strange = [slots, slots + 1, 1 << 31, 1 << 32, (1 << 32) + 1, u64::MAX - 1, u64::MAX];
        let after = move |claim: u64| (claim < slots).then(|| (claim as u32 + self.slots - self.consumer) % self.slots);
        (0..slots).chain(strange).map(move |claim| (claim, after(claim)))
    }
}

#[test]
fn no_claimed_index_is_believed_beyond_the_ring() {
    for state in State::every() {
        let State { slots, consumer: ci, posted, fetched } = state;
        let pi = (ci + posted) % slots;
        for (index, after) in state.claims() {
            let memory = state.memory();
            let (_, mut device) = state.ends(&memory);
            memory[geometry::PRODUCER_INDEX].store(index, Ordering::Relaxed);
            let side = Side::Producer;
            let verdict = match after {
                None => Err(RingError::OutOfRange { side, index }),
                Some(after) if after < posted => {
                    Err(RingError::Impossible { side, index: index as u32, from: pi, to: (ci + slots - 1) % slots })
                }
                Some(after) => Ok(after - posted),
            };
            assert_eq!(device.refresh(), verdict, "PI {index}, {state:?}");
            let waiting = posted - fetched + verdict.unwrap_or(0);
            let entries = std::iter::from_fn(|| fetch(&mut device)).take(100).count();
            assert_eq!(entries, waiting as usize, "PI {index}, {state:?}");
            // By doorbell, it is the same.
            let memory = state.memory();
            let (_, mut device) = state.ends(&memory);
            if let Ok(index) = u32::try_from(index) {
                assert_eq!(device.announce(index), verdict, "PI {index}, {state:?}");
            }
        }
        for (index, after) in state.claims() {
            let memory = state.memory();
            let (mut application, _) = state.ends(&memory);
            memory[geometry::CONSUMER_INDEX].store(index, Ordering::Relaxed);
            let side = Side::Consumer;
            let verdict = match after {
                None => Err(RingError::OutOfRange { side, index }),
                Some(after) if after > posted => {
                    Err(RingError::Impossible { side, index: index as u32, from: ci, to: pi })
                }
                Some(after) => Ok(slots - 1 - posted + after),
            };
            assert_eq!(application.free(), verdict, "CI {index}, {state:?}");
            // What was free before stays so. Then the claim is met again, and by then any index of the ring is possible.
            let free = slots - 1 - posted + after.unwrap_or(0);
            assert_eq!((0..100).take_while(|_| application.post(&[0]).is_ok()).count(), free as usize);
            let refusal = after.map_or(RingError::OutOfRange { side, index }, |_| RingError::Full);
            assert_eq!(application.post(&[0]), Err(refusal), "CI {index}, {state:?}");
        }
    }
}

#[test]
fn neither_end_reads_its_own_index_back() {
    for state in State::every() {
        let memory = state.memory();
        let (mut application, mut device) = state.ends(&memory);
        memory[geometry::PRODUCER_INDEX].store(u64::MAX, Ordering::Relaxed);
        memory[geometry::CONSUMER_INDEX].store(u64::MAX, Ordering::Relaxed);
        let pi = (state.consumer + state.posted) % state.slots;
        assert_eq!((application.producer_index(), device.consumer_index()), (pi, state.consumer));
        if state.posted + 1 < state.slots {
            application.post(&[0]).unwrap();
            assert_eq!(device.refresh(), Ok(1), "the index is written whole, over whatever was there");
        }
        device.rewind();
        assert!(device.skip().is_none() || device.complete().is_ok());
    }
}

#[test]
fn a_completion_queue_that_overruns_says_so_and_keeps_what_it_has() {
    let memory = memory(Geometry::new(2, 64).unwrap());
    let (mut device, mut application) = ends(&memory);
    let (mut slot, mut buffer) = ([0; 64], [0; MAX_SLOT]);
    device.post(completion(1).encode(&mut slot).unwrap()).unwrap();
    assert_eq!(device.post(completion(2).encode(&mut slot).unwrap()), Err(RingError::Full));
    let polled = application.poll(&mut buffer).unwrap().map(Cqe::decode);
    assert_eq!(polled, Some(Ok(completion(1))));
    device.post(completion(3).encode(&mut slot).unwrap()).unwrap();
}

#[test]
fn a_ring_is_found_again_in_its_memory_and_nothing_else_is_taken_for_one() {
    for (slots, octets) in [(2, 64), (64, 512), (65_536, 64)] {
        let shape = Geometry::new(slots, octets).unwrap();
        assert_eq!(Geometry::read(&memory(shape)), Ok(shape));
    }
    for slots in [0, 1, 3, 12, 131_072, u32::MAX] {
        assert_eq!(Geometry::new(slots, 64), Err(RingError::Slots(slots)));
    }
    for octets in [0, 32, 96, 1_024, u32::MAX] {
        assert_eq!(Geometry::new(8, octets), Err(RingError::SlotOctets(octets)));
    }
    let shape = Geometry::new(4, 128).unwrap();
    let memory = memory(shape);
    let short = &memory[..memory.len() - 1];
    let missing = RingError::Memory { need: 192 + 4 * 128, have: 192 + 4 * 128 - 8 };
    assert_eq!((Geometry::read(short), shape.format(short)), (Err(missing), Err(missing)));
    assert_eq!(Producer::new(short, shape).err(), Some(missing));
    assert_eq!(Consumer::new(short, shape).err(), Some(missing));
    assert_eq!(Geometry::read(&[]), Err(RingError::Header));
    memory[1].store(u64::MAX, Ordering::Relaxed);
    assert_eq!(Geometry::read(&memory), Err(RingError::Slots(u32::MAX)));
    memory[0].fetch_add(1 << 32, Ordering::Relaxed);
    assert_eq!(Geometry::read(&memory), Err(RingError::Header), "another version");
}

#[test]
fn the_header_lies_in_memory_as_the_drawing_says() {
    let memory = memory(Geometry::new(8, 64).unwrap());
    let (mut application, mut device) = ends(&memory);
    application.post(b"slot 0").unwrap();
    application.post(b"slot 1").unwrap();
    device.poll(&mut [0; MAX_SLOT]).unwrap();
    let octets: Vec<u8> = memory.iter().flat_map(|word| word.load(Ordering::Relaxed).to_ne_bytes()).collect();
    assert_eq!(octets[..16], *b"ring\x01\0\0\0\x08\0\0\0\x40\0\0\0");
    assert_eq!(
        (octets[64..72].to_vec(), octets[128..136].to_vec()),
        (vec![2, 0, 0, 0, 0, 0, 0, 0], vec![1, 0, 0, 0, 0, 0, 0, 0])
    );
    assert_eq!((&octets[192..198], &octets[256..262]), (&b"slot 0"[..], &b"slot 1"[..]));
}

#[test]
fn an_entry_that_no_slot_takes_is_refused() {
    let memory = memory(Geometry::new(4, 64).unwrap());
    let (mut producer, _) = ends(&memory);
    for have in [0, 65, 512] {
        assert_eq!(producer.post(&vec![0; have]), Err(RingError::EntryLength { have, max: 64 }));
    }
    assert_eq!(producer.producer_index(), 0);
}

type Page<'a> = (DoorbellWriter<&'a [AtomicU64]>, Doorbells<&'a [AtomicU64]>);

fn page(memory: &[AtomicU64]) -> Page<'_> {
    let page = Geometry::read(memory).unwrap();
    (DoorbellWriter::new(memory, page).unwrap(), Doorbells::new(memory, page).unwrap())
}

proptest! {
    #[test]
    fn doorbells_are_heard_in_the_order_in_which_they_were_rung(
        log2 in 4u32..=6,
        rung in prop::collection::vec((any::<u32>(), any::<u32>(), prop::collection::vec(any::<u8>(), 0..=512)), 1..60),
    ) {
        let memory = memory(doorbell_page(1 << log2).unwrap());
        let (mut writer, mut doorbells) = page(&memory);
        let mut expected = VecDeque::new();
        for (queue_pair, producer_index, wqe) in rung {
            let mut ring = || match &wqe[..] {
                [] => writer.ring(queue_pair, producer_index),
                wqe => writer.blue_flame(queue_pair, producer_index, wqe),
            };
            while ring() == Err(RingError::Full) {
                prop_assert_eq!(doorbells.poll(), Ok(expected.pop_front()));
            }
            expected.push_back(Doorbell { queue_pair, producer_index, blue_flame: wqe.iter().copied().collect() });
        }
        while let Some(doorbell) = expected.pop_front() {
            prop_assert_eq!(doorbells.poll(), Ok(Some(doorbell)));
        }
        prop_assert_eq!(doorbells.poll(), Ok(None));
    }

    #[test]
    fn whatever_stands_in_a_doorbell_page_the_device_gets_through_it(
        words in prop::collection::vec(prop_oneof![any::<u64>(), (0u64..4, 0u64..4, 0u64..600).prop_map(|(v, k, n)| v | k << 8 | n << 16)], 128),
        index in 0u64..20,
    ) {
        let memory = memory(doorbell_page(16).unwrap());
        let (_, mut doorbells) = page(&memory);
        for (word, value) in memory[24..].iter().zip(words) {
            word.store(value, Ordering::Relaxed);
        }
        memory[geometry::PRODUCER_INDEX].store(index, Ordering::Relaxed);
        let heard = std::iter::from_fn(|| doorbells.poll().ok().flatten()).take(100).count();
        prop_assert!(heard < 16, "{} doorbells in 15 lines", heard);
    }
}

fn line(version: u8, kind: u8, octets: u16) -> [u8; 12] {
    let [low, high] = octets.to_le_bytes();
    [version, kind, low, high, 9, 0, 0, 0, 1, 0, 0, 0]
}

#[test]
fn malformed_doorbells_are_errors_that_stay() {
    let cases = [
        (line(0, 1, 0), RingError::DoorbellVersion(0)),
        (line(2, 1, 0), RingError::DoorbellVersion(2)),
        (line(1, 0, 0), RingError::DoorbellKind(0)),
        (line(1, 3, 0), RingError::DoorbellKind(3)),
        (line(1, 1, 64), RingError::DoorbellLength(64)),
        (line(1, 2, 0), RingError::DoorbellLength(0)),
        (line(1, 2, 513), RingError::DoorbellLength(513)),
        (line(1, 2, u16::MAX), RingError::DoorbellLength(u16::MAX)),
        (line(1, 2, 64), RingError::BlueFlameCutShort { need: 1, have: 0 }),
        (line(1, 2, 512), RingError::BlueFlameCutShort { need: 8, have: 0 }),
    ];
    for (line, error) in cases {
        let memory = memory(doorbell_page(16).unwrap());
        let (_, mut doorbells) = page(&memory);
        let (mut hostile, _) = ends(&memory);
        hostile.post(&self::line(1, 1, 0)).unwrap();
        hostile.post(&line).unwrap();
        assert!(doorbells.poll().unwrap().is_some(), "one that is well formed is heard before");
        assert_eq!([doorbells.poll(), doorbells.poll()], [Err(error), Err(error)]);
    }
}

#[test]
fn a_post_that_a_page_cannot_take_is_refused_and_one_that_waits_is_whole() {
    let memory = memory(doorbell_page(4).unwrap());
    let (mut writer, mut doorbells) = page(&memory);
    assert_eq!(writer.blue_flame(1, 1, &[7; 129]), Err(RingError::EntryLength { have: 129, max: 128 }));
    assert_eq!(writer.blue_flame(1, 1, &[]), Err(RingError::EntryLength { have: 0, max: 128 }));
    writer.ring(1, 1).unwrap();
    assert_eq!(writer.blue_flame(1, 2, &[7; 128]), Err(RingError::Full));
    assert!(doorbells.poll().unwrap().is_some());
    writer.blue_flame(1, 2, &[7; 128]).unwrap();
    assert_eq!(doorbells.poll().unwrap().map(|doorbell| doorbell.blue_flame.to_vec()), Some(vec![7; 128]));
    let slots = Geometry::new(4, 128).unwrap();
    assert_eq!(Doorbells::new(&memory[..], slots).err(), Some(RingError::SlotOctets(128)));
}
