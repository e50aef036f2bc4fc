//! From a work request to a numbered packet: ready queue, reservation, fetch, PSN.

use bytes::Bytes;

use super::pcie::{Accepted, TransferEnd};
use super::ready_queue::Generation;
use super::requester::Fetch;
use super::segment::Segment as MessageSegment;
use super::transmit::Outgoing;
use super::{Alarm, Downstream, GENERATION_START, Nic, QpFetch, Upstream, WorkRequest};
use crate::base::{Class, Octets, Qpn};
use crate::trace::{EventKind, FailureCause, Queue};
use crate::wire::{self, Ecn, Reth, RocePacket, Segment};

impl Nic {
    /// The work request joins its queue pair, at once where doorbells are free.
    ///
    /// * Panics: if the queue pair does not exist (the scenario connects before it posts).
    pub(super) fn post(&mut self, qpn: Qpn, work: WorkRequest) {
        let WorkRequest { message, peer, verb, .. } = work;
        self.emit(EventKind::MessagePosted { message, peer, qpn, verb, bytes: work.size() });
        let blue_flame = if work.blue_flame { work.wqe_octets() } else { Octets::ZERO };
        self.queue_pair(qpn).requester.post(work);
        self.flush_messages(qpn);
        self.entry_posted(qpn, blue_flame);
        self.start_next_message(qpn);
    }

    /// Starts the next message if none is in progress and its entry is here. One that cannot be sent puts the queue pair in error.
    pub(super) fn start_next_message(&mut self, qpn: Qpn) {
        if let Some(cause) = self.cannot_start(qpn) {
            return self.fail_queue_pair(qpn, cause);
        }
        if let Some(message) = self.queue_pair(qpn).requester.start_next_message() {
            let started = EventKind::MessageStarted {
                message: message.work.message,
                qpn,
                first_psn: message.first.psn(),
                packets: message.packet_count,
            };
            self.emit(started);
        }
        self.update_readiness(qpn);
    }

    /// Why the message whose turn it is cannot be sent.
    fn cannot_start(&self, qpn: Qpn) -> Option<FailureCause> {
        let queue_pair = &self.queue_pairs[&qpn];
        let work = queue_pair.requester.next_message()?;
        if work.size() > WorkRequest::MAX_SIZE {
            return Some(FailureCause::MessageTooLong);
        }
        let checked = self.memory.check_source(queue_pair.connection.service.domain(), &work.source);
        checked.is_err().then_some(FailureCause::SourceProtection)
    }

    /// Puts the queue pair at the tail of the ready queue if it has become ready, takes it out if it no longer is, and
    /// leaves it in its place otherwise.
    pub(super) fn update_readiness(&mut self, qpn: Qpn) {
        let requester = &mut self.queue_pair(qpn).requester;
        let is_ready = requester.peek_segment().is_some();
        let was_ready = std::mem::replace(&mut requester.in_ready_queue, is_ready);
        if is_ready && !was_ready {
            self.ready.push(qpn);
            if self.generation == Generation::Idle {
                self.schedule_generation();
            }
        } else if was_ready && !is_ready {
            self.ready.remove(qpn);
        }
    }

    fn schedule_generation(&mut self) {
        self.generation = Generation::Starting;
        let runs_at = self.now + GENERATION_START;
        self.schedule(runs_at, Alarm::Generate);
        self.emit(EventKind::GenerationScheduled { runs_at });
    }

