//! A program that a test has started.
//!
//! In: a command, and a file for what it says. Out: the process, killed when this is dropped or the tests end; what it said
//! is shown with a test that failed.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;

use super::reaper::Reaper;

/// A running program; killed when it is dropped.
pub(crate) struct Running {
    pub(crate) child: Child,
    log: PathBuf,
    reaper: Arc<Reaper>,
}

impl Running {
    /// Starts it. What it says on standard error is added to the log.
    pub(crate) fn start(command: &mut Command, log: &Path, reaper: &Arc<Reaper>) -> Self {
        Self::with_output(command, Stdio::null(), log, reaper)
    }

    /// The same, with a place for what it prints.
    pub(crate) fn with_output(
        command: &mut Command,
        printed: Stdio,
        log: &Path,
        reaper: &Arc<Reaper>,
    ) -> Self {
        let output = std::fs::OpenOptions::new().create(true).append(true).open(log).expect("a log");
        let child =
            command.stdin(Stdio::null()).stdout(printed).stderr(output).spawn().expect("the program starts");
        reaper.started(child.id()).expect("the reaper listens");
        Self { child, log: log.to_owned(), reaper: reaper.clone() }
    }

    pub(crate) fn log(&self) -> String {
        std::fs::read_to_string(&self.log).unwrap_or_default()
    }
}

impl Drop for Running {
    #[expect(clippy::print_stderr, reason = "libtest shows it with the failed test to which it belongs")]
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = self.reaper.ended(self.child.id());
        if std::thread::panicking() {
            eprintln!("{}", self.log());
        }
    }
}
