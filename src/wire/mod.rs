//! Bytes and headers: RoCEv2 over IPv4 and PFC frames, parsed and emitted, with a valid ICRC on everything that leaves.
//!
//! ```text
//!  0          14       34      42     54                                                          end
//!  | Ethernet | IPv4   | UDP   | BTH  | RETH | IMMDT | AETH | payload | pad  | ICRC | trailer |
//!  | 14       | 20     | 8     | 12   | 0/16 | 0/4   | 0/4  | N       | 0..3 | 4    | 0..     |
//!                                      \___ as the opcode says ___/
//!             |<------------ covered by the ICRC, TOS, TTL, both checksums masked --->|
//! ```
//!
//! This room knows what a frame says, not what to do about it: whether a queue pair exists, a PSN is expected or a pause
//! is obeyed is for the NIC to decide. There is no FCS in a frame (a veth carries none), no VLAN tag, no IPv6, and of
//! InfiniBand's opcodes only SEND, WRITE, ACKNOWLEDGE and CNP.
//!
//! Invariants:
//! * No input makes it panic. Whatever it refuses, it refuses with a [`WireError`] of its own.
//! * What parses is emitted again octet for octet: nothing a frame said is lost, reserved bits and trailer included.
//! * What is emitted has a correct IPv4 checksum and a correct ICRC; a switch may change DSCP, ECN and TTL under it.
//! * Two sizes never mix: the number of octets in the frame is what a socket carries, `wire_len` is what the model
//!   charges, times and counts.
//!
//! Acronyms: BTH base transport header, RETH RDMA extended transport header, IMMDT immediate data, AETH acknowledge
//! extended transport header, ICRC invariant CRC, CNP congestion notification packet, PSN packet sequence number,
//! MSN message sequence number, PFC priority flow control.
//!
//! Read first: `tests/wire_frames.rs::every_sample_frame_has_its_verdict`,
//! `icrc::tests::a_captured_connectx_4_cnp_carries_the_crc_we_compute`.

mod aeth;
mod bth;
mod build;
mod error;
mod ethernet;
mod flow;
mod icrc;
mod ip;
mod mark;
mod opcode;
mod packet;
mod peek;
mod pfc;
mod reth;
mod size;
mod text;

pub use aeth::{Aeth, NakCode, Syndrome, rnr_timer};
pub use bth::Bth;
pub use build::Segment;
pub use error::WireError;
pub use ethernet::MacAddr;
pub use flow::{Endpoints, ROCE_PORT, udp_source_port};
pub use icrc::{icrc, verify_icrc};
pub use ip::Ecn;
pub use mark::{set_ce, set_dscp, set_ecn};
pub use opcode::{Opcode, Verb};
pub use packet::{IcrcCheck, Packet, PacketKind, RocePacket};
pub use peek::Peek;
pub use pfc::PfcFrame;
pub use reth::Reth;
pub use size::{ACK_WIRE_LEN, CNP_WIRE_LEN, DATA_OVERHEAD, FRAMING, PFC_WIRE_LEN, buffer_charge, model_len};
