//! What a receiver sends back: ACK and NAK. Both are made at the arrival of the packet that draws them, whether or not
//! its payload has reached the host (timing rule 5).

use super::ack::AckDecision;
use super::transmit::Outgoing;
use super::{Alarm, Nic};
use crate::base::{Psn, Qpn};
use crate::trace::{EventKind, Queue};
use crate::wire::{NakCode, RocePacket};

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

    /// The packet that reveals a gap draws the one NAK; what was held for acknowledgement is dropped with it.
    pub(super) fn answer_gap(&mut self, qpn: Qpn, got: Psn) {
        let queue_pair = self.queue_pair(qpn);
        queue_pair.responder.note_nak();
        queue_pair.responder.acks.on_nak();
        let timer = queue_pair.responder.acks.timer.take();
        let (expected, msn) = (queue_pair.responder.expected(), queue_pair.responder.msn());
        let connection = queue_pair.connection;
        let class = connection.control_class;
        let code = NakCode::PsnSequenceError;
        let packet = RocePacket::nak(&queue_pair.endpoints, class, connection.peer_qpn, expected, code, msn);
        self.cancel(timer);
        self.emit(EventKind::NakMade { qpn, expected, got });
        self.queue_frame(Queue::Class(class), Outgoing::control(packet.into()));
    }
}
