//! DCQCN as in the paper: a cut with every CNP, an alpha timer, an increase timer and a byte counter.

use super::alpha::Alpha;
use super::config::DcqcnPaperConfig;
use super::{fraction, from_gbps, to_gbps};
use crate::base::{Instant, Octets, Rate, Span};
use crate::trace::RateCause;

/// The line rate that the paper's absolute numbers are for.
const PAPER_LINE: Rate = Rate::from_gbps(40);
/// R_AI, R_HAI and the floor there, in bit/s, and B in octets.
const PAPER_ADDITIVE: u64 = 40_000_000;
const PAPER_HYPER: u64 = 200_000_000;
const PAPER_FLOOR: u64 = 100_000_000;
const PAPER_BYTES: u64 = 10_000_000;

/// The reaction point of one queue pair.
///
/// What the paper leaves open: an episode ends when the current rate is the line rate to the bit/s; alpha goes on
/// decaying meanwhile. The byte counter counts model octets of data while congested, and starts from zero when it has
/// reached B.
///
/// * Source: DCQCN (SIGCOMM 2015); congestion.md §4.4 (a).
#[derive(Clone, Debug)]
pub struct DcqcnPaper {
    increase_timer: Span,
    byte_limit: Octets,
    fast_recovery_steps: u32,
    line: f64,
    floor: f64,
    additive: f64,
    hyper: f64,
    alpha: Alpha,
    /// RC.
    current: f64,
    /// RT.
    target: f64,
    /// While congested: when the timer expires.
    next_increase: Option<Instant>,
    timer_stage: u32,
    byte_stage: u32,
    octets: Octets,
}

impl DcqcnPaper {
    /// * Panics: if a timer is zero (caller's bug).
    pub fn new(config: &DcqcnPaperConfig, line: Rate) -> Self {
        assert!(config.increase_timer > Span::ZERO, "increases are apart from each other");
        let scaled = |at_40g: u64| (u128::from(at_40g) * u128::from(line.bps()) / u128::from(PAPER_LINE.bps())) as u64;
        let rate = |set: Option<Rate>, at_40g| to_gbps(set.or(Rate::from_bps(scaled(at_40g))).unwrap_or(line));
        let gbps = to_gbps(line);
        Self {
            increase_timer: config.increase_timer,
            byte_limit: config.byte_counter.unwrap_or(Octets::new(scaled(PAPER_BYTES))),
            fast_recovery_steps: config.fast_recovery_steps,
            line: gbps,
            floor: rate(config.minimum_rate, PAPER_FLOOR),
            additive: rate(config.additive_increase, PAPER_ADDITIVE),
            hyper: rate(config.hyper_increase, PAPER_HYPER),
            alpha: Alpha::new(fraction(config.initial_alpha), fraction(config.alpha_gain), config.alpha_timer),
            current: gbps,
            target: gbps,
            next_increase: None,
            timer_stage: 0,
            byte_stage: 0,
            octets: Octets::ZERO,
        }
    }

    pub fn on_cnp(&mut self, now: Instant) -> Option<RateCause> {
        self.alpha.tick_before(now);
        self.target = self.current;
        self.current = (self.current * (1.0 - self.alpha.value() / 2.0)).max(self.floor);
        self.alpha.rise();
        self.alpha.restart(now);
        self.timer_stage = 0;
        self.byte_stage = 0;
        self.octets = Octets::ZERO;
        self.next_increase = Some(now + self.increase_timer);
        Some(RateCause::Cut)
    }

    pub fn on_data_sent(&mut self, octets: Octets) -> Option<RateCause> {
        if !self.is_congested() || self.byte_limit.is_zero() {
            return None;
        }
        self.octets += octets;
        if self.octets < self.byte_limit {
            return None;
        }
        self.octets = Octets::ZERO;
        self.byte_stage += 1;
        Some(self.increase())
    }

    pub fn on_timer(&mut self, now: Instant) -> Option<RateCause> {
        self.next_increase.filter(|&at| at <= now)?;
        self.next_increase = Some(now + self.increase_timer);
        self.timer_stage += 1;
        Some(self.increase())
    }

    pub const fn next_timer(&self) -> Option<Instant> {
        self.next_increase
    }

    pub const fn is_congested(&self) -> bool {
        self.next_increase.is_some()
    }

    pub const fn current(&self) -> f64 {
        self.current
    }

    pub const fn target(&self) -> f64 {
        self.target
    }