    /// Takes segments one after another until the ready queue is empty, a pool is full, or the PCIe buffer is.
    ///
    /// * Source: timing rules 1, 6 and 7.
    pub(super) fn generate(&mut self) {
        while let Some(qpn) = self.ready.head() {
            let queue_pair = self.queue_pairs.get_mut(&qpn).expect("a ready queue pair exists");
            let class = queue_pair.connection.data_class;
            let segment = queue_pair.requester.peek_segment().expect("a ready queue pair has a segment");
            let needed = segment.payload + wire::DATA_OVERHEAD;
            let pool = self.egress_pools.get_mut(class).expect("a scenario gives the data class an egress pool");
            if !pool.fits(needed) {
                let occupancy = pool.occupancy();
                self.generation = Generation::Stopped(class);
                self.emit(EventKind::GenerationStopped { class, qpn, occupancy, needed });
                return;
            }
            pool.charge(needed);
            let occupancy = pool.occupancy();
            let fetch = queue_pair.requester.take_segment().expect("the segment was there a moment ago");
            let came_along = self.config.send_queue.is_modelled()
                && queue_pair.requester.current().is_some_and(|message| message.work.is_inline());
            let has_more = queue_pair.requester.peek_segment().is_some();
            queue_pair.requester.in_ready_queue = has_more;
            self.ready.turn(has_more);
            let psn = segment.position.psn();
            self.emit(EventKind::SegmentReserved { qpn, psn, payload: segment.payload, class, occupancy });
            if segment.payload.is_zero() || came_along {
                // Nothing to fetch (timing rule 25), or it is in the NIC with its WQE.
                self.payload_arrived((qpn, fetch));
            } else if let Some(blocked) = self.request_payload((qpn, fetch)) {
                self.generation = Generation::Blocked(blocked);
                self.emit(EventKind::GenerationBlockedByPcie { qpn });
                return;
            }
        }
        self.generation = Generation::Idle;
        self.emit(EventKind::GenerationIdle);
    }

    /// Queues the read request; gives the fetch back if the PCIe transmit buffer has no room.
    fn request_payload(&mut self, fetch: QpFetch) -> Option<QpFetch> {
        let size = self.config.pcie.read_request_size;
        match self.upstream.offer_request(self.now, Upstream::ReadRequest(fetch), size) {
            Ok(accepted) => {
                self.upstream_accepted(accepted);
                None
            }
            Err(Upstream::ReadRequest(fetch)) => Some(fetch),
            Err(_) => unreachable!("a refused offer gives back what was offered"),
        }
    }

    pub(super) fn upstream_accepted(&mut self, accepted: Accepted) {
        if let Some(at) = accepted.transfer_ends {
            self.schedule(at, Alarm::UpstreamTransferEnd);
        }
    }

    /// A transfer towards the host has ended. The next one starts, which frees buffer space: received packets are
    /// offered it first, then a waiting read request.
    pub(super) fn upstream_transfer_ended(&mut self) {
        let TransferEnd { finished, transfer_ends } = self.upstream.transfer_ended(self.now);
        if let Some(at) = transfer_ends {
            self.schedule(at, Alarm::UpstreamTransferEnd);
        }
        match finished {
            // The host answers in the instant the request has arrived (timing rule 32).
            Some(Upstream::ReadRequest((qpn, fetch))) => {
                self.host_sends(Downstream::Payload((qpn, fetch)), fetch.segment.payload);
            }
            Some(Upstream::WqeRequest(request)) => self.host_sends(Downstream::Wqe(request), request.octets),
            Some(Upstream::Write(data)) => self.payload_written(data),
            None => {}
        }
        self.hand_to_host();
        self.ask_for_waiting_entries();
        self.unblock_generation();
    }

    fn unblock_generation(&mut self) {
        let Generation::Blocked(fetch) = self.generation else { return };
        if self.request_payload(fetch).is_none() {
            // Generation goes on in this instant, without another 80 ns.
            self.generation = Generation::Starting;
            self.schedule(self.now, Alarm::Generate);
        }
    }

    /// Queues a completion.
    fn host_sends(&mut self, content: Downstream, payload: Octets) {
        let accepted = self.downstream.offer(self.now, content, payload);
        self.downstream_accepted(accepted);
    }

    pub(super) fn downstream_accepted(&mut self, accepted: Result<Accepted, Downstream>) {
        let accepted = accepted.expect("the host's transmit buffer is not limited");
        if let Some(at) = accepted.transfer_ends {
            self.schedule(at, Alarm::DownstreamTransferEnd);
        }
    }

