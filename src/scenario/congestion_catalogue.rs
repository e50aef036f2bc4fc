//! The attributes of congestion control, one row each, as in `catalogue.rs`.
//!
//! The names in the second column are the specification's for its own loop, and NVIDIA's for DCQCN as NVIDIA
//! parameterises it, where they are ours as well.
//!
//! * Source: congestion.md §4.1 to §4.4.

use super::attributes::{Attribute, Place, Slot};
use super::catalogue::{ANY, POSITIVE, SIZE, attributes, seed};
use crate::base::Share;

/// A share of the whole; the first one may not be nothing.
const SOME_SHARE: (u64, u64) = (1, Share::UNIT);
const UP_TO_ALL: (u64, u64) = (0, Share::UNIT);
/// 1/1024ths.
const PARTS: (u64, u64) = (0, 1_024);
const PERCENT: (u64, u64) = (0, 100);
const EXPONENT: (u64, u64) = (0, 63);
/// Up to a thousand seconds.
const INTERVAL_NS: (u64, u64) = (1, 1_000_000_000_000);

attributes! { "nic", "":
    CONGESTION_CONTROL "congestion_control" "" = "\"ecn_loop\"" in ANY, Control nic.congestion.control;
        "What moves the rates of queue pairs: the specification's loop, DCQCN of the paper, NVIDIA's, or nothing."
    RATE_APPLICATION "rate_application" "RateApplication" = "\"serialize\"" in ANY,
        Application nic.congestion.rate_application;
        "Whether a slowed queue pair's frames take longer on the line, or go at line rate and wait between."
    CNP_GENERATION "cnp_generation" "" = "true" in ANY, Flag nic.congestion.cnp_generation;
        "Whether marked data draws congestion notifications (CNPs)."
    CNP_REACTION "cnp_reaction" "" = "true" in ANY, Flag nic.congestion.reaction;
        "Whether CNPs move rates. If not, data stays ECN-capable, unlike without enable_ecn."
    CNP_INTERVAL "min_time_between_cnps" "MinTimeBetweenCnps" = "\"0ns\"" in ANY, Span nic.congestion.cnp_interval;
        "Between two CNPs of a queue pair at least. Zero: one for every marked packet."
    NP_DELAY "np_delay" "" = "\"0ns\"" in ANY, Span nic.congestion.np_delay;
        "How long the NIC takes from a marked packet to its CNP."
}

attributes! { "nic.ecn", "ecn.":
    MINIMUM_RATE "minimum_rate_percentage" "MinimumRatePercentage" = "0.1" in SOME_SHARE,
        Share nic.congestion.ecn_loop.minimum_rate;
        "Floor of the rate, as a share of the data rate."
    FAST_RECOVERY "fast_recovery_attempt" "FastRecoveryAttempt" = "3" in ANY,
        Count nic.congestion.ecn_loop.fast_recovery_attempts;
        "So many increases go half of the way back; those after them also raise the target."
    INITIAL_TARGET "initial_target_rate_percentage" "InitialTargetRatePercentage" = "0.9" in UP_TO_ALL,
        Share nic.congestion.ecn_loop.initial_target_rate;
        "Sizes the step: the target at the start of an episode x (1 - this) / number_active_increase_steps."
    INCREASE_STEPS "number_active_increase_steps" "NumberActiveIncreaseSteps" = "10" in POSITIVE,
        Count nic.congestion.ecn_loop.active_increase_steps;
        "Sizes the step."
    CONTROL_INTERVAL "control_interval_duration_ns" "ControlIntervalDurationNs" = "45000" in INTERVAL_NS,
        Nanoseconds nic.congestion.ecn_loop.control_interval;
        "Nanoseconds from one reduction to the next; increases come halfway."
    PROBABILITY_WEIGHT "congestion_probability_weight" "CongestionProbabilityWeight" = "0.5" in UP_TO_ALL,
        Share nic.congestion.ecn_loop.probability_weight;
        "What the newest share of marked packets weighs in the estimate."
    LOOPS_PER_INCREASE "num_of_control_loops_per_increase" "NumOfControlLoopsPerIncrease" = "5" in ANY,
        Count nic.congestion.ecn_loop.loops_per_increase;
        "While CNPs go on coming, so many increases are left out before one takes place."
    INITIAL_ESTIMATE "initial_estimate" "" = "0" in UP_TO_ALL, Share nic.congestion.ecn_loop.initial_estimate;
        "The estimate of a queue pair that has seen no CNP. With 1 the first cut is the strongest."
    RESET_ESTIMATE "reset_estimate" "" = "false" in ANY, Flag nic.congestion.ecn_loop.reset_estimate;
        "Whether every episode starts with initial_estimate again."
}

