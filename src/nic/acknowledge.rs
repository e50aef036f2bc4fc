//! What a sender does with ACK, NAK and silence: retire, rewind, complete.

use super::requester::AckEffect;
use super::{Alarm, Nic};
use crate::base::{Psn, Qpn};
use crate::trace::{DropReason, EventKind, Verdict};

impl Nic {
    /// What follows from an ACK, once it has had its effect on the window.
    pub(super) fn follow_ack(&mut self, qpn: Qpn, psn: Psn, effect: AckEffect) {
        match effect {
            AckEffect::Retired(retired) => {
                self.packets_retired(qpn, psn, retired);
                self.advance(qpn);
            }
            AckEffect::Stale => self.emit(EventKind::StaleAckIgnored { qpn, psn }),
            AckEffect::Ghost => {}
        }
    }

    /// What follows from a NAK, once it has retired what is below the PSN it names: back to that PSN.
    pub(super) fn follow_nak(&mut self, qpn: Qpn, psn: Psn, effect: AckEffect) {
        match effect {
            AckEffect::Retired(retired) => {
                if retired > 0 {
                    self.emit_retired(qpn, psn.minus(1), retired);
                }
                self.rewind(qpn);
            }
            AckEffect::Stale => self.emit(EventKind::StaleAckIgnored { qpn, psn }),
            AckEffect::Ghost => {}
        }
    }

    pub(super) fn transport_timer_expired(&mut self, qpn: Qpn) {
        let requester = &mut self.queue_pair(qpn).requester;
        requester.timer = None;
        let oldest = requester.oldest();
        self.emit(EventKind::TransportTimerExpired { qpn, oldest });
        self.rewind(qpn);
    }

    /// Back to the oldest outstanding PSN; that empties the window, so the timer stops.
    fn rewind(&mut self, qpn: Qpn) {
        let requester = &mut self.queue_pair(qpn).requester;
        let packets = requester.rewind();
        let to = requester.oldest();
        self.emit(EventKind::Rewound { qpn, to, packets });
        self.stop_transport_timer(qpn);
        self.update_readiness(qpn);
    }

    /// After packets were retired by an ACK: the timer restarts or stops.
    fn packets_retired(&mut self, qpn: Qpn, up_to: Psn, retired: u32) {
        if retired == 0 {
            return;
        }
        self.emit_retired(qpn, up_to, retired);
        if self.queue_pairs[&qpn].requester.outstanding() > 0 {
            self.start_transport_timer(qpn);
        } else {
            self.stop_transport_timer(qpn);
        }
    }

    fn emit_retired(&mut self, qpn: Qpn, up_to: Psn, retired: u32) {
        let outstanding = self.queue_pairs[&qpn].requester.outstanding();
        self.emit(EventKind::PacketsRetired { qpn, up_to, retired, outstanding });
    }

    /// Completes the message if it is done, and lets the queue pair go on with it or with the next.
    fn advance(&mut self, qpn: Qpn) {
        if let Some(done) = self.queue_pair(qpn).requester.take_completed_message() {
            self.emit(EventKind::MessageCompleted { message: done.work.message, qpn });
            self.update_readiness(qpn);
            self.start_next_message(qpn);
        } else {
            self.update_readiness(qpn);
        }
    }

    /// (Re)starts the transport timer.
    pub(super) fn start_transport_timer(&mut self, qpn: Qpn) {
        let expires_at = self.now + self.config.retransmit_timeout;
        let ticket = self.schedule(expires_at, Alarm::Retransmit(qpn));
        let running = self.queue_pair(qpn).requester.timer.replace(ticket);
        self.cancel(running);
        self.emit(EventKind::TransportTimerStarted { qpn, expires_at });
    }

    fn stop_transport_timer(&mut self, qpn: Qpn) {
        let running = self.queue_pair(qpn).requester.timer.take();
        if running.is_some() {
            self.cancel(running);
            self.emit(EventKind::TransportTimerStopped { qpn });
        }
    }
}

impl AckEffect {
    pub(super) fn verdict(self) -> Verdict {
        match self {
            Self::Ghost => Verdict::Dropped(DropReason::GhostAck),
            Self::Stale => Verdict::Stale,
            Self::Retired(_) => Verdict::Processed,
        }
    }
}
