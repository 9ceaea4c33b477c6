//! Finds objects that would be deleted together with a Namespace or a CustomResourceDefinition.
//!
//! In: the container.
//! Out: the first relevant object in it, or the first kind that cannot be listed. It runs before a
//! container is pruned, which is rare, so every kind is listed again; only metadata is read.

use futures::StreamExt as _;
use futures::future::{BoxFuture, FutureExt as _};

use super::Cluster;
use super::kinds::Kinds;
use super::store::object;
use crate::api_error::ApiError;
use crate::pagination::Pages;
use moorline_core::object::{GroupKind, Object, ObjectId};
use moorline_engine::desired::Scope;
use moorline_metrics::RequestClass;

/// Maximum number of kinds that are listed concurrently.
const SIDE_BY_SIDE: usize = 8;

/// Content of a container.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ContainerContent {
    /// No relevant object.
    Nothing,
    /// A relevant object.
    Object(ObjectId),
    /// Objects of this kind may exist and cannot be listed.
    Hidden(GroupKind),
}

/// Predicate: true for relevant objects.
type Counts<'a> = dyn Fn(&Object, &Kinds) -> bool + Send + Sync + 'a;

/// All objects of a kind in a container.
struct Collection {
    kind: GroupKind,
    version: Box<str>,
    path: String,
}

/// Checks a Namespace, or all objects of the kind that a CustomResourceDefinition defines.
pub async fn find_contained_object(
    cluster: &Cluster,
    container: &ObjectId,
    counts: &Counts<'_>,
) -> Result<ContainerContent, ApiError> {
    cluster.discovery().refresh().await?;
    let kinds = cluster.kinds();
    let places = places(&kinds, container);
    if places.is_empty() {
        return Ok(ContainerContent::Hidden(container.group_kind()));
    }
    let look = |place| find_first(cluster, place, &kinds, counts).boxed();
    let looks: Vec<BoxFuture<'_, _>> = places.iter().map(look).collect();
    let mut found: Vec<ContainerContent> = Vec::new();
    let mut looks = futures::stream::iter(looks).buffer_unordered(SIDE_BY_SIDE);
    while let Some(look) = looks.next().await {
        found.push(look?);
    }
    let object = found.iter().position(|it| matches!(it, ContainerContent::Object(_)));
    let hidden = found.iter().position(|it| matches!(it, ContainerContent::Hidden(_)));
    Ok(object.or(hidden).map_or(ContainerContent::Nothing, |at| found.swap_remove(at)))
}

/// Returns the first relevant object of a kind.
async fn find_first(
    cluster: &Cluster,
    place: &Collection,
    kinds: &Kinds,
    counts: &Counts<'_>,
) -> Result<ContainerContent, ApiError> {
    let mut pages = Pages::new(&cluster.0.wire, RequestClass::Verify, &place.path, "");
    loop {
        let page = match pages.next().await {
            Ok(Some(page)) => page,
            Ok(None) => return Ok(ContainerContent::Nothing),
            // The kind is gone, and its objects with it.
            Err(ApiError::Refused(refusal)) if matches!(refusal.code, 404 | 405) => {
                return Ok(ContainerContent::Nothing);
            }
            Err(ApiError::Refused(refusal)) if matches!(refusal.code, 401 | 403) => {
                return Ok(ContainerContent::Hidden(place.kind.clone()));
            }
            Err(failure) => return Err(failure),
        };
        let objects = page.items.into_iter();
        let found =
            objects.filter_map(|body| object(&place.kind, &place.version, body)).find(|it| counts(it, kinds));
        if let Some(found) = found {
            return Ok(ContainerContent::Object(found.id));
        }
    }
}

/// Returns the collections of the objects in a container.
fn places(kinds: &Kinds, container: &ObjectId) -> Vec<Collection> {
    let namespace = container.is_kind("", "Namespace").then(|| container.name());
    let (plural, group) = container.name().split_once('.').unwrap_or_default();
    let inside = kinds.iter().filter(|(kind, served)| match namespace {
        Some(_) => served.scope == Scope::Namespaced,
        None => &*kind.group == group && &*served.plural == plural,
    });
    let place = |(kind, served): (&GroupKind, &super::ServedKind)| Collection {
        kind: kind.clone(),
        version: served.preferred().into(),
        path: served.collection(&kind.group, served.preferred(), namespace),
    };
    inside.map(place).collect()
}
