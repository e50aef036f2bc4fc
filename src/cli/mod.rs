//! The command line: arguments, progress, exit codes.
//!
//! Results go to standard output, everything about the run to standard error. Exit codes are the contract of
//! [`Status`]. Nothing is decided here that the library does not decide: a run from Rust gives the same verdict.

mod applications;
mod check;
mod doctor;
mod failure;
mod outputs;
mod progress;
mod run;
mod show;
mod signals;
mod test;

use std::io::{IsTerminal, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{CommandFactory, Parser, Subcommand, ValueEnum};
use clap_complete::Shell;
use tracing_subscriber::EnvFilter;

pub use failure::{Failure, Status};

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
    /// Say more on standard error; twice for every event. RUST_LOG overrides it.
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

/// Runs the program.
pub fn main() -> ExitCode {
    let arguments = Arguments::parse();
    log_to_stderr(arguments.verbose);
    let result = match arguments.command {
        Command::Run(arguments) => run::run(&arguments),
        Command::Test(arguments) => test::test(&arguments),
        Command::Show(arguments) => show::show(&arguments),
        Command::Check(arguments) => check::check(&arguments),
        Command::Doctor(arguments) => doctor::doctor(&arguments),
        Command::Completions { shell } => {
            // It would panic on a reader who has left.
            let mut script = Vec::new();
            clap_complete::generate(shell, &mut Arguments::command(), "rocemu", &mut script);
            say(&String::from_utf8_lossy(&script));
            Ok(Status::AllWell)
        }
    };
    match result {
        Ok(status) => status.into(),
        Err(failure) => failure.report(),
    }
}

fn log_to_stderr(verbose: u8) {
    let default = ["warn", "rocemu=debug", "rocemu=trace"][usize::from(verbose.min(2))];
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new(default));
    // No clock in it: a log, too, is the same twice.
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .with_ansi(std::io::stderr().is_terminal())
        .without_time()
        .init();
}

/// Prints to standard output. Whoever reads it may have left; that is no failure.
fn say(text: &str) {
    let _ = std::io::stdout().write_all(text.as_bytes());
}

/// Reads a scenario file.
fn read_plan(path: &PathBuf) -> Result<crate::scenario::Parsed, Failure> {
    let name = path.display().to_string();
    let text = std::fs::read(path).map_err(|error| Failure::unreadable(path, &error))?;
    let text = String::from_utf8(text)
        .map_err(|_| Failure::input(format!("{name}: not UTF-8 text; a scenario is a TOML file")))?;
    crate::scenario::parse(&name, &text)
        .map_err(|diagnostics| Failure::input(diagnostics.render(std::io::stderr().is_terminal())))
}
