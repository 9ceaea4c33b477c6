//! Where labelled objects are, found out by listing: for a Sync whose status does not say it.
//!
//! In: all kinds. Out: for each label, the kinds of its objects. Every kind that is not watched anyway is listed once,
//! for all Syncs; what this process applies after that it remembers.

use std::collections::{BTreeSet, HashMap};

use futures::StreamExt as _;
use tokio::sync::Mutex;

use super::kinds::Kinds;
use super::page::Pages;
use super::wire::{Failure, Wire};
use moorline_api::{SYNC_LABEL, SyncName};
use moorline_core::object::GroupKind;
use moorline_metrics::Class;

/// Kinds that are listed at one time.
const SIDE_BY_SIDE: usize = 8;

/// What was found, and what this process has made since.
#[derive(Debug, Default)]
pub(super) struct Sweep(Mutex<Found>);

#[derive(Debug, Default)]
struct Found {
    /// Kinds that were listed.
    swept: BTreeSet<GroupKind>,
    labels: HashMap<Box<str>, BTreeSet<GroupKind>>,
    /// Kinds that could not be listed when that was tried last.
    failing: BTreeSet<GroupKind>,
}

impl Sweep {
    /// The kinds that may hold objects of a Sync: those found, and those that are watched, which show by themselves.
    /// True if there is no kind that may not be listed.
    pub(super) async fn kinds(
        &self,
        wire: &Wire,
        kinds: &Kinds,
        watched: BTreeSet<GroupKind>,
        owner: &SyncName,
    ) -> Result<(BTreeSet<GroupKind>, bool), Failure> {
        let mut found = self.0.lock().await;
        let (complete, unlisted) = found.sweep(wire, kinds, &watched, owner).await?;
        let mut kinds = found.labels.get(&*owner.label()).cloned().unwrap_or_default();
        kinds.extend(watched);
        // Whoever watches them learns of what is in them as soon as that can be seen.
        kinds.extend(unlisted);
        Ok((kinds, complete))
    }

    /// Forgets what was found, so that it has to be listed anew.
    pub(super) async fn lose(&self) {
        *self.0.lock().await = Found::default();
    }

    /// From now on a Sync may have objects of these kinds. Nobody else makes any, so that no kind is listed twice.
    pub(super) async fn note(&self, owner: &SyncName, kinds: &BTreeSet<GroupKind>) {
        let mut found = self.0.lock().await;
        let known = found.labels.entry(owner.label().into()).or_default();
        if !kinds.is_subset(known) {
            known.extend(kinds.iter().cloned());
        }
    }
}

impl Found {
    /// Lists what was not listed yet, for a Sync that is named where that fails. True if everything may be listed; with it, the kinds that could not be for now.
    async fn sweep(
        &mut self,
        wire: &Wire,
        kinds: &Kinds,
        watched: &BTreeSet<GroupKind>,
        owner: &SyncName,
    ) -> Result<(bool, Vec<GroupKind>), Failure> {
        let (mut complete, mut unlisted) = (true, Vec::new());
        let places = kinds.iter().filter(|(kind, _)| !watched.contains(*kind) && !self.swept.contains(*kind));
        let places: Vec<(GroupKind, String)> = places
            .map(|(kind, served)| (kind.clone(), served.collection(&kind.group, served.preferred(), None)))
            .collect();
        let listed = futures::stream::iter(places).map(|(kind, path)| {
            let wire = wire.clone();
            async move { (kind, labels(&wire, &path).await) }
        });
        let listed: Vec<_> = listed.buffer_unordered(SIDE_BY_SIDE).collect().await;
        for (kind, labels) in listed {
            match labels {
                Ok(labels) => {
                    for label in labels {
                        self.labels.entry(label).or_default().insert(kind.clone());
                    }
                    self.failing.remove(&kind);
                    self.swept.insert(kind);
                }
                Err(failure) => match failure.code() {
                    // What may not be listed, or has no server behind it, is asked again by the next who needs it.
                    Some(403 | 503) => complete = false,
                    // It is not there any more.
                    Some(404 | 405) => {}
                    Some(500..) => {
                        if self.failing.insert(kind.clone()) {
                            tracing::warn!(sync = %owner, %kind, %failure, "objects that left Git may be of a kind that cannot be listed now");
                        }
                        unlisted.push(kind);
                    }
                    // An API server that does not answer at all is another matter.
                    _ => return Err(failure),
                },
            }
        }
        Ok((complete, unlisted))
    }
}

/// The labels of all labelled objects of a kind.
async fn labels(wire: &Wire, path: &str) -> Result<BTreeSet<Box<str>>, Failure> {
    let mut labels = BTreeSet::new();
    let selector = format!("labelSelector={}", super::query(SYNC_LABEL));
    let mut pages = Pages::new(wire, Class::Watch, path, &selector);
    while let Some(page) = pages.next().await? {
        let found = page.items.iter().filter_map(|item| item.get("metadata")?.get("labels")?.get(SYNC_LABEL));
        labels.extend(found.filter_map(|label| label.as_str().map(Box::<str>::from)));
    }
    Ok(labels)
}
