//! The model's own rate loop: one per queue pair, running only while it is congested.
//!
//! The choices C1 to C8 of congestion.md stand where they are taken.

use super::config::EcnLoopConfig;
use super::{fraction, to_gbps};
use crate::base::{Instant, Rate, Span};
use crate::trace::RateCause;

/// Within so much of the line rate an episode ends (C6).
const NEAR_LINE_GBPS: f64 = 0.1;

/// The loop of one queue pair.
///
/// * Source: congestion.md §4.1; timing rules 16 and 17.
#[derive(Clone, Debug)]
pub struct EcnLoop {
    config: EcnLoopConfig,
    line: f64,
    floor: f64,
    weight: f64,
    /// While congested: the half that runs next, and when.
    next_half: Option<(Instant, Half)>,
    /// Rc.
    current: f64,
    /// Rt.
    target: f64,
    step: f64,
    estimate: f64,
    /// Increases less reductions since the episode or the last cut began.
    recoveries: u32,
    /// Increase halves that CNPs have cost since the last one that increased in spite of them.
    skipped: u32,
    cnps: u64,
    packets: u64,
    /// While not congested: when the packets began to be counted. None before the first.
    window_start: Option<Instant>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Half {
    Reduction,
    Increase,
}

impl EcnLoop {
    /// * Panics: if half the control interval is no time (caller's bug).
    pub fn new(config: &EcnLoopConfig, line: Rate) -> Self {
        assert!(config.control_interval > Span::ZERO, "the halves of the loop are apart from each other");
        let line = to_gbps(line);
        Self {
            line,
            floor: fraction(config.minimum_rate) * line,
            weight: fraction(config.probability_weight),
            next_half: None,
            current: line,
            target: line,
            step: 0.0,
            estimate: fraction(config.initial_estimate),
            recoveries: 0,
            skipped: 0,
            cnps: 0,
            packets: 0,
            window_start: None,
            config: config.clone(),
        }
    }

    /// Counts the packet. While not congested the count starts anew when a control interval has passed (C4).
    pub fn on_data_sent(&mut self, now: Instant) {
        if !self.is_congested() {
            let start = *self.window_start.get_or_insert(now);
            if now.since(start) >= self.config.control_interval {
                self.packets = 0;
                self.window_start = Some(now);
            }
        }
        self.packets += 1;
    }

    /// Counts the CNP. The first one begins an episode, whose first reduction half runs at once.
    pub fn on_cnp(&mut self, now: Instant) -> Option<RateCause> {
        self.cnps += 1;
        if self.is_congested() {
            return None;
        }
        self.target = self.current;
        self.step = self.target * (1.0 - fraction(self.config.initial_target_rate))
            / f64::from(self.config.active_increase_steps.max(1));
        self.recoveries = 0;
        self.skipped = 0;
        if self.config.reset_estimate {
            self.estimate = fraction(self.config.initial_estimate);
        }
        self.run_half(now, Half::Reduction)
    }

    pub fn on_timer(&mut self, now: Instant) -> Option<RateCause> {
        let (_, half) = self.next_half.filter(|&(at, _)| at <= now)?;
        self.run_half(now, half)
    }

    pub fn next_timer(&self) -> Option<Instant> {
        self.next_half.map(|(at, _)| at)
    }

    pub const fn is_congested(&self) -> bool {
        self.next_half.is_some()
    }

    pub const fn current(&self) -> f64 {
        self.current
    }

    pub const fn target(&self) -> f64 {
        self.target
    }

    /// The name of the half that runs next, as the reference model's traces have it.
    #[cfg(test)]
    pub(super) fn next_half(&self) -> Option<&'static str> {
        self.next_half.map(|(_, half)| match half {
            Half::Reduction => "reduction",
            Half::Increase => "increase",
        })
    }

    fn run_half(&mut self, now: Instant, half: Half) -> Option<RateCause> {
        // The share of packets that drew a CNP (C1).
        let sample = (self.cnps as f64 / self.packets.max(1) as f64).min(1.0);
        self.estimate = (1.0 - self.weight) * self.estimate + self.weight * sample;
        let following = match half {
            Half::Reduction => Half::Increase,
            Half::Increase => Half::Reduction,
        };
        self.next_half = Some((now + self.config.control_interval.half(), following));
        match half {
            Half::Reduction => self.reduce(),
            Half::Increase => self.increase(now),
        }
    }

