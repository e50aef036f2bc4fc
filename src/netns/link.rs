//! The few things asked of rtnetlink: a veth pair across two namespaces, and an interface brought up.

use std::os::fd::{AsRawFd, BorrowedFd};

use netlink_packet_core::{
    NLM_F_ACK, NLM_F_CREATE, NLM_F_EXCL, NLM_F_REQUEST, NetlinkHeader, NetlinkMessage, NetlinkPayload,
};
use netlink_packet_route::RouteNetlinkMessage;
use netlink_packet_route::link::{
    AfSpecInet6, AfSpecUnspec, In6AddrGenMode, InfoData, InfoKind, InfoVeth, LinkAttribute, LinkFlags, LinkInfo,
    LinkMessage,
};
use netlink_sys::{Socket, SocketAddr, protocols::NETLINK_ROUTE};
use nix::errno::Errno;

use super::errno_of;

/// MTU of every veth: a frame may have this many octets behind its 14-octet Ethernet header.
///
/// * Source: wire.md §1.9: an MSS of 9,216 needs 9,276 and the model's largest frame 9,290 octets in all.
pub(super) const MTU: u32 = 9_300;

/// One end of a veth pair to be made: a name in a namespace.
pub(super) struct VethEnd<'a> {
    pub namespace: BorrowedFd<'a>,
    pub name: &'a str,
}

/// A netlink socket in the namespace in which it was opened.
pub(super) struct Netlink(Socket);

impl Netlink {
    /// In the calling thread's present network namespace; stays there when the thread moves on.
    pub(super) fn open() -> Result<Self, Errno> {
        let socket = Socket::new(NETLINK_ROUTE).map_err(errno_of)?;
        socket.connect(&SocketAddr::new(0, 0)).map_err(errno_of)?;
        Ok(Self(socket))
    }

    /// Both ends come up as they are born, each in its own namespace: nothing ever shows up in a third one.
    pub(super) fn create_veth(&self, ends: [VethEnd<'_>; 2]) -> Result<(), Errno> {
        let [mut first, second] = ends.map(|end| {
            let mut message = LinkMessage::default();
            message.attributes.extend([
                LinkAttribute::IfName(end.name.to_owned()),
                LinkAttribute::NetNsFd(end.namespace.as_raw_fd()),
                LinkAttribute::Mtu(MTU),
            ]);
            message
        });
        first.attributes.push(LinkAttribute::LinkInfo(vec![
            LinkInfo::Kind(InfoKind::Veth),
            LinkInfo::Data(InfoData::Veth(InfoVeth::Peer(second))),
        ]));
        self.ask(RouteNetlinkMessage::NewLink(first), NLM_F_CREATE | NLM_F_EXCL)
    }

    /// Without an address of its own an interface neither solicits routers nor reports multicast groups.
    pub(super) fn no_ipv6_address(&self, index: u32) -> Result<(), Errno> {
        let mut message = LinkMessage::default();
        message.header.index = index;
        message.attributes.push(LinkAttribute::AfSpecUnspec(vec![AfSpecUnspec::Inet6(vec![
            AfSpecInet6::AddrGenMode(In6AddrGenMode::None),
        ])]));
        self.ask(RouteNetlinkMessage::SetLink(message), 0)
    }

    pub(super) fn bring_up(&self, index: u32) -> Result<(), Errno> {
        let mut message = LinkMessage::default();
        message.header.index = index;
        message.header.flags = LinkFlags::Up;
        message.header.change_mask = LinkFlags::Up;
        self.ask(RouteNetlinkMessage::SetLink(message), 0)
    }

    /// Sends one request and waits for the kernel's yes or no.
    fn ask(&self, request: RouteNetlinkMessage, flags: u16) -> Result<(), Errno> {
        let mut header = NetlinkHeader::default();
        header.flags = NLM_F_REQUEST | NLM_F_ACK | flags;
        let mut message = NetlinkMessage::new(header, NetlinkPayload::from(request));
        message.finalize();
        let mut octets = vec![0; message.buffer_len()];
        message.serialize(&mut octets);
        self.0.send(&octets, 0).map_err(errno_of)?;
        let (answer, _) = self.0.recv_from_full().map_err(errno_of)?;
        match NetlinkMessage::<RouteNetlinkMessage>::deserialize(&answer).map_err(|_| Errno::EBADMSG)?.payload {
            // The kernel answers with the negative errno; no code at all is its yes.
            NetlinkPayload::Error(error) => {
                error.code.map_or(Ok(()), |code| Err(Errno::from_raw(code.get().saturating_neg())))
            }
            _ => Err(Errno::EBADMSG),
        }
    }
}