attributes! { "nic.dcqcn_paper", "dcqcn_paper.":
    PAPER_GAIN "alpha_gain" "" = "0.00390625" in UP_TO_ALL, Share nic.congestion.dcqcn_paper.alpha_gain;
        "g: what a CNP, or its absence, weighs in alpha."
    PAPER_ALPHA "initial_alpha" "" = "1" in UP_TO_ALL, Share nic.congestion.dcqcn_paper.initial_alpha;
        "Alpha of a queue pair that has seen no CNP. A cut takes alpha / 2."
    PAPER_ALPHA_TIMER "alpha_timer" "" = "\"55us\"" in POSITIVE, Span nic.congestion.dcqcn_paper.alpha_timer;
        "K: alpha decays so long after the last CNP or decay."
    PAPER_INCREASE_TIMER "increase_timer" "" = "\"55us\"" in POSITIVE, Span nic.congestion.dcqcn_paper.increase_timer;
        "T: the rate increases so long after the last CNP or timed increase."
    PAPER_BYTES "byte_counter" "" = "\"auto\"" in SIZE, AutoSize nic.congestion.dcqcn_paper.byte_counter;
        "B: the rate also increases every so many octets; \"0B\" is never. Auto: 10 MB per 40 Gb/s of line rate."
    PAPER_STEPS "fast_recovery_steps" "" = "5" in ANY, Count nic.congestion.dcqcn_paper.fast_recovery_steps;
        "F: so many increases of one kind are fast recovery."
    PAPER_ADDITIVE "additive_increase" "" = "\"auto\"" in ANY, AutoRate nic.congestion.dcqcn_paper.additive_increase;
        "R_AI. Auto: 40 Mb/s per 40 Gb/s of line rate."
    PAPER_HYPER "hyper_increase" "" = "\"auto\"" in ANY, AutoRate nic.congestion.dcqcn_paper.hyper_increase;
        "R_HAI. Auto: 200 Mb/s per 40 Gb/s of line rate."
    PAPER_MINIMUM "minimum_rate" "" = "\"auto\"" in ANY, AutoRate nic.congestion.dcqcn_paper.minimum_rate;
        "Floor of the rate. Auto: 100 Mb/s per 40 Gb/s of line rate."
}

attributes! { "nic.dcqcn_nvidia", "dcqcn_nvidia.":
    NVIDIA_GAIN "dce_tcp_g" "" = "1019" in PARTS, Short nic.congestion.dcqcn_nvidia.alpha_kept;
        "What is kept of alpha at each tick, in 1/1024."
    NVIDIA_PERIOD "dce_tcp_rtt" "" = "\"1us\"" in POSITIVE, Span nic.congestion.dcqcn_nvidia.alpha_period;
        "Between two ticks of alpha."
    NVIDIA_ALPHA "initial_alpha_value" "" = "1023" in PARTS, Short nic.congestion.dcqcn_nvidia.initial_alpha;
        "Alpha at the first CNP, in 1/1024."
    NVIDIA_WINDOW "rate_reduce_monitor_period" "" = "\"4us\"" in POSITIVE, Span nic.congestion.dcqcn_nvidia.cut_window;
        "At most one cut in each such time."
    NVIDIA_FIRST "rate_to_set_on_first_cnp" "" = "0" in ANY, ZeroRate nic.congestion.dcqcn_nvidia.rate_on_first_cnp;
        "The rate at the first CNP. 0: as it was."
    NVIDIA_LEAST "rpg_min_dec_fac" "" = "50" in PERCENT, Percent nic.congestion.dcqcn_nvidia.least_kept;
        "What a cut leaves at least, in per cent."
    NVIDIA_GD "rpg_gd" "" = "11" in EXPONENT, Byte nic.congestion.dcqcn_nvidia.cut_exponent;
        "A cut takes alpha x 2^(10 - this) of the rate: with 11, alpha / 2."
    NVIDIA_MINIMUM "rpg_min_rate" "" = "\"1Mbps\"" in ANY, Rate nic.congestion.dcqcn_nvidia.minimum_rate;
        "Floor of the rate."
    NVIDIA_MAXIMUM "rpg_max_rate" "" = "0" in ANY, ZeroRate nic.congestion.dcqcn_nvidia.maximum_rate;
        "A queue pair at this rate is no longer limited. 0: the line rate."
    NVIDIA_TIMER "rpg_time_reset" "" = "\"300us\"" in POSITIVE, Span nic.congestion.dcqcn_nvidia.increase_timer;
        "Between two increases."
    NVIDIA_STEPS "rpg_threshold" "" = "1" in ANY, Count nic.congestion.dcqcn_nvidia.fast_recovery_steps;
        "So many increases are fast recovery, the next one is additive, all further ones are hyper."
    NVIDIA_ADDITIVE "rpg_ai_rate" "" = "\"5Mbps\"" in ANY, Rate nic.congestion.dcqcn_nvidia.additive_increase;
        "Additive increase."
    NVIDIA_HYPER "rpg_hai_rate" "" = "\"50Mbps\"" in ANY, Rate nic.congestion.dcqcn_nvidia.hyper_increase;
        "Hyper increase."
    NVIDIA_CLAMP "clamp_tgt_rate" "" = "false" in ANY, Flag nic.congestion.dcqcn_nvidia.clamp_target;
        "Whether every cut takes the current rate as the next target."
    NVIDIA_CLAMP_AFTER "clamp_tgt_rate_after_time_inc" "" = "true" in ANY,
        Flag nic.congestion.dcqcn_nvidia.clamp_target_after_increase;
        "Whether a cut does so if the timer has increased the rate since the last one."
}
