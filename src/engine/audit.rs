//! Which messages are under way, and whether what arrived is what was sent.

use std::collections::BTreeMap;

use crate::base::{Instant, MessageId, NodeId, Octets};
use crate::nic::{MemoryKey, Nic, Registration};

/// A message whose octets at the receiver differ from those at the sender.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mismatch {
    pub message: MessageId,
    /// Offset of the first octet that differs.
    pub offset: usize,
}

/// The books on messages: posted, completed, delivered, compared.
///
/// * Cost: memory for messages under way only.
#[derive(Clone, Debug, Default)]
pub struct MessageAudit {
    open: BTreeMap<MessageId, Open>,
    uncompleted: u64,
    last_finish: Instant,
    compared: Octets,
    mismatches: Vec<Mismatch>,
}

#[derive(Clone, Copy, Debug)]
struct Open {
    sender: NodeId,
    receiver: NodeId,
    completed: bool,
    delivered: bool,
}

/// The memory of a message, the same address and key at both ends.
///
/// * Source: interface.md "Ids".
pub fn registration(message: MessageId, size: Octets) -> Registration {
    let number = message.0 + 1;
    Registration { message, key: MemoryKey { address: u64::from(number) << 32, rkey: number }, size }
}

impl MessageAudit {
    pub fn posted(&mut self, message: MessageId, sender: NodeId, receiver: NodeId) {
        self.open.insert(message, Open { sender, receiver, completed: false, delivered: false });
        self.uncompleted += 1;
    }

    pub fn completed(&mut self, now: Instant, message: MessageId, nics: &mut [Nic]) {
        self.last_finish = now;
        self.uncompleted -= 1;
        if let Some(open) = self.open.get_mut(&message) {
            open.completed = true;
        }
        self.close_if_finished(message, nics);
    }

    pub fn delivered(&mut self, now: Instant, message: MessageId, nics: &mut [Nic]) {
        self.last_finish = now;
        if let Some(open) = self.open.get_mut(&message) {
            open.delivered = true;
        }
        self.close_if_finished(message, nics);
    }

    /// Compares both ends' memory and frees it.
    fn close_if_finished(&mut self, message: MessageId, nics: &mut [Nic]) {
        let Some(&open) = self.open.get(&message).filter(|open| open.completed && open.delivered) else { return };
        self.open.remove(&message);
        let rkey = registration(message, Octets::ZERO).key.rkey;
        let mut held = |node: NodeId| nics[node.index()].memory_mut().deregister(rkey);
        let (Some(sent), Some(received)) = (held(open.sender), held(open.receiver)) else {
            unreachable!("both ends of a message under way have its memory")
        };
        self.compared += sent.size();
        self.mismatches.extend(sent.first_difference(&received).map(|offset| Mismatch { message, offset }));
    }

    /// Every message posted so far is completed and delivered.
    pub fn is_all_finished(&self) -> bool {
        self.open.is_empty()
    }

    /// Messages posted and not completed.
    pub fn uncompleted(&self) -> u64 {
        self.uncompleted
    }

    /// Messages posted and not both completed and delivered.
    pub fn unfinished(&self) -> impl Iterator<Item = MessageId> {
        self.open.keys().copied()
    }

    /// When the last message was completed or delivered.
    pub fn last_finish(&self) -> Instant {
        self.last_finish
    }

    /// Octets found equal or not at both ends.
    pub fn compared(&self) -> Octets {
        self.compared
    }

    pub fn mismatches(&self) -> &[Mismatch] {
        &self.mismatches
    }
}
