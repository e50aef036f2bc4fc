//! Where the payload of a data packet belongs, or why the packet is refused and what it draws then.

use bytes::Bytes;

use super::host_memory::{Access, Target};
use super::responder::{Arrival, Inbound};
use super::{MemoryKey, Nic, Piece, Service};
use crate::base::{MessageId, Octets, Psn, Qpn};
use crate::trace::{DropReason, FailureCause};
use crate::wire::{Peek, RocePacket, Verb};

/// Where a data packet belongs in its message.
pub struct Placement {
    pub target: Target,
    /// The message, if the packet ends it.
    pub completes: Option<Completion>,
    /// The message after this packet; `None` if the packet ends it.
    pub rest: Option<Inbound>,
    /// It uses up the receive that was posted first.
    pub takes_receive: bool,
    /// It is the first of its message.
    pub starts: bool,
}

/// A message of which the last packet has arrived.
#[derive(Clone, Debug)]
pub struct Completion {
    pub message: MessageId,
    pub verb: Verb,
    pub bytes: Octets,
    /// The receive of an application that it used.
    pub receive: Option<u64>,
    pub immediate: Option<u32>,
    pub solicited: bool,
}

/// Why the packet expected is not accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// It needs a receive, and none is posted.
    NotReady,
    /// For good.
    For(FailureCause),
}

impl Refusal {
    pub fn reason(self, service: Service) -> DropReason {
        match self {
            Self::NotReady if service.is_verbs() => DropReason::ReceiverNotReady,
            Self::NotReady => DropReason::RemoteAccess,
            Self::For(FailureCause::RefusedAccess | FailureCause::ReceiveProtection) => DropReason::RemoteAccess,
            Self::For(_) => DropReason::InvalidRequest,
        }
    }
}

impl From<FailureCause> for Refusal {
    fn from(cause: FailureCause) -> Self {
        Self::For(cause)
    }
}

impl Nic {
    /// Where the payload of the packet expected goes, or why it may not.
    pub(super) fn place(&self, qpn: Qpn, roce: &RocePacket) -> Result<Placement, Refusal> {
        let (opcode, payload) = (roce.bth.opcode, Octets::new(roce.payload.len() as u64));
        let (starts, ends, is_write) = (opcode.starts_message(), opcode.ends_message(), opcode.is_write());
        let queue_pair = &self.queue_pairs[&qpn];
        let service = queue_pair.connection.service;
        let Inbound { message, target, left, received, receive, .. } = match (starts, queue_pair.responder.inbound()) {
            (true, None) if is_write => self.begin_write(qpn, roce)?,
            (true, None) => self.begin_send(qpn)?,
            (false, Some(inbound)) if inbound.is_write == is_write => inbound.clone(),
            _ => return Err(FailureCause::RefusedRequest.into()),
        };
        // A WRITE says its length beforehand; a SEND may be shorter than the receive it lands in.
        let fits = payload <= left && (!ends || !is_write || payload == left);
        if !fits {
            let cause = if is_write { FailureCause::RefusedRequest } else { FailureCause::ReceiveTooShort };
            return Err(cause.into());
        }
        // An application may have taken its memory back since the message began.
        if service.is_verbs() && self.memory.check_target(service.domain(), &target, payload).is_err() {
            let cause = if is_write { FailureCause::RefusedAccess } else { FailureCause::ReceiveProtection };
            return Err(cause.into());
        }
        // The immediate data of a WRITE is handed over in a receive, of which nothing but its number is used.
        let hands_over = service.is_verbs() && is_write && opcode.has_immediate();
        let receive = match hands_over {
            true => Some(self.memory.next_receive(qpn).ok_or(Refusal::NotReady)?.clone()),
            false => receive,
        };
        let takes_receive = hands_over || (starts && !is_write);
        let received = received + payload;
        let completes = ends.then(|| Completion {
            message,
            verb: if is_write { Verb::Write } else { Verb::Send },
            bytes: received,
            receive: receive.as_ref().map(|receive| receive.id),
            immediate: roce.immediate,
            solicited: roce.bth.solicited,
        });
        let rest = (!ends).then(|| Inbound {
            message,
            target: target.clone().plus(payload),
            left: left - payload,
            received,
            is_write,
            receive,
        });
        Ok(Placement { target, completes, rest, takes_receive, starts })
    }

