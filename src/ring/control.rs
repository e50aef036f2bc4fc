//! What an application and the NIC say to each other beside the rings: over a Unix socket of type SOCK_SEQPACKET, one JSON
//! object to a datagram, a reply to every request, in order. Shared memory comes with the reply that speaks of it, as a file
//! descriptor (SCM_RIGHTS) of a memfd that is sealed: it neither shrinks nor grows.
//!
//! # Turns
//!
//! Emulated time stands still while an application has its turn, however long it takes. The turn begins with the answer to
//! [`Request::Open`] or [`Request::Wait`] and ends with the next [`Request::Wait`]. All that an application does in a turn
//! happens in one instant, in the order in which it says it: doorbells are heard whenever a request arrives, before the
//! request. So a run with an application that decides by what it is told, and by nothing else, is as reproducible as one
//! without.
//!
//! ```text
//!   application                                                     NIC
//!      │ open ────────────────────────────────────────────────────► │  at 0 ps, or when the scenario starts it
//!      │ ◄─────────────────────────── opened, and the doorbell page │
//!      │ create_cq, reg_mr, create_qp, connect … ─────────────────► │  time stands still
//!      │ ◄──────────────────────── an answer each, some with memory │
//!      │ wait { cqs, until … } ───────────────────────────────────► │
//!      │                                                            │  emulated time passes
//!      │ ◄───────────────────────────────────────── woken { now_ps }│
//!      │ posts WQEs, rings doorbells: nothing is said               │  time stands still
//!      │ wait ────────────────────────────────────────────────────► │  hears the doorbells, time passes
//! ```
//!
//! A waiting application sleeps in `recv`, or in whatever loop of `poll` or `epoll` it has: its end of the socket is readable
//! when its turn has come. An eventfd would say no more, and its two ends are one file, with one set of flags: an application
//! could make it block, fill it, and hold up the NIC that raises it.
//!
//! Two applications have their turns one after the other; where they wake in the same instant, in the order of their nodes
//! and, at one node, of the scenario.
//!
//! An application that dies in its turn has gone at that instant. One that dies while it waits is noticed soon, at no
//! particular emulated time.
//!
//! # Limits
//!
//! An application has at most 4 GiB of shared memory, in 32,768 pieces that all applications of a run share equally: the
//! doorbell page, a completion queue, the queues of a queue pair and a region are a piece each. It has 4,096 queue pairs and
//! 4,096 completion queues at a time, and 65,536 queue pairs in its life. What goes beyond is refused.

use serde::{Deserialize, Serialize};

/// Of this protocol and of all layouts of this room; both sides must have the same.
pub const VERSION: u32 = 1;
/// Octets of a request or a reply, at most.
pub const MESSAGE_MAX: usize = 8 << 10;
/// Octets that go along with a connection, at most; as many as a reliable connection has in the standard's REQ.
pub const PRIVATE_DATA_MAX: usize = 92;
/// Octets of the name under which two queue pairs meet.
pub const SERVICE_MAX: usize = 64;

/// What an application asks for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "request", rename_all = "snake_case", deny_unknown_fields)]
pub enum Request {
    /// The first one, and only the first. `application` is its name in the scenario.
    Open {
        version: u32,
        application: String,
    },
    /// A completion queue for `entries` CQEs, at least.
    CreateCq {
        entries: u32,
    },
    CreateQp(QueuePairRequest),
    /// So many octets of memory, filled with zeros, which the NIC may read and write.
    RegMr {
        octets: u64,
        remote_write: bool,
    },
    /// Connects to the queue pair, of whichever application and NIC, that asks for the same `service`. Both are told of the
    /// other with [`Event::Connected`], which a [`Request::Wait`] brings; what was posted until then waits.
    Connect {
        qpn: u32,
        service: String,
        private_data: Vec<u8>,
    },
    /// What is posted is flushed, and the peer sees the end of its queue pair: 1 ms later, or on long links in twice the time
    /// that a frame needs to the peer.
    DestroyQp {
        qpn: u32,
    },
    DeregMr {
        lkey: u32,
    },
    /// Only one that no queue pair uses.
    DestroyCq {
        cq: u32,
    },
    /// The doorbells rung so far are heard now.
    Hear {},
    /// Ends the turn until one of the completion queues holds a CQE (at once if one does already), or something is to be
    /// told, or emulated time is `until_ps`. With `solicited_only`, until one holds a CQE with the solicited flag or an error.
    Wait {
        cqs: Vec<u32>,
        solicited_only: bool,
        until_ps: Option<u64>,
    },
}

