//! The command line: arguments, progress, exit codes.
//!
//! Results go to standard output, everything about the run to standard error. Exit codes are the contract of
//! [`Status`]. Nothing is decided here that the library does not decide: a run from Rust gives the same verdict.

mod applications;
mod check;
mod doctor;
mod explain;
mod failure;
mod outputs;
mod processes;
mod progress;
mod records;
mod run;
mod show;
mod signals;
mod terminal;
mod test;

use std::io::{self, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{CommandFactory, Parser, Subcommand, ValueEnum};
use clap_complete::Shell;
use nix::sys::signal::{SigSet, Signal};
use tracing_subscriber::EnvFilter;

pub use failure::{Failure, Status};
use terminal::say;

/// An RDMA NIC you can run, watch and break, without owning one.
///
/// rocemu runs RoCEv2 NICs in network namespaces of its own, lets them exchange real frames over veth pairs on a virtual
/// clock, and leaves a capture that Wireshark reads. It needs no root.
#[derive(Debug, Parser)]
#[command(version, arg_required_else_help = true, max_term_width = 100)]
#[command(after_help = "Start here:  rocemu run netns/pair.toml\n\n\
    Exit codes: 0 all well, 1 an expectation failed or work is unfinished, 2 bad input, 3 the environment \
    (permission, kernel, disk), 130 interrupted.")]
struct Arguments {
    /// Say on standard error what is done and where; twice: every event of a run. RUST_LOG overrides it.
    #[arg(short, long, global = true, action = clap::ArgAction::Count)]
    verbose: u8,
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Run(run::Arguments),
    Test(test::Arguments),
    Show(show::Arguments),
    Check(check::Arguments),
    Explain(explain::Arguments),
    Doctor(doctor::Arguments),
    /// Print a completion script for your shell.
    Completions {
        shell: Shell,
    },
}

/// What frames cross between two NICs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum WiresKind {
    /// Real veth pairs between network namespaces.
    Veth,
    /// Memory: the same model and the same results, no sockets.
    Memory,
}

impl WiresKind {
    const fn text(self) -> &'static str {
        match self {
            Self::Veth => "over veth pairs",
            Self::Memory => "over memory",
        }
    }
}

/// Runs the program.
pub fn main() -> ExitCode {
    report_panics();
    // Where files may not grow any more, a write says so instead.
    let _ = SigSet::from(Signal::SIGXFSZ).thread_block();
    let arguments = match Arguments::try_parse() {
        Ok(arguments) => arguments,
        Err(shown) => return end(show_help(&shown)),
    };
    log_to_stderr(arguments.verbose);
    let result = match arguments.command {
        Command::Run(arguments) => run::run(&arguments),
        Command::Test(arguments) => test::test(&arguments),
        Command::Show(arguments) => show::show(&arguments),
        Command::Check(arguments) => check::check(&arguments),
        Command::Explain(arguments) => explain::explain(&arguments),
        Command::Doctor(arguments) => doctor::doctor(&arguments),
        Command::Completions { shell } => {
            // It would panic on a reader who has left.
            let mut script = Vec::new();
            clap_complete::generate(shell, &mut Arguments::command(), "rocemu", &mut script);
            say(&String::from_utf8_lossy(&script));
            Ok(Status::AllWell)
        }
    };
    end(result)
}

/// The exit code; says why if all is not well.
fn end(result: Result<Status, Failure>) -> ExitCode {
    let status = result.unwrap_or_else(Failure::report);
    match terminal::trouble() {
        Some(trouble) if status != Status::Interrupted => trouble.report().into(),
        _ => status.into(),
    }
}

/// Help, the version, or what is wrong with the arguments.
fn show_help(shown: &clap::Error) -> Result<Status, Failure> {
    let printed = shown.print().and_then(|()| io::stdout().flush());
    match printed {
        Err(error) if !shown.use_stderr() && error.kind() != io::ErrorKind::BrokenPipe => {
            Err(Failure::environment(format!("cannot write to standard output: {error}")))
        }
        _ if shown.exit_code() == 0 => Ok(Status::AllWell),
        _ => Ok(Status::BadInput),
    }
}

/// A panic is a fault of the emulator: whoever meets it learns what to do with it, and no more unless asked for.
fn report_panics() {
    let usual = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        if std::env::var_os("RUST_BACKTRACE").is_some() {
            usual(panic);
        } else {
            let place = panic.location().map(|at| format!(" ({}:{})", at.file(), at.line())).unwrap_or_default();
            let message = panic.payload_as_str().unwrap_or("no reason given");
            eprintln!("error: the emulator has a fault: {message}{place}");
        }
        eprintln!(
            "Please report this with the scenario and the version, {}; RUST_BACKTRACE=1 tells more.",
            env!("CARGO_PKG_VERSION")
        );
    }));
}

fn log_to_stderr(verbose: u8) {
    let default = ["warn", "rocemu=debug", "rocemu=trace"][usize::from(verbose.min(2))];
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new(default));
    // No clock in it: a log, too, is the same twice.
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(io::stderr)
        .with_ansi(terminal::has_colours())
        .without_time()
        .init();
}

/// Reads a scenario file.
fn read_plan(path: &PathBuf) -> Result<crate::scenario::Parsed, Failure> {
    let name = path.display().to_string();
    let text = std::fs::read(path).map_err(|error| Failure::unreadable(path, &error))?;
    let text = String::from_utf8(text)
        .map_err(|_| Failure::input(format!("{name}: not UTF-8 text; a scenario is a TOML file")))?;
    crate::scenario::parse(&name, &text).map_err(|diagnostics| Failure::refused(&diagnostics))
}
