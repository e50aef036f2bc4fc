//! Scenario files: text in, a validated and complete [`Plan`] out.
//!
//! A plan can be run as it stands: every attribute has a value, every name is resolved, and what could never work is
//! refused here. Refusals are [`Diagnostics`]: all errors of a file at once, each with its line, its column and what
//! would be right. Nothing here touches a file; the text is handed in.
//!
//! ```text
//! text ─ toml ─► document ─► attributes, settings ─► network ─► traffic ─► faults ─► check ─► Plan
//!                    └───────────┴──── values ────────┴──────────┴──────────┴─────────┴──► Diagnostics
//! ```
//!
//! Read first: `tests/scenario_files.rs::a_minimal_file_is_complete`, `…::several_errors_are_reported_together`.

mod applications;
mod attributes;
mod catalogue;
mod check;
mod check_switch;
mod components;
mod congestion_catalogue;
mod diagnostics;
mod document;
mod ends;
pub mod expect;
mod fan;
mod faults;
mod injection;
mod links;
pub mod lumina;
mod matching;
mod network;
mod passage;
mod per_class;
mod plan;
pub mod quantity;
pub mod reference;
mod routes;
mod settings;
mod switch_catalogue;
mod topology;
mod traffic;
mod values;
mod wqe;

use toml::de::DeTable;

use crate::base::{Instant, Span};
use attributes::Owner;
use diagnostics::Report;
use document::{Entry, Table};
use expect::Expectation;
use matching::Scene;
use network::Network;
use traffic::Traffic;

pub use attributes::{Attribute, attributes};
pub use diagnostics::{Diagnostic, Diagnostics, Severity};
pub use plan::{
    ApplicationPlan, FaultKind, FaultPlan, LinkEnd, LinkPlan, NicPlan, Plan, PostPlan, QueuePairEnd, QueuePairPlan,
    Records, SwitchPlan,
};

/// Larger files are refused before they are read.
const TEXT_MAX: usize = 4 << 20;
/// The name is a directory; with its path it has to stay within what file systems allow.
const NAME_MAX: usize = 64;
/// `[run] until` when it is left out (timing rule 34).
const UNTIL: Span = Span::from_secs(10);
const SEED: u64 = 1;

/// A scenario that can run, and what its author may want to know.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Parsed {
    pub plan: Plan,
    /// Only warnings.
    pub warnings: Diagnostics,
}

/// Reads a scenario file.
///
/// * Shape: `file_name` is for messages, and its stem is the scenario's name if the file gives none.
/// * Errors: every refusal of the file, and its warnings with them.
/// * Panics: never, whatever the text is.
/// * Cost: grows with the text, which has at most 4 MiB.
pub fn parse(file_name: &str, text: &str) -> Result<Parsed, Diagnostics> {
    let mut report = Report::default();
    let plan = read(file_name, text, &mut report);
    let has_errors = report.has_errors();
    match plan {
        Some(plan) if !has_errors => Ok(Parsed { plan, warnings: report.finish(file_name, text) }),
        _ => Err(report.finish(file_name, text)),
    }
}

fn read(file_name: &str, text: &str, report: &mut Report) -> Option<Plan> {
    if text.len() > TEXT_MAX {
        report.push(
            Diagnostic::error(0..0, format!("the file has {} B, more than {TEXT_MAX}", text.len()))
                .label("too large")
                .help("say more with less: `count` and `every` repeat posts, [nic] holds for every node"),
        );
        return None;
    }
    let (document, errors) = DeTable::parse_recoverable(text);
    for (index, error) in errors.iter().enumerate() {
        if report.is_full() {
            report.omit(errors.len() - index);
            break;
        }
        let span = error.span().unwrap_or(text.len()..text.len());
        let (label, help) = match error.message() {
            "duplicate key" => ("given a second time", "give each key and each [table] once; [[tables]] can repeat"),
            _ => {
                ("not TOML", "a scenario is a TOML file: [tables] with `key = value` lines, strings in quotation marks")
            }
        };
        report.push(Diagnostic::error(span, error.message().to_owned()).label(label).help(help));
    }
    if !errors.is_empty() {
        // What is left of the document would only lead to conclusions that mislead.
        return None;
    }
    let mut root = Table::new(document.get_ref(), 0..0, "the scenario");
    let scenario = Scenario::read(&mut root, file_name, report);
    let run = read_run(&mut root, report);
    let until = run.until;
    // Without nodes, what is said about them would only be refused as well.
    let network = Network::read(&mut root, report)?;
    let traffic = Traffic::read(&mut root, &network, until, report);
    let applications = applications::read(&mut root, &network, until, report);
    let scene = Scene::new(&network, &traffic, until, !applications.is_empty());
    let faults = faults::read(&mut root, &scene, report);
    let expectations = expect::read(&mut root, &scene, &faults, report);
    root.finish(|name| attributes::table_of(name, Owner::Scenario), report);
    check::all(&network, &traffic, report);
    let is_idle = traffic.posts.is_empty() && applications.is_empty() && faults.is_empty() && expectations.is_empty();
    if is_idle && !report.has_errors() {
        report.push(
            Diagnostic::warning(0..0, "this scenario posts nothing and expects nothing: it passes whatever happens")
                .label("nothing to do")
                .help("describe what is sent under [[posts]], and what must come of it under [[expect]]"),
        );
    }
    Some(assemble(scenario, run, network, traffic, applications, faults, expectations))
}

