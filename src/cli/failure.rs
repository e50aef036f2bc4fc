//! How the program ends.

use std::io;
use std::path::Path;
use std::process::ExitCode;

use super::terminal;
use crate::scenario::Diagnostics;

/// The exit code.
///
/// * Source: interface.md "Outputs".
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    AllWell = 0,
    /// An expectation failed, work is unfinished, a lossless class lost a frame.
    Failed = 1,
    /// A scenario or an argument that cannot be used.
    BadInput = 2,
    /// Permission, kernel, disk.
    Environment = 3,
    /// 128 + SIGINT.
    Interrupted = 130,
}

/// Why the program did not do what it was asked to do.
#[derive(Debug)]
pub struct Failure {
    status: Status,
    /// For people; says what to do.
    message: String,
    /// Whether every remark in the message says itself whether it is an error.
    is_labelled: bool,
}

impl From<Status> for ExitCode {
    fn from(status: Status) -> Self {
        Self::from(status as u8)
    }
}

impl Failure {
    fn new(status: Status, message: impl Into<String>) -> Self {
        Self { status, message: message.into(), is_labelled: false }
    }

    pub fn input(message: impl Into<String>) -> Self {
        Self::new(Status::BadInput, message)
    }

    pub fn environment(message: impl Into<String>) -> Self {
        Self::new(Status::Environment, message)
    }

    /// A file that is no scenario, or no script.
    pub fn refused(diagnostics: &Diagnostics) -> Self {
        Self { is_labelled: true, ..Self::input(diagnostics.render(terminal::has_colours())) }
    }

    /// The emulator found a fault in itself; the run proves nothing.
    pub fn fault_of_ours(message: impl Into<String>) -> Self {
        Self::new(Status::Failed, message)
    }

    /// A file that was named as input cannot be read.
    pub fn unreadable(path: &Path, error: &io::Error) -> Self {
        let message = format!("{}: {error}", path.display());
        match error.kind() {
            io::ErrorKind::NotFound | io::ErrorKind::IsADirectory => Self::input(message),
            _ => Self::environment(message),
        }
    }

    /// A file cannot be written that has a place of its own.
    pub fn unwritable_at(path: &Path, error: &io::Error) -> Self {
        Self::environment(format!("cannot write {}: {error}", path.display()))
    }

    /// An output of a run cannot be written.
    pub fn unwritable(path: &Path, error: &io::Error) -> Self {
        let help = match error.kind() {
            io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => {
                "; choose another place with --out DIR"
            }
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
                "; free some space, choose another place with --out DIR, or keep less with --capture headers"
            }
            io::ErrorKind::FileTooLarge => "; raise the limit (ulimit -f), or keep less with --capture headers",
            _ => "",
        };
        Self::environment(format!("cannot write {}: {error}{help}", path.display()))
    }

    pub fn report(self) -> Status {
        let prefix = if self.is_labelled { "" } else { "error: " };
        eprintln!("{prefix}{}", self.message.trim_end());
        self.status
    }
}
