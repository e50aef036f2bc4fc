//! Memory that two processes share: an anonymous file, sealed, and mapped as words.
//!
//! The NIC's side makes the memory and hands its descriptor over; the application's side maps it. The file is sealed against
//! shrinking and growing before anybody else sees it: a mapping can never lose its pages, so no access to it can fault.
//!
//! Not here: what lies in the memory (`ring`), and how the descriptor gets to the other process (`io`, `host`). Read first:
//! `tests::what_one_mapping_writes_the_other_reads`, `tests::memory_that_could_shrink_is_refused`.

use std::io;
use std::num::NonZeroUsize;
use std::os::fd::{AsFd, OwnedFd};
use std::ptr::NonNull;
use std::slice;
use std::sync::atomic::AtomicU64;

use nix::errno::Errno;
use nix::fcntl::{FcntlArg, SealFlag, fcntl};
use nix::sys::memfd::{MFdFlags, memfd_create};
use nix::sys::mman::{MapFlags, ProtFlags, mmap, munmap};
use nix::unistd::ftruncate;

const WORD: usize = size_of::<AtomicU64>();

/// A mapping of a sealed file, as words that both sides may read and write at any time.
#[derive(Debug)]
pub struct SharedMemory {
    start: NonNull<AtomicU64>,
    words: usize,
}

// SAFETY: the mapping belongs to the process, not to a thread, and is only ever seen as atomics.
unsafe impl Send for SharedMemory {}
// SAFETY: as above.
unsafe impl Sync for SharedMemory {}

impl SharedMemory {
    /// Makes memory of `octets` octets (rounded up to whole words), all zero, and the descriptor to hand over.
    ///
    /// * Shape: `name` is what /proc shows; it need not be unique.
    /// * Errors: `EINVAL` for no octets; `EMFILE`, `ENOMEM` if the machine has no more to give.
    pub fn create(name: &str, octets: usize) -> io::Result<(Self, OwnedFd)> {
        let octets = octets.checked_next_multiple_of(WORD).ok_or(Errno::ENOMEM)?;
        let file = memfd_create(name, MFdFlags::MFD_CLOEXEC | MFdFlags::MFD_ALLOW_SEALING)?;
        ftruncate(&file, i64::try_from(octets).map_err(|_| Errno::ENOMEM)?)?;
        fcntl(&file, FcntlArg::F_ADD_SEALS(SealFlag::F_SEAL_SHRINK | SealFlag::F_SEAL_GROW | SealFlag::F_SEAL_SEAL))?;
        Ok((Self::map(&file)?, file))
    }

    /// Maps memory that another process has made.
    ///
    /// * Errors: `EINVAL` if it is empty or no whole number of words; `EPERM` if it could still shrink.
    pub fn map(file: impl AsFd) -> io::Result<Self> {
        let file = file.as_fd();
        let seals = fcntl(file, FcntlArg::F_GET_SEALS)?;
        if !SealFlag::from_bits_truncate(seals).contains(SealFlag::F_SEAL_SHRINK) {
            return Err(Errno::EPERM.into());
        }
        // Asked after the seal: from here on it cannot become less.
        let octets = usize::try_from(nix::sys::stat::fstat(file)?.st_size).map_err(|_| Errno::EINVAL)?;
        if !octets.is_multiple_of(WORD) {
            return Err(Errno::EINVAL.into());
        }
        let length = NonZeroUsize::new(octets).ok_or(Errno::EINVAL)?;
        let access = ProtFlags::PROT_READ | ProtFlags::PROT_WRITE;
        // SAFETY: a new mapping, where the kernel likes, overlaps nothing that exists.
        let start = unsafe { mmap(None, length, access, MapFlags::MAP_SHARED, file, 0)? };
        Ok(Self { start: start.cast(), words: octets / WORD })
    }

    pub fn octets(&self) -> usize {
        self.words * WORD
    }
}

impl AsRef<[AtomicU64]> for SharedMemory {
    fn as_ref(&self) -> &[AtomicU64] {
        // SAFETY: the mapping starts at a page, has so many words, lives as long as `self` and cannot lose pages, since the
        // file is sealed against shrinking. Another process may write to it at any time, which atomics allow.
        unsafe { slice::from_raw_parts(self.start.as_ptr(), self.words) }
    }
}

impl Drop for SharedMemory {
    fn drop(&mut self) {
        // SAFETY: the mapping was made with these bounds, and nothing that borrows it is left.
        let unmapped = unsafe { munmap(self.start.cast(), self.octets()) };
        debug_assert_eq!(unmapped, Ok(()));
    }
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::sync::atomic::Ordering;

    use super::*;

    #[test]
    fn what_one_mapping_writes_the_other_reads() {
        let (ours, file) = SharedMemory::create("test", 4_100).unwrap();
        let theirs = SharedMemory::map(&file).unwrap();
        assert_eq!((ours.octets(), theirs.octets()), (4_104, 4_104));
        assert!(theirs.as_ref().iter().all(|word| word.load(Ordering::Relaxed) == 0));
        ours.as_ref()[512].store(7, Ordering::Relaxed);
        drop((ours, file));
        assert_eq!(theirs.as_ref()[512].load(Ordering::Relaxed), 7);
    }

    #[test]
    fn memory_that_could_shrink_is_refused() {
        let file = memfd_create("test", MFdFlags::MFD_ALLOW_SEALING).unwrap();
        ftruncate(&file, 4_096).unwrap();
        assert_eq!(SharedMemory::map(&file).unwrap_err().raw_os_error(), Some(libc::EPERM));
        // A file that takes no seals at all.
        assert!(SharedMemory::map(tempfile::tempfile().unwrap()).is_err());
    }

    #[test]
    fn nobody_can_shrink_it_any_more() {
        let (_ours, file) = SharedMemory::create("test", 4_096).unwrap();
        assert!(File::from(file).set_len(0).is_err());
    }

    #[test]
    fn no_memory_is_no_memory() {
        assert_eq!(SharedMemory::create("test", 0).unwrap_err().raw_os_error(), Some(libc::EINVAL));
        assert!(SharedMemory::create("test", usize::MAX).is_err());
    }
}
