//! Which messages are under way, and whether what arrived is what was sent.

use std::collections::{BTreeMap, BTreeSet};

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
    failed: BTreeSet<MessageId>,
}

#[derive(Clone, Copy, Debug)]
struct Open {
    sender: NodeId,
    receiver: NodeId,
    completed: bool,
    delivered: bool,
    /// It was posted by the scenario: both ends hold memory to compare.
    is_compared: bool,
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
        let open = Open { sender, receiver, completed: false, delivered: false, is_compared: true };
        self.open.insert(message, open);
        self.uncompleted += 1;
    }

    /// An application posted the message: what arrived is its own affair.
    pub fn posted_by_application(&mut self, message: MessageId, sender: NodeId, receiver: NodeId) {
        self.posted(message, sender, receiver);
        self.open.entry(message).and_modify(|open| open.is_compared = false);
    }

    /// It will not be completed: it has ended.
    pub fn failed(&mut self, now: Instant, message: MessageId) {
        self.last_finish = now;
        self.uncompleted -= 1;
        self.open.remove(&message);
        self.failed.insert(message);
    }

    /// It will not be delivered, and may have been completed already.
    pub fn delivery_failed(&mut self, now: Instant, message: MessageId, nics: &mut [Nic]) {
        if self.open.contains_key(&message) {
            self.failed.insert(message);
        }
        self.delivered(now, message, nics);
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
        if !open.is_compared {
            return;
        }
        let rkey = registration(message, Octets::ZERO).key.rkey;
        let mut held = |node: NodeId| nics[node.index()].memory_mut().deregister(rkey);
        let (Some(sent), Some(received)) = (held(open.sender), held(open.receiver)) else {
            unreachable!("both ends of a message under way have its memory")
        };
        self.compared += sent.size();
        self.mismatches.extend(sent.first_difference(&received).map(|offset| Mismatch { message, offset }));
    }

    /// Every message posted so far is completed and delivered, or has failed.
    pub fn is_all_finished(&self) -> bool {
        self.open.is_empty()
    }

    /// Messages posted that have neither completed nor failed.
    pub fn uncompleted(&self) -> u64 {
        self.uncompleted
    }

    /// Messages posted and not both completed and delivered.
    pub fn unfinished(&self) -> impl Iterator<Item = MessageId> {
        self.open.keys().copied()
    }

    /// When the last message was completed, delivered, or failed.
    pub fn last_finish(&self) -> Instant {
        self.last_finish
    }

    /// Messages that failed to be completed or delivered, by number.
    pub fn failures(&self) -> impl Iterator<Item = MessageId> {
        self.failed.iter().copied()
    }

    /// Octets found equal or not at both ends.
    pub fn compared(&self) -> Octets {
        self.compared
    }

    pub fn mismatches(&self) -> &[Mismatch] {
        &self.mismatches
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: NodeId = NodeId(0);
    const B: NodeId = NodeId(1);

    #[test]
    fn a_failed_message_is_finished_and_counts_as_failed() {
        let mut audit = MessageAudit::default();
        let at = Instant::from_ps;
        for message in 0..3 {
            audit.posted_by_application(MessageId(message), A, B);
        }
        audit.failed(at(5), MessageId(1));
        // What was on its way may still arrive.
        audit.delivered(at(6), MessageId(1), &mut []);
        audit.completed(at(7), MessageId(0), &mut []);
        assert_eq!(audit.unfinished().collect::<Vec<_>>(), [MessageId(0), MessageId(2)]);
        // Acknowledged, and then there was no memory for it.
        audit.delivery_failed(at(8), MessageId(0), &mut []);
        // Not even acknowledged: it fails once.
        audit.delivery_failed(at(9), MessageId(2), &mut []);
        audit.failed(at(10), MessageId(2));
        assert!(audit.is_all_finished());
        assert_eq!((audit.uncompleted(), audit.last_finish().ps(), audit.compared().get()), (0, 10, 0));
        assert_eq!(audit.failures().collect::<Vec<_>>(), [0, 1, 2].map(MessageId));
    }
}
