//! Paginated lists.
//!
//! In: a collection and a selector.
//! Out: its objects or their metadata, in pages, so that no response is large.

use serde::Deserialize;
use serde_json::{Map, Value};

use super::query;
use crate::api_client::{ApiClient, ApiRequest, METADATA_LIST, WHOLE};
use crate::api_error::ApiError;
use moorline_metrics::RequestClass;

/// Page sizes: for metadata, and for whole objects.
const SIZE: usize = 500;
const SIZE_OF_WHOLE: usize = 100;

/// A list in progress.
pub(super) struct Pages<'a> {
    wire: &'a ApiClient,
    class: RequestClass,
    /// The collection and the parameters of each request.
    uri: String,
    size: usize,
    /// Content type: metadata or whole objects.
    accept: &'static str,
    /// Continue token; none after the last page.
    next: Option<String>,
}

/// One page of a list.
#[derive(Debug, Default)]
pub(super) struct Page {
    /// resourceVersion of the whole list.
    pub(super) version: Box<str>,
    pub(super) items: Vec<Map<String, Value>>,
    /// Size of the response.
    pub(super) bytes: usize,
    /// True if another page follows.
    pub(super) has_next: bool,
}

impl<'a> Pages<'a> {
    /// Lists the metadata of the objects that `selector`, a query parameter, selects; empty for
    /// all.
    pub(super) fn new(wire: &'a ApiClient, class: RequestClass, path: &str, selector: &str) -> Self {
        let uri = format!("{path}?{selector}");
        Self { wire, class, uri, size: SIZE, accept: METADATA_LIST, next: Some(String::new()) }
    }

    /// Lists whole objects.
    pub(super) fn of_whole_objects(self) -> Self {
        Self { accept: WHOLE, size: SIZE_OF_WHOLE, ..self }
    }

    /// Asks for pages of another size.
    pub(super) fn of_size(self, size: usize) -> Self {
        Self { size, ..self }
    }

    /// Returns the next page; none after the last one.
    pub(super) async fn next(&mut self) -> Result<Option<Page>, ApiError> {
        let Some(next) = &self.next else { return Ok(None) };
        let uri = format!("{}&limit={}&continue={}", self.uri, self.size, query(next));
        let page = page(self.wire, self.class, uri, self.accept).await?;
        self.next = page.metadata.next.filter(|next| !next.is_empty());
        let (items, has_next) = (page.items.unwrap_or_default(), self.next.is_some());
        Ok(Some(Page { version: page.metadata.resource_version, items, bytes: page.bytes, has_next }))
    }
}

/// Returns the metadata of the first listed object, if there is one.
pub(super) async fn first(wire: &ApiClient, uri: String) -> Result<Option<Map<String, Value>>, ApiError> {
    let page = page(wire, RequestClass::Watch, uri, METADATA_LIST).await?;
    Ok(page.items.into_iter().flatten().next())
}

async fn page(
    wire: &ApiClient,
    class: RequestClass,
    uri: String,
    accept: &'static str,
) -> Result<Listed, ApiError> {
    let reply = wire.send(ApiRequest::new(class, "list", uri).accept(accept)).await?;
    Ok(Listed { bytes: reply.body.len(), ..reply.json()? })
}

/// A page as the server sends it.
#[derive(Deserialize)]
struct Listed {
    #[serde(default)]
    metadata: Metadata,
    #[serde(default)]
    items: Option<Vec<Map<String, Value>>>,
    #[serde(skip)]
    bytes: usize,
}

#[derive(Default, Deserialize)]
struct Metadata {
    #[serde(default, rename = "resourceVersion")]
    resource_version: Box<str>,
    #[serde(default, rename = "continue")]
    next: Option<String>,
}
