//! The memory of the host behind a NIC: registered regions with real octets in them.

use std::collections::{BTreeMap, VecDeque};

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
}

#[derive(Clone, Debug)]
struct Region {
    registration: Registration,
    content: Content,
}

/// Regions hold no octets before they are touched, so that a long queue of messages costs nothing.
#[derive(Clone, Debug)]
enum Content {
    /// The message's payload pattern, to be sent.
    Pattern,
    Filled(Bytes),
    /// Nothing received yet.
    Empty,
    Received(Vec<u8>),
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
        self.insert(registration, Content::Empty);
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

    /// Reads `size` octets; a slice, not a copy.
    ///
    /// * Errors: as [`HostMemory::check`].
    pub fn read(&mut self, key: MemoryKey, size: Octets) -> Result<Bytes, AccessError> {
        let region = self.regions.get_mut(&key.rkey).ok_or(AccessError)?;
        let range = region.range(key, size)?;
        Ok(region.octets().slice(range))
    }

    /// Writes `payload`.
    ///
    /// * Errors: as [`HostMemory::check`].
    pub fn write(&mut self, key: MemoryKey, payload: &[u8]) -> Result<(), AccessError> {
        let region = self.regions.get_mut(&key.rkey).ok_or(AccessError)?;
        let range = region.range(key, Octets::new(payload.len() as u64))?;
        region.octets_mut()[range].copy_from_slice(payload);
        Ok(())
    }

    /// Deregisters a region and returns what it held; `None` if there is none of that rkey.
    pub fn deregister(&mut self, rkey: u32) -> Option<Bytes> {
        self.regions.remove(&rkey).map(|mut region| region.octets())
    }
}

impl Region {
    fn range(&self, key: MemoryKey, size: Octets) -> Result<std::ops::Range<usize>, AccessError> {
        let start = key.address.checked_sub(self.registration.key.address).ok_or(AccessError)?;
        let end = start.checked_add(size.get()).ok_or(AccessError)?;
        if end > self.registration.size.get() {
            return Err(AccessError);
        }
        Ok(start as usize..end as usize)
    }

    fn octets(&mut self) -> Bytes {
        let filled = match std::mem::replace(&mut self.content, Content::Empty) {
            Content::Filled(bytes) => bytes,
            Content::Pattern => pattern(self.registration.message, self.registration.size),
            Content::Received(bytes) => bytes.into(),
            Content::Empty => vec![0; self.registration.size.get() as usize].into(),
        };
        self.content = Content::Filled(filled.clone());
        filled
    }

    fn octets_mut(&mut self) -> &mut Vec<u8> {
        let received = match std::mem::replace(&mut self.content, Content::Empty) {
            Content::Received(bytes) => bytes,
            Content::Empty => vec![0; self.registration.size.get() as usize],
            Content::Pattern => pattern(self.registration.message, self.registration.size).into(),
            Content::Filled(bytes) => bytes.into(),
        };
        self.content = Content::Received(received);
        match &mut self.content {
            Content::Received(bytes) => bytes,
            _ => unreachable!("it was just put there"),
        }
    }
}

/// The payload of a message.
///
/// * Source: interface.md "Ids".
fn pattern(message: MessageId, size: Octets) -> Bytes {
    // It repeats every 256 octets.
    let block: Vec<u8> = (0..256_u32).map(|i| (3 + 7 * i).wrapping_add(message.0) as u8).collect();
    let mut octets = block.repeat(size.get().div_ceil(256) as usize);
    octets.truncate(size.get() as usize);
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
        assert_eq!(memory.deregister(1).unwrap(), vec![0; 10]);
    }

    #[test]
    fn what_was_written_is_read_back() {
        let mut memory = HostMemory::default();
        memory.register_target(registration(4));
        memory.write(KEY.plus(Octets::new(1)), &[7, 8]).unwrap();
        assert_eq!(memory.deregister(1).unwrap()[..], [0, 7, 8, 0]);
        assert_eq!(memory.deregister(1), None);
    }
}
