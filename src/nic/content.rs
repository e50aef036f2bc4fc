//! What a region of host memory holds.

use std::collections::TryReserveError;
use std::ops::Range;

use bytes::Bytes;

use super::host_memory::SharedRegion;
use crate::base::{MessageId, Octets};

/// The octets of a region. The memory of this machine is taken only for what was received, as it comes.
#[derive(Clone, Debug)]
pub(super) enum Content {
    /// The payload pattern of this message, to be sent: its octets are known without being kept.
    Pattern(MessageId),
    /// Octets from the first on; behind them, up to the region's size, are zeros.
    Received(Vec<u8>),
    /// The application's.
    Shared(SharedRegion),
}

/// What a region held.
#[derive(Clone, Debug)]
pub struct Held {
    pub(super) size: Octets,
    pub(super) content: Content,
}

impl Content {
    /// * Range: within the region.
    pub(super) fn read(&self, range: Range<usize>) -> Bytes {
        match self {
            Self::Pattern(message) => pattern(*message, range),
            Self::Received(octets) => {
                let held = &octets[range.start.min(octets.len())..range.end.min(octets.len())];
                let mut read = held.to_vec();
                read.resize(range.len(), 0);
                read.into()
            }
            Self::Shared(region) => {
                let mut octets = vec![0; range.len()];
                region.memory.read(region.offset + range.start as u64, &mut octets);
                octets.into()
            }
        }
    }

    /// * Range: within the region, which has `size`.
    /// * Errors: this machine has not enough memory; nothing is written.
    pub(super) fn write(&mut self, size: Octets, range: Range<usize>, payload: &[u8]) -> Result<(), TryReserveError> {
        let size = size.get() as usize;
        if let Self::Pattern(message) = self {
            let mut octets = Vec::new();
            octets.try_reserve_exact(size)?;
            octets.extend_from_slice(&pattern(*message, 0..size));
            *self = Self::Received(octets);
        }
        match self {
            Self::Shared(region) => region.memory.write(region.offset + range.start as u64, payload),
            Self::Received(octets) => {
                if octets.len() < range.end {
                    // All at once, which takes no memory before it is touched.
                    octets.try_reserve_exact(size - octets.len())?;
                    octets.resize(range.end, 0);
                }
                octets[range].copy_from_slice(payload);
            }
            Self::Pattern(_) => unreachable!("a pattern was just written out"),
        }
        Ok(())
    }
}

impl Held {
    pub fn size(&self) -> Octets {
        self.size
    }

    /// The offset of the first octet in which both differ, or which only one of them has.
    pub fn first_difference(&self, other: &Self) -> Option<usize> {
        let sizes = [self, other].map(|held| held.size.get() as usize);
        let [least, most] = [sizes[0].min(sizes[1]), sizes[0].max(sizes[1])];
        for start in (0..least).step_by(PATTERN_SLICE) {
            let range = start..least.min(start + PATTERN_SLICE);
            let [own, theirs] = [self, other].map(|held| held.content.read(range.clone()));
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
        let last = (1 << 31) - 1;
        // (3 - 7 + 5) mod 256.
        assert_eq!(Content::Pattern(MessageId(5)).read(last..last + 1)[..], [1]);
    }

    fn source(size: usize) -> Held {
        Held { size: Octets::new(size as u64), content: Content::Pattern(MessageId(5)) }
    }

    #[test]
    fn what_both_ends_hold_is_compared_to_the_last_octet() {
        let size = 3 * PATTERN_SLICE + 5;
        let difference = |changed: Option<usize>, received: usize| {
            let mut octets = source(size).content.read(0..received).to_vec();
            changed.into_iter().for_each(|at| octets[at] ^= 1);
            let mut target = Content::Received(Vec::new());
            target.write(Octets::new(size as u64), 0..received, &octets).unwrap();
            source(size).first_difference(&Held { size: Octets::new(size as u64), content: target })
        };
        assert_eq!(difference(None, size), None);
        for changed in [0, 1, PATTERN_SLICE - 1, PATTERN_SLICE, size - 1] {
            assert_eq!(difference(Some(changed), size), Some(changed));
        }
        // What never came is zeros; octet 252 of message 5 is 3 + 7 x 252 + 5 = 1,772, no multiple of 256.
        assert_eq!(difference(None, 252), Some(252));
        assert_eq!(source(10).first_difference(&source(9)), Some(9));
    }
}
