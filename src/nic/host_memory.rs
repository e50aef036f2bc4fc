//! The memory of the host behind a NIC: registered regions with real octets in them.

use std::collections::{BTreeMap, TryReserveError, VecDeque};
use std::ops::Range;

use bytes::Bytes;

use crate::base::{MessageId, Octets, Qpn};

/// A place in registered memory, as a RETH names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemoryKey {
    pub address: u64,
    pub rkey: u32,
}

/// Memory registered for one message, at its sending or its receiving end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Registration {
    pub message: MessageId,
    pub key: MemoryKey,
    pub size: Octets,
}

/// Why an access was refused: nothing is registered there, or not so much.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AccessError;

/// Regions by rkey, and the receives posted for SENDs.
#[derive(Clone, Debug, Default)]
pub struct HostMemory {
    regions: BTreeMap<u32, Region>,
    receives: BTreeMap<Qpn, VecDeque<Registration>>,
    shortage: Option<Octets>,
}

#[derive(Clone, Debug)]
struct Region {
    registration: Registration,
    content: Content,
}

/// What a region holds. The memory of this machine is taken only for what was received, as it comes.
#[derive(Clone, Debug)]
enum Content {
    /// The message's payload pattern, to be sent: its octets are known without being kept.
    Pattern,
    /// Octets from the first on; behind them, up to the region's size, are zeros.
    Received(Vec<u8>),
}

/// What a region held.
#[derive(Clone, Debug)]
pub struct Held {
    registration: Registration,
    content: Content,
}

impl MemoryKey {
    pub fn plus(self, offset: Octets) -> Self {
        Self { address: self.address.wrapping_add(offset.get()), ..self }
    }
}

impl HostMemory {
    /// Registers memory that holds the payload of a message: octet i is (3 + 7·i + message number) mod 256.
    pub fn register_source(&mut self, registration: Registration) {
        self.insert(registration, Content::Pattern);
    }

    /// Registers memory for a message to be received into.
    pub fn register_target(&mut self, registration: Registration) {
        self.insert(registration, Content::Received(Vec::new()));
    }

    fn insert(&mut self, registration: Registration, content: Content) {
        self.regions.insert(registration.key.rkey, Region { registration, content });
    }

    /// Posts a receive: the next SEND on `qpn` that has none yet goes there. The memory is registered already.
    pub fn post_receive(&mut self, qpn: Qpn, registration: Registration) {
        self.receives.entry(qpn).or_default().push_back(registration);
    }

    /// The receive that the next SEND on `qpn` uses.
    pub fn next_receive(&self, qpn: Qpn) -> Option<Registration> {
        self.receives.get(&qpn)?.front().copied()
    }

    /// The receive is used.
    pub fn consume_receive(&mut self, qpn: Qpn) {
        if let Some(receives) = self.receives.get_mut(&qpn) {
            receives.pop_front();
        }
    }

    /// Whether `size` octets at `key` lie in one region, and whose they are.
    ///
    /// * Errors: no such rkey, or the range leaves its region.
    pub fn check(&self, key: MemoryKey, size: Octets) -> Result<MessageId, AccessError> {
        let region = self.regions.get(&key.rkey).ok_or(AccessError)?;
        region.range(key, size)?;
        Ok(region.registration.message)
    }

    /// Reads `size` octets; of a pattern a slice, not a copy.
    ///
    /// * Errors: as [`HostMemory::check`].
    pub fn read(&self, key: MemoryKey, size: Octets) -> Result<Bytes, AccessError> {
        let region = self.regions.get(&key.rkey).ok_or(AccessError)?;
        let range = region.range(key, size)?;
        Ok(region.content.read(region.registration, range))
    }

    /// Writes `payload`. If this machine has no memory for it, it is lost, and [`HostMemory::shortage`] says so.
    ///
    /// * Errors: as [`HostMemory::check`].
    pub fn write(&mut self, key: MemoryKey, payload: &[u8]) -> Result<(), AccessError> {
        let region = self.regions.get_mut(&key.rkey).ok_or(AccessError)?;
        let range = region.range(key, Octets::new(payload.len() as u64))?;
        if region.content.write(region.registration, range, payload).is_err() {
            self.shortage = Some(region.registration.size);
        }
        Ok(())
    }

    /// The size of a region for which this machine has not had enough memory. From then on a run proves nothing.
    pub fn shortage(&self) -> Option<Octets> {
        self.shortage
    }

