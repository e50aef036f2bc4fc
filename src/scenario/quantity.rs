//! Quantities as people write them: `4096B`, `31.52Gbps`, `100 ns`, `0.9`.
//!
//! A decimal is taken digit by digit. Binary floating point would move a threshold by an octet or an event by a
//! picosecond, and one picosecond on the PCIe link can move single events by tens of microseconds.

use crate::base::{Octets, Rate, Share, Span};

/// What a text was read as.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Quantity {
    Size,
    Rate,
    Span,
    /// A fraction without a unit.
    Share,
}

/// Why a text is not that quantity.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Problem {
    NotANumber,
    Negative,
    NoUnit,
    /// With the unit that was probably meant.
    UnknownUnit(Option<&'static str>),
    /// Finer than what the model counts in.
    TooFine,
    TooLarge,
    Zero,
}

/// The refusal of a quantity.
///
/// Its text says what is wrong; [`QuantityError::help`] says what would be right.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}", self.text())]
pub struct QuantityError {
    pub quantity: Quantity,
    pub problem: Problem,
}

type Units = &'static [(&'static str, u64)];

/// * Source: model.md §2.1: KB is 1,000 octets, KiB 1,024.
const SIZES: Units = &[
    ("B", 1),
    ("KB", 1_000),
    ("KiB", 1 << 10),
    ("MB", 1_000_000),
    ("MiB", 1 << 20),
    ("GB", 1_000_000_000),
    ("GiB", 1 << 30),
    ("kB", 1_000),
];

const RATES: Units = &[
    ("bps", 1),
    ("Kbps", 1_000),
    ("Mbps", 1_000_000),
    ("Gbps", 1_000_000_000),
    ("Tbps", 1_000_000_000_000),
    ("b/s", 1),
    ("Kb/s", 1_000),
    ("Mb/s", 1_000_000),
    ("Gb/s", 1_000_000_000),
    ("Tb/s", 1_000_000_000_000),
    ("kbps", 1_000),
    ("kb/s", 1_000),
];

const SPANS: Units = &[
    ("ps", 1),
    ("ns", 1_000),
    ("us", 1_000_000),
    ("ms", 1_000_000_000),
    ("s", 1_000_000_000_000),
    ("\u{b5}s", 1_000_000),
    ("\u{3bc}s", 1_000_000),
];

/// The largest share: no pool of the largest buffer, and no threshold of it, leaves 64 bits.
const SHARE_MAX: u64 = 1_000 * Share::UNIT;

/// `4096B`, `256 KB`, `1MiB`.
///
/// * Errors: no number, negative, no unit or one that is not a size, not a whole number of octets.
pub fn parse_size(text: &str) -> Result<Octets, QuantityError> {
    parse(text, Quantity::Size, SIZES).map(Octets::new)
}

/// `400Gbps`, `31.52 Gb/s`.
///
/// * Errors: as [`parse_size`], and zero: a line that sends nothing has no time per octet.
pub fn parse_rate(text: &str) -> Result<Rate, QuantityError> {
    let bps = parse(text, Quantity::Rate, RATES)?;
    Rate::from_bps(bps).ok_or(QuantityError { quantity: Quantity::Rate, problem: Problem::Zero })
}

/// `100ns`, `1.5 us`.
///
/// * Errors: as [`parse_size`]; finer than a picosecond; longer than 213 days.
pub fn parse_span(text: &str) -> Result<Span, QuantityError> {
    parse(text, Quantity::Span, SPANS).map(Span::from_ps)
}

/// `0.9`, a fraction without a unit.
///
/// * Errors: not a number, negative, more than twelve decimal places, above 1,000.
pub fn parse_share(text: &str) -> Result<Share, QuantityError> {
    let refuse = |problem| QuantityError { quantity: Quantity::Share, problem };
    let parts = whole_number(text, Share::UNIT).map_err(refuse)?;
    if parts > SHARE_MAX { Err(refuse(Problem::TooLarge)) } else { Ok(Share::from_parts(parts)) }
}

