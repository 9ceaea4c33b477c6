//! The `moorline` binary: arguments in, exit code out.

use std::process::ExitCode;

/// The C library of the static binary takes one lock for all threads; this allocator does not.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    moorline::cli::run(std::env::args_os())
}
