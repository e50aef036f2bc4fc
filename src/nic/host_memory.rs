//! The memory of the host behind a NIC: registered regions with real octets in them.

use std::collections::{BTreeMap, VecDeque};
use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;

use super::SharedMemory;
use super::content::{Content, Held};
use super::work::{Piece, Receive, Source, length};
use crate::base::{MessageId, Octets, Qpn};

/// A place in registered memory, as a RETH names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemoryKey {
    pub address: u64,
    pub rkey: u32,
}

/// Whose a region or a queue pair is: neither reaches the regions of another domain.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Domain(pub u32);

/// Memory registered for one message of the scenario, at its sending or its receiving end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Registration {
    pub message: MessageId,
    pub key: MemoryKey,
    pub size: Octets,
}

/// Memory registered by an application: `size` octets from `offset` on, at the address and under the key of `key`.
#[derive(Clone, Debug)]
pub struct SharedRegion {
    pub domain: Domain,
    pub key: MemoryKey,
    pub size: Octets,
    pub memory: Arc<dyn SharedMemory>,
    pub offset: u64,
    pub local_write: bool,
    pub remote_write: bool,
}

/// What somebody wants to do to memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Every region may be read by its own host.
    Read,
    /// By a receive of its own host.
    LocalWrite,
    /// By a WRITE of the peer.
    RemoteWrite,
}

/// Why an access was refused: nothing is registered there, or not so much, or not for that.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AccessError;

/// Where the payload of a message goes.
#[derive(Clone, Debug)]
pub struct Target {
    pub pieces: Arc<[Piece]>,
    /// Octets of the pieces that are behind it.
    pub offset: Octets,
    pub access: Access,
}

/// Regions by rkey, and the receives posted for SENDs.
#[derive(Clone, Debug, Default)]
pub struct HostMemory {
    regions: BTreeMap<u32, Region>,
    receives: BTreeMap<Qpn, VecDeque<Receive>>,
    shortage: Option<Octets>,
}

#[derive(Clone, Debug)]
struct Region {
    domain: Domain,
    address: u64,
    size: Octets,
    /// The message of the scenario that it was registered for.
    message: Option<MessageId>,
    content: Content,
}

impl MemoryKey {
    pub fn plus(self, offset: Octets) -> Self {
        Self { address: self.address.wrapping_add(offset.get()), ..self }
    }
}

impl Domain {
    /// That of the scenario's own messages.
    pub const SCENARIO: Self = Self(0);
}

impl Target {
    pub fn new(pieces: Arc<[Piece]>, access: Access) -> Self {
        Self { pieces, offset: Octets::ZERO, access }
    }

    pub fn plus(self, octets: Octets) -> Self {
        Self { offset: self.offset + octets, ..self }
    }

    /// Octets of all pieces together.
    pub fn size(&self) -> Octets {
        length(&self.pieces)
    }
}

impl HostMemory {
    /// Registers memory that holds the payload of a message: octet i is (3 + 7·i + message number) mod 256.
    pub fn register_source(&mut self, registration: Registration) {
        self.insert(registration, Content::Pattern(registration.message));
    }

    /// Registers memory for a message to be received into.
    pub fn register_target(&mut self, registration: Registration) {
        self.insert(registration, Content::Received(Vec::new()));
    }

    fn insert(&mut self, Registration { message, key, size }: Registration, content: Content) {
        let (domain, message) = (Domain::SCENARIO, Some(message));
        self.regions.insert(key.rkey, Region { domain, address: key.address, size, message, content });
    }

    /// Registers memory of an application.
    ///
    /// * Errors: the rkey is taken, or the memory does not reach so far.
    pub fn register_shared(&mut self, region: SharedRegion) -> Result<(), AccessError> {
        let end = region.offset.checked_add(region.size.get()).ok_or(AccessError)?;
        if end > region.memory.len() || self.regions.contains_key(&region.key.rkey) {
            return Err(AccessError);
        }
        let SharedRegion { domain, key, size, .. } = region;
        let content = Content::Shared(region);
        self.regions.insert(key.rkey, Region { domain, address: key.address, size, message: None, content });
        Ok(())
    }

    /// Posts a receive: the next message on `qpn` that needs one and has none goes there.
    pub fn post_receive(&mut self, qpn: Qpn, receive: Receive) {
        self.receives.entry(qpn).or_default().push_back(receive);
    }

    /// The receive that the next message on `qpn` uses.
    pub fn next_receive(&self, qpn: Qpn) -> Option<&Receive> {
        self.receives.get(&qpn)?.front()
    }

