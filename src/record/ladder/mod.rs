//! The packet ladder: what crossed the links, one line per frame, as a picture for people and for test snapshots.

use std::borrow::Cow;
use std::collections::VecDeque;
use std::io::{self, BufWriter, Write};

use super::marked::Marked;
use super::{counted, into_inner, words};
use crate::base::{Instant, NodeId, PortId};
use crate::trace::{DropReason, Effect, Event, EventKind, Headline, Names, PacketKind, RuleEffect, Sink, Verdict};

/// A link by its two ports. Where a ladder shows it, its first end stands on the left.
pub type LinkEnds = ((NodeId, PortId), (NodeId, PortId));

/// Writes one line per frame, and marked lines for what explains them.
///
/// ```text
///         ns      frame                                qp  what was decided
///      0.000  a * message 0 posted: WRITE of 8192 B to b
///    233.924  a |--WRITE 0-------------->| b        2  discarded: ingress pool full
///    317.004  a |--WRITE 1-------------->| b        2  discarded: after NAK
///    419.524  a |<----------------NAK 0--| b        2
///    519.524  a * goes back to PSN 0, 2 packets taken back
///    753.448  a |--WRITE 0-------------->| b        2  retransmission 1
/// ```
///
/// A frame stands at the time its last bit left the sender, in nanoseconds with every picosecond, and lines stand in
/// that order. The number at the packet is its PSN, for PFC the class; `qp` is the destination queue pair in decimal. A
/// frame that the link dropped ends in an `x`. What went as it should, accepted or processed, is not worth a word.
///
/// A line is one link: behind a switch a frame has a second one, with the switch on one side and the next node on the
/// other. Where two nodes have several links, frames on all but the first say by which port they left.
///
/// A line waits until the fate of its frame is known, and so do those behind it. Frames of one direction of a link
/// arrive in the order in which they were sent; where one arrives out of turn, it is told by its packet.
///
/// * Errors: those of the writer.
/// * Memory: the lines of frames on their way, up to [`Ladder::PATIENCE`].
pub struct Ladder<W: Write> {
    writer: BufWriter<W>,
    names: Names,
    name_width: usize,
    /// Per node and port: which end of which link it is.
    ends: Vec<Vec<Option<End>>>,
    /// Per link and direction: lines of frames on their way, the oldest first.
    in_flight: Vec<[VecDeque<Flight>; 2]>,
    waiting: VecDeque<Line>,
    marked: Marked,
    /// Lines written; line `n` of the run waits at `n - written`.
    written: u64,
}

/// One end of a link. Frames that it sends go in direction 0 if it is the first end, which stands on the left.
#[derive(Clone, Copy)]
struct End {
    link: usize,
    direction: usize,
    peer: NodeId,
}

struct Flight {
    line: u64,
    packet: Headline,
    /// A fault changed its octets: what arrives may look like another packet.
    is_corrupted: bool,
}

/// What leaves a port.
struct Sent<'a> {
    packet: Headline,
    copies: u32,
    effects: &'a [RuleEffect],
}

struct Line {
    at: Instant,
    node: NodeId,
    what: What,
}

enum What {
    Note(String),
    Frame { end: End, packet: Headline, remarks: Vec<Cow<'static, str>>, state: State },
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    OnItsWay { copies: u32 },
    Arrived,
    Dropped,
}

/// Columns from one bar of an arrow to the other.
const ARROW: usize = 24;
/// Columns of the whole nanoseconds.
const NS: usize = 10;

impl<W: Write> Ladder<W> {
    /// So many lines wait for the fate of the first of them; then that line is written without it.
    pub const PATIENCE: usize = 65_536;

    /// Writes the line that names the columns.
    ///
    /// * Shape: ports of `names` that are on no link of `links` have no frames in the picture.
    pub fn new(writer: W, names: &Names, links: &[LinkEnds]) -> io::Result<Self> {
        let mut ends: Vec<Vec<_>> = names.nodes.iter().map(|node| vec![None; node.ports.len()]).collect();
        for (link, (left, right)) in links.iter().enumerate() {
            for (direction, (from, to)) in [(left, right), (right, left)].into_iter().enumerate() {
                ends[from.0.index()][from.1.index()] = Some(End { link, direction, peer: to.0 });
            }
        }
        let mut ladder = Self {
            writer: BufWriter::new(writer),
            names: names.clone(),
            name_width: names.nodes.iter().map(|node| node.name.chars().count()).max().unwrap_or(0),
            ends,
            in_flight: links.iter().map(|_| Default::default()).collect(),
            waiting: VecDeque::new(),
            marked: Marked::default(),
            written: 0,
        };
        let frame_width = 2 * ladder.name_width + ARROW + 4;
        writeln!(ladder.writer, "{:>NS$}      {:frame_width$} {:>8}  what was decided", "ns", "frame", "qp")?;
        Ok(ladder)
    }

