//! The short-lived child that enters new namespaces, builds everything in them, and hands the sockets back.
//!
//! It is forked, never exec'ed, possibly from a process with many threads (a test runner). Only the forking thread
//! exists in it; locks that other threads held stay locked for ever. So it keeps to system calls and to memory, which
//! glibc makes usable again after a fork: no stdout or stderr, no environment, no logging, no threads. Should it hang
//! all the same, the parent kills it and says where.

use std::fs::{self, File};
use std::mem::take;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;

use nix::errno::Errno;
use nix::mount::{MsFlags, mount};
use nix::net::if_::if_nametoindex;
use nix::poll::PollTimeout;
use nix::sched::{CloneFlags, setns, unshare};
use nix::sys::prctl::set_pdeathsig;
use nix::sys::signal::{SigHandler, Signal, signal};
use nix::sys::socket::{MsgFlags, recv, send};
use nix::unistd::{Pid, getegid, geteuid, getppid};

use super::handover::{Sender, Subject, wait_readable};
use super::link::{Netlink, VethEnd};
use super::{End, Step, errno_of, packet};

/// What to build, without names that only people need.
pub(super) struct Plan {
    pub nodes: usize,
    pub cables: Vec<[End; 2]>,
    pub interfaces: Vec<[String; 2]>,
    /// Where each node's namespace gets its name; empty if they have none.
    pub pins: Vec<PathBuf>,
    /// Try without a user namespace first.
    pub privileged: bool,
    pub receive_buffer: usize,
}

struct Node {
    namespace: File,
    netlink: Netlink,
    /// IPv6 is off for every interface that will be made here.
    is_quiet: bool,
}

/// Runs in the child and never returns.
pub(super) fn run(plan: &Plan, sender: &Sender, parent: Pid) -> ! {
    let outcome = catch_unwind(AssertUnwindSafe(|| {
        settle(sender, parent)?;
        build(plan, sender)
    }));
    let code = match outcome {
        Ok(Ok(())) => i32::from(sender.done().is_err()),
        Ok(Err(errno)) => i32::from(sender.failed(errno).is_err()),
        Err(_) => 101,
    };
    // SAFETY: ends this process at once. The parent's exit handlers and buffers are not this process's to run.
    unsafe { libc::_exit(code) }
}

/// Lets go of what the fork inherited.
fn settle(sender: &Sender, parent: Pid) -> Result<(), Errno> {
    sender.at(Step::Start, Subject::Run)?;
    set_pdeathsig(Signal::SIGKILL)?;
    if getppid() != parent {
        return Err(Errno::ESRCH);
    }
    for number in Signal::iterator() {
        // SAFETY: the default action runs no code of ours. The parent's handlers may write to descriptors closed below.
        let _ = unsafe { signal(number, SigHandler::SigDfl) };
    }
    // A copy of a packet socket or of another thread's channel would keep that alive as long as this child lives.
    let keep = sender.raw().unsigned_abs();
    for (first, last) in [(3, keep.saturating_sub(1)), (keep + 1, u32::MAX)] {
        if first <= last {
            // SAFETY: the values that own these descriptors are never used or dropped in this process. A kernel too
            // old for the call (before 5.9) leaves them open, which costs nothing but time.
            let _ = unsafe { libc::syscall(libc::SYS_close_range, first, last, 0_u32) };
        }
    }
    Ok(())
}

fn build(plan: &Plan, sender: &Sender) -> Result<(), Errno> {
    let nodes = (0..plan.nodes).map(|node| new_node(plan, sender, node)).collect::<Result<Vec<_>, _>>()?;

    for (cable, (ends, names)) in plan.cables.iter().zip(&plan.interfaces).enumerate() {
        sender.at(Step::CreateVeth, Subject::Cable(cable as u32))?;
        let end = |n: usize| VethEnd { namespace: nodes[ends[n].node].namespace.as_fd(), name: &names[n] };
        nodes[ends[0].node].netlink.create_veth([end(0), end(1)])?;
    }

    let mut ports_of = vec![Vec::new(); plan.nodes];
    for (cable, ends) in plan.cables.iter().enumerate() {
        for (from_end, end) in ends.iter().enumerate() {
            ports_of[end.node].push((cable, from_end));
        }
    }
    let mut sockets: Vec<[Option<OwnedFd>; 2]> = plan.cables.iter().map(|_| [None, None]).collect();
    for (index, (node, ports)) in nodes.iter().zip(&mut ports_of).enumerate() {
        sender.at(Step::EnterNamespace, Subject::Node(index as u32))?;
        setns(&node.namespace, CloneFlags::CLONE_NEWNET)?;
        for (cable, from_end) in take(ports) {
            let port = Subject::Port((cable * 2 + from_end) as u32);
            sender.at(Step::BringUp, port)?;
            let interface = if_nametoindex(plan.interfaces[cable][from_end].as_str())?;
            if !node.is_quiet {
                match node.netlink.no_ipv6_address(interface) {
                    // A kernel without IPv6 is as quiet as it gets.
                    Ok(()) | Err(Errno::EAFNOSUPPORT) => {}
                    Err(errno) => return Err(errno),
                }
            }
            node.netlink.bring_up(interface)?;
            // Only now: a socket bound to an interface that is down starts with an error to report.
            sender.at(Step::PacketSocket, port)?;
            sockets[cable][from_end] = Some(packet::open(interface, plan.receive_buffer)?);
        }
    }

    let mut raw: Vec<RawFd> = Vec::with_capacity(sockets.len() * 2);
    for (cable, ends) in sockets.iter().enumerate() {
        let [Some(first), Some(second)] = ends else { return Err(Errno::EBADF) };
        for (from_end, [from, to]) in [[first, second], [second, first]].into_iter().enumerate() {
            sender.at(Step::FirstFrame, Subject::Port((cable * 2 + from_end) as u32))?;
            first_frame(from.as_fd(), to.as_fd())?;
        }
        raw.extend([first.as_raw_fd(), second.as_raw_fd()]);
    }
    sender.at(Step::HandOver, Subject::Run)?;
    sender.sockets(&raw)
}

