//! The attributes of switches, one row each, as in `catalogue.rs`.
//!
//! * Source: congestion.md §4.3; timing rules 12 and 13.

use super::attributes::{Attribute, Place, Slot};
use super::catalogue::{ANY, SIZE, attributes, seed};
use crate::base::Share;

const UP_TO_ALL: (u64, u64) = (0, Share::UNIT);
const SOME_SHARE: (u64, u64) = (1, Share::UNIT);

attributes! { "switch", "switch.":
    SWITCH_RATE "data_rate" "DataRate" = "\"400Gbps\"" in ANY, Rate switch.data_rate;
        "Rate of every port. Both ends of a link run at the lower one of theirs."
    SWITCH_DELAY "delay" "Delay" = "\"500ns\"" in ANY, Span switch.delay;
        "Propagation delay towards other switches. Towards a NIC it is the NIC's; a link's own `delay` comes before both."
    SWITCH_BUFFER "total_buffer_size" "TotalBufferSize" = "\"256MB\"" in SIZE, Size switch.config.total_buffer;
        "What the frames of all ports may take together."
    SWITCH_SCHEDULING "queue_scheduling_type" "QueueSchedulingType" = "\"StrictPriority\"" in ANY,
        Scheduling switch.config.scheduling;
        "How the classes of a port take turns; PFC frames are ahead of all."
    SWITCH_WEIGHTS "wrr_queue_weights" "WRRQueueWeights" = "[1, 1, 1, 1, 1, 1, 1, 1]" in ANY,
        Weights switch.config.weights;
        "Packets per turn of each class under WeightedRoundRobin."
    SWITCH_PFC "pfc_enable_vector" "PFCEnableVector" = "[1, 1, 1, 1, 1, 1, 1, 1]" in ANY,
        Switches switch.config.pfc.enabled;
        "For which classes this switch sends pauses. It honours received ones for every class."
    SWITCH_QUANTA "quanta_value" "QuantaValue" = "65535" in ANY, Quanta switch.config.pfc.quanta;
        "How long a pause asks for, in units of 512 bit times."
    SWITCH_XOFF "pfc_xoff_threshold" "" = "\"700KB\"" in SIZE, Sizes switch.config.pfc.xoff;
        "An input port's charge above this draws a pause."
    SWITCH_XON "pfc_xon_threshold" "" = "\"300KB\"" in SIZE, Sizes switch.config.pfc.xon;
        "A release that leaves this or less ends the pause."
    SWITCH_HEADROOM "pfc_headroom" "" = "\"256KB\"" in SIZE, Sizes switch.config.pfc.headroom;
        "What an input port may be charged above the pause threshold before frames are dropped."
    SWITCH_SEED "marking_seed" "" = "\"auto\"" in ANY, AutoNumber switch.marking_seed;
        "Seed of the marking decisions. Auto: the scenario's."
    SWITCH_SALT "ecmp_salt" "" = "\"auto\"" in ANY, AutoNumber switch.ecmp_salt;
        "Chooses among equal ways. Auto: from the scenario's seed and the switch's name."
    SWITCH_PAD "pad_to_model" "" = "false" in ANY, Flag switch.config.pad_to_model;
        "Pads PFC frames on the wire to the size the model counts."
}

attributes! { "switch.ecn", "switch.ecn.":
    MARK_ENABLE "enable_vector" "" = "[1, 1, 1, 1, 1, 1, 1, 1]" in ANY, Switches switch.config.marking_enabled;
        "For which classes this switch marks."
    MARK_MIN "min_threshold" "MinThreshold" = "\"300KB\"" in SIZE, Size switch.config.marking.kmin;
        "Below this average length of its queue no packet is marked."
    MARK_MAX "max_threshold" "MaxThreshold" = "\"1.2MB\"" in SIZE, Size switch.config.marking.kmax;
        "From this average length on every packet is marked."
    MARK_PROBABILITY "max_mark_probability" "MaxMarkProbability" = "1" in UP_TO_ALL, Share switch.config.marking.pmax;
        "What the chance of a mark rises to between the two."
    MARK_WEIGHT "ewma_weight" "EwmaWeight" = "0.1" in SOME_SHARE, Share switch.config.marking.weight;
        "What a new length weighs against the average."
}
