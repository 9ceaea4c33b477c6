//! The list of the open pull requests of a repository, page by page.
//!
//! In: a client of the host. Out: the pull requests. A page that has not changed is one request
//! without a body, where the host has ETags.

use super::host_client::{ErrorReach, HostClient, ListAnswer, VisitError};
use crate::notifications::pull_requests::{ListPage, OpenRequest, PageCursor, open_requests};

/// Most open pull requests that are read.
const MAX_OPEN: usize = 192;

/// The open pull requests, as they were read last.
#[derive(Default)]
pub(in crate::controller) struct OpenList {
    pages: Vec<KnownPage>,
}

/// A page of the list.
#[derive(Clone)]
struct KnownPage {
    at: ListPage,
    /// The number of its entries.
    entries: usize,
    etag: Option<String>,
    listed: Vec<OpenRequest>,
}

/// Result of a reading.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::controller) struct ListReading {
    /// The pull requests are the same as at the last reading.
    pub(in crate::controller) is_same: bool,
    /// No entry was left out, and the end of the list was reached.
    pub(in crate::controller) is_complete: bool,
}

impl OpenList {
    /// Returns a list of one page.
    #[cfg(test)]
    pub(in crate::controller) fn of(listed: Vec<OpenRequest>) -> Self {
        let at = ListPage { page: 1, size: 32 };
        Self { pages: vec![KnownPage { at, entries: listed.len(), etag: None, listed }] }
    }

    /// Returns the pull requests. One that moved between two pages may be there twice.
    pub(in crate::controller) fn requests(&self) -> impl Iterator<Item = &OpenRequest> {
        self.pages.iter().flat_map(|page| &page.listed)
    }

    /// True if the list has several pages, between which an entry may move while they are read.
    pub(in crate::controller) fn has_several_pages(&self) -> bool {
        self.pages.len() > 1
    }

    /// Reads the list again.
    ///
    /// # Errors
    ///
    /// The error of the first page that cannot be read. Everything is read the next time.
    pub(in crate::controller) async fn refresh(
        &mut self,
        client: &HostClient<'_>,
    ) -> Result<ListReading, VisitError> {
        let what = "the open pull requests";
        let last = std::mem::take(&mut self.pages);
        let mut known = last.clone();
        let (mut cursor, mut pages) = (PageCursor::new(MAX_OPEN), Vec::<KnownPage>::new());
        let mut is_complete = true;
        cursor.resume(known.iter().map(|page| page.at));
        while let Some(at) = cursor.next_page() {
            let before = known.iter().position(|page| page.at == at).map(|index| known.swap_remove(index));
            let etag = before.as_ref().and_then(|before| before.etag.as_deref());
            let answer = client.list(what, client.host().list_open(at, etag)).await;
            let page = match (answer, before) {
                (Ok(ListAnswer::Same), Some(before)) => before,
                (Ok(ListAnswer::Changed(answer, etag)), _) => {
                    let entries = answer.as_array().map(Vec::len);
                    let listed = open_requests(client.host().service, &answer);
                    is_complete &= entries == Some(listed.len());
                    KnownPage { at, entries: entries.unwrap_or_default(), etag, listed }
                }
                (Err(error), _) if error.reach == ErrorReach::Length => {
                    tracing::debug!(
                        repository = client.host().repository,
                        ?at,
                        "a page of a list is too long"
                    );
                    is_complete &= at.size > 1;
                    cursor.halve();
                    cursor.resume(known.iter().map(|page| page.at));
                    continue;
                }
                (Err(error), _) => return Err(error.of_visit()),
                (Ok(ListAnswer::Same), None) => {
                    return Err(VisitError::new(
                        format!("{what}: the host says that nothing has changed"),
                        false,
                    ));
                }
            };
            is_complete &= page.entries == page.listed.len();
            cursor.read(page.entries);
            cursor.resume(known.iter().map(|page| page.at));
            pages.push(page);
        }
        let listed = |pages: &[KnownPage]| -> Vec<OpenRequest> {
            pages.iter().flat_map(|page| page.listed.clone()).collect()
        };
        let is_same = !last.is_empty() && listed(&last) == listed(&pages);
        self.pages = pages;
        Ok(ListReading { is_same, is_complete: is_complete && cursor.is_at_end() })
    }
}
