//! The attributes of NICs and of the run, one row each. Those that only congestion control has are in
//! `congestion_catalogue.rs`, those of switches in `switch_catalogue.rs`.
//!
//! A row is: table, our name, the specification's name, default, range, type and field, meaning.
//!
//! * Source: model.md §2.1.

use super::attributes::{Attribute, Place, Slot};

pub(super) const ANY: (u64, u64) = (0, u64::MAX);
pub(super) const POSITIVE: (u64, u64) = (1, u64::MAX);
/// Sizes of buffers and frames: more is a slip of the unit, and sums of these stay far within 64 bits.
pub(super) const SIZE: (u64, u64) = (0, 1_000_000_000_000);
const PAYLOAD: (u64, u64) = (1, 9_216);
const LANES: (u64, u64) = (1, 16);
const ONE: (u64, u64) = (1, 1);
const SLOT: (u64, u64) = (64, 512);
const UP_TO_SLOT: (u64, u64) = (0, 512);
const PREFETCH: (u64, u64) = (0, 64);

/// An attribute of our own has no name in the specification.
pub(super) const fn seed(name: &'static str) -> Option<&'static str> {
    if name.is_empty() { None } else { Some(name) }
}

macro_rules! attributes {
    ($table:literal, $prefix:literal:
     $($id:ident $name:literal $seed:literal = $default:literal in $range:ident, $kind:ident $($field:ident).+;
       $meaning:literal)+) => {$(
        pub(super) static $id: Attribute = Attribute {
            table: $table,
            name: $name,
            seed_name: seed($seed),
            default: $default,
            meaning: $meaning,
            slots: &[Slot(concat!($prefix, $name), Place::$kind(|s| &mut s.$($field).+))],
            range: $range,
        };
    )+};
}
pub(super) use attributes;

attributes! { "nic", "":
    DATA_RATE "data_rate" "DataRate" = "\"400Gbps\"" in ANY, Rate nic.data_rate;
        "Rate of the network port. Both ends of a link run at the lower one of theirs."
    DELAY "delay" "Delay" = "\"100ns\"" in ANY, Span nic.delay;
        "Propagation delay of what this NIC sends. A link's own `delay` comes before it."
    MTU "mtu" "Mtu" = "\"4184B\"" in SIZE, Size nic.mtu;
        "Largest frame of the link. MSS + 58 B is below it."
    MSS "mss" "MSS" = "\"4096B\"" in PAYLOAD, Size nic.mss;
        "Payload octets per packet."
    ACK_COALESCING "ack_coalescing_enabled" "AckCoalescingEnabled" = "true" in ANY, Flag nic.ack.coalescing;
        "Whether acknowledgements are held back. If not, every packet draws one."
    ACK_THRESHOLD "ack_threshold" "AckThreshold" = "16" in ANY, Count nic.ack.threshold;
        "So many packets are held; the next one is acknowledged."
    ACK_DELAY "ack_delay" "AckDelay" = "\"1ms\"" in ANY, Span nic.ack.delay;
        "How long an acknowledgement is held at most. Zero acknowledges in the instant of the arrival."
    RETRANSMIT_TIMEOUT "retransmit_timeout" "RetransmitTimeout" = "\"64ms\"" in POSITIVE, Span nic.retransmit_timeout;
        "Without an acknowledgement for so long, the sender resends. Zero would expire as it starts, for ever."
    DOORBELL "doorbell" "" = "\"free\"" in ANY, Doorbell nic.send_queue.doorbell;
        "Whether doorbells and the fetches of work queue elements (WQEs) take their time on the PCIe link."
    WQE_SIZE "wqe_size" "WqeSize" = "\"64B\"" in SLOT, SlotSize nic.send_queue.wqe_size;
        "What a WQE fetch reads, where doorbells are modelled. Inline data may need more; a ring's slots are their own size."
    WQE_PREFETCH "wqe_prefetch" "WqePrefetch" = "1" in PREFETCH, Count nic.send_queue.wqe_prefetch;
        "So many WQEs are fetched ahead of the one in progress."
    BLUE_FLAME_MAX "blue_flame_max" "BlueFlameMax" = "\"256B\"" in UP_TO_SLOT, Size nic.send_queue.blue_flame_max;
        "Longer WQEs do not travel with their doorbell, though their post asks for it; they are fetched."
    ENABLE_ECN "enable_ecn" "EnableECN" = "true" in ANY, Flag nic.enable_ecn;
        "Whether data is ECT(0) and congestion notifications slow queue pairs down."
    DATA_TC "rdma_data_packet_tc" "RdmaDataPacketTC" = "0" in ANY, Class data_class;
        "Traffic class of data packets, unless a queue pair says otherwise."
    CONTROL_TC "rdma_control_packet_tc" "RdmaControlPacketTC" = "1" in ANY, Class nic.control_class;
        "Traffic class of acknowledgements, unless a queue pair says otherwise."
    PAD_TO_MODEL "pad_to_model" "" = "false" in ANY, Flag nic.pad_to_model;
        "Pads control frames on the wire to the size the model counts."
    STRICT_IB_FLAGS "strict_ib_flags" "" = "false" in ANY, Flag nic.strict_ib_flags;
        "Sets the solicited-event flag only where the InfiniBand specification has it."
    ENABLE_BUFFER_STATS "enable_buffer_stats" "EnableBufferStats" = "false" in ANY, Flag buffer_stats;
        "Whether this NIC's pools take part in the net-buff-stats record."
}

/// Read-only: it can be written, but only with its one value.
pub(super) static NUM_DOWN_LINKS: Attribute = Attribute {
    table: "nic",
    name: "num_down_links",
    seed_name: Some("NumDownLinks"),
    default: "1",
    meaning: "Network ports of the NIC. It has one.",
    slots: &[Slot("num_down_links", Place::Fixed)],
    range: ONE,
};

attributes! { "nic.egress_buffer", "egress_buffer.":
    EGRESS_TOTAL "total_buffer_size" "TotalBufferSize" = "\"256KB\"" in SIZE, Size nic.egress.total;
        "Size of the transmit buffer."
    EGRESS_POOLS "pool_allocation_vector" "PoolAllocationVector" = "[0.9, 0.1, 0, 0, 0, 0, 0, 0]" in ANY,
        Pools nic.egress.shares;
        "Each class's share of the transmit buffer; the non-zero ones first."
    EGRESS_SCHEDULING "queue_scheduling_type" "QueueSchedulingType" = "\"StrictPriority\"" in ANY,
        Scheduling nic.egress.scheduling;
        "How the classes take turns on the line."
    EGRESS_WEIGHTS "wrr_queue_weights" "WRRQueueWeights" = "[1, 3, 0, 0, 0, 0, 0, 0]" in ANY, Weights nic.egress.weights;
        "Packets per turn of each class under WeightedRoundRobin."
}

attributes! { "nic.ingress_buffer", "ingress_buffer.":
    INGRESS_TOTAL "total_buffer_size" "TotalBufferSize" = "\"4MB\"" in SIZE, Size nic.ingress.total;
        "Size of the receive buffer."
    INGRESS_POOLS "pool_allocation_vector" "PoolAllocationVector" = "[0.9, 0.1, 0, 0, 0, 0, 0, 0]" in ANY,
        Pools nic.ingress.shares;
        "Each class's share of the receive buffer; the non-zero ones first."
    INGRESS_SCHEDULING "queue_scheduling_type" "QueueSchedulingType" = "\"StrictPriority\"" in ANY,
        Scheduling nic.ingress.scheduling;
        "Read and checked; received data is written in the order of its arrival whatever it says."
    INGRESS_WEIGHTS "wrr_queue_weights" "WRRQueueWeights" = "[1, 3, 0, 0, 0, 0, 0, 0]" in ANY, Weights nic.ingress.weights;
        "Read and checked, like queue_scheduling_type."
    PFC_ENABLE "pfc_enable_vector" "PFCEnableVector" = "[1, 1, 0, 0, 0, 0, 0, 0]" in ANY, Switches nic.ingress.pfc_enabled;
        "For which classes this NIC sends pauses. It honours received ones for every class."
    PFC_XOFF "pfc_static_xoff_threshold" "PfcStaticXoffThreshold" = "[0.8, 0.8, 0, 0, 0, 0, 0, 0]" in ANY,
        Shares nic.ingress.xoff;
        "Share of the class's receive pool at which a pause is sent."
    PFC_XON "pfc_xon_resume_threshold" "PfcXonResumeThreshold" = "[0.4, 0.4, 0, 0, 0, 0, 0, 0]" in ANY,
        Shares nic.ingress.xon;
        "Share of the class's receive pool at which a release ends the pause."
    PFC_QUANTA "quanta_value" "QuantaValue" = "[65535, 65535, 0, 0, 0, 0, 0, 0]" in ANY, Quanta nic.ingress.quanta;
        "How long a pause asks for, in units of 512 bit times."
}

attributes! { "nic.pcie", "pcie.":
    READ_REQUEST "read_request_size" "ReadRequestSize" = "\"64B\"" in SIZE, Size nic.pcie.read_request_size;
        "Octets of a read request on the PCIe link, without the 34 B of overhead."
}

/// An attribute of both sides of the PCIe link, then of the NIC's alone, then of the host's.
macro_rules! of_both_sides {
    ($($both:ident $nic:ident $host:ident $name:literal $seed:literal = $default:literal in $range:ident,
       $kind:ident $field:ident; $meaning:literal)+) => {$(
        pub(super) static $both: Attribute = Attribute {
            table: "nic.pcie",
            name: $name,
            seed_name: seed($seed),
            default: $default,
            meaning: $meaning,
            slots: &[
                Slot(concat!("pcie.nic_side.", $name), Place::$kind(|s| &mut s.nic.pcie.nic_side.$field)),
                Slot(concat!("pcie.host_side.", $name), Place::$kind(|s| &mut s.nic.pcie.host_side.$field)),
            ],
            range: $range,
        };
        attributes! { "nic.pcie.nic_side", "pcie.nic_side.":
            $nic $name $seed = $default in $range, $kind nic.pcie.nic_side.$field; $meaning
        }
        attributes! { "nic.pcie.host_side", "pcie.host_side.":
            $host $name $seed = $default in $range, $kind nic.pcie.host_side.$field; $meaning
        }
    )+};
}

of_both_sides! {
    LANE_BPS NIC_LANE_BPS HOST_LANE_BPS "lane_bps" "LaneBps" = "\"31.52Gbps\"" in ANY, Rate lane_bps;
        "Rate per lane at which a side sends; `nic_side` and `host_side` may differ."
    LANE_COUNT NIC_LANE_COUNT HOST_LANE_COUNT "lane_count" "LaneCount" = "16" in LANES, Byte lane_count;
        "Lanes on which a side sends."
    RX_HEADER NIC_RX_HEADER HOST_RX_HEADER "rx_header_buffer_size" "RXHeaderBufferSize" = "\"16KB\"" in SIZE,
        Size rx_header_buffer;
        "Receive buffer for the headers of transfers, 34 B each."
    TX_HEADER NIC_TX_HEADER HOST_TX_HEADER "tx_header_buffer_size" "TXHeaderBufferSize" = "\"16KB\"" in SIZE,
        Size tx_header_buffer;
        "Transmit buffer for the headers of transfers, 34 B each."
    RX_DATA NIC_RX_DATA HOST_RX_DATA "rx_data_buffer_size" "RXDataBufferSize" = "\"256KB\"" in SIZE, Size rx_data_buffer;
        "Receive buffer for the payload of transfers."
    TX_DATA NIC_TX_DATA HOST_TX_DATA "tx_data_buffer_size" "TXDataBufferSize" = "\"256KB\"" in SIZE, Size tx_data_buffer;
        "Transmit buffer for the payload of transfers."
}

attributes! { "run", "":
    ND_STATS_INTERVAL "nd_stats_report_interval" "NDStatsReportInterval" = "0.001" in POSITIVE,
        Seconds records.nd_stats_interval;
        "Seconds between two rows of the nd-stats, roce-transport-stats and ecn-pfc-stats records."
    TRANSPORT_STATS "enable_roce_transport_stats" "EnableRoceTransportStats" = "true" in ANY,
        Flag records.roce_transport_stats;
        "Whether the roce-transport-stats record is written."
    BUFFER_REPORTING "enable_network_buffer_stats_reporting" "EnableNetworkBufferStatsReporting" = "false" in ANY,
        Flag records.net_buff_stats;
        "Whether the net-buff-stats record is written, for NICs with enable_buffer_stats."
    BUFFER_INTERVAL "network_buffer_stats_reporting_interval" "NetworkBufferStatsReportingInterval" = "0.001" in POSITIVE,
        Seconds records.net_buff_stats_interval;
        "Seconds between two rows of the net-buff-stats record."
}
