//! Whether a run did what its scenario asks for.

use std::fmt;

use super::{Mismatch, Outcome};
use crate::base::{Instant, MessageId};
use crate::scenario::Plan;

/// One way in which a run fell short. What it prints is for people and says where to look.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Shortcoming {
    Interrupted(Instant),
    /// Messages not both completed and delivered when the run ended.
    Unfinished {
        messages: Vec<MessageId>,
        end: Instant,
    },
    /// What arrived is not what was sent.
    Corrupted(Mismatch),
    /// A fault that never happened, and is not optional.
    FaultNeverFired {
        name: String,
        matched: u64,
    },
    /// Frames that a fault held back and that nobody passed.
    FramesStuck {
        name: String,
        frames: u64,
    },
}

impl Outcome {
    /// Everything that fell short, the most important first. Empty: all well.
    pub fn shortcomings(&self, plan: &Plan) -> Vec<Shortcoming> {
        let mut shortcomings = Vec::new();
        if self.interrupted {
            shortcomings.push(Shortcoming::Interrupted(self.end));
        }
        shortcomings.extend(self.mismatches.iter().copied().map(Shortcoming::Corrupted));
        if !self.unfinished.is_empty() {
            shortcomings.push(Shortcoming::Unfinished { messages: self.unfinished.clone(), end: self.end });
        }
        for (fault, report) in plan.faults.iter().zip(&self.faults) {
            let name = fault.name.clone();
            if report.fired == 0 && !fault.optional {
                shortcomings.push(Shortcoming::FaultNeverFired { name, matched: report.matched });
            } else if report.stuck > 0 && !fault.optional {
                shortcomings.push(Shortcoming::FramesStuck { name, frames: report.stuck });
            }
        }
        shortcomings
    }
}

impl Shortcoming {
    /// Where in time to look for it.
    pub fn at(&self) -> Option<Instant> {
        match self {
            Self::Interrupted(at) => Some(*at),
            Self::Unfinished { .. } | Self::Corrupted(_) | Self::FaultNeverFired { .. } | Self::FramesStuck { .. } => {
                None
            }
        }
    }
}

impl fmt::Display for Shortcoming {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Interrupted(at) => write!(f, "interrupted at {at}"),
            Self::Corrupted(Mismatch { message, offset }) => {
                write!(f, "message {message} arrived changed, first at octet {offset}")
            }
            Self::Unfinished { messages, end } => {
                let first: Vec<_> = messages.iter().take(5).map(MessageId::to_string).collect();
                let more = if messages.len() > first.len() { ", …" } else { "" };
                write!(f, "{} message(s) unfinished at {end}: {}{more}", messages.len(), first.join(", "))
            }
            Self::FaultNeverFired { name, matched: 0 } => write!(f, "fault `{name}` never happened: no frame matched"),
            Self::FaultNeverFired { name, matched } => {
                write!(f, "fault `{name}` never happened: {matched} frame(s) matched, none by its nth or probability")
            }
            Self::FramesStuck { name, frames } => {
                write!(f, "fault `{name}` held back {frames} frame(s) that too few others followed")
            }
        }
    }
}
