//! Instants and spans in picoseconds, sizes in octets, rates in bit/s, and the one rounding rule that joins them.

use std::fmt;
use std::iter::Sum;
use std::ops::{Add, AddAssign, Sub, SubAssign};

use serde::Serialize;

/// A point in emulated time.
///
/// * Units: picoseconds since the start of the run. Range: up to 213 days.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(transparent)]
pub struct Instant(u64);

/// A length of emulated time.
///
/// * Units: picoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(transparent)]
pub struct Span(u64);

/// A number of octets: frame sizes, pool sizes, payload lengths.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(transparent)]
pub struct Octets(u64);

/// A line rate.
///
/// * Units: bit/s. Never 0: a line that sends nothing has no time per octet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(transparent)]
pub struct Rate(u64);

/// A fraction of a buffer, kept as the decimal digits the user wrote.
///
/// * Units: millionths of a millionth (10⁻¹²). Binary floating point would move a threshold by an octet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(transparent)]
pub struct Share(u64);

impl Instant {
    pub const ZERO: Self = Self(0);
    pub const MAX: Self = Self(u64::MAX);

    pub const fn from_ps(ps: u64) -> Self {
        Self(ps)
    }

    pub const fn ps(self) -> u64 {
        self.0
    }

    /// Nanoseconds, rounded down: the stamp of a capture (timing rule 35).
    pub const fn ns_floor(self) -> u64 {
        self.0 / 1_000
    }

    /// The span from `earlier` to `self`; zero if `earlier` is later.
    pub const fn since(self, earlier: Self) -> Span {
        Span(self.0.saturating_sub(earlier.0))
    }
}

impl Span {
    pub const ZERO: Self = Self(0);

    pub const fn from_ps(ps: u64) -> Self {
        Self(ps)
    }

    pub const fn from_ns(ns: u64) -> Self {
        Self(ns * 1_000)
    }

    pub const fn from_us(us: u64) -> Self {
        Self(us * 1_000_000)
    }

    pub const fn from_ms(ms: u64) -> Self {
        Self(ms * 1_000_000_000)
    }

    pub const fn from_secs(s: u64) -> Self {
        Self(s * 1_000_000_000_000)
    }

    pub const fn ps(self) -> u64 {
        self.0
    }

    /// Half of it, rounded half up (timing rule 29).
    pub const fn half(self) -> Self {
        Self(self.0.div_ceil(2))
    }
}

impl Octets {
    pub const ZERO: Self = Self(0);

    pub const fn new(octets: u64) -> Self {
        Self(octets)
    }

    pub const fn get(self) -> u64 {
        self.0
    }

    pub const fn is_zero(self) -> bool {
        self.0 == 0
    }

    pub const fn saturating_sub(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }
}

impl Rate {
    /// `None` if `bps` is 0.
    pub const fn from_bps(bps: u64) -> Option<Self> {
        if bps == 0 { None } else { Some(Self(bps)) }
    }

    /// * Panics: if `gbps` is 0 (caller's bug).
    pub const fn from_gbps(gbps: u64) -> Self {
        assert!(gbps > 0, "a rate of zero has no time per octet");
        Self(gbps * 1_000_000_000)
    }

    pub const fn bps(self) -> u64 {
        self.0
    }

    /// The rate of `lanes` lanes of this rate side by side.
    ///
    /// * Panics: if `lanes` is 0 (refused when a scenario is read). Saturates at 2⁶⁴ − 1 bit/s.
    pub const fn times(self, lanes: u64) -> Self {
        assert!(lanes > 0, "a link has at least one lane");
        Self(self.0.saturating_mul(lanes))
    }

    /// Time on a line of this rate for `octets`, rounded half up to whole picoseconds: the only rounding of a
    /// transmission there is.
    ///
    /// * Source: timing rule 28.
    pub const fn time_for(self, octets: Octets) -> Span {
        let bit_ps = octets.0 as u128 * 8 * 1_000_000_000_000;
        let ps = (bit_ps + self.0 as u128 / 2) / self.0 as u128;
        Span(if ps > u64::MAX as u128 { u64::MAX } else { ps as u64 })
    }
}

impl Share {
    pub const ZERO: Self = Self(0);
    /// Parts that make a whole.
    pub const UNIT: u64 = 1_000_000_000_000;

    /// * Units: 10⁻¹²; `Share::UNIT` is the whole.
    pub const fn from_parts(parts: u64) -> Self {
        Self(parts)
    }

    pub const fn from_percent(percent: u64) -> Self {
        Self(percent * (Self::UNIT / 100))
    }

    pub const fn parts(self) -> u64 {
        self.0
    }

    pub const fn is_zero(self) -> bool {
        self.0 == 0
    }

    /// This share of `whole`, rounded down (pools, Xon: timing rule 30).
    pub const fn floor_of(self, whole: Octets) -> Octets {
        Octets((self.0 as u128 * whole.0 as u128 / Self::UNIT as u128) as u64)
    }

    /// This share of `whole`, rounded up (Xoff: timing rule 30).
    pub const fn ceil_of(self, whole: Octets) -> Octets {
        Octets((self.0 as u128 * whole.0 as u128).div_ceil(Self::UNIT as u128) as u64)
    }
}

