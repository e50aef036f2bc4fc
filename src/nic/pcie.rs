//! The PCIe link between the NIC and its host: one queue per direction, transfers of 512 octets.
//!
//! ```text
//!            read requests, received data            upstream    (NIC-side lanes)
//!    NIC  ──────────────────────────────────────►  host
//!         ◄──────────────────────────────────────
//!            completions: payload to be sent, WQEs;  downstream  (host-side lanes)
//!            doorbells
//! ```

use std::collections::VecDeque;

use super::PcieSide;
use crate::base::{Instant, Octets, Rate};
use crate::ring::LINE;
use crate::trace::{EventKind, PcieDirection};

/// Payload of one transfer, at most.
pub const TRANSFER_PAYLOAD: Octets = Octets::new(512);
/// What each transfer adds on the link and takes in a header buffer.
pub const TRANSFER_OVERHEAD: Octets = Octets::new(34);

/// Octets on the link of a message of so many transfers.
pub const fn on_link(payload: Octets, transfers: u64) -> Octets {
    Octets::new(payload.get() + TRANSFER_OVERHEAD.get() * transfers)
}

/// Transfers that a write or a completion of `payload` takes.
pub const fn transfer_count(payload: Octets) -> u64 {
    payload.get().div_ceil(TRANSFER_PAYLOAD.get())
}

/// One direction of the link: a transmit buffer that messages enter whole, and the lanes they leave on in that order.
///
/// A message's transfers never interleave with another's, and it is rounded once: its k-th transfer ends at
/// start + T(octets of its first k transfers) (timing rules 2, 6 and 28).
#[derive(Clone, Debug)]
pub struct Direction<M> {
    rate: Rate,
    /// Size of the transmit buffer. `None`: unlimited, as the host's end never changes a time (timing rule 32).
    limit: Option<Space>,
    /// What the transmit buffer holds, and the most it held.
    held: Space,
    peak: Space,
    /// The largest transfer: what the receiving end's buffer holds, and frees, in the instant of an arrival.
    largest_transfer: Space,
    /// The front message is the one on the link, unless the link is idle.
    messages: VecDeque<Message<M>>,
    started_at: Instant,
    transfers_ended: u64,
    /// Octets that have crossed, overhead included.
    carried: Octets,
}

/// Octets of a buffer for headers and one for data.
#[derive(Clone, Copy, Debug, Default)]
struct Space {
    header: Octets,
    data: Octets,
}

impl Space {
    fn max(self, other: Self) -> Self {
        Self { header: self.header.max(other.header), data: self.data.max(other.data) }
    }
}

#[derive(Clone, Debug)]
struct Message<M> {
    content: M,
    payload: Octets,
    /// Payload of each transfer but the last.
    transfer_payload: Octets,
    transfer_count: u64,
}

impl<M> Message<M> {
    fn header(&self) -> Octets {
        Octets::new(TRANSFER_OVERHEAD.get() * self.transfer_count)
    }

    /// Payload octets of the first `count` transfers.
    fn payload_of(&self, count: u64) -> Octets {
        self.payload.min(Octets::new(self.transfer_payload.get().saturating_mul(count)))
    }

    /// What the transfer of this index adds to a buffer; nothing if the message has none.
    fn transfer(&self, index: u64) -> Space {
        if index >= self.transfer_count {
            return Space::default();
        }
        Space { header: TRANSFER_OVERHEAD, data: self.payload_of(index + 1) - self.payload_of(index) }
    }
}

impl<M> Direction<M> {
    /// A direction fed by `side`, whose transmit buffer is limited.
    pub fn limited(side: &PcieSide) -> Self {
        Self::new(side, Some(Space { header: side.tx_header_buffer, data: side.tx_data_buffer }))
    }

    /// A direction fed by `side` without a limit on what waits.
    pub fn unlimited(side: &PcieSide) -> Self {
        Self::new(side, None)
    }

    fn new(side: &PcieSide, limit: Option<Space>) -> Self {
        Self {
            rate: side.rate(),
            limit,
            held: Space::default(),
            peak: Space::default(),
            largest_transfer: Space::default(),
            messages: VecDeque::new(),
            started_at: Instant::ZERO,
            transfers_ended: 0,
            carried: Octets::ZERO,
        }
    }