    /// The receive is used.
    pub fn take_receive(&mut self, qpn: Qpn) -> Option<Receive> {
        self.receives.get_mut(&qpn)?.pop_front()
    }

    /// The receive was not used up after all: it is the next one again.
    pub fn give_receive_back(&mut self, qpn: Qpn, receive: Receive) {
        self.receives.entry(qpn).or_default().push_front(receive);
    }

    /// The message of the scenario that a region was registered for.
    pub fn message_at(&self, rkey: u32) -> Option<MessageId> {
        self.regions.get(&rkey)?.message
    }

    /// Whether `piece` lies in one region of `domain` that may be used so.
    ///
    /// * Errors: no such rkey, another's region, a range that leaves it, or a right that it does not give.
    pub fn check(&self, domain: Domain, piece: Piece, access: Access) -> Result<(), AccessError> {
        self.regions.get(&piece.key.rkey).ok_or(AccessError)?.range(domain, piece, access).map(|_| ())
    }

    /// Whether all of a message can be read. A piece of no octets may be anywhere.
    ///
    /// * Errors: as [`HostMemory::check`].
    pub fn check_source(&self, domain: Domain, source: &Source) -> Result<(), AccessError> {
        match source {
            Source::Gather(pieces) => {
                each_part(pieces, Octets::ZERO, length(pieces), |part| self.check(domain, part, Access::Read))
            }
            Source::Inline(_) => Ok(()),
        }
    }

    /// Whether the next `size` octets can be written.
    ///
    /// * Errors: as [`HostMemory::check`], or the pieces do not hold so much.
    pub fn check_target(&self, domain: Domain, target: &Target, size: Octets) -> Result<(), AccessError> {
        each_part(&target.pieces, target.offset, size, |part| self.check(domain, part, target.access))
    }

    /// Reads `size` octets of a message from `offset` on; of a pattern a slice, not a copy.
    ///
    /// * Errors: as [`HostMemory::check_target`].
    pub fn read(&self, domain: Domain, source: &Source, offset: Octets, size: Octets) -> Result<Bytes, AccessError> {
        let pieces = match source {
            Source::Gather(pieces) => pieces,
            Source::Inline(octets) => {
                let (start, size) = (offset.get() as usize, size.get() as usize);
                let end = start.checked_add(size).filter(|end| *end <= octets.len()).ok_or(AccessError)?;
                return Ok(octets.slice(start..end));
            }
        };
        let mut whole: Option<Bytes> = None;
        each_part(pieces, offset, size, |part| {
            let octets = self.read_part(domain, part)?;
            whole = Some(match whole.take() {
                None => octets,
                Some(before) => [before, octets].concat().into(),
            });
            Ok(())
        })?;
        Ok(whole.unwrap_or_default())
    }

    fn read_part(&self, domain: Domain, piece: Piece) -> Result<Bytes, AccessError> {
        let region = self.regions.get(&piece.key.rkey).ok_or(AccessError)?;
        Ok(region.content.read(region.range(domain, piece, Access::Read)?))
    }

    /// Writes `payload` to where `target` is. If this machine has no memory for it, it is lost, and
    /// [`HostMemory::shortage`] says so.
    ///
    /// * Errors: as [`HostMemory::check_target`]. Pieces before the one that was refused are written.
    pub fn write(&mut self, domain: Domain, target: &Target, payload: &[u8]) -> Result<(), AccessError> {
        let mut left = payload;
        each_part(&target.pieces, target.offset, Octets::new(payload.len() as u64), |part| {
            let region = self.regions.get_mut(&part.key.rkey).ok_or(AccessError)?;
            let range = region.range(domain, part, target.access)?;
            let (now, later) = left.split_at(range.len());
            left = later;
            if region.content.write(region.size, range, now).is_err() {
                self.shortage = Some(region.size);
            }
            Ok(())
        })
    }

    /// The size of a region for which this machine has not had enough memory. From then on a run proves nothing.
    pub fn shortage(&self) -> Option<Octets> {
        self.shortage
    }

    /// Deregisters a region; for one of the scenario returns what it held.
    pub fn deregister(&mut self, rkey: u32) -> Option<Held> {
        match self.regions.remove(&rkey)? {
            Region { content: Content::Shared(_), .. } => None,
            Region { size, content, .. } => Some(Held { size, content }),
        }
    }
}

