//! The order in which revisions are written: no older revision of an object follows a newer one.
//!
//! In: commits, statuses and writes, as they happen. Out: a sentence for a write that breaks the rule. A Sync that keeps an older
//! revision, because the newest one is refused, writes that older revision on purpose: the object may have moved to another Sync
//! in a commit that this one cannot apply, and that other Sync has released it since. `held.rs` says what it may write.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::held::status_in;
use super::objects::STAMP;

#[derive(Default)]
pub(crate) struct Revisions {
    /// The commits by which each object was to have each of its stamps, from one to another: a branch may go back.
    stamps: BTreeMap<String, BTreeMap<u64, Vec<(u64, u64)>>>,
    commits: u64,
    /// The commit by which each object was written at the earliest.
    newest: BTreeMap<String, u64>,
    /// The Syncs that keep an older revision, as their statuses say.
    keeping: BTreeSet<String>,
}

impl Revisions {
    /// A new commit wants these stamps of these objects.
    pub(crate) fn commits(&mut self, stamps: impl Iterator<Item = (String, u64)>) {
        self.commits += 1;
        let commit = self.commits;
        for (name, stamp) in stamps {
            let times = self.stamps.entry(name).or_default().entry(stamp).or_default();
            match times.last_mut() {
                Some((_, last)) if *last + 1 == commit => *last = commit,
                _ => times.push((commit, commit)),
            }
        }
    }

    /// Takes in a status of a Sync.
    pub(crate) fn told(&mut self, sync: &str, body: &[u8]) {
        let body: Value = serde_json::from_slice(body).unwrap_or_default();
        let conditions = status_in(&body)["conditions"].as_array().into_iter().flatten();
        let mut messages = conditions.filter_map(|condition| condition["message"].as_str());
        match messages.any(|message| message.ends_with(" stays applied")) {
            true => self.keeping.insert(sync.to_owned()),
            false => self.keeping.remove(sync),
        };
    }

    /// Takes in a write of an object.
    pub(crate) fn applied(&mut self, path: &str, body: &[u8]) -> Option<String> {
        let body: Value = serde_json::from_slice(body).unwrap_or_default();
        let metadata = &body["metadata"];
        let stamp = metadata["annotations"][STAMP].as_str()?.parse::<u64>().ok()?;
        let sync = metadata["labels"]["moorline.dev/sync"].as_str().and_then(|it| it.rsplit_once('.'));
        let name = path.rsplit('/').next().unwrap_or_default();
        let newest = self.newest.entry(path.to_owned()).or_default();
        let times = self.stamps.get(name).and_then(|stamps| stamps.get(&stamp));
        match times.into_iter().flatten().find(|(_, last)| last >= newest) {
            Some((first, _)) => *newest = (*first).max(*newest),
            None if sync.is_some_and(|(_, sync)| self.keeping.contains(sync)) => {}
            None => return Some(format!("revision {stamp} was written after that of commit {newest}")),
        }
        None
    }
}
