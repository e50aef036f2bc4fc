//! The one place where atomics come from, so that loom can put its own in their stead (`scripts/loom`).

#[cfg(not(all(test, rocemu_loom)))]
pub(super) use core::sync::atomic::{AtomicU64, Ordering};
#[cfg(all(test, rocemu_loom))]
pub(super) use loom::sync::atomic::{AtomicU64, Ordering};
