//! The side that fills slots.

use super::geometry::{CONSUMER_INDEX, PRODUCER_INDEX, WORD};
use super::primitive::{AtomicU64, Ordering};
use super::{Geometry, RingError, Side};

/// The producing end of a ring: the application's of a send or receive queue, the device's of a completion queue.
///
/// * Order: one `Producer` per ring, for as long as the ring lives.
#[derive(Debug)]
pub struct Producer<M> {
    memory: M,
    geometry: Geometry,
    /// PI. Ours alone: the shared copy is written and never read back.
    producer: u32,
    /// CI as last believed. It can only be behind, so that it is read again only when the ring looks full.
    consumer: u32,
}

impl<M: AsRef<[AtomicU64]>> Producer<M> {
    /// The producing end of a ring that nothing was posted to yet.
    ///
    /// * Shape: `memory` gives the same words each time; indices are where [`Geometry`] lays them.
    /// * Errors: `Memory` if it is too small.
    pub fn new(memory: M, geometry: Geometry) -> Result<Self, RingError> {
        geometry.fits(memory.as_ref())?;
        Ok(Self { memory, geometry, producer: 0, consumer: 0 })
    }

    /// Writes an entry into the next slot and moves the producer index over it; gives the new one, for the doorbell.
    ///
    /// The rest of the slot keeps what it held: an entry says itself how long it is.
    ///
    /// * Errors: `Full` at N − 1 entries (specification R5); `EntryLength` if it is empty or no slot takes it;
    ///   `OutOfRange`, `Impossible` if the consumer index cannot be.
    /// * Cost: a store per eight octets, two loads at most if the ring looked full; no allocation.
    pub fn post(&mut self, entry: &[u8]) -> Result<u32, RingError> {
        self.check_length(entry.len(), self.geometry.slot_octets())?;
        self.require(1)?;
        self.write(0, entry);
        Ok(self.publish(1))
    }

    /// Entries that can be posted now, 0..=N − 1.
    ///
    /// * Errors: as of [`Producer::post`].
    pub fn free(&mut self) -> Result<u32, RingError> {
        self.refresh()?;
        Ok(self.looks_free())
    }

    /// PI: the slot that is written next.
    pub fn producer_index(&self) -> u32 {
        self.producer
    }

    pub fn geometry(&self) -> Geometry {
        self.geometry
    }

    pub(super) fn check_length(&self, have: usize, max: usize) -> Result<(), RingError> {
        if (1..=max).contains(&have) { Ok(()) } else { Err(RingError::EntryLength { have, max }) }
    }

    /// `Full` unless `count` slots are free.
    pub(super) fn require(&mut self, count: u32) -> Result<(), RingError> {
        if self.looks_free() < count && self.free()? < count { Err(RingError::Full) } else { Ok(()) }
    }

    /// Fills the slot `ahead` of the producer index, which is free and thus nobody's but ours.
    pub(super) fn write(&mut self, ahead: u32, entry: &[u8]) {
        let slot = self.geometry.slot(self.memory.as_ref(), self.geometry.plus(self.producer, ahead));
        for (word, octets) in slot.iter().zip(entry.chunks(WORD)) {
            let mut bytes = [0; WORD];
            bytes[..octets.len()].copy_from_slice(octets);
            // Relaxed: the release of the index, or of the doorbell after it, carries these along.
            word.store(u64::from_ne_bytes(bytes), Ordering::Relaxed);
        }
    }

    /// Hands `count` written slots over.
    pub(super) fn publish(&mut self, count: u32) -> u32 {
        self.producer = self.geometry.plus(self.producer, count);
        // Release: who acquires this index sees every word that was written before it.
        self.memory.as_ref()[PRODUCER_INDEX].store(u64::from(self.producer).to_le(), Ordering::Release);
        self.producer
    }

    /// (PI + 1 − CI) & (N − 1) = 0 is full.
    fn looks_free(&self) -> u32 {
        self.geometry.capacity() - self.geometry.distance(self.consumer, self.producer)
    }

    fn refresh(&mut self) -> Result<(), RingError> {
        // Acquire: the consumer has read a slot for the last time before it gave it free, so what we write into that slot
        // from here on cannot reach into its copy.
        let index = u64::from_le(self.memory.as_ref()[CONSUMER_INDEX].load(Ordering::Acquire));
        let (from, to) = (self.consumer, self.producer);
        self.consumer = self.geometry.within(Side::Consumer, index, from, to)?;
        Ok(())
    }
}
