//! AETH: what a responder answers.

use std::fmt;

use crate::base::Span;

/// The acknowledge extended transport header.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Aeth {
    pub syndrome: Syndrome,
    /// Messages the responder has completed on this queue pair.
    ///
    /// * Range: 24 bits, wraps.
    pub msn: u32,
}

/// The first octet of an AETH.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Syndrome {
    Ack {
        /// A credit code, 0..=30, or [`Syndrome::NO_CREDITS`].
        credits: u8,
    },
    /// Receiver not ready.
    RnrNak {
        /// * Range: 0..=31; [`rnr_timer`] says how long.
        timer: u8,
    },
    Nak(NakCode),
    /// The reserved type or the reserved bit, as received; to be ignored.
    Reserved(u8),
}

/// Why a responder refuses a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum NakCode {
    PsnSequenceError,
    InvalidRequest,
    RemoteAccessError,
    RemoteOperationalError,
    InvalidRdRequest,
    /// * Range: 5..=31.
    Unknown(u8),
}

impl Aeth {
    pub const LEN: usize = 4;

    pub fn parse([syndrome, msn @ ..]: &[u8; Self::LEN]) -> Self {
        let [a, b, c] = *msn;
        Self { syndrome: Syndrome::from_u8(*syndrome), msn: u32::from_be_bytes([0, a, b, c]) }
    }

    /// Keeps the low 24 bits of the MSN.
    pub fn emit(&self) -> [u8; Self::LEN] {
        let [_, a, b, c] = self.msn.to_be_bytes();
        [self.syndrome.to_u8(), a, b, c]
    }
}

impl Syndrome {
    /// The credit code for "I do not count": what soft-RoCE sends, and what we send.
    pub const NO_CREDITS: u8 = 31;
    const VALUE: u8 = 0x1f;

    pub const fn from_u8(octet: u8) -> Self {
        let value = octet & Self::VALUE;
        match octet >> 5 {
            0b000 => Self::Ack { credits: value },
            0b001 => Self::RnrNak { timer: value },
            0b011 => Self::Nak(NakCode::from_u8(value)),
            _ => Self::Reserved(octet),
        }
    }

    /// Keeps the low five bits of a value.
    pub const fn to_u8(self) -> u8 {
        match self {
            Self::Ack { credits } => credits & Self::VALUE,
            Self::RnrNak { timer } => 0x20 | timer & Self::VALUE,
            Self::Nak(code) => 0x60 | code.to_u8() & Self::VALUE,
            Self::Reserved(octet) => octet,
        }
    }
}

impl NakCode {
    pub const fn from_u8(code: u8) -> Self {
        match code {
            0 => Self::PsnSequenceError,
            1 => Self::InvalidRequest,
            2 => Self::RemoteAccessError,
            3 => Self::RemoteOperationalError,
            4 => Self::InvalidRdRequest,
            other => Self::Unknown(other),
        }
    }

    pub const fn to_u8(self) -> u8 {
        match self {
            Self::PsnSequenceError => 0,
            Self::InvalidRequest => 1,
            Self::RemoteAccessError => 2,
            Self::RemoteOperationalError => 3,
            Self::InvalidRdRequest => 4,
            Self::Unknown(code) => code,
        }
    }
}

/// How long a requester waits after an RNR NAK.
///
/// * Range: the low five bits of `code` count; 10 us ..= 655.36 ms, and code 0 is the longest.
/// * Source: InfiniBand specification, RNR NAK timer field; wire.md §1.4.
pub const fn rnr_timer(code: u8) -> Span {
    const TENS_OF_US: [u64; 32] = [
        65_536, 1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512, 768, 1_024, 1_536, 2_048, 3_072,
        4_096, 6_144, 8_192, 12_288, 16_384, 24_576, 32_768, 49_152,
    ];
    Span::from_us(10 * TENS_OF_US[(code & Syndrome::VALUE) as usize])
}

impl fmt::Display for NakCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::PsnSequenceError => f.pad("sequence error"),
            Self::InvalidRequest => f.pad("invalid request"),
            Self::RemoteAccessError => f.pad("remote access error"),
            Self::RemoteOperationalError => f.pad("remote operational error"),
            Self::InvalidRdRequest => f.pad("invalid RD request"),
            Self::Unknown(code) => f.pad(&format!("code {code}")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_syndrome_survives_the_round_trip() {
        for octet in 0..=u8::MAX {
            assert_eq!(Syndrome::from_u8(octet).to_u8(), octet, "{octet:#04x}");
        }
    }

    #[test]
    fn syndromes_have_the_octets_of_the_specification() {
        for (octet, syndrome) in [
            (0x1f, Syndrome::Ack { credits: Syndrome::NO_CREDITS }),
            (0x2c, Syndrome::RnrNak { timer: 12 }),
            (0x40, Syndrome::Reserved(0x40)),
            (0x60, Syndrome::Nak(NakCode::PsnSequenceError)),
            (0x61, Syndrome::Nak(NakCode::InvalidRequest)),
            (0x62, Syndrome::Nak(NakCode::RemoteAccessError)),
            (0x63, Syndrome::Nak(NakCode::RemoteOperationalError)),
            (0x64, Syndrome::Nak(NakCode::InvalidRdRequest)),
            (0x9f, Syndrome::Reserved(0x9f)),
        ] {
            assert_eq!(Syndrome::from_u8(octet), syndrome, "{octet:#04x}");
        }
    }

    #[test]
    fn an_rnr_timer_of_zero_is_the_longest() {
        assert_eq!(rnr_timer(0), Span::from_us(655_360));
        assert_eq!(rnr_timer(1), Span::from_us(10));
        assert_eq!(rnr_timer(12), Span::from_us(640));
        assert_eq!(rnr_timer(31), Span::from_us(491_520));
        assert!((1..31).all(|code| rnr_timer(code) < rnr_timer(code + 1)));
    }

    #[test]
    fn an_msn_keeps_24_bits() {
        let aeth = Aeth { syndrome: Syndrome::Ack { credits: 31 }, msn: 0x1ab_cdef };
        assert_eq!(aeth.emit(), [0x1f, 0xab, 0xcd, 0xef]);
        assert_eq!(Aeth::parse(&aeth.emit()).msn, 0xab_cdef);
    }
}
