//! The words that captures, ladders and digests share.

use std::borrow::Cow;
use std::io::{self, Write};

use crate::base::{Octets, Span};
use crate::trace::{Effect, Names, PacketKind, RateCause, RuleEffect, Verdict};
use crate::wire::Verb;

/// Whether the PSN of such a packet says anything.
pub(super) const fn has_psn(kind: PacketKind) -> bool {
    kind.is_data() || kind.is_answer()
}

pub(super) const fn verb(verb: Verb) -> &'static str {
    match verb {
        Verb::Send => "SEND",
        Verb::Write => "WRITE",
    }
}

/// What the receiving node decided. Receivers discard; links drop.
pub(super) fn verdict(verdict: Verdict) -> Cow<'static, str> {
    match verdict {
        Verdict::Accepted => "accepted".into(),
        Verdict::Duplicate => "duplicate".into(),
        Verdict::Processed => "processed".into(),
        Verdict::Stale => "stale".into(),
        Verdict::Forwarded => "forwarded".into(),
        Verdict::Dropped(reason) => format!("discarded: {}", reason.text()).into(),
    }
}

/// What a fault rule did to a frame, and which rule.
pub(super) fn effect(effect: RuleEffect, names: &Names) -> Cow<'static, str> {
    let rule = names.rule(effect.rule);
    match effect.effect {
        Effect::Dropped => format!("dropped by {rule}"),
        Effect::Duplicated => format!("duplicated by {rule}"),
        Effect::Delayed { by } => format!("delayed {by} by {rule}"),
        Effect::Reordered { after } => format!("put behind the next {after} by {rule}"),
        Effect::Corrupted => format!("corrupted by {rule}"),
        Effect::CeSet => format!("CE set by {rule}"),
        Effect::DscpSet { dscp } => format!("DSCP {dscp} set by {rule}"),
        Effect::LinkDown => format!("link down by {rule}"),
    }
    .into()
}

/// What a switch did to a frame that it marked.
pub(super) const MARKED: &str = "CE set";

/// `retransmission n` for the n-th repetition of a PSN.
///
/// * Range: `transmission` as in `FrameSent`, where 0 and 1 are not repetitions.
pub(super) fn retransmission(transmission: u32) -> Option<Cow<'static, str>> {
    (transmission > 1).then(|| format!("retransmission {}", transmission - 1).into())
}

/// Octets over a span.
///
/// * Units: bit/s, rounded half up. `None` for no time at all.
pub(super) fn goodput_bps(octets: Octets, span: Span) -> Option<u64> {
    let bit_ps = u128::from(octets.get()) * 8 * 1_000_000_000_000;
    let ps = u128::from(span.ps());
    (ps > 0).then(|| u64::try_from((bit_ps + ps / 2) / ps).unwrap_or(u64::MAX))
}

/// What moved a rate, as the event log spells it.
pub(super) const fn rate_cause(cause: RateCause) -> &'static str {
    match cause {
        RateCause::Cut => "cut",
        RateCause::AdditiveReduction => "additive_reduction",
        RateCause::FastRecovery => "fast_recovery",
        RateCause::AdditiveIncrease => "additive_increase",
        RateCause::HyperIncrease => "hyper_increase",
    }
}

/// An average of octets in whole ones, rounded half up: tables and summaries hold integers only.
pub(super) fn whole(average: f64) -> Octets {
    Octets::new((average + 0.5).floor() as u64)
}

/// Writes out what is buffered and gives the writer back.
pub(super) fn finish_csv<W: Write>(writer: csv::Writer<W>) -> io::Result<W> {
    let mut writer = writer.into_inner().map_err(csv::IntoInnerError::into_error)?;
    writer.flush()?;
    Ok(writer)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn goodput_is_bits_over_time() {
        let bps = |octets, ps| goodput_bps(Octets::new(octets), Span::from_ps(ps));
        // One octet in 20 ps is 400 Gb/s; 8 bits in 3 ps are 2 666 666 666 666.67 bit/s.
        assert_eq!(bps(1, 20), Some(400_000_000_000));
        assert_eq!(bps(1, 3), Some(2_666_666_666_667));
        assert_eq!(bps(0, 283_680), Some(0));
        assert_eq!(bps(1, 0), None);
    }
}
