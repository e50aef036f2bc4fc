//! How software hands work to a NIC: rings in memory that two processes share, and the doorbells that tell of them.
//!
//! ```text
//!  application                      shared memory, 64-octet lines                      device
//!                    0         64        128       192
//!   Producer  ----> | header  | PI      | CI      | slot 0 | slot 1 | .. | slot N-1 |  ----> Consumer
//!    writes slots, PI                                                                   copies slots at RP,
//!    reads CI                                                                           writes CI, reads PI
//! ```
//!
//! | ring | produces | consumes | learns of new entries from | slots |
//! | --- | --- | --- | --- | --- |
//! | send queue | application | device | doorbells: [`Consumer::announce`] | [`Wqe`], 64..=512 |
//! | receive queue | application | device | the shared PI: [`Consumer::refresh`] | [`ReceiveEntry`], 64..=512 |
//! | completion queue | device | application | the shared PI: [`Consumer::poll`] | [`Cqe`], 64 |
//! | doorbell page | application | device | the shared PI: [`Doorbells::poll`] | [`Doorbell`], lines of 64 |
//!
//! Memory is words of eight octets, and every word an atomic: all access is defined, whatever the other side does to it
//! meanwhile. The header, version 1, little-endian like all else:
//!
//! | octet | field |
//! | --- | --- |
//! | 0..4 | `ring` in ASCII |
//! | 4..8 | version, 1 |
//! | 8..12 | N, the number of slots |
//! | 12..16 | octets of a slot |
//! | 64..72 | PI, the producer index, 0..N |
//! | 128..136 | CI, the consumer index, 0..N |
//! | 192.. | the slots |
//!
//! What lies in a slot, octet by octet: [`wqe`], [`receive_entry`], [`cqe`], [`doorbell`].
//!
//! The two sides do not trust each other. Where memory comes from, who may have it and how a sleeper is woken is not this
//! room's business; nor is what a key or an address in an entry is worth.
//!
//! Invariants (specification: Send ring, R1 to R5):
//! * Empty is PI = CI, full is (PI + 1 − CI) & (N − 1) = 0: at most N − 1 entries, and no count beside the indices.
//! * CI moves when an entry completes, signaled or not, never when it is fetched. Until then its slot is not written to.
//! * Each side knows its own index by heart and only writes it; the other's is believed within what the ring allows. Any
//!   other value is a [`RingError`]: never a panic, a hang, or an access outside of the slots.
//! * Nothing allocates on the way from post to poll.
//!
//! Acronyms: WQE work queue element, CQE completion queue entry, PI producer index, CI consumer index, RP read position,
//! SGE scatter/gather element, MMIO memory-mapped I/O.
//!
//! ```
//! use std::sync::atomic::AtomicU64;
//! use rocemu::ring::{Consumer, Geometry, MAX_SLOT, Operation, Payload, Producer, Wqe};
//!
//! let shape = Geometry::new(8, 64)?;
//! let memory: Vec<AtomicU64> = (0..shape.memory_octets() / 8).map(|_| AtomicU64::new(0)).collect();
//! shape.format(&memory)?;
//!
//! let mut send_queue = Producer::new(&memory[..], Geometry::read(&memory)?)?; // the application
//! let payload = Payload::Inline(b"hello".iter().copied().collect());
//! let operation = Operation::Send { immediate: None };
//! let wqe = Wqe { wr_id: 7, operation, signaled: true, solicited: false, payload };
//! let producer_index = send_queue.post(wqe.encode(&mut [0; 64])?)?;
//!
//! let mut device = Consumer::new(&memory[..], shape)?;
//! assert_eq!(device.announce(producer_index), Ok(1));                        // the doorbell
//! let mut buffer = [0; MAX_SLOT];
//! let slot = device.fetch(&mut buffer).expect("one is waiting");
//! assert_eq!(Wqe::decode(slot)?, wqe);
//! device.complete()?;                                                        // acknowledged
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Read first: `tests::rings::the_fourteen_steps_of_the_send_queue_ring`,
//! `tests::rings::no_claimed_index_is_believed_beyond_the_ring`.

mod consumer;
pub mod control;
pub mod cqe;
pub mod doorbell;
mod error;
mod geometry;
mod memory;
mod octets;
mod primitive;
mod producer;
pub mod receive_entry;
mod scatter;
#[cfg(test)]
mod tests;
pub mod wqe;

pub use consumer::Consumer;
pub use cqe::{CompletionOpcode, Cqe, Status};
pub use doorbell::{Doorbell, DoorbellWriter, Doorbells, doorbell_page};
pub use error::{EntryError, Field, RingError, Side};
pub use geometry::{Geometry, LINE, MAX_SLOT};
pub use memory::{copy_in, copy_out};
pub use producer::Producer;
pub use receive_entry::{ReceiveEntry, max_receive_sges};
pub use scatter::{MAX_MESSAGE, ScatterList, Sge};
pub use wqe::{Opcode, Operation, Payload, Wqe, max_inline, max_sges};
