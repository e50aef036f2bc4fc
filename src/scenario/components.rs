//! The tables that attributes stand in, under our names and under the specification's.

use super::attributes::Attribute;
use super::catalogue::*;

/// A table of attributes. Its parts are tables in it.
pub(super) struct Component {
    /// Ours first, then the specification's.
    pub names: &'static [&'static str],
    pub attributes: &'static [&'static Attribute],
    pub parts: &'static [&'static Component],
    /// Attributes that a later version will understand.
    pub later: &'static [&'static str],
}

const fn component(
    names: &'static [&'static str],
    attributes: &'static [&'static Attribute],
    parts: &'static [&'static Component],
) -> Component {
    Component { names, attributes, parts, later: &[] }
}

pub(super) static NIC: Component = Component {
    names: &["nic"],
    attributes: &[
        &DATA_RATE,
        &DELAY,
        &MTU,
        &MSS,
        &ACK_COALESCING,
        &ACK_THRESHOLD,
        &ACK_DELAY,
        &RETRANSMIT_TIMEOUT,
        &ENABLE_ECN,
        &DATA_TC,
        &CONTROL_TC,
        &PAD_TO_MODEL,
        &STRICT_IB_FLAGS,
        &ENABLE_BUFFER_STATS,
        &NUM_DOWN_LINKS,
    ],
    parts: &[
        &EGRESS,
        &INGRESS,
        &PCIE,
        &QP_MANAGER,
        &TRANSPORT,
        &NETWORK_INTERFACE,
        &UPLINK_INTERFACE,
        &MEDIUM,
        &ECN,
        &APPLICATION,
    ],
    later: ECN_LATER,
};

pub(super) static EGRESS: Component = component(
    &["egress_buffer", "EgressBufferManager"],
    &[&EGRESS_TOTAL, &EGRESS_POOLS, &EGRESS_SCHEDULING, &EGRESS_WEIGHTS],
    &[],
);

pub(super) static INGRESS: Component = component(
    &["ingress_buffer", "IngressBufferManager"],
    &[
        &INGRESS_TOTAL,
        &INGRESS_POOLS,
        &INGRESS_SCHEDULING,
        &INGRESS_WEIGHTS,
        &PFC_ENABLE,
        &PFC_XOFF,
        &PFC_XON,
        &PFC_QUANTA,
    ],
    &[],
);

pub(super) static PCIE: Component =
    component(&["pcie", "HostInterface"], PCIE_ATTRIBUTES, &[&NIC_SIDE, &HOST_SIDE, &PCIE_CONTAINER]);

const PCIE_ATTRIBUTES: &[&Attribute] =
    &[&LANE_BPS, &LANE_COUNT, &READ_REQUEST, &RX_HEADER, &TX_HEADER, &RX_DATA, &TX_DATA];

static NIC_SIDE: Component = component(
    &["nic_side", "NICSide"],
    &[&NIC_LANE_BPS, &NIC_LANE_COUNT, &NIC_RX_HEADER, &NIC_TX_HEADER, &NIC_RX_DATA, &NIC_TX_DATA],
    &[&NIC_TRANSACTION, &NIC_HANDLER],
);

static HOST_SIDE: Component = component(
    &["host_side", "HostSide"],
    &[&HOST_LANE_BPS, &HOST_LANE_COUNT, &HOST_RX_HEADER, &HOST_TX_HEADER, &HOST_RX_DATA, &HOST_TX_DATA],
    &[&HOST_TRANSACTION],
);

pub(super) static RUN: Component =
    component(&["run"], &[&ND_STATS_INTERVAL, &TRANSPORT_STATS, &BUFFER_REPORTING, &BUFFER_INTERVAL], &[]);

// The components below exist only under the specification's names: what they hold stands directly in our tables.

/// Its name says nothing about the generation of the link: `lane_bps` does.
static PCIE_CONTAINER: Component = component(&["PCIeGen3.0"], PCIE_ATTRIBUTES, &[&NIC_SIDE, &HOST_SIDE]);

static NIC_TRANSACTION: Component =
    component(&["TransactionLayer"], &[&NIC_RX_HEADER, &NIC_TX_HEADER, &NIC_RX_DATA, &NIC_TX_DATA], &[]);

static HOST_TRANSACTION: Component =
    component(&["TransactionLayer"], &[&HOST_RX_HEADER, &HOST_TX_HEADER, &HOST_RX_DATA, &HOST_TX_DATA], &[]);

static NIC_HANDLER: Component = component(&["NICPCIeHandler"], &[&READ_REQUEST], &[]);

static QP_MANAGER: Component = component(&["ScalaRoceQpManager"], &[&MSS], &[]);

static TRANSPORT: Component =
    component(&["RoceTransportLayer"], &[&ACK_COALESCING, &ACK_THRESHOLD, &ACK_DELAY, &RETRANSMIT_TIMEOUT], &[]);

static NETWORK_INTERFACE: Component = component(&["NetworkInterface"], &[&DATA_RATE], &[&UPLINK_INTERFACE, &MEDIUM]);

static UPLINK_INTERFACE: Component = component(&["UplinkNetworkInterface"], &[&DATA_RATE], &[&MEDIUM]);

static MEDIUM: Component = component(&["TransmissionMedium"], &[&DELAY], &[]);

static APPLICATION: Component = component(&["RdmaApplication"], &[&DATA_TC, &CONTROL_TC], &[]);

static ECN: Component = Component { names: &["ECNHandler"], attributes: &[&ENABLE_ECN], parts: &[], later: ECN_LATER };

/// The rate loop's own attributes (congestion.md §4.1).
#[rustfmt::skip]
const ECN_LATER: &[&str] = &[
    "minimum_rate_percentage", "MinimumRatePercentage",
    "fast_recovery_attempt", "FastRecoveryAttempt",
    "initial_target_rate_percentage", "InitialTargetRatePercentage",
    "number_active_increase_steps", "NumberActiveIncreaseSteps",
    "control_interval_duration_ns", "ControlIntervalDurationNs",
    "congestion_probability_weight", "CongestionProbabilityWeight",
    "num_of_control_loops_per_increase", "NumOfControlLoopsPerIncrease",
];
