//! Rings and entries, each against what the specification says of them.

mod entries;
mod rings;
