//! The counters of a NIC under the names that people know from `mlx5`: `/sys/class/infiniband/*/ports/*/hw_counters` and
//! `ethtool -S`.
//!
//! | name | what it counts there | what it is here |
//! | --- | --- | --- |
//! | `out_of_sequence` | packets received out of sequence | `num_rx_drops_after_nak` |
//! | `packet_seq_err` | NAKs for a sequence error, received | `num_nacks_recvd` less `num_error_naks_recvd` |
//! | `rnr_nak_retry_err` | RNR NAKs received within the limit of retries | `num_rnr_waits` |
//! | `out_of_buffer` | packets dropped for want of a posted receive | `rx_receiver_not_ready` |
//! | `req_cqe_error` | work requests completed in error, flushed ones too | `num_wqe_failed` and `num_wqe_flushed` |
//! | `req_cqe_flush_error` | work requests flushed | `num_wqe_flushed` |
//! | `req_remote_access_errors` | work requests ended by NAK remote access error | `num_remote_access_errors` |
//! | `req_remote_invalid_request` | work requests ended by NAK invalid request | `num_remote_invalid_requests` |
//! | `resp_cqe_error` | receives completed in error, flushed ones too | `num_receives_failed` and `num_receives_flushed` |
//! | `resp_cqe_flush_error` | receives flushed | `num_receives_flushed` |
//! | `resp_local_length_error` | receives too short for what came | `num_receive_length_errors` |
//! | `resp_remote_access_errors` | requests refused for what they would have written to | `num_access_refused` |
//! | `local_ack_timeout_err` | expiries of the ACK timer | `num_rto` |
//! | `duplicate_request` | requests received again | `num_duplicate` |
//! | `np_ecn_marked_roce_packets` | packets received with CE | `num_ce_recvd` |
//! | `np_cnp_sent` | CNPs sent | `num_cnp_sent` |
//! | `rp_cnp_handled` | CNPs received that moved a rate | `num_cnp_recvd` less `num_cnp_ignored` |
//! | `rp_cnp_ignored` | CNPs received and ignored | `num_cnp_ignored` |
//! | `rx_icrc_encapsulated` | packets with a wrong ICRC | `rx_icrc_encapsulated` |
//! | `rx_discards_phy` | packets dropped for want of a buffer | `rx_drops` |
//! | `rx_prio<n>_pause`, `tx_prio<n>_pause` | PFC frames for the priority, received and sent | those with XOFF and those with XON |
//! | `rx_prio<n>_pause_duration` | microseconds for which the priority was held back | `paused_ps`, rounded half up |
//! | `rx_prio<n>_pause_transition` | changes from XOFF to XON | ends of pauses, however they came |
//!
//! Not here, because nothing here is counted by it: `implied_nak_seq_err`, and whatever concerns READs and atomics. The driver's documents do not say whether a PFC frame
//! that resumes is a pause frame to the counter; here it is.
//!
//! * Source: Linux `Documentation/networking/device_drivers/ethernet/mellanox/mlx5/counters.rst`; NVIDIA "Understanding
//!   mlx5 Linux counters".

use super::pressure::Pressure;
use crate::base::{Class, Instant, NodeId, PortId};
use crate::trace::NodeCounters;

