//! What any Ethernet port has: pools, PFC in both directions, ECN marking, class schedulers, egress queues.
//!
//! ```text
//!   reserve ─► Pool ─► Egress ── choose ──► line ─► … ─► Pool ─► PauseSender (Xoff, Xon)
//!                        ▲ Scheduler, paused classes       ▲ admit or drop
//! ```
//!
//! These are parts, not a port: a NIC and a switch join them differently. None of them knows the time; whoever owns
//! them keeps the timers.

mod config;
mod egress;
mod mark;
mod pause;
mod pool;
mod scheduler;

pub use config::{EgressConfig, IngressConfig, PerClass, Scheduling};
pub use egress::Egress;
pub use mark::{MarkConfig, Marker};
pub use pause::{PauseSender, Refresh, pause_time};
pub use pool::{Pool, Pools};
pub use scheduler::Scheduler;