/// The table `[scenario]`.
struct Scenario {
    name: String,
    description: String,
    seed: u64,
}

impl Scenario {
    fn read(root: &mut Table<'_>, file_name: &str, report: &mut Report) -> Self {
        let mut scenario = Self { name: stem(file_name), description: String::new(), seed: SEED };
        let Some(mut table) = root.take("scenario").and_then(|entry| Table::read(&entry, "[scenario]", report)) else {
            return scenario;
        };
        if let Some(entry) = table.take("name")
            && let Some(name) = values::string(&entry, report)
            && let Some(name) = values::identifier("a scenario", name, entry.value.span(), NAME_MAX, true, report)
        {
            scenario.name = name.to_owned();
        }
        if let Some(entry) = table.take("description")
            && let Some(description) = values::string(&entry, report)
        {
            scenario.description = description.to_owned();
        }
        if let Some(entry) = table.take("seed")
            && let Some(seed) = values::whole(&entry, 0, u64::MAX, report)
        {
            scenario.seed = seed;
        }
        table.finish(|_| None, report);
        scenario
    }
}

/// The file's name without directories and extension, made safe to be one path component.
fn stem(file_name: &str) -> String {
    let base = file_name.rsplit(['/', '\\']).next().unwrap_or_default();
    let stem = base.rsplit_once('.').map_or(base, |(stem, _)| if stem.is_empty() { base } else { stem });
    let safe: String = stem
        .chars()
        .map(|c| if c.is_ascii_alphanumeric() || c == '_' || c == '.' { c } else { '-' })
        .skip_while(|c| !c.is_ascii_alphanumeric())
        .take(NAME_MAX)
        .collect();
    if safe.is_empty() { "scenario".to_owned() } else { safe }
}

/// The table `[run]`.
/// What the table `[run]` says.
struct RunSettings {
    until: Instant,
    allow_lossless_drops: bool,
    records: Records,
}

fn read_run(root: &mut Table<'_>, report: &mut Report) -> RunSettings {
    let mut until = UNTIL;
    let mut allow_lossless_drops = false;
    let mut settings = attributes::Settings::default();
    if let Some(mut table) = root.take("run").and_then(|entry| Table::read(&entry, "[run]", report)) {
        if let Some(entry) = table.take("until") {
            // If it is refused, no post is refused for coming after it.
            until = read_until(&entry, report).unwrap_or(Span::from_ps(u64::MAX));
        }
        if let Some(entry) = table.take("allow_lossless_drops") {
            allow_lossless_drops = values::boolean(&entry, report).unwrap_or(false);
        }
        settings::apply_among(&components::RUN, &mut table, &mut settings, report);
        table.finish(|name| attributes::table_of(name, Owner::Scenario), report);
    }
    RunSettings { until: Instant::ZERO + until, allow_lossless_drops, records: settings.records }
}

fn read_until(entry: &Entry<'_>, report: &mut Report) -> Option<Span> {
    let span = values::span(entry, report)?;
    if span == Span::ZERO {
        report.push(
            Diagnostic::error(entry.value.span(), "a run that ends at 0 does nothing")
                .label("zero")
                .help("write how long it may take at most, in emulated time: until = \"10s\""),
        );
        return None;
    }
    Some(span)
}

fn assemble(
    scenario: Scenario,
    run: RunSettings,
    network: Network,
    traffic: Traffic,
    applications: Vec<ApplicationPlan>,
    faults: Vec<FaultPlan>,
    expectations: Vec<Expectation>,
) -> Plan {
    let RunSettings { until, allow_lossless_drops, mut records } = run;
    let buffer_stats = network.nodes.iter().enumerate().filter(|(_, node)| node.settings.buffer_stats);
    records.net_buff_stats_nics = buffer_stats.map(|(index, _)| network::node_id(index)).collect();
    let (nics, switches, links) = network.into_plans(scenario.seed);
    Plan {
        name: scenario.name,
        description: scenario.description,
        seed: scenario.seed,
        until,
        allow_lossless_drops,
        nics,
        switches,
        links,
        queue_pairs: traffic.queue_pairs.into_iter().map(|queue_pair| queue_pair.plan).collect(),
        posts: traffic.posts,
        applications,
        faults,
        expectations,
        records,
    }
}
