//! A server of the control plane: a child process with its log in a file.

use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;

use super::reaper::Reaper;

/// Number of lines of a log that are printed with a failure.
const TAIL_LINES: usize = 40;

/// A running server.
pub struct Server {
    pub log: Log,
    name: String,
    child: Child,
    reaper: Arc<Reaper>,
    /// Command that starts it again.
    again: Command,
}

impl Server {
    /// Starts `program` with an empty environment, so that no proxy or `ETCD_...` variable of the
    /// machine affects it.
    pub fn start(
        program: &Path,
        arguments: impl IntoIterator<Item = impl AsRef<OsStr>>,
        directory: &Path,
        reaper: &Arc<Reaper>,
    ) -> io::Result<Self> {
        let name = program.file_name().unwrap_or(program.as_os_str());
        let path = directory.join(name).with_extension("log");
        let log = File::create(&path)?;
        let mut again = Command::new(program);
        again
            .args(arguments)
            .env_clear()
            .current_dir(directory)
            .stdin(Stdio::null())
            .stdout(log.try_clone()?)
            .stderr(log);
        let child = again.spawn()?;
        reaper.register(child.id())?;
        Ok(Self {
            log: Log(path),
            name: name.to_string_lossy().into_owned(),
            child,
            reaper: Arc::clone(reaper),
            again,
        })
    }

    /// Kills the server.
    pub fn kill(&mut self) -> io::Result<()> {
        self.child.kill()?;
        self.child.wait()?;
        self.reaper.unregister(self.child.id())
    }

    /// Starts it again after it was killed.
    pub fn start_again(&mut self) -> io::Result<()> {
        self.child = self.again.spawn()?;
        self.reaper.register(self.child.id())
    }

    /// Returns the exit status and the end of the log, if the server has ended.
    pub fn ended(&mut self) -> Option<String> {
        let status = self.child.try_wait().ok().flatten()?;
        // The reaper is only gone if a person killed it; then there is nothing to unregister.
        let _ = self.reaper.unregister(self.child.id());
        Some(format!("{} ended with {status}\n{}", self.name, self.log.tail()))
    }
}

/// The log file of a server.
#[derive(Clone)]
pub struct Log(PathBuf);

impl Log {
    /// The last lines, under a heading.
    pub fn tail(&self) -> String {
        let text = std::fs::read(&self.0).unwrap_or_default();
        let text = String::from_utf8_lossy(&text);
        let lines: Vec<&str> = text.lines().collect();
        let tail = &lines[lines.len().saturating_sub(TAIL_LINES)..];
        let name = self.0.file_name().unwrap_or_default().to_string_lossy();
        format!("--- the last {} lines of {name}\n{}\n", tail.len(), tail.join("\n"))
    }

    /// True if the server failed because another program took its port between our check and its
    /// start.
    pub fn names_a_taken_port(&self) -> bool {
        std::fs::read(&self.0)
            .is_ok_and(|text| String::from_utf8_lossy(&text).contains("address already in use"))
    }
}