    /// Deregisters a region and returns what it held; `None` if there is none of that rkey.
    pub fn deregister(&mut self, rkey: u32) -> Option<Held> {
        self.regions.remove(&rkey).map(|Region { registration, content }| Held { registration, content })
    }
}

impl Region {
    fn range(&self, key: MemoryKey, size: Octets) -> Result<Range<usize>, AccessError> {
        let start = key.address.checked_sub(self.registration.key.address).ok_or(AccessError)?;
        let end = start.checked_add(size.get()).ok_or(AccessError)?;
        if end > self.registration.size.get() {
            return Err(AccessError);
        }
        Ok(start as usize..end as usize)
    }
}

impl Content {
    fn read(&self, registration: Registration, range: Range<usize>) -> Bytes {
        match self {
            Self::Pattern => pattern(registration.message, range),
            Self::Received(octets) => {
                let held = &octets[range.start.min(octets.len())..range.end.min(octets.len())];
                let mut read = held.to_vec();
                read.resize(range.len(), 0);
                read.into()
            }
        }
    }

    fn write(
        &mut self,
        registration: Registration,
        range: Range<usize>,
        payload: &[u8],
    ) -> Result<(), TryReserveError> {
        let size = registration.size.get() as usize;
        if let Self::Pattern = self {
            let mut octets = Vec::new();
            octets.try_reserve_exact(size)?;
            octets.extend_from_slice(&pattern(registration.message, 0..size));
            *self = Self::Received(octets);
        }
        let Self::Received(octets) = self else { unreachable!("a pattern was just written out") };
        if octets.len() < range.end {
            // All at once, which takes no memory before it is touched.
            octets.try_reserve_exact(size - octets.len())?;
            octets.resize(range.end, 0);
        }
        octets[range].copy_from_slice(payload);
        Ok(())
    }
}

impl Held {
    pub fn size(&self) -> Octets {
        self.registration.size
    }

    /// The offset of the first octet in which both differ, or which only one of them has.
    pub fn first_difference(&self, other: &Self) -> Option<usize> {
        let sizes = [self, other].map(|held| held.registration.size.get() as usize);
        let [least, most] = [sizes[0].min(sizes[1]), sizes[0].max(sizes[1])];
        for start in (0..least).step_by(PATTERN_SLICE) {
            let range = start..least.min(start + PATTERN_SLICE);
            let [own, theirs] = [self, other].map(|held| held.content.read(held.registration, range.clone()));
            if own != theirs {
                return Some(start + own.iter().zip(&theirs).take_while(|(own, theirs)| own == theirs).count());
            }
        }
        (least < most).then_some(least)
    }
}

/// Larger parts of a pattern are put together from parts of this size.
const PATTERN_SLICE: usize = 1 << 14;
/// 7·i modulo 256 for every i; it repeats every 256 octets, and so a slice of it starts with any octet there is.
static SEVENS: [u8; 256 + PATTERN_SLICE] = {
    let mut octets = [0_u8; 256 + PATTERN_SLICE];
    let mut i = 0;
    while i < octets.len() {
        octets[i] = (7 * i % 256) as u8;
        i += 1;
    }
    octets
};

