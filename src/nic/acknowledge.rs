//! What a sender does with ACK, NAK and silence: retire, rewind, wait, complete.

use super::requester::AckEffect;
use super::{Alarm, Nic, Service};
use crate::base::{Psn, Qpn};
use crate::trace::{DropReason, EventKind, FailureCause, Verdict};
use crate::wire;

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
                self.note_retired(qpn, psn.minus(1), retired);
                self.rewind(qpn);
            }
            AckEffect::Stale => self.emit(EventKind::StaleAckIgnored { qpn, psn }),
            AckEffect::Ghost => {}
        }
    }

    /// What follows from an RNR NAK: back to the PSN it names, but not before the time of its code is over.
    pub(super) fn follow_rnr_nak(&mut self, qpn: Qpn, psn: Psn, timer: u8, effect: AckEffect) {
        let AckEffect::Retired(retired) = effect else { return self.follow_nak(qpn, psn, effect) };
        self.note_retired(qpn, psn.minus(1), retired);
        let queue_pair = self.queue_pair(qpn);
        let attempt = queue_pair.requester.count_rnr_nak();
        if let Service::Verbs { rnr_retry, .. } = queue_pair.connection.service
            && rnr_retry < Service::RNR_RETRY_FOR_EVER
            && attempt > u32::from(rnr_retry)
        {
            return self.fail_queue_pair(qpn, FailureCause::RnrRetryExceeded);
        }
        let until = self.now + wire::rnr_timer(timer);
        let wait = self.schedule(until, Alarm::RnrWait(qpn));
        self.queue_pair(qpn).requester.rnr_wait = Some(wait);
        self.rewind(qpn);
        self.emit(EventKind::RnrWaitStarted { qpn, psn, until, attempt });
    }

    pub(super) fn rnr_wait_is_over(&mut self, qpn: Qpn) {
        self.end_rnr_wait(qpn);
        self.update_readiness(qpn);
    }

    fn end_rnr_wait(&mut self, qpn: Qpn) {
        let requester = &mut self.queue_pair(qpn).requester;
        let (wait, psn) = (requester.rnr_wait.take(), requester.oldest());
        if wait.is_some() {
            self.cancel(wait);
            self.emit(EventKind::RnrWaitEnded { qpn, psn });
        }
    }

    /// What follows from a NAK that refuses the PSN it names for good.
    pub(super) fn follow_error_nak(&mut self, qpn: Qpn, psn: Psn, cause: FailureCause, effect: AckEffect) {
        let AckEffect::Retired(retired) = effect else { return self.follow_nak(qpn, psn, effect) };
        self.note_retired(qpn, psn.minus(1), retired);
        self.fail_queue_pair(qpn, cause);
    }

    pub(super) fn transport_timer_expired(&mut self, qpn: Qpn) {
        let queue_pair = self.queue_pair(qpn);
        let (service, requester) = (queue_pair.connection.service, &mut queue_pair.requester);
        requester.timer = None;
        let (oldest, timeouts) = (requester.oldest(), requester.count_timeout());
        self.emit(EventKind::TransportTimerExpired { qpn, oldest });
        if let Service::Verbs { retry, .. } = service
            && timeouts > u32::from(retry)
        {
            return self.fail_queue_pair(qpn, FailureCause::RetryExceeded);
        }
        self.rewind(qpn);
    }

    /// Back to the oldest outstanding PSN; that empties the window, so the timer stops.
    fn rewind(&mut self, qpn: Qpn) {
        let requester = &mut self.queue_pair(qpn).requester;
        let packets = requester.rewind();
        let to = requester.oldest();
        self.emit(EventKind::Rewound { qpn, to, packets });
        self.rewind_send_queue(qpn);
        self.stop_transport_timer(qpn);
        self.update_readiness(qpn);
    }

    /// After packets were retired by an ACK: the timer restarts or stops.
    fn packets_retired(&mut self, qpn: Qpn, up_to: Psn, retired: u32) {
        if retired == 0 {
            return;
        }
        self.note_retired(qpn, up_to, retired);
        if self.queue_pairs[&qpn].requester.outstanding() > 0 {
            self.start_transport_timer(qpn);
        } else {
            self.stop_transport_timer(qpn);
        }
    }

    /// Progress: what the peer was not ready for is behind it.
    fn note_retired(&mut self, qpn: Qpn, up_to: Psn, retired: u32) {
        if retired == 0 {
            return;
        }
        self.end_rnr_wait(qpn);
        let outstanding = self.queue_pairs[&qpn].requester.outstanding();
        self.emit(EventKind::PacketsRetired { qpn, up_to, retired, outstanding });
    }

    /// Completes the message if it is done, and lets the queue pair go on with it or with the next.
    fn advance(&mut self, qpn: Qpn) {
        if let Some(done) = self.queue_pair(qpn).requester.take_completed_message() {
            self.emit(EventKind::MessageCompleted { message: done.work.message, qpn });
            self.next_entry_has_its_turn(qpn);
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

    pub(super) fn stop_transport_timer(&mut self, qpn: Qpn) {
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
