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

// Under loom, the rings alone are built, with its atomics: whoever else shares memory has those of the machine.

pub mod base;
#[doc(hidden)]
#[cfg(not(rocemu_loom))]
pub mod cli;
#[cfg(not(rocemu_loom))]
pub mod engine;
#[cfg(not(rocemu_loom))]
mod facade;
#[cfg(not(rocemu_loom))]
pub mod host;
#[cfg(not(rocemu_loom))]
pub mod io;
#[cfg(not(rocemu_loom))]
pub mod link;
#[cfg(not(rocemu_loom))]
pub mod memfd;
#[cfg(not(rocemu_loom))]
pub mod netns;
#[cfg(not(rocemu_loom))]
pub mod nic;
#[cfg(not(rocemu_loom))]
pub mod port;
#[cfg(not(rocemu_loom))]
pub mod record;
pub mod ring;
#[cfg(not(rocemu_loom))]
pub mod scenario;
#[cfg(not(rocemu_loom))]
mod serving;
#[cfg(not(rocemu_loom))]
pub mod switch;
#[cfg(not(rocemu_loom))]
pub mod trace;
#[cfg(not(rocemu_loom))]
pub mod wire;
#[cfg(not(rocemu_loom))]
pub mod workload;

#[cfg(not(rocemu_loom))]
pub use facade::{Error, Run, Scenario};
#[cfg(not(rocemu_loom))]
pub use serving::Serving;

/// The README's Rust runs as written.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
