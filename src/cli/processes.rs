//! Processes that `--exec` starts, each the leader of a group with all that it starts in turn.

use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::sys::signal::{Signal, killpg};
use nix::sys::wait::{Id, WaitPidFlag, WaitStatus, waitid};
use nix::unistd::Pid;

use super::Failure;
use crate::io::settle_child;

/// How long processes may take to end by themselves when their devices are gone.
const GRACE: Duration = Duration::from_secs(2);
const LOOK: Duration = Duration::from_millis(10);

/// Processes that were started for this run, and do not outlive it. If the run itself is killed, their leaders are; what
/// these have started sees the end of its device, and goes on if it does not look.
#[derive(Debug, Default)]
pub struct Processes(Vec<Group>);

/// The leader stays unreaped for as long as this exists: until then the kernel gives its number, which is the group's, to
/// nobody else, and no signal can go astray.
#[derive(Debug)]
struct Group {
    application: String,
    leader: Child,
}

impl Processes {
    pub fn start(&mut self, application: &str, command: &str, socket: &Path) -> Result<(), Failure> {
        let mut shell = Command::new("/bin/sh");
        shell.arg("-c").arg(command).stdin(Stdio::null()).process_group(0);
        shell.env("ROCEMU_SOCKET", socket).env("ROCEMU_APPLICATION", application);
        settle_child(&mut shell);
        let leader = shell.spawn().map_err(|error| Failure::environment(format!("--exec {application}: {error}")))?;
        self.0.push(Group { application: application.to_owned(), leader });
        Ok(())
    }

    /// How the process of an application ended, if nothing of its group lives any more.
    pub fn end_of(&self, application: &str) -> Option<String> {
        let group = self.0.iter().find(|group| group.application == application)?;
        group.end().filter(|_| group.is_over()).map(words)
    }

    /// Gives the processes, whose device is gone, time to end. Returns what those say who did not end well.
    pub fn finish(&self) -> Vec<String> {
        let began = now();
        while began.elapsed() < GRACE && !self.0.iter().all(Group::is_over) {
            pause();
        }
        let bad_end = |group: &Group| match group.end() {
            Some(Ok(status)) if status.success() => None,
            Some(end) => Some(format!("application {} {}", group.application, words(end))),
            None => Some(format!("application {} did not end when its device did, and was killed", group.application)),
        };
        self.0.iter().filter_map(bad_end).collect()
    }
}

impl Group {
    fn id(&self) -> Pid {
        Pid::from_raw(self.leader.id().cast_signed())
    }

    /// How the leader ended; `None` as long as it has not.
    fn end(&self) -> Option<Result<ExitStatus, Errno>> {
        let look = WaitPidFlag::WEXITED | WaitPidFlag::WNOHANG | WaitPidFlag::WNOWAIT;
        match waitid(Id::Pid(self.id()), look) {
            Ok(WaitStatus::Exited(_, code)) => Some(Ok(ExitStatus::from_raw(code << 8))),
            Ok(WaitStatus::Signaled(_, signal, _)) => Some(Ok(ExitStatus::from_raw(signal as i32))),
            Ok(_) => None,
            Err(errno) => Some(Err(errno)),
        }
    }

    /// Whether the leader has ended, and with it all that it left behind: `client &` lets a shell end at once.
    fn is_over(&self) -> bool {
        self.end().is_some() && !has_living_member(self.id())
    }
}

fn words(end: Result<ExitStatus, Errno>) -> String {
    match end {
        Ok(status) => format!("ended with {status}"),
        Err(errno) => format!("ended in a way that is not known ({errno})"),
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        // All of them may have ended by themselves, and the leader may have left its group.
        let _ = killpg(self.id(), Signal::SIGKILL);
        let _ = self.leader.kill();
        // One that became another user cannot be ended, and is not waited for.
        let began = now();
        while matches!(self.leader.try_wait(), Ok(None)) && began.elapsed() < GRACE {
            pause();
        }
    }
}

/// Whether a process of the group is more than a zombie, which the leader is at last. A signal to the group could not tell.
fn has_living_member(group: Pid) -> bool {
    let group = group.to_string();
    let is_member = |stat: &str| {
        // The name, in parentheses, can hold anything; then come the state, the parent and the group.
        let mut fields = stat.rsplit(')').next().unwrap_or_default().split_ascii_whitespace();
        !matches!(fields.next(), Some("Z" | "X")) && fields.nth(1) == Some(&group)
    };
    let stats = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let mut stats = stats.filter_map(|process| std::fs::read(process.path().join("stat")).ok());
    stats.any(|stat| is_member(&String::from_utf8_lossy(&stat)))
}

#[expect(clippy::disallowed_methods, reason = "processes end in real time")]
fn pause() {
    thread::sleep(LOOK);
}

#[expect(clippy::disallowed_methods, reason = "processes end in real time")]
fn now() -> Instant {
    Instant::now()
}
