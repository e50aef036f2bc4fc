//! How much every queue pair got through while it had something to send, and how even that was.

use std::collections::BTreeMap;
use std::io;

use super::super::words;
use crate::base::{Instant, NodeId, Octets, Qpn, Span};
use crate::trace::{Event, EventKind, Sink};

/// When each queue pair had messages to send, and what its peer's host got of them.
///
/// A queue pair is active from the post of a message, until all that it has posted are completed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Activity {
    senders: BTreeMap<(NodeId, Qpn), Sender>,
    /// The sender that a receiving queue pair hears.
    sender_of: BTreeMap<(NodeId, Qpn), (NodeId, Qpn)>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Sender {
    peer: NodeId,
    knows_receiver: bool,
    posted: Octets,
    delivered: Octets,
    open: u32,
    first: Instant,
    /// Since when it has been active, or when it was last.
    edge: Instant,
    /// Without the time from `edge` on.
    active: Span,
}

/// What one queue pair got through.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Goodput {
    pub node: NodeId,
    /// Whose host it sends to.
    pub peer: NodeId,
    pub qpn: Qpn,
    /// Payload in the memory of its peer's host.
    pub delivered: Octets,
    /// How long it had something to send.
    pub active: Span,
    /// From its first post to the last completion, or to the end of the run.
    pub from: Instant,
    pub to: Instant,
}

/// Queue pairs that compete for the port of one receiver: they send to the same node at the same time, each together with
/// at least one of the others or, through them, with all; the spans from first post to last completion overlap. Others,
/// such as the two directions of a link, take nothing from each other, and to compare them would say nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Together(pub Vec<Goodput>);

impl Goodput {
    /// Delivered payload over active time.
    ///
    /// * Units: bit/s, rounded half up.
    pub fn bps(&self) -> u64 {
        words::goodput_bps(self.delivered, self.active).unwrap_or(0)
    }
}

impl Together {
    /// Jain's index of the goodputs x: (Σx)² / (n Σx²). 1 if all are equal, 1/n if one queue pair has everything.
    ///
    /// * Units: millionths, rounded half up. `None` if nobody got anything through.
    pub fn jain_per_million(&self) -> Option<u64> {
        let mut rates: Vec<_> = self.0.iter().map(|goodput| u128::from(goodput.bps())).collect();
        let mut sum: u128 = rates.iter().sum();
        // Rates of networks that exist stay as they are; this keeps the squares of others within 128 bits.
        while sum >= 1 << 53 {
            rates.iter_mut().for_each(|rate| *rate >>= 1);
            sum = rates.iter().sum();
        }
        let squares: u128 = rates.iter().map(|rate| rate * rate).sum();
        let whole = rates.len() as u128 * squares;
        (sum * sum * 1_000_000 + whole / 2).checked_div(whole).map(|index| index as u64)
    }

    /// The lowest and the highest goodput, in bit/s.
    pub fn spread(&self) -> Option<(u64, u64)> {
        let rates = || self.0.iter().map(Goodput::bps);
        Some((rates().min()?, rates().max()?))
    }

    /// What the lowest goodput is of the highest.
    ///
    /// * Units: per mille, rounded half up. `None` if nobody got anything through.
    pub fn min_per_mille_of_max(&self) -> Option<u64> {
        let (min, max) = self.spread().map(|(min, max)| (u128::from(min), u128::from(max)))?;
        (min * 1_000 + max / 2).checked_div(max).map(|share| share as u64)
    }

    /// From the first post to the last completion of any.
    pub fn span(&self) -> Option<(Instant, Instant)> {
        Some((self.0.iter().map(|one| one.from).min()?, self.0.iter().map(|one| one.to).max()?))
    }
}

impl Activity {
    /// What `qpn` of `node` got through by `end`; `None` if it never had anything to send.
    pub fn of(&self, node: NodeId, qpn: Qpn, end: Instant) -> Option<Goodput> {
        Some(self.senders.get(&(node, qpn))?.goodput(node, qpn, end))
    }

