//! Where a queue pair's time went: every picosecond of a run, attributed to what kept its next packet off the line.

use std::collections::BTreeMap;
use std::io;

use crate::base::{Class, Instant, MessageId, NodeId, PortId, Psn, Qpn, Rate, Span};
use crate::trace::{Event, EventKind, Names, Queue, Sink};

/// What a queue pair's next packet waits for. At each instant the first that applies, in this order.
///
/// The next packet is the first of its message that is not yet on the line: it is queued at the port, or its payload is
/// being fetched, or it has not been asked for. So a pool that is full of the queue pair's own fetches is no cause, as
/// long as the payload it waits for is on its way.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Cause {
    /// A data packet of it is on the line, for as long as the port's DataRate takes.
    Sending,
    /// Everything is sent, and what came was not an acknowledgement but the end of the transport timer: since the last
    /// acknowledgement that retired something, or since the last packet was sent.
    Timeout,
    /// A packet of it is queued in a class that the peer has paused.
    Pause,
    /// Its allowed rate is below DataRate. Where packets are serialized at the allowed rate, a data packet of it is on the
    /// line beyond the time that DataRate takes; where packets are paced, one is queued and nothing is on the line.
    AllowedRate,
    /// A packet of it is queued, its class may send, and the line carries a packet of others. The contract's eight
    /// causes have no word for a fair share of a line; counted as sending, it would let shares add up to more than one.
    LineBusy,
    /// Nothing of it is queued, and an RNR NAK asked for time: its peer has no receive posted.
    RnrWait,
    /// Nothing of it is queued, and the work queue element of its message is not in the NIC: the doorbell is on its way, or
    /// the WQE's fetch is, or was not asked for yet. Only where doorbells are modelled.
    WqeFetch,
    /// Nothing of it is queued or being fetched, and its next segment is not taken because generation was stopped by a
    /// full egress pool, its own or another's, or starts again after that (80 ns).
    EgressPool,
    /// The payload of its next packet is on its way from the host, waits for room to be asked for, or will be asked for
    /// (or taken from the WQE) when generation has started (80 ns) without a pool having stopped it.
    PcieRead,
    /// Everything is sent, and an acknowledgement came, or the run ended.
    Acknowledgement,
    /// No message is posted that is not completed.
    Idle,
}

impl Cause {
    pub const ALL: [Self; 11] = [
        Self::Sending,
        Self::Timeout,
        Self::Pause,
        Self::AllowedRate,
        Self::LineBusy,
        Self::RnrWait,
        Self::WqeFetch,
        Self::EgressPool,
        Self::PcieRead,
        Self::Acknowledgement,
        Self::Idle,
    ];
    pub const COUNT: usize = Self::ALL.len();

    /// Its key in `summary.json`, without the unit.
    pub const fn key(self) -> &'static str {
        match self {
            Self::Sending => "sending",
            Self::Timeout => "timeout",
            Self::Pause => "pfc_pause",
            Self::AllowedRate => "allowed_rate",
            Self::LineBusy => "line_busy",
            Self::RnrWait => "rnr_wait",
            Self::WqeFetch => "wqe_fetch",
            Self::EgressPool => "egress_pool",
            Self::PcieRead => "pcie_read",
            Self::Acknowledgement => "waiting_for_ack",
            Self::Idle => "idle",
        }
    }

    pub const fn text(self) -> &'static str {
        match self {
            Self::Sending => "sending",
            Self::Timeout => "timeout",
            Self::Pause => "PFC pause",
            Self::AllowedRate => "allowed rate",
            Self::LineBusy => "line busy with others",
            Self::RnrWait => "RNR wait",
            Self::WqeFetch => "WQE fetch",
            Self::EgressPool => "egress pool",
            Self::PcieRead => "PCIe read",
            Self::Acknowledgement => "waiting for ACK",
            Self::Idle => "idle",
        }
    }
}

/// Time by cause.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Times([Span; Cause::COUNT]);

impl Times {
    /// In the order of [`Cause::ALL`].
    pub const fn of_ps(ps: [u64; Cause::COUNT]) -> Self {
        let mut times = [Span::ZERO; Cause::COUNT];
        let mut cause = 0;
        while cause < Cause::COUNT {
            times[cause] = Span::from_ps(ps[cause]);
            cause += 1;
        }
        Self(times)
    }

    pub const fn of(&self, cause: Cause) -> Span {
        self.0[cause as usize]
    }

    pub fn iter(&self) -> impl Iterator<Item = (Cause, Span)> {
        Cause::ALL.into_iter().zip(self.0)
    }