/// A reliable connected queue pair, to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct QueuePairRequest {
    pub send_cq: u32,
    pub receive_cq: u32,
    /// Shape of the send queue: a power of two each, the octets of a slot within 64..=512.
    pub send_slots: u32,
    pub send_slot_octets: u32,
    /// Shape of the receive queue.
    pub receive_slots: u32,
    pub receive_slot_octets: u32,
    /// How long a sender that found no receive waits: the 5-bit code of the AETH.
    pub min_rnr_timer: u8,
    /// How often a message is tried again after finding no receive, 0..=6; 7: for ever.
    pub rnr_retry: u8,
    /// How often the transport timer may expire with no acknowledgement in between, 0..=7. An RNR NAK is none.
    pub retry: u8,
}

/// What the NIC answers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "reply", rename_all = "snake_case", deny_unknown_fields)]
pub enum Reply {
    /// With the doorbell page. `node` is the NIC's name in the scenario.
    Opened {
        node: String,
        now_ps: u64,
        mss_octets: u32,
    },
    /// With the completion queue.
    CqCreated {
        cq: u32,
    },
    /// With one memory that holds the send queue, from its first octet on, and the receive queue from octet `receive_offset`.
    QpCreated {
        qpn: u32,
        receive_offset: u64,
    },
    /// With the memory. `address` is where the NIC knows it: what goes into scatter lists and to peers.
    MrRegistered {
        lkey: u32,
        rkey: u32,
        address: u64,
    },
    Done,
    Woken {
        now_ps: u64,
        events: Vec<Event>,
    },
    /// Nothing was done. What is the matter, in words.
    Refused {
        reason: String,
    },
}

/// What an application is told without having asked, when it is woken.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case", deny_unknown_fields)]
pub enum Event {
    Connected {
        qpn: u32,
        /// The name of the peer's node in the scenario.
        peer: String,
        peer_qpn: u32,
        private_data: Vec<u8>,
    },
    /// An entry of the send or the receive queue cannot be carried out: its queue pair fails.
    EntryRefused { qpn: u32, wr_id: u64, why: String },
    /// The queue pair is in error; what was posted has been, or will be, flushed. The peer learns of it by a NAK, where
    /// there is one for the cause, and otherwise when this end is destroyed or its retries are used up, as with verbs.
    QpFailed { qpn: u32, cause: String },
    /// A completion queue has overrun; its queue pairs are in error.
    CqOverrun { cq: u32 },
    /// Nothing that is under way could ever end this wait.
    Stalled,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_is_a_flat_object_with_the_name_of_what_is_asked() {
        let wait = Request::Wait { cqs: vec![0, 1], solicited_only: false, until_ps: None };
        let text = r#"{"request":"wait","cqs":[0,1],"solicited_only":false,"until_ps":null}"#;
        assert_eq!(serde_json::to_string(&wait).unwrap(), text);
        assert_eq!(serde_json::from_str::<Request>(text).unwrap(), wait);
        assert_eq!(serde_json::from_str::<Request>(r#"{"request":"hear"}"#).unwrap(), Request::Hear {});
        assert!(serde_json::from_str::<Request>(r#"{"request":"hear","more":1}"#).is_err());
    }
}
