//! The sending half of a queue pair: messages, the window of outstanding PSNs, go-back-N.

use std::collections::{BTreeMap, VecDeque};

use super::WorkRequest;
use super::segment::{Message, Position, Segment};
use super::send_queue::SendQueue;
use crate::base::{MessageId, Octets, Psn, Ticket};

/// One message at a time; its packets' positions fall into four parts:
///
/// ```text
///   first … una ……… next ……… fetch ……… end
///    retired │ outstanding │ being fetched │ still in host memory
/// ```
///
/// After a rewind `next` and `fetch` go back to the named position, and `highest` remembers how far they had been.
#[derive(Clone, Debug)]
pub struct Requester {
    mss: Octets,
    waiting: VecDeque<WorkRequest>,
    /// How far their entries have come to the NIC. `None`: doorbells are free, and all are here.
    pub send_queue: Option<SendQueue>,
    current: Option<Message>,
    /// The oldest outstanding position.
    una: Position,
    /// The position that the next payload gets.
    next: Position,
    /// The position whose payload is fetched next.
    fetch: Position,
    /// One past the highest position ever given to a packet.
    highest: Position,
    /// Raised by every rewind: payload of an older epoch is stale (timing rule 9).
    epoch: u32,
    /// How often a position of the window was given to a packet, where more than once.
    repeated: BTreeMap<Position, u32>,
    /// Expiries of the transport timer since something was retired.
    timeouts: u32,
    /// RNR NAKs for the oldest position.
    rnr_naks: u32,
    pub timer: Option<Ticket>,
    /// The end of the wait that an RNR NAK asked for: nothing is sent before.
    pub rnr_wait: Option<Ticket>,
    pub in_ready_queue: bool,
}

/// A segment on its way from host memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fetch {
    pub epoch: u32,
    pub segment: Segment,
}

/// What an ACK or NAK did to the window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AckEffect {
    /// It named a PSN that was never sent.
    Ghost,
    /// It named a PSN below the window.
    Stale,
    /// It retired so many packets (none, for a NAK of the oldest).
    Retired(u32),
}

impl Requester {
    pub fn new(initial: Psn, mss: Octets, send_queue: Option<SendQueue>) -> Self {
        let first = Position::first(initial);
        Self {
            mss,
            waiting: VecDeque::new(),
            send_queue,
            current: None,
            una: first,
            next: first,
            fetch: first,
            highest: first,
            epoch: 0,
            repeated: BTreeMap::new(),
            timeouts: 0,
            rnr_naks: 0,
            timer: None,
            rnr_wait: None,
            in_ready_queue: false,
        }
    }

    pub fn post(&mut self, work: WorkRequest) {
        self.waiting.push_back(work);
        if let Some(send_queue) = &mut self.send_queue {
            send_queue.post();
        }
    }

    /// The work request of an entry, from the oldest that has not ended; `None` if it was not posted.
    pub fn entry(&self, nth: usize) -> Option<&WorkRequest> {
        self.current.iter().map(|message| &message.work).chain(&self.waiting).nth(nth)
    }

    /// Whether the NIC has the entry of the message in progress, or of the next if none is.
    fn has_entry(&self) -> bool {
        self.send_queue.as_ref().is_none_or(SendQueue::has_oldest)
    }

    /// The message that could start now.
    pub fn next_message(&self) -> Option<&WorkRequest> {
        self.waiting.front().filter(|_| self.current.is_none() && self.has_entry())
    }

    /// Starts the oldest waiting message if none is in progress; PSNs continue.
    pub fn start_next_message(&mut self) -> Option<&Message> {
        self.next_message()?;
        let work = self.waiting.pop_front()?;
        Some(self.current.insert(Message::new(work, self.next, self.mss)))
    }

    /// Ends the message in progress if its last packet has been retired.
    pub fn take_completed_message(&mut self) -> Option<Message> {
        let done = self.current.take_if(|message| message.end() <= self.una)?;
        if let Some(send_queue) = &mut self.send_queue {
            send_queue.end();
        }
        Some(done)
    }

    pub fn current(&self) -> Option<&Message> {
        self.current.as_ref()
    }

    /// Gives up everything that is not completed, and makes all payload on its way useless. Returns the messages, oldest
    /// first.
    pub fn abandon(&mut self) -> Vec<MessageId> {
        self.epoch = self.epoch.wrapping_add(1);
        if let Some(send_queue) = &mut self.send_queue {
            send_queue.abandon();
        }
        let current = self.current.take().map(|message| message.work);
        current.into_iter().chain(self.waiting.drain(..)).map(|work| work.message).collect()
    }

