//! A queue pair: who it talks to, and its two halves.

use super::ack::AckCoalescer;
use super::congestion::Congestion;
use super::passes::Passes;
use super::requester::Requester;
use super::responder::Responder;
use super::{Address, Config};
use crate::base::{Class, Octets, Psn, Qpn};
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
            requester: Requester::new(connection.initial_psn, config.mss),
            passes: Passes::default(),
            responder: Responder::new(connection.peer_initial_psn, AckCoalescer::new(config.ack.clone())),
            congestion: Congestion::new(config),
            partial_payload: Octets::ZERO,
        }
    }
}
