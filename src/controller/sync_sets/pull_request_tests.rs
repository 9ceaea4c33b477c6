//! Tests: a SyncSet over the pull requests of a loopback host, with a daemon and a cluster in this
//! process.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use moorline_test_support::git_server::{GitServer, Reply};
use serde_json::{Value, json};

use super::run_beside;
use crate::api::sync_set_definition;
use crate::controller::targets::tests::{Hub, SYNCS};

const SETS: &str = "/apis/moorline.dev/v1alpha1/namespaces/moorline/syncsets";
const SECRETS: &str = "/api/v1/namespaces/moorline/secrets";
const PATIENCE: Duration = Duration::from_secs(60);
const NUMBERS: std::ops::Range<u64> = 1..6;

/// A host that lists these pull requests; none if it fails.
struct Host {
    server: GitServer,
    listed: Arc<Mutex<Option<Value>>>,
}

impl Host {
    fn start(root: &std::path::Path) -> Self {
        let server = GitServer::start(root);
        let listed = Arc::new(Mutex::new(Some(json!([]))));
        let answers = listed.clone();
        server.rule(move |request| {
            assert_eq!(request.header("authorization"), Some("Bearer planted"));
            match &*answers.lock().unwrap() {
                Some(listed) => Reply::Raw(200, "", listed.to_string().into_bytes()),
                None => Reply::Raw(503, "", b"gone fishing".to_vec()),
            }
        });
        Self { server, listed }
    }

    fn list(&self, listed: Option<Value>) {
        *self.listed.lock().unwrap() = listed;
    }

    /// Asks the generator again, and waits until the set has used the answer: it asks for the next
    /// one only after that.
    async fn answer(&self, hub: &Hub, request: &str) {
        for turn in ["first", "second"] {
            self.server.requests();
            ask(hub, &format!("{request} {turn}"));
            until(hub, "the host is asked", |_| !self.server.requests().is_empty()).await;
        }
    }
}

fn request(number: u64, head: &str, labels: &[&str], fork: bool) -> Value {
    let labels: Vec<Value> = labels.iter().map(|label| json!({"name": label})).collect();
    json!({
        "number": number, "labels": labels, "title": "'; drop", "updated_at": "2026-01-02T00:00:00Z",
        "head": {"sha": head.repeat(40), "ref": "feature", "repo": {"id": if fork { 2 } else { 1 }}},
        "base": {"ref": "main", "repo": {"id": 1}},
    })
}

fn set(host: &Host, label: Option<&str>) -> Value {
    let url = format!("http://127.0.0.1:{}", host.server.port);
    let mut generator = json!({
        "github": {"url": url, "secretRef": {"name": "token"}}, "repository": "team/shop",
    });
    if let Some(label) = label {
        generator["label"] = label.into();
    }
    json!({
        "apiVersion": "moorline.dev/v1alpha1", "kind": "SyncSet",
        "metadata": {"name": "pr", "namespace": "moorline"},
        "spec": {
            "name": "string(params.pull.number)", "generators": [{"pullRequests": generator}],
            "template": {"spec": {
                "source": {"git": {"url": "https://git.example.com/team/shop.git"}},
                "serviceAccountName": "preview", "suspend": true,
            }},
            "set": [{"field": "/spec/source/git/ref/commit", "value": "params.pull.commit"}],
            "prune": {"budget": {"percent": 60}},
        },
    })
}

/// Asks the generator again.
fn ask(hub: &Hub, request: &str) {
    let patch = json!({"metadata": {"annotations": {"moorline.dev/requested-at": request}}});
    hub.home.merge(&format!("{SETS}/pr"), &patch, "test").unwrap();
}

fn status(hub: &Hub) -> Value {
    hub.home.get(&format!("{SETS}/pr")).unwrap_or_default()["status"].clone()
}

/// Numbers of the pull requests that have a Sync, each with the first digit of its commit.
fn syncs(hub: &Hub) -> Vec<String> {
    let name = |number: u64| hub.home.get(&format!("{SYNCS}/pr-{number}")).map(|sync| (number, sync));
    let found = NUMBERS.filter_map(name).filter(|(_, sync)| sync["metadata"]["deletionTimestamp"].is_null());
    let shown = |(number, sync): (u64, Value)| {
        let commit = sync.pointer("/spec/source/git/ref/commit").and_then(Value::as_str).unwrap_or_default();
        format!("{number}{}", commit.get(..1).unwrap_or_default())
    };
    found.map(shown).collect()
}

