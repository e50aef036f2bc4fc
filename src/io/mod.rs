//! Sockets and clocks.