    /// The segment to fetch next; `None` if there is none, too many PSNs are outstanding, the peer is not ready, or the
    /// message's entry is on its way once more.
    pub fn peek_segment(&self) -> Option<Segment> {
        let message = self.current.as_ref()?;
        let may_go = self.rnr_wait.is_none()
            && self.has_entry()
            && self.fetch < message.end()
            && self.fetch.since(self.una) < u64::from(Psn::MAX_OUTSTANDING);
        may_go.then(|| message.segment(self.fetch))
    }

    /// Takes the segment that [`Requester::peek_segment`] shows.
    pub fn take_segment(&mut self) -> Option<Fetch> {
        let segment = self.peek_segment()?;
        self.fetch = self.fetch.next();
        Some(Fetch { epoch: self.epoch, segment })
    }

    /// Whether a fetched payload has become useless: its epoch has passed, or its position has been acknowledged.
    pub fn is_stale(&self, fetch: &Fetch) -> bool {
        fetch.epoch != self.epoch || fetch.segment.position < self.next
    }

    /// Gives the next PSN to a packet; returns which transmission of that PSN it is, from 1.
    pub fn number(&mut self, fetch: &Fetch) -> u32 {
        assert!(fetch.segment.position == self.next, "payload arrives in the order it was fetched");
        let position = self.next;
        self.next = position.next();
        if position >= self.highest {
            self.highest = self.next;
            return 1;
        }
        let transmission = self.repeated.entry(position).or_insert(1);
        *transmission = transmission.saturating_add(1);
        *transmission
    }

    /// An ACK retires every PSN up to the one it names.
    ///
    /// * Source: model.md T2, T5; timing rule 10.
    pub fn acknowledge(&mut self, psn: Psn) -> AckEffect {
        match self.find(psn) {
            Ok(position) => self.retire_below(position.next()),
            Err(effect) => effect,
        }
    }

    /// A NAK retires every PSN below the one it names; the caller then rewinds to it, if the NAK was neither ghost nor
    /// stale.
    pub fn retire_by_nak(&mut self, psn: Psn) -> AckEffect {
        match self.find(psn) {
            Ok(position) => self.retire_below(position),
            Err(effect) => effect,
        }
    }

    /// An RNR NAK does to the window what another NAK does. While the wait for its PSN lasts it is old news.
    pub fn retire_by_rnr_nak(&mut self, psn: Psn) -> AckEffect {
        match self.find(psn) {
            Ok(position) if position == self.una && self.rnr_wait.is_some() => AckEffect::Stale,
            Ok(position) => self.retire_below(position),
            Err(effect) => effect,
        }
    }

    /// Counts an RNR NAK for the oldest position; returns how many that makes.
    pub fn count_rnr_nak(&mut self) -> u32 {
        self.rnr_naks = self.rnr_naks.saturating_add(1);
        self.rnr_naks
    }

    /// Counts an expiry of the transport timer; returns how many that makes without progress.
    pub fn count_timeout(&mut self) -> u32 {
        self.timeouts = self.timeouts.saturating_add(1);
        self.timeouts
    }

    /// Back to the oldest outstanding position; returns how many packets were taken back.
    pub fn rewind(&mut self) -> u32 {
        let taken_back = self.outstanding();
        self.next = self.una;
        self.fetch = self.una;
        self.epoch = self.epoch.wrapping_add(1);
        taken_back
    }

    /// Packets that have a PSN and are not yet acknowledged.
    pub fn outstanding(&self) -> u32 {
        self.next.since(self.una) as u32
    }

    /// The oldest outstanding PSN, or the next one if there is none.
    pub fn oldest(&self) -> Psn {
        self.una.psn()
    }

    fn find(&self, psn: Psn) -> Result<Position, AckEffect> {
        match self.una.resolve(psn) {
            Some(position) if position >= self.highest => Err(AckEffect::Ghost),
            Some(position) if position >= self.una => Ok(position),
            _ => Err(AckEffect::Stale),
        }
    }

    fn retire_below(&mut self, una: Position) -> AckEffect {
        let retired = una.since(self.una) as u32;
        if retired > 0 {
            (self.timeouts, self.rnr_naks) = (0, 0);
        }
        self.una = una;
        self.next = self.next.max(una);
        self.fetch = self.fetch.max(una);
        self.repeated = self.repeated.split_off(&una);
        AckEffect::Retired(retired)
    }
}
