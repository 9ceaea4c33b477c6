//! The whole loop against a real control plane: the time, CPU time, memory and requests that it
//! takes to bring a commit to a cluster and to keep it there. `cargo bench --bench loop -- [row...]
//! [--objects N] [--rounds N]` prints a line of JSON for each row on standard output, and a table
//! with the limits on standard error.
//!
//! The API server limits the speed of any such tool, so the first sync is compared with the floor:
//! a bare loop of server-side applies of the same objects. Everything runs on loopback and shares
//! the CPUs; the control plane needs more of them than the daemon.

#[path = "loop"]
mod parts {
    pub(crate) mod arguments;
    pub(crate) mod beside;
    pub(crate) mod first;
    pub(crate) mod floor;
    pub(crate) mod ground;
    pub(crate) mod many;
    pub(crate) mod restart;
    pub(crate) mod settled;
    pub(crate) mod steady;
    pub(crate) mod tail;
    pub(crate) mod usage;
    pub(crate) mod verdict;
    pub(crate) mod workload;
}

use std::path::Path;
use std::process::ExitCode;

use parts::arguments::Arguments;
use parts::first::{Plan, first, sync};
use parts::ground::BenchEnvironment;
use parts::verdict::{Row, print_table};
use parts::{beside, many, restart, steady};

/// Limits of the peak memory for 1,000 and for 10,000 objects, in millions of bytes.
const MEMORY: (f64, f64) = (40.0, 90.0);

#[tokio::main]
async fn main() -> ExitCode {
    let arguments = match Arguments::read(std::env::args().skip(1)) {
        Ok(arguments) => arguments,
        Err(wrong) => {
            eprintln!("{wrong}");
            return ExitCode::from(64);
        }
    };
    let mut rows = Vec::new();
    small(&arguments, &mut rows).await;
    large(&arguments, &mut rows).await;
    if arguments.wants("many") {
        for row in many::many(2 * arguments.applications).await {
            keep(row, &mut rows);
        }
    }
    if let Some(before) = arguments.before.as_deref().filter(|_| arguments.wants("beside")) {
        let own = Path::new(env!("CARGO_BIN_EXE_moorline"));
        let after = arguments.after.as_deref().unwrap_or(own);
        keep(beside::beside(before, after, arguments.applications, arguments.rounds).await, &mut rows);
    }
    print_table(&rows);
    ExitCode::SUCCESS
}

/// Measures the rows with one Sync of 1,000 objects.
async fn small(arguments: &Arguments, rows: &mut Vec<Row>) {
    if !["first", "same", "change", "repair", "prune", "idle"].iter().any(|row| arguments.wants(row)) {
        return;
    }
    let (applications, rounds) = (arguments.applications, arguments.rounds);
    let plan = Plan { name: "first", applications, rounds, memory: MEMORY.0 };
    let mut ground = begin(arguments, plan, rows).await;
    steady::rest(&mut ground).await;
    if arguments.wants("same") {
        keep(steady::same(&mut ground).await, rows);
    }
    if arguments.wants("change") {
        keep(steady::change(&mut ground).await, rows);
        steady::rest(&mut ground).await;
    }
    if arguments.wants("repair") {
        keep(steady::repair(&mut ground).await, rows);
        steady::rest(&mut ground).await;
    }
    if arguments.wants("prune") {
        keep(steady::prune(&mut ground).await, rows);
        steady::rest(&mut ground).await;
    }
    if arguments.wants("idle") {
        keep(steady::idle(&mut ground, Some(MEMORY.0)).await, rows);
    }
}

/// Measures the rows with one Sync of 10,000 objects.
async fn large(arguments: &Arguments, rows: &mut Vec<Row>) {
    if !arguments.wants("large") && !arguments.wants("restart") {
        return;
    }
    let (applications, rounds) = (10 * arguments.applications, arguments.rounds);
    let plan = Plan { name: "large", applications, rounds, memory: MEMORY.1 };
    let mut ground = begin(arguments, plan, rows).await;
    if arguments.wants("restart") {
        keep(restart::restart(&mut ground).await, rows);
    }
}

/// Creates an environment with everything in sync; compares it with the floor if requested.
async fn begin(arguments: &Arguments, plan: Plan, rows: &mut Vec<Row>) -> BenchEnvironment {
    if arguments.wants(plan.name) {
        let (row, ground) = first(plan).await;
        keep(row, rows);
        return ground;
    }
    let (_, _, ground) = sync(plan.applications).await;
    ground
}

fn keep(row: Row, rows: &mut Vec<Row>) {
    row.print();
    rows.push(row);
}
