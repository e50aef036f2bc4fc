//! How the program ends.

use std::io;
use std::path::Path;
use std::process::ExitCode;

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
}

impl From<Status> for ExitCode {
    fn from(status: Status) -> Self {
        Self::from(status as u8)
    }
}

impl Failure {
    pub fn input(message: impl Into<String>) -> Self {
        Self { status: Status::BadInput, message: message.into() }
    }

    pub fn environment(message: impl Into<String>) -> Self {
        Self { status: Status::Environment, message: message.into() }
    }

    /// The emulator found a fault in itself; the run proves nothing.
    pub fn fault_of_ours(message: impl Into<String>) -> Self {
        Self { status: Status::Failed, message: message.into() }
    }

    /// A file that was named as input cannot be read.
    pub fn unreadable(path: &Path, error: &io::Error) -> Self {
        let message = format!("{}: {error}", path.display());
        match error.kind() {
            io::ErrorKind::NotFound | io::ErrorKind::IsADirectory => Self::input(message),
            _ => Self::environment(message),
        }
    }

    /// An output cannot be written.
    pub fn unwritable(path: &Path, error: &io::Error) -> Self {
        let help = match error.kind() {
            io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => {
                "; choose another place with --out DIR"
            }
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
                "; free some space, choose another place with --out DIR, or keep less with --capture headers"
            }
            _ => "",
        };
        Self::environment(format!("cannot write {}: {error}{help}", path.display()))
    }

    pub fn report(self) -> ExitCode {
        // Diagnostics bring their own "error:".
        let prefix =
            if self.message.starts_with("error") || self.message.starts_with('\u{1b}') { "" } else { "error: " };
        eprintln!("{prefix}{}", self.message.trim_end());
        self.status.into()
    }
}