    pub fn total(&self) -> Span {
        self.0.into_iter().fold(Span::ZERO, |sum, span| sum + span)
    }

    pub fn add(&mut self, other: &Self) {
        for (own, other) in self.0.iter_mut().zip(other.0) {
            *own += other;
        }
    }

    /// Tenths of a percent by cause. They add up to 1,000 exactly: what rounding down leaves goes to the largest
    /// remainders, at the same remainder to the earlier cause. All zero if there is no time at all.
    pub fn per_mille(&self) -> [u64; Cause::COUNT] {
        let total = u128::from(self.total().ps());
        let scaled = self.0.map(|span| u128::from(span.ps()) * 1_000);
        let mut shares = scaled.map(|ps| ps.checked_div(total).unwrap_or(0) as u64);
        let mut order: Vec<_> = (0..Cause::COUNT).collect();
        order.sort_by_key(|&cause| std::cmp::Reverse(scaled[cause].checked_rem(total).unwrap_or(0)));
        let missing = if total == 0 { 0 } else { 1_000 - shares.iter().sum::<u64>() };
        order.into_iter().take(missing as usize).for_each(|cause| shares[cause] += 1);
        shares
    }
}

/// The time of one queue pair at the end that posts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QueuePairTime {
    pub node: NodeId,
    pub qpn: Qpn,
    pub peer: NodeId,
    pub times: Times,
}

/// Attributes the time of every queue pair that posts messages, from its events.
///
/// Memory grows with queue pairs and nothing else; the time of an event is counted when a cause changes.
#[derive(Clone, Debug)]
pub struct Attribution {
    nodes: Vec<Node>,
    /// The last completion or delivery so far: where the run ends, if nothing is left unfinished.
    last_finish: Instant,
}

#[derive(Clone, Debug, Default)]
struct Node {
    rates: Vec<Rate>,
    queue_pairs: BTreeMap<Qpn, QueuePair>,
    /// Whose data packet a port sends.
    on_line: Option<(PortId, Qpn)>,
    /// Since when the line has been idle, if it is.
    idle_since: Option<Instant>,
    /// Data packets in egress queues.
    queued: u64,
    paused: [bool; Class::COUNT],
    /// A full pool has stopped generation, and it has not run since.
    is_stopped: bool,
}

#[derive(Clone, Debug)]
struct QueuePair {
    peer: NodeId,
    /// Messages posted and not completed.
    open: u32,
    message: Message,
    /// An RNR NAK's time is not over.
    is_not_ready: bool,
    /// The message in progress goes on when its WQE is here again.
    lacks_wqe: bool,
    /// Its data packets in the egress queue, and their class.
    queued: u32,
    class: Class,
    /// Its packet is on the line; from that instant on longer than DataRate takes.
    on_line: Option<Instant>,
    state: State,
    since: Instant,
    clock: Clock,
}

/// How far the message in progress has come: indices of its packets, which do not wrap.
#[derive(Clone, Copy, Debug, Default)]
struct Message {
    id: Option<MessageId>,
    first: Psn,
    una: i64,
    next: i64,
    fetch: i64,
    end: i64,
}

/// What keeps the next packet off the line, as far as it is known at the moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    OnLine(Instant),
    Waits(Cause),
    /// For an acknowledgement or for the transport timer: whichever comes tells which it was.
    Undecided,
}

/// Adds up time, and keeps apart what lies behind the last completion or delivery: a run that finishes ends there.
#[derive(Clone, Copy, Debug, Default)]
struct Clock {
    until_finish: Tally,
    behind_finish: Tally,
    finish: Instant,
}

#[derive(Clone, Copy, Debug, Default)]
struct Tally {
    times: Times,
    undecided: Span,
}

impl Attribution {
    pub fn new(names: &Names) -> Self {
        let rates = |ports: &[crate::trace::PortNames]| ports.iter().map(|port| port.rate).collect();
        let node = |names: &crate::trace::NodeNames| Node {
            rates: rates(&names.ports),
            idle_since: Some(Instant::ZERO),
            ..Node::default()
        };
        Self { nodes: names.nodes.iter().map(node).collect(), last_finish: Instant::ZERO }
    }

