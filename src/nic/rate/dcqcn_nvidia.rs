//! DCQCN as NVIDIA parameterises it: alpha sampled periodically, at most one cut per window, one increase timer.

use super::alpha::Alpha;
use super::config::DcqcnNvidiaConfig;
use super::{fraction, from_gbps, to_gbps};
use crate::base::{Instant, Rate, Span};
use crate::trace::RateCause;

/// The reaction point of one queue pair.
///
/// What the sources leave open: a queue pair that has reached the maximum rate to the bit/s is no longer limited, and
/// its next CNP is a first one again, with the initial alpha.
///
/// * Source: congestion.md §4.4 (b).
#[derive(Clone, Debug)]
pub struct DcqcnNvidia {
    config: DcqcnNvidiaConfig,
    line: f64,
    minimum: f64,
    maximum: f64,
    /// RC.
    current: f64,
    /// RT.
    target: f64,
    /// Increases since the last cut.
    stage: u32,
    alpha: Alpha,
    /// While limited: when its first window began.
    limited_since: Option<Instant>,
    /// The end of a window with a CNP in it.
    cut_at: Option<Instant>,
    /// None before the first cut.
    increase_at: Option<Instant>,
}

impl DcqcnNvidia {
    /// * Panics: if a period, window or timer is zero (caller's bug).
    pub fn new(config: &DcqcnNvidiaConfig, line: Rate) -> Self {
        assert!(config.cut_window > Span::ZERO, "windows are longer than nothing");
        assert!(config.increase_timer > Span::ZERO, "increases are apart from each other");
        let gbps = to_gbps(line);
        Self {
            line: gbps,
            minimum: to_gbps(config.minimum_rate),
            maximum: config.maximum_rate.map_or(gbps, |maximum| to_gbps(maximum).min(gbps)),
            current: gbps,
            target: gbps,
            stage: 0,
            alpha: initial_alpha(config),
            limited_since: None,
            cut_at: None,
            increase_at: None,
            config: config.clone(),
        }
    }

    /// The first one starts alpha's ticks and the windows; it counts for its window, not for alpha.
    pub fn on_cnp(&mut self, now: Instant) -> Option<RateCause> {
        let Some(since) = self.limited_since else { return self.start(now) };
        self.alpha.tick_before(now);
        self.alpha.rise_at_next_tick();
        if self.cut_at.is_none() {
            // A CNP at the end of a window counts for it.
            let windows = now.since(since).ps().div_ceil(self.config.cut_window.ps()).max(1);
            self.cut_at = Some(since + Span::from_ps(windows * self.config.cut_window.ps()));
        }
        None
    }

    /// A cut takes the place of an increase that is due in its instant, since it restarts the timer.
    pub fn on_timer(&mut self, now: Instant) -> Option<RateCause> {
        if self.cut_at.is_some_and(|at| at <= now) {
            self.cut_at = None;
            return Some(self.cut(now));
        }
        self.increase_at.filter(|&at| at <= now)?;
        Some(self.increase(now))
    }

    pub fn next_timer(&self) -> Option<Instant> {
        [self.cut_at, self.increase_at].into_iter().flatten().min()
    }

    pub const fn is_congested(&self) -> bool {
        self.limited_since.is_some()
    }

    pub const fn current(&self) -> f64 {
        self.current
    }

    pub const fn target(&self) -> f64 {
        self.target
    }

    fn start(&mut self, now: Instant) -> Option<RateCause> {
        self.alpha = initial_alpha(&self.config);
        self.alpha.restart(now);
        self.limited_since = Some(now);
        self.cut_at = Some(now + self.config.cut_window);
        self.stage = 0;
        self.current = self.line;
        self.target = self.line;
        let set = self.config.rate_on_first_cnp?;
        self.current = to_gbps(set).min(self.line);
        self.target = self.current;
        Some(RateCause::Cut)
    }

    fn cut(&mut self, now: Instant) -> RateCause {
        self.alpha.tick_through(now);
        let timer_has_increased = self.stage > 0 && self.config.clamp_target_after_increase;
        if self.config.clamp_target || timer_has_increased {
            self.target = self.current;
        }
        // Alpha in 1/1024, shifted right by the exponent.
        let taken = self.alpha.value() * 1_024.0 / (1_u64 << self.config.cut_exponent.min(63)) as f64;
        let kept = (1.0 - taken).max(fraction(self.config.least_kept));
        self.current = (self.current * kept).max(self.minimum);
        self.stage = 0;
        self.increase_at = Some(now + self.config.increase_timer);
        RateCause::Cut
    }

