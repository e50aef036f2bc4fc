//! Joins nodes, links and workload in virtual time.

mod wires;

pub use wires::{ForeignFrame, ForeignFrames, Hop, MemoryWires, Wires, WiresError};
