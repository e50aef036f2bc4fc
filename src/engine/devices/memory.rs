//! Memory shared with an application, as rings see it and as the NIC does.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use super::super::applications::SharedWords;
use crate::nic::SharedMemory;
use crate::ring;

/// A part of what an application got.
#[derive(Clone, Debug)]
pub(super) struct Memory {
    words: Arc<dyn SharedWords>,
    first: usize,
    count: usize,
}

impl Memory {
    pub(super) fn new(words: Arc<dyn SharedWords>) -> Self {
        let count = (*words).as_ref().len();
        Self { words, first: 0, count }
    }

    /// The part from one octet on, both multiples of eight.
    ///
    /// * Panics: if it leaves the memory.
    pub(super) fn part(&self, offset: usize, octets: usize) -> Self {
        let (first, count) = (offset / size_of::<u64>(), octets / size_of::<u64>());
        assert!(first + count <= self.count, "a part lies within");
        Self { words: Arc::clone(&self.words), first: self.first + first, count }
    }
}

impl AsRef<[AtomicU64]> for Memory {
    fn as_ref(&self) -> &[AtomicU64] {
        &(*self.words).as_ref()[self.first..][..self.count]
    }
}

impl SharedMemory for Memory {
    fn len(&self) -> u64 {
        (self.count * size_of::<u64>()) as u64
    }

    fn read(&self, offset: u64, into: &mut [u8]) {
        ring::copy_out(self.as_ref(), offset as usize, into);
    }

    fn write(&self, offset: u64, from: &[u8]) {
        ring::copy_in(self.as_ref(), offset as usize, from);
    }
}
