//! `rocemu doctor`: what this machine can do.

use nix::unistd::geteuid;

use super::{Failure, Status, say};
use crate::netns;

/// Say what this machine can do, and what is missing.
///
/// Makes namespaces, a veth pair and sockets for real, sends a frame across, and removes all of it again.
#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// Remove named namespaces that a killed `run --named` has left behind (root only).
    #[arg(long)]
    remove_leftovers: bool,
}

pub fn doctor(arguments: &Arguments) -> Result<Status, Failure> {
    if arguments.remove_leftovers {
        return remove_leftovers();
    }
    let checks = netns::probe();
    let width = checks.iter().map(|check| check.name.len()).max().unwrap_or(0);
    for check in &checks {
        let mark = match check.status {
            netns::Status::Ok => "ok  ",
            netns::Status::Note => "note",
            netns::Status::Warn => "warn",
            netns::Status::Fail => "FAIL",
        };
        say(&format!("{mark}  {:width$}  {}\n", check.name, check.found));
        for line in check.advice.iter().flat_map(|advice| advice.lines()) {
            say(&format!("      {:width$}  {line}\n", ""));
        }
    }
    say("\n");
    if checks.iter().any(|check| check.status == netns::Status::Fail) {
        say("This machine cannot carry frames over veth pairs as it is; `--wires memory` runs the same model.\n");
        return Ok(Status::Environment);
    }
    say("All that `rocemu run` needs is here.  next: rocemu run netns/pair.toml\n");
    Ok(Status::AllWell)
}

fn remove_leftovers() -> Result<Status, Failure> {
    let leftovers = netns::leftovers().map_err(|error| Failure::environment(error.to_string()))?;
    if leftovers.is_empty() {
        say("nothing is left behind\n");
    }
    if let [first, ..] = leftovers.as_slice()
        && !geteuid().is_root()
    {
        let (run, namespaces) = (&first.run, first.namespaces.join(", "));
        return Err(Failure::environment(format!(
            "run {run} has left {namespaces}, and only root can remove that: sudo rocemu doctor --remove-leftovers"
        )));
    }
    for leftover in leftovers {
        netns::remove_leftover(&leftover).map_err(|error| Failure::environment(error.to_string()))?;
        say(&format!("removed what run {} left: {}\n", leftover.run, leftover.namespaces.join(", ")));
    }
    Ok(Status::AllWell)
}
