//! Runs helm once, in a folder and a process of its own.
//!
//! In: a run, and the paths of programs and folders. Out: helm's output, or its error. Helm gets an
//! empty environment, a temporary home folder, and as its input at most values of the run. Its
//! output and its time are limited; at a limit its whole process group is killed.

use std::fs::{self, DirBuilder, OpenOptions};
use std::hash::{BuildHasher as _, RandomState};
use std::io::{self, Read, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process_group, waitid};

use super::error::HelmError;
use super::isolation;
use super::isolation::{IsolationLevel, Protections};
use super::memory_folder;
use crate::render::helm::Invocation;
use crate::yaml::MAX_FILE_BYTES;

/// The most bytes that helm may print: as many as are read of one file.
pub(super) const MAX_OUTPUT_BYTES: usize = MAX_FILE_BYTES;
/// The most bytes that helm may write to standard error.
const MAX_WORDS_BYTES: usize = 1024 * 1024;
/// Interval at which the end of a process that has closed its output is polled.
const END_LOOK: Duration = Duration::from_millis(5);
/// Soft memory limit for helm's own runtime; the isolation permits half as much again.
const SOFT_MEMORY: &str = "128MiB";

/// Paths and limits of a run.
pub(super) struct RunSettings<'a> {
    pub(super) program: &'a Path,
    pub(super) fence: &'a Path,
    pub(super) work: &'a Path,
    pub(super) strength: IsolationLevel,
    pub(super) deadline: Duration,
}

/// Result of a run.
#[derive(Debug)]
pub(super) enum RunResult {
    /// Standard output of a run that succeeded.
    Succeeded(Vec<u8>),
    /// Standard error of a run that failed.
    Failed(Vec<u8>),
}

/// Runs helm, and waits for its end.
pub(super) fn run(run: &Invocation, place: &RunSettings<'_>) -> Result<RunResult, HelmError> {
    let until = Instant::now() + place.deadline;
    let work = match run.contains_secret() {
        true => memory_folder::find(place.work)?,
        false => WorkPlace::on_disk(place.work),
    };
    let folder = WorkFolder::create(&work, run)
        .map_err(|error| HelmError::from_io("the folder for its files", &error))?;
    let mut child = start(run, place, &folder.0)
        .map_err(|error| HelmError::from_io("the program did not start", &error))?;
    let heard = collect_output(&mut child, until, place.deadline);
    // Kill all that is left of the group. The process was not waited for yet, so its id cannot
    // belong to another one.
    let _ = kill_process_group(Pid::from_child(&child), Signal::KILL);
    let status = child.wait().map_err(|error| HelmError::from_io("its end", &error))?;
    let (output, words) = heard?;
    interpret_status((status, run.contains_secret()), output, words)
}

/// The protections that this machine supports, as the isolation verb prints them; `None` if it does
/// not.
pub(super) fn probe_protections(fence: &Path) -> Option<Protections> {
    let said = Command::new(fence)
        .args([isolation::FENCE_VERB, "--walls"])
        .env_clear()
        .stdin(Stdio::null())
        .output();
    Protections::read(&String::from_utf8_lossy(&said.ok()?.stdout))
}

/// Starts helm in isolation.
fn start(run: &Invocation, place: &RunSettings<'_>, folder: &Path) -> io::Result<Child> {
    let home = folder.join(HOME);
    let mut command = Command::new(place.fence);
    command
        .arg(isolation::FENCE_VERB)
        .args(place.strength.flag())
        .arg("--")
        .arg(place.program)
        .args(run.arguments())
        .current_dir(folder);
    command.env_clear().env("HOME", &home).env("TMPDIR", &home).env("GOMEMLIMIT", SOFT_MEMORY);
    // In isolation it cannot read how many processors this container has.
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    command.env("GOMAXPROCS", processors.to_string());
    for name in HOMES {
        command.env(name, &home);
    }
    let input = run.input();
    command.stdin(if input.is_some() { Stdio::piped() } else { Stdio::null() });
    command.stdout(Stdio::piped()).stderr(Stdio::piped()).process_group(0);
    let mut child = command.spawn()?;
    if let (Some(input), Some(mut stdin)) = (input, child.stdin.take()) {
        // A helm that does not read it ends with an error of its own. The thread ends with helm.
        std::thread::spawn(move || drop(stdin.write_all(&input)));
    }
    Ok(child)
}

/// Variables with the paths of helm's own configuration, all of which point to an empty folder.
const HOMES: [&str; 8] = [
    "XDG_CACHE_HOME",
    "XDG_CONFIG_HOME",
    "XDG_DATA_HOME",
    "HELM_CACHE_HOME",
    "HELM_CONFIG_HOME",
    "HELM_DATA_HOME",
    "HELM_PLUGINS",
    "HELM_REPOSITORY_CACHE",
];

/// Reads both outputs until they are closed and the process has ended.
fn collect_output(
    child: &mut Child,
    until: Instant,
    span: Duration,
) -> Result<(Vec<u8>, Vec<u8>), HelmError> {
    let late = || HelmError::Exceeded {
        what: format!("it took longer than {} s; look for loops in the templates", span.as_secs()).into(),
    };
    let output = read_bounded(child.stdout.take(), MAX_OUTPUT_BYTES);
    let words = read_bounded(child.stderr.take(), MAX_WORDS_BYTES);
    let left = || until.saturating_duration_since(Instant::now());
    // Both streams are drained by threads, so the order of waiting is free; the deadline covers
    // both.
    let output = output.recv_timeout(left()).map_err(|_| late())?;
    if output.len() > MAX_OUTPUT_BYTES {
        let what = format!("it printed more than {MAX_OUTPUT_BYTES} bytes; split the chart");
        return Err(HelmError::Exceeded { what: what.into() });
    }
    let words = words.recv_timeout(left()).map_err(|_| late())?;
    if words.len() > MAX_WORDS_BYTES {
        let what = format!("it wrote more than {MAX_WORDS_BYTES} bytes of warnings and errors");
        return Err(HelmError::Exceeded { what: what.into() });
    }
    let looks = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
    while let Ok(None) = waitid(WaitId::Pid(Pid::from_child(child)), looks) {
        if left().is_zero() {
            return Err(late());
        }
        std::thread::sleep(END_LOOK);
    }
    Ok((output, words))
}

