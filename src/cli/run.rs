//! `rocemu run`: one scenario, once.

use std::path::{Path, PathBuf};
use std::time::Instant;

use super::outputs::Outputs;
use super::progress::{Display, Shared};
use super::records::{self, Records};
use super::signals::Signals;
use super::terminal::has_colours;
use super::{Failure, Status, WiresKind, applications, read_plan, say};
use crate::base::Span;
use crate::engine::{Engine, ForeignFrames, MemoryWires, RunError, Shortcoming, Wires};
use crate::io::VethWires;
use crate::netns;
use crate::record::{self, counted};
use crate::scenario::{self, Plan, quantity};

/// Run a scenario: namespaces, veth pairs, frames, capture, summary.
///
/// Prints a summary and writes capture.pcapng, messages.csv, rates.csv, ladder.txt and summary.json to the output directory.
/// Every frame crosses a veth pair between two network namespaces, which are gone afterwards. Needs no root.
#[derive(Debug, clap::Args)]
#[allow(rustdoc::invalid_html_tags, reason = "clap shows these lines in a terminal as they stand")]
pub struct Arguments {
    /// The scenario file.
    file: PathBuf,
    /// Where the outputs go.  [default: out/<scenario name>]
    #[arg(short, long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// What frames cross: real veth pairs, or memory (same model, same results, no sockets).
    #[arg(long, value_enum, default_value = "veth")]
    wires: WiresKind,
    /// Give the namespaces names that `ip netns` shows while the run lasts (root only).
    #[arg(long)]
    named: bool,
    /// Faults from a file with Lumina's `data-pkt-events`, added to the scenario's own.
    #[arg(long, value_name = "FILE")]
    lumina: Option<PathBuf>,
    #[command(flatten)]
    records: records::Options,
    /// Another seed for the random streams than the scenario's.
    #[arg(long, allow_negative_numbers = true)]
    seed: Option<u64>,
    /// Another emulated end than the scenario's, such as 5ms.
    #[arg(long, value_name = "TIME", value_parser = quantity::parse_span, allow_hyphen_values = true)]
    until: Option<Span>,
    /// Frames on the veth pairs that rocemu did not send do not fail the run.
    #[arg(long)]
    allow_foreign: bool,
    /// Frames dropped at a full pool do not fail the run, though their class has PFC.
    #[arg(long)]
    allow_lossless_drops: bool,
    #[command(flatten)]
    applications: applications::Options,
    /// Print no summary, no progress and no warnings: only errors, and why a run failed.
    #[arg(short, long)]
    quiet: bool,
}

pub fn run(arguments: &Arguments) -> Result<Status, Failure> {
    let parsed = read_plan(&arguments.file)?;
    let mut plan = parsed.plan;
    if !arguments.quiet {
        eprint!("{}", parsed.warnings.render(has_colours()));
    }
    if let Some(seed) = arguments.seed {
        plan.reseed(seed);
    }
    plan.until = arguments.until.map_or(plan.until, |until| crate::base::Instant::ZERO + until);
    plan.allow_lossless_drops |= arguments.allow_lossless_drops;
    if let Some(path) = &arguments.lumina {
        apply_lumina(path, &mut plan)?;
    }
    let names = plan.names();
    arguments.records.check(&names)?;
    let dir = arguments.out.clone().unwrap_or_else(|| PathBuf::from("out").join(&plan.name));
    applications::check(&arguments.applications, &plan, &dir)?;

    // Before anything is made that would be left behind, and before this process has a second thread.
    let signals = Signals::hold();
    let mut wires = open_wires(arguments, &plan)?;
    let mut outputs = Outputs::create(&dir)?;
    let mut records = Records::open(&arguments.records, &plan, &names, &outputs)?;

    let start = now();
    let display = (!arguments.quiet).then(Display::new);
    let shared = Shared::default();
    let applications = applications::open(&arguments.applications, &plan, &dir, shared.stop_flag())?;
    let (mut sockets, processes) = applications.unzip();
    let outcome = watched(&shared, display, signals, || {
        let engine = Engine::new(&plan, wires.as_mut());
        let engine = match &mut sockets {
            Some(sockets) => engine.serve(sockets),
            None => engine,
        };
        engine.run(&mut records, &mut |progress| shared.update(progress))
    });
    let outcome = outcome.map_err(|error| refusal(error, &records))?;
    // Whoever is still there sees the end of its device.
    drop(sockets);
    let bad_ends = processes.map(|processes| processes.finish()).unwrap_or_default();
    let wall = start.elapsed();
    drop(wires);

    let shortcomings = outcome.shortcomings(&plan);
    if shortcomings.iter().any(|shortcoming| matches!(shortcoming, Shortcoming::Interrupted(_))) {
        eprintln!("interrupted at {} emulated; nothing was written", outcome.end);
        return Ok(Status::Interrupted);
    }
    if plan.allow_lossless_drops && !arguments.quiet {
        outcome.violations.lines(&names).iter().for_each(|line| eprintln!("{line} (allowed)"));
    }
    let foreign = foreign_frames(&outcome.foreign, arguments);
    let reasons: Vec<_> =
        shortcomings.iter().map(Shortcoming::to_string).chain(bad_ends).chain(foreign.clone()).collect();
    if arguments.quiet {
        reasons.iter().for_each(|reason| eprintln!("FAILED: {reason}"));
    }
    let verdict = if reasons.is_empty() { record::Outcome::AllWell } else { record::Outcome::Failed(reasons) };
    records.close(&plan, &names, &outcome, &verdict, &mut outputs, (!arguments.quiet).then_some(wall))?;
    let dir = outputs.dir().display().to_string();
    outputs.publish()?;
    tracing::debug!("the outputs are in {dir}/");
    if !arguments.quiet {
        say(&format!("outputs: {dir}/\n"));
    }
    Ok(match (foreign, verdict) {
        (Some(_), _) => Status::Environment,
        (None, record::Outcome::Failed(_)) => Status::Failed,
        (None, record::Outcome::AllWell) => Status::AllWell,
    })
}

