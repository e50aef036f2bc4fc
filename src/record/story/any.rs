//! Events in any order, for properties that hold for all of them.

use bytes::Bytes;
use proptest::prelude::*;

use super::{B, PORT, at, qpn};
use crate::base::{Class, Instant, MessageId, NodeId, Octets, Psn, Qpn, Rate, Span};
use crate::trace::{
    DropReason, Event, EventKind, FailureCause, Headline, LinkFate, PacketKind, Queue, RateCause, Verdict, WorkStatus,
};
use crate::wire::{Verb, WireError};

prop_compose! {
    fn headline()(kind in 0..9_usize, class in 0..8_u8, qpn in 0..=0xff_ffff_u32, psn: u32, payload: u32) -> Headline {
        use PacketKind::{Ack, Cnp, Nak, Other, RnrNak, Send, Write, Xoff, Xon};
        Headline {
            kind: [Send, Write, Ack, Nak, RnrNak, Cnp, Xoff, Xon, Other][kind],
            class: Class::new(class).unwrap(),
            dest_qpn: Qpn::new(qpn).expect("24 bits"),
            psn: Psn::new(psn),
            payload: Octets::new(payload.into()),
        }
    }
}

fn verdict() -> impl Strategy<Value = Verdict> {
    prop_oneof![
        Just(Verdict::Accepted),
        Just(Verdict::Duplicate),
        Just(Verdict::Stale),
        Just(Verdict::Forwarded),
        Just(Verdict::Dropped(DropReason::NoRoute)),
        Just(Verdict::Dropped(DropReason::SwitchBufferFull)),
        Just(Verdict::Dropped(DropReason::PoolFull)),
        Just(Verdict::Dropped(DropReason::Malformed(WireError::BadIcrc { found: 1, computed: 2 }))),
    ]
}

fn kind() -> impl Strategy<Value = EventKind> {
    let (port, class) = (PORT, Class::default());
    prop_oneof![
        (0..3_u32, any::<u32>()).prop_map(|(message, bytes)| EventKind::MessagePosted {
            message: MessageId(message),
            peer: B,
            qpn: qpn(2),
            verb: Verb::Send,
            bytes: Octets::new(bytes.into()),
        }),
        any::<u32>().prop_map(|message| EventKind::MessageCompleted { message: MessageId(message), qpn: qpn(2) }),
        (0..3_u32).prop_map(|message| EventKind::MessageDelivered {
            message: MessageId(message),
            qpn: qpn(2),
            bytes: Octets::ZERO,
        }),
        (any::<u32>(), 0..4_u32).prop_map(|(psn, transmission)| EventKind::PacketNumbered {
            qpn: qpn(2),
            psn: Psn::new(psn),
            transmission,
        }),
        any::<u32>().prop_map(|to| EventKind::Rewound { qpn: qpn(2), to: Psn::new(to), packets: 1 }),
        Just(EventKind::GenerationIdle),
        (headline(), any::<u32>()).prop_map(move |(packet, waiting)| EventKind::FrameQueued {
            port,
            queue: Queue::Class(class),
            packet,
            qpn: Some(qpn(2)),
            waiting,
        }),
        (headline(), any::<u64>()).prop_map(move |(packet, bps)| EventKind::TransmitStarted {
            port,
            queue: Queue::Express,
            packet,
            qpn: packet.kind.is_data().then_some(qpn(2)),
            wire_len: Octets::new(bps),
            rate: Rate::from_bps(bps).unwrap_or(Rate::from_gbps(1)),
        }),
        (headline(), any::<u32>()).prop_map(move |(packet, transmission)| EventKind::FrameSent {
            port,
            packet,
            wire_len: packet.payload,
            transmission,
            fate: LinkFate::Carried,
            effects: Vec::new(),
            frame: Bytes::from_static(b"never written"),
        }),
        (headline(), verdict()).prop_map(move |(packet, verdict)| EventKind::FrameReceived {
            port,
            packet,
            wire_len: packet.payload,
            occupancy: packet.payload,
            verdict,
            frame: Bytes::new(),
        }),
        any::<u32>().prop_map(move |n| EventKind::QueueDepthChanged {
            port,
            class,
            depth: Octets::new(n.into()),
            average: f64::from(n) / 3.0,
        }),
        (headline(), any::<u32>()).prop_map(move |(packet, n)| EventKind::CeMarked {
            port,
            packet,
            average: f64::from(n) / 3.0,
            probability: 1.0 / f64::from(n),
        }),
        congestion(),
        failures(),
        costs(),
        pauses(),
        (any::<u32>(), any::<u32>()).prop_map(|(psn, payload)| EventKind::PayloadWritten {
            qpn: qpn(2),
            psn: Psn::new(psn),
            payload: Octets::new(payload.into()),
        }),
        any::<u32>().prop_map(move |n| EventKind::IngressReleased {
            port,
            class,
            octets: Octets::new(n.into()),
            occupancy: Octets::ZERO,
        }),
        (any::<u16>(), any::<u64>()).prop_map(move |(quanta, ps)| EventKind::Paused {
            port,
            class,
            quanta,
            duration: Span::from_ps(ps),
        }),
    ]
}