    pub(super) fn downstream_transfer_ended(&mut self) {
        let TransferEnd { finished, transfer_ends } = self.downstream.transfer_ended(self.now);
        if let Some(at) = transfer_ends {
            self.schedule(at, Alarm::DownstreamTransferEnd);
        }
        match finished {
            Some(Downstream::Payload((qpn, fetch))) => {
                let (psn, payload) = (fetch.segment.position.psn(), fetch.segment.payload);
                self.emit(EventKind::PayloadFetched { qpn, psn, payload });
                self.payload_arrived((qpn, fetch));
            }
            Some(Downstream::Doorbell(qpn, doorbell)) => self.doorbell_arrived(qpn, doorbell),
            Some(Downstream::Wqe(fetched)) => self.entry_arrived(fetched),
            None => {}
        }
    }

    /// The transport numbers the packet and queues it for its class, or discards a payload that a rewind or an
    /// acknowledgement has made useless, or that could not be read.
    fn payload_arrived(&mut self, (qpn, fetch): QpFetch) {
        let queue_pair = &self.queue_pairs[&qpn];
        let class = queue_pair.connection.data_class;
        if queue_pair.requester.is_stale(&fetch) {
            return self.discard_payload(qpn, class, &fetch);
        }
        let segment = fetch.segment;
        let message = queue_pair.requester.current().expect("payload that is not stale belongs to the message");
        let domain = queue_pair.connection.service.domain();
        let Ok(payload) = self.memory.read(domain, &message.work.source, segment.offset, segment.payload) else {
            self.discard_payload(qpn, class, &fetch);
            return self.fail_queue_pair(qpn, FailureCause::SourceProtection);
        };
        let queue_pair = self.queue_pair(qpn);
        let window_was_empty = queue_pair.requester.outstanding() == 0;
        let transmission = queue_pair.requester.number(&fetch);
        let frame = self.build_data_packet(qpn, segment, payload, transmission);
        self.emit(EventKind::PacketNumbered { qpn, psn: fetch.segment.position.psn(), transmission });
        if window_was_empty {
            self.start_transport_timer(qpn);
        }
        self.queue_frame(Queue::Class(class), frame);
    }

    fn discard_payload(&mut self, qpn: Qpn, class: Class, fetch: &Fetch) {
        let payload = fetch.segment.payload;
        let pool = self.egress_pools.get_mut(class).expect("the payload was reserved there");
        pool.release(payload + wire::DATA_OVERHEAD);
        let occupancy = pool.occupancy();
        let psn = fetch.segment.position.psn();
        self.emit(EventKind::PayloadDiscarded { qpn, psn, payload, class, occupancy });
        self.restart_after_release(class);
    }

    /// A stopped generation restarts when the pool that stopped it is at most half full.
    ///
    /// * Source: timing rule 7.
    pub(super) fn restart_after_release(&mut self, class: Class) {
        let half_empty = self.egress_pools.get(class).is_some_and(|pool| pool.is_half_empty());
        if self.generation == Generation::Stopped(class) && half_empty {
            self.schedule_generation();
        }
    }

    fn build_data_packet(&self, qpn: Qpn, segment: MessageSegment, payload: Bytes, transmission: u32) -> Outgoing {
        let queue_pair = &self.queue_pairs[&qpn];
        let message = queue_pair.requester.current().expect("a numbered packet belongs to the message in progress");
        let work = &message.work;
        let ecn = if self.config.enable_ecn { Ecn::Ect0 } else { Ecn::NotEct };
        let length = u32::try_from(work.size().get()).expect("a message is at most 2^31 octets");
        let connection = &queue_pair.connection;
        let mut packet = RocePacket::data(
            &queue_pair.endpoints,
            connection.data_class,
            ecn,
            Segment {
                verb: work.verb,
                first: segment.is_first,
                last: segment.is_last,
                dest_qpn: connection.peer_qpn,
                psn: segment.position.psn(),
                reth: Reth { va: work.remote.address, rkey: work.remote.rkey, length },
                immediate: work.immediate,
                payload,
            },
        );
        if self.config.strict_ib_flags {
            let opcode = packet.bth.opcode;
            packet.bth.solicited &= work.solicited && (opcode.is_send() || opcode.has_immediate());
        }
        let index = segment.position.since(message.first) as u32;
        Outgoing::data(packet.into(), qpn, transmission, (work.message, index))
    }
}