#[expect(clippy::disallowed_methods, reason = "the slow-down on the terminal is real time; no result depends on it")]
fn now() -> Instant {
    Instant::now()
}

/// Adds the faults of a Lumina file to the plan.
fn apply_lumina(path: &Path, plan: &mut Plan) -> Result<(), Failure> {
    let name = path.display().to_string();
    let text = std::fs::read_to_string(path).map_err(|error| Failure::unreadable(path, &error))?;
    let script = scenario::lumina::parse(&name, &text).and_then(|script| script.apply(plan));
    script.map_err(|diagnostics| Failure::refused(&diagnostics))
}

fn open_wires(arguments: &Arguments, plan: &Plan) -> Result<Box<dyn Wires>, Failure> {
    let (nodes, links) = (counted(plan.node_count() as u64, "node"), counted(plan.links.len() as u64, "link"));
    tracing::debug!("{}: {nodes}, {links}, {}", plan.name, arguments.wires.text());
    if arguments.wires == WiresKind::Memory {
        return match arguments.named {
            true => Err(Failure::input("--named gives names to namespaces, and --wires memory has none")),
            false => Ok(Box::new(MemoryWires::default())),
        };
    }
    let run_id = std::process::id().to_string();
    let options = netns::Options { named: arguments.named.then_some(run_id), ..netns::Options::default() };
    let wires = VethWires::for_plan(plan, &options).map_err(|error| Failure::environment(error.to_string()))?;
    for name in wires.names() {
        eprintln!("namespace {}", name.file_name().unwrap_or(name.as_os_str()).display());
    }
    Ok(Box::new(wires))
}

/// Why a run could not be carried through, for people.
fn refusal(error: RunError, records: &Records) -> Failure {
    match error {
        RunError::Wires(error) => Failure::environment(error.to_string()),
        RunError::Applications(error) => Failure::environment(error.to_string()),
        RunError::Record(error) => Failure::unwritable(records.outputs_dir(), &error),
        RunError::Memory(_) => Failure::environment(error.to_string()),
        RunError::Books(_) => Failure::fault_of_ours(error.to_string()),
    }
}

/// Does `work`, while another thread shows how far it is and listens to signals.
pub(super) fn watched<T>(shared: &Shared, display: Option<Display>, signals: Signals, work: impl FnOnce() -> T) -> T {
    let (done, is_done) = tokio::sync::oneshot::channel::<()>();
    std::thread::scope(|scope| {
        scope.spawn(|| watch(shared, display, signals, is_done));
        let result = work();
        drop(done);
        result
    })
}

fn watch(
    shared: &Shared,
    mut display: Option<Display>,
    signals: Signals,
    mut is_done: tokio::sync::oneshot::Receiver<()>,
) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let Ok(runtime) = runtime else {
        tracing::warn!("no progress is shown and Ctrl-C ends the run at once: tokio could not start");
        return signals.let_through();
    };
    runtime.block_on(async {
        let mut ticks = tokio::time::interval(Display::TICK);
        let mut signal = std::pin::pin!(signals.arrive());
        let mut is_stopping = false;
        loop {
            tokio::select! {
                _ = &mut is_done => return,
                _ = ticks.tick() => {
                    if let Some(display) = &mut display {
                        display.tick(shared);
                    }
                }
                () = &mut signal, if !is_stopping => {
                    is_stopping = true;
                    shared.stop();
                }
            }
        }
    });
    if let Some(display) = display {
        display.finish();
    }
}

/// Foreign frames, if they fail the run.
fn foreign_frames(foreign: &ForeignFrames, arguments: &Arguments) -> Option<String> {
    let allowed = arguments.allow_foreign;
    if foreign.count == 0 || (allowed && arguments.quiet) {
        return None;
    }
    for frame in &foreign.first {
        let head: String = frame.head.iter().map(|octet| format!("{octet:02x}")).collect();
        eprintln!("foreign frame at {}: {}, {head}", frame.port, counted(frame.octets as u64, "octet"));
    }
    let text = format!(
        "{} arrived that rocemu did not send; none of it reached the model{}",
        counted(foreign.count, "foreign frame"),
        if allowed { "" } else { " (--allow-foreign lets them pass)" },
    );
    if allowed {
        eprintln!("{text}");
        return None;
    }
    Some(text)
}
