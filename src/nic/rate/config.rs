//! How a NIC takes part in congestion control, with the defaults of the specification and of those who published DCQCN.
//!
//! Fractions are kept as the decimal digits the user wrote; the controllers compute in binary64 from them.

use crate::base::{Octets, Rate, Share, Span};

/// What a NIC does about congestion: as notification point (it receives marked data) and as reaction point (it sends).
///
/// PFC and the marking in switches are switched elsewhere; `cnp_generation` and `reaction` are independent of both and
/// of each other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CongestionConfig {
    /// Which algorithm moves the rate of a queue pair.
    pub control: CongestionControl,
    pub ecn_loop: EcnLoopConfig,
    pub dcqcn_paper: DcqcnPaperConfig,
    pub dcqcn_nvidia: DcqcnNvidiaConfig,
    /// How the port applies a rate.
    pub rate_application: RateApplication,
    /// Whether marked data draws CNPs.
    pub cnp_generation: bool,
    /// Whether CNPs move rates. If not they are counted and ignored; data stays ECN-capable, unlike without EnableECN.
    pub reaction: bool,
    /// MinTimeBetweenCnps, per queue pair. Zero: every marked packet draws one.
    pub cnp_interval: Span,
    /// How long the NIC takes from a marked packet to the CNP it draws.
    pub np_delay: Span,
}

/// Which algorithm moves the rate of a queue pair.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CongestionControl {
    /// The model's own loop.
    #[default]
    EcnLoop,
    /// DCQCN as in the paper.
    DcqcnPaper,
    /// DCQCN as NVIDIA parameterises it.
    DcqcnNvidia,
    /// None: CNPs are ignored.
    None,
}

/// How the port applies the rate of a congested queue pair.
///
/// * Source: congestion.md C8.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RateApplication {
    /// The data frame itself is serialized at the rate, and occupies the port for as long.
    #[default]
    Serialize,
    /// Frames go at line rate, and a queue pair's next data frame starts no earlier than the one before would have
    /// ended at the rate.
    Pace,
}

/// The model's own loop (component ECNHandler).
///
/// * Source: congestion.md §4.1.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EcnLoopConfig {
    /// MinimumRatePercentage, of the DataRate.
    pub minimum_rate: Share,
    /// FastRecoveryAttempt: so many increases are fast recovery.
    pub fast_recovery_attempts: u32,
    /// InitialTargetRatePercentage: sizes the step only.
    pub initial_target_rate: Share,
    /// NumberActiveIncreaseSteps: sizes the step only. Range: from 1.
    pub active_increase_steps: u32,
    /// ControlIntervalDurationNs: one reduction half and one increase half. Range: from 2 ps.
    pub control_interval: Span,
    /// CongestionProbabilityWeight of a new sample.
    pub probability_weight: Share,
    /// NumOfControlLoopsPerIncrease: under continuing CNPs so many increase halves are skipped before one increases.
    pub loops_per_increase: u32,
    /// The estimate of a queue pair that has seen no CNP (congestion.md C3).
    pub initial_estimate: Share,
    /// Whether every episode starts with `initial_estimate` again (congestion.md C3).
    pub reset_estimate: bool,
}

/// DCQCN as in the paper. What is `None` scales with the line rate.
///
/// * Source: congestion.md §4.4 (a).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DcqcnPaperConfig {
    /// g.
    pub alpha_gain: Share,
    pub initial_alpha: Share,
    /// K, from the last CNP or decay to the next decay. Above 0.
    pub alpha_timer: Span,
    /// T, from the last CNP or expiry. Above 0.
    pub increase_timer: Span,
    /// B; zero switches the byte counter off. Default: 10 MB per 40 Gb/s.
    pub byte_counter: Option<Octets>,
    /// F.
    pub fast_recovery_steps: u32,
    /// R_AI. Default: 40 Mb/s per 40 Gb/s.
    pub additive_increase: Option<Rate>,
    /// R_HAI. Default: 200 Mb/s per 40 Gb/s.
    pub hyper_increase: Option<Rate>,
    /// Default: 100 Mb/s per 40 Gb/s.
    pub minimum_rate: Option<Rate>,
}

