//! Network namespaces and veth pairs: one namespace per node, one pair per cable, one AF_PACKET socket per port.
//!
//! ```text
//!  this process ──fork──► child: user + network namespace(s), veth pairs, up, sockets
//!       │                   │
//!       ◄──── sockets ──────┘ (Unix socket, SCM_RIGHTS), then the child is gone
//!
//!  namespace a                         namespace b
//!  ┌──────────────────┐               ┌──────────────────┐
//!  │ socket ── veth b ╞═══════════════╡ veth a ── socket │     both sockets are open in this process
//!  └──────────────────┘               └──────────────────┘
//! ```
//!
//! No rights are needed, and none are kept: the child is root in namespaces of its own, and the parent only gets open
//! sockets. These hold the interfaces and namespaces in being, so that nothing can be left behind: however this process
//! ends, its sockets close, and the kernel takes the rest down (`tests/wires.rs::kill_dash_nine_leaves_nothing`).
//! Namespaces have names only if asked ([`Options::named`], root only), and these are removed on drop.
//!
//! Invariants: interfaces have no addresses and no IPv6, so the kernel itself never sends a frame; a socket handed out
//! has already carried a frame each way; an error says which step failed, why, and what to do ([`Error::Refused`]).
//!
//! Not here: what travels through the sockets (`io`).
//!
//! Read first: `tests/wires.rs::frames_of_every_size_come_out_as_they_went_in`,
//! `diagnose::tests::apparmor_is_found_at_whichever_step_it_strikes`.

mod child;
mod diagnose;
mod doctor;
mod error;
mod facts;
mod handover;
mod link;
mod named;
mod packet;
mod topology;

use std::io;
use std::os::fd::OwnedFd;

use nix::errno::Errno;
use nix::poll::PollTimeout;
use nix::sys::signal::{Signal, kill};
use nix::sys::wait::{WaitStatus, waitpid};
use nix::unistd::{ForkResult, Pid, fork, getpid};

pub use diagnose::Hint;
pub use doctor::{Check, Status, probe};
pub use error::{Error, Step};
pub use named::{Leftover, NamedRun, leftovers, remove_leftover};
pub use topology::{End, Topology};

use facts::Facts;
use handover::{Message, Receiver, Subject, channel};

/// No single step takes this long on a machine that works.
const STEP_SECONDS_MAX: u16 = 20;

/// How to build a topology.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// Run id for namespaces that `ip netns` shows as `rocemu-<run>-<node>`. Needs root. Unique among running runs.
    pub named: Option<String>,
    /// Asked of the kernel for each socket; without CAP_NET_ADMIN it gives at most twice net.core.rmem_max.
    ///
    /// * Units: octets, of which a frame costs about twice its length.
    pub receive_buffer: usize,
}

impl Default for Options {
    /// Lockstep has one frame in flight: 1 MiB is room for about a hundred foreign ones.
    fn default() -> Self {
        Self { named: None, receive_buffer: 1 << 20 }
    }
}

/// A topology that has been built; taken down when this is dropped.
#[derive(Debug)]
pub struct Built {
    /// Per cable and end: non-blocking, bound, and tried.
    pub sockets: Vec<[OwnedFd; 2]>,
    /// The namespaces' names, if they have any.
    pub named: Option<NamedRun>,
}

/// Builds the topology in a forked child.
///
/// * Errors: [`Error`]; nothing is left behind.
/// * Cost: 2 to 7 ms for a pair, 40 to 90 ms for 70 nodes in a star (measured: 2 virtual CPUs, Linux 6.18).
pub fn build(topology: &Topology, options: &Options) -> Result<Built, Error> {
    let facts = Facts::gather();
    build_as(topology, options, &facts, facts.is_privileged())
}