fn failures() -> impl Strategy<Value = EventKind> {
    let (qpn, psn) = (qpn(2), Psn::new(0));
    let statuses = vec![WorkStatus::RemoteAccessError, WorkStatus::WorkRequestFlushed];
    prop_oneof![
        (0..3_u32, prop::sample::select(statuses)).prop_map(move |(message, status)| EventKind::MessageFailed {
            message: MessageId(message),
            qpn,
            status
        }),
        Just(EventKind::QueuePairFailed { qpn, cause: FailureCause::PeerGone }),
        any::<u64>().prop_map(move |ps| EventKind::RnrWaitStarted {
            qpn,
            psn,
            until: Instant::from_ps(ps),
            attempt: 1
        }),
        any::<u64>().prop_map(move |receive| EventKind::ReceiveFailed {
            qpn,
            receive,
            status: WorkStatus::LocalLengthError
        }),
    ]
}

fn costs() -> impl Strategy<Value = EventKind> {
    let (qpn, wqe) = (qpn(2), Octets::new(64));
    (0..9_usize, 0..3_u32, any::<u32>()).prop_map(move |(what, message, octets)| {
        let (message, carried, entries) = (MessageId(message), Octets::new(octets.into()), octets);
        match what {
            0 => EventKind::DoorbellPosted { qpn, entries, carried },
            1 => EventKind::DoorbellHeard { qpn, entries },
            2 => EventKind::BlueFlamePosted { qpn, wqe },
            3 => EventKind::BlueFlameFellBack { qpn, wqe },
            4 => EventKind::WqeFetchRequested { qpn, message, carried },
            5 => EventKind::WqeFetched { qpn, message, carried },
            6 => EventKind::WqeDiscarded { qpn, carried },
            7 => EventKind::WqePrefetchHit { qpn, message },
            _ => EventKind::SendQueueRewound { qpn, entries },
        }
    })
}

fn congestion() -> impl Strategy<Value = EventKind> {
    use RateCause::{AdditiveIncrease, AdditiveReduction, Cut, FastRecovery, HyperIncrease};
    let qpn = qpn(2);
    let rate = || any::<u64>().prop_map(|bps| Rate::from_bps(bps).unwrap_or(Rate::from_gbps(1)));
    let cause = prop::sample::select(vec![Cut, AdditiveReduction, FastRecovery, AdditiveIncrease, HyperIncrease]);
    prop_oneof![
        Just(EventKind::CongestionSeen { qpn, psn: Psn::new(0) }),
        Just(EventKind::CnpSuppressed { qpn }),
        Just(EventKind::CnpMade { qpn }),
        Just(EventKind::CnpIgnored { qpn }),
        Just(EventKind::EpisodeStarted { qpn }),
        (rate(), rate(), cause).prop_map(move |(current, target, cause)| EventKind::RateChanged {
            qpn,
            current,
            target,
            cause
        }),
        any::<u32>().prop_map(move |ps| EventKind::EpisodeEnded { qpn, lasted: Span::from_ps(ps.into()) }),
    ]
}

fn pauses() -> impl Strategy<Value = EventKind> {
    let (port, occupancy) = (PORT, Octets::ZERO);
    (0..5_u8, 0..8_u8, any::<u32>(), any::<bool>()).prop_map(move |(what, class, ps, by_xon)| {
        let (class, paused) = (Class::new(class).expect("below 8"), Span::from_ps(ps.into()));
        match what {
            0 => EventKind::PauseRequested { port, class, quanta: 1, occupancy, refresh: by_xon },
            1 => EventKind::ResumeRequested { port, class, occupancy },
            2 => EventKind::Resumed { port, class, paused, by_xon },
            3 => EventKind::ResumeReceived { port, class },
            _ => EventKind::PauseCutOff { port, class, paused },
        }
    })
}

/// Events as no run would give them: in any order, with any numbers.
pub fn any_events() -> impl Strategy<Value = Vec<Event>> {
    let event = (any::<u64>(), 0..2_u16, kind()).prop_map(|(ps, node, kind)| at(ps, NodeId(node), kind));
    prop::collection::vec(event, 0..60)
}
