//! Applications of a run: their sockets, and processes that `--exec` starts for them.

use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::thread;
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;

use super::Failure;
use crate::io::{ApplicationSockets, Limits};
use crate::scenario::Plan;

/// How long a process may take to end by itself when its device is gone.
const GRACE: Duration = Duration::from_secs(2);
const LOOK: Duration = Duration::from_millis(10);

#[derive(Clone, Debug, clap::Args)]
pub struct Options {
    /// Where the sockets for applications are made; the output directory unless given.
    #[arg(long, value_name = "DIR")]
    sockets: Option<std::path::PathBuf>,
    /// Start a process for an application, by a shell, with ROCEMU_SOCKET and ROCEMU_APPLICATION in its environment.
    #[arg(long, value_name = "APPLICATION=COMMAND", value_parser = parse_exec)]
    exec: Vec<(String, String)>,
    /// How long, in seconds of real time, to wait until an application comes, and for each of its turns.
    #[arg(long, value_name = "SECONDS", default_value_t = 60)]
    patience: u64,
}

fn parse_exec(text: &str) -> Result<(String, String), String> {
    let (name, command) = text.split_once('=').ok_or("write APPLICATION=COMMAND, such as client=./client")?;
    Ok((name.to_owned(), command.to_owned()))
}

/// Opens the sockets of a scenario with applications, starts what is to be started, and says who may come where.
pub fn open(
    options: &Options,
    plan: &Plan,
    out: &Path,
    stop: Arc<AtomicBool>,
) -> Result<Option<(ApplicationSockets, Processes)>, Failure> {
    let known = |name: &String| plan.applications.iter().any(|application| application.name == *name);
    if let Some((name, _)) = options.exec.iter().find(|(name, _)| !known(name)) {
        return Err(Failure::input(format!("--exec: the scenario has no application `{name}`")));
    }
    let mut names: Vec<_> = options.exec.iter().map(|(name, _)| name).collect();
    names.sort_unstable();
    if let Some(twice) = names.windows(2).find(|pair| pair[0] == pair[1]) {
        return Err(Failure::input(format!("--exec: application `{}` is started twice", twice[0])));
    }
    if plan.applications.is_empty() {
        return Ok(None);
    }
    let patience = Duration::from_secs(options.patience);
    let dir = options.sockets.as_deref().unwrap_or(out);
    let sockets = ApplicationSockets::open(dir, plan, Limits { come: patience, turn: patience }, stop);
    let sockets = sockets.map_err(|error| Failure::environment(error.to_string()))?;
    let mut processes = Processes::default();
    for (name, socket) in sockets.invitations() {
        match options.exec.iter().find(|(application, _)| application == name) {
            Some((_, command)) => processes.start(name, command, socket)?,
            None => eprintln!("waiting for application {name} at {}", socket.display()),
        }
    }
    Ok(Some((sockets, processes)))
}

/// Processes that were started for this run, which they do not outlive.
#[derive(Debug, Default)]
pub struct Processes(Vec<(String, Child)>);

impl Processes {
    fn start(&mut self, name: &str, command: &str, socket: &Path) -> Result<(), Failure> {
        let mut shell = Command::new("/bin/sh");
        // A group of its own, so that all that it starts can be ended with it.
        shell.arg("-c").arg(command).stdin(Stdio::null()).process_group(0);
        shell.env("ROCEMU_SOCKET", socket).env("ROCEMU_APPLICATION", name);
        let child = shell.spawn().map_err(|error| Failure::environment(format!("--exec {name}: {error}")))?;
        self.0.push((name.to_owned(), child));
        Ok(())
    }

    /// Waits for the processes, whose device is gone. Returns what those say who did not end well.
    pub fn finish(mut self) -> Vec<String> {
        let began = now();
        let mut failures = Vec::new();
        for (name, mut child) in self.0.drain(..) {
            let status = loop {
                match child.try_wait() {
                    Ok(Some(status)) => break Ok(status),
                    Ok(None) if began.elapsed() > GRACE => break end_group(&child).and_then(|()| child.wait()),
                    Ok(None) => pause(),
                    Err(error) => break Err(error),
                }
            };
            match status {
                Ok(status) if status.success() => {}
                Ok(status) => failures.push(format!("application {name} ended with {status}")),
                Err(error) => failures.push(format!("application {name}: {error}")),
            }
        }
        failures
    }
}

impl Drop for Processes {
    fn drop(&mut self) {
        for (_, child) in &mut self.0 {
            // It may have ended by itself.
            let _ = end_group(child);
            let _ = child.wait();
        }
    }
}

fn end_group(leader: &Child) -> std::io::Result<()> {
    Ok(killpg(Pid::from_raw(leader.id().cast_signed()), Signal::SIGKILL)?)
}

#[expect(clippy::disallowed_methods, reason = "processes end in real time")]
fn pause() {
    thread::sleep(LOOK);
}

#[expect(clippy::disallowed_methods, reason = "processes end in real time")]
fn now() -> Instant {
    Instant::now()
}