/// A part of a message's payload: octet i is (3 + 7·i + message number) mod 256.
///
/// * Source: interface.md "Ids".
fn pattern(message: MessageId, range: Range<usize>) -> Bytes {
    // 7 · 183 = 1 modulo 256: the octet at which the sevens have come to 3 + message number.
    let start = (range.start as u64 + 183 * (3 + u64::from(message.0))) as usize % 256;
    if range.len() <= PATTERN_SLICE {
        return Bytes::from_static(&SEVENS[start..start + range.len()]);
    }
    let mut octets = SEVENS[start..start + 256].repeat(range.len().div_ceil(256));
    octets.truncate(range.len());
    octets.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: MemoryKey = MemoryKey { address: 0x1_0000_0000, rkey: 1 };

    fn registration(size: u64) -> Registration {
        Registration { message: MessageId(5), key: KEY, size: Octets::new(size) }
    }

    #[test]
    fn a_source_holds_the_pattern_of_its_message() {
        let mut memory = HostMemory::default();
        memory.register_source(registration(1_000));
        let read = memory.read(KEY.plus(Octets::new(300)), Octets::new(2)).unwrap();
        // (3 + 7 x 300 + 5) mod 256 = 2108 mod 256 = 60.
        assert_eq!(read[..], [60, 67]);
    }

    #[test]
    fn an_access_outside_its_region_is_refused() {
        let mut memory = HostMemory::default();
        memory.register_target(registration(10));
        assert_eq!(memory.check(KEY, Octets::new(10)), Ok(MessageId(5)));
        assert_eq!(memory.check(KEY, Octets::new(11)), Err(AccessError));
        assert_eq!(memory.check(MemoryKey { rkey: 2, ..KEY }, Octets::new(1)), Err(AccessError));
        assert_eq!(memory.check(MemoryKey { address: 0, ..KEY }, Octets::new(1)), Err(AccessError));
        assert_eq!(memory.check(MemoryKey { address: u64::MAX, ..KEY }, Octets::new(1)), Err(AccessError));
        assert_eq!(memory.write(KEY.plus(Octets::new(9)), &[1, 2]), Err(AccessError));
        assert_eq!(memory.read(KEY, Octets::new(10)).unwrap(), vec![0; 10]);
    }

    #[test]
    fn what_was_written_is_read_back() {
        let mut memory = HostMemory::default();
        memory.register_target(registration(4));
        memory.write(KEY.plus(Octets::new(1)), &[7, 8]).unwrap();
        assert_eq!(memory.read(KEY, Octets::new(4)).unwrap()[..], [0, 7, 8, 0]);
        assert_eq!(memory.deregister(1).map(|held| held.size()), Some(Octets::new(4)));
        assert!(memory.deregister(1).is_none());
    }

    #[test]
    fn every_part_of_a_pattern_is_what_the_formula_says() {
        for message in [0, 5, 255, 256, u32::MAX] {
            for range in [0..0, 0..1, 255..257, 1_000..1_000 + PATTERN_SLICE, 77..77 + 2 * PATTERN_SLICE] {
                let octet = |i: usize| ((3 + 7 * i as u64 + u64::from(message)) % 256) as u8;
                let expected: Vec<_> = range.clone().map(octet).collect();
                assert_eq!(pattern(MessageId(message), range), expected);
            }
        }
    }

    #[test]
    fn a_source_of_any_size_takes_no_memory() {
        let mut memory = HostMemory::default();
        memory.register_source(registration(1 << 31));
        let read = memory.read(KEY.plus(Octets::new((1 << 31) - 1)), Octets::new(1)).unwrap();
        // (3 - 7 + 5) mod 256.
        assert_eq!(read[..], [1]);
        assert!(matches!(memory.regions[&1].content, Content::Pattern));
    }

    #[test]
    fn what_both_ends_hold_is_compared_to_the_last_octet() {
        let size = 3 * PATTERN_SLICE as u64 + 5;
        let held = |changed: Option<usize>, received: usize| {
            let (mut source, mut target) = (HostMemory::default(), HostMemory::default());
            source.register_source(registration(size));
            target.register_target(registration(size));
            let mut octets = source.read(KEY, Octets::new(received as u64)).unwrap().to_vec();
            changed.into_iter().for_each(|at| octets[at] ^= 1);
            target.write(KEY, &octets).unwrap();
            source.deregister(1).unwrap().first_difference(&target.deregister(1).unwrap())
        };
        let size = size as usize;
        assert_eq!(held(None, size), None);
        for changed in [0, 1, PATTERN_SLICE - 1, PATTERN_SLICE, size - 1] {
            assert_eq!(held(Some(changed), size), Some(changed));
        }
        // What never came is zeros; octet 252 of message 5 is 3 + 7 x 252 + 5 = 1,772, no multiple of 256.
        assert_eq!(held(None, 252), Some(252));
        let (mut one, mut other) = (HostMemory::default(), HostMemory::default());
        one.register_source(registration(10));
        other.register_source(registration(9));
        assert_eq!(one.deregister(1).unwrap().first_difference(&other.deregister(1).unwrap()), Some(9));
    }

    #[test]
    fn memory_that_this_machine_does_not_have_is_missed_and_said() {
        let mut memory = HostMemory::default();
        memory.register_target(registration(1 << 62));
        assert_eq!(memory.shortage(), None);
        memory.write(KEY, &[1]).unwrap();
        assert_eq!(memory.shortage(), Some(Octets::new(1 << 62)));
    }
}
