//! The conservation ledger: what went in came out, is still held, or was dropped for a reason.

use std::collections::BTreeSet;
use std::fmt;

use super::{Event, EventKind, Sink, Verdict};
use crate::base::{NodeId, Octets};

/// What is counted on both sides of the books.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Account {
    /// Frames: queued at a port = sent + waiting.
    EgressFrames,
    /// Frames: sent = arrived + in flight + dropped on the link.
    LinkFrames,
    /// Segments: reserved = numbered + discarded + being fetched.
    Segments,
    /// Octets of egress pools: charged = released + held.
    EgressOctets,
    /// Payload octets: accepted = written to the host + held.
    ReceivedPayload,
    /// Payload octets: written to the host = delivered with their message + part of one.
    DeliveredPayload,
    /// Octets of switch buffers: taken in = released + held.
    SwitchOctets,
    /// Messages: posted = completed + failed + unfinished.
    Messages,
}

/// The state of one account.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Balance {
    pub entered: u64,
    pub left: u64,
    pub dropped: u64,
    /// What the model itself still holds: counted from its queues, not from events.
    pub held: u64,
}

/// An account whose sides differ: a fault of the emulator.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the books do not balance: {account} entered {}, but left {}, dropped {}, held {}", balance.entered, balance.left, balance.dropped, balance.held)]
pub struct Imbalance {
    pub account: Account,
    pub balance: Balance,
}

/// The books of a run, kept from its events.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ledger {
    balances: [Balance; Account::COUNT],
    /// Nodes that have forwarded: what they queue is charged where it came in, not to an egress pool.
    switches: BTreeSet<NodeId>,
}

impl Account {
    pub const COUNT: usize = Self::ALL.len();
    pub const ALL: [Self; 8] = [
        Self::EgressFrames,
        Self::LinkFrames,
        Self::Segments,
        Self::EgressOctets,
        Self::ReceivedPayload,
        Self::DeliveredPayload,
        Self::SwitchOctets,
        Self::Messages,
    ];

    /// Its key in `summary.json`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::EgressFrames => "egress_frames",
            Self::LinkFrames => "link_frames",
            Self::Segments => "segments",
            Self::EgressOctets => "egress_octets",
            Self::ReceivedPayload => "received_payload_octets",
            Self::DeliveredPayload => "delivered_payload_octets",
            Self::SwitchOctets => "switch_octets",
            Self::Messages => "messages",
        }
    }
}

impl fmt::Display for Account {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl Ledger {
    /// Adds what the model still holds at the end of a run.
    pub fn hold(&mut self, account: Account, held: u64) {
        self.at(account).held += held;
    }

    /// Every account with its balance, in a fixed order.
    pub fn iter(&self) -> impl Iterator<Item = (Account, Balance)> {
        Account::ALL.into_iter().zip(self.balances)
    }

    /// * Errors: the first account whose sides differ.
    pub fn check(&self) -> Result<(), Imbalance> {
        match self.iter().find(|(_, b)| b.entered != b.left + b.dropped + b.held) {
            Some((account, balance)) => Err(Imbalance { account, balance }),
            None => Ok(()),
        }
    }

    fn at(&mut self, account: Account) -> &mut Balance {
        &mut self.balances[account as usize]
    }

    fn enter(&mut self, account: Account, amount: u64) {
        self.at(account).entered += amount;
    }

    fn leave(&mut self, account: Account, amount: u64) {
        self.at(account).left += amount;
    }
}

impl Sink for Ledger {
    fn record(&mut self, event: &Event) -> std::io::Result<()> {
        let reserved = |payload: Octets| (payload + crate::wire::DATA_OVERHEAD).get();
        match &event.kind {
            EventKind::MessagePosted { .. } => self.enter(Account::Messages, 1),
            EventKind::MessageCompleted { .. } => self.leave(Account::Messages, 1),
            EventKind::MessageFailed { .. } => self.at(Account::Messages).dropped += 1,
            EventKind::MessageDelivered { bytes, .. } => self.leave(Account::DeliveredPayload, bytes.get()),
            EventKind::SegmentReserved { payload, .. } => {
                self.enter(Account::Segments, 1);
                self.enter(Account::EgressOctets, reserved(*payload));
            }
            EventKind::PacketNumbered { .. } => self.leave(Account::Segments, 1),
            EventKind::PayloadDiscarded { payload, .. } => {
                self.at(Account::Segments).dropped += 1;
                self.at(Account::EgressOctets).dropped += reserved(*payload);
            }
            EventKind::FrameQueued { packet, .. } => {
                self.enter(Account::EgressFrames, 1);
                if packet.kind.is_answer() && !self.switches.contains(&event.node) {
                    self.enter(Account::EgressOctets, crate::wire::ACK_WIRE_LEN.get());
                }
            }
            EventKind::EgressReleased { octets, .. } => self.leave(Account::EgressOctets, octets.get()),
            EventKind::FrameInjected { .. } => self.enter(Account::LinkFrames, 1),
            EventKind::FrameSent { fate, effects, .. } => {
                self.leave(Account::EgressFrames, 1);
                self.enter(Account::LinkFrames, 1);
                match fate.copies(effects) {
                    0 => self.at(Account::LinkFrames).dropped += 1,
                    copies => self.enter(Account::LinkFrames, u64::from(copies) - 1),
                }
            }
            EventKind::FrameReceived { packet, verdict, wire_len, .. } => {
                self.leave(Account::LinkFrames, 1);
                match verdict {
                    Verdict::Accepted => self.enter(Account::ReceivedPayload, packet.payload.get()),
                    Verdict::Forwarded => {
                        self.switches.insert(event.node);
                        self.enter(Account::SwitchOctets, crate::wire::buffer_charge(*wire_len).get());
                    }
                    _ => {}
                }
            }
            EventKind::IngressReleased { octets, .. } => self.leave(Account::SwitchOctets, octets.get()),
            EventKind::PayloadWritten { payload, .. } => {
                self.leave(Account::ReceivedPayload, payload.get());
                self.enter(Account::DeliveredPayload, payload.get());
            }
            _ => {}
        }
        Ok(())
    }
}
