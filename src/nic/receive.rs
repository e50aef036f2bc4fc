//! From the last bit of a frame to host memory.

use bytes::Bytes;

use super::host_memory::Target;
use super::placement::{Completion, Placement};
use super::responder::Arrival;
use super::transmit::{Outgoing, headline};
use super::{Alarm, Connection, Nic, PORT, Service, Upstream};
use crate::base::{Class, Octets, Psn, Qpn};
use crate::port::{Refresh, pause_time};
use crate::trace::{DropReason, EventKind, FailureCause, Headline, Queue, Verdict, WorkStatus};
use crate::wire::{self, Ecn, IcrcCheck, NakCode, Packet, PfcFrame, RocePacket, WireError};

/// An accepted data packet on its way to the host.
#[derive(Clone, Debug)]
pub struct ReceivedData {
    qpn: Qpn,
    psn: Psn,
    class: Class,
    charge: Octets,
    target: Target,
    pub payload: Bytes,
    completes: Option<Completion>,
}

/// What arrived, as far as every step needs it.
struct Arrived {
    packet: Headline,
    wire_len: Octets,
    frame: Bytes,
}

/// What a frame that cannot be trusted says it is, for the record only.
fn damaged_headline(frame: &Bytes) -> Headline {
    Packet::parse_with(frame, IcrcCheck::Ignore).map_or(Headline::UNREADABLE, |packet| headline(&packet))
}

impl Nic {
    pub(super) fn receive(&mut self, frame: Bytes, sent_wire_len: Octets) {
        let parsed = Packet::parse(&frame);
        let (packet, wire_len) = match &parsed {
            Ok(packet) => (headline(packet), packet.wire_len()),
            Err(_) => (damaged_headline(&frame), sent_wire_len),
        };
        let arrived = Arrived { packet, wire_len, frame };
        match parsed {
            Ok(Packet::Roce(roce)) => self.receive_roce(&arrived, roce),
            Ok(Packet::Pfc(pfc)) => self.receive_pfc(&arrived, &pfc),
            Err(error) => {
                self.judge(&arrived, Verdict::Dropped(DropReason::Malformed(error)));
                if matches!(error, WireError::UnsupportedOpcode(_)) {
                    self.refuse_foreign(&arrived.frame);
                }
            }
        }
    }

    fn judge(&mut self, arrived: &Arrived, verdict: Verdict) {
        let Arrived { packet, wire_len, ref frame } = *arrived;
        let occupancy = self.ingress_pools.get(packet.class).map_or(Octets::ZERO, |pool| pool.occupancy());
        let frame = frame.clone();
        self.emit(EventKind::FrameReceived { port: PORT, packet, wire_len, occupancy, verdict, frame });
    }

    /// Obeys what a PFC frame says of every class it names. The upper octet of its class vector is reserved: sent as 0
    /// and ignored on receipt, as IEEE 802.1Q has it, so that a frame with bits there is obeyed like any other. What the
    /// parser refuses (another destination, 802.3x, a frame cut short) never comes here: it is counted and ignored.
    fn receive_pfc(&mut self, arrived: &Arrived, pfc: &PfcFrame) {
        if pfc.enabled == 0 {
            return self.judge(arrived, Verdict::Dropped(DropReason::PauseOfNoClass));
        }
        self.judge(arrived, Verdict::Processed);
        self.obey(pfc);
    }

