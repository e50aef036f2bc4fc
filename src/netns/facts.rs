//! What this process may do, and what the machine's settings say about namespaces.

use std::fs;

use nix::errno::Errno;
use nix::sys::resource::{Resource, getrlimit, setrlimit};

use super::Error;

const CAP_NET_ADMIN: u32 = 12;
const CAP_NET_RAW: u32 = 13;
const CAP_SYS_ADMIN: u32 = 21;

/// Settings that decide whether namespaces can be made; `None` where this kernel has no such setting.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Facts {
    pub effective_capabilities: u64,
    /// 2: a filter decides, as in most containers.
    pub seccomp: Option<u64>,
    pub max_user_namespaces: Option<u64>,
    pub max_net_namespaces: Option<u64>,
    /// 1: only programs with a profile of their own get a usable user namespace (Ubuntu from 23.10 on).
    pub apparmor_restricts_userns: Option<u64>,
    /// 0: only root may make user namespaces (older Debian).
    pub unprivileged_userns_clone: Option<u64>,
}

impl Facts {
    pub(super) fn gather() -> Self {
        // Rights and filters belong to threads, and the child inherits those of the one that forks.
        let status = fs::read_to_string("/proc/thread-self/status").unwrap_or_default();
        Self {
            effective_capabilities: field(&status, "CapEff:")
                .and_then(|v| u64::from_str_radix(v, 16).ok())
                .unwrap_or(0),
            seccomp: field(&status, "Seccomp:").and_then(|v| v.parse().ok()),
            max_user_namespaces: number("/proc/sys/user/max_user_namespaces"),
            max_net_namespaces: number("/proc/sys/user/max_net_namespaces"),
            apparmor_restricts_userns: number("/proc/sys/kernel/apparmor_restrict_unprivileged_userns"),
            unprivileged_userns_clone: number("/proc/sys/kernel/unprivileged_userns_clone"),
        }
    }

    /// Everything can be built without a user namespace.
    pub(super) fn is_privileged(&self) -> bool {
        [CAP_SYS_ADMIN, CAP_NET_ADMIN, CAP_NET_RAW].iter().all(|&bit| self.has(bit))
    }

    pub(super) fn may_mount(&self) -> bool {
        self.has(CAP_SYS_ADMIN)
    }

    fn has(&self, capability: u32) -> bool {
        self.effective_capabilities >> capability & 1 == 1
    }
}

fn field<'a>(status: &'a str, name: &str) -> Option<&'a str> {
    status.lines().find_map(|line| line.strip_prefix(name)).map(str::trim)
}

pub(super) fn number(path: &str) -> Option<u64> {
    fs::read_to_string(path).ok()?.trim().parse().ok()
}

/// Soft and hard limit of open files.
pub(super) fn descriptor_limits() -> Result<(u64, u64), Errno> {
    getrlimit(Resource::RLIMIT_NOFILE)
}

/// Makes room for `more` descriptors next to those open now, raising the soft limit to the hard one if it must.
///
/// * Errors: `TooFewDescriptors` before anything has been created.
pub(super) fn reserve_descriptors(more: u64) -> Result<(), Error> {
    let parent = |action| move |errno: Errno| Error::Parent { action, source: errno.into() };
    let (soft, hard) = descriptor_limits().map_err(parent("read the limit of open files"))?;
    let open = fs::read_dir("/proc/self/fd").map_or(64, |dir| dir.count() as u64);
    let needed = open + more;
    if needed > hard {
        return Err(Error::TooFewDescriptors { needed, hard });
    }
    if needed > soft {
        setrlimit(Resource::RLIMIT_NOFILE, hard, hard).map_err(parent("raise the limit of open files"))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn root_without_the_network_capabilities_takes_the_way_of_an_ordinary_user() {
        let with = |effective_capabilities| Facts { effective_capabilities, ..Facts::default() };
        assert!(with(u64::MAX).is_privileged());
        assert!(!with(1 << CAP_SYS_ADMIN).is_privileged());
        assert!(with(1 << CAP_SYS_ADMIN).may_mount());
        assert!(!with(0).may_mount());
    }

    #[test]
    fn too_many_descriptors_are_refused_with_both_numbers() {
        assert!(matches!(
            reserve_descriptors(u64::MAX / 2),
            Err(Error::TooFewDescriptors { needed, hard }) if needed > hard
        ));
    }
}