/// [`build`], without a user namespace only if `privileged`.
fn build_as(topology: &Topology, options: &Options, facts: &Facts, privileged: bool) -> Result<Built, Error> {
    topology.check()?;
    let (nodes, cables) = (topology.nodes.len() as u64, topology.cables.len() as u64);
    // The child holds two descriptors per node besides the sockets, and both sides a few of their own.
    facts::reserve_descriptors(2 * nodes + 2 * cables + 16)?;
    let named = match &options.named {
        Some(_) if !facts.may_mount() => return Err(Error::NamedNeedsRoot),
        Some(run) => Some(NamedRun::reserve(run, &topology.nodes)?),
        None => None,
    };
    let plan = child::Plan {
        nodes: topology.nodes.len(),
        cables: topology.cables.clone(),
        interfaces: topology.interfaces(),
        pins: named.iter().flat_map(|named| named.paths().to_vec()).collect(),
        privileged,
        receive_buffer: options.receive_buffer,
    };
    let failed = |action| move |errno: Errno| Error::Parent { action, source: errno.into() };
    let (receiver, sender) = channel().map_err(failed("open a socket pair"))?;
    let parent = getpid();
    // SAFETY: the child runs `child::run` alone, which keeps to what is usable after a fork from a process with threads
    // (see its module) and never returns.
    let child = match unsafe { fork() }.map_err(failed("fork"))? {
        ForkResult::Child => child::run(&plan, &sender, parent),
        ForkResult::Parent { child } => Child(Some(child)),
    };
    // Or the end of the child would not be the end of the stream.
    drop(sender);
    let flat = receive(topology, facts, &receiver, child)?;
    let mut sockets = Vec::with_capacity(topology.cables.len());
    let mut flat = flat.into_iter();
    while let (Some(first), Some(second)) = (flat.next(), flat.next()) {
        sockets.push([first, second]);
    }
    assert_eq!(sockets.len(), topology.cables.len(), "the child hands over both sockets of every cable");
    Ok(Built { sockets, named })
}

/// Follows the child to its end.
fn receive(topology: &Topology, facts: &Facts, receiver: &Receiver, child: Child) -> Result<Vec<OwnedFd>, Error> {
    let mut sockets = Vec::with_capacity(topology.cables.len() * 2);
    let mut at = (Step::Start, Subject::Run);
    loop {
        let subject = |what| describe(topology, what);
        match receiver.next(PollTimeout::from(STEP_SECONDS_MAX * 1_000)) {
            Ok(Some(Message::At(step, what))) => at = (step, what),
            Ok(Some(Message::Sockets(batch))) => sockets.extend(batch),
            Ok(Some(Message::Done)) => {
                child.reap();
                return Ok(sockets);
            }
            Ok(Some(Message::Failed(errno))) | Err(errno @ (Errno::EMFILE | Errno::EBADMSG)) => {
                let (step, what) = at;
                let hint = diagnose::explain(step, errno, facts);
                return Err(Error::Refused { step, subject: subject(what), source: errno.into(), hint });
            }
            Ok(None) => {
                return Err(Error::ChildDied { step: at.0, subject: subject(at.1), how: child.reap() });
            }
            Err(Errno::ETIMEDOUT) => {
                let waited_s = u64::from(STEP_SECONDS_MAX);
                return Err(Error::ChildStuck { step: at.0, subject: subject(at.1), waited_s });
            }
            Err(errno) => return Err(Error::Parent { action: "hear from the helper process", source: errno.into() }),
        }
    }
}

/// Reads on after a [`Step`].
fn describe(topology: &Topology, subject: Subject) -> String {
    match subject {
        Subject::Run => String::new(),
        Subject::Node(n) => format!(" of {}", topology.nodes[n as usize]),
        Subject::Cable(n) => format!(" {}", topology.port_name(n as usize, 0)),
        Subject::Port(n) => format!(" at {}", topology.port_name(n as usize / 2, n as usize % 2)),
    }
}

/// A forked child that never outlives its guard, nor stays a zombie.
struct Child(Option<Pid>);

impl Child {
    /// Waits for a child that is about to end, and says how it did.
    fn reap(mut self) -> String {
        self.0.take().map_or_else(String::new, wait)
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        if let Some(pid) = self.0.take() {
            // It has not been waited for, so the number is still its own.
            let _ = kill(pid, Signal::SIGKILL);
            wait(pid);
        }
    }
}

fn wait(pid: Pid) -> String {
    loop {
        return match waitpid(pid, None) {
            Err(Errno::EINTR) => continue,
            // The host program ignores SIGCHLD or waits for all children: then it is reaped all the same.
            Err(errno) => format!("unknown: {errno}"),
            Ok(WaitStatus::Exited(_, code)) => format!("exit code {code}"),
            Ok(WaitStatus::Signaled(_, signal, _)) => format!("killed by {signal}"),
            Ok(other) => format!("{other:?}"),
        };
    }
}

/// The errno behind an error of the standard library or of a crate.
fn errno_of(error: io::Error) -> Errno {
    error.raw_os_error().map_or(Errno::EIO, Errno::from_raw)
}
