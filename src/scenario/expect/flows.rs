//! What is remembered of everything that flows past: rates, and frames that should not have been.

use std::collections::BTreeMap;

use super::watch::Finding;
use super::{Bounds, Stream, bps, rate};
use crate::base::{Instant, MessageId, NodeId, Octets, Qpn};
use crate::scenario::Plan;
use crate::trace::{Event, EventKind, LinkFate, Names, Verdict};
use crate::wire::MacAddr;

/// When and where something happened.
type Place = (Instant, NodeId);

#[derive(Debug)]
pub(super) struct RateWatch {
    stream: Stream,
    from: Option<NodeId>,
    to: Option<NodeId>,
    bounds: Bounds,
    /// The node at the other end of each queue pair.
    peers: BTreeMap<(NodeId, Qpn), NodeId>,
    to_mac: Option<MacAddr>,
    /// Of messages under way between the two: their octets.
    posts: BTreeMap<MessageId, Octets>,
    first: Option<Instant>,
    last: Instant,
    octets: Octets,
}

impl RateWatch {
    pub(super) fn new(stream: Stream, [from, to]: [Option<NodeId>; 2], bounds: Bounds, plan: &Plan) -> Self {
        let peers = plan.queue_pairs.iter().flat_map(|queue_pair| {
            let [a, b] = queue_pair.ends;
            [((a.node, a.qpn), b.node), ((b.node, b.qpn), a.node)]
        });
        Self {
            stream,
            from,
            to,
            bounds,
            peers: peers.collect(),
            to_mac: to.map(|to| plan.nics[to.index()].address.mac),
            posts: BTreeMap::new(),
            first: None,
            last: Instant::ZERO,
            octets: Octets::ZERO,
        }
    }

    pub(super) fn hear(&mut self, event: &Event) {
        let allowed = |wanted: Option<NodeId>, node: NodeId| wanted.is_none_or(|wanted| wanted == node);
        let own = event.node;
        match (&event.kind, self.stream) {
            (EventKind::FrameSent { packet, frame, .. }, Stream::Wire) if packet.kind.is_data() => {
                let is_to = self.to_mac.is_none_or(|mac| frame.get(..6) == Some(&mac.0[..]));
                if allowed(self.from, own) && is_to {
                    self.add(event.at, packet.payload);
                }
            }
            (EventKind::PayloadWritten { qpn, payload, .. }, Stream::Delivery) => {
                let is_from = self.from.is_none() || self.peers.get(&(own, *qpn)).copied() == self.from;
                if allowed(self.to, own) && is_from {
                    self.add(event.at, *payload);
                }
            }
            (EventKind::MessagePosted { message, peer, bytes, .. }, Stream::Goodput)
                if allowed(self.from, own) && allowed(self.to, *peer) =>
            {
                self.posts.insert(*message, *bytes);
                self.first.get_or_insert(event.at);
            }
            (EventKind::MessageCompleted { message, .. }, Stream::Goodput) => {
                if let Some(bytes) = self.posts.remove(message) {
                    self.octets += bytes;
                    self.last = event.at;
                }
            }
            _ => {}
        }
    }

    /// The first one only starts the clock: it was sent before.
    fn add(&mut self, at: Instant, payload: Octets) {
        match self.first {
            Some(_) => self.octets += payload,
            None => self.first = Some(at),
        }
        self.last = at;
    }

    pub(super) fn finish(self, names: &Names) -> Finding {
        let what = match self.stream {
            Stream::Wire => "payload on the wire",
            Stream::Delivery => "payload delivered",
            Stream::Goodput => "goodput",
        };
        let end = |word: &str, node: Option<NodeId>| {
            node.map_or_else(String::new, |node| format!(" {word} {}", names.node(node)))
        };
        let ways = format!("{}{}", end("from", self.from), end("to", self.to));
        let got = self.first.and_then(|first| bps(self.octets, self.last.since(first)));
        Finding {
            ok: got.is_some_and(|bps| self.bounds.hold(bps)),
            expected: format!("{what}{ways}: {}", self.bounds.text(rate)),
            got: match (got, self.first) {
                (Some(bps), Some(first)) => format!("{} from {first} to {}", rate(bps), self.last),
                _ => "too few to measure".to_owned(),
            },
            at: self.first,
            node: self.from.or(self.to),
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mishap {
    Drop,
    Retransmission,
}

#[derive(Debug)]
pub(super) struct MishapWatch {
    what: Mishap,
    node: Option<NodeId>,
    count: u64,
    first: Option<(Place, String)>,
}

impl MishapWatch {
    pub(super) const fn new(what: Mishap, node: Option<NodeId>) -> Self {
        Self { what, node, count: 0, first: None }
    }

    pub(super) fn hear(&mut self, event: &Event) {
        if self.node.is_some_and(|node| node != event.node) {
            return;
        }
        let text = match (&event.kind, self.what) {
            (EventKind::FrameSent { packet, fate, .. }, Mishap::Drop) => match fate {
                LinkFate::Dropped { .. } => format!("PSN {} dropped by a fault", packet.psn),
                LinkFate::LinkDown { .. } => format!("PSN {} lost on a link that was down", packet.psn),
                _ => return,
            },
            (EventKind::FrameReceived { packet, verdict: Verdict::Dropped(reason), .. }, Mishap::Drop) => {
                format!("PSN {}: {}", packet.psn, reason.text())
            }
            (EventKind::FrameSent { packet, transmission, .. }, Mishap::Retransmission)
                if *transmission > 1 && packet.kind.is_data() =>
            {
                format!("PSN {}, transmission {transmission}", packet.psn)
            }
            _ => return,
        };
        self.count += 1;
        self.first.get_or_insert(((event.at, event.node), text));
    }

    pub(super) fn finish(self, names: &Names) -> Finding {
        let what = match self.what {
            Mishap::Drop => "no frame dropped",
            Mishap::Retransmission => "no retransmission",
        };
        let place = self.node.map_or_else(String::new, |node| format!(" at {}", names.node(node)));
        let (at, node) = self.first.as_ref().map(|(place, _)| *place).unzip();
        Finding {
            ok: self.count == 0,
            expected: format!("{what}{place}"),
            got: match &self.first {
                Some(((at, node), text)) => {
                    format!("{}, the first at {} at {at}: {text}", self.count, names.node(*node))
                }
                None => "none".to_owned(),
            },
            at,
            node,
        }
    }
}
