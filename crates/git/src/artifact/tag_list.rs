//! The list of the tags of a repository in a registry.
//!
//! In: a client. Out: all tags, or an error: a part of the list is no answer.

use std::time::Instant;

use http::Method;
use serde_json::Value;

use super::super::challenge::next_page;
use super::super::error::Error;
use super::registry_client::{RegistryClient, RegistryRequest};

/// Maximum number of bytes of one page of tags, and of pages.
const MAX_PAGE_BYTES: u64 = 4 * 1024 * 1024;
const MAX_PAGES: usize = 64;

/// Number of tags that are asked for at once.
const PAGE_TAGS: usize = 1000;

/// Returns all tags of the repository.
pub(super) fn list_tags(client: &mut RegistryClient, by: Instant) -> Result<Vec<String>, Error> {
    let listed = client.of_mirrors(by, |mirror, by| match list_tags(mirror, by)? {
        tags if tags.is_empty() => Err(mirror.unusable("lists no tags")),
        tags => Ok(tags),
    });
    match listed {
        Some(tags) => Ok(tags),
        None => list_own_tags(client, by),
    }
}

/// Returns all tags of the repository as the registry itself lists them: a mirror may know few.
/// A page that is no list of tags is an error, so that no tag seems to be gone.
pub(super) fn list_own_tags(client: &mut RegistryClient, by: Instant) -> Result<Vec<String>, Error> {
    let mut next = client.url(&format!("/tags/list?n={PAGE_TAGS}"))?;
    let mut tags = Vec::new();
    for _ in 0..MAX_PAGES {
        let request =
            RegistryRequest { method: Method::GET, url: next.clone(), media: "application/json", body: None };
        let answer = client.exchange(&request, by)?;
        let link = answer.http.link.clone();
        let bytes = client.body(answer, "list of tags", MAX_PAGE_BYTES, "bytes of tags")?;
        let page = page_of_tags(&bytes);
        tags.extend(page.ok_or_else(|| client.unusable("answers with something else than a list of tags"))?);
        let Some(link) = link.as_deref().and_then(next_page) else { return Ok(tags) };
        let follows = next.resolve(link).filter(|follows| follows.is_beside(&next));
        next = follows.ok_or_else(|| client.unusable("has its next page of tags on another server"))?;
    }
    Err(client.unusable("has more tags than are read; name one tag instead"))
}

/// Returns the tags of a page; none if it is no list of tags. A repository without tags may have
/// null in the place of the list.
fn page_of_tags(page: &[u8]) -> Option<Vec<String>> {
    let page: Value = serde_json::from_slice(page).ok()?;
    match page.get("tags")? {
        Value::Null => Some(Vec::new()),
        Value::Array(tags) => tags.iter().map(|tag| tag.as_str().map(str::to_owned)).collect(),
        _ => None,
    }
}
