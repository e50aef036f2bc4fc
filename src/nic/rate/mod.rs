//! How fast a queue pair may send: state machines that hear of CNPs, of sent data and of time, and name a rate.
//!
//! ```text
//!   on_cnp ────────┐
//!   on_data_sent ──┼─► Controller ─► allowed_rate, next_timer
//!   on_timer ──────┘
//! ```
//!
//! Contract: time is an argument and never goes back; call [`Controller::on_timer`] when [`Controller::next_timer`] has
//! come. At one instant a CNP comes first, then alpha, then the cut window, then the timer. What moves a rate says why
//! it did. Rates are binary64 in Gb/s, added and multiplied in the order of the specification's formulas and never
//! fused; they become bit/s in one place (timing rule 17), and no time is computed from anything else.
//!
//! Not here: calendars, frames, how a port applies a rate. Read first: `golden::two_hot_intervals`,
//! `ecn_loop::tests::increases_come_22_5_us_after_the_episode_begins_and_then_every_45`.

mod alpha;
mod config;
mod dcqcn_nvidia;
mod dcqcn_paper;
mod ecn_loop;
#[cfg(test)]
mod golden;

pub use config::{
    CongestionConfig, CongestionControl, DcqcnNvidiaConfig, DcqcnPaperConfig, EcnLoopConfig, RateApplication,
};
pub use dcqcn_nvidia::DcqcnNvidia;
pub use dcqcn_paper::DcqcnPaper;
pub use ecn_loop::EcnLoop;

use crate::base::{Instant, Octets, Rate, Share};
use crate::trace::RateCause;

/// The rate of one queue pair.
#[derive(Clone, Debug)]
pub struct Controller {
    line: Rate,
    algorithm: Option<Algorithm>,
}

#[derive(Clone, Debug)]
enum Algorithm {
    EcnLoop(EcnLoop),
    DcqcnPaper(DcqcnPaper),
    DcqcnNvidia(DcqcnNvidia),
}

/// Asks whichever algorithm it is.
macro_rules! ask {
    ($algorithm:expr, $it:ident => $answer:expr) => {
        match $algorithm {
            Algorithm::EcnLoop($it) => $answer,
            Algorithm::DcqcnPaper($it) => $answer,
            Algorithm::DcqcnNvidia($it) => $answer,
        }
    };
}

impl Controller {
    /// * `line`: the lower DataRate of both ends of the link (timing rule 33).
    /// * Panics: if an interval of the algorithm chosen is zero (refused when a scenario is read).
    pub fn new(config: &CongestionConfig, line: Rate) -> Self {
        let algorithm = match config.control {
            _ if !config.reaction => None,
            CongestionControl::None => None,
            CongestionControl::EcnLoop => Some(Algorithm::EcnLoop(EcnLoop::new(&config.ecn_loop, line))),
            CongestionControl::DcqcnPaper => Some(Algorithm::DcqcnPaper(DcqcnPaper::new(&config.dcqcn_paper, line))),
            CongestionControl::DcqcnNvidia => {
                Some(Algorithm::DcqcnNvidia(DcqcnNvidia::new(&config.dcqcn_nvidia, line)))
            }
        };
        Self { line, algorithm }
    }

    /// One that ignores CNPs: always line rate.
    pub const fn off(line: Rate) -> Self {
        Self { line, algorithm: None }
    }

    /// Whether CNPs do anything.
    pub const fn reacts(&self) -> bool {
        self.algorithm.is_some()
    }

    /// A CNP has arrived. Says what moved the rates, if they were moved; so do the two below.
    pub fn on_cnp(&mut self, now: Instant) -> Option<RateCause> {
        ask!(self.algorithm.as_mut()?, it => it.on_cnp(now))
    }

    /// The last bit of a data packet of this model size has left.
    pub fn on_data_sent(&mut self, now: Instant, octets: Octets) -> Option<RateCause> {
        match self.algorithm.as_mut()? {
            Algorithm::EcnLoop(it) => {
                it.on_data_sent(now);
                None
            }
            Algorithm::DcqcnPaper(it) => it.on_data_sent(octets),
            Algorithm::DcqcnNvidia(_) => None,
        }
    }

    /// The instant of [`Controller::next_timer`] has come.
    pub fn on_timer(&mut self, now: Instant) -> Option<RateCause> {
        ask!(self.algorithm.as_mut()?, it => it.on_timer(now))
    }

    pub fn next_timer(&self) -> Option<Instant> {
        ask!(self.algorithm.as_ref()?, it => it.next_timer())
    }

    /// An episode of congestion is in progress.
    pub fn is_congested(&self) -> bool {
        self.algorithm.as_ref().is_some_and(|algorithm| ask!(algorithm, it => it.is_congested()))
    }

    /// What a data frame that starts now goes at.
    ///
    /// * Source: timing rules 4 and 17.
    pub fn allowed_rate(&self) -> Rate {
        if self.is_congested() { self.current_rate() } else { self.line }
    }

    /// The current rate in bit/s.
    pub fn current_rate(&self) -> Rate {
        self.algorithm.as_ref().map_or(self.line, |algorithm| ask!(algorithm, it => from_gbps(it.current())))
    }

    /// The rate it recovers towards, in bit/s.
    pub fn target_rate(&self) -> Rate {
        self.algorithm.as_ref().map_or(self.line, |algorithm| ask!(algorithm, it => from_gbps(it.target())))
    }
}

