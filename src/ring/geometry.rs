//! How many slots of which size, where they lie, and the arithmetic of masked indices.

use super::primitive::{AtomicU64, Ordering};
use super::{RingError, Side};

/// Octets of a cache line, of a doorbell line, and of the smallest slot.
pub const LINE: usize = 64;
/// The largest slot. A buffer of this many octets takes any entry.
pub const MAX_SLOT: usize = 512;

pub(super) const WORD: usize = size_of::<u64>();
/// Where the indices lie, in words: a cache line for each, or its writer would take the line from the other's reader.
pub(super) const PRODUCER_INDEX: usize = LINE / WORD;
pub(super) const CONSUMER_INDEX: usize = 2 * LINE / WORD;
const HEADER_WORDS: usize = 3 * LINE / WORD;

/// The shape of a ring, which does not change while it lives.
///
/// Each side keeps a copy of its own: what the header says later on is never read again.
///
/// * Range: 2..=65,536 slots of 64..=512 octets (as small as 16 under loom), powers of two both.
/// * Source: specification (Send ring) for N and its N − 1 entries; the most slots are our choice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Geometry {
    slots: u32,
    slot_octets: u32,
}

impl Geometry {
    /// Of the layout in shared memory.
    pub const VERSION: u16 = 1;
    const MAGIC: u32 = u32::from_le_bytes(*b"ring");
    /// Slots of the largest ring.
    pub const MAX_SLOTS: u32 = 1 << 16;
    /// What loom explores grows with every word of a slot.
    const MIN_SLOT: u32 = if cfg!(rocemu_loom) { 16 } else { LINE as u32 };

    /// * Errors: `Slots`, `SlotOctets` if out of range or no power of two.
    pub const fn new(slots: u32, slot_octets: u32) -> Result<Self, RingError> {
        if !slots.is_power_of_two() || slots < 2 || slots > Self::MAX_SLOTS {
            return Err(RingError::Slots(slots));
        }
        if !slot_octets.is_power_of_two() || slot_octets < Self::MIN_SLOT || slot_octets > MAX_SLOT as u32 {
            return Err(RingError::SlotOctets(slot_octets));
        }
        Ok(Self { slots, slot_octets })
    }

    /// Lays an empty ring of this shape into memory: what the side that made the memory does, before the other sees it.
    ///
    /// * Errors: `Memory` if it is too small.
    pub fn format(self, memory: &[AtomicU64]) -> Result<(), RingError> {
        self.fits(memory)?;
        let head = u64::from(Self::MAGIC) | u64::from(Self::VERSION) << 32;
        let shape = u64::from(self.slots) | u64::from(self.slot_octets) << 32;
        // Relaxed, all of it: the memory is handed over by other means, such as a socket, and they order it.
        for (word, value) in [(0, head), (1, shape), (PRODUCER_INDEX, 0), (CONSUMER_INDEX, 0)] {
            memory[word].store(value.to_le(), Ordering::Relaxed);
        }
        Ok(())
    }

    /// The shape of the ring that the other side has laid into memory.
    ///
    /// * Errors: `Header` if there is none of this version; `Slots`, `SlotOctets`, `Memory` if it cannot be.
    pub fn read(memory: &[AtomicU64]) -> Result<Self, RingError> {
        // Relaxed: ordered by what handed the memory over.
        let word = |at: usize| memory.get(at).map(|word| u64::from_le(word.load(Ordering::Relaxed)));
        let (Some(head), Some(shape)) = (word(0), word(1)) else { return Err(RingError::Header) };
        if head != u64::from(Self::MAGIC) | u64::from(Self::VERSION) << 32 {
            return Err(RingError::Header);
        }
        let geometry = Self::new(shape as u32, (shape >> 32) as u32)?;
        geometry.fits(memory)?;
        Ok(geometry)
    }

    /// N, one more than [`Geometry::capacity`].
    pub const fn slots(self) -> u32 {
        self.slots
    }

    pub const fn slot_octets(self) -> usize {
        self.slot_octets as usize
    }

    /// Entries that can be held at once: N − 1, or a full ring would look empty.
    pub const fn capacity(self) -> u32 {
        self.slots - 1
    }

    /// Octets of shared memory: header and slots, a multiple of 64.
    pub const fn memory_octets(self) -> usize {
        HEADER_WORDS * WORD + self.slots as usize * self.slot_octets()
    }

    pub(super) fn fits(self, memory: &[AtomicU64]) -> Result<(), RingError> {
        let (need, have) = (self.memory_octets(), memory.len() * WORD);
        if have < need { Err(RingError::Memory { need, have }) } else { Ok(()) }
    }

    pub(super) fn slot(self, memory: &[AtomicU64], index: u32) -> &[AtomicU64] {
        let words = self.slot_octets() / WORD;
        &memory[HEADER_WORDS + index as usize * words..][..words]
    }

    /// The index `count` slots on, by masking.
    pub(super) const fn plus(self, index: u32, count: u32) -> u32 {
        index.wrapping_add(count) & (self.slots - 1)
    }

    /// Slots from one index on to another, 0..N.
    pub(super) const fn distance(self, from: u32, to: u32) -> u32 {
        to.wrapping_sub(from) & (self.slots - 1)
    }

    /// Believes an index that the other side claims: one of `from..=to`, around the ring.
    pub(super) fn within(self, side: Side, index: u64, from: u32, to: u32) -> Result<u32, RingError> {
        match u32::try_from(index) {
            Ok(claimed) if claimed < self.slots => {
                let possible = self.distance(from, claimed) <= self.distance(from, to);
                if possible { Ok(claimed) } else { Err(RingError::Impossible { side, index: claimed, from, to }) }
            }
            _ => Err(RingError::OutOfRange { side, index }),
        }
    }
}
