//! What a run records, and where it goes: the sinks of its events, each with its file.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::outputs::{self, Output, Outputs};
use super::terminal::Stdout;
use super::{Failure, say};
use crate::base::{NodeId, PortId, Span};
use crate::engine::Outcome;
use crate::record::{
    self, Attribution, Capture, CaptureMode, Congestion, EventLog, Ladder, MessageTable, Peaks, Pressure, QueueTable,
    RateTable, SummaryInput,
};
use crate::scenario::{Plan, quantity};
use crate::trace::{Event, Names, Sink};

/// What is recorded.
#[derive(Debug, clap::Args)]
#[group(skip)]
#[allow(rustdoc::invalid_html_tags, reason = "clap shows these lines in a terminal as they stand")]
pub struct Options {
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
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum CaptureChoice {
    Off,
    /// The first 96 octets of each frame.
    Headers,
    Full,
}

impl Options {
    /// Refuses ports that there are not.
    pub fn check(&self, names: &Names) -> Result<(), Failure> {
        let known: Vec<_> = names.nodes.iter().flat_map(|node| &node.ports).map(|port| port.name.as_str()).collect();
        match self.capture_ports.iter().find(|port| !known.contains(&port.as_str())) {
            Some(port) => {
                Err(Failure::input(format!("--capture-ports: no port `{port}`; there are {}", known.join(", "))))
            }
            None => Ok(()),
        }
    }
}

/// The sinks of a run.
pub struct Records {
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
    pub fn open(options: &Options, plan: &Plan, names: &Names, outputs: &Outputs) -> Result<Self, Failure> {
        let failed = |error: io::Error| Failure::unwritable(outputs.dir(), &error);
        let mode = match options.capture {
            CaptureChoice::Off => None,
            CaptureChoice::Headers => Some(CaptureMode::Headers),
            CaptureChoice::Full => Some(CaptureMode::Full),
        };
        let is_chosen = |node: NodeId, port: PortId| {
            let chosen = &options.capture_ports;
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
        let printed_ladder = match options.ladder {
            true => Some(Ladder::new(Stdout, names, &links).map_err(failed)?),
            false => None,
        };
        Ok(Self {
            dir: outputs.dir().to_owned(),
            capture,
            messages: MessageTable::new(outputs.open(outputs::MESSAGES)?, names).map_err(failed)?,
            rates: RateTable::new(outputs.open(outputs::RATES)?, names).map_err(failed)?,
            queues: match options.queues {
                true => {
                    let output = outputs.open(outputs::QUEUES)?;
                    Some(QueueTable::new(output, names, options.queue_interval).map_err(failed)?)
                }
                false => None,
            },
            events: match options.events {
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

    pub fn outputs_dir(&self) -> &Path {
        &self.dir
    }

    /// Completes every file, and prints the digest if a wall time is given.
    pub fn close(
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
