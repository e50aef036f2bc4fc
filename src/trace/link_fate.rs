//! What became of a frame on a link.

use serde::Serialize;

use crate::base::{RuleId, Span};

/// What a link does with a frame whose serialization has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "fate", rename_all = "snake_case")]
pub enum LinkFate {
    /// It arrives after the link's Delay.
    Carried,
    /// A fault rule dropped it.
    Dropped { rule: RuleId },
    /// The link was down.
    LinkDown { rule: RuleId },
    /// A fault rule holds it back until others have passed.
    Held { rule: RuleId },
}

impl LinkFate {
    /// How many frames the far end gets, sooner or later, of one with these `effects`.
    pub fn copies(self, effects: &[RuleEffect]) -> u32 {
        match self {
            Self::Carried | Self::Held { .. } => {
                1 + effects.iter().filter(|effect| effect.effect == Effect::Duplicated).count() as u32
            }
            Self::Dropped { .. } | Self::LinkDown { .. } => 0,
        }
    }
}

/// What a fault rule did to a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct RuleEffect {
    pub rule: RuleId,
    pub effect: Effect,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Effect {
    Dropped,
    Duplicated,
    Delayed {
        #[serde(rename = "by_ps")]
        by: Span,
    },
    /// It arrives behind so many others.
    Reordered {
        after: u32,
    },
    Corrupted,
    CeSet,
    DscpSet {
        dscp: u8,
    },
    LinkDown,
}