/// Moves into a new namespace and keeps a hold on it.
fn new_node(plan: &Plan, sender: &Sender, node: usize) -> Result<Node, Errno> {
    let subject = Subject::Node(node as u32);
    sender.at(Step::NetworkNamespace, subject)?;
    if node > 0 || plan.privileged {
        match unshare(CloneFlags::CLONE_NEWNET) {
            // Root without the right to do it, as in some containers. A named namespace must belong to the machine.
            Err(Errno::EPERM) if node == 0 && plan.pins.is_empty() => become_user_root(sender, subject)?,
            result => result?,
        }
    } else {
        become_user_root(sender, subject)?;
    }
    if let Some(path) = plan.pins.get(node) {
        sender.at(Step::PinName, subject)?;
        mount(Some("/proc/self/ns/net"), path, None::<&str>, MsFlags::MS_BIND, None::<&str>)?;
    }
    sender.at(Step::QuietIpv6, subject)?;
    // New interfaces take this default over. Where /proc/sys is read-only, as in many containers, or not there, each
    // interface is told over netlink instead.
    let is_quiet = fs::write("/proc/sys/net/ipv6/conf/default/disable_ipv6", "1").is_ok();
    sender.at(Step::Netlink, subject)?;
    let namespace = File::open("/proc/self/ns/net").map_err(errno_of)?;
    Ok(Node { namespace, netlink: Netlink::open()?, is_quiet })
}

/// A user namespace in which this process is root, and the first network namespace that belongs to it.
///
/// In two steps rather than one call: distributions that restrict user namespaces fail at different ones of them.
fn become_user_root(sender: &Sender, node: Subject) -> Result<(), Errno> {
    let (user, group) = (geteuid(), getegid());
    sender.at(Step::UserNamespace, Subject::Run)?;
    unshare(CloneFlags::CLONE_NEWUSER)?;
    sender.at(Step::MapIds, Subject::Run)?;
    // The kernel lets a user map its group only after giving up setgroups(2).
    fs::write("/proc/self/setgroups", "deny").map_err(errno_of)?;
    fs::write("/proc/self/uid_map", format!("0 {user} 1")).map_err(errno_of)?;
    fs::write("/proc/self/gid_map", format!("0 {group} 1")).map_err(errno_of)?;
    sender.at(Step::NetworkNamespace, node)?;
    unshare(CloneFlags::CLONE_NEWNET)
}

/// Sends probes from one socket until one arrives at the other.
///
/// The kernel attaches an interface's queue some time after its carrier came, and drops frames silently until then
/// (noop_qdisc); no flag that can be read says when. So ask the only thing that matters. Frames of one hop stay in
/// order: when the last probe sent is there, none of them is still on its way.
///
/// * Errors: `ETIMEDOUT` if none arrives within about 4 s.
fn first_frame(from: BorrowedFd<'_>, to: BorrowedFd<'_>) -> Result<(), Errno> {
    let mut probe = [0; 60];
    probe[0] = 0x02;
    probe[6] = 0x02;
    // IEEE 802 local experimental ethertype 1: nobody's protocol.
    probe[12..14].copy_from_slice(&[0x88, 0xb5]);
    for attempt in 0..12_u8 {
        probe[14] = attempt;
        send(from.as_raw_fd(), &probe, MsgFlags::empty())?;
        loop {
            let mut arrived = [0; 61];
            match recv(to.as_raw_fd(), &mut arrived, MsgFlags::empty()) {
                Ok(length) if arrived[..length] == probe => return Ok(()),
                Ok(_) => continue,
                Err(Errno::EAGAIN) => {}
                Err(errno) => return Err(errno),
            }
            match wait_readable(to, PollTimeout::from(1_u16 << attempt)) {
                Ok(()) => {}
                Err(Errno::ETIMEDOUT) => break,
                Err(errno) => return Err(errno),
            }
        }
    }
    Err(Errno::ETIMEDOUT)
}