    /// The time of every queue pair from 0 to `end`, by node and number.
    ///
    /// * `end`: the last completion or delivery, or the instant at which an unfinished run was cut off.
    pub fn at_end(&self, end: Instant) -> Vec<QueuePairTime> {
        let mut times = Vec::new();
        for (node, state) in (0..).map(NodeId).zip(&self.nodes) {
            for (&qpn, queue_pair) in &state.queue_pairs {
                let mut queue_pair = queue_pair.clone();
                queue_pair.settle(queue_pair.since.max(end), self.last_finish, state.idle_since);
                let (peer, times_to_end) = (queue_pair.peer, queue_pair.clock.times_to(end));
                times.push(QueuePairTime { node, qpn, peer, times: times_to_end });
            }
        }
        times
    }
}

impl Sink for Attribution {
    fn record(&mut self, event: &Event) -> io::Result<()> {
        let (now, node) = (event.at, &mut self.nodes[event.node.index()]);
        use EventKind::{DeliveryFailed, MessageCompleted, MessageDelivered, MessageFailed};
        if matches!(
            event.kind,
            MessageCompleted { .. } | MessageDelivered { .. } | MessageFailed { .. } | DeliveryFailed { .. }
        ) {
            self.last_finish = now;
        }
        let finish = self.last_finish;
        match event.kind {
            EventKind::MessagePosted { qpn, peer, .. } => {
                node.queue_pairs.entry(qpn).or_insert_with(|| QueuePair::new(peer));
                node.change(qpn, now, finish, |qp| qp.open += 1);
            }
            EventKind::MessageStarted { message: id, qpn, first_psn, packets } => {
                let (id, first, end) = (Some(id), first_psn, i64::from(packets));
                node.change(qpn, now, finish, |qp| qp.message = Message { id, first, end, ..Message::default() });
            }
            MessageCompleted { qpn, .. } | MessageFailed { qpn, .. } => node.change(qpn, now, finish, |qp| {
                qp.open = qp.open.saturating_sub(1);
                (qp.message, qp.lacks_wqe) = (Message::default(), false);
            }),
            EventKind::SendQueueRewound { qpn, .. } => node.change(qpn, now, finish, |qp| qp.lacks_wqe = true),
            EventKind::WqeFetched { qpn, message, .. } => {
                node.change(qpn, now, finish, |qp| qp.lacks_wqe &= qp.message.id != Some(message));
            }
            EventKind::RnrWaitStarted { qpn, .. } => node.change(qpn, now, finish, |qp| qp.is_not_ready = true),
            EventKind::RnrWaitEnded { qpn, .. } => node.change(qpn, now, finish, |qp| qp.is_not_ready = false),
            EventKind::SegmentReserved { qpn, psn, .. } => {
                node.set_stopped(false, now, finish);
                node.change(qpn, now, finish, |qp| qp.message.fetch = qp.message.index(qp.message.fetch, psn) + 1);
            }
            EventKind::PacketNumbered { qpn, psn, .. } => {
                node.change(qpn, now, finish, |qp| qp.message.next = qp.message.index(qp.message.next, psn) + 1);
            }
            EventKind::PacketsRetired { qpn, up_to, .. } => node.change(qpn, now, finish, |qp| {
                qp.clock.decide(Cause::Acknowledgement);
                qp.message.retire(up_to);
            }),
            EventKind::TransportTimerExpired { qpn, .. } => {
                node.change(qpn, now, finish, |qp| qp.clock.decide(Cause::Timeout));
            }
            EventKind::Rewound { qpn, to, .. } => node.change(qpn, now, finish, |qp| {
                qp.clock.decide(Cause::Acknowledgement);
                qp.message.rewind(to);
            }),
            EventKind::GenerationStopped { .. } => node.set_stopped(true, now, finish),
            EventKind::GenerationIdle | EventKind::GenerationBlockedByPcie { .. } => {
                node.set_stopped(false, now, finish);
            }
            EventKind::FrameQueued { queue: Queue::Class(class), qpn: Some(qpn), .. } => {
                node.queued += 1;
                node.change(qpn, now, finish, |qp| (qp.queued, qp.class) = (qp.queued + 1, class));
            }
            EventKind::TransmitStarted { port, qpn, wire_len, rate, .. } => {
                if let Some(qpn) = qpn {
                    let line = node.rates.get(port.index()).map_or(rate, |line| (*line).max(rate));
                    let is_slowed_from = now + line.time_for(wire_len);
                    node.on_line = Some((port, qpn));
                    node.queued = node.queued.saturating_sub(1);
                    node.change(qpn, now, finish, |qp| {
                        qp.queued = qp.queued.saturating_sub(1);
                        qp.on_line = Some(is_slowed_from);
                    });
                }
                node.end_idling(now, finish);
            }
            EventKind::FrameSent { port, .. } => {
                node.idle_since = Some(now);
                if let Some((_, qpn)) = node.on_line.take_if(|(on, _)| *on == port) {
                    node.change(qpn, now, finish, |qp| qp.on_line = None);
                }
            }
            EventKind::Paused { class, .. } => node.set_paused(class, true, now, finish),
            EventKind::Resumed { class, .. } => node.set_paused(class, false, now, finish),
            _ => {}
        }
        Ok(())
    }
}

