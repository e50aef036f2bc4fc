//! `rocemu show`: the ladder of a run that is over.

use std::fs::File;
use std::io::{self, BufRead, BufReader, BufWriter, Write};
use std::path::PathBuf;

use super::terminal::{Stdout, is_lost};
use super::{Failure, Status, outputs};
use crate::base::Span;
use crate::scenario::quantity;

/// Show the packet ladder of a run: one line per frame between two nodes, with what the emulator decided.
#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// The output directory of a run.
    #[arg(value_name = "DIR")]
    dir: PathBuf,
    /// Show nothing before this emulated time, such as 20us.
    #[arg(long, value_name = "TIME", value_parser = quantity::parse_span, allow_hyphen_values = true)]
    from: Option<Span>,
    /// Show nothing after this emulated time.
    #[arg(long, value_name = "TIME", value_parser = quantity::parse_span, allow_hyphen_values = true)]
    until: Option<Span>,
    /// Show only lines with something to say: drops, retransmissions, NAKs, pauses, faults.
    #[arg(long)]
    notable: bool,
}

pub fn show(arguments: &Arguments) -> Result<Status, Failure> {
    if let (Some(from), Some(until)) = (arguments.from, arguments.until)
        && from > until
    {
        return Err(Failure::input(format!(
            "nothing lies between --from {from} and --until {until}: turn them around"
        )));
    }
    let path = arguments.dir.join(outputs::LADDER);
    let file = File::open(&path).map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => Failure::input(format!(
            "{}: no {} there; `rocemu run` writes it unless told `--capture off`",
            arguments.dir.display(),
            outputs::LADDER
        )),
        _ => Failure::unreadable(&path, &error),
    })?;
    let unwritable = |error: io::Error| Failure::environment(error.to_string());
    let mut out = BufWriter::new(Stdout);
    for (number, line) in BufReader::new(file).lines().enumerate() {
        let line = line.map_err(|error| Failure::unreadable(&path, &error))?;
        if is_lost() {
            break;
        }
        // The first line names the columns.
        if number == 0 || arguments.shows(&line) {
            writeln!(out, "{line}").map_err(unwritable)?;
        }
    }
    out.flush().map_err(unwritable)?;
    Ok(Status::AllWell)
}

impl Arguments {
    fn shows(&self, line: &str) -> bool {
        let at = time_of(line);
        let after = self.from.is_none_or(|from| at.is_none_or(|at| at >= from));
        let before = self.until.is_none_or(|until| at.is_none_or(|at| at <= until));
        after && before && (!self.notable || is_notable(line))
    }
}

/// The time at the start of a line of the ladder.
pub fn time_of(line: &str) -> Option<Span> {
    let (ns, ps) = line.split_whitespace().next()?.split_once('.')?;
    Some(Span::from_ps(ns.parse::<u64>().ok()?.checked_mul(1_000)?.checked_add(ps.parse().ok()?)?))
}

/// A note, a control frame other than an ACK, or a frame with a remark behind its queue pair.
fn is_notable(line: &str) -> bool {
    let mut parts = line.splitn(3, '|');
    let (Some(_), Some(arrow), Some(behind)) = (parts.next(), parts.next(), parts.next()) else { return true };
    let is_rare = ["NAK", "XOFF", "XON", "CNP", "frame"].iter().any(|kind| arrow.contains(kind));
    // Behind the arrow stand the node and its queue pair.
    is_rare || behind.split_whitespace().count() > 2
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_a_ladder_have_a_time_and_sometimes_something_to_say() {
        let plain = "   233.924  a |--WRITE 0-------------->| b        2";
        assert_eq!(time_of(plain), Some(Span::from_ps(233_924)));
        assert!(!is_notable(plain));
        assert!(is_notable("   753.448  a |--WRITE 0-------------->| b        2  retransmission 1"));
        assert!(is_notable("   419.524  a |<----------------NAK 0--| b        2"));
        assert_eq!(time_of("        ns      frame"), None);
    }
}
