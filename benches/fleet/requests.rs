//! Requests of the daemon, as the servers see them.
//!
//! In: each request that a server carried out.
//! Out: counts by cluster, verb and resource; the revision in the last status of each Sync; and the
//! number of requests that were refused.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use moorline::sandbox::{ObservedRequest, Sandbox};
use serde_json::Value;

/// Token of the daemon in all clusters.
pub(crate) const DAEMON: &str = "daemon";

/// Counts of requests by the place, the verb and the resource.
pub(crate) type Counts = BTreeMap<String, usize>;

/// All requests of one daemon; cheap to clone.
#[derive(Clone, Default)]
pub(crate) struct Requests(Arc<Mutex<Seen>>);

#[derive(Default)]
struct Seen {
    counts: Counts,
    /// Revision in the last status of each Sync.
    applied: HashMap<String, String>,
}

impl Requests {
    fn lock(&self) -> MutexGuard<'_, Seen> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts the requests to a server from now on.
    pub(crate) fn count(&self, place: &'static str, sandbox: &Sandbox) {
        let seen = self.clone();
        sandbox.tap(move |request| {
            if request.client == DAEMON {
                seen.note(place, request);
            }
        });
    }

    fn note(&self, place: &str, request: &ObservedRequest<'_>) {
        let (path, query) = request.uri.split_once('?').unwrap_or((request.uri, ""));
        let mut what = format!("{place} {}", describe(request.method.as_str(), path, query));
        // A conflict of versions is an answer like others.
        if request.code >= 400 && request.code != 404 {
            what.push_str(&format!(" ({})", request.code));
        }
        let applied = match path.strip_suffix("/status").and_then(|path| path.rsplit_once("/syncs/")) {
            Some((_, name)) if request.code == 200 => revision(request.body).map(|it| (name.to_owned(), it)),
            _ => None,
        };
        let mut seen = self.lock();
        *seen.counts.entry(what).or_default() += 1;
        seen.applied.extend(applied);
    }

    /// Returns the counts since the last call.
    pub(crate) fn take(&self) -> Counts {
        std::mem::take(&mut self.lock().counts)
    }

    /// Number of requests other than watches and Leases since the last call of [`Self::take`].
    pub(crate) fn notable(&self) -> usize {
        sum(&self.lock().counts, is_not_upkeep)
    }

    /// Number of Syncs whose last status names this commit as applied.
    pub(crate) fn on(&self, commit: &str) -> usize {
        self.lock().applied.values().filter(|revision| revision.ends_with(commit)).count()
    }
}

/// The applied revision in the body of a written status.
fn revision(body: &[u8]) -> Option<String> {
    let body: Value = serde_json::from_slice(body).ok()?;
    let steps = body.as_array().into_iter().flatten();
    let patched = steps.filter(|step| step["path"] == "/status").map(|step| &step["value"]).next();
    let status = patched.unwrap_or(&body["status"]);
    status["revision"]["applied"].as_str().map(str::to_owned)
}

/// Verb and resource of a request, as in `watch configmaps`.
fn describe(method: &str, path: &str, query: &str) -> String {
    let parts: Vec<&str> = path.trim_matches('/').split('/').collect();
    // `api/v1` or `apis/GROUP/VERSION`, then perhaps a namespace, then the resource.
    let rest = parts.get(if parts[0] == "api" { 2 } else { 3 }..).unwrap_or_default();
    let rest = match rest {
        ["namespaces", _, rest @ ..] if !rest.is_empty() => rest,
        rest => rest,
    };
    let resource = match rest {
        [] => return format!("{} of the API", method.to_lowercase()),
        [resource] | [resource, _] => (*resource).to_owned(),
        [resource, _, rest @ ..] => format!("{resource}/{}", rest.join("/")),
    };
    let verb = match (method, rest.len()) {
        ("GET", _) if query.contains("watch=") => "watch",
        ("GET", 1) => "list",
        ("GET", _) => "get",
        ("POST", _) => "create",
        ("PUT", _) => "update",
        ("PATCH", _) => "patch",
        (_, _) => "delete",
    };
    let dry = if query.contains("dryRun=") { " as a dry run" } else { "" };
    format!("{verb} {resource}{dry}")
}

/// Sum of the counts whose description satisfies a rule.
pub(crate) fn sum(counts: &Counts, is_meant: impl Fn(&str) -> bool) -> usize {
    counts.iter().filter(|(what, _)| is_meant(what)).map(|(_, count)| count).sum()
}

/// False for watches and Leases.
pub(crate) fn is_not_upkeep(what: &str) -> bool {
    !what.contains(" watch ") && !what.ends_with(" leases")
}

/// The counts as one line, the most frequent first.
pub(crate) fn line(counts: &Counts) -> String {
    let mut counts: Vec<_> = counts.iter().collect();
    counts.sort_by_key(|(_, count)| std::cmp::Reverse(**count));
    let counts: Vec<String> = counts.iter().map(|(what, count)| format!("{count} {what}")).collect();
    if counts.is_empty() { "none".to_owned() } else { counts.join(", ") }
}
