//! The vocabulary of events.

use bytes::Bytes;
use serde::Serialize;

use super::{FailureCause, LinkFate, RuleEffect, WorkStatus};
use crate::base::{Class, Instant, MessageId, NodeId, Octets, PortId, Psn, Qpn, Rate, RuleId, Span};
use crate::wire::{self, Packet, Verb, WireError};

/// One thing that happened, at one node.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Event {
    #[serde(rename = "t_ps")]
    pub at: Instant,
    pub node: NodeId,
    #[serde(flatten)]
    pub kind: EventKind,
}

/// What happened. Fields are what a reader of the event log needs to follow the story without a second source.
#[derive(Clone, Debug, PartialEq, Serialize, strum::IntoStaticStr, strum::VariantNames)]
#[serde(tag = "event", rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum EventKind {
    // The host and its messages.
    /// A work request was posted.
    MessagePosted { message: MessageId, peer: NodeId, qpn: Qpn, verb: Verb, bytes: Octets },
    /// The message became the one its queue pair works on.
    MessageStarted { message: MessageId, qpn: Qpn, first_psn: Psn, packets: u32 },
    /// The receiving host has all of it: the PCIe write of its last packet has ended.
    MessageDelivered { message: MessageId, qpn: Qpn, bytes: Octets },
    /// The sending host was told: the ACK of its last PSN has arrived.
    MessageCompleted { message: MessageId, qpn: Qpn },

    // Packet generation.
    /// Generation will run at `runs_at`, 80 ns from now.
    GenerationScheduled {
        #[serde(rename = "runs_at_ps")]
        runs_at: Instant,
    },
    /// The segment at the head does not fit the egress pool of `class`; nobody's next segment is taken until it drains.
    GenerationStopped { class: Class, qpn: Qpn, occupancy: Octets, needed: Octets },
    /// The read request does not fit the PCIe transmit buffer.
    GenerationBlockedByPcie { qpn: Qpn },
    /// The ready queue is empty.
    GenerationIdle,
    /// A segment was taken from the ready queue and its frame reserved; `occupancy` includes it.
    SegmentReserved { qpn: Qpn, psn: Psn, payload: Octets, class: Class, occupancy: Octets },
    /// The payload of a segment has arrived from the host.
    PayloadFetched { qpn: Qpn, psn: Psn, payload: Octets },
    /// A payload arrived that a rewind or an acknowledgement had made useless.
    PayloadDiscarded { qpn: Qpn, psn: Psn, payload: Octets, class: Class, occupancy: Octets },
    /// A packet got its PSN; `transmission` counts from 1.
    PacketNumbered { qpn: Qpn, psn: Psn, transmission: u32 },

    // Ports.
    /// A frame joined a queue; `waiting` counts it.
    FrameQueued {
        port: PortId,
        #[serde(flatten)]
        queue: Queue,
        #[serde(flatten)]
        packet: Headline,
        /// The queue pair of this node that sends it, if it is data.
        #[serde(skip_serializing_if = "Option::is_none")]
        qpn: Option<Qpn>,
        waiting: u32,
    },
    /// The first bit of a frame went on the line.
    TransmitStarted {
        port: PortId,
        #[serde(flatten)]
        queue: Queue,
        #[serde(flatten)]
        packet: Headline,
        /// The queue pair of this node that sends it, if it is data.
        #[serde(skip_serializing_if = "Option::is_none")]
        qpn: Option<Qpn>,
        wire_len: Octets,
        #[serde(rename = "rate_bps")]
        rate: Rate,
    },
    /// The last bit of a frame left the port.
    FrameSent {
        port: PortId,
        #[serde(flatten)]
        packet: Headline,
        wire_len: Octets,
        /// Which transmission of its PSN this is, from 1; 0 for packets without a PSN of their own.
        transmission: u32,
        #[serde(flatten)]
        fate: LinkFate,
        /// What fault rules did to it, in their order.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        effects: Vec<RuleEffect>,
        #[serde(skip)]
        frame: Bytes,
    },
    /// A fault script put a frame on the link from this node to its peer.
    FrameInjected {
        port: PortId,
        rule: RuleId,
        #[serde(flatten)]
        packet: Headline,
        #[serde(skip)]
        frame: Bytes,
    },
    /// The frame's egress charge was released.
    EgressReleased { class: Class, octets: Octets, occupancy: Octets },
    /// The last bit of a frame arrived; `occupancy` is its ingress pool's after the verdict.
    FrameReceived {
        port: PortId,
        #[serde(flatten)]
        packet: Headline,
        wire_len: Octets,
        occupancy: Octets,
        #[serde(flatten)]
        verdict: Verdict,
        #[serde(skip)]
        frame: Bytes,
    },
    /// A frame was dropped although its class has PFC: what `reason` says was full, the ingress pool or the buffer of the
    /// switch, held `occupancy` and lacked `missing` octets to hold the frame.
    LosslessViolated {
        port: PortId,
        #[serde(flatten)]
        packet: Headline,
        #[serde(flatten)]
        reason: DropReason,
        occupancy: Octets,
        missing: Octets,
    },
    /// The PCIe transmit buffer accepted the write of a received packet; its ingress charge was released.
    HandedToHost { qpn: Qpn, psn: Psn, class: Class, payload: Octets, occupancy: Octets },
    /// The PCIe write of a received packet has ended: its payload is in host memory, if that is still registered.
    PayloadWritten { qpn: Qpn, psn: Psn, payload: Octets },

    // Switches.
    /// A frame joined a class's queue, or its transmission started; `depth` is what waits now, as it is charged, and
    /// `average` what marking goes by.
    QueueDepthChanged {
        port: PortId,
        class: Class,
        #[serde(rename = "depth_octets")]
        depth: Octets,
        #[serde(rename = "average_octets")]
        average: f64,
    },
    /// The switch set CE on a frame whose transmission starts.
    CeMarked {
        port: PortId,
        #[serde(flatten)]
        packet: Headline,
        #[serde(rename = "average_octets")]
        average: f64,
        probability: f64,
    },
    /// A forwarded frame has left the switch: its charge to the port by which it had come was released.
    IngressReleased { port: PortId, class: Class, octets: Octets, occupancy: Octets },

    // Acknowledgement and recovery.
    /// A packet was accepted without an ACK; `held` now wait for one.
    AckHeld { qpn: Qpn, psn: Psn, held: u32 },
    /// An ACK was made.
    AckMade { qpn: Qpn, psn: Psn, msn: u32 },
    /// A gap was seen and a NAK made for the PSN expected.
    NakMade { qpn: Qpn, expected: Psn, got: Psn },
    /// An ACK or NAK retired packets; `outstanding` are left.
    PacketsRetired { qpn: Qpn, up_to: Psn, retired: u32, outstanding: u32 },
    /// An ACK or NAK named a PSN below the window and was ignored.
    StaleAckIgnored { qpn: Qpn, psn: Psn },
    /// The queue pair goes back to `to`; `packets` numbered ones are taken back.
    Rewound { qpn: Qpn, to: Psn, packets: u32 },
    /// The transport timer expired.
    TransportTimerExpired { qpn: Qpn, oldest: Psn },
    /// The transport timer was started or restarted.
    TransportTimerStarted {
        qpn: Qpn,
        #[serde(rename = "expires_at_ps")]
        expires_at: Instant,
    },
    /// The window is empty.
    TransportTimerStopped { qpn: Qpn },

    // Applications. They go by their number in the scenario.
    /// An application opened the device of this node.
    ApplicationOpened { application: u16 },
    /// It has gone, or was given up.
    ApplicationLeft { application: u16 },
    /// The device heard a doorbell: so many work requests are new in a send queue.
    DoorbellRung { qpn: Qpn, producer_index: u32, entries: u32 },
    /// A doorbell rang for a queue pair that the application does not have: nobody heard it.
    DoorbellUnheard { application: u16, queue_pair: u32 },

    // Queue pairs of applications: receives, and what goes wrong.
    /// The sending host was told that the message was not carried out. Some of it may have arrived, or all of it.
    MessageFailed { message: MessageId, qpn: Qpn, status: WorkStatus },
    /// All of the message has crossed the PCIe link, but the memory for some of it was gone: it will not be delivered.
    DeliveryFailed { message: MessageId, qpn: Qpn },
    /// A receive was posted.
    ReceivePosted { qpn: Qpn, receive: u64 },
    /// The message that took the receive was delivered.
    ReceiveCompleted {
        qpn: Qpn,
        receive: u64,
        verb: Verb,
        bytes: Octets,
        #[serde(skip_serializing_if = "Option::is_none")]
        immediate: Option<u32>,
        solicited: bool,
    },
    /// The receive ended without a message.
    ReceiveFailed { qpn: Qpn, receive: u64, status: WorkStatus },
    /// A packet needs a receive and finds none: it is to be sent again after `wait`.
    RnrNakMade {
        qpn: Qpn,
        psn: Psn,
        #[serde(rename = "wait_ps")]
        wait: Span,
    },
    /// A packet was refused for good, and a NAK made that says so.
    ErrorNakMade { qpn: Qpn, psn: Psn, cause: FailureCause },
    /// An RNR NAK was obeyed: nothing is sent before `until`. It is the `attempt`-th in a row for this PSN.
    RnrWaitStarted {
        qpn: Qpn,
        psn: Psn,
        #[serde(rename = "until_ps")]
        until: Instant,
        attempt: u32,
    },
    /// The queue pair may send again: the time is over, or an acknowledgement came.
    RnrWaitEnded { qpn: Qpn, psn: Psn },
    /// The queue pair is in error: it sends nothing more, and what is posted is flushed.
    QueuePairFailed { qpn: Qpn, cause: FailureCause },

    // What doorbells and WQEs cost, where that is modelled.
    /// The host rang, for so many entries more: the doorbell, and with it the WQE of a BlueFlame post, entered the PCIe
    /// link. `carried` is what it has there, overhead included.
    DoorbellPosted { qpn: Qpn, entries: u32, carried: Octets },
    /// The doorbell has arrived: so many entries are news to the NIC.
    DoorbellHeard { qpn: Qpn, entries: u32 },
    /// The WQE of the newest entry travels with the doorbell: it will not be fetched.
    BlueFlamePosted {
        qpn: Qpn,
        #[serde(rename = "wqe_octets")]
        wqe: Octets,
    },
    /// A WQE is longer than BlueFlameMax: its post becomes a plain one.
    BlueFlameFellBack {
        qpn: Qpn,
        #[serde(rename = "wqe_octets")]
        wqe: Octets,
    },
    /// The read request for a WQE entered the PCIe link.
    WqeFetchRequested { qpn: Qpn, message: MessageId, carried: Octets },
    /// A WQE has arrived from the host: the message has an entry in the NIC.
    WqeFetched { qpn: Qpn, message: MessageId, carried: Octets },
    /// A WQE arrived that a rewind or an acknowledgement had made useless.
    WqeDiscarded { qpn: Qpn, carried: Octets },
    /// The message has its turn, and its WQE had been fetched ahead.
    WqePrefetchHit { qpn: Qpn, message: MessageId },
    /// The read position went back over so many entries, to the oldest; all are fetched again.
    SendQueueRewound { qpn: Qpn, entries: u32 },

    // Congestion.
    /// A data packet that a switch had marked with CE reached its queue pair.
    CongestionSeen { qpn: Qpn, psn: Psn },
    /// A marked packet drew no CNP: the last one of its queue pair was too short a time ago.
    CnpSuppressed { qpn: Qpn },
    /// A CNP was made for the queue pair's peer.
    CnpMade { qpn: Qpn },
    /// A CNP arrived, and this NIC does not react to CNPs.
    CnpIgnored { qpn: Qpn },
    /// A CNP arrived for a queue pair that was not congested: from now on a controller has its rate.
    EpisodeStarted { qpn: Qpn },
    /// The current rate or the target of a queue pair moved.
    RateChanged {
        qpn: Qpn,
        #[serde(rename = "current_bps")]
        current: Rate,
        #[serde(rename = "target_bps")]
        target: Rate,
        cause: RateCause,
    },
    /// The queue pair is back at the line rate.
    EpisodeEnded {
        qpn: Qpn,
        #[serde(rename = "lasted_ps")]
        lasted: Span,
    },

    // PFC.
    /// An XOFF was queued for the class; `refresh` says whether it repeats one.
    PauseRequested { port: PortId, class: Class, quanta: u16, occupancy: Octets, refresh: bool },
    /// An XON was queued for the class.
    ResumeRequested { port: PortId, class: Class, occupancy: Octets },
    /// The peer paused the class.
    Paused {
        port: PortId,
        class: Class,
        quanta: u16,
        #[serde(rename = "duration_ps")]
        duration: Span,
    },
    /// The class may send again.
    Resumed {
        port: PortId,
        class: Class,
        #[serde(rename = "paused_ps")]
        paused: Span,
        by_xon: bool,
    },
    /// The peer said that the class may send: a quanta of 0, whether or not it was paused.
    ResumeReceived { port: PortId, class: Class },

    // The end of a run: what only the node itself can add up.
    /// The run ended while the peer paused the class; so far it was for so long.
    PauseCutOff {
        port: PortId,
        class: Class,
        #[serde(rename = "paused_ps")]
        paused: Span,
    },
    /// What crossed the PCIe link in one direction, overhead included, and how full the buffers at its ends became.
    PcieCarried {
        direction: PcieDirection,
        carried: Octets,
        #[serde(rename = "rate_bps")]
        rate: Rate,
        /// Headers and data of the sending end's buffer. The NIC's is a limit, the host's only counts.
        tx_header_peak: Octets,
        tx_data_peak: Octets,
        /// The receiving end's buffer frees a transfer in the instant it arrives, so this is its largest.
        rx_header_peak: Octets,
        rx_data_peak: Octets,
    },
}

