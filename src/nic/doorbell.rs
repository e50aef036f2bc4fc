//! From a post to an entry in the NIC, where doorbells are modelled: MMIO writes, WQE fetches, BlueFlame.
//!
//! ```text
//!   host ── doorbell, 64 B ───────────────────► NIC          one transfer of 64 + 34 octets
//!   host ◄── read request ───────────────────── NIC          one per WQE, as for payload
//!   host ── completion, the WQE's slot ───────► NIC
//!
//!   host ── doorbell, 64 B, WQE, 64 B each ───► NIC          BlueFlame: no fetch
//! ```
//!
//! What is decided here:
//! * All of it waits its turn in the one queue of its direction (timing rule 2), among payload and its requests. Where the
//!   transmit buffer towards the host is full, received data go first, then requests for WQEs, then requests for payload,
//!   which generation would otherwise put in as fast as room comes free.
//! * A BlueFlame post is its doorbell line and the WQE behind it, as applications write it (see `ring`): a WQE here names
//!   neither queue pair nor producer index. The lines are one message of the link, a transfer each.
//! * Requests for entries leave as soon as a doorbell is heard, an entry has ended or the read position went back.
//! * A rewind throws away all entries, and they are fetched again, from their slots.
//!
//! * Source: model.md R1 to R4.

use super::pcie::on_link;
use super::send_queue::{Doorbell, SendQueue, WqeFetch};
use super::{Downstream, Nic, Upstream};
use crate::base::{Octets, Qpn};
use crate::ring::LINE;
use crate::trace::{EventKind, FailureCause};

/// Doorbells of one queue pair on their way at once, more than a doorbell page has lines: an application that rings on
/// without letting time pass is up to no good.
const RINGING_MAX: u32 = 65_536;

/// An entry that was asked for: as a request on its way to the host, and as the completion from there.
#[derive(Clone, Copy, Debug)]
pub struct WqeRequest {
    qpn: Qpn,
    fetch: WqeFetch,
    /// Of its slot.
    pub octets: Octets,
}

impl Nic {
    fn send_queue(&mut self, qpn: Qpn) -> Option<&mut SendQueue> {
        let queue_pair = self.queue_pair(qpn);
        queue_pair.requester.send_queue.as_mut().filter(|_| queue_pair.failed.is_none())
    }

    /// An entry was posted. A scenario's host rings for it; an application may have rung before.
    ///
    /// * `blue_flame`: its octets, if they are to travel with the doorbell.
    pub(super) fn entry_posted(&mut self, qpn: Qpn, blue_flame: Octets) {
        if self.send_queue(qpn).is_some() {
            let blue_flame = self.limit_blue_flame(qpn, blue_flame);
            self.ring_for_posts(qpn, blue_flame);
            self.ask_for_entries(qpn);
        }
    }

    /// The host of a scenario rings for what it has posted: for a BlueFlame post always, and for others unless it is
    /// ringing already.
    fn ring_for_posts(&mut self, qpn: Qpn, blue_flame: Octets) {
        if self.queue_pairs[&qpn].connection.service.is_verbs() {
            return;
        }
        let Some(send_queue) = self.send_queue(qpn) else { return };
        let entries = send_queue.unannounced();
        if entries > 0 && (!blue_flame.is_zero() || send_queue.ringing() == 0) {
            self.post_doorbell(qpn, entries, blue_flame);
        }
    }

    /// An application rings.
    pub(super) fn application_rings(&mut self, qpn: Qpn, entries: u32, blue_flame: Octets) {
        let Some(send_queue) = self.send_queue(qpn) else { return };
        if send_queue.ringing() == RINGING_MAX {
            return self.fail_queue_pair(qpn, FailureCause::BadDoorbell);
        }
        let blue_flame = self.limit_blue_flame(qpn, blue_flame);
        self.post_doorbell(qpn, entries, blue_flame);
    }

    /// A WQE that is too long for BlueFlame is told of like any other, and fetched.
    fn limit_blue_flame(&mut self, qpn: Qpn, wqe: Octets) -> Octets {
        if wqe <= self.config.send_queue.blue_flame_max {
            return wqe;
        }
        self.emit(EventKind::BlueFlameFellBack { qpn, wqe });
        Octets::ZERO
    }

