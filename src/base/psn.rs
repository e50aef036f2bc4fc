//! 24-bit packet sequence numbers.

use std::fmt;

use serde::Serialize;

/// A packet sequence number.
///
/// Deliberately not `Ord`: order exists only inside half of the circle, see [`Psn::since`].
///
/// * Range: 0..2²⁴.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize)]
#[serde(transparent)]
pub struct Psn(u32);

impl Psn {
    /// At most this many PSNs may be outstanding, or comparison becomes ambiguous (model.md T17).
    pub const MAX_OUTSTANDING: u32 = (1 << 23) - 1;
    const MASK: u32 = 0xff_ffff;

    /// Keeps the low 24 bits.
    pub const fn new(psn: u32) -> Self {
        Self(psn & Self::MASK)
    }

    pub const fn get(self) -> u32 {
        self.0
    }

    /// The PSN `count` places further on, around the wrap.
    pub const fn plus(self, count: u32) -> Self {
        Self::new(self.0.wrapping_add(count))
    }

    /// The PSN `count` places back, around the wrap.
    pub const fn minus(self, count: u32) -> Self {
        Self::new(self.0.wrapping_sub(count))
    }

    /// Signed distance `self − earlier`, in −2²³ .. 2²³: 0 as expected, below 0 a duplicate, above 0 a gap.
    pub const fn since(self, earlier: Self) -> i32 {
        ((self.0.wrapping_sub(earlier.0) << 8) as i32) >> 8
    }
}

impl fmt::Display for Psn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The table of wire.md §1.5.
    #[test]
    fn distances_hold_across_the_wrap() {
        for (arriving, expected, distance) in [
            (0x00_0005, 0x00_0005, 0),
            (0x00_0006, 0x00_0005, 1),
            (0x00_0000, 0xff_ffff, 1),
            (0xff_ffff, 0x00_0000, -1),
            (0x7f_ffff, 0x00_0000, 8_388_607),
            (0x80_0000, 0x00_0000, -8_388_608),
            (0x7f_ffff, 0xff_ffff, -8_388_608),
        ] {
            assert_eq!(Psn::new(arriving).since(Psn::new(expected)), distance, "{arriving:#x} - {expected:#x}");
        }
        assert_eq!(Psn::new(0xff_ffff).plus(2), Psn::new(1));
        assert_eq!(Psn::new(0).minus(1), Psn::new(0xff_ffff));
    }
}