impl Add<Span> for Instant {
    type Output = Self;
    /// Saturates at the end of time, which no run reaches.
    fn add(self, span: Span) -> Self {
        Self(self.0.saturating_add(span.0))
    }
}

impl Add for Span {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }
}

impl AddAssign for Span {
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}

impl Add for Octets {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        Self(self.0 + other.0)
    }
}

impl AddAssign for Octets {
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}

impl Sub for Octets {
    type Output = Self;
    /// * Panics: if more is taken than is there; an account never goes negative.
    fn sub(self, other: Self) -> Self {
        Self(self.0.checked_sub(other.0).expect("an account of octets never goes negative"))
    }
}

impl SubAssign for Octets {
    fn sub_assign(&mut self, other: Self) {
        *self = *self - other;
    }
}

impl Sum for Octets {
    fn sum<I: Iterator<Item = Self>>(iter: I) -> Self {
        iter.fold(Self::ZERO, Add::add)
    }
}

impl fmt::Display for Instant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Span(self.0).fmt(f)
    }
}

impl fmt::Display for Span {
    /// The largest unit that keeps the number above one, all digits kept: `83.08 ns`, `21.621844 us`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const UNITS: [(u64, &str); 4] =
            [(1_000_000_000_000, "s"), (1_000_000_000, "ms"), (1_000_000, "us"), (1_000, "ns")];
        for (unit, name) in UNITS {
            if self.0 >= unit {
                return f.pad(&format!("{} {name}", decimal(self.0, unit)));
            }
        }
        f.pad(&format!("{} ps", self.0))
    }
}

impl fmt::Display for Octets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&format!("{} B", self.0))
    }
}

impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&format!("{} Gb/s", decimal(self.0, 1_000_000_000)))
    }
}

impl fmt::Display for Share {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&decimal(self.0, Self::UNIT))
    }
}

/// `value / unit` as an exact decimal without trailing zeros; `unit` is a power of ten.
fn decimal(value: u64, unit: u64) -> String {
    let (whole, rest) = (value / unit, value % unit);
    if rest == 0 {
        return whole.to_string();
    }
    let digits = unit.ilog10() as usize;
    format!("{whole}.{}", format!("{rest:0digits$}").trim_end_matches('0'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_worked_examples_of_the_specification() {
        let line = Rate::from_gbps(400);
        for (octets, ps) in [(4154, 83_080), (126, 2_520), (122, 2_440), (84, 1_680), (58, 1_160)] {
            assert_eq!(line.time_for(Octets::new(octets)).ps(), ps, "{octets} B at 400 Gb/s");
        }
        let pcie = Rate::from_bps(31_520_000_000).unwrap().times(16);
        assert_eq!(pcie.bps(), 504_320_000_000);
        // 98 B x 8 / 504.32 Gb/s = 1554.57 ps; 4368 B = 69289.34 ps.
        assert_eq!(pcie.time_for(Octets::new(98)).ps(), 1_555);
        assert_eq!(pcie.time_for(Octets::new(4_368)).ps(), 69_289);
        // 65535 quanta of 64 octets, plus 100 ns of Delay; half of it is the refresh.
        let pause = line.time_for(Octets::new(64 * 65_535)) + Span::from_ns(100);
        assert_eq!(pause.ps(), 83_984_800);
        assert_eq!(pause.half().ps(), 41_992_400);
    }

    #[test]
    fn a_transmission_is_rounded_half_up() {
        // 1 octet at 16 Tb/s lasts exactly 0.5 ps.
        let rate = Rate::from_gbps(16_000);
        assert_eq!(rate.time_for(Octets::new(1)).ps(), 1);
        assert_eq!(rate.time_for(Octets::new(3)).ps(), 2);
        assert_eq!(rate.time_for(Octets::ZERO).ps(), 0);
    }

    #[test]
    fn shares_of_a_buffer_are_exact_decimals() {
        let pool = Share::from_percent(90).floor_of(Octets::new(4_000_000));
        assert_eq!(pool.get(), 3_600_000);
        assert_eq!(Share::from_percent(80).ceil_of(pool).get(), 2_880_000);
        assert_eq!(Share::from_percent(40).floor_of(pool).get(), 1_440_000);
        let third = Share::from_parts(333_333_333_333);
        assert_eq!(third.floor_of(Octets::new(10)).get(), 3);
        assert_eq!(third.ceil_of(Octets::new(10)).get(), 4);
    }

    #[test]
    fn quantities_print_all_their_digits() {
        assert_eq!(Span::from_ps(83_080).to_string(), "83.08 ns");
        assert_eq!(Span::from_ps(21_621_844).to_string(), "21.621844 us");
        assert_eq!(Span::from_ps(999).to_string(), "999 ps");
        assert_eq!(Rate::from_bps(31_520_000_000).unwrap().to_string(), "31.52 Gb/s");
        assert_eq!(Share::from_percent(90).to_string(), "0.9");
    }

    #[test]
    #[should_panic(expected = "never goes negative")]
    fn an_account_that_would_go_negative_is_a_bug() {
        let _ = Octets::new(1) - Octets::new(2);
    }
}
