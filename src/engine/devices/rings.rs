//! From the rings of an application to its NIC, and back.

use std::sync::Arc;

use bytes::Bytes;

use super::queue_pair::{Link, QueuePair, Refused, failed_receive};
use super::{Action, DOORBELL_LINES, Devices};
use crate::base::{Instant, MessageId, NodeId, Octets, Qpn};
use crate::nic::{self, MemoryKey, WorkRequest};
use crate::ring::control::Event;
use crate::ring::{CompletionOpcode, Cqe, Doorbell, Operation, Payload, Sge, Status, Wqe};
use crate::trace::{EventKind, FailureCause, WorkStatus};
use crate::wire::Verb;

impl Devices<'_> {
    /// Hears the doorbells that were rung.
    pub(super) fn hear(&mut self, index: usize, now: Instant) {
        // No more than the page holds: whoever rings meanwhile is heard with the next request.
        for _ in 0..DOORBELL_LINES {
            let Some(doorbells) = &mut self.applications[index].doorbells else { return };
            match doorbells.poll() {
                Ok(None) => break,
                Ok(Some(doorbell)) => {
                    let Doorbell { queue_pair, producer_index, blue_flame } = doorbell;
                    let qpn = Qpn::new(queue_pair);
                    match qpn.filter(|qpn| self.applications[index].queue_pairs.contains_key(qpn)) {
                        Some(qpn) => {
                            self.ring(index, qpn, producer_index, Octets::new(blue_flame.len() as u64), now);
                        }
                        // As from hardware; but it leaves a trace.
                        None => {
                            let node = self.applications[index].plan.node;
                            let event = EventKind::DoorbellUnheard { application: index as u16, queue_pair };
                            self.actions.push_back(Action::Tell { node, event });
                        }
                    }
                }
                // A page that has been tampered with has nothing to say any more: all that it could speak for ends.
                Err(_) => {
                    let qpns: Vec<_> = self.applications[index].queue_pairs.keys().copied().collect();
                    qpns.into_iter().for_each(|qpn| self.fail(index, qpn, FailureCause::BadDoorbell, now));
                    break;
                }
            }
        }
    }

    /// Looks for receives that were posted: they have no doorbells.
    pub(super) fn hear_all_receives(&mut self, index: usize, now: Instant) {
        let qpns: Vec<_> = self.applications[index].queue_pairs.keys().copied().collect();
        qpns.into_iter().for_each(|qpn| self.hear_receives(index, qpn, now));
    }

    fn ring(&mut self, index: usize, qpn: Qpn, producer_index: u32, blue_flame: Octets, now: Instant) {
        let node = self.applications[index].plan.node;
        let Some(queue_pair) = self.queue_pair(index, qpn) else { return };
        match queue_pair.announce(producer_index) {
            Ok(entries) => {
                let event = EventKind::DoorbellRung { qpn, producer_index, entries };
                self.actions.push_back(Action::Tell { node, event });
                self.fill(index, qpn, now);
                self.ring_at_nic(index, qpn, entries, blue_flame);
            }
            Err(_) => self.fail(index, qpn, FailureCause::BadDoorbell, now),
        }
    }

    /// The doorbell goes on to the NIC, which knows what it costs. Before there is a peer, doorbells are kept: they ring as
    /// one when there is.
    pub(super) fn ring_at_nic(&mut self, index: usize, qpn: Qpn, entries: u32, blue_flame: Octets) {
        let node = self.applications[index].plan.node;
        let Some(queue_pair) = self.queue_pair(index, qpn) else { return };
        if matches!(queue_pair.link, Link::Up { .. }) {
            self.actions.push_back(Action::Ring { node, qpn, entries, blue_flame });
        } else {
            queue_pair.rung_early += entries;
        }
    }

    /// Gives the NIC what it should have of a send queue.
    pub(super) fn fill(&mut self, index: usize, qpn: Qpn, now: Instant) {
        let node = self.applications[index].plan.node;
        loop {
            let message = MessageId(self.next_message);
            let Some(queue_pair) = self.queue_pair(index, qpn) else { return };
            let Link::Up { node: peer, qpn: peer_qpn } = queue_pair.link else { break };
            let Some(wqe) = queue_pair.next_request(message) else { break };
            let slot = queue_pair.send_slot();
            let Some(following) = self.next_message.checked_add(1) else {
                return self.fail(index, qpn, FailureCause::MessagesUsedUp, now);
            };
            self.next_message = following;
            let work = work_request(message, peer, wqe, slot);
            self.actions.push_back(Action::Post { node, qpn, peer_qpn, work });
        }
        let refused = self.queue_pair(index, qpn).and_then(QueuePair::refuse_oldest);
        if let Some((refused, cqe)) = refused {
            self.explain(index, qpn, refused, now);
            self.complete_send(index, qpn, cqe, now);
            self.fail(index, qpn, FailureCause::BadWorkRequest, now);
        }
        self.flush(index, qpn, now);
    }

    pub(super) fn hear_receives(&mut self, index: usize, qpn: Qpn, now: Instant) {
        let node = self.applications[index].plan.node;
        let Some(queue_pair) = self.queue_pair(index, qpn) else { return };
        if queue_pair.look_for_receives().is_err() {
            return self.fail(index, qpn, FailureCause::BadDoorbell, now);
        }
        loop {
            let id = self.next_receive;
            let Some(queue_pair) = self.queue_pair(index, qpn) else { return };
            if queue_pair.has_failed {
                break;
            }
            match queue_pair.next_receive() {
                None => break,
                Some(Ok(entry)) => {
                    let receive = nic::Receive { id, pieces: pieces(&entry.scatter) };
                    self.actions.push_back(Action::PostReceive { node, qpn, receive });
                    self.next_receive += 1;
                }
                // It cannot be carried out, and no later one before it.
                Some(Err(refused)) => {
                    self.explain(index, qpn, refused, now);
                    self.fail(index, qpn, FailureCause::BadWorkRequest, now);
                    break;
                }
            }
        }
        self.flush(index, qpn, now);
    }

    /// Says what is wrong with an entry.
    fn explain(&mut self, index: usize, qpn: Qpn, Refused { wr_id, why }: Refused, now: Instant) {
        self.bring(index, Event::EntryRefused { qpn: qpn.get(), wr_id, why: why.to_string() }, now);
    }

    /// A queue pair fails by what the device found out, rather than its NIC.
    fn fail(&mut self, index: usize, qpn: Qpn, cause: FailureCause, now: Instant) {
        let node = self.applications[index].plan.node;
        let Some(queue_pair) = self.queue_pair(index, qpn) else { return };
        match queue_pair.link {
            // The NIC knows it: it flushes what it has and says that the queue pair has failed.
            Link::Up { .. } => self.actions.push_back(Action::Fail { node, qpn, cause }),
            Link::None | Link::Calling(_) => {
                // Nobody can be connected to it any more.
                let link = std::mem::replace(&mut queue_pair.link, Link::None);
                let is_news = !std::mem::replace(&mut queue_pair.has_failed, true);
                if let Link::Calling(service) = link {
                    self.callers.remove(&service);
                }
                if is_news {
                    self.bring(index, Event::QpFailed { qpn: qpn.get(), cause: cause.text().into() }, now);
                }
                self.flush(index, qpn, now);
            }
        }
    }

    /// In error: entries that the NIC never had end here.
    fn flush(&mut self, index: usize, qpn: Qpn, now: Instant) {
        while let Some(cqe) = self.queue_pair(index, qpn).and_then(QueuePair::flush_send) {
            self.complete_send(index, qpn, cqe, now);
        }
        while let Some(cqe) = self.queue_pair(index, qpn).and_then(QueuePair::flush_receive) {
            self.complete_receive(index, qpn, cqe, now);
        }
    }

    /// Something has happened in a NIC: completions, and what the application is to know.
    pub(in crate::engine) fn note(&mut self, node: NodeId, event: &EventKind, now: Instant) {
        let Some(qpn) = queue_pair_of(event) else { return };
        let Some(&index) = self.owners.get(&(node, qpn)) else { return };
        match *event {
            EventKind::MessageCompleted { message, .. } => self.end_message(index, qpn, message, Status::Success, now),
            EventKind::MessageFailed { message, status, .. } => {
                self.end_message(index, qpn, message, said_in_cqe(status), now)
            }
            EventKind::ReceiveCompleted { verb, bytes, immediate, solicited, .. } => {
                let opcode = match verb {
                    Verb::Send => CompletionOpcode::Receive,
                    Verb::Write => CompletionOpcode::ReceiveWriteWithImmediate,
                };
                let length = bytes.get() as u32;
                self.end_receive(index, qpn, now, |wr_id| Cqe {
                    wr_id,
                    status: Status::Success,
                    opcode,
                    length,
                    immediate,
                    qpn,
                    solicited,
                });
            }
            EventKind::ReceiveFailed { status, .. } => {
                let status = said_in_cqe(status);
                self.end_receive(index, qpn, now, |wr_id| failed_receive(qpn, wr_id, status));
            }
            EventKind::Rewound { .. } => {
                let is_same = self.queue_pair(index, qpn).is_none_or(QueuePair::reread);
                if !is_same {
                    self.fail(index, qpn, FailureCause::SlotChanged, now);
                }
            }
            EventKind::QueuePairFailed { cause, .. } => {
                let Some(queue_pair) = self.queue_pair(index, qpn) else { return };
                queue_pair.has_failed = true;
                // No packet tells the peer of this one.
                if let (FailureCause::MemoryGone, &Link::Up { node, qpn }) = (cause, &queue_pair.link) {
                    self.endings.insert((now + self.goodbye, node, qpn));
                }
                self.bring(index, Event::QpFailed { qpn: qpn.get(), cause: cause.text().into() }, now);
                self.flush(index, qpn, now);
            }
            _ => {}
        }
    }

    fn end_message(&mut self, index: usize, qpn: Qpn, message: MessageId, status: Status, now: Instant) {
        let cqe = self.queue_pair(index, qpn).and_then(|queue_pair| queue_pair.finish_send(message, status));
        if let Some(cqe) = cqe {
            self.complete_send(index, qpn, cqe, now);
        }
        self.fill(index, qpn, now);
    }

    fn end_receive(&mut self, index: usize, qpn: Qpn, now: Instant, completion: impl FnOnce(u64) -> Cqe) {
        let cqe = self.queue_pair(index, qpn).and_then(|queue_pair| queue_pair.finish_receive(completion));
        if let Some(cqe) = cqe {
            self.complete_receive(index, qpn, cqe, now);
        }
    }

    fn complete_send(&mut self, index: usize, qpn: Qpn, cqe: Cqe, now: Instant) {
        if let Some(cq) = self.queue_pair(index, qpn).map(|queue_pair| queue_pair.send_cq) {
            self.complete(index, cq, cqe, now);
        }
    }

    fn complete_receive(&mut self, index: usize, qpn: Qpn, cqe: Cqe, now: Instant) {
        if let Some(cq) = self.queue_pair(index, qpn).map(|queue_pair| queue_pair.receive_cq) {
            self.complete(index, cq, cqe, now);
        }
    }

    fn complete(&mut self, index: usize, cq: u32, cqe: Cqe, now: Instant) {
        let application = &mut self.applications[index];
        let Some(queue) = application.completion_queues.get_mut(&cq).filter(|queue| !queue.has_overrun) else { return };
        if queue.push(&cqe).is_ok() {
            if application.awaits(cq, &cqe) {
                self.set_due(index, Some(now));
            }
            return;
        }
        let uses = |queue_pair: &QueuePair| queue_pair.send_cq == cq || queue_pair.receive_cq == cq;
        let users: Vec<_> = application.queue_pairs.values().filter(|qp| uses(qp)).map(|qp| qp.qpn).collect();
        self.bring(index, Event::CqOverrun { cq }, now);
        users.into_iter().for_each(|qpn| self.fail(index, qpn, FailureCause::CqOverrun, now));
    }
}

