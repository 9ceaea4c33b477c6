//! Checks that a Sync's report of its objects is true.
//!
//! In: the writes of objects and statuses with their writers and times, and the content of each
//! commit. Out: an object that differs from the commit that the status names. A daemon may learn
//! late or never of writes of others. Of its own writes it has to know if they have happened, and
//! has to read the object if no event reports it.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use git2::Oid;
use http::Method;
use moorline::sandbox::{ObservedRequest, Sandbox};
use serde_json::Value;
use tokio::time::Instant;

use super::objects::{Id, STAMP};

/// So long an object is as it is before a status that speaks of it: until then it may be under way to be otherwise, and what
/// nobody knows of is looked at after a pass, a few objects a second.
const CALM: Duration = Duration::from_secs(60);

/// Known writers of objects; cheap to clone.
#[derive(Clone, Default)]
pub(crate) struct Writers(Arc<Mutex<Written>>);

#[derive(Default)]
struct Written {
    /// The last writer of each object, by its path, and when.
    objects: BTreeMap<String, (String, Instant)>,
    /// The last writer of each status, by its path, and when it was sent.
    statuses: BTreeMap<String, (String, Instant)>,
}

impl Writers {
    fn written(&self) -> MutexGuard<'_, Written> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Somebody lays hands on an object, of which nobody need know.
    pub(crate) fn meddles(&self, id: Id) {
        self.written().objects.remove(&id.path());
    }

    /// Takes in a request.
    pub(crate) fn hear(&self, heard: &ObservedRequest<'_>) {
        let (path, query) = heard.uri.split_once('?').unwrap_or((heard.uri, ""));
        if heard.method == Method::GET || !(200..300).contains(&heard.code) || query.contains("dryRun") {
            return;
        }
        let (path, who) =
            (path.replace("/apis/example.com/v2/", "/apis/example.com/v1/"), heard.client.to_owned());
        let mut written = self.written();
        match path.strip_suffix("/status") {
            Some(sync) => drop(written.statuses.insert(sync.to_owned(), (who, heard.sent))),
            None => drop(written.objects.insert(path, (who, Instant::now()))),
        }
    }
}

/// Observations of the objects.
#[derive(Default)]
pub(crate) struct Said {
    pub(crate) writers: Writers,
    /// The objects of every Sync by each commit, each with the number of the commit that it is of.
    commits: BTreeMap<String, Vec<BTreeMap<Id, u64>>>,
    /// Status of each Sync that has been held against its objects.
    judged: RefCell<BTreeMap<usize, Instant>>,
}

impl Said {
    /// Notes what a commit has.
    pub(crate) fn commits(&mut self, commit: Oid, objects: Vec<BTreeMap<Id, u64>>) {
        self.commits.insert(commit.to_string(), objects);
    }

    /// The folders are others: what a daemon makes of commits before is not known.
    pub(crate) fn forget(&mut self) {
        self.commits.clear();
    }

    /// Returns a false statement of a Sync, of this number and at this path, about an object.
    pub(crate) fn wrong(&self, sandbox: &Sandbox, sync: usize, path: &str) -> Option<String> {
        let (who, sent) = self.writers.written().statuses.get(path).cloned()?;
        if self.judged.borrow_mut().insert(sync, sent) == Some(sent) {
            return None;
        }
        let live = sandbox.get(path)?;
        let is_ready = |condition: &&Value| condition["type"] == "Ready" && condition["status"] == "True";
        let ready = live["status"]["conditions"].as_array()?.iter().find(is_ready)?;
        let message = ready["message"].as_str().unwrap_or_default();
        let (_, commit) = message.rsplit_once('@')?;
        if ready["observedGeneration"] != live["metadata"]["generation"] {
            return None;
        }
        let written = self.writers.written();
        let is_own = |id: Id| {
            let last = written.objects.get(&id.path());
            last.is_some_and(|(writer, at)| *writer == who && *at + CALM < sent)
        };
        let objects = self.commits.get(commit)?.get(sync)?;
        objects.iter().filter(|(id, _)| is_own(**id)).find_map(|(id, stamp)| {
            let live = sandbox.get(&id.path()).unwrap_or_default();
            let found = live["metadata"]["annotations"][STAMP].as_str().unwrap_or("none");
            (found != stamp.to_string()).then(|| {
                format!("{} is of commit {found}, not {stamp}, and {who} says {message:?}", id.path())
            })
        })
    }
}