    /// The queue pairs that were active together and had one receiver, groups in the order of time. Who was always alone
    /// is in none, nor is who had no octets to send.
    pub fn together(&self, end: Instant) -> Vec<Together> {
        let senders = self.senders.iter().filter(|(_, sender)| !sender.posted.is_zero());
        let mut all: Vec<_> = senders.map(|(&(node, qpn), sender)| sender.goodput(node, qpn, end)).collect();
        all.retain(|goodput| goodput.active > Span::ZERO);
        all.sort_by_key(|goodput| (goodput.peer, goodput.from));
        let mut groups: Vec<Vec<Goodput>> = Vec::new();
        let mut group_end = Instant::ZERO;
        for goodput in all {
            match groups.last_mut().filter(|group| group[0].peer == goodput.peer && goodput.from < group_end) {
                Some(group) => {
                    group.push(goodput);
                    group_end = group_end.max(goodput.to);
                }
                None => {
                    groups.push(vec![goodput]);
                    group_end = goodput.to;
                }
            }
        }
        groups.sort_by_key(|group| group[0].from);
        groups.into_iter().filter(|group| group.len() > 1).map(Together).collect()
    }
}

impl Sender {
    fn goodput(&self, node: NodeId, qpn: Qpn, end: Instant) -> Goodput {
        let (active, to) = match self.open {
            0 => (self.active, self.edge),
            _ => (self.active + end.since(self.edge.min(end)), end),
        };
        Goodput { node, peer: self.peer, qpn, delivered: self.delivered, active, from: self.first, to }
    }
}