fn work_request(message: MessageId, peer: NodeId, wqe: Wqe, slot: Octets) -> WorkRequest {
    let (verb, remote) = match wqe.operation {
        Operation::Send { .. } => (Verb::Send, MemoryKey { address: 0, rkey: 0 }),
        Operation::Write { remote_address: address, rkey, .. } => (Verb::Write, MemoryKey { address, rkey }),
    };
    let source = match wqe.payload {
        Payload::Inline(octets) => nic::Source::Inline(Bytes::copy_from_slice(&octets)),
        Payload::Scatter(list) => nic::Source::Gather(pieces(&list)),
    };
    let (immediate, solicited) = (wqe.operation.immediate(), wqe.solicited);
    let (slot, blue_flame) = (Some(slot), false);
    WorkRequest { message, peer, verb, source, remote, immediate, solicited, slot, blue_flame }
}

fn pieces(list: &[Sge]) -> Arc<[nic::Piece]> {
    let piece = |sge: &Sge| nic::Piece {
        key: MemoryKey { address: sge.address, rkey: sge.lkey },
        length: Octets::new(u64::from(sge.length)),
    };
    list.iter().map(piece).collect()
}

fn queue_pair_of(event: &EventKind) -> Option<Qpn> {
    match *event {
        EventKind::MessageCompleted { qpn, .. }
        | EventKind::MessageFailed { qpn, .. }
        | EventKind::ReceiveCompleted { qpn, .. }
        | EventKind::ReceiveFailed { qpn, .. }
        | EventKind::Rewound { qpn, .. }
        | EventKind::QueuePairFailed { qpn, .. } => Some(qpn),
        _ => None,
    }
}

fn said_in_cqe(status: WorkStatus) -> Status {
    match status {
        WorkStatus::LocalLengthError => Status::LocalLengthError,
        WorkStatus::LocalProtectionError => Status::LocalProtectionError,
        WorkStatus::RemoteInvalidRequestError => Status::RemoteInvalidRequest,
        WorkStatus::RemoteAccessError => Status::RemoteAccessError,
        WorkStatus::RemoteOperationalError => Status::RemoteOperationError,
        WorkStatus::RetryExceeded => Status::RetryExceeded,
        WorkStatus::RnrRetryExceeded => Status::RnrRetryExceeded,
        WorkStatus::WorkRequestFlushed => Status::WorkRequestFlushed,
    }
}
