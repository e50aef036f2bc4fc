//! Fault rules: which frame, and what happens to it.

use core::net::Ipv4Addr;

use bytes::{Bytes, BytesMut};

use crate::base::{Instant, MessageId, Octets, Origin, Psn, Qpn, Share, Span};
use crate::trace::{Effect, Headline, PacketKind};
use crate::wire::{self, Opcode, Peek};

/// What a link is told about a frame, beside its octets.
#[derive(Clone, Debug)]
pub struct Passing {
    pub packet: Headline,
    /// Of a data packet that a NIC has sent.
    pub origin: Option<Origin>,
    pub wire_len: Octets,
    pub frame: Bytes,
}

/// Which PSN a rule means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PsnMatch {
    /// The PSN in the BTH.
    Absolute(Psn),
    /// From the first to the last, both included, around the wrap.
    AbsoluteRange(Psn, Psn),
    /// The packet's index in its message, from 0.
    Relative(u32),
    /// From the first to the last, both included.
    RelativeRange(u32, u32),
}

/// Conditions on a frame, all of them together. An empty list means any.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Matcher {
    pub kinds: Vec<PacketKind>,
    pub opcodes: Vec<Opcode>,
    pub messages: Vec<MessageId>,
    /// Queue pairs that it goes to: their nodes' addresses, and their numbers there.
    pub destinations: Vec<(Ipv4Addr, Qpn)>,
    pub psns: Vec<PsnMatch>,
    /// First, second … transmission of its PSN, from 1.
    pub transmissions: Vec<u32>,
    /// First, second … pass over its message, from 1; see [`Origin::iteration`].
    pub iterations: Vec<u32>,
    pub from: Option<Instant>,
    /// Exclusive.
    pub until: Option<Instant>,
    /// Drawn from the rule's own random stream, after every other condition held.
    pub probability: Option<Share>,
    /// The first, second … frame for which everything else holds, from 1.
    pub nth: Vec<u64>,
    /// It acts so often and no more.
    pub times: Option<u64>,
}

/// Which part of a frame a bit is flipped in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Field {
    Payload,
    Bth,
    Icrc,
}

/// A bit to flip.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Corruption {
    pub field: Field,
    /// From 0, counted from the field's first octet, its least significant bit first.
    pub bit: u32,
}

/// What happens to a frame that matches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    Drop,
    /// A copy arrives in the same instant, right after it.
    Duplicate,
    /// It arrives later; nobody else waits.
    Delay(Span),
    /// It arrives right after the k-th frame that follows it. Range: from 1.
    Reorder {
        after: u32,
    },
    Corrupt(Corruption),
    /// ECN becomes CE, whatever it was.
    SetCe,
    SetDscp(u8),
    /// The link is down: frames whose last bit leaves meanwhile are lost.
    Down,
}

/// A fault rule on one direction of a link.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rule {
    pub matcher: Matcher,
    pub action: Action,
}

impl Matcher {
    /// Whether everything but probability and count holds.
    pub fn holds(&self, now: Instant, passing: &Passing) -> bool {
        let Passing { packet, origin, frame, .. } = passing;
        let originates = |holds: &dyn Fn(&Origin) -> bool| origin.as_ref().is_some_and(holds);
        any(&self.kinds, |kind| *kind == packet.kind)
            && any(&self.opcodes, |opcode| Peek::of(frame).is_ok_and(|peek| peek.opcode == *opcode))
            && any(&self.messages, |wanted| originates(&|origin| origin.message == *wanted))
            && any(&self.destinations, |(ip, qpn)| {
                let is_there = |peek: Peek| peek.ip_dst == *ip;
                *qpn == packet.dest_qpn && !packet.kind.is_pfc() && Peek::of(frame).is_ok_and(is_there)
            })
            && any(&self.psns, |psn| match psn {
                PsnMatch::Absolute(psn) => *psn == packet.psn && !packet.kind.is_pfc(),
                // Distances on the circle from the first one, so that a range may cross the wrap.
                PsnMatch::AbsoluteRange(first, last) => {
                    packet.psn.minus(first.get()).get() <= last.minus(first.get()).get() && !packet.kind.is_pfc()
                }
                PsnMatch::Relative(index) => originates(&|origin| origin.index == *index),
                PsnMatch::RelativeRange(first, last) => originates(&|origin| (*first..=*last).contains(&origin.index)),
            })
            && any(&self.transmissions, |wanted| originates(&|origin| origin.transmission == *wanted))
            && any(&self.iterations, |wanted| originates(&|origin| origin.iteration == *wanted))
            && self.from.is_none_or(|from| now >= from)
            && self.until.is_none_or(|until| now < until)
    }
}

fn any<T>(wanted: &[T], is_it: impl FnMut(&T) -> bool) -> bool {
    wanted.is_empty() || wanted.iter().any(is_it)
}

impl Action {
    /// Whether the action can be done to the frame at all; a rule that cannot act does not match.
    pub fn applies_to(&self, frame: &[u8]) -> bool {
        match self {
            Self::Corrupt(corruption) => corruption.octet(frame).is_some(),
            Self::SetCe | Self::SetDscp(_) => Peek::of(frame).is_ok(),
            _ => true,
        }
    }

    /// The effect it has, for the record.
    pub const fn effect(&self) -> Effect {
        match *self {
            Self::Drop => Effect::Dropped,
            Self::Duplicate => Effect::Duplicated,
            Self::Delay(by) => Effect::Delayed { by },
            Self::Reorder { after } => Effect::Reordered { after },
            Self::Corrupt(_) => Effect::Corrupted,
            Self::SetCe => Effect::CeSet,
            Self::SetDscp(dscp) => Effect::DscpSet { dscp },
            Self::Down => Effect::LinkDown,
        }
    }

    /// The frame with what the action changes in it.
    pub fn change(&self, frame: Bytes) -> Bytes {
        match self {
            Self::Corrupt(corruption) => corruption.flip(frame),
            Self::SetCe => wire::set_ce(&frame),
            Self::SetDscp(dscp) => wire::set_dscp(&frame, *dscp),
            _ => frame,
        }
    }
}

impl Corruption {
    const BTH_AT: usize = 42;
    const BTH_END: usize = 54;
    const ICRC: usize = 4;

    /// Where the octet with the bit stands; `None` if the frame has no such field, or the field no such bit.
    fn octet(&self, frame: &[u8]) -> Option<usize> {
        let peek = Peek::of(frame).ok()?;
        // The IPv4 total length, not the frame's: a trailer is no part of the packet.
        let end = 14 + usize::from(u16::from_be_bytes([*frame.get(16)?, *frame.get(17)?]));
        let range = match self.field {
            Field::Bth => Self::BTH_AT..Self::BTH_END,
            Field::Icrc => end.checked_sub(Self::ICRC)?..end,
            Field::Payload if peek.opcode.has_payload() => {
                Self::BTH_END + peek.opcode.header_octets()..end.checked_sub(Self::ICRC)?
            }
            Field::Payload => return None,
        };
        let at = range.start + self.bit as usize / 8;
        (at < range.end.min(frame.len())).then_some(at)
    }

    fn flip(&self, frame: Bytes) -> Bytes {
        let Some(at) = self.octet(&frame) else { return frame };
        let mut changed = BytesMut::from(&frame[..]);
        changed[at] ^= 1 << (self.bit % 8);
        changed.freeze()
    }
}
