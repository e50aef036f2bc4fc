//! BTH opcodes, and the one table that says what each of them carries.

use std::fmt;

use super::{Aeth, Reth, WireError};

/// The first octet of a BTH. It may hold any octet; [`Opcode::is_known`] says whether we carry it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Opcode(u8);

/// What a work request asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Verb {
    Send,
    Write,
}

#[derive(Clone, Copy)]
struct Facts {
    opcode: Opcode,
    name: &'static str,
    verb: Option<Verb>,
    traits: u8,
    /// Octets between BTH and payload.
    header_octets: usize,
}

const FIRST: u8 = 1 << 0;
const LAST: u8 = 1 << 1;
const ONLY: u8 = FIRST | LAST;
const RETH: u8 = 1 << 2;
const IMMDT: u8 = 1 << 3;
const AETH: u8 = 1 << 4;
/// The sixteen reserved octets of a CNP.
const RESERVED: u8 = 1 << 5;
const PAYLOAD: u8 = 1 << 6;

const fn row(opcode: Opcode, name: &'static str, verb: Option<Verb>, traits: u8, header_octets: usize) -> Facts {
    Facts { opcode, name, verb, traits, header_octets }
}

/// Everything this room knows about opcodes.
///
/// * Source: InfiniBand specification, "BTH OpCode field"; CNP from RoCEv2 (Annex A17).
#[rustfmt::skip]
const TABLE: [Facts; 14] = [
    row(Opcode::SEND_FIRST,     "SEND First",       Some(Verb::Send),  FIRST | PAYLOAD,                 0),
    row(Opcode::SEND_MIDDLE,    "SEND Middle",      Some(Verb::Send),  PAYLOAD,                         0),
    row(Opcode::SEND_LAST,      "SEND Last",        Some(Verb::Send),  LAST | PAYLOAD,                  0),
    row(Opcode::SEND_LAST_IMM,  "SEND Last + Imm",  Some(Verb::Send),  LAST | IMMDT | PAYLOAD,          4),
    row(Opcode::SEND_ONLY,      "SEND Only",        Some(Verb::Send),  ONLY | PAYLOAD,                  0),
    row(Opcode::SEND_ONLY_IMM,  "SEND Only + Imm",  Some(Verb::Send),  ONLY | IMMDT | PAYLOAD,          4),
    row(Opcode::WRITE_FIRST,    "WRITE First",      Some(Verb::Write), FIRST | RETH | PAYLOAD,         16),
    row(Opcode::WRITE_MIDDLE,   "WRITE Middle",     Some(Verb::Write), PAYLOAD,                         0),
    row(Opcode::WRITE_LAST,     "WRITE Last",       Some(Verb::Write), LAST | PAYLOAD,                  0),
    row(Opcode::WRITE_LAST_IMM, "WRITE Last + Imm", Some(Verb::Write), LAST | IMMDT | PAYLOAD,          4),
    row(Opcode::WRITE_ONLY,     "WRITE Only",       Some(Verb::Write), ONLY | RETH | PAYLOAD,          16),
    row(Opcode::WRITE_ONLY_IMM, "WRITE Only + Imm", Some(Verb::Write), ONLY | RETH | IMMDT | PAYLOAD,  20),
    row(Opcode::ACKNOWLEDGE,    "ACKNOWLEDGE",      None,              AETH,                            4),
    row(Opcode::CNP,            "CNP",              None,              RESERVED,                       16),
];

static BY_CODE: [Option<Facts>; 256] = {
    let mut by_code = [None; 256];
    let mut i = 0;
    while i < TABLE.len() {
        by_code[TABLE[i].opcode.0 as usize] = Some(TABLE[i]);
        i += 1;
    }
    by_code
};

/// The table is checked when it is compiled: a slip of the pen in it would put wrong frames on the wire.
const _: () = {
    let mut i = 0;
    while i < TABLE.len() {
        let Facts { opcode, verb, traits, header_octets, .. } = TABLE[i];
        assert!(i == 0 || TABLE[i - 1].opcode.0 < opcode.0, "opcodes ascend, so none stands twice");
        let sum = (traits & RETH != 0) as usize * Reth::LEN
            + (traits & IMMDT != 0) as usize * Opcode::IMMDT_LEN
            + (traits & AETH != 0) as usize * Aeth::LEN
            + (traits & RESERVED != 0) as usize * Opcode::CNP_RESERVED_LEN;
        assert!(header_octets == sum, "a header length is the sum of its headers");
        assert!(verb.is_some() == (traits & PAYLOAD != 0), "payload is what verbs carry");
        let first_write = matches!(verb, Some(Verb::Write)) && traits & FIRST != 0;
        assert!(first_write == (traits & RETH != 0), "RETH is on the first packet of a WRITE");
        assert!(traits & IMMDT == 0 || traits & LAST != 0, "immediate data closes a message");
        if let Some(verb) = verb {
            let chosen = Opcode::for_segment(verb, traits & FIRST != 0, traits & LAST != 0);
            let chosen = if traits & IMMDT != 0 { chosen.with_immediate() } else { chosen };
            assert!(chosen.0 == opcode.0, "the selection rule and the table agree");
        }
        i += 1;
    }
};

