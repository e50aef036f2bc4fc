//! Scatter lists: which pieces of the application's memory an entry's octets come from or go to.

use arrayvec::ArrayVec;

use super::EntryError;
use super::geometry::MAX_SLOT;
use super::octets::{get, put};

/// A piece of a registered memory region, which an entry's payload is gathered from or scattered to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Sge {
    /// Virtual address, as the region was registered.
    pub address: u64,
    pub lkey: u32,
    /// Octets; 0 is none.
    pub length: u32,
}

/// As many elements as the largest slot holds behind the shorter of the two headers.
pub type ScatterList = ArrayVec<Sge, MAX_SGES>;

const MAX_SGES: usize = super::max_receive_sges(MAX_SLOT);

impl Sge {
    /// What it takes in an entry.
    pub const OCTETS: usize = 16;
}

/// The largest message, in octets (model.md W10).
pub const MAX_MESSAGE: u32 = 1 << 31;

/// What a scatter list adds up to.
///
/// * Errors: `MessageLength` above 2³¹.
pub(super) fn sum(list: &[Sge]) -> Result<u32, EntryError> {
    let sum = list.iter().map(|sge| u64::from(sge.length)).sum();
    u32::try_from(sum).ok().filter(|&sum| sum <= MAX_MESSAGE).ok_or(EntryError::MessageLength(sum))
}

/// Elements that fit into `octets`.
pub(super) const fn room(octets: usize) -> usize {
    octets / Sge::OCTETS
}

/// Writes a list into the front of `body`; gives its octets.
pub(super) fn encode(list: &[Sge], body: &mut [u8]) -> Result<usize, EntryError> {
    require_room(list.len(), body)?;
    for (sge, element) in list.iter().zip(body.as_chunks_mut::<{ Sge::OCTETS }>().0) {
        put(element, 0, sge.address.to_le_bytes());
        put(element, 8, sge.lkey.to_le_bytes());
        put(element, 12, sge.length.to_le_bytes());
    }
    Ok(list.len() * Sge::OCTETS)
}

/// Reads a list of `count` from the front of `body`.
pub(super) fn decode(count: u8, body: &[u8]) -> Result<ScatterList, EntryError> {
    require_room(count.into(), body)?;
    let elements = body.as_chunks::<{ Sge::OCTETS }>().0.iter().take(count.into());
    Ok(elements
        .map(|element| Sge {
            address: u64::from_le_bytes(get(element, 0)),
            lkey: u32::from_le_bytes(get(element, 8)),
            length: u32::from_le_bytes(get(element, 12)),
        })
        .collect())
}

fn require_room(have: usize, body: &[u8]) -> Result<(), EntryError> {
    let max = room(body.len()).min(MAX_SGES);
    if have > max { Err(EntryError::ScatterCount { have, max }) } else { Ok(()) }
}
