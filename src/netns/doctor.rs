//! What this machine can do, tried for real where that leaves no trace.

use std::fs;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::path::Path;

use nix::errno::Errno;
use nix::poll::PollTimeout;
use nix::sys::socket::{MsgFlags, recv, send};

use super::facts::{Facts, descriptor_limits, number};
use super::handover::wait_readable;
use super::{Built, End, Error, Options, Step, Topology, build_as, leftovers, named};

/// How a check ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Status {
    Ok,
    /// Worth knowing; nothing is wrong.
    Note,
    /// Works, with a limit.
    Warn,
    /// Runs over veth will not work. `--wires memory` does.
    Fail,
}

/// One thing that was looked at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Check {
    pub name: &'static str,
    pub status: Status,
    /// What was found, as half a sentence.
    pub found: String,
    /// What to do about it.
    pub advice: Option<String>,
}

/// Frames sent each way to see whether they arrive at once.
const ROUND_TRIPS: u16 = 100;
/// Fewer descriptors than this do not even hold a rack.
const DESCRIPTORS_WANTED: u64 = 1_024;

/// Looks at everything that runs over veth need. Nothing is left behind, and no setting is changed but the soft limit of
/// open files, which may be raised.
pub fn probe() -> Vec<Check> {
    let facts = Facts::gather();
    let pair = Topology {
        nodes: vec!["a".to_owned(), "b".to_owned()],
        cables: vec![[End { node: 0, port: 0 }, End { node: 1, port: 0 }]],
    };
    let attempt = |privileged| build_as(&pair, &Options::default(), &facts, privileged);
    let rootless = attempt(false);
    let user = user_namespaces(&rootless, &facts);
    let built = if facts.is_privileged() { attempt(true) } else { rootless };
    let mut checks = vec![kernel(), user, veth(&built, &facts), packet_sockets(&built)];
    if let Ok(built) = &built {
        checks.push(delivery(&built.sockets[0]));
    }
    checks.extend([named_namespaces(&facts), remains(), descriptors(), security(&facts)]);
    checks
}

fn check(name: &'static str, status: Status, found: impl Into<String>) -> Check {
    Check { name, status, found: found.into(), advice: None }
}

impl Check {
    fn advise(self, advice: impl Into<String>) -> Self {
        Self { advice: Some(advice.into()), ..self }
    }
}

fn kernel() -> Check {
    let name = "kernel";
    let release = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    let release = release.trim();
    match version(release) {
        None => check(name, Status::Warn, format!("Linux {release}, a version that cannot be read")),
        // PACKET_IGNORE_OUTGOING.
        Some(version) if version < (4, 20) => {
            check(name, Status::Fail, format!("Linux {release}")).advise("use Linux 4.20 or later")
        }
        Some(_) => check(name, Status::Ok, format!("Linux {release}")),
    }
}

/// Major and minor.
fn version(release: &str) -> Option<(u32, u32)> {
    let mut numbers = release.split(|c: char| !c.is_ascii_digit()).map(str::parse);
    Some((numbers.next()?.ok()?, numbers.next()?.ok()?))
}

/// How far an attempt came: the step that failed, or all.
fn failed_at(result: &Result<Built, Error>) -> Option<Step> {
    match result {
        Ok(_) => None,
        Err(Error::Refused { step, .. } | Error::ChildDied { step, .. } | Error::ChildStuck { step, .. }) => {
            Some(*step)
        }
        Err(_) => Some(Step::Start),
    }
}

fn failure(name: &'static str, status: Status, result: &Result<Built, Error>) -> Check {
    match result {
        Ok(_) => check(name, Status::Ok, "work"),
        Err(Error::Refused { step, source, hint, .. }) => {
            check(name, status, format!("cannot {step}: {source}; {}", hint.why)).advise(hint.fix.clone())
        }
        Err(error) => check(name, status, error.to_string()),
    }
}

fn user_namespaces(rootless: &Result<Built, Error>, facts: &Facts) -> Check {
    let name = "user namespaces";
    // Some distributions let one be made and then forbid whatever is tried in it.
    let is_powerless = matches!(rootless, Err(Error::Refused { source, .. })
        if matches!(source.raw_os_error(), Some(libc::EPERM | libc::EACCES)));
    match failed_at(rootless) {
        Some(step) if step <= Step::MapIds || is_powerless => {
            // With the rights of root there is another way.
            failure(name, if facts.is_privileged() { Status::Note } else { Status::Fail }, rootless)
        }
        _ => check(name, Status::Ok, "tried: runs need no root"),
    }
}

fn veth(built: &Result<Built, Error>, facts: &Facts) -> Check {
    let name = "network namespaces and veth";
    match failed_at(built) {
        Some(step) if step <= Step::MapIds && !facts.is_privileged() => {
            check(name, Status::Fail, "not tried: no user namespace to make them in")
        }
        Some(step) if step < Step::PacketSocket => failure(name, Status::Fail, built),
        _ => check(name, Status::Ok, "tried: two namespaces, joined by a pair"),
    }
}

fn packet_sockets(built: &Result<Built, Error>) -> Check {
    let name = "packet sockets";
    match failed_at(built) {
        None => check(name, Status::Ok, "tried: a frame crossed the pair each way"),
        Some(step) if step < Step::PacketSocket => check(name, Status::Fail, "not tried: no veth pair to open them on"),
        Some(_) => failure(name, Status::Fail, built),
    }
}

