//! Finds kinds with labelled objects by listing, for a Sync whose status does not record its
//! inventory.
//!
//! In: all kinds.
//! Out: for each label, the kinds of its objects. Every kind that is not watched is listed once,
//! for all Syncs; kinds that this process applies later are added.

use std::collections::{BTreeSet, HashMap};

use futures::StreamExt as _;
use tokio::sync::Mutex;

use super::kinds::Kinds;
use crate::api_client::ApiClient;
use crate::api_error::ApiError;
use crate::pagination::Pages;
use moorline_api::{SYNC_LABEL, SyncName};
use moorline_core::object::GroupKind;
use moorline_metrics::RequestClass;

/// Maximum number of kinds that are listed concurrently.
const SIDE_BY_SIDE: usize = 8;

/// Kinds by label: listed ones, and those applied by this process.
#[derive(Debug, Default)]
pub(super) struct LabelDiscovery(Mutex<LabelledKinds>);

#[derive(Debug, Default)]
struct LabelledKinds {
    /// Kinds that were listed.
    swept: BTreeSet<GroupKind>,
    labels: HashMap<Box<str>, BTreeSet<GroupKind>>,
    /// Kinds that could not be listed in the last attempt.
    failing: BTreeSet<GroupKind>,
}

impl LabelDiscovery {
    /// Returns the kinds that may hold objects of a Sync: the listed ones, and the watched ones,
    /// whose objects are reported anyway. The flag is true if no kind is forbidden.
    pub(super) async fn kinds(
        &self,
        wire: &ApiClient,
        kinds: &Kinds,
        watched: BTreeSet<GroupKind>,
        owner: &SyncName,
    ) -> Result<(BTreeSet<GroupKind>, bool), ApiError> {
        let mut found = self.0.lock().await;
        let (complete, unlisted) = found.sweep(wire, kinds, &watched, owner).await?;
        let mut kinds = found.labels.get(&*owner.label()).cloned().unwrap_or_default();
        kinds.extend(watched);
        // Watching them reveals their objects once they can be listed.
        kinds.extend(unlisted);
        Ok((kinds, complete))
    }

    /// Drops the results, so that all kinds are listed again.
    pub(super) async fn reset(&self) {
        *self.0.lock().await = LabelledKinds::default();
    }

    /// Adds kinds that a Sync applies. No other manager creates such objects, so no kind is listed
    /// twice.
    pub(super) async fn note(&self, owner: &SyncName, kinds: &BTreeSet<GroupKind>) {
        let mut found = self.0.lock().await;
        let known = found.labels.entry(owner.label().into()).or_default();
        if !kinds.is_subset(known) {
            known.extend(kinds.iter().cloned());
        }
    }
}

impl LabelledKinds {
    /// Lists the kinds that were not listed yet; `owner` is named in log lines. Returns true if no
    /// kind is forbidden, and the kinds that could not be listed for now.
    async fn sweep(
        &mut self,
        wire: &ApiClient,
        kinds: &Kinds,
        watched: &BTreeSet<GroupKind>,
        owner: &SyncName,
    ) -> Result<(bool, Vec<GroupKind>), ApiError> {
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
                    // A kind that is forbidden, or whose server is down, is listed again by the
                    // next caller.
                    Some(403 | 503) => complete = false,
                    // The kind does not exist any more.
                    Some(404 | 405) => {}
                    Some(500..) => {
                        if self.failing.insert(kind.clone()) {
                            tracing::warn!(sync = %owner, %kind, %failure, "cannot list this kind now; objects of it that were removed from Git may be missed");
                        }
                        unlisted.push(kind);
                    }
                    // An API server that does not respond at all is an error of the whole call.
                    _ => return Err(failure),
                },
            }
        }
        Ok((complete, unlisted))
    }
}

/// Returns the labels of all labelled objects of a kind.
async fn labels(wire: &ApiClient, path: &str) -> Result<BTreeSet<Box<str>>, ApiError> {
    let mut labels = BTreeSet::new();
    let selector = format!("labelSelector={}", super::query(SYNC_LABEL));
    let mut pages = Pages::new(wire, RequestClass::Watch, path, &selector);
    while let Some(page) = pages.next().await? {
        let found = page.items.iter().filter_map(|item| item.get("metadata")?.get("labels")?.get(SYNC_LABEL));
        labels.extend(found.filter_map(|label| label.as_str().map(Box::<str>::from)));
    }
    Ok(labels)
}
