//! `rocemu check`: is this a scenario?

use std::path::PathBuf;

use super::terminal::has_colours;
use super::{Failure, Status, read_plan, say};
use crate::record::counted;

/// Validate scenario files without running them.
///
/// All errors of a file are shown at once, with their line, their column and what would be right.
#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// Scenario files.
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
}

pub fn check(arguments: &Arguments) -> Result<Status, Failure> {
    let mut refused = Vec::new();
    for path in &arguments.files {
        match read_plan(path) {
            Ok(parsed) => {
                eprint!("{}", parsed.warnings.render(has_colours()));
                let plan = parsed.plan;
                let applications = match plan.applications.len() as u64 {
                    0 => String::new(),
                    count => format!(", and those of {}", counted(count, "application")),
                };
                say(&format!(
                    "{}: ok: {}, {}, {}, {}{applications}\n",
                    path.display(),
                    counted(plan.node_count() as u64, "node"),
                    counted(plan.links.len() as u64, "link"),
                    counted(plan.queue_pairs.len() as u64, "queue pair"),
                    counted(plan.message_count(), "message"),
                ));
            }
            Err(failure) => refused.push(failure),
        }
    }
    // The last refusal decides the exit code; the others are shown as they came.
    let last = refused.pop();
    for failure in refused {
        failure.report();
    }
    last.map_or(Ok(Status::AllWell), Err)
}