    /// Charge, find the queue pair, look at CE, compare the PSN: in this order.
    ///
    /// * Source: seeds/000 "Receiving a packet"; timing rules 5, 18 and 22.
    fn receive_roce(&mut self, arrived: &Arrived, roce: RocePacket) {
        if roce.eth_dst != self.address.mac || roce.ip_dst != self.address.ip {
            return self.judge(arrived, Verdict::Dropped(DropReason::WrongAddress));
        }
        let class = roce.class();
        let charge = arrived.wire_len - wire::FRAMING;
        self.check_pause(class, charge);
        let Some(pool) = self.ingress_pools.get_mut(class).filter(|pool| pool.fits(charge)) else {
            self.judge(arrived, Verdict::Dropped(DropReason::PoolFull));
            return self.report_violation(arrived.packet, class, charge);
        };
        pool.charge(charge);
        let is_data = roce.bth.opcode.is_request();
        if let Err(reason) = self.find_queue_pair(&roce, is_data) {
            self.judge(arrived, Verdict::Dropped(reason));
            return self.release_ingress(class, charge);
        }
        if is_data {
            self.receive_data(arrived, roce, charge);
        } else {
            self.receive_control(arrived, &roce);
            self.release_ingress(class, charge);
        }
    }

    /// The queue pair of a packet exists, and its peer sent the packet. A data packet may open an implicit one
    /// (model.md T3).
    fn find_queue_pair(&mut self, roce: &RocePacket, is_data: bool) -> Result<(), DropReason> {
        let qpn = roce.bth.dest_qpn;
        if let Some(queue_pair) = self.queue_pairs.get(&qpn) {
            let from_peer = roce.ip_src == queue_pair.connection.peer_address.ip;
            return match queue_pair.failed {
                _ if !from_peer => Err(DropReason::WrongAddress),
                Some(_) => Err(DropReason::QueuePairFailed),
                None => Ok(()),
            };
        }
        if !is_data {
            return Err(DropReason::NoQueuePairControl);
        }
        if !qpn.is_implicit() || roce.bth.psn != Psn::default() {
            return Err(DropReason::NoQueuePairData);
        }
        self.connect(Connection {
            qpn,
            peer_qpn: qpn,
            peer_address: super::Address { mac: roce.eth_src, ip: roce.ip_src },
            initial_psn: Psn::default(),
            peer_initial_psn: Psn::default(),
            data_class: roce.class(),
            control_class: self.config.control_class,
            service: Service::Scripted,
        });
        Ok(())
    }

    fn receive_data(&mut self, arrived: &Arrived, roce: RocePacket, charge: Octets) {
        let (qpn, psn, class) = (roce.bth.dest_qpn, roce.bth.psn, roce.class());
        let queue_pair = &self.queue_pairs[&qpn];
        let (arrival, service) = (queue_pair.responder.compare(psn), queue_pair.connection.service);
        let placement = match arrival {
            Arrival::Expected => Some(self.place(qpn, &roce)),
            _ => None,
        };
        let verdict = match (arrival, &placement) {
            (Arrival::Expected, Some(Err(refusal))) => Verdict::Dropped(refusal.reason(service)),
            (Arrival::Expected, _) => Verdict::Accepted,
            (Arrival::Duplicate, _) => Verdict::Duplicate,
            (Arrival::Gap { .. }, _) => Verdict::Dropped(DropReason::AfterNak),
        };
        self.judge(arrived, verdict);
        if roce.ecn == Ecn::Ce {
            self.congestion_seen(qpn, psn);
        }
        match (arrival, placement) {
            (Arrival::Expected, Some(Ok(placement))) => {
                let Placement { target, completes, rest, takes_receive, starts } = placement;
                if takes_receive {
                    self.memory.take_receive(qpn);
                }
                let queue_pair = self.queue_pair(qpn);
                if starts {
                    queue_pair.responder.take_announced();
                }
                queue_pair.responder.accept(rest);
                queue_pair.to_host += 1;
                let wants_ack = roce.wants_ack();
                let payload = roce.payload;
                self.received.push_back(ReceivedData { qpn, psn, class, charge, target, payload, completes });
                self.hand_to_host();
                self.acknowledge_packet(qpn, psn, wants_ack);
            }
            (Arrival::Duplicate, _) => {
                self.release_ingress(class, charge);
                self.acknowledge_packet(qpn, psn, roce.wants_ack());
            }
            (Arrival::Gap { first }, _) => {
                self.release_ingress(class, charge);
                if first {
                    self.answer_gap(qpn, psn);
                }
            }
            (Arrival::Expected, refused) => {
                self.release_ingress(class, charge);
                if let Some(Err(refusal)) = refused {
                    self.refuse(qpn, psn, refusal);
                }
            }
        }
    }