/// Reads a stream to its end, or to one byte beyond the limit. The thread ends with the process
/// group at the latest.
fn read_bounded(stream: Option<impl Read + Send + 'static>, most: usize) -> Receiver<Vec<u8>> {
    let (tell, told) = mpsc::channel();
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        if let Some(stream) = stream {
            // After an error the bytes that were read so far are returned.
            let _ = stream.take(most as u64 + 1).read_to_end(&mut bytes);
        }
        let _ = tell.send(bytes);
    });
    told
}

/// Interprets an exit status.
fn interpret_status(
    (status, contains_secret): (ExitStatus, bool),
    output: Vec<u8>,
    words: Vec<u8>,
) -> Result<RunResult, HelmError> {
    if status.success() {
        return Ok(RunResult::Succeeded(output));
    }
    let text = String::from_utf8_lossy(&words);
    // A crashing Go program prints a long stack trace; only its first line is useful.
    let fatal = text.lines().find(|line| FATAL.iter().any(|begin| line.starts_with(begin)));
    let signal = status.signal().or(status.code().filter(|code| *code > 128).map(|code| code - 128));
    match (signal, fatal, status.code()) {
        (Some(signal), _, _) => Err(HelmError::Exceeded {
            what: format!("it was killed by signal {signal}; it may have exceeded the time or memory limit")
                .into(),
        }),
        (None, Some(_), _) if contains_secret => Err(HelmError::Exceeded { what: "it crashed".into() }),
        (None, Some(fatal), _) => Err(HelmError::Exceeded {
            what: format!("it crashed: {fatal}; check the templates for loops and for very large values")
                .into(),
        }),
        (None, None, Some(isolation::EXIT_NOT_ISOLATED)) => {
            Err(HelmError::Unfenced { why: text.trim().into() })
        }
        (None, None, Some(isolation::EXIT_NOT_STARTED)) => {
            Err(HelmError::Unstartable { why: text.trim().into() })
        }
        (None, None, _) => Ok(RunResult::Failed(words)),
    }
}

/// Prefixes of the last message of a crashing Go program.
const FATAL: [&str; 3] = ["fatal error: ", "runtime: ", "panic: "];

/// Name of the home folder of a run.
const HOME: &str = "home";
/// The most attempts to find a free folder name.
const NAMES: usize = 16;

/// Parent of the runs' folders, and the beginning of their names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct WorkPlace {
    pub(super) parent: PathBuf,
    pub(super) prefix: String,
}

impl WorkPlace {
    /// The place for runs without secret values.
    pub(super) fn on_disk(work: &Path) -> Self {
        Self { parent: work.to_owned(), prefix: PREFIX.to_owned() }
    }
}

/// A folder that is removed on drop.
pub(super) struct WorkFolder(PathBuf);

impl WorkFolder {
    /// Creates a folder with the files of a run, readable by this user only.
    fn create(work: &WorkPlace, run: &Invocation) -> io::Result<Self> {
        let folder = Self::empty(work)?;
        private().create(folder.0.join(HOME))?;
        for (path, bytes) in run.files() {
            let inside = Path::new(path);
            if !inside.components().all(|part| matches!(part, std::path::Component::Normal(_))) {
                return Err(io::Error::other(format!("{path:?} is no path of a file")));
            }
            let place = folder.0.join(inside);
            private().recursive(true).create(place.parent().unwrap_or(&folder.0))?;
            OpenOptions::new().write(true).create_new(true).mode(0o400).open(place)?.write_all(bytes)?;
        }
        Ok(folder)
    }

    fn empty(work: &WorkPlace) -> io::Result<Self> {
        private().recursive(true).create(&work.parent)?;
        for _ in 0..NAMES {
            // Every `RandomState` has keys of its own from the operating system's random source.
            let name = format!("{}{:016x}", work.prefix, RandomState::new().hash_one(0));
            let place = work.parent.join(name);
            match private().create(&place) {
                Ok(()) => return Ok(Self(place)),
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(error),
            }
        }
        Err(io::Error::other("no name for a folder is free"))
    }

    /// Removes the folders that runs of an earlier process have left.
    pub(super) fn remove_all(work: &WorkPlace) {
        let left = fs::read_dir(&work.parent).into_iter().flatten().flatten();
        for left in left.filter(|left| left.file_name().to_string_lossy().starts_with(&work.prefix)) {
            drop(Self(left.path()));
        }
    }
}

/// Prefix of the folder names.
const PREFIX: &str = "helm-";

fn private() -> DirBuilder {
    let mut builder = DirBuilder::new();
    builder.mode(0o700);
    builder
}

impl Drop for WorkFolder {
    fn drop(&mut self) {
        if let Err(error) = fs::remove_dir_all(&self.0) {
            tracing::warn!(folder = %self.0.display(), %error, "the folder of a chart could not be removed");
        }
    }
}
