//! What a receiver sends back: ACK and NAKs. All are made at the arrival of the packet that draws them, whether or not
//! its payload has reached the host (timing rule 5).

use super::ack::AckDecision;
use super::transmit::Outgoing;
use super::{Alarm, Nic, Service};
use crate::base::{Psn, Qpn};
use crate::trace::{EventKind, FailureCause, Queue};
use crate::wire::{self, Aeth, NakCode, RocePacket, Syndrome};

impl Nic {
    /// An in-order or duplicate packet: acknowledge it now, or hold the acknowledgement.
    pub(super) fn acknowledge_packet(&mut self, qpn: Qpn, psn: Psn, asks: bool) {
        let acks = &mut self.queue_pair(qpn).responder.acks;
        match acks.on_packet(asks) {
            AckDecision::Send => {
                self.send_ack(qpn);
                self.start_ack_timer(qpn);
            }
            AckDecision::Hold(held) => {
                let idle = acks.timer.is_none();
                self.emit(EventKind::AckHeld { qpn, psn, held });
                if idle {
                    self.start_ack_timer(qpn);
                }
            }
        }
    }

    pub(super) fn ack_delay_expired(&mut self, qpn: Qpn) {
        if self.queue_pair(qpn).responder.acks.on_timer() {
            self.send_ack(qpn);
        }
    }

    /// (Re)starts the acknowledgement timer.
    fn start_ack_timer(&mut self, qpn: Qpn) {
        let now = self.now;
        let acks = &mut self.queue_pair(qpn).responder.acks;
        let (running, expiry) = (acks.timer.take(), acks.expiry(now));
        self.cancel(running);
        let ticket = expiry.map(|at| self.schedule(at, Alarm::AckDelay(qpn)));
        self.queue_pair(qpn).responder.acks.timer = ticket;
    }

    fn send_ack(&mut self, qpn: Qpn) {
        let queue_pair = &self.queue_pairs[&qpn];
        let (responder, connection) = (&queue_pair.responder, &queue_pair.connection);
        // The highest PSN received in order.
        let (psn, msn, class) = (responder.expected().minus(1), responder.msn(), connection.control_class);
        let packet = RocePacket::ack(&queue_pair.endpoints, class, connection.peer_qpn, psn, msn);
        self.emit(EventKind::AckMade { qpn, psn, msn });
        self.queue_frame(Queue::Class(class), Outgoing::control(packet.into()));
    }

    /// The packet that reveals a gap draws the one NAK.
    pub(super) fn answer_gap(&mut self, qpn: Qpn, got: Psn) {
        let expected = self.queue_pairs[&qpn].responder.expected();
        self.send_nak(qpn, Syndrome::Nak(NakCode::PsnSequenceError), EventKind::NakMade { qpn, expected, got });
    }

    /// The packet expected needs a receive, and its application has posted none: it is to come again later.
    pub(super) fn answer_not_ready(&mut self, qpn: Qpn, psn: Psn) {
        let Service::Verbs { min_rnr_timer: timer, .. } = self.queue_pairs[&qpn].connection.service else { return };
        let made = EventKind::RnrNakMade { qpn, psn, wait: wire::rnr_timer(timer) };
        self.send_nak(qpn, Syndrome::RnrNak { timer }, made);
    }

    /// The packet expected is refused for good.
    pub(super) fn answer_refused(&mut self, qpn: Qpn, psn: Psn, cause: FailureCause) {
        let code = match cause {
            FailureCause::RefusedAccess => NakCode::RemoteAccessError,
            FailureCause::ReceiveProtection => NakCode::RemoteOperationalError,
            _ => NakCode::InvalidRequest,
        };
        self.send_nak(qpn, Syndrome::Nak(code), EventKind::ErrorNakMade { qpn, psn, cause });
    }

    /// A NAK of any kind names the PSN expected, and nothing behind it draws another one. What was held for
    /// acknowledgement is dropped with it.
    fn send_nak(&mut self, qpn: Qpn, syndrome: Syndrome, made: EventKind) {
        self.drop_held_acks(qpn);
        let queue_pair = self.queue_pair(qpn);
        queue_pair.responder.note_nak();
        let (expected, msn) = (queue_pair.responder.expected(), queue_pair.responder.msn());
        let connection = queue_pair.connection;
        let class = connection.control_class;
        let aeth = Aeth { syndrome, msn };
        let packet = RocePacket::answer(&queue_pair.endpoints, class, connection.peer_qpn, expected, aeth);
        self.emit(made);
        self.queue_frame(Queue::Class(class), Outgoing::control(packet.into()));
    }

    pub(super) fn drop_held_acks(&mut self, qpn: Qpn) {
        let acks = &mut self.queue_pair(qpn).responder.acks;
        acks.on_nak();
        let timer = acks.timer.take();
        self.cancel(timer);
    }
}
