//! Memory that an application and its NIC both work on.

use std::fmt::Debug;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Memory that an application registered, and goes on using while the NIC reads and writes it.
///
/// What is read while the application writes may be old octets or new ones; that is the application's affair.
pub trait SharedMemory: Debug + Send + Sync {
    /// Never shrinks.
    fn len(&self) -> u64;

    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// * Range: `offset` and the length of `into` together are at most [`SharedMemory::len`].
    fn read(&self, offset: u64, into: &mut [u8]);

    /// * Range: as for [`SharedMemory::read`].
    fn write(&self, offset: u64, from: &[u8]);
}

/// Shared memory inside one process.
#[derive(Clone, Debug)]
pub struct LocalMemory(Arc<Mutex<Vec<u8>>>);

impl LocalMemory {
    pub fn new(octets: Vec<u8>) -> Self {
        Self(Arc::new(Mutex::new(octets)))
    }

    pub fn to_vec(&self) -> Vec<u8> {
        self.octets().clone()
    }

    fn octets(&self) -> MutexGuard<'_, Vec<u8>> {
        // Octets have no invariant that a panic elsewhere could have broken.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl SharedMemory for LocalMemory {
    fn len(&self) -> u64 {
        self.octets().len() as u64
    }

    fn read(&self, offset: u64, into: &mut [u8]) {
        into.copy_from_slice(&self.octets()[offset as usize..][..into.len()]);
    }

    fn write(&self, offset: u64, from: &[u8]) {
        self.octets()[offset as usize..][..from.len()].copy_from_slice(from);
    }
}
