//! The library for test authors: a scenario is built, run and asserted on in a few lines.

use std::io;
use std::ops::ControlFlow;
use std::path::Path;

use crate::base::{MessageId, NodeId, Span};
use crate::engine::{Applications, Engine, MemoryWires, Outcome, Progress, RunError, Shortcoming, Wires};
use crate::io::VethWires;
use crate::netns;
use crate::record::{Ladder, MessageRow, MessageRows};
use crate::scenario::{self, Diagnostics, Plan};
use crate::trace::{Event, Names, NodeCounters, Sink};

/// A scenario that can be run.
///
/// It is what a scenario file says; [`Scenario::with`] adds to it in the same language, so that nothing a file can do is
/// out of reach.
///
/// ```
/// use rocemu::Scenario;
///
/// let run = Scenario::pair()
///     .write("a", "b", "1MiB")
///     .with(r#"
///         [[faults]]
///         from = "a"
///         to = "b"
///         match = { packet = 100, transmission = 1 }
///         action = "drop"
///     "#)
///     .run_in_memory()?;
///
/// run.assert_all_well();
/// assert_eq!(run.counters("b").num_nacks_sent, 1);
/// assert!(run.ladder().contains("NAK 100"));
/// # Ok::<(), rocemu::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Scenario {
    file_name: String,
    text: String,
}

