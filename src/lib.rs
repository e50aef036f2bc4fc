//! rocemu: an RDMA NIC you can run, watch and break, without owning one.
//!
//! A packet-level RoCEv2 NIC emulator on real sockets. NICs run in Linux network namespaces and exchange real frames over
//! veth pairs, while the send queue, the PCIe link, the buffer pools, PFC and loss recovery are emulated exactly, in
//! integer picoseconds on a virtual clock: two runs of a scenario give byte-identical captures and records.
//!
//! Rooms, in the order in which they may import each other; a packet's walk through them is told in [`nic`]:
//!
//! ```text
//! base < { wire, ring } < trace < { port, link, record } < { nic, switch } < workload < scenario
//!      < { engine, netns, memfd } < { io, host } < cli
//! ```

#![warn(clippy::unwrap_used)]

pub mod base;
#[doc(hidden)]
pub mod cli;
pub mod engine;
mod facade;
pub mod host;
pub mod io;
pub mod link;
pub mod memfd;
pub mod netns;
pub mod nic;
pub mod port;
pub mod record;
pub mod ring;
pub mod scenario;
mod serving;
pub mod switch;
pub mod trace;
pub mod wire;
pub mod workload;

pub use facade::{Error, Run, Scenario};
pub use serving::Serving;

/// The README's Rust runs as written.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