/// `0.001`, a number of seconds without a unit, as the seeds give the intervals of records.
pub(super) fn parse_seconds(text: &str) -> Result<Span, QuantityError> {
    whole_number(text, 1_000_000_000_000)
        .map(Span::from_ps)
        .map_err(|problem| QuantityError { quantity: Quantity::Span, problem })
}

/// A number without unit, in units of 1 / `unit`.
fn whole_number(text: &str, unit: u64) -> Result<u64, Problem> {
    let (decimal, rest) = Decimal::split(text.trim())?;
    if rest.is_empty() { decimal.times(unit) } else { Err(Problem::NotANumber) }
}

fn parse(text: &str, quantity: Quantity, units: Units) -> Result<u64, QuantityError> {
    let read = || {
        let (decimal, rest) = Decimal::split(text.trim())?;
        let name = rest.trim_start();
        if name.is_empty() {
            return Err(Problem::NoUnit);
        }
        match units.iter().find(|(unit, _)| *unit == name) {
            Some(&(_, unit)) => decimal.times(unit),
            None => {
                let meant = units.iter().find(|(unit, _)| unit.eq_ignore_ascii_case(name));
                Err(Problem::UnknownUnit(meant.map(|(unit, _)| *unit)))
            }
        }
    };
    read().map_err(|problem| QuantityError { quantity, problem })
}

/// `digits` × 10^`exponent`, exactly as written.
#[derive(Clone, Copy)]
struct Decimal {
    digits: u128,
    exponent: i32,
}

impl Decimal {
    /// More significant digits than this neither fit 64 bits nor survive the finest unit; times any unit, still 128 bits.
    const DIGITS_MAX: u128 = 100_000_000_000_000_000_000_000_000;

    /// The number at the start of `text`, and what follows it.
    fn split(text: &str) -> Result<(Self, &str), Problem> {
        let bytes = text.as_bytes();
        let negative = bytes.first() == Some(&b'-');
        let mut at = usize::from(negative || bytes.first() == Some(&b'+'));
        let mut number = Self { digits: 0, exponent: 0 };
        at = number.take_digits(bytes, at, false)?;
        if bytes.get(at) == Some(&b'.') {
            at = number.take_digits(bytes, at + 1, true)?;
        }
        if matches!(bytes.get(at), Some(b'e' | b'E')) {
            at = number.take_exponent(bytes, at + 1)?;
        }
        if negative {
            return Err(Problem::Negative);
        }
        // Only ASCII was passed, so this is the edge of a character.
        Ok((number, &text[at..]))
    }

    /// At least one digit from `at` on; `_` may stand between two digits. Returns where they end.
    fn take_digits(&mut self, bytes: &[u8], mut at: usize, fraction: bool) -> Result<usize, Problem> {
        let start = at;
        // Zeros count only once another digit follows, so that 1.000000000000000000000000000000 is exact.
        let mut zeros = 0_u32;
        while let Some(&byte) = bytes.get(at) {
            let between = |bytes: &[u8]| at > start && bytes.get(at + 1).is_some_and(u8::is_ascii_digit);
            match byte {
                b'0' => zeros += 1,
                b'1'..=b'9' => {
                    self.append_zeros(zeros, fraction)?;
                    zeros = 0;
                    self.append(u128::from(byte - b'0'), fraction)?;
                }
                b'_' if between(bytes) => {}
                _ => break,
            }
            at += 1;
        }
        if at == start {
            return Err(Problem::NotANumber);
        }
        if !fraction {
            self.append_zeros(zeros, false)?;
        }
        Ok(at)
    }

    fn append_zeros(&mut self, zeros: u32, fraction: bool) -> Result<(), Problem> {
        if self.digits == 0 && !fraction {
            return Ok(());
        }
        (0..zeros).try_for_each(|_| self.append(0, fraction))
    }

    fn append(&mut self, digit: u128, fraction: bool) -> Result<(), Problem> {
        self.digits = self.digits * 10 + digit;
        self.exponent -= i32::from(fraction);
        match (self.digits > Self::DIGITS_MAX || self.exponent < -64, fraction) {
            (false, _) => Ok(()),
            (true, true) => Err(Problem::TooFine),
            (true, false) => Err(Problem::TooLarge),
        }
    }