/// One of the two directions of the link between a NIC and its host.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum PcieDirection {
    /// Read requests and received data.
    ToHost,
    /// Payload to be sent; where they are modelled, doorbells and WQEs.
    FromHost,
}

impl EventKind {
    /// Its name, as in the event log.
    pub fn name(&self) -> &'static str {
        self.into()
    }

    /// Every name there is.
    pub const NAMES: &'static [&'static str] = <Self as strum::VariantNames>::VARIANTS;
}

/// What kind of packet a frame holds, as far as the emulator treats kinds apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum PacketKind {
    Send,
    Write,
    Ack,
    Nak,
    RnrNak,
    Cnp,
    Xoff,
    Xon,
    /// Not a packet that this emulator understands.
    Other,
}

impl PacketKind {
    pub const fn is_data(self) -> bool {
        matches!(self, Self::Send | Self::Write)
    }

    /// An acknowledgement of any kind.
    pub const fn is_answer(self) -> bool {
        matches!(self, Self::Ack | Self::Nak | Self::RnrNak)
    }

    pub const fn is_pfc(self) -> bool {
        matches!(self, Self::Xoff | Self::Xon)
    }

    /// As protocol people write it.
    pub const fn text(self) -> &'static str {
        match self {
            Self::Send => "SEND",
            Self::Write => "WRITE",
            Self::Ack => "ACK",
            Self::Nak => "NAK",
            Self::RnrNak => "RNR NAK",
            Self::Cnp => "CNP",
            Self::Xoff => "XOFF",
            Self::Xon => "XON",
            Self::Other => "frame",
        }
    }
}

