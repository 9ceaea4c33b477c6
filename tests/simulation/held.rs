//! The revision that a Sync's status names, compared with the objects that are written and deleted.
//!
//! In: commits, approvals, statuses and requests, as they happen. Out: a sentence for each request that breaks a rule.
//! - An object is written only as the revision has it that `status.revision.held` names at that time.
//! - While the status refuses the newest commit, nothing is deleted without an approval given after the refusal.
//! - A status never says `PathNotFound` of a path that the newest commit has.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use http::Method;
use moorline::sandbox::ObservedRequest;
use serde_json::Value;
use tokio::time::Instant;

use super::objects::{Id, STAMP};

/// The objects of each folder, each with the number of the commit that wrote it.
pub(crate) type Folders = BTreeMap<String, BTreeMap<Id, u64>>;

/// A path that exists for so long is known to every daemon, also where the leader stood still and another one took over.
const KNOWN: Duration = Duration::from_secs(120);

/// Rules about the held revision; cheap to clone.
#[derive(Clone, Default)]
pub(crate) struct Held(Arc<Mutex<Rules>>);

#[derive(Default)]
struct Rules {
    /// The stamps of each object by each commit. A Sync has two folders, and so may an object have two stamps.
    commits: BTreeMap<String, BTreeMap<String, Vec<u64>>>,
    head: String,
    syncs: BTreeMap<String, Known>,
    wrong: Vec<String>,
}

/// Knowledge of one Sync.
#[derive(Default)]
struct Known {
    /// Each held revision, and since when the status names it.
    held: Vec<(Instant, String)>,
    /// The commit that the status refuses, and since when.
    refused: Option<(String, Instant)>,
    approved: Option<Instant>,
    /// Since when the path is one that exists; none while it is not.
    found: Option<Instant>,
}

impl Held {
    fn rules(&self) -> MutexGuard<'_, Rules> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The first broken rule.
    pub(crate) fn wrong(&self) -> Option<String> {
        self.rules().wrong.first().cloned()
    }

    /// The branch points to this commit.
    pub(crate) fn head(&self, commit: &str) {
        commit.clone_into(&mut self.rules().head);
    }

    /// A new commit has these objects.
    pub(crate) fn commits(&self, commit: &str, folders: &Folders) {
        let mut stamps: BTreeMap<String, Vec<u64>> = BTreeMap::new();
        for (id, stamp) in folders.values().flatten() {
            stamps.entry(id.name()).or_default().push(*stamp);
        }
        self.rules().commits.insert(commit.to_owned(), stamps);
    }

    /// A person approves what a Sync asks for.
    pub(crate) fn approves(&self, sync: &str) {
        self.rules().syncs.entry(sync.to_owned()).or_default().approved = Some(Instant::now());
    }

    /// The spec of a Sync is written; `exists` is true if its path is a folder of the newest commit.
    pub(crate) fn orders(&self, sync: &str, exists: bool) {
        let mut rules = self.rules();
        let known = rules.syncs.entry(sync.to_owned()).or_default();
        known.found = exists.then(|| known.found.unwrap_or_else(Instant::now));
    }

    /// The path of a Sync is another folder: since when that exists counts from here.
    pub(crate) fn moves(&self, sync: &str) {
        self.rules().syncs.entry(sync.to_owned()).or_default().found = None;
    }

    /// A Sync is deleted: its status is gone with it.
    pub(crate) fn goes(&self, sync: &str) {
        self.rules().syncs.remove(sync);
    }

    /// The commit that the status of a Sync names as held.
    pub(crate) fn of(&self, sync: &str) -> Option<String> {
        Some(self.rules().syncs.get(sync)?.held.last()?.1.clone())
    }

    /// Takes in a request.
    pub(crate) fn hear(&self, heard: &ObservedRequest<'_>) {
        let (path, query) = heard.uri.split_once('?').unwrap_or((heard.uri, ""));
        let done = (200..300).contains(&heard.code) && !query.contains("dryRun");
        if !done || heard.client.is_empty() || heard.method == Method::GET {
            return;
        }
        match path.strip_suffix("/status").and_then(|path| path.rsplit_once("/syncs/")) {
            Some((_, sync)) => self.rules().told(sync, heard),
            None if *heard.method == Method::PATCH => self.rules().applied(path, heard),
            None if *heard.method == Method::DELETE => self.rules().deleted(path, heard),
            None => {}
        }
    }
}

