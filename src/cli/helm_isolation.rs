//! `moorline fence`: the hidden verb with which the daemon starts helm in isolation.

use std::ffi::OsString;
use std::process::ExitCode;

use clap::Args;

use super::Streams;
use crate::helm::isolation;
use crate::helm::isolation::IsolationLevel;

/// Run a program in isolation
#[derive(Debug, Args)]
pub(super) struct FenceArgs {
    /// Only print the protections that this machine supports
    #[arg(long)]
    walls: bool,

    /// Fail if a required protection is missing
    #[arg(long)]
    required: bool,

    /// The program and its arguments
    #[arg(last = true)]
    program: Vec<OsString>,
}

/// Second step of the isolation
#[derive(Debug, Args)]
pub(super) struct FenceInsideArgs {
    /// Fail if a required protection is missing
    #[arg(long)]
    required: bool,

    /// The program and its arguments
    #[arg(last = true)]
    program: Vec<OsString>,
}

pub(super) fn run(arguments: &FenceArgs, streams: &mut Streams<'_>) -> ExitCode {
    if arguments.walls {
        let said =
            writeln!(streams.data, "{}", isolation::probe_protections()).and_then(|()| streams.data.flush());
        return if said.is_ok() { ExitCode::SUCCESS } else { ExitCode::FAILURE };
    }
    code(isolation::run_isolated(&arguments.program, strength(arguments.required)))
}

pub(super) fn run_inside(arguments: &FenceInsideArgs) -> ExitCode {
    code(isolation::run_restricted(&arguments.program, strength(arguments.required)))
}

fn strength(required: bool) -> IsolationLevel {
    if required { IsolationLevel::Required } else { IsolationLevel::BestEffort }
}

fn code(code: i32) -> ExitCode {
    u8::try_from(code).map_or(ExitCode::FAILURE, ExitCode::from)
}