/// Waits, and shows the status if it is in vain.
async fn until(hub: &Hub, what: &str, is_so: impl Fn(&Hub) -> bool) {
    let begun = Instant::now();
    while !is_so(hub) {
        assert!(begun.elapsed() < PATIENCE, "never: {what}; {:?} {}", syncs(hub), status(hub));
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn pull_requests_become_syncs_and_none_is_removed_without_a_list() {
    let hub = Hub::new();
    let folder = tempfile::tempdir().unwrap();
    let host = Host::start(folder.path());
    host.list(Some(json!([
        request(1, "a", &[], false),
        request(2, "b", &[], false),
        request(3, "c", &[], true)
    ])));
    hub.home.define(&sync_set_definition().unwrap()).unwrap();
    let secret = json!({
        "apiVersion": "v1", "kind": "Secret", "metadata": {"name": "token", "namespace": "moorline"},
        "stringData": {"token": "planted"},
    });
    hub.home.apply(SECRETS, &secret, "test").unwrap();
    tokio::spawn(run_beside(hub.context.clone(), std::future::pending::<()>()));
    hub.home.apply(SETS, &set(&host, None), "test").unwrap();
    until(&hub, "both have Syncs", |hub| syncs(hub) == ["1a", "2b"]).await;

    // Another commit is another spec of the same Sync.
    host.list(Some(json!([request(1, "d", &[], false), request(2, "b", &[], false)])));
    ask(&hub, "push");
    until(&hub, "the Sync follows", |hub| syncs(hub) == ["1d", "2b"]).await;

    // A host that fails, and a list with an unknown entry, remove nothing.
    let unknown = json!([request(1, "d", &[], false), {"number": 2}]);
    for (at, listed) in [None, Some(unknown), Some(json!({"message": "Not Found"}))].into_iter().enumerate() {
        let said = format!("{listed:?}");
        host.list(listed);
        ask(&hub, &at.to_string());
        let message = |hub: &Hub| status(hub)["conditions"][0]["message"].to_string();
        until(&hub, &said, |hub| message(hub).contains("stay as they are")).await;
        assert_eq!(syncs(&hub), ["1d", "2b"], "{said}");
        host.list(Some(json!([request(1, "d", &[], false), request(2, "b", &[], false)])));
        ask(&hub, &format!("{at} again"));
        until(&hub, "the list is there again", |hub| !message(hub).contains("stay as they are")).await;
    }
    host.list(Some(json!([request(1, "d", &[], false)])));
    ask(&hub, "merged");
    // The other Sync is suspended and has rendered nothing, so the removal waits for it.
    until(&hub, "the Sync of a closed one is to be removed", |hub| {
        let message = status(hub)["conditions"][0]["message"].to_string();
        message.contains("pr-2 are deleted when these Syncs have rendered")
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_fork_has_a_sync_for_the_commit_that_got_the_label() {
    let hub = Hub::new();
    let folder = tempfile::tempdir().unwrap();
    let host = Host::start(folder.path());
    let both = |labels: &[&str], head: &str| {
        Some(json!([request(1, "a", &["preview"], false), request(3, head, labels, true)]))
    };
    host.list(both(&["preview"], "c"));
    hub.home.define(&sync_set_definition().unwrap()).unwrap();
    let secret = json!({
        "apiVersion": "v1", "kind": "Secret", "metadata": {"name": "token", "namespace": "moorline"},
        "stringData": {"token": "planted"},
    });
    hub.home.apply(SECRETS, &secret, "test").unwrap();
    let daemon = tokio::spawn(run_beside(hub.context.clone(), std::future::pending::<()>()));
    hub.home.apply(SETS, &set(&host, Some("preview")), "test").unwrap();
    until(&hub, "the own one has a Sync", |hub| syncs(hub) == ["1a"]).await;
    // The label was there before anybody saw the commit without it.
    host.answer(&hub, "label from the beginning").await;
    assert_eq!(syncs(&hub), ["1a"]);
    host.list(both(&[], "c"));
    host.answer(&hub, "label removed").await;
    host.list(both(&["preview"], "c"));
    ask(&hub, "label given");
    until(&hub, "the fork has a Sync", |hub| syncs(hub) == ["1a", "3c"]).await;
    let allowed = json!([{"repository": "team/shop", "number": 3, "commit": "c".repeat(40)}]);
    until(&hub, "the status says so", |hub| status(hub)["allowedForks"] == allowed).await;

    // A later push changes nothing, also after a restart of the daemon.
    daemon.abort();
    host.list(both(&["preview"], "d"));
    let _daemon = tokio::spawn(run_beside(hub.context.clone(), std::future::pending::<()>()));
    host.answer(&hub, "restarted").await;
    assert_eq!(syncs(&hub), ["1a", "3c"]);
    assert_eq!(status(&hub)["allowedForks"], allowed);
}
