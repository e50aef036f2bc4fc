//! The RDMA NIC.

mod config;

pub use config::{AckConfig, Address, Config, PcieConfig, PcieSide};