    /// Offers received packets to the PCIe transmit buffer, oldest first; an accepted one is no longer the ingress
    /// pool's.
    ///
    /// * Source: timing rule 6.
    pub(super) fn hand_to_host(&mut self) {
        while let Some(data) = self.received.pop_front() {
            let (qpn, psn, class, charge) = (data.qpn, data.psn, data.class, data.charge);
            let payload = Octets::new(data.payload.len() as u64);
            match self.upstream.offer(self.now, Upstream::Write(data), payload) {
                Ok(accepted) => self.upstream_accepted(accepted),
                Err(Upstream::Write(data)) => return self.received.push_front(data),
                Err(_) => unreachable!("a refused offer gives back what was offered"),
            }
            self.release_ingress(class, charge);
            let occupancy = self.ingress_pools.get(class).map_or(Octets::ZERO, |pool| pool.occupancy());
            self.emit(EventKind::HandedToHost { qpn, psn, class, payload, occupancy });
            self.check_resume(class, occupancy);
        }
    }

    /// The PCIe write of a packet has ended.
    pub(super) fn payload_written(&mut self, data: ReceivedData) {
        let ReceivedData { qpn, psn, target, payload, completes, .. } = data;
        let domain = self.queue_pairs[&qpn].connection.service.domain();
        let is_lost = self.memory.write(domain, &target, &payload).is_err();
        let size = Octets::new(payload.len() as u64);
        self.emit(EventKind::PayloadWritten { qpn, psn, payload: size });
        let queue_pair = self.queue_pair(qpn);
        queue_pair.partial_payload += size;
        queue_pair.to_host -= 1;
        queue_pair.has_lost_payload |= is_lost;
        if let Some(completion) = completes {
            self.message_written(qpn, completion);
        }
        if is_lost {
            self.fail_queue_pair(qpn, FailureCause::MemoryGone);
        }
        self.flush_receives(qpn);
    }

    /// The PCIe write of a message's last packet has ended.
    fn message_written(&mut self, qpn: Qpn, completion: Completion) {
        let Completion { message, verb, bytes, receive, immediate, solicited } = completion;
        let queue_pair = self.queue_pair(qpn);
        if std::mem::take(&mut queue_pair.has_lost_payload) {
            self.emit(EventKind::DeliveryFailed { message, qpn });
            if let Some(receive) = receive {
                let status = WorkStatus::LocalProtectionError;
                self.emit(EventKind::ReceiveFailed { qpn, receive, status });
            }
            return;
        }
        queue_pair.partial_payload -= bytes;
        self.emit(EventKind::MessageDelivered { message, qpn, bytes });
        if let Some(receive) = receive {
            self.emit(EventKind::ReceiveCompleted { qpn, receive, verb, bytes, immediate, solicited });
        }
    }

    /// A frame was dropped at a full pool: if its class has PFC, that should never have happened.
    fn report_violation(&mut self, packet: Headline, class: Class, charge: Octets) {
        if let (Some(pool), Some(_)) = (self.ingress_pools.get(class), &self.pause_senders[class.index()]) {
            let occupancy = pool.occupancy();
            let missing = occupancy + charge - pool.size();
            let reason = DropReason::PoolFull;
            self.emit(EventKind::LosslessViolated { port: PORT, packet, reason, occupancy, missing });
        }
    }

    fn release_ingress(&mut self, class: Class, charge: Octets) {
        self.ingress_pools.get_mut(class).expect("the packet was charged there").release(charge);
    }

    /// Before a packet is admitted or dropped: does it fill the pool to Xoff?
    fn check_pause(&mut self, class: Class, charge: Octets) {
        let Some(pool) = self.ingress_pools.get(class) else { return };
        let occupancy = pool.occupancy() + charge;
        let Some(sender) = &mut self.pause_senders[class.index()] else { return };
        if sender.on_arrival(occupancy) {
            self.send_pause(class, occupancy, false);
        }
    }

