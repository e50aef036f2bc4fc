//! The entries of a send queue on their way to the NIC, where doorbells are modelled.
//!
//! ```text
//!       ended        read                heard        rung        posted
//!    . . . | in the NIC | fetched next …… | told of …… | being told | in the ring
//!            or on the way                  by doorbells
//! ```
//!
//! The entry behind `ended` is the one whose message is in progress or next; of those behind it, `prefetch` may be
//! fetched ahead. A rewind takes the read position back to `ended` and throws away what is there, prefetched entries and
//! those of BlueFlame posts as well: a retransmission rebuilds from the slots (model.md R2, R4), and pays for it.
//!
//! Indices count entries since the queue pair was made; they do not wrap.

use std::collections::BTreeMap;

use super::SendQueueConfig;

/// Where the entries of one queue pair are.
#[derive(Clone, Debug)]
pub struct SendQueue {
    prefetch: u64,
    /// CI: the entries before it have ended.
    ended: u64,
    /// RP: the entry that is fetched next, unless it is here.
    read: u64,
    /// PI as arrived doorbells say it, as all that were rung say it, and as the ring has it.
    heard: u64,
    rung: u64,
    posted: u64,
    /// Entries that are in the NIC and have not ended.
    here: BTreeMap<u64, Way>,
    /// Doorbells that were rung and have not arrived.
    ringing: u32,
    /// Raised by every rewind: an entry asked for in an older epoch is of no use.
    epoch: u32,
}

/// How an entry came to the NIC.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    Fetched,
    BlueFlame,
}

/// An entry that the NIC has asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WqeFetch {
    index: u64,
    epoch: u32,
}

/// A doorbell on its way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Doorbell {
    /// The entries before this one are announced.
    up_to: u64,
    /// It brings the newest of them along.
    brings: bool,
}

impl SendQueue {
    /// `None` where doorbells are free.
    pub fn new(config: &SendQueueConfig) -> Option<Self> {
        config.is_modelled().then(|| Self {
            prefetch: u64::from(config.wqe_prefetch),
            ended: 0,
            read: 0,
            heard: 0,
            rung: 0,
            posted: 0,
            here: BTreeMap::new(),
            ringing: 0,
            epoch: 0,
        })
    }

    /// The host has written an entry into the ring.
    pub fn post(&mut self) {
        self.posted += 1;
    }

    /// Entries that no doorbell was rung for.
    pub fn unannounced(&self) -> u32 {
        self.posted.saturating_sub(self.rung) as u32
    }

    /// Doorbells on their way.
    pub fn ringing(&self) -> u32 {
        self.ringing
    }

    /// A doorbell is rung for so many entries more. They may be posted here later, as an application's are.
    pub fn ring(&mut self, entries: u32, brings: bool) -> Doorbell {
        self.rung += u64::from(entries);
        self.ringing += 1;
        Doorbell { up_to: self.rung, brings }
    }

    /// That doorbell has arrived. Returns how many entries are news.
    pub fn hear(&mut self, Doorbell { up_to, brings }: Doorbell) -> u32 {
        self.ringing -= 1;
        let before = self.heard;
        self.heard = before.max(up_to);
        if let Some(newest) = up_to.checked_sub(1).filter(|newest| brings && *newest >= self.ended) {
            self.here.entry(newest).or_insert(Way::BlueFlame);
        }
        (self.heard - before) as u32
    }

    /// The entry to be asked for next, and which one it is, from the oldest that has not ended. `None` if there is none, or
    /// it has to wait for its turn.
    pub fn next_fetch(&mut self) -> Option<(WqeFetch, usize)> {
        while self.here.contains_key(&self.read) {
            self.read += 1;
        }
        let limit = self.heard.min(self.posted).min(self.ended + 1 + self.prefetch);
        let fetch = WqeFetch { index: self.read, epoch: self.epoch };
        (self.read < limit).then(|| (fetch, (self.read - self.ended) as usize))
    }

    /// The entry that [`SendQueue::next_fetch`] shows has been asked for.
    pub fn move_on(&mut self) {
        self.read += 1;
    }

    /// The entry is here. Returns which one it is, from the oldest that has not ended; `None` if it is of no use: a rewind
    /// has taken the read position back, or the entry has ended meanwhile.
    pub fn arrive(&mut self, fetch: WqeFetch) -> Option<usize> {
        let is_stale = fetch.epoch != self.epoch || fetch.index < self.ended;
        if is_stale {
            return None;
        }
        self.here.insert(fetch.index, Way::Fetched);
        Some((fetch.index - self.ended) as usize)
    }

    /// Whether the oldest entry that has not ended is here.
    pub fn has_oldest(&self) -> bool {
        self.here.contains_key(&self.ended)
    }

