//! The classes of requests, by which they are counted.
//!
//! In: the path and the query of a request. Out: one word for it.

use super::objects::collections;

/// The class of a request.
pub(crate) fn class(path: &str, reads: bool, query: &str) -> &'static str {
    let is_object = collections().any(|collection| {
        let everywhere = collection.replace("/namespaces/apps", "");
        path.starts_with(&collection) || path.starts_with(&everywhere)
    });
    match () {
        () if path.contains("/leases") => "lease",
        () if path.contains("/events") => "event",
        () if path.contains("/syncs/") && !reads => "status",
        () if reads && is_list(query) => "list",
        () if reads && query.contains("watch=") => "watch",
        () if is_object => "object",
        () => "other",
    }
}

/// True for a request that reads all of a collection, in a stream or page by page.
fn is_list(query: &str) -> bool {
    is_stream(query) || query.ends_with("&continue=")
}

/// True for a watch that begins with all that there is.
pub(crate) fn is_stream(query: &str) -> bool {
    query.contains("sendInitialEvents=true")
}