impl Opcode {
    pub const SEND_FIRST: Self = Self(0x00);
    pub const SEND_MIDDLE: Self = Self(0x01);
    pub const SEND_LAST: Self = Self(0x02);
    pub const SEND_LAST_IMM: Self = Self(0x03);
    pub const SEND_ONLY: Self = Self(0x04);
    pub const SEND_ONLY_IMM: Self = Self(0x05);
    pub const WRITE_FIRST: Self = Self(0x06);
    pub const WRITE_MIDDLE: Self = Self(0x07);
    pub const WRITE_LAST: Self = Self(0x08);
    pub const WRITE_LAST_IMM: Self = Self(0x09);
    pub const WRITE_ONLY: Self = Self(0x0a);
    pub const WRITE_ONLY_IMM: Self = Self(0x0b);
    pub const ACKNOWLEDGE: Self = Self(0x11);
    /// Congestion notification. Not 0x80, whatever a dissector's table says.
    pub const CNP: Self = Self(0x81);

    pub(super) const IMMDT_LEN: usize = 4;
    pub(super) const CNP_RESERVED_LEN: usize = 16;

    pub const fn from_u8(code: u8) -> Self {
        Self(code)
    }

    pub const fn get(self) -> u8 {
        self.0
    }

    /// The opcode of a segment by its place in the message. A segment sent again keeps its opcode: what counts is the
    /// place in the message, not where sending resumed.
    pub const fn for_segment(verb: Verb, first: bool, last: bool) -> Self {
        match (verb, first, last) {
            (Verb::Send, true, true) => Self::SEND_ONLY,
            (Verb::Send, true, false) => Self::SEND_FIRST,
            (Verb::Send, false, true) => Self::SEND_LAST,
            (Verb::Send, false, false) => Self::SEND_MIDDLE,
            (Verb::Write, true, true) => Self::WRITE_ONLY,
            (Verb::Write, true, false) => Self::WRITE_FIRST,
            (Verb::Write, false, true) => Self::WRITE_LAST,
            (Verb::Write, false, false) => Self::WRITE_MIDDLE,
        }
    }

    /// The same with immediate data, where a message ends; itself where none fits.
    pub const fn with_immediate(self) -> Self {
        match self {
            Self::SEND_LAST => Self::SEND_LAST_IMM,
            Self::SEND_ONLY => Self::SEND_ONLY_IMM,
            Self::WRITE_LAST => Self::WRITE_LAST_IMM,
            Self::WRITE_ONLY => Self::WRITE_ONLY_IMM,
            other => other,
        }
    }

    pub const fn is_known(self) -> bool {
        self.facts().is_some()
    }

    /// As packet analyzers print it, without the transport; `None` if we do not carry it.
    pub fn name(self) -> Option<&'static str> {
        self.facts().map(|facts| facts.name)
    }

    /// The verb whose data this packet carries; `None` for ACKNOWLEDGE, CNP and unknown opcodes.
    pub const fn verb(self) -> Option<Verb> {
        match self.facts() {
            Some(facts) => facts.verb,
            None => None,
        }
    }

    /// A data packet of a SEND or a WRITE: what takes a PSN and is acknowledged.
    pub const fn is_request(self) -> bool {
        self.verb().is_some()
    }

    pub const fn is_send(self) -> bool {
        matches!(self.verb(), Some(Verb::Send))
    }

    pub const fn is_write(self) -> bool {
        matches!(self.verb(), Some(Verb::Write))
    }

    /// First or only packet of a message.
    pub const fn starts_message(self) -> bool {
        self.has(FIRST)
    }

    /// Last or only packet of a message.
    pub const fn ends_message(self) -> bool {
        self.has(LAST)
    }

    pub const fn has_reth(self) -> bool {
        self.has(RETH)
    }

    pub const fn has_immediate(self) -> bool {
        self.has(IMMDT)
    }

    pub const fn has_aeth(self) -> bool {
        self.has(AETH)
    }

    pub const fn has_payload(self) -> bool {
        self.has(PAYLOAD)
    }

    /// Octets between BTH and payload; 0 for unknown opcodes.
    pub const fn header_octets(self) -> usize {
        match self.facts() {
            Some(facts) => facts.header_octets,
            None => 0,
        }
    }

    /// * Errors: `UnsupportedOpcode` if InfiniBand has it and we do not, `UnknownOpcode` if neither has.
    pub const fn require_known(self) -> Result<(), WireError> {
        match self.0 {
            _ if self.is_known() => Ok(()),
            // READ request and responses, atomic acknowledge, compare and swap, fetch and add, SEND with invalidate;
            // the whole of UC; UD SEND, which connection managers speak to queue pair 1.
            0x0c..=0x10 | 0x12..=0x14 | 0x16 | 0x17 | 0x20..=0x2b | 0x64 | 0x65 => {
                Err(WireError::UnsupportedOpcode(self.0))
            }
            _ => Err(WireError::UnknownOpcode(self.0)),
        }
    }

    /// A request of a reliable connection that InfiniBand has and we do not: READ, atomics, SEND with invalidate.
    pub const fn is_foreign_request(self) -> bool {
        matches!(self.0, 0x0c | 0x13 | 0x14 | 0x16 | 0x17)
    }

    const fn has(self, of: u8) -> bool {
        match self.facts() {
            Some(facts) => facts.traits & of != 0,
            None => false,
        }
    }

    const fn facts(self) -> Option<&'static Facts> {
        BY_CODE[self.0 as usize].as_ref()
    }
}

