//! The event calendar: what happens next, with no tie left to chance.

use std::collections::BTreeMap;

use super::Instant;

/// The order of events inside one picosecond: releases before uses, arrivals before timers, choices last.
///
/// * Source: timing rule 3.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Phase {
    /// A port has put the last bit of a frame on the line.
    TransmitEnd,
    /// The last bit of a frame has arrived.
    Arrival,
    /// A PCIe transfer has ended.
    Pcie,
    /// The host posts work.
    Post,
    /// A timer expires.
    Timer,
    /// The NIC takes segments from its ready queue.
    Generate,
    /// An idle port chooses its next frame.
    PortChoice,
}

/// When something happens, among all things of one node: instant, phase, then port or timer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Wake {
    pub at: Instant,
    pub phase: Phase,
    /// Port, PCIe direction or timer kind.
    pub unit: u16,
}

/// The receipt of a scheduled event, to cancel it by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Ticket {
    wake: Wake,
    serial: u64,
}

/// Events in the order in which they happen; ties of the same [`Wake`] fall in the order of scheduling.
///
/// * Cost: O(log n) for each of schedule, cancel and pop.
#[derive(Clone, Debug)]
pub struct Calendar<E> {
    events: BTreeMap<Ticket, E>,
    scheduled: u64,
}

impl<E> Default for Calendar<E> {
    fn default() -> Self {
        Self { events: BTreeMap::new(), scheduled: 0 }
    }
}

impl<E> Calendar<E> {
    pub fn schedule(&mut self, wake: Wake, event: E) -> Ticket {
        let ticket = Ticket { wake, serial: self.scheduled };
        self.scheduled += 1;
        self.events.insert(ticket, event);
        ticket
    }

    /// Takes the event back; `None` if it has already happened.
    pub fn cancel(&mut self, ticket: Ticket) -> Option<E> {
        self.events.remove(&ticket)
    }

    /// When the next event happens.
    pub fn next(&self) -> Option<Wake> {
        self.events.first_key_value().map(|(ticket, _)| ticket.wake)
    }

    pub fn pop(&mut self) -> Option<(Wake, E)> {
        self.events.pop_first().map(|(ticket, event)| (ticket.wake, event))
    }

    pub fn is_empty(&self) -> bool {
        self.events.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wake(at: u64, phase: Phase, unit: u16) -> Wake {
        Wake { at: Instant::from_ps(at), phase, unit }
    }

    #[test]
    fn one_instant_is_ordered_by_phase() {
        let mut calendar = Calendar::default();
        calendar.schedule(wake(5, Phase::PortChoice, 0), "choice");
        calendar.schedule(wake(5, Phase::Timer, 1), "late timer");
        calendar.schedule(wake(5, Phase::Timer, 0), "first timer");
        calendar.schedule(wake(5, Phase::Timer, 0), "second timer");
        calendar.schedule(wake(5, Phase::TransmitEnd, 0), "release");
        calendar.schedule(wake(4, Phase::PortChoice, 9), "earlier");
        let order: Vec<_> = std::iter::from_fn(|| calendar.pop()).map(|(_, event)| event).collect();
        assert_eq!(order, ["earlier", "release", "first timer", "second timer", "late timer", "choice"]);
    }

    #[test]
    fn a_cancelled_event_does_not_happen() {
        let mut calendar = Calendar::default();
        let ticket = calendar.schedule(wake(1, Phase::Timer, 0), 1);
        calendar.schedule(wake(2, Phase::Timer, 0), 2);
        assert_eq!(calendar.cancel(ticket), Some(1));
        assert_eq!(calendar.cancel(ticket), None);
        assert_eq!(calendar.pop().map(|(_, event)| event), Some(2));
        assert!(calendar.is_empty());
    }
}
