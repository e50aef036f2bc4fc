//! A queue pair: who it talks to, and its two halves.

use super::ack::AckCoalescer;
use super::congestion::Congestion;
use super::passes::Passes;
use super::requester::Requester;
use super::responder::Responder;
use super::send_queue::SendQueue;
use super::{Address, Config, Domain};
use crate::base::{Class, Octets, Psn, Qpn};
use crate::trace::FailureCause;
use crate::wire::{Endpoints, udp_source_port};

/// What both ends agreed on, out of band, before the first packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Connection {
    pub qpn: Qpn,
    pub peer_qpn: Qpn,
    pub peer_address: Address,
    /// PSN of the first data packet we send.
    pub initial_psn: Psn,
    /// PSN of the first data packet the peer sends.
    pub peer_initial_psn: Psn,
    pub data_class: Class,
    pub control_class: Class,
    pub service: Service,
}

/// How a queue pair treats work and requests that go wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Service {
    /// The scenario posts on it, and the receives at the other end as well: nothing goes wrong but by fault, and what no
    /// post explains is dropped without an answer.
    Scripted,
    /// As verbs prescribe it, for applications.
    Verbs {
        /// Whose regions it reaches.
        domain: Domain,
        /// The code of the time that a peer is asked to wait if no receive is posted.
        ///
        /// * Range: 5 bits; [`rnr_timer`](crate::wire::rnr_timer) says how long.
        min_rnr_timer: u8,
        /// So many RNR NAKs in a row are obeyed. Range: 0..=7, and 7 is for ever.
        rnr_retry: u8,
        /// So many expiries of the transport timer are survived with no acknowledgement in between. Range: 0..=7.
        retry: u8,
    },
}

impl Service {
    /// The `rnr_retry` that has no limit.
    pub const RNR_RETRY_FOR_EVER: u8 = 7;

    pub const fn domain(self) -> Domain {
        match self {
            Self::Scripted => Domain::SCENARIO,
            Self::Verbs { domain, .. } => domain,
        }
    }

    pub const fn is_verbs(self) -> bool {
        matches!(self, Self::Verbs { .. })
    }
}

/// A reliable connected queue pair.
#[derive(Clone, Debug)]
pub struct QueuePair {
    pub connection: Connection,
    pub endpoints: Endpoints,
    pub requester: Requester,
    /// Of what it sends, for the record.
    pub passes: Passes,
    pub responder: Responder,
    pub congestion: Congestion,
    /// Payload in host memory of a message not yet complete.
    pub partial_payload: Octets,
    /// Packets accepted whose PCIe write has not ended.
    pub to_host: u32,
    /// Some payload of the message that is being written found no memory.
    pub has_lost_payload: bool,
    /// In error, for good: nothing is sent, everything that comes is dropped.
    pub failed: Option<FailureCause>,
    /// Its receives have ended; what is posted ends at once.
    pub has_flushed: bool,
}

impl QueuePair {
    pub fn new(connection: Connection, own: Address, config: &Config) -> Self {
        let endpoints = Endpoints {
            eth_dst: connection.peer_address.mac,
            eth_src: own.mac,
            ip_src: own.ip,
            ip_dst: connection.peer_address.ip,
            udp_src: udp_source_port(connection.qpn, connection.peer_qpn),
        };
        Self {
            connection,
            endpoints,
            requester: Requester::new(connection.initial_psn, config.mss, SendQueue::new(&config.send_queue)),
            passes: Passes::default(),
            responder: Responder::new(connection.peer_initial_psn, AckCoalescer::new(config.ack.clone())),
            congestion: Congestion::new(config),
            partial_payload: Octets::ZERO,
            to_host: 0,
            has_lost_payload: false,
            failed: None,
            has_flushed: false,
        }
    }
}
