//! What can go wrong for an application.

use std::io;

use crate::ring::{EntryError, RingError};

/// Why a call did not do what it was asked.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The device's socket cannot be opened, or shared memory not be mapped.
    #[error("{action}: {source}")]
    System { action: String, source: io::Error },
    /// The NIC did nothing, and says why.
    #[error("refused: {0}")]
    Refused(String),
    /// The run has ended, or the NIC has given this application up.
    #[error("the device is gone")]
    Gone,
    /// Nothing that is under way, on any node, could ever end the wait.
    #[error("nothing is under way that could end this wait")]
    Stalled,
    /// The NIC said something that is no answer: it speaks another version, or is none.
    #[error("the device does not answer as a device does: {0}")]
    Protocol(String),
    /// [`RingError::Full`] passes: poll completions, and post again.
    #[error(transparent)]
    Ring(#[from] RingError),
    /// The work request does not fit the slot, or no message can be so long.
    #[error(transparent)]
    Entry(#[from] EntryError),
}
