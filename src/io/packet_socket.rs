//! One AF_PACKET socket: whole frames out, whole frames in, and what the kernel had to drop.

use std::io::{self, ErrorKind};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Duration;

use bytes::{Buf, Bytes};
use nix::errno::Errno;
use nix::getsockopt_impl;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sockopt_impl;
use nix::sys::socket::getsockopt;
use socket2::Socket;

sockopt_impl!(
    /// Frames seen and dropped since this was last read.
    Statistics,
    GetOnly,
    libc::SOL_PACKET,
    libc::PACKET_STATISTICS,
    libc::tpacket_stats
);

/// The kernel copies an Ethernet header by itself and what follows it as one run.
const HEADER_OCTETS: usize = 14;
const PAGE_OCTETS: usize = 4_096;

/// A non-blocking socket bound to one interface.
#[derive(Debug)]
pub(super) struct PacketSocket(Socket);

/// A frame as the socket gave it.
#[derive(Debug)]
pub(super) struct Received {
    /// Cut to what was asked for.
    pub frame: Bytes,
    /// What the frame had before it was cut.
    pub octets: usize,
}

impl PacketSocket {
    pub(super) fn new(socket: OwnedFd) -> Self {
        Self(socket.into())
    }

    /// * Errors: `EMSGSIZE` over MTU + 14 octets, `EINVAL` under 14, `ENXIO` or `ENETDOWN` without an interface.
    pub(super) fn send(&self, frame: &[u8]) -> io::Result<()> {
        loop {
            match self.0.send(frame) {
                Ok(_) => return Ok(()),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// The next frame, its first `octets_max` octets; `None` if there is none yet.
    ///
    /// * Cost: one allocation of `octets_max`, no copy besides the kernel's.
    pub(super) fn receive(&self, octets_max: usize) -> io::Result<Option<Received>> {
        let (mut buffer, skipped) = buffer_for(octets_max);
        let octets = loop {
            // MSG_TRUNC asks for the frame's whole length, whatever of it fits.
            match self.0.recv_with_flags(&mut buffer.spare_capacity_mut()[..octets_max], libc::MSG_TRUNC) {
                Ok(octets) => break octets,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(None),
                Err(error) => return Err(error),
            }
        };
        // SAFETY: the kernel has just written this many octets behind the `skipped` ones, within the capacity.
        unsafe { buffer.set_len(skipped + octets.min(octets_max)) };
        let mut frame = Bytes::from(buffer);
        frame.advance(skipped);
        Ok(Some(Received { frame, octets }))
    }

    /// Waits until a frame or an error is there to be read, at most `timeout`, rounded up to a millisecond.
    pub(super) fn wait(&self, timeout: Duration) -> io::Result<()> {
        let timeout = PollTimeout::try_from(timeout.as_micros().div_ceil(1_000)).unwrap_or(PollTimeout::MAX);
        match poll(&mut [PollFd::new(self.as_fd(), PollFlags::POLLIN)], timeout) {
            Ok(_) | Err(Errno::EINTR) => Ok(()),
            Err(errno) => Err(errno.into()),
        }
    }

    /// Frames that the kernel dropped for want of receive buffer since the last call.
    pub(super) fn take_drops(&self) -> io::Result<u64> {
        Ok(getsockopt(&self.0, Statistics).map(|statistics| u64::from(statistics.tp_drops))?)
    }
}

impl AsFd for PacketSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// Room for `octets`, behind a few that are skipped, at an address that the kernel copies to and from fast.
///
/// It keeps what follows the Ethernet header at the start of a page. On the processors measured, `rep movsb` is twenty
/// times slower (1.2–1.7 µs for 4 KiB) if the destination lies 1 to 15 octets past the source, in pages: at every 256th
/// address that malloc gives when the frame is received, and at another one when it is sent on from there.
///
/// * Source: sockets.md, "Buffer offset matters more than the API".
fn buffer_for(octets: usize) -> (Vec<u8>, usize) {
    let buffer: Vec<u8> = Vec::with_capacity(octets);
    let page_offset = (buffer.as_ptr().addr() + HEADER_OCTETS) % PAGE_OCTETS;
    if (16..=PAGE_OCTETS - 16).contains(&page_offset) || page_offset == 0 {
        return (buffer, 0);
    }
    for skipped in [0, 32] {
        let mut other: Vec<u8> = Vec::with_capacity(octets + 32);
        let page_offset = (other.as_ptr().addr() + skipped + HEADER_OCTETS) % PAGE_OCTETS;
        if (16..=PAGE_OCTETS - 16).contains(&page_offset) {
            other.resize(skipped, 0);
            return (other, skipped);
        }
    }
    // Slow, but right.
    (buffer, 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_buffer_keeps_clear_of_the_slow_offsets() {
        let mut held = Vec::new();
        for round in 0..2_000 {
            let (mut buffer, skipped) = buffer_for(4_154 + round % 7 * 16);
            assert_eq!(buffer.len(), skipped);
            assert!(buffer.capacity() - skipped >= 4_154 + round % 7 * 16);
            let page_offset = (buffer.as_ptr().addr() + skipped + HEADER_OCTETS) % PAGE_OCTETS;
            assert!(!(1..16).contains(&page_offset) && page_offset <= PAGE_OCTETS - 16, "{page_offset}");
            buffer.push(0);
            held.push(buffer);
        }
    }
}
