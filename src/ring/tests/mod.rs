//! Ordinary tests, and the models that take their place under loom.

#[cfg(not(rocemu_loom))]
mod entries;
#[cfg(rocemu_loom)]
mod models;
#[cfg(not(rocemu_loom))]
mod rings;
