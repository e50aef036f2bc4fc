//! Bytes and headers.