    fn reduce(&mut self) -> Option<RateCause> {
        let (cnps, _) = (std::mem::take(&mut self.cnps), std::mem::take(&mut self.packets));
        if cnps == 0 {
            return None;
        }
        let cause = if self.recoveries < self.config.fast_recovery_attempts {
            // At most half (C2).
            self.current *= 1.0 - self.estimate / 2.0;
            self.recoveries = 0;
            RateCause::Cut
        } else {
            self.target = (self.target - self.step).max(self.floor);
            self.current = (self.current + self.target) / 2.0;
            self.recoveries = self.recoveries.saturating_sub(1);
            RateCause::AdditiveReduction
        };
        self.current = self.current.max(self.floor);
        Some(cause)
    }

    fn increase(&mut self, now: Instant) -> Option<RateCause> {
        if self.cnps > 0 {
            // Quiet halves in between do not reset the count (C5).
            self.skipped += 1;
            if self.skipped <= self.config.loops_per_increase {
                return None;
            }
            self.skipped = 0;
        }
        let cause = if self.recoveries < self.config.fast_recovery_attempts {
            RateCause::FastRecovery
        } else {
            self.target = (self.target + self.step).min(self.line);
            RateCause::AdditiveIncrease
        };
        self.current = (self.current + self.target) / 2.0;
        self.recoveries += 1;
        if self.line - self.current <= NEAR_LINE_GBPS {
            self.current = self.line;
            self.next_half = None;
            self.cnps = 0;
            self.packets = 0;
            self.window_start = Some(now);
        }
        Some(cause)
    }

    #[cfg(test)]
    pub(super) const fn estimate(&self) -> f64 {
        self.estimate
    }

    #[cfg(test)]
    pub(super) const fn recoveries(&self) -> u32 {
        self.recoveries
    }