impl Node {
    /// Counts the time so far, changes the queue pair, and looks what it waits for now.
    fn change(&mut self, qpn: Qpn, now: Instant, finish: Instant, change: impl FnOnce(&mut QueuePair)) {
        if let Some(queue_pair) = self.queue_pairs.get_mut(&qpn) {
            queue_pair.settle(now, finish, self.idle_since);
            change(queue_pair);
            queue_pair.state = queue_pair.look(&self.paused, self.is_stopped);
        }
    }

    fn set_stopped(&mut self, is_stopped: bool, now: Instant, finish: Instant) {
        if std::mem::replace(&mut self.is_stopped, is_stopped) != is_stopped {
            self.look_again(now, finish);
        }
    }

    fn set_paused(&mut self, class: Class, is_paused: bool, now: Instant, finish: Instant) {
        if std::mem::replace(&mut self.paused[class.index()], is_paused) != is_paused {
            self.look_again(now, finish);
        }
    }

    /// Something has changed for every queue pair.
    fn look_again(&mut self, now: Instant, finish: Instant) {
        for queue_pair in self.queue_pairs.values_mut() {
            let state = queue_pair.look(&self.paused, self.is_stopped);
            if state != queue_pair.state {
                queue_pair.settle(now, finish, self.idle_since);
                queue_pair.state = state;
            }
        }
    }

    /// Something goes on the line. Those who had a packet queued while nothing was there waited for their own rate.
    fn end_idling(&mut self, now: Instant, finish: Instant) {
        let idle_since = self.idle_since.take();
        if self.queued > 0 && idle_since.is_some_and(|since| since < now) {
            let waiting = self.queue_pairs.values_mut().filter(|qp| qp.state == State::Waits(Cause::LineBusy));
            waiting.for_each(|queue_pair| queue_pair.settle(now, finish, idle_since));
        }
    }
}

impl QueuePair {
    fn new(peer: NodeId) -> Self {
        Self {
            peer,
            open: 0,
            message: Message::default(),
            is_not_ready: false,
            lacks_wqe: false,
            queued: 0,
            class: Class::default(),
            on_line: None,
            state: State::Waits(Cause::Idle),
            since: Instant::ZERO,
            clock: Clock::default(),
        }
    }

    fn look(&self, paused: &[bool; Class::COUNT], is_stopped: bool) -> State {
        let Message { una, next, fetch, end, .. } = self.message;
        State::Waits(if let Some(slowed_from) = self.on_line {
            return State::OnLine(slowed_from);
        } else if self.queued > 0 && paused[self.class.index()] {
            Cause::Pause
        } else if self.queued > 0 {
            Cause::LineBusy
        } else if self.open == 0 {
            Cause::Idle
        } else if self.is_not_ready {
            Cause::RnrWait
        } else if self.lacks_wqe || self.message.id.is_none() {
            Cause::WqeFetch
        } else if fetch > next || (fetch < end && !is_stopped) {
            Cause::PcieRead
        } else if fetch < end {
            Cause::EgressPool
        } else if next > una {
            return State::Undecided;
        } else {
            // The message is retired, and completes in this instant.
            Cause::Acknowledgement
        })
    }

    /// Counts the time until now. A line that is idle is not busy with others.
    fn settle(&mut self, now: Instant, finish: Instant, idle_since: Option<Instant>) {
        let (since, clock) = (self.since, &mut self.clock);
        match self.state {
            State::OnLine(slowed_from) => {
                let slowed_from = slowed_from.clamp(since, now.max(since));
                clock.add(since, slowed_from, Some(Cause::Sending), finish);
                clock.add(slowed_from, now, Some(Cause::AllowedRate), finish);
            }
            State::Waits(Cause::LineBusy) => {
                let idle_since = idle_since.unwrap_or(now).clamp(since, now.max(since));
                clock.add(since, idle_since, Some(Cause::LineBusy), finish);
                clock.add(idle_since, now, Some(Cause::AllowedRate), finish);
            }
            State::Waits(cause) => clock.add(since, now, Some(cause), finish),
            State::Undecided => clock.add(since, now, None, finish),
        }
        self.since = now;
    }
}

