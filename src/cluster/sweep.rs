//! Where labelled objects are, found out by listing: for a Sync whose status does not say it.
//!
//! In: all kinds. Out: for each label, the kinds of its objects. One sweep lists every kind that is not watched
//! anyway, once and for all Syncs that asked before it began.

use std::collections::{BTreeSet, HashMap};
use std::time::Instant;

use futures::StreamExt as _;
use serde::Deserialize;
use serde_json::Value;
use tokio::sync::Mutex;

use super::kinds::Kinds;
use super::watches::Watches;
use super::wire::{Call, Failure, METADATA_LIST, Wire};
use crate::api::{SYNC_LABEL, SyncName};
use crate::metrics::Class;
use crate::object::GroupKind;

/// Kinds that are listed at one time.
const SIDE_BY_SIDE: usize = 8;
/// Objects of a page.
const PAGE: usize = 500;

/// The newest sweep.
#[derive(Debug, Default)]
pub(super) struct Sweep(Mutex<Option<Found>>);

#[derive(Debug)]
struct Found {
    begun: Instant,
    labels: HashMap<Box<str>, BTreeSet<GroupKind>>,
    /// Kinds that were watched then, and kinds that could not be listed: they may hold objects of anybody.
    unknown: BTreeSet<GroupKind>,
}

impl Sweep {
    /// The kinds that may hold objects of a Sync.
    pub(super) async fn kinds(
        &self,
        wire: &Wire,
        kinds: &Kinds,
        watches: &Watches,
        owner: &SyncName,
    ) -> Result<BTreeSet<GroupKind>, Failure> {
        let asked = Instant::now();
        let mut newest = self.0.lock().await;
        if newest.as_ref().is_none_or(|found| found.begun < asked) {
            *newest = Some(sweep(wire, kinds, watches).await?);
        }
        let label = owner.label();
        let found = newest.as_ref();
        let mut kinds = found.and_then(|found| found.labels.get(&*label)).cloned().unwrap_or_default();
        kinds.extend(found.into_iter().flat_map(|found| found.unknown.iter().cloned()));
        Ok(kinds)
    }
}

async fn sweep(wire: &Wire, kinds: &Kinds, watches: &Watches) -> Result<Found, Failure> {
    let mut found = Found { begun: Instant::now(), labels: HashMap::new(), unknown: watches.kinds() };
    let places = kinds.iter().filter(|(kind, _)| !found.unknown.contains(*kind));
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
            Ok(labels) => labels.into_iter().for_each(|label| {
                found.labels.entry(label).or_default().insert(kind.clone());
            }),
            // What may not be listed or is not there any more holds nothing that we could have applied; an API
            // server that does not answer is another matter.
            Err(Failure::Refused(refusal)) if matches!(refusal.code, 403..=405 | 503) => {}
            Err(failure) => return Err(failure),
        }
    }
    Ok(found)
}

/// The labels of all labelled objects of a kind.
async fn labels(wire: &Wire, path: &str) -> Result<BTreeSet<Box<str>>, Failure> {
    let (mut labels, mut next) = (BTreeSet::new(), String::new());
    loop {
        let selector = super::query(SYNC_LABEL);
        let uri = format!("{path}?limit={PAGE}&labelSelector={selector}&continue={}", super::query(&next));
        let reply = wire.send(Call::new(Class::Watch, "list", uri).accept(METADATA_LIST)).await?;
        let page: Page = serde_json::from_slice(&reply.body)
            .map_err(|error| Failure::BadAnswer(error.to_string().into()))?;
        let found =
            page.items.iter().flatten().filter_map(|item| item.pointer("/metadata/labels")?.get(SYNC_LABEL));
        labels.extend(found.filter_map(|label| label.as_str().map(Box::<str>::from)));
        next = page.metadata.next.unwrap_or_default();
        if next.is_empty() {
            return Ok(labels);
        }
    }
}

#[derive(Deserialize)]
struct Page {
    metadata: Metadata,
    #[serde(default)]
    items: Option<Vec<Value>>,
}

#[derive(Deserialize)]
struct Metadata {
    #[serde(default, rename = "continue")]
    next: Option<String>,
}
