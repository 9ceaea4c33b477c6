//! Runs a story in a process of its own, in which only the seed is random.
//!
//! In: a seed and its steps. Out: the result of the story, read from the output of the process. The
//! process is this program again, with a preloaded library that makes random bytes and the time of
//! day repeatable.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

/// Variable with the task of the process: the seed, and after a colon the steps, if it is not to take all.
const TOLD: &str = "MOORLINE_SIMULATION_TELL";
/// Variable with the file in which it records every request, if anywhere.
pub(crate) const LOG: &str = "MOORLINE_SIMULATION_LOG";

/// A story that takes longer goes round in circles.
const LIMIT: Duration = Duration::from_secs(120);

/// Result of a story.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Came {
    pub(crate) happened: BTreeMap<String, u64>,
    pub(crate) trace: String,
    pub(crate) wrong: Option<String>,
}

/// Returns the task of this process, if it is one for a single story.
pub(crate) fn told() -> Option<(u64, Option<Vec<usize>>)> {
    parse(&std::env::var(TOLD).ok()?)
}

/// A seed, and after a colon the numbers of steps.
pub(crate) fn parse(told: &str) -> Option<(u64, Option<Vec<usize>>)> {
    let (seed, steps) = told.split_once(':').map_or((told, None), |(seed, steps)| (seed, Some(steps)));
    let steps = steps.map(|steps| steps.split(',').filter_map(|step| step.parse().ok()).collect());
    Some((seed.parse().ok()?, steps))
}

/// Tells a story in a process of its own.
pub(crate) fn tell_alone(seed: u64, steps: Option<&[usize]>) -> Came {
    let mut told = seed.to_string();
    if let Some(steps) = steps {
        let steps: Vec<String> = steps.iter().map(usize::to_string).collect();
        told = format!("{told}:{}", steps.join(","));
    }
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "a_story_alone", "--nocapture", "--test-threads=1"]);
    command.env(TOLD, told).env("LD_PRELOAD", library()).env("RUST_BACKTRACE", "0");
    let folder = scratch();
    command.current_dir(folder.path());
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let begun = Instant::now();
    while child.try_wait().unwrap().is_none() {
        if begun.elapsed() > LIMIT {
            child.kill().unwrap();
            break;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    let output = child.wait_with_output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    let mut came = Came { happened: BTreeMap::new(), trace: String::new(), wrong: None };
    let mut ended = false;
    for line in text.lines() {
        match line.split_once('\t') {
            Some(("trace", trace)) => (came.trace, ended) = (trace.to_owned(), true),
            Some(("wrong", wrong)) => came.wrong = Some(wrong.replace("\\n", "\n")),
            Some((word, times)) => {
                came.happened.extend(times.parse().ok().map(|times| (word.to_owned(), times)));
            }
            None => {}
        }
    }
    if !ended {
        let last = String::from_utf8_lossy(&output.stderr);
        came.wrong = Some(format!("it broke off after {:.1?}: {text}{last}", begun.elapsed()));
    }
    came
}

/// A folder in memory, where there is one.
fn scratch() -> tempfile::TempDir {
    let memory = PathBuf::from("/dev/shm");
    let folder = if memory.is_dir() { memory } else { std::env::temp_dir() };
    tempfile::Builder::new().prefix("moorline-simulation-").tempdir_in(folder).unwrap()
}

/// The library, built once.
fn library() -> &'static Path {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    BUILT.get_or_init(|| {
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/simulation/fixed_chance.c");
        let library = Path::new(env!("CARGO_TARGET_TMPDIR")).join("fixed_chance.so");
        // Built aside and renamed, because others may build it at the same time.
        let aside = library.with_extension(format!("{}", std::process::id()));
        let built =
            Command::new("cc").args(["-shared", "-fPIC", "-O1", "-o"]).arg(&aside).arg(source).status();
        assert!(built.unwrap().success(), "a C compiler is needed");
        std::fs::rename(&aside, &library).unwrap();
        library
    })
}
