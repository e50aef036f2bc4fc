//! Counters per node, derived from events and from nothing else.

use super::{
    DropReason, Event, EventKind, FailureCause, PacketKind, PcieDirection, Sink, UntilEnd, Verdict, WorkStatus,
};
use crate::base::{Instant, NodeId, Octets};
use crate::wire::WireError;

/// Declares the counters once: a field each, and the list of their names in order.
macro_rules! counters {
    ($($(#[doc = $doc:literal])* $name:ident,)*) => {
        /// What one node counted since the start of the run.
        ///
        /// Names are the columns of the transport and port records where those have one.
        #[derive(Clone, Debug, Default, PartialEq, Eq)]
        pub struct NodeCounters {
            $($(#[doc = $doc])* pub $name: u64,)*
        }

        impl NodeCounters {
            /// Every counter with its name, in the order of declaration.
            pub fn iter(&self) -> impl Iterator<Item = (&'static str, u64)> {
                [$((stringify!($name), self.$name),)*].into_iter()
            }

            /// Every counter with what it counts, if its name does not say it.
            pub fn meanings() -> impl Iterator<Item = (&'static str, &'static str)> {
                [$((stringify!($name), concat!($($doc),*).trim_ascii_start()),)*].into_iter()
            }

            /// Counts what `other` did as well.
            pub fn add(&mut self, other: &Self) {
                $(self.$name += other.$name;)*
            }

            /// The counter called `name`.
            pub fn get(&self, name: &str) -> Option<u64> {
                self.iter().find(|(known, _)| *known == name).map(|(_, value)| value)
            }
        }
    };
}

counters! {
    /// Frames that left the port, PFC included.
    total_packets_tx,
    /// Frames that arrived at the port, PFC included.
    total_packets_rx,
    /// Octets that left the port, model size (Ethernet header and FCS included).
    total_bytes_tx,
    /// Octets that arrived at the port, model size.
    total_bytes_rx,
    /// Frames dropped because their ingress pool was full, and nothing else.
    rx_drops,
    /// Frames dropped for want of room although their class has PFC: lossless violations. In a switch, those that its shared
    /// buffer could not hold are among them.
    rx_lossless_drops,
    /// Packets of queue pairs that left the port: data, ACK, NAK, CNP.
    num_pkts_sent,
    /// Data packets sent.
    num_verb_pkts_sent,
    /// ACK, NAK and CNP packets sent.
    num_non_verb_pkts_sent,
    /// WRITE data packets sent, retransmissions included.
    rdma_write_cnt,
    /// SEND data packets sent, retransmissions included.
    rdma_send_cnt,
    num_acks_sent,
    num_acks_recvd,
    num_nacks_sent,
    num_nacks_recvd,
    num_rnr_naks_sent,
    num_rnr_naks_recvd,
    /// NAKs sent that refuse a packet for good; among `num_nacks_sent`.
    num_error_naks_sent,
    /// NAKs received that put a queue pair in error; among `num_nacks_recvd`.
    num_error_naks_recvd,
    /// WRITE data packets received by a queue pair, whatever became of them.
    num_writes_recvd,
    /// SEND data packets received by a queue pair, whatever became of them.
    num_sends_recvd,
    num_cnp_sent,
    num_cnp_recvd,
    /// CNPs received by a NIC that does not react to them.
    num_cnp_ignored,
    /// CE-marked data packets received by a queue pair, whatever became of them.
    num_ce_recvd,
    /// Marked packets that drew no CNP because the last one was too short a time ago.
    num_cnp_suppressed,
    /// Times that a queue pair became congested.
    num_congestion_episodes,
    /// One per NAK made.
    num_seq_out_of_order,
    num_duplicate,
    /// Work requests posted.
    num_wqe_created,
    /// Work requests completed.
    num_wqe_completed,
    /// Work requests that ended in an error of their own.
    num_wqe_failed,
    /// Those among them with a remote access error.
    num_remote_access_errors,
    /// Those among them with a remote invalid request error.
    num_remote_invalid_requests,
    /// Work requests flushed because their queue pair was in error.
    num_wqe_flushed,
    /// Receives of applications: posted, completed, ended in an error of their own, flushed.
    num_receives_posted,
    num_receives_completed,
    num_receives_failed,
    /// Those among the failed that were too short.
    num_receive_length_errors,
    num_receives_flushed,
    /// WRITEs refused for what they would have written to.
    num_access_refused,
    /// Times that a queue pair waited because its peer had no receive posted.
    num_rnr_waits,
    /// Queue pairs that went into error.
    num_qp_failed,
    /// Rewinds.
    num_rtx,
    /// Expiries of the transport timer.
    num_rto,
    /// Data packets that left the port with a PSN that was given before.
    num_retransmitted_pkts,
    /// The transport's discards: the four below together.
    num_rx_drops,
    num_rx_drops_no_qp_data,
    num_rx_drops_no_qp_ctrl,
    /// Discarded behind a gap, the packet that drew the NAK included.
    num_rx_drops_after_nak,
    num_rx_drops_ghost_ack,
    /// Payloads fetched and thrown away before they got a PSN.
    num_tx_payload_discards,
    /// Frames with a wrong ICRC.
    rx_icrc_encapsulated,
    /// Frames that could not be read, other than for their ICRC.
    rx_malformed,
    /// 802.3x pauses of the whole link, which are ignored.
    rx_global_pause,
    /// PFC frames that name no class.
    rx_pfc_no_class,
    /// Frames for another address, or from a node that is not the queue pair's peer.
    rx_wrong_address,
    /// Acknowledgements of a kind that is not acted on.
    rx_unexpected_syndrome,
    /// Data packets that named memory which is not there.
    rx_remote_access,
    /// Data packets that do not fit the message in progress.
    rx_invalid_request,
    /// Data packets that needed a receive where none was posted.
    rx_receiver_not_ready,
    /// Packets for queue pairs in error.
    rx_qp_failed,
    pfcxoff_tx,
    /// Pauses received, one per class that a frame names: as the rows of a record by class would count them.
    pfcxoff_rx,
    pfcxon_tx,
    /// Resumes received, one per class that a frame names, needed or not.
    pfcxon_rx,
    /// Frames that a switch took in and queued at another port.
    pkts_forwarded,
    /// Frames on which a switch set CE.
    pkts_ecn_marked,
    /// Frames dropped because the buffer that a switch's ports share was full.
    rx_drops_buffer,
    /// Frames dropped because a switch knew no way to their destination.
    rx_drops_no_route,
    /// Picoseconds during which the peer held a class of this node, all classes together; up to the end of the run, once
    /// that is known.
    pfc_time_paused_ps,
    /// Octets that crossed the PCIe link towards the host, overhead included; known at the end of the run.
    pcie_to_host_octets,
    /// The same from the host.
    pcie_from_host_octets,
    /// Doorbells rung, where they are modelled, BlueFlame posts among them.
    num_doorbells,
    num_blue_flame_posts,
    /// Posts whose WQE was too long for BlueFlame.
    num_blue_flame_fallbacks,
    num_wqe_fetches,
    /// Messages whose WQE had been fetched ahead when they had their turn.
    num_wqe_prefetch_hits,
    /// WQEs fetched and thrown away.
    num_wqe_discards,
    /// Octets of doorbells on the PCIe link, BlueFlame posts and overhead included; all of them from the host.
    pcie_doorbell_octets,
    /// Octets of requests for WQEs; all of them towards the host.
    pcie_wqe_request_octets,
    /// Octets of WQEs that were fetched; all of them from the host.
    pcie_wqe_octets,
}

/// Counters of every node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Counters {
    nodes: Vec<NodeCounters>,
    /// By node, as their counters of it.
    paused: Vec<UntilEnd>,
    /// The last completion or delivery so far.
    last_finish: Instant,
}

impl Counters {
    pub fn new(node_count: usize) -> Self {
        Self {
            nodes: vec![NodeCounters::default(); node_count],
            paused: vec![UntilEnd::default(); node_count],
            last_finish: Instant::ZERO,
        }
    }

    /// * Panics: if there is no such node (caller's bug).
    pub fn node(&self, node: NodeId) -> &NodeCounters {
        &self.nodes[node.index()]
    }

    /// The run is over: times count up to its end, though it went on until the last frame had arrived.
    ///
    /// * `end`: the last completion or delivery, or the instant at which an unfinished run was cut off.
    pub fn end(&mut self, end: Instant) {
        for (node, paused) in self.nodes.iter_mut().zip(&self.paused) {
            node.pfc_time_paused_ps = paused.until(end).ps();
        }
    }

    /// In the order of node ids.
    pub fn iter(&self) -> impl Iterator<Item = &NodeCounters> {
        self.nodes.iter()
    }
}

impl Sink for Counters {
    fn record(&mut self, event: &Event) -> std::io::Result<()> {
        self.nodes[event.node.index()].count(&event.kind);
        match event.kind {
            EventKind::MessageCompleted { .. } | EventKind::MessageDelivered { .. } => self.last_finish = event.at,
            EventKind::Resumed { paused, .. } | EventKind::PauseCutOff { paused, .. } => {
                self.paused[event.node.index()].add(paused, event.at, self.last_finish);
            }
            _ => {}
        }
        Ok(())
    }
}

impl NodeCounters {
    fn count(&mut self, kind: &EventKind) {
        match kind {
            EventKind::MessagePosted { .. } => self.num_wqe_created += 1,
            EventKind::MessageCompleted { .. } => self.num_wqe_completed += 1,
            EventKind::MessageFailed { status, .. } => self.count_failed_message(*status),
            EventKind::ReceivePosted { .. } => self.num_receives_posted += 1,
            EventKind::ReceiveCompleted { .. } => self.num_receives_completed += 1,
            EventKind::ReceiveFailed { status, .. } => self.count_failed_receive(*status),
            EventKind::ErrorNakMade { cause, .. } => {
                self.num_error_naks_sent += 1;
                self.num_access_refused += u64::from(*cause == FailureCause::RefusedAccess);
            }
            EventKind::RnrWaitStarted { .. } => self.num_rnr_waits += 1,
            EventKind::QueuePairFailed { cause, .. } => {
                use FailureCause::{NakInvalidRequest, NakRemoteAccess, NakRemoteOperational};
                self.num_qp_failed += 1;
                let by_nak = matches!(cause, NakInvalidRequest | NakRemoteAccess | NakRemoteOperational);
                self.num_error_naks_recvd += u64::from(by_nak);
            }
            EventKind::PayloadDiscarded { .. } => self.num_tx_payload_discards += 1,
            EventKind::NakMade { .. } => self.num_seq_out_of_order += 1,
            EventKind::Rewound { .. } => self.num_rtx += 1,
            EventKind::TransportTimerExpired { .. } => self.num_rto += 1,
            EventKind::Paused { .. } => self.pfcxoff_rx += 1,
            EventKind::ResumeReceived { .. } => self.pfcxon_rx += 1,
            EventKind::Resumed { paused, .. } | EventKind::PauseCutOff { paused, .. } => {
                self.pfc_time_paused_ps += paused.ps();
            }
            EventKind::LosslessViolated { .. } => self.rx_lossless_drops += 1,
            EventKind::PcieCarried { direction: PcieDirection::ToHost, carried, .. } => {
                self.pcie_to_host_octets += carried.get();
            }
            EventKind::PcieCarried { direction: PcieDirection::FromHost, carried, .. } => {
                self.pcie_from_host_octets += carried.get();
            }
            EventKind::DoorbellPosted { carried, .. } => {
                self.num_doorbells += 1;
                self.pcie_doorbell_octets += carried.get();
            }
            EventKind::BlueFlamePosted { .. } => self.num_blue_flame_posts += 1,
            EventKind::BlueFlameFellBack { .. } => self.num_blue_flame_fallbacks += 1,
            EventKind::WqeFetchRequested { carried, .. } => {
                self.num_wqe_fetches += 1;
                self.pcie_wqe_request_octets += carried.get();
            }
            EventKind::WqeFetched { carried, .. } => self.pcie_wqe_octets += carried.get(),
            EventKind::WqeDiscarded { carried, .. } => {
                self.num_wqe_discards += 1;
                self.pcie_wqe_octets += carried.get();
            }
            EventKind::WqePrefetchHit { .. } => self.num_wqe_prefetch_hits += 1,
            EventKind::CongestionSeen { .. } => self.num_ce_recvd += 1,
            EventKind::CnpSuppressed { .. } => self.num_cnp_suppressed += 1,
            EventKind::CnpIgnored { .. } => self.num_cnp_ignored += 1,
            EventKind::EpisodeStarted { .. } => self.num_congestion_episodes += 1,
            EventKind::CeMarked { .. } => self.pkts_ecn_marked += 1,
            EventKind::FrameSent { packet, wire_len, transmission, .. } => {
                self.count_sent(packet.kind, *wire_len, *transmission);
            }
            EventKind::FrameReceived { packet, wire_len, verdict, .. } => {
                self.count_received(packet.kind, *wire_len, *verdict);
            }
            _ => {}
        }
    }

    fn count_failed_message(&mut self, status: WorkStatus) {
        if status == WorkStatus::WorkRequestFlushed {
            self.num_wqe_flushed += 1;
            return;
        }
        self.num_wqe_failed += 1;
        self.num_remote_access_errors += u64::from(status == WorkStatus::RemoteAccessError);
        self.num_remote_invalid_requests += u64::from(status == WorkStatus::RemoteInvalidRequestError);
    }

    fn count_failed_receive(&mut self, status: WorkStatus) {
        if status == WorkStatus::WorkRequestFlushed {
            self.num_receives_flushed += 1;
            return;
        }
        self.num_receives_failed += 1;
        self.num_receive_length_errors += u64::from(status == WorkStatus::LocalLengthError);
    }

    fn count_sent(&mut self, kind: PacketKind, wire_len: Octets, transmission: u32) {
        self.total_packets_tx += 1;
        self.total_bytes_tx += wire_len.get();
        // What a switch passes on are packets of somebody else's queue pairs. A NIC forwards nothing.
        if self.pkts_forwarded > 0 && !kind.is_pfc() {
            return;
        }
        match kind {
            PacketKind::Write => self.rdma_write_cnt += 1,
            PacketKind::Send => self.rdma_send_cnt += 1,
            PacketKind::Ack => self.num_acks_sent += 1,
            PacketKind::Nak => self.num_nacks_sent += 1,
            PacketKind::RnrNak => self.num_rnr_naks_sent += 1,
            PacketKind::Cnp => self.num_cnp_sent += 1,
            PacketKind::Xoff => self.pfcxoff_tx += 1,
            PacketKind::Xon => self.pfcxon_tx += 1,
            PacketKind::Other => {}
        }
        if kind.is_data() {
            self.num_verb_pkts_sent += 1;
            self.num_retransmitted_pkts += u64::from(transmission > 1);
        }
        if kind.is_answer() || kind == PacketKind::Cnp {
            self.num_non_verb_pkts_sent += 1;
        }
        self.num_pkts_sent = self.num_verb_pkts_sent + self.num_non_verb_pkts_sent;
    }

    fn count_received(&mut self, kind: PacketKind, wire_len: Octets, verdict: Verdict) {
        self.total_packets_rx += 1;
        self.total_bytes_rx += wire_len.get();
        if let Verdict::Dropped(reason) = verdict {
            self.count_dropped(reason);
        }
        if verdict == Verdict::Duplicate {
            self.num_duplicate += 1;
        }
        if verdict == Verdict::Forwarded {
            self.pkts_forwarded += 1;
        }
        // Frames that never reached their queue pair are not counted as its packets.
        let reached = !matches!(
            verdict,
            Verdict::Forwarded
                | Verdict::Dropped(
                    DropReason::PoolFull
                        | DropReason::SwitchBufferFull
                        | DropReason::NoRoute
                        | DropReason::NoQueuePairData
                        | DropReason::NoQueuePairControl
                        | DropReason::WrongAddress
                        | DropReason::Malformed(_)
                )
        );
        if !reached {
            return;
        }
        match kind {
            PacketKind::Write => self.num_writes_recvd += 1,
            PacketKind::Send => self.num_sends_recvd += 1,
            PacketKind::Ack => self.num_acks_recvd += 1,
            PacketKind::Nak => self.num_nacks_recvd += 1,
            PacketKind::RnrNak => self.num_rnr_naks_recvd += 1,
            PacketKind::Cnp => self.num_cnp_recvd += 1,
            // Counted by the class, as what they say is obeyed.
            PacketKind::Xoff | PacketKind::Xon | PacketKind::Other => {}
        }
    }

    fn count_dropped(&mut self, reason: DropReason) {
        match reason {
            DropReason::PoolFull => self.rx_drops += 1,
            DropReason::SwitchBufferFull => self.rx_drops_buffer += 1,
            DropReason::NoRoute => self.rx_drops_no_route += 1,
            DropReason::NoQueuePairData => self.num_rx_drops_no_qp_data += 1,
            DropReason::NoQueuePairControl => self.num_rx_drops_no_qp_ctrl += 1,
            DropReason::AfterNak => self.num_rx_drops_after_nak += 1,
            DropReason::GhostAck => self.num_rx_drops_ghost_ack += 1,
            DropReason::RemoteAccess => self.rx_remote_access += 1,
            DropReason::ReceiverNotReady => self.rx_receiver_not_ready += 1,
            DropReason::QueuePairFailed => self.rx_qp_failed += 1,
            DropReason::UnexpectedSyndrome => self.rx_unexpected_syndrome += 1,
            DropReason::InvalidRequest => self.rx_invalid_request += 1,
            DropReason::WrongAddress => self.rx_wrong_address += 1,
            DropReason::Malformed(WireError::BadIcrc { .. }) => self.rx_icrc_encapsulated += 1,
            DropReason::Malformed(WireError::GlobalPause) => self.rx_global_pause += 1,
            DropReason::PauseOfNoClass => self.rx_pfc_no_class += 1,
            DropReason::Malformed(_) => self.rx_malformed += 1,
        }
        self.num_rx_drops = self.num_rx_drops_no_qp_data
            + self.num_rx_drops_no_qp_ctrl
            + self.num_rx_drops_after_nak
            + self.num_rx_drops_ghost_ack;
    }
}
