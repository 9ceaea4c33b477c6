//! `moorline fence`: the hidden verb with which the daemon starts helm in isolation.

use std::ffi::OsString;
use std::process::ExitCode;

use clap::Args;

use super::Streams;
use crate::helm::fence::{self, Strength};

/// Become a program that has less than this one
#[derive(Debug, Args)]
pub(super) struct Arguments {
    /// Only say which walls stand on this machine
    #[arg(long)]
    walls: bool,

    /// Do not become it where a wall is missing
    #[arg(long)]
    required: bool,

    /// The program and its arguments
    #[arg(last = true)]
    program: Vec<OsString>,
}

/// The second step of it
#[derive(Debug, Args)]
pub(super) struct Inside {
    /// Do not become it where a wall is missing
    #[arg(long)]
    required: bool,

    /// The program and its arguments
    #[arg(last = true)]
    program: Vec<OsString>,
}

pub(super) fn run(arguments: &Arguments, streams: &mut Streams<'_>) -> ExitCode {
    if arguments.walls {
        let said = writeln!(streams.data, "{}", fence::walls()).and_then(|()| streams.data.flush());
        return if said.is_ok() { ExitCode::SUCCESS } else { ExitCode::FAILURE };
    }
    code(fence::enter(&arguments.program, strength(arguments.required)))
}

pub(super) fn inside(arguments: &Inside) -> ExitCode {
    code(fence::inside(&arguments.program, strength(arguments.required)))
}

fn strength(required: bool) -> Strength {
    if required { Strength::Required } else { Strength::BestEffort }
}

fn code(code: i32) -> ExitCode {
    u8::try_from(code).map_or(ExitCode::FAILURE, ExitCode::from)
}
