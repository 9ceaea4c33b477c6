//! The `moorline` binary: arguments in, exit code out.

use std::process::ExitCode;

fn main() -> ExitCode {
    moorline::cli::run(std::env::args_os())
}