/// The parts of `pieces` in which the octets `offset..offset + size` of all of them lie, in order.
///
/// * Errors: what `each` returns, or the pieces do not hold so much.
fn each_part(
    pieces: &[Piece],
    offset: Octets,
    size: Octets,
    mut each: impl FnMut(Piece) -> Result<(), AccessError>,
) -> Result<(), AccessError> {
    let (mut skip, mut left) = (offset, size);
    for piece in pieces {
        let here = piece.length.saturating_sub(skip).min(left);
        if !here.is_zero() {
            each(Piece { key: piece.key.plus(skip), length: here })?;
        }
        skip = skip.saturating_sub(piece.length);
        left -= here;
    }
    if left.is_zero() { Ok(()) } else { Err(AccessError) }
}

impl Region {
    fn range(&self, domain: Domain, piece: Piece, access: Access) -> Result<Range<usize>, AccessError> {
        let may = match (&self.content, access) {
            (Content::Shared(region), Access::LocalWrite) => region.local_write,
            (Content::Shared(region), Access::RemoteWrite) => region.remote_write,
            _ => true,
        };
        let start = piece.key.address.checked_sub(self.address).ok_or(AccessError)?;
        let end = start.checked_add(piece.length.get()).ok_or(AccessError)?;
        if !may || domain != self.domain || end > self.size.get() {
            return Err(AccessError);
        }
        Ok(start as usize..end as usize)
    }
}

#[cfg(test)]
mod tests {
    use super::super::LocalMemory;
    use super::*;

    const KEY: MemoryKey = MemoryKey { address: 0x1_0000_0000, rkey: 1 };

    fn piece(key: MemoryKey, length: u64) -> Piece {
        Piece { key, length: Octets::new(length) }
    }

    fn registration(size: u64) -> Registration {
        Registration { message: MessageId(5), key: KEY, size: Octets::new(size) }
    }

    #[test]
    fn a_source_holds_the_pattern_of_its_message() {
        let mut memory = HostMemory::default();
        memory.register_source(registration(1_000));
        let source = Source::Gather([piece(KEY, 1_000)].into());
        let read = memory.read(Domain::SCENARIO, &source, Octets::new(300), Octets::new(2)).unwrap();
        // (3 + 7 x 300 + 5) mod 256 = 2108 mod 256 = 60.
        assert_eq!(read[..], [60, 67]);
    }

    #[test]
    fn an_access_outside_its_region_is_refused() {
        let mut memory = HostMemory::default();
        memory.register_target(registration(10));
        let check = |key, size| memory.check(Domain::SCENARIO, piece(key, size), Access::RemoteWrite);
        assert_eq!(check(KEY, 10), Ok(()));
        assert_eq!(check(KEY, 11), Err(AccessError));
        assert_eq!(check(MemoryKey { rkey: 2, ..KEY }, 1), Err(AccessError));
        assert_eq!(check(MemoryKey { address: 0, ..KEY }, 1), Err(AccessError));
        assert_eq!(check(MemoryKey { address: u64::MAX, ..KEY }, 1), Err(AccessError));
        assert_eq!(check(KEY.plus(Octets::new(9)), 2), Err(AccessError));
        assert_eq!(check(KEY, u64::MAX), Err(AccessError));
        assert_eq!(memory.check(Domain(1), piece(KEY, 1), Access::Read), Err(AccessError), "another's");
        assert_eq!(memory.message_at(1), Some(MessageId(5)));
        assert_eq!(memory.deregister(1).unwrap().content.read(0..10), vec![0; 10]);
    }

    #[test]
    fn what_was_written_is_read_back() {
        let mut memory = HostMemory::default();
        memory.register_target(registration(4));
        let target = Target::new([piece(KEY, 4)].into(), Access::LocalWrite).plus(Octets::new(1));
        memory.write(Domain::SCENARIO, &target, &[7, 8]).unwrap();
        assert_eq!(memory.check_target(Domain::SCENARIO, &target, Octets::new(4)), Err(AccessError));
        assert_eq!(memory.deregister(1).unwrap().content.read(0..4)[..], [0, 7, 8, 0]);
        assert!(memory.deregister(1).is_none());
    }

    const OWN: Domain = Domain(7);

    /// Ten octets 0, 1, 2 … of which the region has those from 2 on, at address 100.
    fn shared(memory: &mut HostMemory, rkey: u32, local_write: bool, remote_write: bool) -> LocalMemory {
        let octets = LocalMemory::new((0..10).collect());
        let region = SharedRegion {
            domain: OWN,
            key: MemoryKey { address: 100, rkey },
            size: Octets::new(8),
            memory: Arc::new(octets.clone()),
            offset: 2,
            local_write,
            remote_write,
        };
        memory.register_shared(region).unwrap();
        octets
    }