    fn take_exponent(&mut self, bytes: &[u8], mut at: usize) -> Result<usize, Problem> {
        let down = bytes.get(at) == Some(&b'-');
        at += usize::from(matches!(bytes.get(at), Some(b'-' | b'+')));
        let start = at;
        let mut shift = 0_i32;
        while let Some(digit) = bytes.get(at).filter(|byte| byte.is_ascii_digit()) {
            shift = (shift * 10 + i32::from(digit - b'0')).min(1_000);
            at += 1;
        }
        if at == start {
            return Err(Problem::NotANumber);
        }
        self.exponent += if down { -shift } else { shift };
        Ok(at)
    }

    /// This many `unit`s, if that is a whole number of 64 bits.
    fn times(self, unit: u64) -> Result<u64, Problem> {
        if self.digits == 0 {
            return Ok(0);
        }
        let product = self.digits.checked_mul(u128::from(unit)).ok_or(Problem::TooLarge)?;
        let power = 10_u128.checked_pow(self.exponent.unsigned_abs());
        let whole = match (self.exponent < 0, power) {
            (true, Some(power)) if product.is_multiple_of(power) => product / power,
            (true, _) => return Err(Problem::TooFine),
            (false, Some(power)) => product.checked_mul(power).ok_or(Problem::TooLarge)?,
            (false, None) => return Err(Problem::TooLarge),
        };
        u64::try_from(whole).map_err(|_| Problem::TooLarge)
    }
}

impl Quantity {
    pub(super) const ALL: [Self; 4] = [Self::Size, Self::Rate, Self::Span, Self::Share];

    /// With its article, for messages.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Size => "a size",
            Self::Rate => "a rate",
            Self::Span => "a time",
            Self::Share => "a fraction",
        }
    }

    /// What a right one looks like.
    pub const fn help(self) -> &'static str {
        match self {
            Self::Size => {
                "write a whole number of octets with a unit (B, KB = 1,000 B, KiB = 1,024 B, MB, MiB, GB, GiB), \
                 for example \"4096B\" or \"1MiB\""
            }
            Self::Rate => {
                "write a rate above zero with a unit (bps, Kbps, Mbps, Gbps, Tbps), for example \"400Gbps\" or \
                 \"31.52Gbps\""
            }
            Self::Span => {
                "write a whole number of picoseconds with a unit (ps, ns, us, ms, s; up to 213 days), for example \
                 \"100ns\" or \"1.5us\""
            }
            Self::Share => {
                "write a fraction from 0 to 1,000 with at most twelve decimal places and no unit, for example 0.9"
            }
        }
    }

    const fn finest(self) -> &'static str {
        match self {
            Self::Size => "an octet",
            Self::Rate => "a bit per second",
            Self::Span => "a picosecond",
            Self::Share => "twelve decimal places",
        }
    }
}