impl Rules {
    /// Takes in a status.
    fn told(&mut self, sync: &str, heard: &ObservedRequest<'_>) {
        let body: Value = serde_json::from_slice(heard.body).unwrap_or_default();
        let status = status_in(&body);
        let commit = |pointer: &str| {
            let revision = status.pointer(pointer).and_then(Value::as_str)?;
            revision.rsplit_once('@').map(|(_, commit)| commit.to_owned())
        };
        let (held, attempted) = (commit("/revision/held/revision"), commit("/revision/attempted"));
        let ready = status["conditions"].as_array().into_iter().flatten().find(|it| it["type"] == "Ready");
        let reason = ready.and_then(|it| it["reason"].as_str()).unwrap_or_default().to_owned();
        let (now, known) = (Instant::now(), self.syncs.entry(sync.to_owned()).or_default());
        let is_new = held.is_some() && held.as_ref() != known.held.last().map(|(_, commit)| commit);
        if let Some(held) = held.clone().filter(|_| is_new) {
            known.held.push((now, held));
        }
        let is_refused = reason == "YamlInvalid" && attempted != held && !is_new;
        let refused = attempted.filter(|_| is_refused);
        if known.refused.as_ref().map(|(commit, _)| commit) != refused.as_ref() {
            known.refused = refused.map(|commit| (commit, now));
        }
        if reason == "PathNotFound" && known.found.is_some_and(|found| found + KNOWN < heard.sent) {
            self.wrong.push(format!("{sync} says PathNotFound of a folder that the newest commit has"));
        }
    }

    /// An object is written as the held revision has it.
    fn applied(&mut self, path: &str, heard: &ObservedRequest<'_>) {
        let body: Value = serde_json::from_slice(heard.body).unwrap_or_default();
        let metadata = &body["metadata"];
        let stamp = metadata["annotations"][STAMP].as_str().and_then(|stamp| stamp.parse::<u64>().ok());
        let sync = metadata["labels"]["moorline.dev/sync"].as_str().and_then(|it| it.rsplit_once('.'));
        let (Some(stamp), Some((_, sync))) = (stamp, sync) else { return };
        // A Sync that was made again has another status, and a daemon may not have heard of it yet.
        let Some(known) = self.syncs.get(sync).filter(|known| !known.held.is_empty()) else { return };
        let name = path.rsplit('/').next().unwrap_or_default();
        let at_sending = known.held.iter().rposition(|(since, _)| *since <= heard.sent).unwrap_or_default();
        let has = |(_, commit): &(Instant, String)| {
            let stamps = self.commits.get(commit).and_then(|objects| objects.get(name));
            stamps.is_some_and(|stamps| stamps.contains(&stamp))
        };
        if !known.held.iter().skip(at_sending).any(has) {
            let held = known.held.last().map_or("nothing", |(_, commit)| commit);
            self.wrong.push(format!(
                "{name} is written as of commit {stamp}, and the status of {sync} holds {held}: by {}",
                heard.client
            ));
        }
    }

    /// Nothing is deleted while the newest commit is refused.
    fn deleted(&mut self, path: &str, heard: &ObservedRequest<'_>) {
        let before = heard.before.clone().unwrap_or_default();
        let identity = before["metadata"]["annotations"]["moorline.dev/id"].as_str().unwrap_or_default();
        let owner = identity.split('|').next().unwrap_or_default();
        let Some((_, sync)) = owner.rsplit_once('/') else { return };
        let Some(known) = self.syncs.get(sync) else { return };
        let Some((commit, since)) = known.refused.as_ref().filter(|(commit, _)| *commit == self.head) else {
            return;
        };
        if *since < heard.sent && known.approved.is_none_or(|approved| approved < *since) {
            self.wrong.push(format!(
                "a prune of {path} while {sync} refuses {commit} and nobody has approved: by {}",
                heard.client
            ));
        }
    }
}

/// The status in a request: in an object, or in a JSON patch.
pub(crate) fn status_in(body: &Value) -> &Value {
    let steps = body.as_array().into_iter().flatten();
    steps
        .filter(|step| step["path"] == "/status")
        .map(|step| &step["value"])
        .next()
        .unwrap_or(&body["status"])
}
