//! Opening the AF_PACKET socket of one port. What travels through it is the `io` room's business.

use std::mem::size_of;
use std::os::fd::{AsRawFd, OwnedFd};

use nix::errno::Errno;
use nix::sys::socket::{setsockopt, sockopt};
use nix::{setsockopt_impl, sockopt_impl};
use socket2::{Domain, Socket, Type};

use super::errno_of;

sockopt_impl!(
    /// Frames this socket sends are not shown to it: without this each would be copied once more.
    IgnoreOutgoing,
    SetOnly,
    libc::SOL_PACKET,
    libc::PACKET_IGNORE_OUTGOING,
    bool
);

/// A non-blocking socket that sends and receives whole frames (MAC to end, no FCS) at one interface.
///
/// It also gets frames to foreign MACs without being promiscuous: packet sockets look before the MAC filter does, and
/// a veth has none in hardware (`tests/beliefs.rs::a_frame_to_a_foreign_mac_arrives`).
///
/// * Units: `receive_buffer` in octets as the kernel counts them, about twice what the frames hold.
/// * Errors: as the kernel gives them. A refused receive buffer is no error: lockstep needs little of it, and lost
///   frames are noticed.
pub(super) fn open(interface: u32, receive_buffer: usize) -> Result<OwnedFd, Errno> {
    // Protocol 0 hears nothing. ETH_P_ALL here would hear every interface of the namespace until bound, and binding
    // would then wait for an RCU grace period (some ms).
    let socket = Socket::new(Domain::PACKET, Type::RAW.nonblocking().cloexec(), None).map_err(errno_of)?;
    setsockopt(&socket, IgnoreOutgoing, &true)?;
    // The first needs CAP_NET_ADMIN of the machine, the second stops at net.core.rmem_max.
    let _ = setsockopt(&socket, sockopt::RcvBufForce, &receive_buffer)
        .or_else(|_| setsockopt(&socket, sockopt::RcvBuf, &receive_buffer));
    let address = libc::sockaddr_ll {
        sll_family: libc::AF_PACKET as u16,
        sll_protocol: (libc::ETH_P_ALL as u16).to_be(),
        sll_ifindex: interface.cast_signed(),
        sll_hatype: 0,
        sll_pkttype: 0,
        sll_halen: 0,
        sll_addr: [0; 8],
    };
    // SAFETY: `address` is a whole sockaddr_ll that outlives the call, and its size is the one given.
    let bound = unsafe {
        libc::bind(socket.as_raw_fd(), (&raw const address).cast(), size_of::<libc::sockaddr_ll>() as libc::socklen_t)
    };
    Errno::result(bound)?;
    Ok(socket.into())
}
