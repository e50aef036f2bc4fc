//! Fields in octets, for the three kinds of entry and the doorbell.

use super::EntryError;

/// Header and body of a slot.
pub(super) fn split<const HEADER: usize>(slot: &[u8]) -> Result<(&[u8; HEADER], &[u8]), EntryError> {
    slot.split_first_chunk().ok_or(EntryError::Short { need: HEADER, have: slot.len() })
}

pub(super) fn split_mut<const HEADER: usize>(slot: &mut [u8]) -> Result<(&mut [u8; HEADER], &mut [u8]), EntryError> {
    let have = slot.len();
    slot.split_first_chunk_mut().ok_or(EntryError::Short { need: HEADER, have })
}

/// The octets of a field; where it lies is a constant of the caller's, inside its header.
pub(super) fn get<const N: usize>(header: &[u8], at: usize) -> [u8; N] {
    let mut field = [0; N];
    field.copy_from_slice(&header[at..at + N]);
    field
}

pub(super) fn put<const N: usize>(header: &mut [u8], at: usize, field: [u8; N]) {
    header[at..at + N].copy_from_slice(&field);
}
