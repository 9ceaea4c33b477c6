//! Follows the audit log: all requests with their users and times, without a request of our own.
//!
//! In: the path of the log.
//! Out: the requests of the daemon and of the simulated person, and the time of the last write to
//! the objects. Times are the server's own, so the polling interval does not affect them.

use std::fs::File;
use std::io::{Read as _, Seek as _, SeekFrom};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use super::workload::APPS;
use moorline_test_support::audit::{Request, parse_request};
use moorline_test_support::credentials::{ADMIN, MOORLINE};

/// Polling interval.
const LOOK: Duration = Duration::from_millis(20);

/// A reader at the end of the log.
pub(crate) struct AuditLogReader {
    log: PathBuf,
    offset: u64,
    /// An incomplete line.
    rest: Vec<u8>,
    seen: Vec<Request>,
    last_write: Instant,
}

impl AuditLogReader {
    pub(crate) fn new(log: PathBuf) -> Self {
        Self { log, offset: 0, rest: Vec::new(), seen: Vec::new(), last_write: Instant::now() }
    }

    /// Returns a position in the recorded requests, for [`Self::since`].
    pub(crate) fn mark(&mut self) -> usize {
        self.read();
        self.seen.len()
    }

    /// Returns the requests recorded after a position.
    pub(crate) fn since(&mut self, mark: usize) -> &[Request] {
        self.read();
        &self.seen[mark..]
    }

    /// Waits until `ask` returns a result for the requests after a position; `None` after a
    /// timeout.
    pub(crate) async fn until<T>(
        &mut self,
        mark: usize,
        within: Duration,
        mut ask: impl FnMut(&[Request]) -> Option<T>,
    ) -> Option<T> {
        let deadline = Instant::now() + within;
        loop {
            if let Some(answer) = ask(self.since(mark)) {
                return Some(answer);
            }
            if Instant::now() > deadline {
                return None;
            }
            tokio::time::sleep(LOOK).await;
        }
    }

    /// Waits until there were no writes to the objects for a while; false after a timeout.
    pub(crate) async fn rest(&mut self, quiet: Duration, within: Duration) -> bool {
        let deadline = Instant::now() + within;
        loop {
            self.read();
            if self.last_write.elapsed() >= quiet {
                return true;
            }
            if Instant::now() > deadline {
                return false;
            }
            tokio::time::sleep(LOOK).await;
        }
    }

    fn read(&mut self) {
        let mut log = File::open(&self.log).expect("the audit log");
        log.seek(SeekFrom::Start(self.offset)).expect("the audit log can be read from anywhere");
        let read = log.read_to_end(&mut self.rest).expect("the audit log can be read");
        self.offset += read as u64;
        let end = self.rest.iter().rposition(|byte| *byte == b'\n').map_or(0, |newline| newline + 1);
        let lines: Vec<u8> = self.rest.drain(..end).collect();
        for line in String::from_utf8_lossy(&lines).lines() {
            self.line(line);
        }
    }

    fn line(&mut self, line: &str) {
        let ours = [MOORLINE, ADMIN].iter().any(|user| line.contains(&format!("\"username\":\"{user}\"")));
        let reads =
            ["get", "list", "watch"].iter().any(|verb| line.contains(&format!("\"verb\":\"{verb}\"")));
        if !reads && line.contains(&format!("\"namespace\":\"{APPS}\"")) {
            self.last_write = Instant::now();
        }
        // Requests of the controllers are many, and not needed.
        if ours {
            self.seen.extend(parse_request(line));
        }
    }
}

/// True for a request of the daemon about objects of Syncs, except lists and watches.
pub(crate) fn is_on_objects(request: &Request) -> bool {
    request.user == MOORLINE && request.namespace == APPS && request.verb != "watch" && request.verb != "list"
}

/// Same, without the reads of a status after a change, which are counted separately.
pub(crate) fn is_about_manifests(request: &Request) -> bool {
    is_on_objects(request) && !request.reads_status()
}

/// True for such a read of a status.
pub(crate) fn is_status_read(request: &Request) -> bool {
    is_on_objects(request) && request.reads_status()
}

/// True for an apply of an object of a Sync.
pub(crate) fn is_apply(request: &Request) -> bool {
    is_on_objects(request) && request.verb == "patch"
}

/// True for a write of a Sync's status.
pub(crate) fn is_status(request: &Request) -> bool {
    request.user == MOORLINE
        && request.resource == "syncs"
        && request.verb != "get"
        && request.verb != "list"
        && request.verb != "watch"
}