/// A name, and what stands for it here.
type Known = (&'static str, fn(&NodeCounters) -> u64);

const KNOWN: [Known; 20] = [
    ("out_of_sequence", |c| c.num_rx_drops_after_nak),
    ("packet_seq_err", |c| c.num_nacks_recvd.saturating_sub(c.num_error_naks_recvd)),
    ("rnr_nak_retry_err", |c| c.num_rnr_waits),
    ("out_of_buffer", |c| c.rx_receiver_not_ready),
    ("req_cqe_error", |c| c.num_wqe_failed + c.num_wqe_flushed),
    ("req_cqe_flush_error", |c| c.num_wqe_flushed),
    ("req_remote_access_errors", |c| c.num_remote_access_errors),
    ("req_remote_invalid_request", |c| c.num_remote_invalid_requests),
    ("resp_cqe_error", |c| c.num_receives_failed + c.num_receives_flushed),
    ("resp_cqe_flush_error", |c| c.num_receives_flushed),
    ("resp_local_length_error", |c| c.num_receive_length_errors),
    ("resp_remote_access_errors", |c| c.num_access_refused),
    ("local_ack_timeout_err", |c| c.num_rto),
    ("duplicate_request", |c| c.num_duplicate),
    ("np_ecn_marked_roce_packets", |c| c.num_ce_recvd),
    ("np_cnp_sent", |c| c.num_cnp_sent),
    ("rp_cnp_handled", |c| c.num_cnp_recvd.saturating_sub(c.num_cnp_ignored)),
    ("rp_cnp_ignored", |c| c.num_cnp_ignored),
    ("rx_icrc_encapsulated", |c| c.rx_icrc_encapsulated),
    ("rx_discards_phy", |c| c.rx_drops),
];

/// Every counter with its name. Those of a priority stand where it `is_used`, or where they are not 0.
///
/// * Order: that of the table, priorities lowest first.
pub(super) fn hw_counters(
    node: NodeId,
    counters: &NodeCounters,
    pressure: &Pressure,
    end: Instant,
    is_used: impl Fn(Class) -> bool,
) -> Vec<(String, u64)> {
    let mut all: Vec<_> = KNOWN.iter().map(|(name, count)| ((*name).to_owned(), count(counters))).collect();
    let port = PortId(0);
    for class in Class::all() {
        let (sent, received) = (pressure.sent(node, port, class), pressure.received(node, port, class));
        let paused = pressure.paused(node, port, class, end);
        let of_class = [
            ("rx", "pause", received.xoff + received.xon),
            ("rx", "pause_duration", paused.ps().saturating_add(500_000) / 1_000_000),
            ("rx", "pause_transition", pressure.pauses_ended(node, port, class)),
            ("tx", "pause", sent.xoff + sent.xon),
        ];
        if is_used(class) || of_class.iter().any(|(_, _, count)| *count > 0) {
            all.extend(of_class.map(|(way, what, count)| (format!("{way}_prio{class}_{what}"), count)));
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::super::story::{self, A, PORT, at, received};
    use super::*;
    use crate::base::{Octets, Span};
    use crate::trace::{Counters, EventKind, PacketKind, Verdict};

    #[test]
    fn known_names_say_what_ours_do() {
        let class = Class::new(3).unwrap();
        let (port, paused, occupancy) = (PORT, Span::from_ns(2_500), Octets::ZERO);
        let events = [
            received(1, A, PacketKind::Cnp, 0, Verdict::Processed),
            received(2, A, PacketKind::Cnp, 0, Verdict::Processed),
            at(2, A, EventKind::CnpIgnored { qpn: story::qpn(2) }),
            received(3, A, PacketKind::Nak, 0, Verdict::Processed),
            at(4, A, EventKind::Paused { port, class, quanta: 9, duration: paused }),
            at(5, A, EventKind::ResumeReceived { port, class }),
            at(5, A, EventKind::Resumed { port, class, paused, by_xon: true }),
            at(6, A, EventKind::PauseRequested { port, class, quanta: 9, occupancy, refresh: false }),
            at(7, A, EventKind::PauseRequested { port, class, quanta: 9, occupancy, refresh: true }),
            at(8, A, EventKind::ResumeRequested { port, class, occupancy }),
        ];
        let (mut counters, mut pressure) = (Counters::new(2), Pressure::new(&story::names()));
        story::play(&events, &mut counters).unwrap();
        story::play(&events, &mut pressure).unwrap();
        let all = hw_counters(A, counters.node(A), &pressure, Instant::from_ps(8), |class| class == Class::DATA);
        let shown: Vec<_> = all.iter().map(|(name, count)| format!("{name} {count}")).collect();
        let expected = [
            "out_of_sequence 0",
            "packet_seq_err 1",
            "rnr_nak_retry_err 0",
            "out_of_buffer 0",
            "req_cqe_error 0",
            "req_cqe_flush_error 0",
            "req_remote_access_errors 0",
            "req_remote_invalid_request 0",
            "resp_cqe_error 0",
            "resp_cqe_flush_error 0",
            "resp_local_length_error 0",
            "resp_remote_access_errors 0",
            "local_ack_timeout_err 0",
            "duplicate_request 0",
            "np_ecn_marked_roce_packets 0",
            "np_cnp_sent 0",
            "rp_cnp_handled 1",
            "rp_cnp_ignored 1",
            "rx_icrc_encapsulated 0",
            "rx_discards_phy 0",
            "rx_prio0_pause 0",
            "rx_prio0_pause_duration 0",
            "rx_prio0_pause_transition 0",
            "tx_prio0_pause 0",
            "rx_prio3_pause 2",
            "rx_prio3_pause_duration 3",
            "rx_prio3_pause_transition 1",
            "tx_prio3_pause 3",
        ];
        assert_eq!(shown, expected);
    }
}
