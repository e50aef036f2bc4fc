//! `rocemu test`: many scenarios, a line each.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use quick_junit::{NonSuccessKind, Report, TestCase, TestCaseStatus, TestSuite};

use super::outputs::WholeFile;
use super::progress::Shared;
use super::signals::Signals;
use super::{Failure, Status, WiresKind, run::watched, say, show};
use crate::base::Span;
use crate::engine::MemoryWires;
use crate::io::VethWires;
use crate::netns;
use crate::record::counted;
use crate::{Error, Run, Scenario};

/// Lines of the ladder before and after the place where something went wrong.
const LINES_BEFORE: usize = 12;
const LINES_AFTER: usize = 4;

/// Run scenarios and judge them: expectations, faults that must happen, work that must finish.
///
/// Prints a line for each and, for one that failed, what was expected, what happened, and the ladder around the place.
/// The exit code is the worst of all. Ctrl-C stops the one that runs and leaves out the rest.
#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// Scenario files, or directories in which every .toml file is one.
    #[arg(required = true, value_name = "FILE|DIR")]
    paths: Vec<PathBuf>,
    /// What frames cross: real veth pairs, or memory (same model, same results, no sockets).
    #[arg(long, value_enum, default_value = "veth")]
    wires: WiresKind,
    /// Write the results as JUnit XML too.
    #[arg(long, value_name = "FILE")]
    junit: Option<PathBuf>,
}

/// What became of one file.
struct Tested {
    path: PathBuf,
    status: Status,
    /// Empty if all is well.
    why: String,
    took: Duration,
}

pub fn test(arguments: &Arguments) -> Result<Status, Failure> {
    let mut files = Vec::new();
    for path in &arguments.paths {
        find_scenarios(path, &mut files)?;
    }
    if files.is_empty() {
        return Err(Failure::input("no scenario: no .toml file in what was named"));
    }
    // Before anything runs whose results could not be written.
    let junit = arguments.junit.as_deref().map(WholeFile::create).transpose()?;
    let signals = Signals::hold();
    let shared = Shared::default();
    let count = files.len();
    let tested = watched(&shared, None, signals, || {
        let mut tested = Vec::new();
        for path in files {
            if shared.is_stopping() {
                break;
            }
            let one = test_file(path, arguments.wires, &shared);
            print_line(&one);
            tested.push(one);
        }
        tested
    });
    let passed = tested.iter().filter(|one| one.status == Status::AllWell).count();
    let stopped = tested.iter().filter(|one| one.status == Status::Interrupted).count();
    say(&format!("{passed} passed, {} failed", tested.len() - passed - stopped));
    say(&match count - (tested.len() - stopped) {
        0 => "\n".to_owned(),
        left => format!("; interrupted, {left} not run to the end\n"),
    });
    if let Some(file) = junit {
        file.publish(junit_of(&tested)?.as_bytes())?;
    }
    if shared.is_stopping() {
        return Ok(Status::Interrupted);
    }
    let worst = tested.iter().map(|one| one.status).max_by_key(|status| *status as u8);
    Ok(worst.unwrap_or(Status::AllWell))
}

/// Every scenario under `path`, in the order of their names.
fn find_scenarios(path: &Path, into: &mut Vec<PathBuf>) -> Result<(), Failure> {
    let unreadable = |error: std::io::Error| Failure::unreadable(path, &error);
    if !fs::metadata(path).map_err(unreadable)?.is_dir() {
        into.push(path.to_owned());
        return Ok(());
    }
    let entries: Result<Vec<_>, _> = fs::read_dir(path).map_err(unreadable)?.collect();
    let mut entries: Vec<_> = entries.map_err(unreadable)?.into_iter().map(|entry| entry.path()).collect();
    entries.sort();
    for entry in entries {
        if entry.is_dir() {
            find_scenarios(&entry, into)?;
        } else if entry.extension().is_some_and(|extension| extension == "toml") {
            into.push(entry);
        }
    }
    Ok(())
}

