//! Joins nodes, links and workload in virtual time.
//!
//! One thread, one order of events: whatever happens next among all nodes, frames in flight and posts, by instant,
//! phase, node and port (timing rule 3). Every frame crosses [`Wires`] when its last bit leaves, and what came out of the
//! far end waits for its virtual arrival.
//!
//! Invariants: no clock, no iteration in an order that could vary; the books balance at the end of every run, or the run
//! fails. Read first: `tests::the_1_mib_write_completes_when_the_specification_says`.

mod applications;
mod audit;
mod devices;
mod injector;
mod moment;
mod run;
mod turns;
mod verdict;
mod wires;
mod wiring;

#[cfg(test)]
mod costs_tests;
#[cfg(test)]
mod loss_tests;
#[cfg(test)]
mod pressure_tests;
#[cfg(test)]
mod switch_tests;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod view_tests;

pub use applications::{Applications, ApplicationsError, MemoryTicket, SharedWords};
pub use audit::{MessageAudit, Mismatch};
pub use run::{Engine, Outcome, Progress, RunError};
pub use verdict::{Judged, Shortcoming, Violation, Violations};
pub use wires::{ForeignFrame, ForeignFrames, Hop, MemoryWires, Wires, WiresError};
