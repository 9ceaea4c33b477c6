//! One daemon for many clusters. `cargo bench --bench fleet -- [row...] [--clusters N] [--syncs N]
//! [--idle SECONDS] [--rounds N]` prints a table for each row, and fails if an object or a number
//! of requests is wrong.
//!
//! The home cluster and all others are sandboxes in this process, served over TLS on loopback; the
//! daemon is a process of its own. Its CPU time and memory are the kernel's counters, its requests
//! are counted by the servers. Both processes share the CPUs, so a time is shown as a multiple of
//! the floor: the same applies by a bare client to the same servers.

#[path = "fleet"]
mod parts {
    pub(crate) mod arguments;
    pub(crate) mod broken;
    pub(crate) mod clusters;
    pub(crate) mod floor;
    pub(crate) mod hub;
    pub(crate) mod memory;
    pub(crate) mod requests;
    pub(crate) mod whole;
}
#[path = "loop/usage.rs"]
#[expect(dead_code, reason = "the benchmark of the loop uses more of it")]
mod usage;

use std::process::ExitCode;

use parts::arguments::Arguments;
use parts::{broken, memory, whole};

#[tokio::main]
async fn main() -> ExitCode {
    let arguments = match Arguments::read(std::env::args().skip(1)) {
        Ok(arguments) => arguments,
        Err(wrong) => {
            eprintln!("{wrong}");
            return ExitCode::from(64);
        }
    };
    if arguments.wants("whole") {
        whole::measure(&arguments).await;
    }
    if arguments.wants("broken") {
        broken::measure(&arguments).await;
    }
    if arguments.names("memory") {
        memory::measure(&arguments).await;
    }
    ExitCode::SUCCESS
}

/// Prints a figure beside its bar, and whether it is met.
fn print_bar(what: &str, measured: &str, bar: &str, is_met: bool) {
    println!("| {what} | {measured} | {bar} | {} |", if is_met { "met" } else { "NOT met" });
}