/// Gb/s in binary64; exact below 2⁵³ bit/s but for the division, which rounds once.
fn to_gbps(rate: Rate) -> f64 {
    rate.bps() as f64 / 1e9
}

/// floor(Gb/s × 10⁹ + 0.5) bit/s, at least 1.
///
/// * Source: timing rule 17.
fn from_gbps(gbps: f64) -> Rate {
    let bps = (gbps * 1e9 + 0.5).floor() as u64;
    Rate::from_bps(bps.max(1)).expect("it is at least 1")
}

/// The binary64 nearest to the decimal that the user wrote: both numbers of the division are exact, so it rounds once,
/// as reading the decimal does.
fn fraction(share: Share) -> f64 {
    share.parts() as f64 / Share::UNIT as f64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::Span;

    #[test]
    fn a_rate_becomes_whole_bits_per_second_by_rounding_half_up() {
        assert_eq!(from_gbps(400.0).bps(), 400_000_000_000);
        assert_eq!(from_gbps(87.011_718_75).bps(), 87_011_718_750);
        assert_eq!(from_gbps(0.000_000_002_5).bps(), 3);
        assert_eq!(from_gbps(0.0).bps(), 1, "a rate is never nothing");
        assert_eq!(to_gbps(Rate::from_bps(31_520_000_000).unwrap()), 31.52);
    }

    #[test]
    fn a_share_is_the_number_its_digits_stand_for() {
        for (parts, value) in [(100_000_000_000, 0.1), (900_000_000_000, 0.9), (3_906_250_000, 1.0 / 256.0), (1, 1e-12)]
        {
            assert_eq!(fraction(Share::from_parts(parts)), value);
        }
    }

    #[test]
    fn without_reaction_a_cnp_does_nothing() {
        let line = Rate::from_gbps(400);
        let config = CongestionConfig { reaction: false, ..CongestionConfig::default() };
        let without = CongestionConfig { control: CongestionControl::None, ..CongestionConfig::default() };
        for mut rate in [Controller::new(&config, line), Controller::new(&without, line), Controller::off(line)] {
            assert_eq!(rate.on_cnp(Instant::ZERO), None);
            assert!(!rate.reacts());
            assert_eq!((rate.is_congested(), rate.next_timer(), rate.allowed_rate()), (false, None, line));
        }
    }

    #[test]
    fn a_controller_allows_its_current_rate_while_congested_and_the_line_rate_otherwise() {
        let line = Rate::from_gbps(400);
        for control in CONTROLS {
            let mut it = controller(control);
            assert!(it.reacts());
            it.on_data_sent(Instant::ZERO, Octets::new(4_154));
            assert_eq!(it.allowed_rate(), line);
            it.on_cnp(Instant::ZERO);
            it.on_timer(Instant::ZERO + Span::from_us(4));
            assert!(it.is_congested() && it.allowed_rate() < line, "{control:?}");
            assert_eq!(it.allowed_rate(), it.current_rate());
            while let Some(now) = it.next_timer() {
                it.on_timer(now);
            }
            assert_eq!((it.is_congested(), it.allowed_rate()), (false, line), "{control:?}");
        }
    }

    const CONTROLS: [CongestionControl; 3] =
        [CongestionControl::EcnLoop, CongestionControl::DcqcnPaper, CongestionControl::DcqcnNvidia];

    fn controller(control: CongestionControl) -> Controller {
        Controller::new(&CongestionConfig { control, ..CongestionConfig::default() }, Rate::from_gbps(400))
    }

    mod any_history {
        use proptest::prelude::*;

        use super::*;

        proptest! {
            /// CNPs and packets at any times: rates stay between floor and line, timers lie ahead, and without further
            /// CNPs the line rate comes back.
            #[test]
            fn stays_within_its_bounds_and_recovers(
                control in prop::sample::select(&CONTROLS[..]),
                steps in prop::collection::vec((0_u64..60_000_000, 0_u32..20, any::<bool>()), 1..200),
            ) {
                let mut it = controller(control);
                let floor = match control {
                    CongestionControl::EcnLoop => 40_000_000_000,
                    CongestionControl::DcqcnPaper => 1_000_000_000,
                    _ => 1_000_000,
                };
                let mut now = Instant::ZERO;
                for (wait, packets, cnp) in steps {
                    let then = now + Span::from_ps(wait);
                    while let Some(at) = it.next_timer().filter(|&at| at < then) {
                        prop_assert!(at >= now);
                        now = at;
                        it.on_timer(now);
                        prop_assert!(it.next_timer().is_none_or(|next| next > now));
                    }
                    now = then;
                    (0..packets).for_each(|_| { it.on_data_sent(now, Octets::new(4_154)); });
                    if cnp {
                        it.on_cnp(now);
                        prop_assert!(it.is_congested());
                    }
                    for rate in [it.allowed_rate(), it.current_rate(), it.target_rate()] {
                        prop_assert!((floor..=400_000_000_000).contains(&rate.bps()), "{rate}");
                    }
                    prop_assert_eq!(it.is_congested(), it.next_timer().is_some());
                }
                let mut timers = 0;
                while let Some(at) = it.next_timer() {
                    it.on_timer(at);
                    timers += 1;
                    prop_assert!(timers < 100_000);
                }
                prop_assert_eq!(it.allowed_rate(), Rate::from_gbps(400));
            }
        }
    }
}