/// The few facts by which a person recognises a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Headline {
    #[serde(rename = "packet")]
    pub kind: PacketKind,
    /// Traffic class of the packet; for PFC the class it speaks of.
    pub class: Class,
    /// Destination queue pair; 0 where there is none.
    pub dest_qpn: Qpn,
    pub psn: Psn,
    pub payload: Octets,
}

impl Headline {
    /// Of a frame that cannot be read.
    pub const UNREADABLE: Self = Self {
        kind: PacketKind::Other,
        class: Class::DATA,
        dest_qpn: Qpn::NONE,
        psn: Psn::new(0),
        payload: Octets::ZERO,
    };

    pub fn of(packet: &Packet) -> Self {
        match packet {
            Packet::Roce(roce) => Self {
                kind: match roce.kind() {
                    wire::PacketKind::Data(Verb::Send) => PacketKind::Send,
                    wire::PacketKind::Data(Verb::Write) => PacketKind::Write,
                    wire::PacketKind::Ack => PacketKind::Ack,
                    wire::PacketKind::Nak(_) => PacketKind::Nak,
                    wire::PacketKind::RnrNak(_) => PacketKind::RnrNak,
                    wire::PacketKind::Cnp => PacketKind::Cnp,
                    wire::PacketKind::Reserved => PacketKind::Other,
                },
                class: roce.class(),
                dest_qpn: roce.bth.dest_qpn,
                psn: roce.bth.psn,
                payload: Octets::new(roce.payload.len() as u64),
            },
            // A frame may name several classes: it is shown as what it says of the lowest, and events tell of each.
            Packet::Pfc(pfc) => match pfc.classes().next() {
                Some((class, 0)) => Self { kind: PacketKind::Xon, class, ..Self::UNREADABLE },
                Some((class, _)) => Self { kind: PacketKind::Xoff, class, ..Self::UNREADABLE },
                None => Self::UNREADABLE,
            },
        }
    }
}