    /// Offers a write or completion of `payload` octets. Gives `content` back if the buffer has no room for it.
    pub fn offer(&mut self, now: Instant, content: M, payload: Octets) -> Result<Accepted, M> {
        let transfer_count = transfer_count(payload);
        self.enter(now, Message { content, payload, transfer_payload: TRANSFER_PAYLOAD, transfer_count })
    }

    /// Offers a read request of `size` octets: always one transfer.
    pub fn offer_request(&mut self, now: Instant, content: M, size: Octets) -> Result<Accepted, M> {
        self.enter(now, Message { content, payload: size, transfer_payload: size, transfer_count: 1 })
    }

    /// Offers MMIO writes of 64 octets, a transfer each: so many lines of a doorbell.
    pub fn offer_lines(&mut self, now: Instant, content: M, lines: u64) -> Result<Accepted, M> {
        let line = Octets::new(LINE as u64);
        let payload = Octets::new(line.get() * lines);
        self.enter(now, Message { content, payload, transfer_payload: line, transfer_count: lines })
    }

    fn enter(&mut self, now: Instant, message: Message<M>) -> Result<Accepted, M> {
        let held = Space { header: self.held.header + message.header(), data: self.held.data + message.payload };
        if self.limit.is_some_and(|limit| held.header > limit.header || held.data > limit.data) {
            return Err(message.content);
        }
        self.held = held;
        self.peak = self.peak.max(held);
        let was_idle = self.messages.is_empty();
        self.messages.push_back(message);
        Ok(Accepted { transfer_ends: if was_idle { self.start_message(now) } else { None } })
    }

    /// The transfer on the link has ended; the next one starts, if there is one.
    ///
    /// * Panics: if the link was idle (caller's bug).
    pub fn transfer_ended(&mut self, now: Instant) -> TransferEnd<M> {
        let message = self.messages.front().expect("a transfer ends on a link that carries one");
        let transfer = message.transfer(self.transfers_ended);
        self.carried += transfer.header + transfer.data;
        self.largest_transfer = self.largest_transfer.max(transfer);
        if self.transfers_ended + 1 < message.transfer_count {
            self.transfers_ended += 1;
            return TransferEnd { finished: None, transfer_ends: Some(self.start_transfer()) };
        }
        let finished = self.messages.pop_front().map(|message| message.content);
        TransferEnd { finished, transfer_ends: self.start_message(now) }
    }

    fn start_message(&mut self, now: Instant) -> Option<Instant> {
        self.started_at = now;
        self.transfers_ended = 0;
        (!self.messages.is_empty()).then(|| self.start_transfer())
    }

    /// Starts the next transfer of the front message: its buffer space is free from now on. Returns when it ends.
    fn start_transfer(&mut self) -> Instant {
        let message = self.messages.front().expect("only a message that is there is started");
        let nth = (self.transfers_ended + 1).min(message.transfer_count);
        let on_link = message.payload_of(nth) + Octets::new(TRANSFER_OVERHEAD.get() * nth);
        let transfer = message.transfer(self.transfers_ended);
        self.held.header -= transfer.header;
        self.held.data -= transfer.data;
        self.started_at + self.rate.time_for(on_link)
    }

    pub fn is_idle(&self) -> bool {
        self.messages.is_empty()
    }

    /// What the run's end says of this direction.
    pub fn report(&self, direction: PcieDirection) -> EventKind {
        EventKind::PcieCarried {
            direction,
            carried: self.carried,
            rate: self.rate,
            tx_header_peak: self.peak.header,
            tx_data_peak: self.peak.data,
            rx_header_peak: self.largest_transfer.header,
            rx_data_peak: self.largest_transfer.data,
        }
    }

    /// Messages that wait or are crossing, oldest first.
    pub fn messages(&self) -> impl Iterator<Item = &M> {
        self.messages.iter().map(|message| &message.content)
    }
}

/// A message entered the transmit buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub struct Accepted {
    /// Set if the link was idle: the message's first transfer started and ends then.
    pub transfer_ends: Option<Instant>,
}