fn test_file(path: PathBuf, wires: WiresKind, shared: &Shared) -> Tested {
    #[expect(clippy::disallowed_methods, reason = "how long a test took is real time, for people and JUnit")]
    let start = Instant::now();
    tracing::debug!("{}: {}", path.display(), wires.text());
    let result = Scenario::from_file(&path).and_then(|scenario| scenario.plan()).and_then(|plan| {
        let mut look = |progress: &_| shared.update(progress);
        match wires {
            WiresKind::Veth => {
                let mut wires = VethWires::for_plan(&plan, &netns::Options::default())?;
                Run::watched(plan, &mut wires, &mut look)
            }
            WiresKind::Memory => Run::watched(plan, &mut MemoryWires::default(), &mut look),
        }
    });
    let (status, why) = match result {
        Ok(run) => judge(&run),
        Err(error @ Error::Scenario(_)) => (Status::BadInput, error.to_string()),
        Err(error) => (Status::Environment, error.to_string()),
    };
    Tested { path, status, why, took: start.elapsed() }
}

fn judge(run: &Run) -> (Status, String) {
    if run.outcome().interrupted {
        return (Status::Interrupted, format!("interrupted at {} emulated", run.outcome().end));
    }
    let foreign = run.outcome().foreign.count;
    if foreign > 0 {
        let frames = counted(foreign, "foreign frame");
        return (Status::Environment, format!("{frames} arrived that rocemu did not send"));
    }
    let shortcomings = run.shortcomings();
    if shortcomings.is_empty() {
        return (Status::AllWell, String::new());
    }
    let reasons: String = shortcomings.iter().map(|shortcoming| format!("{shortcoming}\n")).collect();
    let place = shortcomings.iter().find_map(|shortcoming| shortcoming.at());
    let ladder = ladder_around(&run.ladder(), place.map(|at| at.since(crate::base::Instant::ZERO)));
    (Status::Failed, format!("{reasons}{ladder}"))
}

/// The lines of a ladder around a time; its end, if there is none.
fn ladder_around(ladder: &str, place: Option<Span>) -> String {
    let lines: Vec<_> = ladder.lines().collect();
    let Some((columns, lines)) = lines.split_first() else { return String::new() };
    let at = match place {
        Some(place) => lines.partition_point(|line| show::time_of(line).is_some_and(|at| at <= place)),
        None => lines.len(),
    };
    let shown = &lines[at.saturating_sub(LINES_BEFORE)..(at + LINES_AFTER).min(lines.len())];
    let mut text = format!("{columns}\n");
    for (n, line) in shown.iter().enumerate() {
        let mark = if place.is_some() && at.saturating_sub(LINES_BEFORE) + n + 1 == at { "  <-- here" } else { "" };
        text += &format!("{line}{mark}\n");
    }
    text
}

fn print_line(one: &Tested) {
    let mark = match one.status {
        Status::AllWell => "ok    ",
        Status::BadInput => "BAD   ",
        Status::Environment => "ENV   ",
        Status::Interrupted => "STOP  ",
        _ => "FAILED",
    };
    let indented: String = one.why.lines().map(|line| format!("        {line}\n")).collect();
    say(&format!("{mark}  {}  ({:.1?})\n{indented}", one.path.display(), one.took));
}

fn junit_of(tested: &[Tested]) -> Result<String, Failure> {
    let mut suite = TestSuite::new("rocemu");
    for one in tested {
        let status = match one.status {
            Status::AllWell => TestCaseStatus::success(),
            Status::Failed => TestCaseStatus::non_success(NonSuccessKind::Failure),
            _ => TestCaseStatus::non_success(NonSuccessKind::Error),
        };
        let mut case = TestCase::new(one.path.display().to_string(), status);
        case.set_classname("scenario").set_time(one.took);
        if one.status != Status::AllWell {
            case.status.set_message(one.why.lines().next().unwrap_or_default()).set_description(one.why.as_str());
        }
        suite.add_test_case(case);
    }
    let mut report = Report::new("rocemu test");
    report.add_test_suite(suite);
    report.to_string().map_err(|error| Failure::environment(error.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ladder_is_shown_around_the_place() {
        let ladder: String =
            ["ns\n".to_owned()].into_iter().chain((0..40).map(|n| format!("{n}.000  line\n"))).collect();
        let shown = ladder_around(&ladder, Some(Span::from_ns(20)));
        let lines: Vec<_> = shown.lines().collect();
        assert_eq!(lines[0], "ns");
        assert_eq!(lines[1], "9.000  line");
        assert_eq!(lines[12], "20.000  line  <-- here");
        assert_eq!(lines.last(), Some(&"24.000  line"));
        assert!(ladder_around(&ladder, None).ends_with("39.000  line\n"));
    }
}