impl fmt::Display for Opcode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.name() {
            Some(name) => f.pad(name),
            None => f.pad(&format!("opcode {:#04x}", self.0)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn opcodes_of(verb: Verb, segments: u32, resume_at: u32) -> Vec<u8> {
        (resume_at..segments).map(|i| Opcode::for_segment(verb, i == 0, i + 1 == segments).get()).collect()
    }

    #[test]
    fn a_segment_takes_its_opcode_from_its_place_in_the_message() {
        assert_eq!(opcodes_of(Verb::Send, 1, 0), [0x04]);
        assert_eq!(opcodes_of(Verb::Send, 2, 0), [0x00, 0x02]);
        assert_eq!(opcodes_of(Verb::Send, 4, 0), [0x00, 0x01, 0x01, 0x02]);
        assert_eq!(opcodes_of(Verb::Write, 1, 0), [0x0a]);
        assert_eq!(opcodes_of(Verb::Write, 2, 0), [0x06, 0x08]);
        assert_eq!(opcodes_of(Verb::Write, 4, 0), [0x06, 0x07, 0x07, 0x08]);
    }

    #[test]
    fn a_rewind_into_the_middle_never_resumes_with_first() {
        assert_eq!(opcodes_of(Verb::Write, 4, 2), [0x07, 0x08]);
        assert_eq!(opcodes_of(Verb::Send, 4, 3), [0x02]);
    }

    #[test]
    fn immediate_data_only_closes_a_message() {
        assert_eq!(Opcode::WRITE_LAST.with_immediate(), Opcode::WRITE_LAST_IMM);
        assert_eq!(Opcode::WRITE_ONLY.with_immediate(), Opcode::WRITE_ONLY_IMM);
        assert_eq!(Opcode::SEND_MIDDLE.with_immediate(), Opcode::SEND_MIDDLE);
        assert_eq!(Opcode::ACKNOWLEDGE.with_immediate(), Opcode::ACKNOWLEDGE);
    }

    #[test]
    fn foreign_opcodes_are_told_apart_from_unheard_of_ones() {
        let refusal = |code| Opcode::from_u8(code).require_known();
        for code in [0x0c, 0x0d, 0x10, 0x12, 0x13, 0x14, 0x16, 0x17, 0x2a, 0x64] {
            assert_eq!(refusal(code), Err(WireError::UnsupportedOpcode(code)));
        }
        for code in [0x15, 0x18, 0x1f, 0x80, 0xff] {
            assert_eq!(refusal(code), Err(WireError::UnknownOpcode(code)));
        }
        assert_eq!((0..=u8::MAX).filter(|&code| refusal(code).is_ok()).count(), TABLE.len());
    }

    #[test]
    fn questions_about_an_opcode_come_from_the_table() {
        let op = Opcode::WRITE_ONLY_IMM;
        assert!(op.is_request() && op.is_write() && !op.is_send());
        assert!(op.starts_message() && op.ends_message() && op.has_reth() && op.has_immediate() && op.has_payload());
        assert_eq!((op.header_octets(), op.to_string()), (20, "WRITE Only + Imm".into()));
        assert!(!Opcode::ACKNOWLEDGE.is_request() && !Opcode::CNP.has_payload());
        assert_eq!(Opcode::from_u8(0x80).to_string(), "opcode 0x80");
    }
}
