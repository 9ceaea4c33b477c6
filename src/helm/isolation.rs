//! Isolates helm: restricts this process before it becomes helm.
//!
//! In: a program and its arguments. Out: that program in place of this process or in a child of it,
//! with fewer rights: no network, no view of other processes, no files but its own, limits on
//! memory, processor, files and processes, and no way to gain rights. A process with a single
//! thread can do all this without unsafe code; the daemon has many threads, and so it starts itself
//! with a hidden verb for this.
//!
//! Namespaces need the permission of the kernel, which a container's profile may deny. The
//! restrictions of files (`file_access.rs`) and system calls (`syscall_filter.rs`) need none and
//! work without namespaces; `protections.rs` decides if the available ones suffice.

mod file_access;
mod protections;
mod syscall_filter;

use std::ffi::OsString;
use std::io;
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::path::Path;
use std::process::Command;

use rustix::process::{Resource, Rlimit, Signal, set_parent_process_death_signal, setrlimit};
use rustix::thread::{UnshareFlags, set_no_new_privs};

pub use protections::{IsolationLevel, IsolationVerdict, Protections};

/// The hidden verb that isolates.
pub const FENCE_VERB: &str = "fence";
/// The verb of the second step, inside the namespaces.
pub const FENCE_INSIDE_VERB: &str = "fence-inside";
/// The flag that makes all required protections mandatory.
pub const REQUIRED: &str = "--required";
/// Exit code if the program could not be started.
pub const EXIT_NOT_STARTED: i32 = 126;
/// Exit code if a required protection is missing.
pub const EXIT_NOT_ISOLATED: i32 = 125;

/// Bytes of writable memory. Most charts use a third of it, and one that prints 14 MB uses all of
/// it; two runs at a time have to fit beside the daemon into the memory limit that this project's
/// chart sets for the Pod.
pub(super) const MAX_MEMORY_BYTES: u64 = 192 * 1024 * 1024;
/// Bytes of address space; a Go program reserves more than it uses.
const ADDRESSES: u64 = 16 * 1024 * 1024 * 1024;
/// Seconds of processor time.
const PROCESSOR: u64 = 60;
/// Bytes of a file that is written: helm template writes none.
const FILE: u64 = 0;
/// Open files. Helm closes each file of a chart after reading it.
const FILES: u64 = 256;
/// Processes and threads; applied only if they are counted for this run alone.
const PROCESSES: u64 = 128;

/// Sets of namespaces to try, from most to least isolation.
const NAMESPACES: [(UnshareFlags, &str); 3] = [
    (
        UnshareFlags::NEWUSER
            .union(UnshareFlags::NEWNET)
            .union(UnshareFlags::NEWPID)
            .union(UnshareFlags::NEWIPC),
        "users, network and processes",
    ),
    (UnshareFlags::NEWNET.union(UnshareFlags::NEWPID).union(UnshareFlags::NEWIPC), "network and processes"),
    (UnshareFlags::NEWUSER.union(UnshareFlags::NEWNET), "users and network"),
];

/// Becomes the program, in isolation. Returns an exit code only if that failed, or if it waited for
/// the program.
pub fn run_isolated(program: &[OsString], wanted: IsolationLevel) -> i32 {
    // If the daemon is killed, no other process would end this one.
    if let Err(error) = set_parent_process_death_signal(Some(Signal::KILL)) {
        return refuse(&format!("it could not be tied to the life of the daemon: {error}"));
    }
    let namespaces = NAMESPACES.iter().find(|(flags, _)| unshare(*flags).is_ok()).map(|(flags, _)| *flags);
    let counted = namespaces.is_some_and(|flags| flags.contains(UnshareFlags::NEWUSER));
    if let Err(error) = set_limits(counted) {
        return refuse(&format!("its resource limits could not be set: {error}"));
    }
    if !namespaces.is_some_and(|flags| flags.contains(UnshareFlags::NEWPID)) {
        return run_restricted(program, wanted);
    }
    // The creator of a process namespace stays outside of it. Its first child is the first process
    // inside, and when that one ends the kernel ends all others.
    let own = std::env::current_exe().unwrap_or_else(|_| "/proc/self/exe".into());
    match Command::new(own).arg(FENCE_INSIDE_VERB).args(wanted.flag()).arg("--").args(program).status() {
        Ok(status) => status.code().unwrap_or_else(|| 128 + status.signal().unwrap_or_default()),
        Err(error) => refuse(&format!("the isolated process could not be started: {error}")),
    }
}

