//! `rocemu check`: is this a scenario?

use std::io::IsTerminal;
use std::path::PathBuf;

use super::{Failure, Status, read_plan, say};

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
                if !parsed.warnings.is_empty() {
                    eprint!("{}", parsed.warnings.render(std::io::stderr().is_terminal()));
                }
                let plan = parsed.plan;
                say(&format!(
                    "{}: ok: {} nodes, {} links, {} queue pairs, {} messages\n",
                    path.display(),
                    plan.nics.len(),
                    plan.links.len(),
                    plan.queue_pairs.len(),
                    plan.message_count(),
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
