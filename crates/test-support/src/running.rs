//! A child process of a test.
//!
//! In: a command, and a file for its log.
//! Out: the process, killed on drop or at the end of the tests; its log is printed if the test
//! fails.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;

use super::reaper::Reaper;

/// A running program; killed on drop.
pub struct Running {
    pub child: Child,
    log: PathBuf,
    reaper: Arc<Reaper>,
}

impl Running {
    /// Starts a program. Its standard error is appended to the log.
    pub fn start(command: &mut Command, log: &Path, reaper: &Arc<Reaper>) -> Self {
        Self::with_output(command, Stdio::null(), log, reaper)
    }

    /// Same as [`Self::start`], with a destination for the standard output of the program.
    pub fn with_output(command: &mut Command, printed: Stdio, log: &Path, reaper: &Arc<Reaper>) -> Self {
        let output = std::fs::OpenOptions::new().create(true).append(true).open(log).expect("a log");
        let child =
            command.stdin(Stdio::null()).stdout(printed).stderr(output).spawn().expect("the program starts");
        reaper.register(child.id()).expect("the reaper listens");
        Self { child, log: log.to_owned(), reaper: reaper.clone() }
    }

    pub fn log(&self) -> String {
        std::fs::read_to_string(&self.log).unwrap_or_default()
    }
}

impl Drop for Running {
    #[expect(clippy::print_stderr, reason = "libtest shows it with the failed test to which it belongs")]
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = self.reaper.unregister(self.child.id());
        if std::thread::panicking() {
            eprintln!("{}", self.log());
        }
    }
}
