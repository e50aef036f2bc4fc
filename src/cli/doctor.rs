//! `rocemu doctor`: what this machine can do.

use super::{Failure, Status};
use crate::netns;

/// Say what this machine can do, and what is missing.
///
/// Makes namespaces, a veth pair and sockets for real, sends a frame across, and removes all of it again.
#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// Remove named namespaces that a killed `run --named` has left behind.
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
        println!("{mark}  {:width$}  {}", check.name, check.found);
        for line in check.advice.iter().flat_map(|advice| advice.lines()) {
            println!("      {:width$}  {line}", "");
        }
    }
    println!();
    if checks.iter().any(|check| check.status == netns::Status::Fail) {
        println!("This machine cannot carry frames over veth pairs as it is; `--wires memory` runs the same model.");
        return Ok(Status::Environment);
    }
    println!("All that `rocemu run` needs is here.  next: rocemu run netns/pair.toml");
    Ok(Status::AllWell)
}

fn remove_leftovers() -> Result<Status, Failure> {
    let leftovers = netns::leftovers().map_err(|error| Failure::environment(error.to_string()))?;
    if leftovers.is_empty() {
        println!("nothing is left behind");
    }
    for leftover in leftovers {
        netns::remove_leftover(&leftover).map_err(|error| Failure::environment(error.to_string()))?;
        println!("removed what run {} left: {}", leftover.run, leftover.namespaces.join(", "));
    }
    Ok(Status::AllWell)
}