    fn at(address: u64, rkey: u32, length: u64) -> Piece {
        piece(MemoryKey { address, rkey }, length)
    }

    #[test]
    fn a_message_is_gathered_from_its_pieces() {
        let mut memory = HostMemory::default();
        shared(&mut memory, 1, false, false);
        shared(&mut memory, 2, false, false);
        let source = Source::Gather([at(100, 1, 2), at(103, 1, 0), at(101, 2, 3), at(107, 1, 1)].into());
        // Octets 2, 3 | nothing | 3, 4, 5 | 9.
        let read = |offset, size| memory.read(OWN, &source, Octets::new(offset), Octets::new(size));
        assert_eq!(read(0, 6).unwrap()[..], [2, 3, 3, 4, 5, 9]);
        assert_eq!(read(1, 3).unwrap()[..], [3, 3, 4]);
        assert_eq!(read(5, 1).unwrap()[..], [9]);
        assert!(read(6, 0).unwrap().is_empty());
        assert_eq!(read(4, 3), Err(AccessError), "the pieces end before");
        let source = Source::Inline(Bytes::from_static(&[8, 9]));
        assert_eq!(memory.read(OWN, &source, Octets::new(1), Octets::new(1)).unwrap()[..], [9]);
        assert_eq!(memory.read(OWN, &source, Octets::new(1), Octets::new(2)), Err(AccessError));
    }

    #[test]
    fn a_message_is_scattered_over_the_pieces_of_its_receive() {
        let mut memory = HostMemory::default();
        let (one, two) = (shared(&mut memory, 1, true, false), shared(&mut memory, 2, true, false));
        let target = Target::new([at(101, 1, 2), at(100, 2, 3)].into(), Access::LocalWrite).plus(Octets::new(1));
        memory.write(OWN, &target, &[71, 72, 73]).unwrap();
        assert_eq!(one.to_vec(), [0, 1, 2, 3, 71, 5, 6, 7, 8, 9]);
        assert_eq!(two.to_vec(), [0, 1, 72, 73, 4, 5, 6, 7, 8, 9]);
        assert_eq!(memory.check_target(OWN, &target, Octets::new(4)), Ok(()));
        assert_eq!(memory.check_target(OWN, &target, Octets::new(5)), Err(AccessError));
    }

    #[test]
    fn a_region_is_used_as_its_owner_allows_and_by_nobody_else() {
        let mut memory = HostMemory::default();
        shared(&mut memory, 1, false, false);
        shared(&mut memory, 2, true, false);
        shared(&mut memory, 3, false, true);
        let may = |rkey| {
            [Access::Read, Access::LocalWrite, Access::RemoteWrite].map(|access| {
                assert_eq!(memory.check(Domain::SCENARIO, at(100, rkey, 1), access), Err(AccessError));
                memory.check(OWN, at(100, rkey, 8), access).is_ok()
            })
        };
        assert_eq!([may(1), may(2), may(3)], [[true, false, false], [true, true, false], [true, false, true]]);
    }

    #[test]
    fn memory_that_does_not_reach_so_far_is_not_registered() {
        let mut memory = HostMemory::default();
        let octets: Arc<dyn SharedMemory> = Arc::new(LocalMemory::new(vec![0; 10]));
        let mut register = |rkey, offset, size| {
            let key = MemoryKey { address: 0, rkey };
            let (memory_of, size) = (octets.clone(), Octets::new(size));
            let (domain, local_write, remote_write) = (OWN, true, true);
            let region = SharedRegion { domain, key, size, memory: memory_of, offset, local_write, remote_write };
            memory.register_shared(region)
        };
        assert_eq!(register(1, 0, 11), Err(AccessError));
        assert_eq!(register(1, 10, 1), Err(AccessError));
        assert_eq!(register(1, u64::MAX, 1), Err(AccessError));
        assert_eq!(register(1, 0, 10), Ok(()));
        assert_eq!(register(1, 0, 10), Err(AccessError), "the key is taken");
        assert!(memory.deregister(1).is_none());
    }

    #[test]
    fn memory_that_this_machine_does_not_have_is_missed_and_said() {
        let mut memory = HostMemory::default();
        memory.register_target(registration(1 << 62));
        assert_eq!(memory.shortage(), None);
        let target = Target::new([piece(KEY, 1 << 62)].into(), Access::RemoteWrite);
        memory.write(Domain::SCENARIO, &target, &[1]).unwrap();
        assert_eq!(memory.shortage(), Some(Octets::new(1 << 62)));
    }
}
