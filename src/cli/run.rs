//! `rocemu run`: one scenario, once.

use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use super::applications;
use super::outputs::{self, Output, Outputs};
use super::progress::{Display, Shared};
use super::signals::Signals;
use super::terminal::{Stdout, has_colours};
use super::{Failure, Status, WiresKind, read_plan, say};
use crate::base::{NodeId, PortId, Span};
use crate::engine::{Engine, ForeignFrames, MemoryWires, Outcome, RunError, Shortcoming, Wires};
use crate::io::VethWires;
use crate::netns;
use crate::record::{
    self, Attribution, Capture, CaptureMode, Congestion, EventLog, Ladder, MessageTable, Peaks, Pressure, QueueTable,
    RateTable, SummaryInput, counted,
};
use crate::scenario::{self, Plan, quantity};
use crate::trace::{Event, Names, Sink};

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
    /// Write events.jsonl: everything that happens.
    #[arg(long)]
    events: bool,
    /// Write queues.csv: how long the queues of switches were over time.
    #[arg(long)]
    queues: bool,
    /// How often queues.csv has a row for a queue that changes; 0ns writes every change.
    #[arg(long, value_name = "TIME", value_parser = quantity::parse_span, default_value = "1us", requires = "queues",
        allow_hyphen_values = true)]
    queue_interval: Span,
    /// Print the packet ladder: one line per frame, with what the emulator decided.
    #[arg(long)]
    ladder: bool,
    /// How much of each frame the capture keeps; `off` also leaves out ladder.txt.
    #[arg(long, value_enum, default_value = "full")]
    capture: CaptureChoice,
    /// Capture at these ports only, named <node>:<peer>.
    #[arg(long, value_name = "PORT", value_delimiter = ',')]
    capture_ports: Vec<String>,
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

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum CaptureChoice {
    Off,
    /// The first 96 octets of each frame.
    Headers,
    Full,
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
    check_capture_ports(arguments, &names)?;
    let dir = arguments.out.clone().unwrap_or_else(|| PathBuf::from("out").join(&plan.name));
    applications::check(&arguments.applications, &plan, &dir)?;

    // Before anything is made that would be left behind, and before this process has a second thread.
    let signals = Signals::hold();
    let mut wires = open_wires(arguments, &plan)?;
    let mut outputs = Outputs::create(&dir)?;
    let mut records = Records::open(arguments, &plan, &names, &outputs)?;

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

fn check_capture_ports(arguments: &Arguments, names: &Names) -> Result<(), Failure> {
    let known: Vec<_> = names.nodes.iter().flat_map(|node| &node.ports).map(|port| port.name.as_str()).collect();
    match arguments.capture_ports.iter().find(|port| !known.contains(&port.as_str())) {
        Some(port) => Err(Failure::input(format!("--capture-ports: no port `{port}`; there are {}", known.join(", ")))),
        None => Ok(()),
    }
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

/// The sinks of a run.
struct Records {
    dir: PathBuf,
    capture: Option<Capture<Output>>,
    messages: MessageTable<Output>,
    rates: RateTable<Output>,
    queues: Option<QueueTable<Output>>,
    events: Option<EventLog<Output>>,
    ladder: Option<Ladder<Output>>,
    printed_ladder: Option<Ladder<Stdout>>,
    peaks: Peaks,
    pressure: Pressure,
    attribution: Attribution,
    congestion: Congestion,
    summary: Output,
    log_events: bool,
}

impl Records {
    fn open(arguments: &Arguments, plan: &Plan, names: &Names, outputs: &Outputs) -> Result<Self, Failure> {
        let failed = |error: io::Error| Failure::unwritable(outputs.dir(), &error);
        let mode = match arguments.capture {
            CaptureChoice::Off => None,
            CaptureChoice::Headers => Some(CaptureMode::Headers),
            CaptureChoice::Full => Some(CaptureMode::Full),
        };
        let is_chosen = |node: NodeId, port: PortId| {
            let chosen = &arguments.capture_ports;
            chosen.is_empty() || chosen.iter().any(|name| name == names.port(node, port))
        };
        let links = plan.link_ends();
        let capture = match mode {
            Some(mode) => Some(Capture::new(outputs.open(outputs::CAPTURE)?, names, mode, is_chosen).map_err(failed)?),
            None => None,
        };
        let ladder = match mode {
            Some(_) => Some(Ladder::new(outputs.open(outputs::LADDER)?, names, &links).map_err(failed)?),
            None => None,
        };
        let printed_ladder = match arguments.ladder {
            true => Some(Ladder::new(Stdout, names, &links).map_err(failed)?),
            false => None,
        };
        Ok(Self {
            dir: outputs.dir().to_owned(),
            capture,
            messages: MessageTable::new(outputs.open(outputs::MESSAGES)?, names).map_err(failed)?,
            rates: RateTable::new(outputs.open(outputs::RATES)?, names).map_err(failed)?,
            queues: match arguments.queues {
                true => {
                    let output = outputs.open(outputs::QUEUES)?;
                    Some(QueueTable::new(output, names, arguments.queue_interval).map_err(failed)?)
                }
                false => None,
            },
            events: match arguments.events {
                true => Some(EventLog::new(outputs.open(outputs::EVENTS)?, names)),
                false => None,
            },
            ladder,
            printed_ladder,
            peaks: Peaks::new(names),
            pressure: Pressure::new(names),
            attribution: Attribution::new(names),
            congestion: Congestion::new(names),
            summary: outputs.open(outputs::SUMMARY)?,
            log_events: tracing::enabled!(tracing::Level::TRACE),
        })
    }

    fn outputs_dir(&self) -> &Path {
        &self.dir
    }

    /// Completes every file, and prints the digest if a wall time is given.
    fn close(
        self,
        plan: &Plan,
        names: &Names,
        outcome: &Outcome,
        verdict: &record::Outcome,
        outputs: &mut Outputs,
        wall: Option<Duration>,
    ) -> Result<(), Failure> {
        let dir = self.dir;
        let failed = |error: io::Error| Failure::unwritable(&dir, &error);
        if let Some(ladder) = self.printed_ladder {
            ladder.finish().map_err(failed)?;
        }
        let input = SummaryInput {
            scenario: &plan.name,
            seed: plan.seed,
            version: env!("CARGO_PKG_VERSION"),
            outcome: verdict,
            end: outcome.end,
            names,
            messages: self.messages.stats(),
            counters: &outcome.counters,
            ledger: &outcome.ledger,
            peaks: &self.peaks,
            limits: &plan.limits(),
            pressure: &self.pressure,
            congestion: &self.congestion,
            queue_pairs: &self.attribution.at_end(outcome.end),
            compared: outcome.compared,
            has_capture: self.capture.is_some(),
        };
        outputs.finish(record::write_summary(self.summary, &input).map_err(failed)?);
        if let Some(wall) = wall {
            say(&record::digest(&input, Some(wall)));
        }
        outputs.finish(self.messages.finish().map_err(failed)?);
        outputs.finish(self.rates.finish().map_err(failed)?);
        if let Some(queues) = self.queues {
            outputs.finish(queues.finish().map_err(failed)?);
        }
        if let Some(capture) = self.capture {
            outputs.finish(capture.finish().map_err(failed)?);
        }
        if let Some(events) = self.events {
            outputs.finish(events.finish().map_err(failed)?);
        }
        if let Some(ladder) = self.ladder {
            outputs.finish(ladder.finish().map_err(failed)?);
        }
        Ok(())
    }
}

impl Sink for Records {
    fn record(&mut self, event: &Event) -> io::Result<()> {
        if self.log_events {
            tracing::trace!(t_ps = event.at.ps(), node = event.node.0, event = ?event.kind);
        }
        if let Some(capture) = &mut self.capture {
            capture.record(event)?;
        }
        self.messages.record(event)?;
        self.rates.record(event)?;
        if let Some(queues) = &mut self.queues {
            queues.record(event)?;
        }
        if let Some(events) = &mut self.events {
            events.record(event)?;
        }
        if let Some(ladder) = &mut self.ladder {
            ladder.record(event)?;
        }
        if let Some(ladder) = &mut self.printed_ladder {
            ladder.record(event)?;
        }
        self.peaks.record(event)?;
        self.pressure.record(event)?;
        self.attribution.record(event)?;
        self.congestion.record(event)
    }
}