/// The second step: ends with its parent, gives up files and system calls, and becomes the program.
pub fn run_restricted(program: &[OsString], wanted: IsolationLevel) -> i32 {
    if let Err(error) =
        set_parent_process_death_signal(Some(Signal::KILL)).and_then(|()| set_no_new_privs(true))
    {
        return refuse(&format!("its privileges could not be restricted: {error}"));
    }
    let [program, arguments @ ..] = program else { return refuse("no program is named") };
    if let IsolationVerdict::Refused(why) = restrict_self(Path::new(program)).judge(wanted) {
        say(&why);
        return EXIT_NOT_ISOLATED;
    }
    let mut command = Command::new(program);
    command.args(arguments);
    // The allocator of this process reserves more than the program may have, so the limits of
    // memory come last: nothing is mapped between them and the start of the program.
    if let Err(error) = set_memory_limits() {
        return refuse(&format!("its memory limits could not be set: {error}"));
    }
    let error = command.exec();
    refuse(&format!("{}: {error}", program.to_string_lossy()))
}

/// Applies the restrictions that need no permission of the kernel, before this process becomes the
/// program.
fn restrict_self(program: &Path) -> Protections {
    let alone = crate::helm::isolation::file_access::is_statically_linked(program);
    let files = crate::helm::isolation::file_access::restrict_files(program, alone).unwrap_or(false);
    // The filter comes last: it denies the calls that set up the file restriction.
    let calls = crate::helm::isolation::syscall_filter::install_filters(alone).is_ok();
    Protections { namespaces: String::new(), files, calls }
}

/// Returns the protections that this machine supports. They apply to this process from then on.
pub fn probe_protections() -> Protections {
    let found = NAMESPACES.iter().find(|(flags, _)| unshare(*flags).is_ok());
    let namespaces = found.map_or("", |(_, name)| name).to_owned();
    Protections { namespaces, ..restrict_self(Path::new("/proc/self/exe")) }
}

impl IsolationLevel {
    /// The command line flag for this level, if it has one.
    pub fn flag(self) -> Option<&'static str> {
        match self {
            Self::Required => Some(REQUIRED),
            Self::BestEffort => None,
        }
    }
}

#[expect(
    deprecated,
    reason = "what makes it unsafe is to unshare the table of open files, which none of these flags does"
)]
fn unshare(flags: UnshareFlags) -> rustix::io::Result<()> {
    rustix::thread::unshare(flags)
}

/// Sets the limits but those of memory. `counted` is true if processes of the same user outside of
/// this run are counted elsewhere.
fn set_limits(counted: bool) -> rustix::io::Result<()> {
    let processes = counted.then_some((Resource::Nproc, PROCESSES));
    let bounds =
        [(Resource::Core, 0), (Resource::Cpu, PROCESSOR), (Resource::Fsize, FILE), (Resource::Nofile, FILES)];
    bounds.into_iter().chain(processes).try_for_each(|(resource, most)| set_limit(resource, most))
}

/// Sets the limits of memory for the program that this process becomes.
fn set_memory_limits() -> rustix::io::Result<()> {
    set_limit(Resource::Data, MAX_MEMORY_BYTES)?;
    set_limit(Resource::As, ADDRESSES)
}

fn set_limit(resource: Resource, most: u64) -> rustix::io::Result<()> {
    let held = rustix::process::getrlimit(resource).maximum.unwrap_or(u64::MAX);
    let most = Some(most.min(held));
    setrlimit(resource, Rlimit { current: most, maximum: most })
}

fn refuse(why: &str) -> i32 {
    say(why);
    EXIT_NOT_STARTED
}

fn say(why: &str) {
    use io::Write as _;
    let _ = writeln!(io::stderr(), "{why}");
}
