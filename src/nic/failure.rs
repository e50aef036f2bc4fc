//! Queue pairs in error: what is on its way runs out, what is posted is flushed, nothing new begins.

use super::{Nic, Receive};
use crate::base::Qpn;
use crate::trace::{EventKind, FailureCause, WorkStatus};

impl Nic {
    /// Puts a queue pair in error, for good. Frames that are queued still leave; payload that is being fetched is stale
    /// when it arrives; packets that were accepted still reach the host.
    pub(super) fn fail_queue_pair(&mut self, qpn: Qpn, cause: FailureCause) {
        let queue_pair = self.queue_pair(qpn);
        if queue_pair.failed.is_some() {
            return;
        }
        queue_pair.failed = Some(cause);
        let rnr_wait = queue_pair.requester.rnr_wait.take();
        let inbound = queue_pair.responder.abandon();
        self.cancel(rnr_wait);
        self.stop_transport_timer(qpn);
        self.drop_held_acks(qpn);
        self.keep_rate_timer(qpn);
        // Half a message is none: its receive ends with those that were not used.
        if let Some(receive) = inbound.and_then(|inbound| inbound.receive) {
            self.memory.give_receive_back(qpn, receive);
        }
        self.emit(EventKind::QueuePairFailed { qpn, cause });
        self.end_messages(qpn, cause.of_message());
        self.update_readiness(qpn);
        self.flush_receives(qpn);
    }

    /// What is posted on a queue pair in error ends at once.
    pub(super) fn flush_messages(&mut self, qpn: Qpn) {
        if self.queue_pairs[&qpn].failed.is_some() {
            self.end_messages(qpn, WorkStatus::WorkRequestFlushed);
        }
    }

    /// The oldest message ends so, those behind it are flushed.
    fn end_messages(&mut self, qpn: Qpn, oldest: WorkStatus) {
        let mut status = oldest;
        for message in self.queue_pair(qpn).requester.abandon() {
            self.emit(EventKind::MessageFailed { message, qpn, status });
            status = WorkStatus::WorkRequestFlushed;
        }
    }

    /// The host posts a receive.
    pub(super) fn post_receive(&mut self, qpn: Qpn, receive: Receive) {
        self.emit(EventKind::ReceivePosted { qpn, receive: receive.id });
        self.memory.post_receive(qpn, receive);
        self.flush_receives(qpn);
    }

    /// Ends the receives of a queue pair in error, once all that was accepted before has reached the host: receives end
    /// in the order in which they were posted.
    pub(super) fn flush_receives(&mut self, qpn: Qpn) {
        let queue_pair = self.queue_pair(qpn);
        let Some(cause) = queue_pair.failed.filter(|_| queue_pair.to_host == 0) else { return };
        let oldest = cause.of_receive();
        let mut status = if queue_pair.has_flushed { WorkStatus::WorkRequestFlushed } else { oldest };
        queue_pair.has_flushed = true;
        while let Some(Receive { id: receive, .. }) = self.memory.take_receive(qpn) {
            self.emit(EventKind::ReceiveFailed { qpn, receive, status });
            status = WorkStatus::WorkRequestFlushed;
        }
    }
}