impl Sink for Activity {
    fn record(&mut self, event: &Event) -> io::Result<()> {
        let (now, node) = (event.at, event.node);
        match event.kind {
            EventKind::MessagePosted { peer, qpn, bytes, .. } => {
                let sender = self.senders.entry((node, qpn)).or_insert(Sender {
                    peer,
                    knows_receiver: false,
                    posted: Octets::ZERO,
                    delivered: Octets::ZERO,
                    open: 0,
                    first: now,
                    edge: now,
                    active: Span::ZERO,
                });
                if sender.open == 0 {
                    sender.edge = now;
                }
                sender.open += 1;
                sender.posted += bytes;
            }
            EventKind::MessageCompleted { qpn, .. } | EventKind::MessageFailed { qpn, .. } => {
                if let Some(sender) = self.senders.get_mut(&(node, qpn)).filter(|sender| sender.open > 0) {
                    sender.open -= 1;
                    if sender.open == 0 {
                        sender.active += now.since(sender.edge.min(now));
                        sender.edge = now;
                    }
                }
            }
            // The first data packet tells who will hear this sender.
            EventKind::TransmitStarted { qpn: Some(qpn), packet, .. } if packet.kind.is_data() => {
                if let Some(sender) = self.senders.get_mut(&(node, qpn)).filter(|sender| !sender.knows_receiver) {
                    sender.knows_receiver = true;
                    self.sender_of.insert((sender.peer, packet.dest_qpn), (node, qpn));
                }
            }
            EventKind::PayloadWritten { qpn, payload, .. } => {
                if let Some(sender) = self.sender_of.get(&(node, qpn)).and_then(|own| self.senders.get_mut(own)) {
                    sender.delivered += payload;
                }
            }
            _ => {}
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::story::{self, A, B, at, on_line, posted, qpn};
    use super::*;
    use crate::base::{MessageId, Psn};

    /// A sender of the story posts `bytes` at `from` and has them completed at `to`; its queue pair is `n` at both ends.
    fn transfer(n: u32, from: u64, to: u64, bytes: u64) -> Vec<Event> {
        let (qpn, message, psn) = (qpn(n), MessageId(n), Psn::new(0));
        let mut posted = posted(from, A, n, bytes);
        if let EventKind::MessagePosted { qpn: posted_qpn, .. } = &mut posted.kind {
            *posted_qpn = qpn;
        }
        vec![
            posted,
            on_line(from, A, n),
            at(to, B, EventKind::PayloadWritten { qpn, psn, payload: Octets::new(bytes) }),
            at(to, A, EventKind::MessageCompleted { message, qpn }),
        ]
    }

    fn together(events: &[Event], end: u64) -> Vec<Together> {
        let mut activity = Activity::default();
        story::play(events, &mut activity).unwrap();
        activity.together(Instant::from_ps(end))
    }

    fn rates(bps: &[u64]) -> Together {
        let one = |bps: &u64| Goodput {
            node: A,
            peer: B,
            qpn: qpn(2),
            // In one second.
            delivered: Octets::new(bps / 8),
            active: Span::from_secs(1),
            from: Instant::ZERO,
            to: Instant::ZERO,
        };
        Together(bps.iter().map(one).collect())
    }

    #[test]
    fn jains_index_is_what_the_formula_says() {
        let jain = |bps: &[u64]| rates(bps).jain_per_million();
        assert_eq!(jain(&[80, 80, 80]), Some(1_000_000));
        // (1 + 1 + 2)² / (3 (1 + 1 + 4)) = 16 / 18.
        assert_eq!(jain(&[80, 80, 160]), Some(888_889));
        assert_eq!(jain(&[80, 0, 0, 0]), Some(250_000));
        assert_eq!(jain(&[0, 0]), None);
        assert_eq!(jain(&[]), None);
        // 64 queue pairs at 400 Gb/s, and rates beyond all networks.
        assert_eq!(jain(&[400_000_000_000; 64]), Some(1_000_000));
        assert_eq!(jain(&[u64::MAX - 7, u64::MAX - 7, (u64::MAX - 7) / 2]), Some(925_926), "25 / 27");
        assert_eq!(rates(&[160, 80, 240]).spread(), Some((80, 240)));
        assert_eq!(rates(&[160, 80, 240]).min_per_mille_of_max(), Some(333));
        assert_eq!(rates(&[0, 0]).min_per_mille_of_max(), None);
    }

    #[test]
    fn goodput_is_delivered_payload_over_the_time_with_something_to_send() {
        // 1,000 octets in 400 ps and, after a pause of 600 ps, 500 octets in 100 ps.
        let mut activity = Activity::default();
        story::play(&[transfer(2, 100, 500, 1_000), transfer(2, 1_100, 1_200, 500)].concat(), &mut activity).unwrap();
        let goodput = activity.of(A, qpn(2), Instant::from_ps(9_999)).unwrap();
        assert_eq!((goodput.delivered.get(), goodput.active.ps()), (1_500, 500));
        assert_eq!((goodput.from.ps(), goodput.to.ps()), (100, 1_200));
        assert_eq!(goodput.bps(), 24_000_000_000_000);
        assert_eq!(activity.of(B, qpn(2), Instant::ZERO), None);
    }

    #[test]
    fn what_is_unfinished_counts_up_to_the_end() {
        let events = [&transfer(2, 0, 400, 1_000)[..], &transfer(3, 100, 300, 600)[..2]].concat();
        let groups = together(&events, 1_100);
        let shown: Vec<_> = groups[0].0.iter().map(|one| (one.delivered.get(), one.active.ps(), one.to.ps())).collect();
        assert_eq!(shown, [(1_000, 400, 400), (0, 1_000, 1_100)]);
        assert_eq!(groups[0].jain_per_million(), Some(500_000));
        assert_eq!(groups[0].span(), Some((Instant::ZERO, Instant::from_ps(1_100))));
    }

    #[test]
    fn only_who_was_active_together_is_compared() {
        let ranges = [(2, 0, 100), (3, 50, 150), (4, 149, 200), (5, 200, 300), (6, 400, 500), (7, 400, 410)];
        let events: Vec<_> = ranges.into_iter().flat_map(|(n, from, to)| transfer(n, from, to, 8)).collect();
        let mut events = events;
        events.sort_by_key(|event| event.at);
        let groups = together(&events, 600);
        let numbers = |group: &Together| group.0.iter().map(|one| one.qpn.get()).collect::<Vec<_>>();
        // 5 begins in the instant in which 4 ends.
        assert_eq!(groups.iter().map(numbers).collect::<Vec<_>>(), [vec![2, 3, 4], vec![6, 7]]);
    }

    #[test]
    fn only_who_has_the_same_receiver_is_compared() {
        let mut back = transfer(4, 0, 100, 8);
        for event in &mut back {
            event.node = if event.node == A { B } else { A };
            if let EventKind::MessagePosted { peer, .. } = &mut event.kind {
                *peer = A;
            }
        }
        let events = [transfer(2, 0, 100, 8), transfer(3, 0, 100, 8), back].concat();
        let groups = together(&events, 100);
        assert_eq!(groups.len(), 1);
        assert!(groups[0].0.len() == 2 && groups[0].0.iter().all(|one| one.peer == B), "{groups:?}");
    }

    #[test]
    fn nothing_to_send_is_no_competition() {
        assert_eq!(together(&[], 5), []);
        let events = [transfer(2, 0, 100, 1_000), transfer(3, 0, 100, 0), transfer(4, 100, 100, 9)].concat();
        assert_eq!(together(&events, 100), []);
    }
}
