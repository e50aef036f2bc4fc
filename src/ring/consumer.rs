//! The side that takes entries, with a read position ahead of what it gives free.

use super::geometry::{CONSUMER_INDEX, MAX_SLOT, PRODUCER_INDEX, WORD};
use super::primitive::{AtomicU64, Ordering};
use super::{Geometry, RingError, Side};

/// The consuming end of a ring: the device's of a send or receive queue, the application's of a completion queue.
///
/// ```text
///          CI            RP            PI
///   . . . | held ------ | waiting --- | . . .          CI <= RP <= PI around the ring
///          fetched, not  announced,     free for the
///          completed     not fetched    producer
/// ```
///
/// * Order: one `Consumer` per ring, for as long as the ring lives.
#[derive(Debug)]
pub struct Consumer<M> {
    memory: M,
    geometry: Geometry,
    /// PI as last believed.
    producer: u32,
    /// RP, the next slot to fetch. In no memory but ours.
    read: u32,
    /// CI. Ours alone: the shared copy is written and never read back.
    consumer: u32,
}

impl<M: AsRef<[AtomicU64]>> Consumer<M> {
    /// The consuming end of a ring that nothing was posted to yet.
    ///
    /// * Shape: `memory` gives the same words each time; indices are where [`Geometry`] lays them.
    /// * Errors: `Memory` if it is too small.
    pub fn new(memory: M, geometry: Geometry) -> Result<Self, RingError> {
        geometry.fits(memory.as_ref())?;
        Ok(Self { memory, geometry, producer: 0, read: 0, consumer: 0 })
    }

    /// Believes a producer index that a doorbell has brought; gives how many entries are new.
    ///
    /// * Errors: `OutOfRange`, `Impossible` if it is no slot or goes backwards; so it is never more than one ring.
    pub fn announce(&mut self, producer_index: u32) -> Result<u32, RingError> {
        self.believe(u64::from(producer_index))
    }

    /// Reads the shared producer index, where no doorbell comes: receive and completion queues.
    ///
    /// * Errors: as of [`Consumer::announce`].
    pub fn refresh(&mut self) -> Result<u32, RingError> {
        // Acquire: pairs with the producer's release, so that the slots below this index hold their entries.
        let index = self.memory.as_ref()[PRODUCER_INDEX].load(Ordering::Acquire);
        self.believe(u64::from_le(index))
    }

    /// Copies the slot at the read position and moves the read position; the slot stays held. `None` if nothing waits.
    ///
    /// The other side can write to the slot at any time, so what counts is this copy. After a rewind it may differ.
    ///
    /// * Cost: a load per eight octets of the slot, no allocation.
    pub fn fetch<'a>(&mut self, buffer: &'a mut [u8; MAX_SLOT]) -> Option<&'a [u8]> {
        let index = self.skip()?;
        let slot = self.geometry.slot(self.memory.as_ref(), index);
        for (word, octets) in slot.iter().zip(buffer.as_chunks_mut::<WORD>().0) {
            // Relaxed: the acquire that brought the producer index has brought these words.
            *octets = word.load(Ordering::Relaxed).to_ne_bytes();
        }
        Some(&buffer[..self.geometry.slot_octets()])
    }

    /// Moves the read position without reading: over an entry whose octets came with its doorbell. Gives its slot.
    pub fn skip(&mut self) -> Option<u32> {
        if self.waiting() == 0 {
            return None;
        }
        let slot = self.read;
        self.read = self.geometry.plus(slot, 1);
        Some(slot)
    }

    /// Gives the oldest fetched slot free, signaled or not (specification R5).
    ///
    /// * Errors: `NothingFetched`.
    pub fn complete(&mut self) -> Result<(), RingError> {
        if self.held() == 0 {
            return Err(RingError::NothingFetched);
        }
        self.consumer = self.geometry.plus(self.consumer, 1);
        // Release: our last read of the slot happens before the producer, acquiring this, writes to it.
        self.memory.as_ref()[CONSUMER_INDEX].store(u64::from(self.consumer).to_le(), Ordering::Release);
        Ok(())
    }

    /// Takes the read position back to the consumer index, on a NAK or a timeout (specification R2): what was fetched and
    /// not completed is fetched again, from slots that nobody has overwritten.
    pub fn rewind(&mut self) {
        self.read = self.consumer;
    }

    /// Fetches and completes one entry: what polling a completion queue is.
    ///
    /// * Order: with nothing held, since it is the oldest entry that completes.
    /// * Errors: as of [`Consumer::refresh`], which is asked when nothing waits. No entry is lost.
    pub fn poll<'a>(&mut self, buffer: &'a mut [u8; MAX_SLOT]) -> Result<Option<&'a [u8]>, RingError> {
        if self.waiting() == 0 {
            self.refresh()?;
        }
        let Some(entry) = self.fetch(buffer) else { return Ok(None) };
        self.complete()?;
        Ok(Some(entry))
    }

    /// Entries between read position and producer index, 0..N.
    pub fn waiting(&self) -> u32 {
        self.geometry.distance(self.read, self.producer)
    }

    /// Entries between consumer index and read position, 0..N.
    pub fn held(&self) -> u32 {
        self.geometry.distance(self.consumer, self.read)
    }

    /// CI: the oldest slot that is not given free.
    pub fn consumer_index(&self) -> u32 {
        self.consumer
    }

    /// RP: the slot that is fetched next.
    pub fn read_position(&self) -> u32 {
        self.read
    }

    pub fn geometry(&self) -> Geometry {
        self.geometry
    }

    fn believe(&mut self, index: u64) -> Result<u32, RingError> {
        let last = self.producer;
        // One slot always stays unused: the furthest a producer can be is just behind CI.
        let furthest = self.geometry.plus(self.consumer, self.geometry.capacity());
        self.producer = self.geometry.within(Side::Producer, index, last, furthest)?;
        Ok(self.geometry.distance(last, self.producer))
    }
}
