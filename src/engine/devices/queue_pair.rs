//! A queue pair of an application: its two rings, and what the NIC has of them.

use std::collections::VecDeque;

use arrayvec::ArrayVec;

use super::Memory;
use crate::base::{MessageId, NodeId, Octets, Qpn};
use crate::ring::{
    CompletionOpcode, Consumer, Cqe, EntryError, MAX_SLOT, Operation, ReceiveEntry, RingError, Status, Wqe,
};

/// Entries of a send queue that the NIC has at once, at least: the one it carries out, and some ahead so that it never waits
/// for the next. All others stay in their slots.
const WINDOW: usize = 16;

#[derive(Debug)]
pub(super) struct QueuePair {
    pub qpn: Qpn,
    pub send_cq: u32,
    pub receive_cq: u32,
    pub min_rnr_timer: u8,
    pub rnr_retry: u8,
    pub retry: u8,
    pub link: Link,
    /// Of the memory of both rings.
    pub octets: usize,
    /// In error: what is posted is flushed.
    pub has_failed: bool,
    /// Entries that were rung for before there was a peer.
    pub rung_early: u32,
    send: Consumer<Memory>,
    /// `WINDOW`, or as many as the NIC may fetch.
    window: usize,
    sending: VecDeque<Sending>,
    /// The number of the entry behind those, if it cannot be carried out. Nothing is read beyond it.
    refused: Option<Refused>,
    receive: Consumer<Memory>,
    /// The numbers of the receives that the NIC has.
    receiving: VecDeque<u64>,
    /// As `refused`, of the receive queue.
    refused_receive: Option<u64>,
}

/// Whether there is a peer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Link {
    None,
    /// Waiting for another one under this name.
    Calling(String),
    Up {
        node: NodeId,
        qpn: Qpn,
    },
}

/// An entry that cannot be carried out.
#[derive(Clone, Copy, Debug)]
pub(super) struct Refused {
    pub wr_id: u64,
    pub why: EntryError,
}

/// An entry of the send queue that the NIC has.
#[derive(Debug)]
struct Sending {
    message: MessageId,
    entry: Entry,
    /// The slot as it was read, to be compared when it is read again.
    slot: ArrayVec<u8, MAX_SLOT>,
}

/// What a completion says of the entry.
#[derive(Clone, Copy, Debug)]
struct Entry {
    wr_id: u64,
    opcode: CompletionOpcode,
    length: u32,
    signaled: bool,
}

impl QueuePair {
    /// * `prefetch`: entries that the NIC fetches ahead.
    pub(super) fn new(
        qpn: Qpn,
        send: Consumer<Memory>,
        receive: Consumer<Memory>,
        asked: &super::Asked,
        prefetch: u32,
        octets: usize,
    ) -> Self {
        Self {
            qpn,
            send_cq: asked.send_cq,
            receive_cq: asked.receive_cq,
            min_rnr_timer: asked.min_rnr_timer,
            rnr_retry: asked.rnr_retry,
            retry: asked.retry,
            link: Link::None,
            octets,
            has_failed: false,
            rung_early: 0,
            send,
            window: WINDOW.max(1 + prefetch as usize),
            sending: VecDeque::new(),
            refused: None,
            receive,
            receiving: VecDeque::new(),
            refused_receive: None,
        }
    }

    /// A doorbell rang; returns how many entries are new.
    pub(super) fn announce(&mut self, producer_index: u32) -> Result<u32, RingError> {
        self.send.announce(producer_index)
    }

    /// Octets of a slot of its send queue.
    pub(super) fn send_slot(&self) -> Octets {
        Octets::new(self.send.geometry().slot_octets() as u64)
    }

    /// The next work request that the NIC should have, which is then `message`.
    pub(super) fn next_request(&mut self, message: MessageId) -> Option<Wqe> {
        let may_go = matches!(self.link, Link::Up { .. }) && !self.has_failed && self.refused.is_none();
        if !may_go || self.sending.len() == self.window {
            return None;
        }
        let mut buffer = [0; MAX_SLOT];
        let slot = self.send.fetch(&mut buffer)?;
        let read = Wqe::decode(slot).and_then(|wqe| Ok((wqe.payload.length()?, wqe)));
        match read {
            Ok((length, wqe)) => {
                let opcode = match wqe.operation {
                    Operation::Send { .. } => CompletionOpcode::Send,
                    Operation::Write { .. } => CompletionOpcode::Write,
                };
                let entry = Entry { wr_id: wqe.wr_id, opcode, length, signaled: wqe.signaled };
                let slot = slot.iter().copied().collect();
                self.sending.push_back(Sending { message, entry, slot });
                Some(wqe)
            }
            Err(why) => {
                self.refused = Some(Refused { wr_id: Wqe::wr_id(slot), why });
                None
            }
        }
    }