    fn increase(&mut self, now: Instant) -> RateCause {
        let threshold = self.config.fast_recovery_steps;
        let (cause, more) = match self.stage.cmp(&threshold) {
            std::cmp::Ordering::Less => (RateCause::FastRecovery, 0.0),
            std::cmp::Ordering::Equal => (RateCause::AdditiveIncrease, to_gbps(self.config.additive_increase)),
            std::cmp::Ordering::Greater => (RateCause::HyperIncrease, to_gbps(self.config.hyper_increase)),
        };
        self.target = (self.target + more).min(self.maximum);
        self.current = (self.current + self.target) / 2.0;
        self.stage = self.stage.saturating_add(1);
        self.increase_at = Some(now + self.config.increase_timer);
        if self.cut_at.is_none() && from_gbps(self.current) >= from_gbps(self.maximum) {
            self.current = self.line;
            self.target = self.line;
            self.limited_since = None;
            self.increase_at = None;
        }
        cause
    }

    #[cfg(test)]
    pub(super) fn alpha_before(&mut self, now: Instant) -> f64 {
        self.alpha.tick_before(now);
        self.alpha.value()
    }

    #[cfg(test)]
    pub(super) fn alpha_at(&mut self, now: Instant) -> f64 {
        self.alpha.tick_through(now);
        self.alpha.value()
    }

    #[cfg(test)]
    pub(super) const fn stage(&self) -> u32 {
        self.stage
    }
}

fn initial_alpha(config: &DcqcnNvidiaConfig) -> Alpha {
    let gain = f64::from(1_024_u16.saturating_sub(config.alpha_kept)) / 1_024.0;
    Alpha::new(f64::from(config.initial_alpha) / 1_024.0, gain, config.alpha_period)
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn us(us: u64) -> Instant {
        Instant::from_ps(us * 1_000_000)
    }

    fn nvidia(config: DcqcnNvidiaConfig) -> DcqcnNvidia {
        DcqcnNvidia::new(&config, Rate::from_gbps(400))
    }

    #[test]
    fn a_window_cuts_once_however_many_cnps_it_had() {
        let mut it = nvidia(DcqcnNvidiaConfig::default());
        (0..4).for_each(|n| assert_eq!(it.on_cnp(us(n)), None));
        assert_eq!(it.next_timer(), Some(us(4)));
        assert_eq!(it.on_timer(us(4)), Some(RateCause::Cut));
        // The next windows are without one: no cut, and the increase is 300 us behind the cut.
        assert_eq!(it.next_timer(), Some(us(304)));
        it.on_cnp(us(101));
        assert_eq!(it.next_timer(), Some(us(104)), "windows keep their step");
    }

    #[test]
    fn the_first_cnp_may_set_a_rate() {
        let config = DcqcnNvidiaConfig { rate_on_first_cnp: Some(Rate::from_gbps(100)), ..Default::default() };
        let mut it = nvidia(config);
        assert_eq!(it.on_cnp(us(0)), Some(RateCause::Cut));
        assert_eq!((it.current(), it.target()), (100.0, 100.0));
        assert_eq!(it.on_cnp(us(1)), None);
    }

    #[test]
    fn a_cut_leaves_the_least_that_is_to_be_kept() {
        let mut it = nvidia(DcqcnNvidiaConfig { cut_exponent: 10, ..Default::default() });
        it.on_cnp(us(0));
        it.on_timer(us(4));
        // Alpha is 0.98 and would take all but 2 %.
        assert_eq!(it.current(), 200.0);
    }

    #[test]
    fn the_target_follows_a_cut_only_where_it_is_asked_to() {
        for (clamp_target, clamp_target_after_increase, follows) in
            [(false, true, true), (false, false, false), (true, false, true)]
        {
            let config = DcqcnNvidiaConfig { clamp_target, clamp_target_after_increase, ..Default::default() };
            let mut it = nvidia(config);
            it.on_cnp(us(0));
            it.on_timer(us(4));
            assert_eq!(it.target(), 400.0, "a first cut starts from the line rate");
            it.on_timer(us(304));
            let before = it.current();
            it.on_cnp(us(400));
            it.on_timer(us(400));
            assert_eq!(it.target(), if follows { before } else { 400.0 });
        }
    }

    #[test]
    fn it_is_released_at_the_maximum_and_starts_anew() {
        let maximum_rate = Some(Rate::from_gbps(300));
        let mut it = nvidia(DcqcnNvidiaConfig { maximum_rate, ..Default::default() });
        it.on_cnp(us(0));
        while let Some(now) = it.next_timer() {
            it.on_timer(now);
        }
        assert!(!it.is_congested());
        assert_eq!(it.current(), 400.0);
        it.on_cnp(us(900_000));
        assert_eq!(it.alpha_at(us(900_000)), 1_023.0 / 1_024.0);
        assert_eq!(it.next_timer(), Some(us(900_004)));
    }
}
