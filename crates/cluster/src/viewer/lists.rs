//! Bounded lists for people who look at a cluster.
//!
//! In: a kind, a namespace, and bounds.
//! Out: the objects or their metadata, page by page, until a bound is reached. No watch follows.

use serde_json::{Map, Value};

use crate::Cluster;
use crate::api_error::ApiError;
use crate::kinds::escape as query;
use crate::pagination::Pages;
use moorline_api::{SYNC_LABEL, SyncName};
use moorline_core::object::GroupKind;
use moorline_metrics::RequestClass;

/// Size of a page of Events, which are small.
const EVENTS_IN_A_PAGE: usize = 500;

/// A collection.
#[derive(Debug, Clone, Copy)]
pub struct ListScope<'a> {
    /// The kind.
    pub kind: &'a GroupKind,
    /// The namespace.
    pub namespace: &'a str,
    /// Only objects with the label of this Sync, if given.
    pub only: Option<&'a SyncName>,
}

/// Form of the listed objects.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ListForm {
    /// Their metadata.
    Metadata,
    /// Whole objects.
    Whole,
    /// Whole objects in large pages, for Events.
    Events,
}

/// Bounds of a list.
#[derive(Debug, Clone, Copy)]
pub struct ListBounds {
    /// The most objects. A page that was begun is used completely.
    pub objects: usize,
    /// The most bytes. A page that was begun is used completely.
    pub bytes: usize,
}

/// End of a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ListEnd {
    /// Bytes of all responses.
    pub bytes: usize,
    /// True if there are more objects.
    pub is_cut: bool,
}

/// Lists a kind in a namespace, and passes each object to `take`.
///
/// # Errors
///
/// Any [`ApiError`]; the objects of earlier pages were passed on.
pub async fn list_for_viewer(
    cluster: &Cluster,
    scope: ListScope<'_>,
    form: ListForm,
    bounds: ListBounds,
    mut take: impl FnMut(Map<String, Value>) + Send,
) -> Result<ListEnd, ApiError> {
    let kinds = cluster.kinds();
    let Some(served) = kinds.get(scope.kind) else {
        return Err(ApiError::UnknownKind(scope.kind.to_string().into()));
    };
    let path = served.collection(&scope.kind.group, served.preferred(), Some(scope.namespace));
    let selector = scope
        .only
        .map(|owner| format!("labelSelector={}", query(&format!("{SYNC_LABEL}={}", owner.label()))));
    let pages = Pages::new(&cluster.0.wire, RequestClass::Verify, &path, &selector.unwrap_or_default());
    let mut pages = match form {
        ListForm::Metadata => pages,
        ListForm::Whole => pages.of_whole_objects(),
        ListForm::Events => pages.of_whole_objects().of_size(EVENTS_IN_A_PAGE),
    };
    let mut end = ListEnd { bytes: 0, is_cut: false };
    let mut count = 0;
    while let Some(page) = pages.next().await? {
        count += page.items.len();
        end.bytes += page.bytes;
        page.items.into_iter().for_each(&mut take);
        if page.has_next && (count >= bounds.objects || end.bytes >= bounds.bytes) {
            end.is_cut = true;
            break;
        }
    }
    Ok(end)
}