/// Why a scenario could not be run.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("{}", .0.render(false))]
    Scenario(#[from] Diagnostics),
    #[error(transparent)]
    File(#[from] io::Error),
    #[error(transparent)]
    Namespaces(#[from] netns::Error),
    #[error(transparent)]
    Run(#[from] RunError),
}

/// A scenario that has been run.
#[derive(Debug)]
pub struct Run {
    plan: Plan,
    names: Names,
    outcome: Outcome,
    events: Vec<Event>,
    messages: MessageRows,
}

impl Scenario {
    /// Two NICs, `a` and `b`, joined by a link; every attribute at its default, nothing posted.
    pub fn pair() -> Self {
        Self::from_toml("[nodes.a]\n[nodes.b]\n[[links]]\nends = [\"a\", \"b\"]\n")
    }

    /// A scenario in the language of scenario files.
    pub fn from_toml(text: impl Into<String>) -> Self {
        Self { file_name: "scenario".into(), text: text.into() }
    }

    /// * Errors: the file cannot be read, or is not UTF-8.
    pub fn from_file(path: impl AsRef<Path>) -> Result<Self, Error> {
        let path = path.as_ref();
        Ok(Self { file_name: path.display().to_string(), text: std::fs::read_to_string(path)? })
    }

    /// Adds tables to the scenario.
    pub fn with(mut self, toml: &str) -> Self {
        self.text.push('\n');
        self.text.push_str(toml);
        self.text.push('\n');
        self
    }

    /// Posts one WRITE of `size` (such as `1MiB`) at time 0, on the connection that such posts share.
    pub fn write(self, from: &str, to: &str, size: &str) -> Self {
        self.post("write", from, to, size)
    }

    /// Posts one SEND, like [`Scenario::write`].
    pub fn send(self, from: &str, to: &str, size: &str) -> Self {
        self.post("send", from, to, size)
    }

    fn post(self, verb: &str, from: &str, to: &str, size: &str) -> Self {
        let quoted = |text: &str| format!("{text:?}");
        let (from, to, size) = (quoted(from), quoted(to), quoted(size));
        self.with(&format!("[[posts]]\nverb = \"{verb}\"\nfrom = {from}\nto = {to}\nsize = {size}"))
    }

    /// The complete plan.
    ///
    /// * Errors: everything that is wrong with the scenario, at once.
    pub fn plan(&self) -> Result<Plan, Error> {
        Ok(scenario::parse(&self.file_name, &self.text)?.plan)
    }

    /// Runs on real veth pairs between network namespaces, without root where the machine allows it.
    ///
    /// * Errors: as [`Scenario::plan`]; the machine cannot make namespaces (the error says what is missing); the run
    ///   could not be carried through. That a run ended badly is no error: ask [`Run::shortcomings`].
    pub fn run(&self) -> Result<Run, Error> {
        let plan = self.plan()?;
        let mut wires = VethWires::for_plan(&plan, &netns::Options::default())?;
        Run::new(plan, &mut wires)
    }

    /// Runs the same model without sockets: the same results to the last octet, no namespaces.
    ///
    /// * Errors: as [`Scenario::run`], but for the machine.
    pub fn run_in_memory(&self) -> Result<Run, Error> {
        Run::new(self.plan()?, &mut MemoryWires::default())
    }
}

impl Run {
    fn new(plan: Plan, wires: &mut dyn Wires) -> Result<Self, Error> {
        Self::watched(plan, wires, &mut |_| ControlFlow::Continue(()))
    }

    /// * `look` is called now and then, and may stop the run.
    pub(crate) fn watched(
        plan: Plan,
        wires: &mut dyn Wires,
        look: &mut dyn FnMut(&Progress) -> ControlFlow<()>,
    ) -> Result<Self, Error> {
        let mut log = Log::default();
        let outcome = Engine::new(&plan, wires).run(&mut log, look)?;
        Ok(Self::of(plan, outcome, log))
    }

    pub(crate) fn serving(
        plan: Plan,
        wires: &mut dyn Wires,
        applications: &mut dyn Applications,
    ) -> Result<Self, Error> {
        let mut log = Log::default();
        let look = &mut |_: &Progress| ControlFlow::Continue(());
        let outcome = Engine::new(&plan, wires).serve(applications).run(&mut log, look)?;
        Ok(Self::of(plan, outcome, log))
    }

    fn of(plan: Plan, outcome: Outcome, log: Log) -> Self {
        Self { names: plan.names(), plan, outcome, events: log.events, messages: log.messages }
    }

    /// Everything in which the run fell short of its scenario, for people; empty if all is well.
    pub fn shortcomings(&self) -> Vec<Shortcoming> {
        self.outcome.shortcomings(&self.plan)
    }

    /// * Panics: if the run fell short of its scenario, with the reasons and the ladder.
    #[track_caller]
    pub fn assert_all_well(&self) {
        let shortcomings = self.shortcomings();
        assert!(
            shortcomings.is_empty(),
            "{}\n{}",
            shortcomings.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n"),
            self.ladder()
        );
    }

    /// What one node counted.
    ///
    /// * Panics: if the scenario has no such node.
    #[track_caller]
    pub fn counters(&self, node: &str) -> &NodeCounters {
        self.outcome.counters.node(self.node(node))
    }

    /// What became of a message, by its number in file order; `None` if it was not posted.
    pub fn message(&self, message: u32) -> Option<&MessageRow> {
        self.messages.get(MessageId(message))
    }

    /// From post to completion of a message, by its number in file order; `None` if it did not complete.
    pub fn completion_time(&self, message: u32) -> Option<Span> {
        self.message(message)?.completion_time()
    }

    /// From post to delivery of a message; `None` if it was not delivered.
    pub fn delivery_time(&self, message: u32) -> Option<Span> {
        let row = self.message(message)?;
        Some(row.delivered?.since(row.posted))
    }

    /// Everything that happened, in its order.
    pub fn events(&self) -> &[Event] {
        &self.events
    }

    /// The packet ladder: one line per frame, with what the emulator decided. Fit for snapshots.
    pub fn ladder(&self) -> String {
        let draw = || {
            let mut ladder = Ladder::new(Vec::new(), &self.names, &self.plan.link_ends())?;
            self.events.iter().try_for_each(|event| ladder.record(event))?;
            ladder.finish()
        };
        draw().map_or_else(|error| error.to_string(), |text| String::from_utf8_lossy(&text).into_owned())
    }

    pub fn outcome(&self) -> &Outcome {
        &self.outcome
    }

    pub fn plan(&self) -> &Plan {
        &self.plan
    }

    #[track_caller]
    fn node(&self, name: &str) -> NodeId {
        let index = self.names.nodes.iter().position(|node| node.name == name);
        NodeId(index.unwrap_or_else(|| panic!("the scenario has no node `{name}`")) as u16)
    }
}

/// Keeps everything: for scenarios of the size of a test.
#[derive(Default)]
struct Log {
    events: Vec<Event>,
    messages: MessageRows,
}

impl Sink for Log {
    fn record(&mut self, event: &Event) -> io::Result<()> {
        self.messages.hear(event);
        self.events.push(event.clone());
        Ok(())
    }
}