    /// A doorbell enters the link, and behind it the WQE of a BlueFlame post.
    fn post_doorbell(&mut self, qpn: Qpn, entries: u32, blue_flame: Octets) {
        let Some(send_queue) = self.send_queue(qpn) else { return };
        let doorbell = send_queue.ring(entries, !blue_flame.is_zero());
        let lines = 1 + blue_flame.get().div_ceil(LINE as u64);
        let carried = on_link(Octets::new(LINE as u64 * lines), lines);
        self.emit(EventKind::DoorbellPosted { qpn, entries, carried });
        if !blue_flame.is_zero() {
            self.emit(EventKind::BlueFlamePosted { qpn, wqe: blue_flame });
        }
        let accepted = self.downstream.offer_lines(self.now, Downstream::Doorbell(qpn, doorbell), lines);
        self.downstream_accepted(accepted);
    }

    /// What it told of is known now. A scenario's host rings for what it has posted meanwhile.
    pub(super) fn doorbell_arrived(&mut self, qpn: Qpn, doorbell: Doorbell) {
        let Some(send_queue) = self.send_queue(qpn) else { return };
        let entries = send_queue.hear(doorbell);
        self.emit(EventKind::DoorbellHeard { qpn, entries });
        self.ask_for_entries(qpn);
        self.ring_for_posts(qpn, Octets::ZERO);
        self.start_next_message(qpn);
    }

    /// The oldest entry has ended: the message of the next one may begin, and one more may be fetched.
    pub(super) fn next_entry_has_its_turn(&mut self, qpn: Qpn) {
        let requester = &self.queue_pairs[&qpn].requester;
        if let (Some(send_queue), Some(work)) = (&requester.send_queue, requester.entry(0)) {
            if send_queue.has_fetched_oldest() {
                self.emit(EventKind::WqePrefetchHit { qpn, message: work.message });
            }
            self.ask_for_entries(qpn);
        }
    }

    /// The read position goes back to the oldest entry.
    pub(super) fn rewind_send_queue(&mut self, qpn: Qpn) {
        if let Some(send_queue) = self.send_queue(qpn) {
            let entries = send_queue.rewind();
            self.emit(EventKind::SendQueueRewound { qpn, entries });
            self.ask_for_entries(qpn);
        }
    }

    /// Asks for as many entries as may be here; the rest of them when there is room in the PCIe transmit buffer.
    fn ask_for_entries(&mut self, qpn: Qpn) {
        if !self.waiting_for_entries.contains(&qpn) {
            self.waiting_for_entries.push_back(qpn);
        }
        self.ask_for_waiting_entries();
    }

    pub(super) fn ask_for_waiting_entries(&mut self) {
        while let Some(&qpn) = self.waiting_for_entries.front() {
            if !self.ask_for_entry(qpn) {
                return;
            }
        }
    }

    /// Asks for the next entry of the queue pair that waits first, or lets it wait no longer. `false` if there is no room.
    fn ask_for_entry(&mut self, qpn: Qpn) -> bool {
        let Some((fetch, nth)) = self.send_queue(qpn).and_then(SendQueue::next_fetch) else {
            self.waiting_for_entries.pop_front();
            return true;
        };
        let work = self.queue_pairs[&qpn].requester.entry(nth).expect("an entry that may be fetched was posted");
        let (message, octets) = (work.message, work.slot_octets(self.config.send_queue.wqe_size));
        let size = self.config.pcie.read_request_size;
        let request = Upstream::WqeRequest(WqeRequest { qpn, fetch, octets });
        let Ok(accepted) = self.upstream.offer_request(self.now, request, size) else { return false };
        self.send_queue(qpn).into_iter().for_each(SendQueue::move_on);
        self.upstream_accepted(accepted);
        self.emit(EventKind::WqeFetchRequested { qpn, message, carried: on_link(size, 1) });
        true
    }

    /// The WQE is here: its message may begin, or go on.
    pub(super) fn entry_arrived(&mut self, WqeRequest { qpn, fetch, octets }: WqeRequest) {
        let carried = on_link(octets, super::transfer_count(octets));
        let requester = &mut self.queue_pair(qpn).requester;
        let nth = requester.send_queue.as_mut().and_then(|send_queue| send_queue.arrive(fetch));
        let Some(message) = nth.and_then(|nth| requester.entry(nth)).map(|work| work.message) else {
            return self.emit(EventKind::WqeDiscarded { qpn, carried });
        };
        self.emit(EventKind::WqeFetched { qpn, message, carried });
        self.start_next_message(qpn);
    }
}
