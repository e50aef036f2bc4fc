//! From a failed step and its errno to a sentence a person can act on.

use std::fmt;

use nix::errno::Errno;

use super::Step;
use super::facts::Facts;

/// What stands in the way, and what to do about it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hint {
    pub why: String,
    pub fix: String,
}

impl fmt::Display for Hint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "  why: {}", self.why)?;
        writeln!(f, "  fix: {}", self.fix)?;
        f.write_str("  or:  `--wires memory` runs the same model without sockets")
    }
}

/// The likeliest reason first: a setting that is known to cause this errno at this step beats a guess.
pub(super) fn explain(step: Step, errno: Errno, facts: &Facts) -> Hint {
    let hint = |why: &str, fix: &str| Hint { why: why.to_owned(), fix: fix.to_owned() };
    let makes_namespaces = matches!(step, Step::UserNamespace | Step::MapIds | Step::NetworkNamespace);
    match (step, errno) {
        (Step::UserNamespace, Errno::ENOSPC | Errno::EUSERS | Errno::EPERM | Errno::EACCES)
            if facts.max_user_namespaces == Some(0) =>
        {
            hint(
                "user namespaces are switched off on this machine (user.max_user_namespaces = 0)",
                "`sudo sysctl -w user.max_user_namespaces=15000`, or run as root",
            )
        }
        (Step::UserNamespace, Errno::ENOSPC | Errno::EUSERS) => Hint {
            why: format!(
                "this user has as many user namespaces as are allowed (user.max_user_namespaces = {}), or they are nested \
                 more than 32 deep",
                facts.max_user_namespaces.map_or_else(|| "unknown".to_owned(), |n| n.to_string())
            ),
            fix: "raise user.max_user_namespaces with sysctl, end what holds them, or run as root".to_owned(),
        },
        (Step::NetworkNamespace, Errno::ENOSPC) => Hint {
            why: format!(
                "no more network namespaces are allowed (user.max_net_namespaces = {})",
                facts.max_net_namespaces.map_or_else(|| "unknown".to_owned(), |n| n.to_string())
            ),
            fix: "`sudo sysctl -w user.max_net_namespaces=15000`, or use fewer nodes".to_owned(),
        },
        (_, Errno::EINVAL | Errno::ENOSYS) if makes_namespaces && facts.seccomp != Some(2) => hint(
            "this kernel was built without user or network namespaces (CONFIG_USER_NS, CONFIG_NET_NS)",
            "use a distribution's kernel; as root only CONFIG_NET_NS is needed",
        ),
        (_, Errno::EPERM | Errno::EACCES) if facts.unprivileged_userns_clone == Some(0) && !facts.is_privileged() => {
            hint(
                "this kernel gives user namespaces to root only (kernel.unprivileged_userns_clone = 0)",
                "`sudo sysctl -w kernel.unprivileged_userns_clone=1`, or run as root",
            )
        }
        (_, Errno::EPERM | Errno::EACCES)
            if facts.apparmor_restricts_userns.is_some_and(|n| n != 0) && !facts.is_privileged() =>
        {
            hint(
                "AppArmor lets only programs with a profile use user namespaces \
                 (kernel.apparmor_restrict_unprivileged_userns = 1)",
                "`sudo sysctl -w kernel.apparmor_restrict_unprivileged_userns=0`, or give this program an AppArmor profile \
                 with the rule `userns,`, or run as root",
            )
        }
        (_, Errno::EPERM | Errno::EACCES | Errno::ENOSYS | Errno::EINVAL)
            if facts.seccomp == Some(2) && (makes_namespaces || errno == Errno::EPERM) =>
        {
            hint(
                "a seccomp filter is in force, as containers have, and it forbids this",
                "start the container with `--security-opt seccomp=unconfined`, or as root with `--cap-add SYS_ADMIN \
                 --cap-add NET_ADMIN`, or run outside of it",
            )
        }
        (Step::UserNamespace, Errno::EPERM | Errno::EACCES) => hint(
            "this process lacks CAP_SYS_ADMIN and may not make a user namespace either: it runs in a chroot, its user has \
             no id in the enclosing namespace, or a security module (SELinux) forbids it",
            "run as root, or outside of the chroot",
        ),
        (Step::PinName, Errno::EPERM | Errno::EACCES) => {
            hint("naming a namespace is a mount, which needs CAP_SYS_ADMIN", "run as root, or leave `--named` out")
        }
        (Step::CreateVeth, Errno::EOPNOTSUPP) => hint(
            "this kernel has no veth driver",
            "`sudo modprobe veth`, or use a kernel with CONFIG_VETH (some cloud and appliance kernels leave it out)",
        ),
        (Step::PacketSocket, Errno::EAFNOSUPPORT) => {
            hint("this kernel has no packet sockets", "`sudo modprobe af_packet`, or use a kernel with CONFIG_PACKET")
        }
        (Step::PacketSocket, Errno::EPERM) => hint(
            "opening a packet socket needs CAP_NET_RAW, and something took it away (a container, a security module)",
            "start the container with `--cap-add NET_RAW`, or run as root",
        ),
        (Step::Netlink, Errno::EAFNOSUPPORT | Errno::EPROTONOSUPPORT) => hint(
            "netlink sockets are not available (a sandbox such as gVisor, or systemd's RestrictAddressFamilies)",
            "run outside of the sandbox, or allow AF_NETLINK and AF_PACKET in it",
        ),
        (Step::FirstFrame, Errno::ETIMEDOUT) => hint(
            "both interfaces are up, but no frame came out at the far end",
            "please report this with the output of `rocemu doctor`",
        ),
        (_, Errno::EMFILE | Errno::ENFILE | Errno::ETOOMANYREFS) => {
            hint("too many files are open", "raise the limit (`ulimit -n`, fs.file-max), or use fewer links")
        }
        (_, Errno::ENOMEM | Errno::ENOBUFS) => hint(
            "the kernel has no memory left for this (in a container, its memory limit counts too)",
            "use fewer nodes, or allow more memory",
        ),
        (_, Errno::EPERM | Errno::EACCES) => hint(
            "this process may not do that: a capability is missing (CAP_SYS_ADMIN, CAP_NET_ADMIN, CAP_NET_RAW), or a \
             security module forbids it",
            "run as root, or with these capabilities",
        ),
        _ => hint("none of the known reasons fits", "`rocemu doctor` tries each step by itself"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn why(step: Step, errno: Errno, facts: &Facts) -> String {
        explain(step, errno, facts).why
    }

    #[test]
    fn a_setting_that_forbids_user_namespaces_is_named() {
        let off = Facts { max_user_namespaces: Some(0), ..Facts::default() };
        assert!(why(Step::UserNamespace, Errno::ENOSPC, &off).contains("user.max_user_namespaces = 0"));
        let debian = Facts { unprivileged_userns_clone: Some(0), ..Facts::default() };
        assert!(why(Step::UserNamespace, Errno::EPERM, &debian).contains("unprivileged_userns_clone"));
        let container = Facts { seccomp: Some(2), ..Facts::default() };
        assert!(why(Step::UserNamespace, Errno::EPERM, &container).contains("seccomp"));
        assert!(why(Step::UserNamespace, Errno::EPERM, &Facts::default()).contains("CAP_SYS_ADMIN"));
        assert!(why(Step::UserNamespace, Errno::EINVAL, &Facts::default()).contains("CONFIG_USER_NS"));
    }

    /// Ubuntu lets the namespace be made, then refuses what is done in it.
    #[test]
    fn apparmor_is_found_at_whichever_step_it_strikes() {
        let ubuntu = Facts { apparmor_restricts_userns: Some(1), ..Facts::default() };
        for step in [Step::UserNamespace, Step::MapIds, Step::NetworkNamespace, Step::CreateVeth, Step::PacketSocket] {
            for errno in [Errno::EPERM, Errno::EACCES] {
                assert!(why(step, errno, &ubuntu).contains("AppArmor"), "{step} {errno}");
            }
        }
    }

    #[test]
    fn a_missing_driver_is_not_taken_for_a_missing_right() {
        let ubuntu = Facts { apparmor_restricts_userns: Some(1), seccomp: Some(2), ..Facts::default() };
        assert!(why(Step::CreateVeth, Errno::EOPNOTSUPP, &ubuntu).contains("veth driver"));
        assert!(why(Step::PacketSocket, Errno::EAFNOSUPPORT, &ubuntu).contains("packet sockets"));
    }

    #[test]
    fn every_hint_offers_the_wires_that_need_no_kernel() {
        let shown = explain(Step::Start, Errno::EIO, &Facts::default()).to_string();
        assert!(shown.contains("--wires memory"));
    }
}