    fn begin_write(&self, qpn: Qpn, roce: &RocePacket) -> Result<Inbound, Refusal> {
        let reth = roce.reth.ok_or(FailureCause::RefusedRequest)?;
        let service = self.queue_pairs[&qpn].connection.service;
        let key = MemoryKey { address: reth.va, rkey: reth.rkey };
        let piece = Piece { key, length: Octets::new(u64::from(reth.length)) };
        // A WRITE of nothing touches no memory: verbs do not look at its key.
        let may = (service.is_verbs() && piece.length.is_zero())
            || self.memory.check(service.domain(), piece, Access::RemoteWrite).is_ok();
        if !may {
            return Err(FailureCause::RefusedAccess.into());
        }
        let message = self.arriving(qpn, key).ok_or(FailureCause::RefusedRequest)?;
        let target = Target::new([piece].into(), Access::RemoteWrite);
        Ok(Inbound { message, target, left: piece.length, received: Octets::ZERO, is_write: true, receive: None })
    }

    fn begin_send(&self, qpn: Qpn) -> Result<Inbound, Refusal> {
        let receive = self.memory.next_receive(qpn).ok_or(Refusal::NotReady)?.clone();
        let key = receive.pieces.first().map_or(MemoryKey { address: 0, rkey: 0 }, |piece| piece.key);
        let message = self.arriving(qpn, key).ok_or(FailureCause::RefusedRequest)?;
        let target = Target::new(receive.pieces.clone(), Access::LocalWrite);
        let receive = Some(receive).filter(|_| self.queue_pairs[&qpn].connection.service.is_verbs());
        Ok(Inbound { message, left: target.size(), target, received: Octets::ZERO, is_write: false, receive })
    }

    /// The message that begins to arrive. The memory of the scenario's messages says whose it is.
    fn arriving(&self, qpn: Qpn, key: MemoryKey) -> Option<MessageId> {
        let queue_pair = &self.queue_pairs[&qpn];
        match queue_pair.connection.service {
            Service::Scripted => self.memory.message_at(key.rkey),
            Service::Verbs { .. } => queue_pair.responder.announced(),
        }
    }

    /// What a packet draws that is not accepted. Scripted queue pairs keep silent.
    pub(super) fn refuse(&mut self, qpn: Qpn, psn: Psn, refusal: Refusal) {
        if !self.queue_pairs[&qpn].connection.service.is_verbs() {
            return;
        }
        match refusal {
            Refusal::NotReady => self.answer_not_ready(qpn, psn),
            Refusal::For(cause) => {
                self.answer_refused(qpn, psn, cause);
                self.fail_queue_pair(qpn, cause);
            }
        }
    }

    /// A request that InfiniBand has and this emulator does not: an application's queue pair says so to its peer.
    pub(super) fn refuse_foreign(&mut self, frame: &Bytes) {
        let Ok(peek) = Peek::of(frame) else { return };
        let Some(queue_pair) = self.queue_pairs.get(&peek.dest_qpn) else { return };
        let to_us = frame.starts_with(&self.address.mac.0) && peek.ip_dst == self.address.ip;
        let from_peer = peek.ip_src == queue_pair.connection.peer_address.ip;
        let is_served = queue_pair.connection.service.is_verbs() && queue_pair.failed.is_none();
        if !(peek.opcode.is_foreign_request() && to_us && from_peer && is_served) {
            return;
        }
        match queue_pair.responder.compare(peek.psn) {
            Arrival::Expected => self.refuse(peek.dest_qpn, peek.psn, FailureCause::RefusedRequest.into()),
            Arrival::Gap { first: true } => self.answer_gap(peek.dest_qpn, peek.psn),
            Arrival::Gap { first: false } | Arrival::Duplicate => {}
        }
    }
}
