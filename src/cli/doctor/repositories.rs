//! Checks that the daemon reads the repositories, as the statuses of the Syncs report it.
//!
//! In: the Syncs. Out: a finding for each repository. This program does not contact repositories
//! itself: their credentials are in Secrets of other people, and the network of the daemon is what
//! counts.

use std::collections::BTreeMap;

use super::finding::{Finding, Level};
use crate::api::ConditionType;
use crate::cluster::{OperatorError, SyncResource};
use crate::grammar::counted;
use crate::source::{Address, LayerSelection, RegistryAddress};

/// Name of the check.
const CHECK: &str = "repository";

/// Reasons of the Ready condition that are about the access to a repository, beside those that
/// begin with `Repository`.
const REASONS: [&str; 14] = [
    "SourceInvalid",
    "CredentialsInvalid",
    "SecretMissing",
    "SecretNotAllowed",
    "HostNotAllowed",
    "ReferenceNotFound",
    "CommitNotFound",
    "ArtifactDigestDiffers",
    "ArtifactUnreadable",
    "ArtifactArchiveInvalid",
    "RegistryUnusable",
    "ChartNotFound",
    "ChartServerUnusable",
    "DataFolder",
];

/// The reason of a poll that had to wait, which passes by itself.
const WAITING: &str = "RepositoryWaiting";

pub(super) fn check(syncs: &Result<Vec<SyncResource>, OperatorError>) -> Vec<Finding> {
    let syncs = match syncs {
        Ok(syncs) => syncs,
        // The check of the definition says what to do.
        Err(OperatorError::NoDefinition) => return Vec::new(),
        Err(error) => {
            let message = format!("the Syncs cannot be listed: {error}");
            return vec![Finding::unknown(
                CHECK,
                message,
                "get the permission to list syncs in all namespaces",
            )];
        }
    };
    if syncs.is_empty() {
        return vec![Finding::ok(CHECK, "there are no Syncs")];
    }
    let mut by_url: BTreeMap<String, Vec<&SyncResource>> = BTreeMap::new();
    for sync in syncs {
        by_url.entry(url(sync)).or_default().push(sync);
    }
    by_url.iter().map(|(url, syncs)| judge(url, syncs)).collect()
}

/// The repository of a Sync. An address prints without credentials; one that cannot be parsed may
/// contain some, and is not printed.
fn url(sync: &SyncResource) -> String {
    let text = |place: &str| sync.resource.data.pointer(place).and_then(|url| url.as_str());
    let repository = text("/spec/source/git/url").and_then(|url| Address::remote(url).ok());
    let artifact = || RegistryAddress::new(text("/spec/source/oci/url")?, LayerSelection::default()).ok();
    let address = repository.or_else(|| artifact().map(Address::from));
    address.map_or_else(|| format!("of the Sync {}", sync.name), |address| address.to_string())
}

/// Judges a repository by the Syncs that follow it: the first problem of the worst level counts.
fn judge(url: &str, syncs: &[&SyncResource]) -> Finding {
    let problems: Vec<Finding> = syncs.iter().filter_map(|sync| problem(url, sync)).collect();
    for level in [Level::Error, Level::Warning] {
        if let Some(problem) = problems.iter().find(|problem| problem.level == level) {
            return problem.clone();
        }
    }
    let unread = syncs.iter().filter(|sync| sync.status.revision.as_ref().is_none_or(|it| it.seen.is_none()));
    let unread: Vec<String> = unread.map(|sync| sync.name.to_string()).collect();
    if unread.is_empty() {
        return Finding::ok(CHECK, format!("{url} is read for {}", counted(syncs.len() as u64, "Sync")));
    }
    let message = format!("{url} has not been read yet for {}", unread.join(", "));
    Finding::warning(
        CHECK,
        message,
        "see if a daemon serves these Syncs, and if they are suspended: moorline status -A",
    )
}

/// The problem that a Sync has with its repository.
fn problem(url: &str, sync: &SyncResource) -> Option<Finding> {
    let ready = sync.status.conditions.iter().find(|it| it.type_ == ConditionType::Ready.to_string())?;
    let is_ours = ready.reason.starts_with("Repository") || REASONS.contains(&&*ready.reason);
    if ready.status != "False" || !is_ours {
        return None;
    }
    let message = format!(
        "{url} cannot be read for {} ({}): {} It is not ready since {}",
        sync.name,
        ready.reason,
        with_full_stop(&ready.message),
        ready.last_transition_time.0
    );
    let remedy = format!("docs/troubleshooting.md has the remedy for {}", ready.reason);
    Some(match ready.reason == WAITING {
        true => Finding::warning(CHECK, message, remedy),
        false => Finding::error(CHECK, message, remedy),
    })
}

fn with_full_stop(text: &str) -> String {
    format!("{}.", text.trim_end_matches(['.', ' ']))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::api::{SyncName, SyncStatus};

    fn sync(name: &str, url: &str, status: Value) -> SyncResource {
        let whole = json!({
            "apiVersion": "moorline.dev/v1alpha1", "kind": "Sync", "metadata": {"name": name},
            "spec": {"source": {"git": {"url": url}}},
        });
        let status: SyncStatus = serde_json::from_value(status).unwrap();
        SyncResource {
            name: SyncName::new("a", name),
            resource: serde_json::from_value(whole).unwrap(),
            status,
        }
    }

    fn not_ready(reason: &str) -> Value {
        let condition = json!({
            "type": "Ready", "status": "False", "reason": reason, "message": "no answer",
            "lastTransitionTime": "2026-01-02T03:04:05Z",
        });
        json!({"conditions": [condition], "revision": {"seen": "main@1f0c"}})
    }

    #[test]
    fn repositories_are_read_or_not_as_their_syncs_say() {
        let seen = json!({"revision": {"seen": "main@1f0c"}});
        let found = check(&Ok(vec![
            sync("one", "https://a.example/b", seen.clone()),
            sync("two", "https://a.example/b", seen),
            sync("new", "https://c.example/d", json!({})),
            sync("away", "https://e.example/f", not_ready("RepositoryUnreachable")),
            sync("broken", "https://g.example/h", not_ready("ManifestInvalid")),
            sync("slow", "https://i.example/j", not_ready("RepositoryWaiting")),
            sync("odd", "https://user:secret@/", json!({})),
        ]));
        let lines: Vec<String> =
            found.iter().map(|it| format!("{}: {}", it.level.word(), it.text())).collect();
        let at =
            |part: &str| lines.iter().find(|line| line.contains(part)).unwrap_or_else(|| panic!("{lines:?}"));
        assert_eq!(at("a.example"), "ok: https://a.example/b is read for 2 Syncs");
        assert!(at("c.example").starts_with("warning: https://c.example/d has not been read yet for a/new"));
        assert_eq!(
            at("e.example"),
            "error: https://e.example/f cannot be read for a/away (RepositoryUnreachable): no answer. It is not ready since \
             2026-01-02T03:04:05Z; docs/troubleshooting.md has the remedy for RepositoryUnreachable"
        );
        assert_eq!(at("g.example"), "ok: https://g.example/h is read for 1 Sync");
        assert!(at("i.example").starts_with("warning:"));
        assert!(!lines.concat().contains("secret"), "{lines:?}");
    }

    #[test]
    fn without_syncs_or_the_right_to_list_them_that_is_said() {
        assert_eq!(check(&Ok(Vec::new()))[0].level, Level::Ok);
        assert_eq!(check(&Err(OperatorError::Refused("no".into())))[0].level, Level::Unknown);
        assert!(check(&Err(OperatorError::NoDefinition)).is_empty());
    }
}
