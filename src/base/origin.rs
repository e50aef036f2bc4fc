//! Which data packet a frame is.

use super::MessageId;

/// What the NIC that sends a data packet knows of it and the packet itself does not say. It stays with the frame, as the
/// model's size does, all the way to the other NIC, so that a fault on the last link of a way can mean what it says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Origin {
    pub message: MessageId,
    /// Of the packet in its message, from 0.
    pub index: u32,
    /// Which transmission of its PSN this is, from 1.
    pub transmission: u32,
    /// Which pass over its message it belongs to, from 1. Every jump of the queue pair's PSNs begins another, so what is
    /// sent for the first time after a rewind belongs to the second.
    ///
    /// * Source: Lumina (SIGCOMM 2023), the iteration number of its event injector.
    pub iteration: u32,
}
