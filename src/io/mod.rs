//! Sockets, clocks and processes.
//!
//! The one room in which frames leave the program: [`VethWires`] is the engine's [`Wires`](crate::engine::Wires) over
//! AF_PACKET sockets. Namespaces and interfaces are made in `netns`; nothing here looks into a frame.
//!
//! Read first: `tests/wires.rs::frames_of_every_size_come_out_as_they_went_in`,
//! `tests/wires.rs::a_frame_of_somebody_else_is_counted_and_kept_from_the_model`.

mod application_sockets;
mod child;
mod packet_socket;
mod veth_wires;

pub use application_sockets::{ApplicationSockets, Limits};
pub use child::settle_child;
pub use veth_wires::VethWires;
