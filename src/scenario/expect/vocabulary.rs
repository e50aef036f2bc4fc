//! The fields that each event has in the event log, so that a slip in a scenario file is refused instead of never met.

/// The fields by which a person recognises a packet.
const PACKET: [&str; 5] = ["packet", "class", "dest_qpn", "psn", "payload_octets"];
const QUEUE: [&str; 2] = ["queue", "queue_class"];

/// Keys of an event besides `t_ps`, `node` and `event`. Lists are not among them: there is nothing to compare them with.
pub(in super::super) fn fields(event: &str) -> Vec<&'static str> {
    let (own, shared): (&[&'static str], &[&[&'static str]]) = match event {
        "message_posted" => (&["message", "peer", "qpn", "verb", "bytes"], &[]),
        "application_opened" | "application_left" => (&["application"], &[]),
        "doorbell_unheard" => (&["application", "queue_pair"], &[]),
        "doorbell_rung" => (&["qpn", "producer_index", "entries"], &[]),
        "message_started" => (&["message", "qpn", "first_psn", "packets"], &[]),
        "message_delivered" => (&["message", "qpn", "bytes"], &[]),
        "message_completed" => (&["message", "qpn"], &[]),
        "message_failed" => (&["message", "qpn", "status"], &[]),
        "delivery_failed" => (&["message", "qpn"], &[]),
        "receive_posted" => (&["qpn", "receive"], &[]),
        "receive_completed" => (&["qpn", "receive", "verb", "bytes", "immediate", "solicited"], &[]),
        "receive_failed" => (&["qpn", "receive", "status"], &[]),
        "generation_scheduled" => (&["runs_at_ps"], &[]),
        "generation_stopped" => (&["class", "qpn", "occupancy_octets", "needed_octets"], &[]),
        "generation_blocked_by_pcie" => (&["qpn"], &[]),
        "segment_reserved" | "payload_discarded" | "handed_to_host" => {
            (&["qpn", "psn", "payload_octets", "class", "occupancy_octets"], &[])
        }
        "payload_fetched" | "payload_written" => (&["qpn", "psn", "payload_octets"], &[]),
        "packet_numbered" => (&["qpn", "psn", "transmission"], &[]),
        "frame_queued" => (&["port", "qpn", "waiting"], &[&QUEUE, &PACKET]),
        "transmit_started" => (&["port", "qpn", "wire_len_octets", "rate_bps"], &[&QUEUE, &PACKET]),
        "frame_sent" => (&["port", "wire_len_octets", "transmission", "fate", "rule"], &[&PACKET]),
        "frame_injected" => (&["port", "rule"], &[&PACKET]),
        "egress_released" => (&["class", "octets", "occupancy_octets"], &[]),
        "frame_received" => {
            (&["port", "wire_len_octets", "occupancy_octets", "verdict", "reason", "error"], &[&PACKET])
        }
        "ack_held" => (&["qpn", "psn", "held"], &[]),
        "ack_made" => (&["qpn", "psn", "msn"], &[]),
        "nak_made" => (&["qpn", "expected", "got"], &[]),
        "rnr_nak_made" => (&["qpn", "psn", "wait_ps"], &[]),
        "error_nak_made" => (&["qpn", "psn", "cause"], &[]),
        "rnr_wait_started" => (&["qpn", "psn", "until_ps", "attempt"], &[]),
        "rnr_wait_ended" => (&["qpn", "psn"], &[]),
        "queue_pair_failed" => (&["qpn", "cause"], &[]),
        "packets_retired" => (&["qpn", "up_to", "retired", "outstanding"], &[]),
        "stale_ack_ignored" => (&["qpn", "psn"], &[]),
        "rewound" => (&["qpn", "to", "packets"], &[]),
        "transport_timer_expired" => (&["qpn", "oldest"], &[]),
        "transport_timer_started" => (&["qpn", "expires_at_ps"], &[]),
        "transport_timer_stopped" => (&["qpn"], &[]),
        "pause_requested" => (&["port", "class", "quanta", "occupancy_octets", "refresh"], &[]),
        "resume_requested" => (&["port", "class", "occupancy_octets"], &[]),
        "paused" => (&["port", "class", "quanta", "duration_ps"], &[]),
        "resumed" => (&["port", "class", "paused_ps", "by_xon"], &[]),
        "lossless_violated" => (&["port", "reason", "occupancy_octets", "missing_octets"], &[&PACKET]),
        "resume_received" => (&["port", "class"], &[]),
        "pause_cut_off" => (&["port", "class", "paused_ps"], &[]),
        "pcie_carried" => (
            &[
                "direction",
                "carried_octets",
                "rate_bps",
                "tx_header_peak_octets",
                "tx_data_peak_octets",
                "rx_header_peak_octets",
                "rx_data_peak_octets",
            ],
            &[],
        ),
        "queue_depth_changed" => (&["port", "class", "depth_octets", "average_octets"], &[]),
        "ce_marked" => (&["port", "average_octets", "probability"], &[&PACKET]),
        "ingress_released" => (&["port", "class", "octets", "occupancy_octets"], &[]),
        "doorbell_posted" => (&["qpn", "entries", "carried_octets"], &[]),
        "doorbell_heard" | "send_queue_rewound" => (&["qpn", "entries"], &[]),
        "blue_flame_posted" | "blue_flame_fell_back" => (&["qpn", "wqe_octets"], &[]),
        "wqe_fetch_requested" | "wqe_fetched" => (&["qpn", "message", "carried_octets"], &[]),
        "wqe_discarded" => (&["qpn", "carried_octets"], &[]),
        "wqe_prefetch_hit" => (&["qpn", "message"], &[]),
        "congestion_seen" => (&["qpn", "psn"], &[]),
        "cnp_suppressed" | "cnp_made" | "cnp_ignored" | "episode_started" => (&["qpn"], &[]),
        "rate_changed" => (&["qpn", "current_bps", "target_bps", "cause"], &[]),
        "episode_ended" => (&["qpn", "lasted_ps"], &[]),
        _ => (&[], &[]),
    };
    own.iter().chain(shared.iter().copied().flatten()).copied().collect()
}