    #[cfg(test)]
    pub(super) const fn step(&self) -> f64 {
        self.step
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::Share;

    const LINE: Rate = Rate::from_gbps(400);

    fn at(ns: u64) -> Instant {
        Instant::from_ps(ns * 1_000)
    }

    fn ecn_loop() -> EcnLoop {
        EcnLoop::new(&EcnLoopConfig::default(), LINE)
    }

    /// Lets the loop run from a CNP at time 0, with further CNPs before every half as long as `more` says; returns the
    /// times in ns of all that moved a rate, with the cause and the current rate.
    fn moves(ecn_loop: &mut EcnLoop, halves: usize, more: impl Fn(Instant) -> bool) -> Vec<(u64, RateCause, f64)> {
        ecn_loop.on_data_sent(at(0));
        let mut moves: Vec<_> =
            ecn_loop.on_cnp(at(0)).map(|cause| (0, cause, ecn_loop.current())).into_iter().collect();
        for _ in 0..halves {
            let Some(now) = ecn_loop.next_timer() else { break };
            ecn_loop.on_data_sent(now);
            if more(now) {
                assert_eq!(ecn_loop.on_cnp(now), None, "only the first CNP of an episode moves a rate at once");
            }
            moves.extend(ecn_loop.on_timer(now).map(|cause| (now.ps() / 1_000, cause, ecn_loop.current())));
        }
        moves
    }

    #[test]
    fn increases_come_22_5_us_after_the_episode_begins_and_then_every_45() {
        let mut it = ecn_loop();
        let moves = moves(&mut it, 99, |_| false);
        let times: Vec<_> = moves.iter().map(|&(at, ..)| at).collect();
        let expected: Vec<_> =
            std::iter::once(0).chain((0..times.len() as u64 - 1).map(|n| 22_500 + 45_000 * n)).collect();
        assert_eq!(times, expected);
        assert_eq!(it.step(), 400.0 * (1.0 - 0.9) / 10.0);
        assert!((it.step() - 4.0).abs() < 1e-12);
        assert!(!it.is_congested());
        assert_eq!((it.current(), it.next_timer()), (400.0, None));
    }

    #[test]
    fn with_cnps_throughout_an_increase_comes_every_270_us_and_the_floor_holds() {
        let mut it = ecn_loop();
        let moves = moves(&mut it, 400, |_| true);
        let increases: Vec<_> =
            moves.iter().filter(|(_, cause, _)| *cause != RateCause::Cut).map(|&(at, ..)| at).collect();
        assert!(increases.windows(2).all(|pair| pair[1] - pair[0] == 270_000), "{increases:?}");
        assert_eq!(increases[0], 247_500);
        let lowest = moves.iter().map(|&(.., rate)| rate).fold(f64::MAX, f64::min);
        assert_eq!(lowest, 40.0);
    }

    #[test]
    fn within_a_tenth_of_a_gigabit_the_episode_ends_and_not_before() {
        let mut it = ecn_loop();
        it.on_data_sent(at(0));
        it.on_cnp(at(0));
        it.current = 399.7;
        it.on_timer(at(22_500));
        assert!(it.is_congested(), "0.15 Gb/s is not near");
        it.on_timer(at(45_000));
        it.on_timer(at(67_500));
        assert!(!it.is_congested(), "0.075 Gb/s is");
        assert_eq!(it.current(), 400.0);
    }

    #[test]
    fn packets_before_an_episode_are_counted_over_one_interval_at_most() {
        let mut it = ecn_loop();
        // Ten packets from 10 us on; the one at 55 us, a whole interval later, starts a new count.
        for n in 0..10 {
            it.on_data_sent(at(10_000 + n));
        }
        it.on_data_sent(at(54_999));
        assert_eq!(it.packets, 11);
        it.on_data_sent(at(55_000));
        assert_eq!(it.packets, 1);
        it.on_data_sent(at(99_999));
        it.on_cnp(at(100_000));
        // One CNP for two packets, half of it new.
        assert_eq!(it.estimate(), 0.25);
        assert_eq!(it.current(), 400.0 * (1.0 - 0.25 / 2.0));
    }

    #[test]
    fn the_end_of_an_episode_starts_the_next_count() {
        let mut it = ecn_loop();
        moves(&mut it, 99, |_| false);
        let end = it.window_start.unwrap();
        assert_eq!(it.packets, 0);
        it.on_data_sent(end + Span::from_ns(44_999));
        assert_eq!(it.packets, 1);
        it.on_data_sent(end + Span::from_ns(45_000));
        assert_eq!(it.packets, 1);
    }

    #[test]
    fn the_estimate_is_kept_between_episodes_unless_it_is_reset() {
        let config = EcnLoopConfig { initial_estimate: Share::from_percent(100), ..EcnLoopConfig::default() };
        for (reset_estimate, second_cut) in [(false, None), (true, Some(0.0))] {
            let mut it = EcnLoop::new(&EcnLoopConfig { reset_estimate, ..config.clone() }, LINE);
            moves(&mut it, 99, |_| false);
            let left = it.estimate();
            it.on_data_sent(at(9_000_000));
            it.on_cnp(at(9_000_000));
            // One packet, one CNP: the sample is 1.
            assert_eq!(it.estimate(), second_cut.map_or(0.5 * left + 0.5, |_| 1.0));
        }
    }

    #[test]
    fn every_cut_starts_fast_recovery_anew() {
        let mut it = ecn_loop();
        it.on_data_sent(at(0));
        it.on_cnp(at(0));
        it.on_timer(at(22_500));
        it.on_timer(at(45_000));
        it.on_timer(at(67_500));
        assert_eq!(it.recoveries(), 2);
        it.on_cnp(at(70_000));
        assert_eq!(it.on_timer(at(90_000)), Some(RateCause::Cut));
        assert_eq!(it.recoveries(), 0);
    }

    #[test]
    fn a_lower_line_rate_scales_floor_and_step() {
        let mut it = EcnLoop::new(&EcnLoopConfig::default(), Rate::from_gbps(25));
        let moves = moves(&mut it, 300, |now| now < at(2_000_000));
        assert!((it.step() - 0.25).abs() < 1e-12);
        let lowest = moves.iter().map(|&(.., rate)| rate).fold(f64::MAX, f64::min);
        assert_eq!(lowest, 2.5);
        assert_eq!(it.current(), 25.0);
    }
}
