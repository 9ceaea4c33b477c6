//! What the server has shown or taken last, by which it is known whether it goes on from there.
//!
//! In: objects that were seen, and answers to writes. Out: whether a server that was away still has them as they were
//! then. Versions alone say little: a server that was set back, as by a restored backup, is soon beyond any of them, and
//! then goes on without a word about what is not so any more.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::page::first;
use super::query;
use super::watch::{number, version_of};
use super::wire::{Failure, Wire};

/// An object, and the version that it had.
#[derive(Clone)]
pub(super) struct Newest {
    /// The path of its collection.
    pub(super) path: Box<str>,
    /// Which object of it, as a field selector.
    pub(super) place: Box<str>,
    pub(super) version: u64,
}

impl Newest {
    /// True if the server does not know the object as it was.
    pub(super) async fn is_lost(&self, wire: &Wire) -> Result<bool, Failure> {
        Ok(match self.then(wire).await? {
            Then::Is(is) => !is,
            // An object that is gone may have been deleted; to list all is right either way.
            Then::Forgotten => self.now(wire).await?.is_none_or(|version| version < self.version),
        })
    }

    /// What was written in a version is what was in it: one version of two histories holds different things.
    async fn then(&self, wire: &Wire) -> Result<Then, Failure> {
        let then = format!("&resourceVersion={}&resourceVersionMatch=Exact", self.version);
        match self.version(wire, &then).await {
            Ok(found) => Ok(Then::Is(found == Some(self.version))),
            Err(failure) if failure.is_behind() => Ok(Then::Is(false)),
            Err(failure) if failure.code() == Some(410) => Ok(Then::Forgotten),
            Err(failure) => Err(failure),
        }
    }

    async fn now(&self, wire: &Wire) -> Result<Option<u64>, Failure> {
        self.version(wire, "").await
    }

    /// Its version as the server has it, or had it then; none where there is no such object.
    async fn version(&self, wire: &Wire, then: &str) -> Result<Option<u64>, Failure> {
        let uri = format!("{}?limit=1&fieldSelector={}{then}", self.path, query(&self.place));
        Ok(first(wire, uri).await?.map(|item| number(version_of(&item).as_deref())))
    }
}

/// What the server says about a version that is over.
enum Then {
    /// Whether the object was in it as we know it.
    Is(bool),
    /// It does not remember.
    Forgotten,
}

/// The newest of our own writes, whoever of the daemon's identities made it. The watches may not have told of it yet
/// when the server goes back to before it.
#[derive(Clone, Default)]
pub(super) struct Written(Arc<Mutex<Writes>>);

#[derive(Default)]
struct Writes {
    /// One for each time between two interruptions, and by whom: what a server takes after it was away may be of another
    /// history, and says nothing about the one before.
    last: Vec<(Newest, kube::Client)>,
    /// The server was away since the last of them.
    interrupted: bool,
}

/// The most times between interruptions of which something is kept.
const TIMES: usize = 4;

impl Written {
    fn lock(&self) -> MutexGuard<'_, Writes> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Remembers that the object at this path, which has this name, was left in this version.
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
        writes.last.push((Newest { path: collection.into(), place, version }, client.clone()));
        writes.interrupted = false;
    }

    /// The server did not answer.
    pub(super) fn interrupted(&self) {
        self.lock().interrupted = true;
    }

    /// True if something was written on either side of an interruption, and the server has not been asked since.
    pub(super) fn is_doubtful(&self) -> bool {
        self.lock().last.len() > 1
    }

    /// What was written is no more.
    pub(super) fn forget(&self) {
        self.lock().last.clear();
    }

    /// True if something was written after the version `told`, and the server does not know it.
    pub(super) async fn is_lost(&self, wire: &Wire, told: u64) -> Result<bool, Failure> {
        let writes = self.lock().last.clone();
        for (newest, client) in writes.iter().filter(|(newest, _)| newest.version > told) {
            let wire = Wire { client: client.clone(), ..wire.clone() };
            match newest.then(&wire).await {
                Ok(Then::Is(true)) => {}
                Ok(Then::Is(false)) => return Ok(true),
                // Of a write that the server has forgotten the watches have told long ago.
                Ok(Then::Forgotten) => {}
                // Whoever wrote it may see it no more, or its kind is gone: nothing is known, and nobody waits for it.
                Err(failure) if matches!(failure.code(), Some(401 | 403 | 404 | 405)) => {}
                Err(failure) => return Err(failure),
            }
        }
        // What was asked about is of one history, so that the last of it speaks for all.
        self.lock().last.drain(..writes.len().saturating_sub(1));
        Ok(false)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn the_newest_of_each_time_is_kept() {
        let nowhere = kube::Config::new("http://127.0.0.1:9".parse().unwrap());
        let (written, client) = (Written::default(), kube::Client::try_from(nowhere).unwrap());
        let known = |written: &Written| written.lock().last.iter().map(|it| it.0.version).collect::<Vec<_>>();
        for version in [3, 5, 4] {
            written.note(&client, "/api/v1/namespaces/shop/configmaps/a", "a", version);
        }
        assert_eq!(known(&written), [5]);
        assert!(!written.is_doubtful());
        // After an interruption any version may be of another history.
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