    /// Whether it was fetched, rather than brought along by its doorbell.
    pub fn has_fetched_oldest(&self) -> bool {
        self.here.get(&self.ended) == Some(&Way::Fetched)
    }

    /// The oldest entry has ended.
    pub fn end(&mut self) {
        self.here.remove(&self.ended);
        self.ended += 1;
        self.read = self.read.max(self.ended);
    }

    /// All entries have ended.
    pub fn abandon(&mut self) {
        self.here.clear();
        self.epoch = self.epoch.wrapping_add(1);
        self.ended = self.posted;
        self.read = self.posted;
    }

    /// The read position goes back to the oldest entry that has not ended. Returns over how many.
    pub fn rewind(&mut self) -> u32 {
        let back = self.read.max(self.here.last_key_value().map_or(0, |(last, _)| last + 1)) - self.ended;
        self.here.clear();
        self.epoch = self.epoch.wrapping_add(1);
        self.read = self.ended;
        back as u32
    }
}

#[cfg(test)]
mod tests {
    use super::super::DoorbellCost;
    use super::*;

    fn queue(wqe_prefetch: u32) -> SendQueue {
        let config = SendQueueConfig { doorbell: DoorbellCost::Modelled, wqe_prefetch, ..SendQueueConfig::default() };
        SendQueue::new(&config).unwrap()
    }

    /// So many entries, posted and announced.
    fn announced(wqe_prefetch: u32, entries: u32) -> SendQueue {
        let mut queue = queue(wqe_prefetch);
        (0..entries).for_each(|_| queue.post());
        let doorbell = queue.ring(entries, false);
        assert_eq!(queue.next_fetch(), None, "nobody has heard of them");
        assert_eq!(queue.hear(doorbell), entries);
        queue
    }

    /// Asks for everything that may be asked for.
    fn ask(queue: &mut SendQueue) -> Vec<WqeFetch> {
        let mut fetches = Vec::new();
        while let Some((fetch, _)) = queue.next_fetch() {
            queue.move_on();
            fetches.push(fetch);
        }
        fetches
    }

    #[test]
    fn so_many_entries_are_fetched_ahead_of_the_oldest() {
        let mut queue = announced(2, 5);
        let fetches = ask(&mut queue);
        assert_eq!(fetches.len(), 3);
        assert!(!queue.has_oldest());
        assert_eq!(fetches.into_iter().map(|fetch| queue.arrive(fetch)).collect::<Vec<_>>(), [0, 1, 2].map(Some));
        assert!(queue.has_fetched_oldest());
        queue.end();
        assert_eq!((queue.has_fetched_oldest(), ask(&mut queue).len()), (true, 1), "one slot of the window is free");
    }

    #[test]
    fn an_entry_asked_for_before_a_rewind_is_of_no_use() {
        let mut queue = announced(1, 2);
        let before = ask(&mut queue);
        assert_eq!(queue.rewind(), 2);
        let again = ask(&mut queue);
        assert_eq!(before.into_iter().map(|fetch| queue.arrive(fetch)).collect::<Vec<_>>(), [None, None]);
        assert!(!queue.has_oldest());
        assert_eq!(queue.arrive(again[0]), Some(0));
        // An acknowledgement ends the message while its neighbour is on the way.
        queue.end();
        assert_eq!(queue.arrive(again[1]), Some(0));
        assert_eq!(queue.arrive(again[0]), None, "it has ended");
    }

    #[test]
    fn what_came_by_blue_flame_is_skipped_and_fetched_after_a_rewind() {
        let mut queue = queue(4);
        (0..3).for_each(|_| queue.post());
        let doorbell = queue.ring(2, true);
        assert_eq!((queue.hear(doorbell), queue.unannounced()), (2, 1));
        let fetches = ask(&mut queue);
        assert_eq!(
            fetches,
            [WqeFetch { index: 0, epoch: 0 }],
            "the second of them came along, the third is not heard of"
        );
        queue.end();
        assert!(queue.has_oldest() && !queue.has_fetched_oldest());
        assert_eq!(queue.rewind(), 1);
        assert_eq!(ask(&mut queue), [WqeFetch { index: 1, epoch: 1 }]);
    }

    #[test]
    fn entries_may_be_announced_before_they_are_posted() {
        let mut queue = queue(0);
        let doorbell = queue.ring(3, false);
        assert_eq!((queue.hear(doorbell), queue.next_fetch()), (3, None));
        queue.post();
        assert_eq!((ask(&mut queue).len(), queue.unannounced()), (1, 0));
        queue.abandon();
        assert_eq!(queue.next_fetch(), None);
    }
}
