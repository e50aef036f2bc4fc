//! The command line program; see `rocemu::cli`.

use std::process::ExitCode;

fn main() -> ExitCode {
    rocemu::cli::main()
}
