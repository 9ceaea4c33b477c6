//! The walls around helm, which this program builds around itself before it becomes helm.
//!
//! In: a program and its arguments. Out: that program in the place of this process, or in a child of it, with less: no network, no
//! other process in sight, bounds on memory, processor, files and processes, and no way to more rights. A process that has only one thread
//! can do all this without unsafe code; the daemon has many, and so it starts itself as this.
//!
//! The namespaces need leave of the kernel, which a container's profile may refuse. Then the rest stands alone: see `mod.rs` for why
//! that is enough.

use std::ffi::OsString;
use std::io;
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::process::Command;

use rustix::process::{Resource, Rlimit, Signal, set_parent_process_death_signal, setrlimit};
use rustix::thread::{UnshareFlags, set_no_new_privs};

/// The verb by which this program is its own fence.
pub const VERB: &str = "fence";
/// The verb of the second step, inside the namespaces.
pub const INSIDE: &str = "fence-inside";
/// What the fence ends with when it could not start the program.
pub const NOT_STARTED: i32 = 126;

/// Bytes of memory that may be written to. Most charts take a third of it, and one that prints 14 MB all of it; two runs at a time
/// have to fit beside the daemon into what the chart of this project lets a Pod have.
pub(super) const MEMORY: u64 = 192 * 1024 * 1024;
/// Bytes of addresses; a program of Go reserves more than it uses.
const ADDRESSES: u64 = 16 * 1024 * 1024 * 1024;
/// Seconds of a processor.
const PROCESSOR: u64 = 60;
/// Bytes of a file that is written: helm template writes none.
const FILE: u64 = 0;
/// Open files. Helm closes each file of a chart when it has read it.
const FILES: u64 = 256;
/// Processes and threads, where they can be counted for this run alone.
const PROCESSES: u64 = 128;

/// Which namespaces are asked for, from most to least.
const NAMESPACES: [(UnshareFlags, &str); 3] = [
    (
        UnshareFlags::NEWUSER
            .union(UnshareFlags::NEWNET)
            .union(UnshareFlags::NEWPID)
            .union(UnshareFlags::NEWIPC),
        "namespaces for users, network and processes, and bounds",
    ),
    (
        UnshareFlags::NEWNET.union(UnshareFlags::NEWPID).union(UnshareFlags::NEWIPC),
        "namespaces for network and processes, and bounds",
    ),
    (UnshareFlags::NEWUSER.union(UnshareFlags::NEWNET), "namespaces for users and network, and bounds"),
];

/// Becomes the program, behind the walls; gives an exit code only where that could not be, or where it waited for the program.
pub fn enter(program: &[OsString]) -> i32 {
    // When the daemon is gone nobody would end it.
    if let Err(error) = set_parent_process_death_signal(Some(Signal::KILL)) {
        return refuse(&format!("its end could not be bounded: {error}"));
    }
    let namespaces = NAMESPACES.iter().find(|(flags, _)| apart(*flags).is_ok()).map(|(flags, _)| *flags);
    let counted = namespaces.is_some_and(|flags| flags.contains(UnshareFlags::NEWUSER));
    if let Err(error) = bound(counted) {
        return refuse(&format!("its bounds could not be set: {error}"));
    }
    if !namespaces.is_some_and(|flags| flags.contains(UnshareFlags::NEWPID)) {
        return inside(program);
    }
    // Whoever makes a namespace for processes stays outside; its first child is the first inside, and when that ends all end.
    let own = std::env::current_exe().unwrap_or_else(|_| "/proc/self/exe".into());
    match Command::new(own).arg(INSIDE).arg("--").args(program).status() {
        Ok(status) => status.code().unwrap_or_else(|| 128 + status.signal().unwrap_or_default()),
        Err(error) => refuse(&format!("the fence could not be entered: {error}")),
    }
}

/// The second step: ends with its parent, and becomes the program.
pub fn inside(program: &[OsString]) -> i32 {
    if let Err(error) =
        set_parent_process_death_signal(Some(Signal::KILL)).and_then(|()| set_no_new_privs(true))
    {
        return refuse(&format!("its rights could not be bounded: {error}"));
    }
    let [program, arguments @ ..] = program else { return refuse("no program is named") };
    let error = Command::new(program).args(arguments).exec();
    refuse(&format!("{}: {error}", program.to_string_lossy()))
}

/// Which walls stand on this machine.
pub fn walls() -> &'static str {
    let found = NAMESPACES.iter().find(|(flags, _)| apart(*flags).is_ok());
    found.map_or("bounds only: namespaces are not allowed here", |(_, name)| name)
}

#[expect(
    deprecated,
    reason = "what makes it unsafe is to unshare the table of open files, which none of these flags does"
)]
fn apart(flags: UnshareFlags) -> rustix::io::Result<()> {
    rustix::thread::unshare(flags)
}

/// Sets the bounds; `counted` tells whether processes of others of this user count elsewhere.
fn bound(counted: bool) -> rustix::io::Result<()> {
    let processes = counted.then_some((Resource::Nproc, PROCESSES));
    let bounds = [
        (Resource::Core, 0),
        (Resource::Data, MEMORY),
        (Resource::As, ADDRESSES),
        (Resource::Cpu, PROCESSOR),
        (Resource::Fsize, FILE),
        (Resource::Nofile, FILES),
    ];
    for (resource, most) in bounds.into_iter().chain(processes) {
        let held = rustix::process::getrlimit(resource).maximum.unwrap_or(u64::MAX);
        let most = Some(most.min(held));
        setrlimit(resource, Rlimit { current: most, maximum: most })?;
    }
    Ok(())
}

fn refuse(why: &str) -> i32 {
    use io::Write as _;
    let _ = writeln!(io::stderr(), "{why}");
    NOT_STARTED
}