impl Message {
    /// The index of a PSN, as seen from another that is near.
    fn index(&self, near: i64, psn: Psn) -> i64 {
        near + i64::from(psn.since(self.first.plus(near as u32)))
    }

    fn retire(&mut self, up_to: Psn) {
        self.una = self.index(self.una, up_to) + 1;
        self.next = self.next.max(self.una);
        self.fetch = self.fetch.max(self.una);
    }

    fn rewind(&mut self, to: Psn) {
        self.una = self.index(self.una, to);
        (self.next, self.fetch) = (self.una, self.una);
    }
}

impl Clock {
    /// * `finish`: the last completion or delivery known. One that this clock has not heard of lies at or behind `from`,
    ///   since time is added without gaps.
    fn add(&mut self, from: Instant, to: Instant, cause: Option<Cause>, finish: Instant) {
        if finish > self.finish {
            self.finish = finish;
            let behind = std::mem::take(&mut self.behind_finish);
            self.until_finish.times.add(&behind.times);
            self.until_finish.undecided += behind.undecided;
        }
        let border = self.finish.clamp(from, to.max(from));
        self.until_finish.add(cause, border.since(from));
        self.behind_finish.add(cause, to.since(border));
    }

    /// What was undecided so far has this cause.
    fn decide(&mut self, cause: Cause) {
        self.until_finish.decide(cause);
        self.behind_finish.decide(cause);
    }

    fn times_to(mut self, end: Instant) -> Times {
        self.decide(Cause::Acknowledgement);
        let mut times = self.until_finish.times;
        if end > self.finish {
            times.add(&self.behind_finish.times);
        }
        times
    }
}

impl Tally {
    fn add(&mut self, cause: Option<Cause>, span: Span) {
        match cause {
            Some(cause) => self.times.0[cause as usize] += span,
            None => self.undecided += span,
        }
    }

    fn decide(&mut self, cause: Cause) {
        let undecided = std::mem::take(&mut self.undecided);
        self.add(Some(cause), undecided);
    }
}

#[cfg(test)]
mod tests {
    use super::super::story::{self, A, at, qpn};
    use super::*;

    /// Times by cause of A's queue pair, without those that are 0.
    fn causes(events: &[Event], end: u64) -> Vec<(Cause, u64)> {
        let mut attribution = Attribution::new(&story::names());
        story::play(events, &mut attribution).unwrap();
        let times = attribution.at_end(Instant::from_ps(end))[0].times;
        times.iter().map(|(cause, span)| (cause, span.ps())).filter(|(_, ps)| *ps > 0).collect()
    }

    #[test]
    fn what_a_receiver_without_a_receive_costs_is_an_rnr_wait() {
        let (qpn, psn, until) = (qpn(2), Psn::new(0), Instant::from_ps(900));
        let events = [
            story::posted(0, A, 0, 8),
            story::started(0, A, 0, 0, 1),
            at(200, A, EventKind::Rewound { qpn, to: psn, packets: 1 }),
            at(200, A, EventKind::RnrWaitStarted { qpn, psn, until, attempt: 1 }),
            at(900, A, EventKind::RnrWaitEnded { qpn, psn }),
            story::completed(1_000, A, 0),
        ];
        assert_eq!(causes(&events, 1_000), [(Cause::RnrWait, 700), (Cause::PcieRead, 300)]);
    }

    #[test]
    fn a_message_without_its_wqe_waits_for_that_first_and_after_a_rewind() {
        let (qpn, message, carried) = (qpn(2), MessageId(0), crate::base::Octets::new(98));
        let events = [
            story::posted(0, A, 0, 8),
            // That of another, fetched ahead, is not what it waits for.
            at(20, A, EventKind::WqeFetched { qpn, message: MessageId(1), carried }),
            at(30, A, EventKind::WqeFetched { qpn, message, carried }),
            story::started(30, A, 0, 0, 1),
            at(200, A, EventKind::SendQueueRewound { qpn, entries: 2 }),
            at(250, A, EventKind::WqeFetched { qpn, message: MessageId(1), carried }),
            at(260, A, EventKind::WqeFetched { qpn, message, carried }),
            story::completed(300, A, 0),
        ];
        assert_eq!(causes(&events, 300), [(Cause::WqeFetch, 30 + 60), (Cause::PcieRead, 170 + 40)]);
    }
}