/// What moved the rate of a queue pair.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum RateCause {
    /// Congestion: a share of the current rate was taken.
    Cut,
    /// Congestion late in a recovery: target and current rate went down by a step.
    AdditiveReduction,
    /// Half the way back to the target.
    FastRecovery,
    /// The target went up by a step, the current rate half the way to it.
    AdditiveIncrease,
    /// The same in larger steps.
    HyperIncrease,
}

/// Where a frame waits at a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "queue", content = "queue_class", rename_all = "snake_case")]
pub enum Queue {
    /// PFC and CNP: ahead of every class, never paused.
    Express,
    Class(Class),
}

/// What a node does with a frame that has arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "verdict", rename_all = "snake_case")]
pub enum Verdict {
    /// A data packet with the PSN expected; it will be written to the host.
    Accepted,
    /// A data packet received before; it may draw an ACK, and is not written again.
    Duplicate,
    /// ACK, NAK, CNP or PFC: it did its work.
    Processed,
    /// It had no effect on the sender's window: its news was old.
    Stale,
    /// A switch took it in and queued it at the port that leads to its destination.
    Forwarded,
    Dropped(DropReason),
}

/// Why a frame was dropped by the node that received it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "reason", content = "error", rename_all = "snake_case")]
pub enum DropReason {
    /// The ingress pool of its class could not hold it; in a switch, the share of its port and class.
    PoolFull,
    /// The buffer that a switch's ports share could not hold it.
    SwitchBufferFull,
    /// The switch knows no way to its destination.
    NoRoute,
    /// A data packet for a queue pair that does not exist.
    NoQueuePairData,
    /// An ACK, NAK or CNP for a queue pair that does not exist.
    NoQueuePairControl,
    /// Behind a gap: every packet from the one that drew the NAK until the one expected.
    AfterNak,
    /// An ACK or NAK for a PSN never sent.
    GhostAck,
    /// A WRITE outside any registered memory, or a SEND without a receive to hold it.
    RemoteAccess,
    /// A packet that cannot follow the one before it: a middle without a first, a first inside a message, a length
    /// that its RETH does not allow.
    InvalidRequest,
    /// The application has not posted the receive that the packet needs.
    ReceiverNotReady,
    /// For a queue pair in error.
    QueuePairFailed,
    /// An acknowledgement of a kind that this NIC does not act on.
    UnexpectedSyndrome,
    /// A PFC frame that names no class: nothing to do.
    PauseOfNoClass,
    /// For another Ethernet or IP address.
    WrongAddress,
    /// Not a frame this NIC can read; the reason is the parser's.
    Malformed(#[serde(serialize_with = "as_text")] WireError),
}

impl DropReason {
    /// The reason in a few words, for people.
    pub fn text(self) -> String {
        match self {
            Self::PoolFull => "ingress pool full".into(),
            Self::SwitchBufferFull => "switch buffer full".into(),
            Self::NoRoute => "no route".into(),
            Self::NoQueuePairData => "data for an unknown queue pair".into(),
            Self::NoQueuePairControl => "control packet for an unknown queue pair".into(),
            Self::AfterNak => "after NAK".into(),
            Self::GhostAck => "acknowledges a PSN never sent".into(),
            Self::InvalidRequest => "out of order in its message".into(),
            Self::RemoteAccess => "outside registered memory".into(),
            Self::ReceiverNotReady => "receiver not ready".into(),
            Self::QueuePairFailed => "queue pair in error".into(),
            Self::UnexpectedSyndrome => "acknowledgement of an unexpected kind".into(),
            Self::PauseOfNoClass => "PFC frame that names no class".into(),
            Self::WrongAddress => "addressed to another node".into(),
            Self::Malformed(WireError::BadIcrc { .. }) => "bad ICRC".into(),
            Self::Malformed(error) => error.to_string(),
        }
    }
}

fn as_text<S: serde::Serializer>(error: &WireError, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(error)
}
