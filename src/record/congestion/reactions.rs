//! What CNPs did to the queue pairs that they reached.

use std::collections::BTreeMap;
use std::io;

use crate::base::{Instant, NodeId, Qpn, Rate, Span};
use crate::trace::{Event, EventKind, PacketKind, Sink, Verdict};

/// The reactions of every queue pair that has heard of congestion.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reactions(BTreeMap<(NodeId, Qpn), Reaction>);

/// What congestion did to one queue pair, as a sender.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Reaction {
    pub cnps_received: u64,
    /// Times that it became congested.
    pub episodes: u64,
    /// The lowest that its current rate went. `None`: it never moved.
    pub lowest: Option<Rate>,
    /// How long the finished episodes were.
    finished: Span,
    /// When the episode in progress began.
    since: Option<Instant>,
}

impl Reaction {
    /// How long a controller had its rate; an episode in progress at `end` counts up to there.
    pub fn in_episodes(&self, end: Instant) -> Span {
        self.since.map_or(self.finished, |since| self.finished + end.since(since.min(end)))
    }
}

impl Reactions {
    pub fn of(&self, node: NodeId, qpn: Qpn) -> Reaction {
        self.0.get(&(node, qpn)).copied().unwrap_or_default()
    }

    /// In the order of nodes and numbers.
    pub fn iter(&self) -> impl Iterator<Item = (NodeId, Qpn, &Reaction)> {
        self.0.iter().map(|(&(node, qpn), reaction)| (node, qpn, reaction))
    }

    fn at(&mut self, node: NodeId, qpn: Qpn) -> &mut Reaction {
        self.0.entry((node, qpn)).or_default()
    }
}

impl Sink for Reactions {
    fn record(&mut self, event: &Event) -> io::Result<()> {
        match event.kind {
            // A switch passes CNPs on; to a queue pair they do something, or are processed to no effect.
            EventKind::FrameReceived { packet, verdict: Verdict::Processed, .. } if packet.kind == PacketKind::Cnp => {
                self.at(event.node, packet.dest_qpn).cnps_received += 1;
            }
            EventKind::EpisodeStarted { qpn } => {
                let reaction = self.at(event.node, qpn);
                reaction.episodes += 1;
                reaction.since = Some(event.at);
            }
            EventKind::RateChanged { qpn, current, .. } => {
                let lowest = &mut self.at(event.node, qpn).lowest;
                *lowest = Some(lowest.map_or(current, |lowest| lowest.min(current)));
            }
            EventKind::EpisodeEnded { qpn, lasted } => {
                let reaction = self.at(event.node, qpn);
                reaction.finished += lasted;
                reaction.since = None;
            }
            _ => {}
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::story::{self, A, B, at, qpn, rate_changed, received};
    use super::*;

    #[test]
    fn episodes_add_up_and_the_lowest_rate_stays() {
        let mut reactions = Reactions::default();
        let (started, ended) = (
            EventKind::EpisodeStarted { qpn: qpn(2) },
            EventKind::EpisodeEnded { qpn: qpn(2), lasted: Span::from_ps(400) },
        );
        let events = [
            received(100, A, PacketKind::Cnp, 0, Verdict::Processed),
            at(100, A, started.clone()),
            rate_changed(100, A, 200),
            rate_changed(300, A, 300),
            at(500, A, ended),
            received(600, A, PacketKind::Cnp, 0, Verdict::Processed),
            at(600, A, started),
            rate_changed(600, A, 250),
            received(650, B, PacketKind::Cnp, 0, Verdict::Forwarded),
        ];
        story::play(&events, &mut reactions).unwrap();
        let reaction = reactions.of(A, qpn(2));
        assert_eq!((reaction.cnps_received, reaction.episodes), (2, 2));
        assert_eq!(reaction.lowest, Some(Rate::from_gbps(200)));
        assert_eq!(reaction.in_episodes(Instant::from_ps(1_000)).ps(), 400 + 400, "one ended, one goes on");
        assert_eq!(reactions.of(B, qpn(2)), Reaction::default());
        assert_eq!(reactions.iter().count(), 1);
    }
}