    fn increase(&mut self) -> RateCause {
        let (more, less) = (self.timer_stage.max(self.byte_stage), self.timer_stage.min(self.byte_stage));
        let cause = if more < self.fast_recovery_steps {
            RateCause::FastRecovery
        } else if less > self.fast_recovery_steps {
            self.target += f64::from(less - self.fast_recovery_steps) * self.hyper;
            RateCause::HyperIncrease
        } else {
            self.target += self.additive;
            RateCause::AdditiveIncrease
        };
        self.target = self.target.min(self.line);
        self.current = (self.target + self.current) / 2.0;
        if from_gbps(self.current) == from_gbps(self.line) {
            self.current = self.line;
            self.next_increase = None;
        }
        cause
    }

    #[cfg(test)]
    pub(super) fn alpha_at(&mut self, now: Instant) -> f64 {
        self.alpha.tick_through(now);
        self.alpha.value()
    }

    #[cfg(test)]
    pub(super) const fn next_decay(&self) -> Option<Instant> {
        self.alpha.next_tick()
    }

    #[cfg(test)]
    pub(super) const fn stages(&self) -> (u32, u32) {
        (self.timer_stage, self.byte_stage)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn us(us: u64) -> Instant {
        Instant::from_ps(us * 1_000_000)
    }

    fn paper(config: &DcqcnPaperConfig) -> DcqcnPaper {
        DcqcnPaper::new(config, Rate::from_gbps(400))
    }

    #[test]
    fn defaults_scale_with_the_line() {
        let at = |gbps| DcqcnPaper::new(&DcqcnPaperConfig::default(), Rate::from_gbps(gbps));
        let (small, large) = (at(40), at(400));
        assert_eq!((small.additive, small.hyper, small.floor, small.byte_limit.get()), (0.04, 0.2, 0.1, 10_000_000));
        assert_eq!((large.additive, large.hyper, large.floor, large.byte_limit.get()), (0.4, 2.0, 1.0, 100_000_000));
    }

    #[test]
    fn the_byte_counter_increases_as_the_timer_does_and_hyper_needs_both() {
        let config = DcqcnPaperConfig { byte_counter: Some(Octets::new(1_000)), ..DcqcnPaperConfig::default() };
        let mut it = paper(&config);
        for n in 0..6 {
            it.on_cnp(us(n));
        }
        assert_eq!(it.current(), 6.25);
        assert_eq!(it.on_data_sent(Octets::new(999)), None);
        assert_eq!(it.on_data_sent(Octets::new(1)), Some(RateCause::FastRecovery));
        assert_eq!((it.stages(), it.current()), ((0, 1), 9.375));
        let mut last = None;
        for n in 2..=7 {
            last = it.on_data_sent(Octets::new(1_000));
            assert_eq!(last.unwrap() == RateCause::AdditiveIncrease, n >= 5, "byte stage {n}");
        }
        assert_eq!(last, Some(RateCause::AdditiveIncrease), "the timer has not expired once");
        let mut causes = Vec::new();
        for _ in 0..7 {
            causes.extend(it.on_timer(it.next_timer().unwrap()));
        }
        // Stages (1..=5, 7) are additive; (6, 7) and (7, 7) hyper, by 1 and 2 steps.
        assert_eq!(causes[..5], [RateCause::AdditiveIncrease; 5]);
        assert_eq!(causes[5..], [RateCause::HyperIncrease; 2]);
        assert!((it.target() - (12.5 + 3.0 * 0.4 + 5.0 * 0.4 + 2.0 + 4.0)).abs() < 1e-9, "{}", it.target());
    }

    #[test]
    fn it_ends_at_the_line_rate_and_alpha_decays_meanwhile() {
        let mut it = paper(&DcqcnPaperConfig::default());
        it.on_cnp(us(0));
        let mut increases = 0;
        while let Some(now) = it.next_timer() {
            it.on_timer(now);
            increases += 1;
        }
        // 200 / 2^39 Gb/s is less than half a bit/s.
        assert_eq!((increases, it.current()), (39, 400.0));
        assert!(!it.is_congested());
        let alpha = it.alpha_at(us(55 * 100));
        assert!((alpha - (255.0_f64 / 256.0).powi(100)).abs() < 1e-12);
        it.on_cnp(us(55 * 100));
        assert_eq!(it.current(), 400.0 * (1.0 - alpha / 2.0));
    }

    #[test]
    fn the_floor_holds() {
        let mut it = paper(&DcqcnPaperConfig::default());
        (0..20).for_each(|n| {
            it.on_cnp(us(n));
        });
        assert_eq!((it.current(), it.target()), (1.0, 1.0));
    }
}