/// Late frames cost time, not truth: every wait has a deadline.
fn delivery(sockets: &[OwnedFd; 2]) -> Check {
    let name = "delivery";
    let late = match late_frames(sockets) {
        Ok(late) => late,
        Err(errno) => return check(name, Status::Warn, format!("a frame did not arrive: {errno}")),
    };
    let all = ROUND_TRIPS * 2;
    let found = format!("{} of {all} frames could be read as soon as they were sent", all - late);
    if late * 10 < all {
        return check(name, Status::Ok, found);
    }
    let steering = fs::read_to_string("/proc/sys/net/core/rps_default_mask")
        .is_ok_and(|mask| mask.bytes().any(|b| matches!(b, b'1'..=b'9' | b'a'..=b'f')));
    let threaded = fs::read_to_string("/proc/cmdline").is_ok_and(|line| line.contains("thread_backlog_napi"));
    let advice = match (steering, threaded) {
        (true, _) => "runs are slower, not wrong; `sudo sysctl -w net.core.rps_default_mask=0` keeps frames on one CPU",
        (_, true) => "runs are slower, not wrong; the kernel was booted with thread_backlog_napi",
        _ => "runs are slower, not wrong; look for receive packet steering (RPS) and threaded NAPI",
    };
    check(name, Status::Note, found).advise(advice)
}

fn late_frames([first, second]: &[OwnedFd; 2]) -> Result<u16, Errno> {
    let mut frame = [0; 60];
    (frame[0], frame[6]) = (0x02, 0x02);
    // IEEE 802 local experimental ethertype 1.
    frame[12..14].copy_from_slice(&[0x88, 0xb5]);
    let mut late = 0;
    for _ in 0..ROUND_TRIPS {
        for (from, to) in [(first, second), (second, first)] {
            send(from.as_raw_fd(), &frame, MsgFlags::empty())?;
            let mut arrived = [0; 60];
            if recv(to.as_raw_fd(), &mut arrived, MsgFlags::empty()) == Err(Errno::EAGAIN) {
                late += 1;
                wait_readable(to.as_fd(), PollTimeout::from(1_000_u16))?;
                recv(to.as_raw_fd(), &mut arrived, MsgFlags::empty())?;
            }
        }
    }
    Ok(late)
}

fn named_namespaces(facts: &Facts) -> Check {
    let name = "named namespaces";
    if facts.may_mount() {
        check(name, Status::Ok, "`--named` can be used: this is root")
    } else {
        check(name, Status::Note, "`--named` needs root, and nothing else does")
    }
}

fn remains() -> Check {
    let name = "leftovers";
    let runs = match leftovers() {
        Ok(runs) => runs,
        Err(error) => return check(name, Status::Note, error.to_string()),
    };
    let names: Vec<_> =
        runs.into_iter().flat_map(|run| run.namespaces).filter(|n| Path::new(named::NAMES).join(n).exists()).collect();
    if names.is_empty() {
        check(name, Status::Ok, "no named namespace of a run that has ended")
    } else {
        check(name, Status::Warn, format!("namespaces of runs that have ended: {}", names.join(", ")))
            .advise("`sudo rocemu doctor --remove-leftovers`")
    }
}

fn descriptors() -> Check {
    let name = "open files";
    match descriptor_limits() {
        Ok((soft, hard)) => {
            let links = hard.saturating_sub(64) / 4;
            let found = format!("limit {soft}, can be raised to {hard}: enough for about {links} links");
            if hard < DESCRIPTORS_WANTED {
                check(name, Status::Warn, found).advise("raise the hard limit: nofile in /etc/security/limits.conf")
            } else {
                check(name, Status::Ok, found)
            }
        }
        Err(errno) => check(name, Status::Warn, format!("the limit cannot be read: {errno}")),
    }
}

/// Settings that explain a failure above. By themselves they are nothing to worry about.
fn security(facts: &Facts) -> Check {
    let mut found = vec![match facts.seccomp {
        Some(0) => "no seccomp filter".to_owned(),
        Some(2) => "a seccomp filter, as in a container".to_owned(),
        Some(mode) => format!("seccomp mode {mode}"),
        None => "seccomp unknown".to_owned(),
    }];
    found.push(match facts.apparmor_restricts_userns {
        Some(0) => "AppArmor leaves user namespaces alone".to_owned(),
        Some(_) => "AppArmor restricts user namespaces".to_owned(),
        None => "AppArmor has no such restriction here".to_owned(),
    });
    if let Some(0) = facts.unprivileged_userns_clone {
        found.push("kernel.unprivileged_userns_clone = 0".to_owned());
    }
    for (name, value) in
        [("max_user_namespaces", facts.max_user_namespaces), ("max_net_namespaces", facts.max_net_namespaces)]
    {
        if let Some(value) = value {
            found.push(format!("user.{name} = {value}"));
        }
    }
    if number("/proc/sys/net/ipv6/conf/default/disable_ipv6").is_none() {
        found.push("no IPv6 in this kernel".to_owned());
    }
    check("security settings", Status::Note, found.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kernel_versions_are_compared_as_numbers() {
        assert_eq!(version("6.18.44-generic"), Some((6, 18)));
        assert_eq!(version("4.9.0"), Some((4, 9)));
        assert!(version("4.9.0") < Some((4, 20)));
        assert_eq!(version("unknown"), None);
    }
}
