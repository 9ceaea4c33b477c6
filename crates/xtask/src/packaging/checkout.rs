//! Facts of the checkout that go into what is packed: version, revision and time.

use std::path::{Path, PathBuf};
use std::process::Command;

/// State of the repository that is packed.
#[derive(Debug)]
pub(crate) struct Checkout {
    /// Root of the repository.
    pub(crate) root: PathBuf,
    /// Version of the program.
    pub(crate) version: String,
    /// Commit, with `-dirty` if files differ from it.
    pub(crate) revision: String,
    /// Time of the commit in seconds since 1970, or `SOURCE_DATE_EPOCH` if it is set.
    pub(crate) time: u64,
    /// Address of the repository, if `MOORLINE_SOURCE` says it.
    pub(crate) source: Option<String>,
}

impl Checkout {
    /// Reads the state of the checkout to which this program belongs.
    pub(crate) fn here() -> Result<Self, String> {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).ok_or("no root")?.to_path_buf();
        let commit = output(Command::new("git").current_dir(&root).args(["rev-parse", "HEAD"]))?;
        let changes = Command::new("git").current_dir(&root).args(["status", "--porcelain"]).output();
        let is_dirty = !changes.map_err(|error| format!("git status: {error}"))?.stdout.is_empty();
        let time = match std::env::var("SOURCE_DATE_EPOCH") {
            Ok(time) => time,
            Err(_) => output(Command::new("git").current_dir(&root).args(["log", "-1", "--format=%ct"]))?,
        };
        let time = time.parse().map_err(|_| format!("SOURCE_DATE_EPOCH {time:?} is no number of seconds"))?;
        let revision = if is_dirty { format!("{commit}-dirty") } else { commit };
        let version = env!("CARGO_PKG_VERSION").to_owned();
        Ok(Self { root, version, revision, time, source: std::env::var("MOORLINE_SOURCE").ok() })
    }

    /// Time of the commit as RFC 3339 has it.
    pub(crate) fn date(&self) -> String {
        jiff::Timestamp::from_second(i64::try_from(self.time).unwrap_or(0))
            .map_or_else(|_| "1970-01-01T00:00:00Z".to_owned(), |time| time.to_string())
    }
}

/// Runs a command, and returns what it printed without the white space around it.
pub(crate) fn output(command: &mut Command) -> Result<String, String> {
    let shown = format!("{command:?}");
    let output = command.output().map_err(|error| format!("{shown}: {error}"))?;
    if !output.status.success() {
        return Err(format!("{shown}: {}", String::from_utf8_lossy(&output.stderr).trim()));
    }
    String::from_utf8(output.stdout)
        .map(|text| text.trim().to_owned())
        .map_err(|_| format!("{shown}: not UTF-8"))
}

/// Runs a command whose output goes to the terminal.
pub(crate) fn run(command: &mut Command) -> Result<(), String> {
    let status = command.status().map_err(|error| format!("{command:?}: {error}"))?;
    if status.success() { Ok(()) } else { Err(format!("{command:?}: {status}")) }
}
