//! The tables that attributes stand in, under our names and under the specification's.

use super::attributes::Attribute;
use super::catalogue::*;
use super::congestion_catalogue::*;
use super::switch_catalogue::*;

/// A table of attributes. Its parts are tables in it.
pub(super) struct Component {
    /// Ours first, then the specification's.
    pub names: &'static [&'static str],
    pub attributes: &'static [&'static Attribute],
    pub parts: &'static [&'static Component],
}

const fn component(
    names: &'static [&'static str],
    attributes: &'static [&'static Attribute],
    parts: &'static [&'static Component],
) -> Component {
    Component { names, attributes, parts }
}

pub(super) static NIC: Component = component(
    &["nic"],
    &[
        &DATA_RATE,
        &DELAY,
        &MTU,
        &MSS,
        &ACK_COALESCING,
        &ACK_THRESHOLD,
        &ACK_DELAY,
        &RETRANSMIT_TIMEOUT,
        &DOORBELL,
        &WQE_SIZE,
        &WQE_PREFETCH,
        &BLUE_FLAME_MAX,
        &ENABLE_ECN,
        &CONGESTION_CONTROL,
        &RATE_APPLICATION,
        &CNP_GENERATION,
        &CNP_REACTION,
        &CNP_INTERVAL,
        &NP_DELAY,
        &DATA_TC,
        &CONTROL_TC,
        &PAD_TO_MODEL,
        &STRICT_IB_FLAGS,
        &ENABLE_BUFFER_STATS,
        &NUM_DOWN_LINKS,
    ],
    &[
        &ECN,
        &PAPER,
        &NVIDIA,
        &EGRESS,
        &INGRESS,
        &PCIE,
        &QP_MANAGER,
        &TRANSPORT,
        &NETWORK_INTERFACE,
        &UPLINK_INTERFACE,
        &MEDIUM,
        &APPLICATION,
    ],
);

pub(super) static ECN: Component = component(
    &["ecn", "ECNHandler"],
    &[
        &ENABLE_ECN,
        &MINIMUM_RATE,
        &FAST_RECOVERY,
        &INITIAL_TARGET,
        &INCREASE_STEPS,
        &CONTROL_INTERVAL,
        &PROBABILITY_WEIGHT,
        &LOOPS_PER_INCREASE,
        &INITIAL_ESTIMATE,
        &RESET_ESTIMATE,
    ],
    &[],
);

pub(super) static PAPER: Component = component(
    &["dcqcn_paper"],
    &[
        &PAPER_GAIN,
        &PAPER_ALPHA,
        &PAPER_ALPHA_TIMER,
        &PAPER_INCREASE_TIMER,
        &PAPER_BYTES,
        &PAPER_STEPS,
        &PAPER_ADDITIVE,
        &PAPER_HYPER,
        &PAPER_MINIMUM,
    ],
    &[],
);

pub(super) static NVIDIA: Component = component(
    &["dcqcn_nvidia"],
    &[
        &NVIDIA_GAIN,
        &NVIDIA_PERIOD,
        &NVIDIA_ALPHA,
        &NVIDIA_WINDOW,
        &NVIDIA_FIRST,
        &NVIDIA_LEAST,
        &NVIDIA_GD,
        &NVIDIA_MINIMUM,
        &NVIDIA_MAXIMUM,
        &NVIDIA_TIMER,
        &NVIDIA_STEPS,
        &NVIDIA_ADDITIVE,
        &NVIDIA_HYPER,
        &NVIDIA_CLAMP,
        &NVIDIA_CLAMP_AFTER,
    ],
    &[],
);

pub(super) static SWITCH: Component = component(
    &["switch"],
    &[
        &SWITCH_RATE,
        &SWITCH_DELAY,
        &SWITCH_BUFFER,
        &SWITCH_SCHEDULING,
        &SWITCH_WEIGHTS,
        &SWITCH_PFC,
        &SWITCH_QUANTA,
        &SWITCH_XOFF,
        &SWITCH_XON,
        &SWITCH_HEADROOM,
        &SWITCH_SEED,
        &SWITCH_SALT,
        &SWITCH_PAD,
    ],
    &[&MARKING],
);

pub(super) static MARKING: Component =
    component(&["ecn"], &[&MARK_ENABLE, &MARK_MIN, &MARK_MAX, &MARK_PROBABILITY, &MARK_WEIGHT], &[]);

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
