//! What people see: standard output, and whether there are colours.

use std::ffi::OsStr;
use std::io::{self, ErrorKind, IsTerminal, Write};
use std::sync::OnceLock;

use super::Failure;

/// The first thing that went wrong with standard output; nothing is written to it from then on.
static TROUBLE: OnceLock<io::Error> = OnceLock::new();

/// Standard output. To write to it never fails: a reader who has left is no failure, and all else is told at the end
/// by [`trouble`], when the files are safe.
#[derive(Debug)]
pub struct Stdout;

impl Write for Stdout {
    fn write(&mut self, octets: &[u8]) -> io::Result<usize> {
        attempt(|| io::stdout().write(octets)).map(|written| written.unwrap_or(octets.len()))
    }

    fn flush(&mut self) -> io::Result<()> {
        attempt(|| io::stdout().flush()).map(Option::unwrap_or_default)
    }
}

/// `None` if standard output is in trouble.
fn attempt<T>(mut action: impl FnMut() -> io::Result<T>) -> io::Result<Option<T>> {
    if is_lost() {
        return Ok(None);
    }
    match action() {
        Ok(done) => Ok(Some(done)),
        Err(error) if error.kind() == ErrorKind::Interrupted => Err(error),
        Err(error) => {
            let _ = TROUBLE.set(error);
            Ok(None)
        }
    }
}

/// Prints to standard output, at once.
pub fn say(text: &str) {
    // Neither fails.
    let _ = Stdout.write_all(text.as_bytes());
    let _ = Stdout.flush();
}

/// Nobody gets what is written from here on.
pub fn is_lost() -> bool {
    TROUBLE.get().is_some()
}

/// What kept standard output from those who still wanted it.
pub fn trouble() -> Option<Failure> {
    let error = TROUBLE.get().filter(|error| error.kind() != ErrorKind::BrokenPipe)?;
    Some(Failure::environment(format!("cannot write to standard output: {error}")))
}

/// Whether standard error may have colours and moving bars: a terminal that can show them, and nobody who minds.
///
/// * Source: no-color.org.
pub fn has_colours() -> bool {
    let variable = |name| std::env::var_os(name).unwrap_or_default();
    io::stderr().is_terminal() && variable("NO_COLOR").is_empty() && variable("TERM") != OsStr::new("dumb")
}
