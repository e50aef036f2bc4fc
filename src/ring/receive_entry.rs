//! The receive entry: where the next SEND may put its octets.
//!
//! | octet | field | |
//! | --- | --- | --- |
//! | 0 | version | 1 |
//! | 1 | scatter count | elements behind the header |
//! | 2..8 | reserved | 0 |
//! | 8..16 | `wr_id` | the application's own; comes back in the completion |
//! | 16.. | scatter list | of 16 octets each: address u64, lkey u32, length u32; at most 2³¹ octets in all |
//!
//! Little-endian. A slot of 64 octets holds three elements, one of 512 thirty-one. What is behind the list belongs to
//! earlier entries. An entry that decodes encodes to the same octets again.

use super::octets::{self, get, put};
use super::scatter::{self, ScatterList};
use super::{EntryError, Field};

const VERSION: u8 = 1;
const HEADER: usize = 16;

/// A receive work request. Without elements it takes a message of no octets, or a WRITE with immediate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReceiveEntry {
    pub wr_id: u64,
    /// Filled in this order.
    pub scatter: ScatterList,
}

/// Scatter elements of a receive entry in a slot of so many octets.
pub const fn max_receive_sges(slot_octets: usize) -> usize {
    scatter::room(slot_octets.saturating_sub(HEADER))
}

impl ReceiveEntry {
    /// Octets that a message may have to fit, 0..=2³¹.
    ///
    /// * Errors: `MessageLength` above that.
    pub fn length(&self) -> Result<u32, EntryError> {
        scatter::sum(&self.scatter)
    }

    /// Writes the entry into the front of a slot-sized buffer and gives its octets.
    ///
    /// * Errors: `ScatterCount` if the list does not fit, `MessageLength`, `Short` if not even the header fits.
    pub fn encode<'a>(&self, slot: &'a mut [u8]) -> Result<&'a [u8], EntryError> {
        let (header, body) = octets::split_mut::<HEADER>(slot)?;
        let octets = scatter::encode(&self.scatter, body)?;
        self.length()?;
        put(header, 0, [VERSION, self.scatter.len() as u8, 0, 0, 0, 0, 0, 0]);
        put(header, 8, self.wr_id.to_le_bytes());
        Ok(&slot[..HEADER + octets])
    }

    /// Reads an entry from a fetched slot, believing nothing; keys and addresses are for the NIC to check.
    ///
    /// * Errors: an [`EntryError`] that names the first wrong field.
    pub fn decode(slot: &[u8]) -> Result<Self, EntryError> {
        let (header, body) = octets::split::<HEADER>(slot)?;
        let &[version, scatter_count, ..] = header;
        if version != VERSION {
            return Err(EntryError::Version(version));
        }
        if get(header, 2) != [0; 6] {
            return Err(EntryError::NotZero(Field::Reserved));
        }
        let scatter = scatter::decode(scatter_count, body)?;
        scatter::sum(&scatter)?;
        Ok(Self { wr_id: Self::wr_id(slot), scatter })
    }

    /// Where the work request's number would be, also in an entry that does not decode; 0 in less than a header.
    pub fn wr_id(slot: &[u8]) -> u64 {
        octets::split::<HEADER>(slot).map_or(0, |(header, _)| u64::from_le_bytes(get(header, 8)))
    }
}
