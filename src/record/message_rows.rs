//! Messages, as the events tell of them.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde::Serialize;

use super::words;
use crate::base::{Instant, MessageId, NodeId, Octets, Qpn, Span};
use crate::trace::{Event, EventKind, WorkStatus};
use crate::wire::Verb;

/// How far a message got.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum MessageStatus {
    /// The sending host was told that it is done.
    Completed,
    /// The receiving host has all of it, but the sending host was not told.
    Delivered,
    /// The sending host was told that it was not carried out.
    Failed,
    /// None of these.
    Unfinished,
}

impl MessageStatus {
    /// As it stands in tables.
    pub const fn text(self) -> &'static str {
        match self {
            Self::Completed => "completed",
            Self::Delivered => "delivered",
            Self::Failed => "failed",
            Self::Unfinished => "unfinished",
        }
    }
}

/// What became of one message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MessageRow {
    pub message: MessageId,
    pub node: NodeId,
    pub peer: NodeId,
    /// The sender's queue pair.
    pub qpn: Qpn,
    pub verb: Verb,
    pub bytes: Octets,
    pub posted: Instant,
    pub completed: Option<Instant>,
    pub delivered: Option<Instant>,
    /// Why the sending host was told that it was not carried out.
    pub failed: Option<WorkStatus>,
    /// Packets it consists of; `None` until its queue pair works on it.
    pub packets: Option<u32>,
    /// Times that one of its PSNs was given to a packet again.
    pub retransmissions: u64,
}

/// Rows of messages, kept up to date by events.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MessageRows {
    rows: BTreeMap<MessageId, MessageRow>,
    /// Which message a queue pair works on.
    working: BTreeMap<(NodeId, Qpn), MessageId>,
}

impl MessageRow {
    pub const fn status(&self) -> MessageStatus {
        match (self.completed, self.failed, self.delivered) {
            (Some(_), ..) => MessageStatus::Completed,
            (None, Some(_), _) => MessageStatus::Failed,
            (None, None, Some(_)) => MessageStatus::Delivered,
            (None, None, None) => MessageStatus::Unfinished,
        }
    }

    /// The status in a word, and of a failed message why.
    pub fn status_text(&self) -> Cow<'static, str> {
        match (self.status(), self.failed) {
            (MessageStatus::Failed, Some(why)) => format!("failed: {}", why.text()).into(),
            (status, _) => status.text().into(),
        }
    }

    /// From the post to the completion.
    pub fn completion_time(&self) -> Option<Span> {
        self.completed.map(|completed| completed.since(self.posted))
    }

    /// Its octets over its completion time.
    ///
    /// * Units: bit/s, rounded half up.
    pub fn goodput_bps(&self) -> Option<u64> {
        words::goodput_bps(self.bytes, self.completion_time()?)
    }

    /// Its octets over the time from its post to its delivery.
    ///
    /// * Units: bit/s, rounded half up.
    pub fn delivery_bps(&self) -> Option<u64> {
        words::goodput_bps(self.bytes, self.delivered?.since(self.posted))
    }

    const fn is_final(&self) -> bool {
        self.failed.is_some() || (self.completed.is_some() && self.delivered.is_some())
    }
}

impl MessageRows {
    /// `None` if it was not posted, or has been taken out.
    pub fn get(&self, message: MessageId) -> Option<&MessageRow> {
        self.rows.get(&message)
    }

    /// In the order of their numbers.
    pub fn iter(&self) -> impl Iterator<Item = &MessageRow> {
        self.rows.values()
    }

    /// Takes a message out, if none before it is left and nothing more can happen to it.
    pub(super) fn take_final(&mut self, message: MessageId) -> Option<MessageRow> {
        let first = self.rows.first_entry()?;
        (*first.key() == message && first.get().is_final()).then(|| first.remove())
    }

    /// Something has happened. Of messages that were not posted to these rows, nothing is kept.
    pub fn hear(&mut self, event: &Event) {
        match event.kind {
            EventKind::MessagePosted { message, peer, qpn, verb, bytes } => {
                let row = MessageRow {
                    message,
                    node: event.node,
                    peer,
                    qpn,
                    verb,
                    bytes,
                    posted: event.at,
                    completed: None,
                    delivered: None,
                    failed: None,
                    packets: None,
                    retransmissions: 0,
                };
                self.rows.insert(message, row);
            }
            EventKind::MessageStarted { message, qpn, packets, .. } => {
                self.working.insert((event.node, qpn), message);
                self.change(message, |row| row.packets = Some(packets));
            }
            EventKind::PacketNumbered { qpn, transmission, .. } if transmission > 1 => {
                // A queue pair has packets of one message only on its way, so the number belongs to that one.
                if let Some(&message) = self.working.get(&(event.node, qpn)) {
                    self.change(message, |row| row.retransmissions += 1);
                }
            }
            EventKind::MessageDelivered { message, .. } => self.change(message, |row| row.delivered = Some(event.at)),
            EventKind::MessageCompleted { message, .. } => self.change(message, |row| row.completed = Some(event.at)),
            EventKind::MessageFailed { message, status, .. } => self.change(message, |row| row.failed = Some(status)),
            _ => {}
        }
    }

    fn change(&mut self, message: MessageId, how: impl FnOnce(&mut MessageRow)) {
        if let Some(row) = self.rows.get_mut(&message) {
            how(row);
        }
    }
}

impl IntoIterator for MessageRows {
    type Item = MessageRow;
    type IntoIter = std::collections::btree_map::IntoValues<MessageId, MessageRow>;

    fn into_iter(self) -> Self::IntoIter {
        self.rows.into_values()
    }
}