    /// Writes the lines that still wait.
    pub fn finish(mut self) -> io::Result<W> {
        while let Some(line) = self.waiting.pop_front() {
            self.write(line)?;
        }
        into_inner(self.writer)
    }

    fn end(&self, node: NodeId, port: PortId) -> Option<End> {
        *self.ends.get(node.index())?.get(port.index())?
    }

    fn note(&mut self, event: &Event, words: String) {
        self.waiting.push_back(Line { at: event.at, node: event.node, what: What::Note(words) });
    }

    /// A frame joins the picture. `copies` of it are on their way; none, if the link dropped it.
    fn on_sent(&mut self, event: &Event, end: End, flight: Sent<'_>, remarks: Vec<Cow<'static, str>>) {
        let Sent { packet, copies, effects } = flight;
        let line = self.written + self.waiting.len() as u64;
        let is_corrupted = effects.iter().any(|effect| effect.effect == Effect::Corrupted);
        let flight = |_| Flight { line, packet, is_corrupted };
        self.in_flight[end.link][end.direction].extend((0..copies).map(flight));
        let state = if copies > 0 { State::OnItsWay { copies } } else { State::Dropped };
        self.waiting.push_back(Line {
            at: event.at,
            node: event.node,
            what: What::Frame { end, packet, remarks, state },
        });
    }

    fn on_received(&mut self, event: &Event, end: End, packet: Headline, verdict: Verdict) {
        let flights = &mut self.in_flight[end.link][1 - end.direction];
        // Out of turn only after a fault. What a fault changed may look like any packet, to a switch above all, which
        // checks no ICRC; what cannot be told by its packet or its fault is taken to be the frame whose turn it is.
        let same = flights.iter().position(|flight| is_same(flight.packet, packet));
        let changed = || flights.iter().position(|flight| flight.is_corrupted);
        let is_malformed = matches!(verdict, Verdict::Dropped(DropReason::Malformed(_)));
        let is_unreadable = is_malformed || packet.kind == PacketKind::Other;
        let turn = same.or_else(changed).or(is_unreadable.then_some(0));
        let Some(flight) = turn.and_then(|turn| flights.remove(turn)) else {
            return self.note(event, format!("receives what nobody sent: {}", label(packet)));
        };
        let Some(index) = flight.line.checked_sub(self.written) else { return };
        if let Some(What::Frame { remarks, state, .. }) =
            self.waiting.get_mut(index as usize).map(|line| &mut line.what)
        {
            *state = match *state {
                State::OnItsWay { copies } if copies > 1 => State::OnItsWay { copies: copies - 1 },
                _ => State::Arrived,
            };
            match verdict {
                Verdict::Accepted | Verdict::Processed | Verdict::Forwarded => {}
                Verdict::Duplicate | Verdict::Stale | Verdict::Dropped(_) => remarks.push(words::verdict(verdict)),
            }
        }
    }

    fn write_decided(&mut self) -> io::Result<()> {
        while let Some(line) = self.waiting.front() {
            let is_decided = !matches!(line.what, What::Frame { state: State::OnItsWay { .. }, .. });
            if !is_decided && self.waiting.len() <= Self::PATIENCE {
                break;
            }
            if let Some(line) = self.waiting.pop_front() {
                self.write(line)?;
            }
        }
        Ok(())
    }

