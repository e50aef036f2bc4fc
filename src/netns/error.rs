//! Why the namespaces, veth pairs or sockets could not be made.

use std::fmt;
use std::io;

use super::Hint;

/// Why no wires came of a topology. Nothing is left behind by any of these.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("cable {cable} ends at node {node}, which is not in the topology")]
    NoSuchNode { cable: usize, node: usize },
    #[error("two cables end at port {port} of {node}")]
    PortTakenTwice { node: String, port: usize },
    #[error(
        "this needs {needed} open files, and the limit is {hard}: raise it (`ulimit -Hn`, or nofile in \
         /etc/security/limits.conf), or use fewer links, or `--wires memory`, which runs the same model without sockets"
    )]
    TooFewDescriptors { needed: u64, hard: u64 },
    #[error(
        "named namespaces need root (CAP_SYS_ADMIN): run with sudo, or leave `--named` out and need no rights at all"
    )]
    NamedNeedsRoot,
    #[error(
        "`{name}` cannot be part of a namespace's name: use letters, digits, '.', '_' and '-', and start with no '.'"
    )]
    BadName { name: String },
    #[error("a run called `{run}` exists already")]
    RunTaken { run: String },
    #[error("the network namespace {path} exists already, and this run did not create it")]
    NameTaken { path: String },
    #[error("{action} {path}: {source}")]
    File { action: &'static str, path: String, source: io::Error },
    /// The kernel refused one step of the way.
    #[error("cannot {step}{subject}: {source}\n{hint}")]
    Refused { step: Step, subject: String, source: io::Error, hint: Hint },
    /// The child that builds everything ended before it was done.
    #[error("the helper process ended unexpectedly ({how}) while it was to {step}{subject}")]
    ChildDied { step: Step, subject: String, how: String },
    #[error("the helper process was stopped: it took more than {waited_s} s to {step}{subject}")]
    ChildStuck { step: Step, subject: String, waited_s: u64 },
    #[error("cannot {action}: {source}")]
    Parent { action: &'static str, source: io::Error },
}

/// What the child is doing, in its order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Step {
    Start,
    UserNamespace,
    MapIds,
    NetworkNamespace,
    PinName,
    QuietIpv6,
    Netlink,
    CreateVeth,
    EnterNamespace,
    BringUp,
    PacketSocket,
    FirstFrame,
    HandOver,
}

impl Step {
    const ALL: [Self; 13] = [
        Self::Start,
        Self::UserNamespace,
        Self::MapIds,
        Self::NetworkNamespace,
        Self::PinName,
        Self::QuietIpv6,
        Self::Netlink,
        Self::CreateVeth,
        Self::EnterNamespace,
        Self::BringUp,
        Self::PacketSocket,
        Self::FirstFrame,
        Self::HandOver,
    ];

    pub(super) fn from_code(code: u8) -> Option<Self> {
        Self::ALL.get(usize::from(code)).copied()
    }
}

/// Reads on after "cannot" and "to".
impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Start => "start",
            Self::UserNamespace => "create a user namespace",
            Self::MapIds => "map user ids into the new user namespace",
            Self::NetworkNamespace => "create the network namespace",
            Self::PinName => "give the network namespace its name",
            Self::QuietIpv6 => "switch IPv6 off in the network namespace",
            Self::Netlink => "talk to the kernel over netlink",
            Self::CreateVeth => "create the veth pair",
            Self::EnterNamespace => "enter the network namespace",
            Self::BringUp => "bring up the interface",
            Self::PacketSocket => "open an AF_PACKET socket",
            Self::FirstFrame => "get a first frame across the veth pair",
            Self::HandOver => "hand the sockets over",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_survives_its_code() {
        for step in Step::ALL {
            assert_eq!(Step::from_code(step as u8), Some(step));
        }
        assert_eq!(Step::from_code(13), None);
    }
}