/// DCQCN as NVIDIA parameterises it. Fields are named by what they mean; NVIDIA's name stands first.
///
/// Not here: `rpg_byte_reset`, whose unit nobody confirms, so there is no byte counter; `min_time_between_cnps`, which is
/// [`CongestionConfig::cnp_interval`]; `cnp_dscp` and `cnp_802p_prio`, since CNPs have a queue of their own.
///
/// * Source: congestion.md §4.4 (b).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DcqcnNvidiaConfig {
    /// `dce_tcp_g`: what is kept of alpha at each tick, in 1/1024. Range: 0..=1024.
    pub alpha_kept: u16,
    /// `dce_tcp_rtt`: time between two alpha ticks. Above 0.
    pub alpha_period: Span,
    /// `initial_alpha_value`, in 1/1024. Range: 0..=1024.
    pub initial_alpha: u16,
    /// `rate_reduce_monitor_period`: at most one cut in each. Above 0.
    pub cut_window: Span,
    /// `rate_to_set_on_first_cnp`: `None` is off.
    pub rate_on_first_cnp: Option<Rate>,
    /// `rpg_min_dec_fac`: what a cut leaves at least.
    pub least_kept: Share,
    /// `rpg_gd`: a cut takes alpha × 2^(10 − gd) of the rate. Range: 0..=63.
    pub cut_exponent: u8,
    /// `rpg_min_rate`.
    pub minimum_rate: Rate,
    /// `rpg_max_rate`: `None` is the line rate. A queue pair that has reached it is no longer limited.
    pub maximum_rate: Option<Rate>,
    /// `rpg_time_reset`: time between two increases. Above 0.
    pub increase_timer: Span,
    /// `rpg_threshold`: so many increases are fast recovery, the next is additive, all further ones hyper.
    pub fast_recovery_steps: u32,
    /// `rpg_ai_rate`.
    pub additive_increase: Rate,
    /// `rpg_hai_rate`.
    pub hyper_increase: Rate,
    /// `clamp_tgt_rate`: every cut takes the current rate as the next target.
    pub clamp_target: bool,
    /// `clamp_tgt_rate_after_time_inc`: a cut does so if the timer has increased the rate since the last one.
    pub clamp_target_after_increase: bool,
}

impl Default for CongestionConfig {
    fn default() -> Self {
        Self {
            control: CongestionControl::default(),
            ecn_loop: EcnLoopConfig::default(),
            dcqcn_paper: DcqcnPaperConfig::default(),
            dcqcn_nvidia: DcqcnNvidiaConfig::default(),
            rate_application: RateApplication::default(),
            cnp_generation: true,
            reaction: true,
            cnp_interval: Span::ZERO,
            np_delay: Span::ZERO,
        }
    }
}

impl Default for EcnLoopConfig {
    fn default() -> Self {
        Self {
            minimum_rate: Share::from_percent(10),
            fast_recovery_attempts: 3,
            initial_target_rate: Share::from_percent(90),
            active_increase_steps: 10,
            control_interval: Span::from_ns(45_000),
            probability_weight: Share::from_percent(50),
            loops_per_increase: 5,
            initial_estimate: Share::ZERO,
            reset_estimate: false,
        }
    }
}

impl Default for DcqcnPaperConfig {
    fn default() -> Self {
        Self {
            alpha_gain: Share::from_parts(Share::UNIT / 256),
            initial_alpha: Share::from_percent(100),
            alpha_timer: Span::from_us(55),
            increase_timer: Span::from_us(55),
            byte_counter: None,
            fast_recovery_steps: 5,
            additive_increase: None,
            hyper_increase: None,
            minimum_rate: None,
        }
    }
}

impl Default for DcqcnNvidiaConfig {
    fn default() -> Self {
        const fn mbps(mbps: u64) -> Rate {
            match Rate::from_bps(mbps * 1_000_000) {
                Some(rate) => rate,
                None => unreachable!(),
            }
        }
        Self {
            alpha_kept: 1_019,
            alpha_period: Span::from_us(1),
            initial_alpha: 1_023,
            cut_window: Span::from_us(4),
            rate_on_first_cnp: None,
            least_kept: Share::from_percent(50),
            cut_exponent: 11,
            minimum_rate: mbps(1),
            maximum_rate: None,
            increase_timer: Span::from_us(300),
            fast_recovery_steps: 1,
            additive_increase: mbps(5),
            hyper_increase: mbps(50),
            clamp_target: false,
            clamp_target_after_increase: true,
        }
    }
}