    /// The oldest entry is one that cannot be carried out: its completion says so, and the queue pair is in error.
    pub(super) fn refuse_oldest(&mut self) -> Option<(Refused, Cqe)> {
        if self.has_failed || !self.sending.is_empty() {
            return None;
        }
        let refused = self.refused.take()?;
        self.has_failed = true;
        Some((refused, self.give_up(refused.wr_id, Status::LocalQpOperationError)?))
    }

    /// Reads again what the NIC has (specification R2). `false` if a slot has changed meanwhile: nothing can be rebuilt from
    /// it.
    pub(super) fn reread(&mut self) -> bool {
        self.send.rewind();
        let mut buffer = [0; MAX_SLOT];
        let mut is_same = true;
        for sending in &self.sending {
            is_same &= self.send.fetch(&mut buffer) == Some(&sending.slot[..]);
        }
        if self.refused.is_some() {
            self.send.skip();
        }
        is_same
    }

    /// The oldest entry that the NIC has is done with: its slot is free, and this is its completion, if it gets one.
    pub(super) fn finish_send(&mut self, message: MessageId, status: Status) -> Option<Cqe> {
        let sending = self.sending.pop_front()?;
        assert!(sending.message == message, "messages of a queue pair end in the order in which they were posted");
        self.send.complete().expect("what the NIC has was fetched");
        self.completion(sending.entry, status)
    }

    /// In error: the next entry that the NIC never had, with its completion.
    pub(super) fn flush_send(&mut self) -> Option<Cqe> {
        if !self.has_failed || !self.sending.is_empty() {
            return None;
        }
        let mut buffer = [0; MAX_SLOT];
        let wr_id = match self.refused.take() {
            Some(refused) => refused.wr_id,
            None => Wqe::wr_id(self.send.fetch(&mut buffer)?),
        };
        self.give_up(wr_id, Status::WorkRequestFlushed)
    }

    fn give_up(&mut self, wr_id: u64, status: Status) -> Option<Cqe> {
        self.send.complete().expect("it was fetched");
        self.completion(Entry { wr_id, opcode: CompletionOpcode::Send, length: 0, signaled: true }, status)
    }

    fn completion(&self, entry: Entry, status: Status) -> Option<Cqe> {
        let Entry { wr_id, opcode, length, signaled } = entry;
        let qpn = self.qpn;
        let cqe = Cqe { wr_id, status, opcode, length, immediate: None, qpn, solicited: false };
        // What goes wrong is always told.
        (signaled || status != Status::Success).then_some(cqe)
    }

    /// Looks for receives that were posted since the last look.
    pub(super) fn look_for_receives(&mut self) -> Result<u32, RingError> {
        self.receive.refresh()
    }

    /// The next receive that the NIC should have.
    ///
    /// * Errors: it cannot be carried out, and none behind it can. The queue pair is to fail.
    pub(super) fn next_receive(&mut self) -> Option<Result<ReceiveEntry, Refused>> {
        let may_go = matches!(self.link, Link::Up { .. }) && !self.has_failed && self.refused_receive.is_none();
        if !may_go {
            return None;
        }
        let mut buffer = [0; MAX_SLOT];
        let slot = self.receive.fetch(&mut buffer)?;
        let wr_id = ReceiveEntry::wr_id(slot);
        let entry = ReceiveEntry::decode(slot);
        match entry {
            Ok(_) => self.receiving.push_back(wr_id),
            Err(_) => self.refused_receive = Some(wr_id),
        }
        Some(entry.map_err(|why| Refused { wr_id, why }))
    }

    /// The oldest receive is done with.
    pub(super) fn finish_receive(&mut self, completion: impl FnOnce(u64) -> Cqe) -> Option<Cqe> {
        let wr_id = self.receiving.pop_front()?;
        self.receive.complete().expect("what the NIC has was fetched");
        Some(completion(wr_id))
    }

    /// In error: the next receive that the NIC never had, with its completion.
    pub(super) fn flush_receive(&mut self) -> Option<Cqe> {
        if !self.has_failed || !self.receiving.is_empty() {
            return None;
        }
        let mut buffer = [0; MAX_SLOT];
        let (wr_id, status) = match self.refused_receive.take() {
            Some(wr_id) => (wr_id, Status::LocalQpOperationError),
            None => (ReceiveEntry::wr_id(self.receive.fetch(&mut buffer)?), Status::WorkRequestFlushed),
        };
        self.receive.complete().expect("it was fetched");
        Some(failed_receive(self.qpn, wr_id, status))
    }
}

/// The completion of a receive that ended without a message.
pub(super) fn failed_receive(qpn: Qpn, wr_id: u64, status: Status) -> Cqe {
    let opcode = CompletionOpcode::Receive;
    Cqe { wr_id, status, opcode, length: 0, immediate: None, qpn, solicited: false }
}
