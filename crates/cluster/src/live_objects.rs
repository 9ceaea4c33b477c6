//! Reads all live objects of a Sync, for previews.
//!
//! In: kinds, and desired objects.
//! Out: the live objects that the Sync owns, and those that it would adopt. The daemon does not use
//! it: it knows its objects by their metadata.

use std::collections::BTreeSet;

use futures::{StreamExt as _, TryStreamExt as _};

use super::store::object;
use super::{Cluster, query};
use crate::api_error::ApiError;
use crate::pagination::Pages;
use moorline_api::{SYNC_LABEL, SyncName};
use moorline_core::object::{GroupKind, Object, ObjectId};
use moorline_metrics::RequestClass;

/// Maximum number of concurrent requests.
const SIDE_BY_SIDE: usize = 8;

/// Returns the objects of these kinds with the label of a Sync, and the `wanted` ones without
/// it.
pub async fn live_objects(
    cluster: &Cluster,
    owner: &SyncName,
    kinds: &BTreeSet<GroupKind>,
    wanted: impl Iterator<Item = &ObjectId>,
) -> Result<Vec<Object>, ApiError> {
    let lists = futures::stream::iter(kinds.iter().cloned()).map(|kind| labelled(cluster, kind, owner));
    let listed: Vec<Vec<Object>> = lists.buffer_unordered(SIDE_BY_SIDE).try_collect().await?;
    let mut live: Vec<Object> = listed.into_iter().flatten().collect();
    let seen: BTreeSet<ObjectId> = live.iter().map(|object| object.id.clone()).collect();
    let known = cluster.kinds();
    let missing: Vec<ObjectId> =
        wanted.filter(|id| !seen.contains(*id) && known.get(&id.group_kind()).is_some()).cloned().collect();
    let reads =
        futures::stream::iter(missing).map(|id| async move { cluster.objects().read_whole(&id, None).await });
    let others: Vec<Option<Object>> = reads.buffer_unordered(SIDE_BY_SIDE).try_collect().await?;
    live.extend(others.into_iter().flatten());
    Ok(live)
}

async fn labelled(cluster: &Cluster, kind: GroupKind, owner: &SyncName) -> Result<Vec<Object>, ApiError> {
    let kinds = cluster.kinds();
    let Some(served) = kinds.get(&kind) else { return Ok(Vec::new()) };
    let path = served.collection(&kind.group, served.preferred(), None);
    let selector = format!("labelSelector={}", query(&format!("{SYNC_LABEL}={}", owner.label())));
    let mut pages = Pages::new(&cluster.0.wire, RequestClass::Verify, &path, &selector).of_whole_objects();
    let mut found = Vec::new();
    while let Some(page) = pages.next().await? {
        for mut body in page.items {
            // Items of a list do not repeat the kind of the list.
            body.insert("kind".to_owned(), (*kind.kind).into());
            found.extend(object(&kind, served.preferred(), body));
        }
    }
    Ok(found)
}
