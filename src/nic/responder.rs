//! The receiving half of a queue pair: the PSN expected, the message being received, go-back-N without a reorder
//! buffer.

use std::collections::VecDeque;

use super::ack::AckCoalescer;
use super::{Receive, Target};
use crate::base::{MessageId, Octets, Psn};

/// State of one direction of a connection at its receiving end.
#[derive(Clone, Debug)]
pub struct Responder {
    expected: Psn,
    /// A NAK was sent and the PSN it named has not arrived yet.
    nak_sent: bool,
    /// Messages completed, modulo 2²⁴.
    msn: u32,
    inbound: Option<Inbound>,
    /// Messages that the peer's application has posted and that have not begun to arrive. A packet does not say whose it
    /// is, but they come in the order in which they were posted.
    announced: VecDeque<MessageId>,
    pub acks: AckCoalescer,
}

/// A message of which the first packet has arrived.
#[derive(Clone, Debug)]
pub struct Inbound {
    pub message: MessageId,
    /// Where its next payload goes.
    pub target: Target,
    /// Octets still to come.
    pub left: Octets,
    /// Octets that have come.
    pub received: Octets,
    pub is_write: bool,
    /// The receive that it uses.
    pub receive: Option<Receive>,
}

/// How the PSN of a data packet compares with the one expected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arrival {
    Expected,
    Duplicate,
    /// Behind a gap; `first` if it is the one that reveals it and draws the NAK.
    Gap {
        first: bool,
    },
}

impl Responder {
    pub fn new(initial: Psn, acks: AckCoalescer) -> Self {
        Self { expected: initial, nak_sent: false, msn: 0, inbound: None, announced: VecDeque::new(), acks }
    }

    pub fn compare(&self, psn: Psn) -> Arrival {
        match psn.since(self.expected) {
            0 => Arrival::Expected,
            ..0 => Arrival::Duplicate,
            1.. => Arrival::Gap { first: !self.nak_sent },
        }
    }

    pub fn inbound(&self) -> Option<&Inbound> {
        self.inbound.as_ref()
    }

    /// The message in progress will not be finished.
    pub fn abandon(&mut self) -> Option<Inbound> {
        self.inbound.take()
    }

    /// The peer's application has posted a message.
    pub fn announce(&mut self, message: MessageId) {
        self.announced.push_back(message);
    }

    /// The message that begins next.
    pub fn announced(&self) -> Option<MessageId> {
        self.announced.front().copied()
    }

    /// That message has begun.
    pub fn take_announced(&mut self) {
        self.announced.pop_front();
    }

    /// Accepts the packet expected. `rest` is what its message still needs after it; `None` ends the message.
    pub fn accept(&mut self, rest: Option<Inbound>) {
        self.expected = self.expected.plus(1);
        self.nak_sent = false;
        if rest.is_none() {
            self.msn = (self.msn + 1) & 0xff_ffff;
        }
        self.inbound = rest;
    }

    pub fn note_nak(&mut self) {
        self.nak_sent = true;
    }

    pub fn expected(&self) -> Psn {
        self.expected
    }

    pub fn msn(&self) -> u32 {
        self.msn
    }
}
