//! What any Ethernet port has: pools, PFC in both directions, class schedulers, egress and ingress queues.

mod config;

pub use config::{EgressConfig, IngressConfig, Scheduling};