    fn write(&mut self, line: Line) -> io::Result<()> {
        self.written += 1;
        let width = self.name_width;
        let node = self.names.node(line.node);
        let text = match line.what {
            What::Note(words) => format!("{node:width$} * {words}"),
            What::Frame { end, packet, mut remarks, state } => {
                let peer = self.names.node(end.peer);
                let (left, right) = if end.direction == 0 { (node, peer) } else { (peer, node) };
                let arrow = arrow(&label(packet), end.direction == 0, state);
                let qp = if packet.kind.is_pfc() { String::new() } else { packet.dest_qpn.get().to_string() };
                if matches!(state, State::OnItsWay { .. }) {
                    remarks.push("still on its way".into());
                }
                format!("{left:width$} |{arrow}| {right:width$} {qp:>8}  {}", remarks.join(", "))
            }
        };
        let (ns, ps) = (line.at.ns_floor(), line.at.ps() % 1_000);
        writeln!(self.writer, "{ns:>NS$}.{ps:03}  {}", text.trim_end())
    }
}

impl<W: Write> Sink for Ladder<W> {
    fn record(&mut self, event: &Event) -> io::Result<()> {
        self.marked.hear(event);
        match event.kind {
            EventKind::FrameSent { port, packet, transmission, fate, ref effects, .. } => {
                if let Some(end) = self.end(event.node, port) {
                    let mark = self.marked.take(event.node, port).then_some(words::MARKED.into());
                    let effects_said = effects.iter().map(|&effect| words::effect(effect, &self.names));
                    let twin = self.names.port(event.node, port).contains('#');
                    let by_port = twin.then(|| format!("by {}", self.names.port(event.node, port)).into());
                    let own = words::retransmission(transmission).into_iter().chain(mark);
                    let remarks = own.chain(effects_said).chain(by_port).collect();
                    let sent = Sent { packet, copies: fate.copies(effects), effects };
                    self.on_sent(event, end, sent, remarks);
                }
            }
            EventKind::FrameInjected { port, rule, packet, .. } => {
                if let Some(end) = self.end(event.node, port) {
                    let remarks = vec![format!("injected by {}", self.names.rule(rule)).into()];
                    self.on_sent(event, end, Sent { packet, copies: 1, effects: &[] }, remarks);
                }
            }
            EventKind::FrameReceived { port, packet, verdict, .. } => {
                if let Some(end) = self.end(event.node, port) {
                    self.on_received(event, end, packet, verdict);
                }
            }
            EventKind::MessagePosted { message, peer, verb, bytes, .. } => {
                let (verb, peer) = (words::verb(verb), self.names.node(peer));
                self.note(event, format!("message {message} posted: {verb} of {bytes} to {peer}"));
            }
            EventKind::MessageDelivered { message, .. } => self.note(event, format!("message {message} delivered")),
            EventKind::MessageCompleted { message, .. } => self.note(event, format!("message {message} completed")),
            EventKind::MessageFailed { message, status, .. } => {
                self.note(event, format!("message {message} failed: {}", status.text()));
            }
            EventKind::DeliveryFailed { message, .. } => self.note(event, format!("message {message} lost: no memory")),
            EventKind::RnrWaitStarted { psn, until, attempt, .. } => {
                let wait = until.since(event.at);
                self.note(event, format!("waits {wait} for a receive at the peer, PSN {psn}, attempt {attempt}"));
            }
            EventKind::QueuePairFailed { qpn, cause } => {
                self.note(event, format!("queue pair {} in error: {}", qpn.get(), cause.text()));
            }
            EventKind::TransportTimerExpired { oldest, .. } => {
                self.note(event, format!("timeout, the oldest PSN without an acknowledgement is {oldest}"));
            }
            EventKind::Rewound { to, packets, .. } => {
                self.note(
                    event,
                    format!("goes back to PSN {to}, {} taken back", counted(u64::from(packets), "packet")),
                );
            }
            EventKind::Paused { class, duration, .. } => {
                self.note(event, format!("class {class} paused for {duration}"));
            }
            EventKind::Resumed { class, paused, by_xon, .. } => {
                let why = if by_xon { "XON" } else { "the pause is over" };
                self.note(event, format!("class {class} resumes after {paused}: {why}"));
            }
            _ => return Ok(()),
        }
        self.write_decided()
    }
}

/// Whether these are the same packet, before and after a link that may have changed its DSCP.
fn is_same(sent: Headline, received: Headline) -> bool {
    sent == Headline { class: if sent.kind.is_pfc() { received.class } else { sent.class }, ..received }
}

/// A packet in two words.
fn label(packet: Headline) -> String {
    let mut label = String::from(packet.kind.text());
    if packet.kind.is_pfc() {
        label += &format!(" class {}", packet.class);
    } else if words::has_psn(packet.kind) {
        label += &format!(" {}", packet.psn);
    }
    label
}

/// `--WRITE 0------------->`, or the mirror of it, [`ARROW`] columns wide.
fn arrow(label: &str, is_to_the_right: bool, state: State) -> String {
    let label_width = ARROW - 3;
    match (is_to_the_right, state) {
        (true, State::Dropped) => format!("--{label:-<width$}x{:4}", "", width = label_width - 4),
        (true, _) => format!("--{label:-<label_width$}>"),
        (false, State::Dropped) => format!("{:4}x{label:->width$}--", "", width = label_width - 4),
        (false, _) => format!("<{label:->label_width$}--"),
    }
}

#[cfg(test)]
mod tests;
