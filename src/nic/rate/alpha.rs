//! DCQCN's estimate of congestion.

use crate::base::{Instant, Span};

/// A moving average that falls at every tick and rises with CNPs.
///
/// Ticks cost nothing until somebody looks: they are made up for at the next CNP or cut.
#[derive(Clone, Debug)]
pub struct Alpha {
    value: f64,
    gain: f64,
    period: Span,
    next_tick: Option<Instant>,
    /// A CNP has come since the last tick and is to be counted at the next.
    cnp_seen: bool,
}

impl Alpha {
    /// It does not tick yet.
    ///
    /// * Panics: if `period` is zero (caller's bug).
    pub fn new(value: f64, gain: f64, period: Span) -> Self {
        assert!(period > Span::ZERO, "ticks are apart from each other");
        Self { value, gain, period, next_tick: None, cnp_seen: false }
    }

    pub const fn value(&self) -> f64 {
        self.value
    }

    #[cfg(test)]
    pub const fn next_tick(&self) -> Option<Instant> {
        self.next_tick
    }

    /// The next tick comes a whole period from now.
    pub fn restart(&mut self, now: Instant) {
        self.next_tick = Some(now + self.period);
    }

    /// A CNP moves it at once.
    pub fn rise(&mut self) {
        self.value = (1.0 - self.gain) * self.value + self.gain;
    }

    /// A CNP moves it at the next tick.
    pub fn rise_at_next_tick(&mut self) {
        self.cnp_seen = true;
    }

    /// Makes up for all ticks before `now`: a CNP comes before the tick of its own instant.
    pub fn tick_before(&mut self, now: Instant) {
        while let Some(at) = self.next_tick.filter(|&at| at < now) {
            self.tick(at);
            if self.is_at_rest() {
                let skipped = (now.since(at).ps() - 1) / self.period.ps() * self.period.ps();
                self.next_tick = Some(at + Span::from_ps(skipped) + self.period);
            }
        }
    }

    /// Makes up for all ticks up to and with `now`: a cut comes behind the tick of its own instant.
    pub fn tick_through(&mut self, now: Instant) {
        self.tick_before(now + Span::from_ps(1));
    }

    fn tick(&mut self, at: Instant) {
        self.value = (1.0 - self.gain) * self.value + if self.cnp_seen { self.gain } else { 0.0 };
        self.cnp_seen = false;
        self.next_tick = Some(at + self.period);
    }

    /// Further ticks would not change it.
    fn is_at_rest(&self) -> bool {
        (1.0 - self.gain) * self.value == self.value
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn us(us: u64) -> Instant {
        Instant::from_ps(us * 1_000_000)
    }

    #[test]
    fn a_cnp_comes_before_the_tick_of_its_instant_and_a_cut_behind_it() {
        let mut alpha = Alpha::new(1.0, 0.5, Span::from_us(1));
        alpha.restart(us(0));
        alpha.tick_before(us(1));
        assert_eq!(alpha.value(), 1.0);
        alpha.tick_through(us(1));
        assert_eq!(alpha.value(), 0.5);
        alpha.rise_at_next_tick();
        alpha.tick_before(us(3));
        assert_eq!(alpha.value(), 0.75);
        alpha.tick_through(us(4));
        assert_eq!(alpha.value(), 0.1875);
    }

    #[test]
    fn ticks_that_change_nothing_are_skipped_without_losing_step() {
        let mut alpha = Alpha::new(0.0, 0.5, Span::from_us(2));
        alpha.restart(us(0));
        alpha.tick_before(us(3_600_000_001));
        assert_eq!(alpha.next_tick, Some(us(3_600_000_002)));
        alpha.restart(us(0));
        alpha.tick_before(us(8));
        assert_eq!(alpha.next_tick, Some(us(8)));
        alpha.tick_through(us(8));
        assert_eq!(alpha.next_tick, Some(us(10)));
    }
}
