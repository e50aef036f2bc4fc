//! Applications of a run: their sockets, and what `--exec` asks for.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use super::Failure;
use super::processes::Processes;
use crate::engine::ApplicationsError;
use crate::io::{ApplicationSockets, Limits};
use crate::scenario::Plan;

/// How applications come.
#[derive(Clone, Debug, clap::Args)]
#[group(skip)]
pub struct Options {
    /// Where the sockets for applications are made; the output directory unless given.
    #[arg(long, value_name = "DIR")]
    sockets: Option<std::path::PathBuf>,
    /// Start a process for an application, by a shell, with ROCEMU_SOCKET and ROCEMU_APPLICATION in its environment.
    /// It ends with the run, and so does what it has put in the background, unless that has left its process group.
    #[arg(long, value_name = "APPLICATION=COMMAND", value_parser = parse_exec)]
    exec: Vec<(String, String)>,
    /// How long, in seconds of real time, to wait until an application comes, and for each of its turns.
    #[arg(long, value_name = "SECONDS", default_value_t = 60)]
    patience: u64,
}

fn parse_exec(text: &str) -> Result<(String, String), String> {
    let parts = text.split_once('=');
    let (name, command) = parts.ok_or("write APPLICATION=COMMAND, such as client=./client")?;
    if command.trim().is_empty() {
        return Err("there is no command behind the =".to_owned());
    }
    Ok((name.to_owned(), command.to_owned()))
}

impl Options {
    /// Where the sockets are made.
    fn dir<'a>(&'a self, out: &'a Path) -> &'a Path {
        self.sockets.as_deref().unwrap_or(out)
    }
}

/// Refuses what cannot be, before anything is made.
pub fn check(options: &Options, plan: &Plan, out: &Path) -> Result<(), Failure> {
    let known = |name: &String| plan.applications.iter().any(|application| application.name == *name);
    if let Some((name, _)) = options.exec.iter().find(|(name, _)| !known(name)) {
        return Err(Failure::input(format!("--exec: the scenario has no application `{name}`")));
    }
    let mut names: Vec<_> = options.exec.iter().map(|(name, _)| name).collect();
    names.sort_unstable();
    if let Some(twice) = names.windows(2).find(|pair| pair[0] == pair[1]) {
        return Err(Failure::input(format!("--exec: application `{}` is started twice", twice[0])));
    }
    ApplicationSockets::check(options.dir(out), plan).map_err(|error| no_sockets(&error))
}

/// Opens the sockets of a scenario with applications, starts what is to be started, and says who may come where.
pub fn open(
    options: &Options,
    plan: &Plan,
    out: &Path,
    stop: Arc<AtomicBool>,
) -> Result<Option<(ApplicationSockets, Arc<Processes>)>, Failure> {
    if plan.applications.is_empty() {
        return Ok(None);
    }
    let patience = Duration::from_secs(options.patience);
    let limits = Limits { come: patience, turn: patience };
    let sockets = ApplicationSockets::open(options.dir(out), plan, limits, stop);
    let mut sockets = sockets.map_err(|error| no_sockets(&error))?;
    let mut processes = Processes::default();
    for (name, socket) in sockets.invitations() {
        match options.exec.iter().find(|(application, _)| application == name) {
            Some((_, command)) => processes.start(name, command, socket)?,
            None => eprintln!("waiting for application {name} at {}", socket.display()),
        }
    }
    let processes = Arc::new(processes);
    let asked = Arc::clone(&processes);
    sockets.give_up_on(move |application| asked.end_of(application));
    Ok(Some((sockets, processes)))
}

fn no_sockets(error: &ApplicationsError) -> Failure {
    Failure::environment(format!("{error}; choose another place with --sockets DIR"))
}
