//! Detects that the server was set back to an earlier state, as by a restored backup.
//!
//! In: objects that were seen, and responses to writes.
//! Out: true if a server that was away has lost them. Comparing versions is not enough: a server
//! that was set back soon passes every version that we know, and never reports that objects are
//! gone.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde_json::{Map, Value};

use super::query;
use crate::api_client::ApiClient;
use crate::api_error::ApiError;
use crate::pagination::first;

/// An object and a resourceVersion that it had.
#[derive(Clone)]
pub(super) struct VersionProbe {
    /// Path of its collection.
    pub(super) path: Box<str>,
    /// Field selector of the object.
    pub(super) place: Box<str>,
    pub(super) version: u64,
}

impl VersionProbe {
    /// True if the server does not know the object at this version.
    pub(super) async fn is_lost(&self, wire: &ApiClient) -> Result<bool, ApiError> {
        Ok(match self.then(wire).await? {
            Then::Is(is) => !is,
            // A missing object may have been deleted; a full list is right either way.
            Then::Forgotten => self.now(wire).await?.is_none_or(|version| version < self.version),
        })
    }

    /// Reads the object at its version. Each version contains the write that created it, so one
    /// version differs between two histories.
    async fn then(&self, wire: &ApiClient) -> Result<Then, ApiError> {
        let then = format!("&resourceVersion={}&resourceVersionMatch=Exact", self.version);
        match self.version(wire, &then).await {
            Ok(found) => Ok(Then::Is(found == Some(self.version))),
            Err(failure) if failure.is_behind() => Ok(Then::Is(false)),
            Err(failure) if failure.code() == Some(410) => Ok(Then::Forgotten),
            Err(failure) => Err(failure),
        }
    }

    async fn now(&self, wire: &ApiClient) -> Result<Option<u64>, ApiError> {
        self.version(wire, "").await
    }

    /// Current or past version of the object; none if there is none.
    async fn version(&self, wire: &ApiClient, then: &str) -> Result<Option<u64>, ApiError> {
        let uri = format!("{}?limit=1&fieldSelector={}{then}", self.path, query(&self.place));
        Ok(first(wire, uri).await?.map(|item| number(version_of(&item).as_deref())))
    }
}

/// The server's answer about a past version.
enum Then {
    /// True if the version has the object as we know it.
    Is(bool),
    /// The version is compacted.
    Forgotten,
}

/// Newest own writes of all identities of the daemon. The watches may not have reported them yet
/// when the server is set back to an earlier state.
#[derive(Clone, Default)]
pub(super) struct WriteHistory(Arc<Mutex<Writes>>);

#[derive(Default)]
struct Writes {
    /// One write for each period between two interruptions, with its client. Versions after an
    /// interruption may belong to another history, and say nothing about the period before it.
    last: Vec<(VersionProbe, kube::Client)>,
    /// The server was away since the last of them.
    interrupted: bool,
}

/// Maximum number of periods that are kept.
const TIMES: usize = 4;

impl WriteHistory {
    fn lock(&self) -> MutexGuard<'_, Writes> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Records the version of the object at this path and of this name.
    pub(super) fn note(&self, client: &kube::Client, path: &str, name: &str, version: u64) {
        let Some((collection, _)) = path.rsplit_once('/') else { return };
        let mut writes = self.lock();
        if !writes.interrupted {
            if writes.last.last().is_some_and(|(newest, _)| version <= newest.version) {
                return;
            }
            writes.last.pop();
        } else if writes.last.len() == TIMES {
            writes.last.remove(1);
        }
        let place = format!("metadata.name={name}").into();
        writes.last.push((VersionProbe { path: collection.into(), place, version }, client.clone()));
        writes.interrupted = false;
    }

    /// Records that the server did not answer.
    pub(super) fn interrupted(&self) {
        self.lock().interrupted = true;
    }

    /// True if there are writes on both sides of an interruption that were not compared yet.
    pub(super) fn is_doubtful(&self) -> bool {
        self.lock().last.len() > 1
    }

    /// Drops all writes, after the server was set back.
    pub(super) fn forget(&self) {
        self.lock().last.clear();
    }

    /// True if the server does not know a write newer than the version `listed`.
    pub(super) async fn is_lost(&self, wire: &ApiClient, listed: u64) -> Result<bool, ApiError> {
        let writes = self.lock().last.clone();
        for (newest, client) in writes.iter().filter(|(newest, _)| newest.version > listed) {
            let wire = ApiClient { client: client.clone(), ..wire.clone() };
            match newest.then(&wire).await {
                Ok(Then::Is(true)) => {}
                Ok(Then::Is(false)) => return Ok(true),
                // The watches have long reported a write that is compacted by now.
                Ok(Then::Forgotten) => {}
                // The writer may have lost the right to read it, or the kind is gone: that proves
                // nothing, and must not block.
                Err(failure) if matches!(failure.code(), Some(401 | 403 | 404 | 405)) => {}
                Err(failure) => return Err(failure),
            }
        }
        // All checked writes belong to one history, so the last one represents them.
        self.lock().last.drain(..writes.len().saturating_sub(1));
        Ok(false)
    }
}

/// Returns the resourceVersion of an object.
pub(super) fn version_of(object: &Map<String, Value>) -> Option<Box<str>> {
    Some(object.get("metadata")?.get("resourceVersion")?.as_str()?.into())
}

/// Returns a resourceVersion as a number, as API servers compare it.
pub(super) fn number(version: Option<&str>) -> u64 {
    version.and_then(|version| version.parse().ok()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn the_newest_of_each_time_is_kept() {
        let nowhere = kube::Config::new("http://127.0.0.1:9".parse().unwrap());
        let (written, client) = (WriteHistory::default(), kube::Client::try_from(nowhere).unwrap());
        let known =
            |written: &WriteHistory| written.lock().last.iter().map(|it| it.0.version).collect::<Vec<_>>();
        for version in [3, 5, 4] {
            written.note(&client, "/api/v1/namespaces/shop/configmaps/a", "a", version);
        }
        assert_eq!(known(&written), [5]);
        assert!(!written.is_doubtful());
        // After an interruption any version may belong to another history.
        for version in [2, 6, 1, 7, 3] {
            written.interrupted();
            written.note(&client, "/api/v1/namespaces/shop/configmaps/b", "b", version);
        }
        assert_eq!(known(&written), [5, 1, 7, 3]);
        assert!(written.is_doubtful());
        assert_eq!(&*written.lock().last[0].0.path, "/api/v1/namespaces/shop/configmaps");
        written.forget();
        assert!(!written.is_doubtful());
    }
}