impl QuantityError {
    /// What would be right.
    pub const fn help(&self) -> &'static str {
        self.quantity.help()
    }

    fn text(&self) -> String {
        let name = self.quantity.name();
        match self.problem {
            Problem::NotANumber => format!("{name} starts with a number"),
            Problem::Negative => format!("{name} cannot be negative"),
            Problem::NoUnit => format!("{name} needs a unit"),
            Problem::UnknownUnit(None) => format!("this is not a unit of {name}"),
            Problem::UnknownUnit(Some(meant)) => format!("this is not a unit of {name}; did you mean `{meant}`?"),
            Problem::TooFine => format!("{name} is not finer than {}", self.quantity.finest()),
            Problem::TooLarge => format!("{name} this large cannot be counted"),
            Problem::Zero => format!("{name} cannot be zero"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problem<T: std::fmt::Debug>(read: Result<T, QuantityError>) -> Problem {
        read.unwrap_err().problem
    }

    #[test]
    fn decimals_are_taken_by_their_digits() {
        assert_eq!(parse_rate("31.52Gbps").unwrap().bps(), 31_520_000_000);
        assert_eq!(parse_share("0.9").unwrap().parts(), 900_000_000_000);
        assert_eq!(parse_share("0.1").unwrap().parts(), 100_000_000_000);
        assert_eq!(parse_share("1e-12").unwrap().parts(), 1);
        assert_eq!(parse_share("0.000000000001").unwrap().parts(), 1);
        assert_eq!(parse_span("83.08ns").unwrap().ps(), 83_080);
        assert_eq!(parse_span("0.100000000000000000000000000000000000000000ns").unwrap().ps(), 100);
        assert_eq!(parse_size("0.0009765625KiB").unwrap().get(), 1);
        assert_eq!(parse_seconds("0.001").unwrap().ps(), 1_000_000_000);
        // 0.07 is no binary fraction: through binary floating point this would be 70.00000000000001.
        assert_eq!(parse_size("0.07KB").unwrap().get(), 70);
    }

    #[test]
    fn every_unit_has_its_size() {
        for (text, octets) in [
            ("7B", 7),
            ("256KB", 256_000),
            ("1KiB", 1_024),
            ("4MB", 4_000_000),
            ("1MiB", 1_048_576),
            ("2GB", 2_000_000_000),
            ("2 GiB", 2_147_483_648),
            ("1_000 B", 1_000),
            (" 0B ", 0),
        ] {
            assert_eq!(parse_size(text).unwrap().get(), octets, "{text}");
        }
        for (text, bps) in [
            ("1bps", 1),
            ("2Kbps", 2_000),
            ("3Mbps", 3_000_000),
            ("400Gbps", 400_000_000_000),
            ("400 Gb/s", 400_000_000_000),
            ("1.6Tbps", 1_600_000_000_000),
        ] {
            assert_eq!(parse_rate(text).unwrap().bps(), bps, "{text}");
        }
        for (text, ps) in [
            ("1ps", 1),
            ("100ns", 100_000),
            ("1.5us", 1_500_000),
            ("1.5\u{b5}s", 1_500_000),
            ("64ms", 64_000_000_000),
            ("10s", 10_000_000_000_000),
            ("1e3ns", 1_000_000),
            ("0s", 0),
        ] {
            assert_eq!(parse_span(text).unwrap().ps(), ps, "{text}");
        }
    }

    #[test]
    fn what_cannot_be_counted_is_refused_with_its_reason() {
        assert_eq!(problem(parse_size("4096")), Problem::NoUnit);
        assert_eq!(problem(parse_size("-1B")), Problem::Negative);
        assert_eq!(problem(parse_size("0.5B")), Problem::TooFine);
        assert_eq!(problem(parse_size("4096b")), Problem::UnknownUnit(Some("B")));
        assert_eq!(problem(parse_size("4096 octets")), Problem::UnknownUnit(None));
        assert_eq!(problem(parse_size("99999999999GB")), Problem::TooLarge);
        assert_eq!(problem(parse_rate("0Gbps")), Problem::Zero);
        assert_eq!(problem(parse_rate("400gbps")), Problem::UnknownUnit(Some("Gbps")));
        assert_eq!(problem(parse_span("0.1ps")), Problem::TooFine);
        assert_eq!(problem(parse_span("0.0001ns")), Problem::TooFine);
        assert_eq!(problem(parse_span("214000h")), Problem::UnknownUnit(None));
        assert_eq!(problem(parse_span("18446745s")), Problem::TooLarge);
        for text in ["", "ns", "x1ns", "1.ns", ".5ns", "_1ns", "1__0ns", "--1ns", "1e", "nan", "inf", "\u{661}ns"] {
            assert!(parse_span(text).is_err(), "{text}");
        }
        assert_eq!(problem(parse_share("-0.1")), Problem::Negative);
        assert_eq!(problem(parse_share("0.1B")), Problem::NotANumber);
        assert_eq!(problem(parse_share("0.0000000000001")), Problem::TooFine);
        assert_eq!(problem(parse_share("1000.1")), Problem::TooLarge);
        assert_eq!(parse_share("1e99999999999999999999").unwrap_err().problem, Problem::TooLarge);
    }
}