    fn send_pause(&mut self, class: Class, occupancy: Octets, refresh: bool) {
        let quanta = self.config.ingress.quanta[class.index()];
        self.emit(EventKind::PauseRequested { port: PORT, class, quanta, occupancy, refresh });
        self.queue_pfc(class, quanta);
        // The refresh counts from the instant the XOFF is queued (timing rule 8).
        let half = pause_time(quanta, self.config.data_rate, self.config.delay).half();
        self.refreshes[class.index()] = Some(self.schedule(self.now + half, Alarm::PauseRefresh(class)));
    }

    fn send_resume(&mut self, class: Class, occupancy: Octets) {
        self.emit(EventKind::ResumeRequested { port: PORT, class, occupancy });
        self.queue_pfc(class, 0);
        let refresh = self.refreshes[class.index()].take();
        self.cancel(refresh);
    }

    fn queue_pfc(&mut self, class: Class, quanta: u16) {
        let pfc = PfcFrame::pause(self.address.mac, class, quanta);
        self.queue_frame(Queue::Express, Outgoing::control(pfc.into()));
    }

    pub(super) fn refresh_pause(&mut self, class: Class) {
        let occupancy = self.ingress_pools.get(class).map_or(Octets::ZERO, |pool| pool.occupancy());
        match self.pause_senders[class.index()].as_mut().map(|sender| sender.on_refresh(occupancy)) {
            Some(Refresh::Pause) => self.send_pause(class, occupancy, true),
            Some(Refresh::Resume) => self.send_resume(class, occupancy),
            None => {}
        }
    }

    fn check_resume(&mut self, class: Class, occupancy: Octets) {
        if self.pause_senders[class.index()].as_mut().is_some_and(|sender| sender.on_release(occupancy)) {
            self.send_resume(class, occupancy);
        }
    }

    fn receive_control(&mut self, arrived: &Arrived, roce: &RocePacket) {
        let qpn = roce.bth.dest_qpn;
        let psn = roce.bth.psn;
        let is_verbs = self.queue_pairs[&qpn].connection.service.is_verbs();
        match roce.kind() {
            wire::PacketKind::Ack => {
                let effect = self.queue_pair(qpn).requester.acknowledge(psn);
                self.judge(arrived, effect.verdict());
                self.follow_ack(qpn, psn, effect);
            }
            wire::PacketKind::Nak(NakCode::PsnSequenceError) => {
                let effect = self.queue_pair(qpn).requester.retire_by_nak(psn);
                self.judge(arrived, effect.verdict());
                self.follow_nak(qpn, psn, effect);
            }
            wire::PacketKind::RnrNak(timer) if is_verbs => {
                let effect = self.queue_pair(qpn).requester.retire_by_rnr_nak(psn);
                self.judge(arrived, effect.verdict());
                self.follow_rnr_nak(qpn, psn, timer, effect);
            }
            wire::PacketKind::Nak(
                code @ (NakCode::InvalidRequest | NakCode::RemoteAccessError | NakCode::RemoteOperationalError),
            ) if is_verbs => {
                let cause = match code {
                    NakCode::RemoteAccessError => FailureCause::NakRemoteAccess,
                    NakCode::RemoteOperationalError => FailureCause::NakRemoteOperational,
                    _ => FailureCause::NakInvalidRequest,
                };
                let effect = self.queue_pair(qpn).requester.retire_by_nak(psn);
                self.judge(arrived, effect.verdict());
                self.follow_error_nak(qpn, psn, cause, effect);
            }
            wire::PacketKind::Cnp => {
                self.judge(arrived, Verdict::Processed);
                self.cnp_arrived(qpn);
            }
            _ => self.judge(arrived, Verdict::Dropped(DropReason::UnexpectedSyndrome)),
        }
    }
}
