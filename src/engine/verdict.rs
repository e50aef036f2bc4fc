//! Whether a run did what its scenario asks for.

use std::fmt;

use super::{Mismatch, Outcome};
use crate::base::{Instant, MessageId, NodeId, Octets, PortId};
use crate::record::counted;
use crate::scenario::Plan;
use crate::trace::{DropReason, Headline, Names};

/// A frame that was dropped for want of room although its class has PFC.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Violation {
    pub at: Instant,
    pub node: NodeId,
    pub port: PortId,
    pub packet: Headline,
    /// What was full: the ingress pool, or the buffer of the switch.
    pub reason: DropReason,
    /// What that held, without the frame.
    pub occupancy: Octets,
    /// What it lacked to hold the frame.
    pub missing: Octets,
}

/// All violations of a run counted, the first few kept.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Violations {
    pub count: u64,
    pub first: Vec<Violation>,
}

impl Violations {
    const KEPT: usize = 3;

    pub(super) fn add(&mut self, violation: Violation) {
        self.count += 1;
        if self.first.len() < Self::KEPT {
            self.first.push(violation);
        }
    }

    /// One line for each that was kept, and one for the others.
    pub fn lines(&self, names: &Names) -> Vec<String> {
        let mut lines: Vec<_> = self.first.iter().map(|violation| violation.line(names)).collect();
        let others = self.count - self.first.len() as u64;
        if others > 0 {
            lines.push(format!("LOSSLESS VIOLATION: {others} more, {} in all", self.count));
        }
        lines
    }
}

impl Violation {
    fn line(&self, names: &Names) -> String {
        let Self { at, packet: Headline { kind, class, dest_qpn, psn, payload }, occupancy, missing, .. } = self;
        let port = names.port(self.node, self.port);
        let holder = if self.reason == DropReason::SwitchBufferFull { "the switch's buffer" } else { "its pool" };
        let frame = match kind.is_data() {
            true => format!("{} {psn} of {payload} for queue pair {}", kind.text(), dest_qpn.get()),
            false => format!("{} {psn} for queue pair {}", kind.text(), dest_qpn.get()),
        };
        format!(
            "LOSSLESS VIOLATION: {port} dropped {frame} at {at}, though class {class} has PFC: {holder} held \
             {occupancy}, {missing} too many for it"
        )
    }
}

/// What became of one expectation of the scenario.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Judged {
    pub ok: bool,
    /// What was expected and, if it did not hold, what was found.
    pub line: String,
    /// Around when to look, if it did not hold and there is such a place.
    pub at: Option<Instant>,
}

/// One way in which a run fell short. What it prints is for people and says where to look.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Shortcoming {
    Interrupted(Instant),
    /// Messages not both completed and delivered when the run ended.
    Unfinished {
        messages: Vec<MessageId>,
        end: Instant,
    },
    /// Applications had not gone when the run ended: its time was over, or each waited for what nobody would do.
    StillAttached {
        applications: Vec<String>,
        end: Instant,
    },
    /// An application was still there and was given up: what follows depends on real time. The line says why.
    GivenUp(String),
    /// What arrived is not what was sent.
    Corrupted(Mismatch),
    /// A frame was dropped although its class has PFC; the line says which.
    LosslessViolation {
        line: String,
        at: Option<Instant>,
    },
    /// Something that the scenario expects did not hold; the line says what was expected and what was found.
    ExpectationFailed {
        line: String,
        at: Option<Instant>,
    },
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
        if !plan.allow_lossless_drops {
            let lines = self.violations.lines(&plan.names()).into_iter();
            let mut places = self.violations.first.iter().map(|violation| violation.at);
            shortcomings.extend(lines.map(|line| Shortcoming::LosslessViolation { line, at: places.next() }));
        }
        shortcomings.extend(self.given_up.iter().cloned().map(Shortcoming::GivenUp));
        if !self.attached.is_empty() {
            shortcomings.push(Shortcoming::StillAttached { applications: self.attached.clone(), end: self.end });
        }
        if !self.unfinished.is_empty() {
            shortcomings.push(Shortcoming::Unfinished { messages: self.unfinished.clone(), end: self.end });
        }
        for judged in self.judged.iter().filter(|judged| !judged.ok) {
            shortcomings.push(Shortcoming::ExpectationFailed { line: judged.line.clone(), at: judged.at });
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
            Self::LosslessViolation { at, .. } | Self::ExpectationFailed { at, .. } => *at,
            Self::GivenUp(_)
            | Self::StillAttached { .. }
            | Self::Unfinished { .. }
            | Self::Corrupted(_)
            | Self::FaultNeverFired { .. }
            | Self::FramesStuck { .. } => None,
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
                let count = counted(messages.len() as u64, "message");
                write!(f, "{count} unfinished at {end}: {}", first_few(messages))
            }
            Self::StillAttached { applications, end } => {
                write!(f, "still attached at {end}: {}", applications.join(", "))
            }
            Self::GivenUp(line) | Self::LosslessViolation { line, .. } | Self::ExpectationFailed { line, .. } => {
                f.write_str(line)
            }
            Self::FaultNeverFired { name, matched: 0 } => write!(f, "fault `{name}` never happened: no frame matched"),
            Self::FaultNeverFired { name, matched } => {
                let frames = counted(*matched, "frame");
                write!(f, "fault `{name}` never happened: {frames} matched, none by its nth or probability")
            }
            Self::FramesStuck { name, frames } => {
                write!(f, "fault `{name}` held back {} that too few others followed", counted(*frames, "frame"))
            }
        }
    }
}

/// The first few of a list, for a line.
fn first_few(messages: &[MessageId]) -> String {
    let first: Vec<_> = messages.iter().take(5).map(MessageId::to_string).collect();
    let more = if messages.len() > first.len() { ", …" } else { "" };
    format!("{}{more}", first.join(", "))
}