/// A transfer has ended.
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use]
pub struct TransferEnd<M> {
    /// The message whose last transfer it was.
    pub finished: Option<M>,
    /// When the transfer that started now ends.
    pub transfer_ends: Option<Instant>,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ps: u64) -> Instant {
        Instant::from_ps(ps)
    }

    /// The ends of all transfers until the link is idle.
    fn run(direction: &mut Direction<&'static str>, first: Accepted) -> Vec<(u64, Option<&'static str>)> {
        let mut ends = Vec::new();
        let mut next = first.transfer_ends;
        while let Some(now) = next {
            let end = direction.transfer_ended(now);
            ends.push((now.ps(), end.finished));
            next = end.transfer_ends;
        }
        ends
    }

    #[test]
    fn a_full_payload_crosses_in_eight_transfers_and_is_rounded_once() {
        let mut direction = Direction::unlimited(&PcieSide::default());
        let first = direction.offer(at(0), "payload", Octets::new(4_096)).unwrap();
        let ends = run(&mut direction, first);
        // k x 546 B x 8 / 504.32 Gb/s: 8661.17, 17322.34 … 69289.34 ps.
        let expected = [8_661, 17_322, 25_984, 34_645, 43_306, 51_967, 60_628, 69_289];
        assert_eq!(ends.iter().map(|end| end.0).collect::<Vec<_>>(), expected);
        assert_eq!(ends.last().unwrap().1, Some("payload"));
        assert_eq!(direction.carried.get(), 4_368);
        assert_eq!((direction.peak.header.get(), direction.peak.data.get()), (8 * 34, 4_096));
        assert_eq!((direction.held.header.get(), direction.held.data.get()), (0, 0));
        assert_eq!((direction.largest_transfer.header.get(), direction.largest_transfer.data.get()), (34, 512));
    }

    #[test]
    fn messages_leave_in_the_order_they_entered_back_to_back() {
        let mut direction = Direction::limited(&PcieSide::default());
        let first = direction.offer_request(at(0), "request", Octets::new(64)).unwrap();
        let second = direction.offer(at(0), "write", Octets::new(513)).unwrap();
        assert_eq!(second.transfer_ends, None, "it waits");
        // 98 B: 1555 ps. Then 546 B: +8661; 513 + 68 B = 581 B: 9216.4 ps.
        assert_eq!(
            run(&mut direction, first),
            [(1_555, Some("request")), (1_555 + 8_661, None), (1_555 + 9_216, Some("write"))]
        );
    }

    #[test]
    fn the_lines_of_a_doorbell_are_transfers_of_one_message() {
        let mut direction = Direction::unlimited(&PcieSide::default());
        let first = direction.offer_lines(at(0), "doorbell", 3).unwrap();
        // k x 98 B: 1554.57, 3109.14, 4663.71 ps.
        assert_eq!(run(&mut direction, first), [(1_555, None), (3_109, None), (4_664, Some("doorbell"))]);
        assert_eq!(direction.carried.get(), 3 * 98);
    }

    #[test]
    fn a_payload_of_nothing_passes_in_no_time() {
        let mut direction = Direction::limited(&PcieSide::default());
        let first = direction.offer(at(7), "empty", Octets::ZERO).unwrap();
        assert_eq!(run(&mut direction, first), [(7, Some("empty"))]);
    }

    #[test]
    fn default_buffers_take_58_packets_beside_the_one_on_the_link() {
        let mut direction = Direction::limited(&PcieSide::default());
        let mut accepted = 0;
        while direction.offer(at(0), "write", Octets::new(4_096)).is_ok() {
            accepted += 1;
        }
        // 470 headers fit; eight a packet, and the first packet has given back the header of its first transfer:
        // 58 x 8 = 464, 471 - 464 = 7 are left.
        assert_eq!(accepted, 58);
    }

    #[test]
    fn a_transfer_gives_its_space_back_when_it_starts() {
        let side = PcieSide { tx_data_buffer: Octets::new(1_024), ..PcieSide::default() };
        let mut direction = Direction::limited(&side);
        let first = direction.offer(at(0), "a", Octets::new(1_024)).unwrap();
        assert!(direction.offer(at(0), "b", Octets::new(512)).is_ok(), "the first half is on the link");
        assert!(direction.offer(at(0), "c", Octets::new(1)).is_err(), "the second is not");
        let end = direction.transfer_ended(first.transfer_ends.unwrap());
        assert_eq!(end.finished, None);
        assert!(direction.offer(at(9_000), "c", Octets::new(512)).is_ok());
    }
}
