//! Sending PFC pauses: when a class asks its peer to stop, and when to go on.

use crate::base::{Octets, Rate, Span};

/// How long a pause of `quanta` lasts.
///
/// * Units: quanta of 512 bit times at `rate`.
/// * Source: timing rule 29.
pub fn pause_time(quanta: u16, rate: Rate, delay: Span) -> Span {
    rate.time_for(Octets::new(64 * u64::from(quanta))) + delay
}

/// The pauses that one class of a port sends to its peer. The owner keeps the refresh timer: it runs while a pause
/// is outstanding.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PauseSender {
    xoff: Octets,
    xon: Octets,
    outstanding: bool,
}

/// What a refresh sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refresh {
    /// Still at or above Xoff: the pause again.
    Pause,
    /// Below Xoff: the peer may go on, even if Xon is not reached.
    Resume,
}

impl PauseSender {
    pub const fn new(xoff: Octets, xon: Octets) -> Self {
        Self { xoff, xon, outstanding: false }
    }

    /// A packet arrives, before it is admitted or dropped. `true`: send XOFF.
    ///
    /// * `occupancy_with_it`: the pool's occupancy with the packet added.
    /// * Source: seeds/001 "Sending a pause"; model.md P1.
    pub fn on_arrival(&mut self, occupancy_with_it: Octets) -> bool {
        let pause = !self.outstanding && occupancy_with_it >= self.xoff;
        self.outstanding |= pause;
        pause
    }

    /// Half a pause time has passed since the last XOFF.
    pub fn on_refresh(&mut self, occupancy: Octets) -> Refresh {
        if occupancy >= self.xoff {
            return Refresh::Pause;
        }
        self.outstanding = false;
        Refresh::Resume
    }

    /// Received data went to the host. `true`: send XON.
    pub fn on_release(&mut self, occupancy: Octets) -> bool {
        let resume = self.outstanding && occupancy <= self.xon;
        self.outstanding &= !resume;
        resume
    }

    pub const fn xoff(&self) -> Octets {
        self.xoff
    }

    pub const fn xon(&self) -> Octets {
        self.xon
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sender() -> PauseSender {
        PauseSender::new(Octets::new(2_880_000), Octets::new(1_440_000))
    }

    #[test]
    fn the_packet_that_reaches_xoff_draws_one_pause() {
        let mut sender = sender();
        assert!(!sender.on_arrival(Octets::new(2_875_863 + 4_136)));
        assert!(sender.on_arrival(Octets::new(2_875_864 + 4_136)));
        assert!(!sender.on_arrival(Octets::new(2_900_000)), "one is outstanding");
    }

    #[test]
    fn a_refresh_below_xoff_resumes_even_above_xon() {
        let mut sender = sender();
        assert!(sender.on_arrival(Octets::new(2_880_000)));
        assert_eq!(sender.on_refresh(Octets::new(2_880_000)), Refresh::Pause);
        assert_eq!(sender.on_refresh(Octets::new(2_879_999)), Refresh::Resume);
        assert!(sender.on_arrival(Octets::new(2_880_000)), "the next arrival at Xoff pauses again");
    }

    #[test]
    fn a_release_at_xon_resumes_once() {
        let mut sender = sender();
        assert!(!sender.on_release(Octets::ZERO), "nothing is outstanding");
        assert!(sender.on_arrival(Octets::new(2_880_000)));
        assert!(!sender.on_release(Octets::new(1_440_001)));
        assert!(sender.on_release(Octets::new(1_440_000)));
        assert!(!sender.on_release(Octets::new(1_000_000)));
    }
}
