//! Tests: a SyncSet over the tags of a loopback registry, with a daemon and a cluster in this
//! process.

use std::time::{Duration, Instant};

use moorline_test_support::artifact_registry::{ArtifactRegistry, RegistryFault, RegistryLogin};
use serde_json::{Value, json};

use super::run_beside;
use crate::api::sync_set_definition;
use crate::controller::targets::tests::{Hub, SYNCS};
use crate::source::webhook_call::parse_call;

const SETS: &str = "/apis/moorline.dev/v1alpha1/namespaces/moorline/syncsets";
const SECRETS: &str = "/api/v1/namespaces/moorline/secrets";

fn set(registry: &ArtifactRegistry) -> Value {
    let (url, secret) = (registry.url("shop"), json!({"name": "registry"}));
    let source = json!({"oci": {"url": url, "ref": {"tag": "latest"}, "secretRef": secret}});
    json!({
        "apiVersion": "moorline.dev/v1alpha1", "kind": "SyncSet",
        "metadata": {"name": "apps", "namespace": "moorline"},
        "spec": {
            "name": "params.tag.name.replace('.', '-')",
            "generators": [{"ociTags": {"url": url, "semver": "1.x", "newest": 2, "secretRef": secret}}],
            "template": {"spec": {"source": source, "interval": "1h", "health": {"wait": false}}},
            "set": [{"field": "/spec/source/oci/ref/tag", "value": "params.tag.name"}],
        },
    })
}

/// Asks the generator again.
fn ask(hub: &Hub, request: &str) {
    let patch = json!({"metadata": {"annotations": {"moorline.dev/requested-at": request}}});
    hub.home.merge(&format!("{SETS}/apps"), &patch, "test").unwrap();
}

fn message(hub: &Hub) -> String {
    let set = hub.home.get(&format!("{SETS}/apps")).unwrap_or_default();
    set["status"]["conditions"][0]["message"].as_str().unwrap_or_default().to_owned()
}

/// The tags of the Syncs that are there.
fn tags(hub: &Hub) -> Vec<String> {
    let names = ["1-9-0", "1-10-0", "1-11-0", "2-0-0"];
    let found = names.iter().filter_map(|name| hub.home.get(&format!("{SYNCS}/apps-{name}")));
    let tag = |sync: Value| sync.pointer("/spec/source/oci/ref/tag")?.as_str().map(str::to_owned);
    found.filter(|sync| sync["metadata"]["deletionTimestamp"].is_null()).filter_map(tag).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tags_become_syncs_and_none_is_removed_without_a_list() {
    let hub = Hub::new();
    let folder = tempfile::tempdir().unwrap();
    let registry = ArtifactRegistry::start(folder.path());
    registry.login(RegistryLogin::Bearer);
    let map = |name: &str| {
        let body = json!({
            "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": "shop"},
            "data": {"place": name},
        });
        vec![(format!("{name}.yaml"), body.to_string())]
    };
    for (tag, name) in [("1.9.0", "old"), ("1.10.0", "new"), ("2.0.0", "other"), ("latest", "other")] {
        registry.push("shop", tag, &map(name));
    }
    hub.home.define(&sync_set_definition().unwrap()).unwrap();
    hub.home.apply(SECRETS, &registry.docker_secret("registry"), "test").unwrap();
    tokio::spawn(run_beside(hub.context.clone(), std::future::pending::<()>()));
    hub.home.apply(SETS, &set(&registry), "test").unwrap();

    let place = |hub: &Hub, name: &str| Hub::place(&hub.home, name);
    hub.until("both artifacts are applied", |hub| {
        place(hub, "old").as_deref() == Some("old") && place(hub, "new").as_deref() == Some("new")
    })
    .await;
    assert_eq!(tags(&hub), ["1.9.0", "1.10.0"]);
    let lists = registry.requests().into_iter().filter(|request| request.contains("tags/list"));
    assert!(lists.count() <= 2, "one list, and one that asks for the login");

    // A list that is none, one without an end, and a server that fails remove nothing.
    for (at, fault) in [RegistryFault::NoTagList, RegistryFault::EndlessTags, RegistryFault::RedirectLoop]
        .into_iter()
        .enumerate()
    {
        let said = format!("{fault:?}");
        registry.fault(fault);
        ask(&hub, &at.to_string());
        hub.until(&said, |hub| message(hub).contains("stay as they are")).await;
        assert_eq!(tags(&hub), ["1.9.0", "1.10.0"], "{said}");
        registry.fault(RegistryFault::None);
        ask(&hub, &format!("{at} again"));
        hub.until("the list is there again", |hub| !message(hub).contains("stay as they are")).await;
    }

    // The newest two are others now: the Sync of the oldest one is removed.
    registry.push("shop", "1.11.0", &map("newest"));
    ask(&hub, "a newer tag");
    hub.until("the newest two are there", |hub| tags(hub) == ["1.10.0", "1.11.0"]).await;
    // No tag is left: an empty answer removes nothing by itself.
    for tag in ["1.9.0", "1.10.0", "1.11.0"] {
        registry.untag("shop", tag);
    }
    ask(&hub, "no tags");
    hub.until("the removal waits for a person", |hub| message(hub).contains("approve")).await;
    assert_eq!(tags(&hub), ["1.10.0", "1.11.0"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_call_of_a_webhook_lists_the_tags_at_once() {
    let hub = Hub::new();
    let folder = tempfile::tempdir().unwrap();
    let registry = ArtifactRegistry::start(folder.path());
    registry.push("shop", "1.9.0", &[]);
    hub.home.define(&sync_set_definition().unwrap()).unwrap();
    hub.home.apply(SECRETS, &registry.docker_secret("registry"), "test").unwrap();
    tokio::spawn(run_beside(hub.context.clone(), std::future::pending::<()>()));
    let mut set = set(&registry);
    set["spec"]["interval"] = "1h".into();
    hub.home.apply(SETS, &set, "test").unwrap();
    hub.until("the first Sync is there", |hub| tags(hub) == ["1.9.0"]).await;

    let call = |url: &str| {
        let body = json!({"url": url.replace("oci://", "https://")}).to_string();
        hub.context.sync_sets.request_polls(&parse_call(body.as_bytes()).unwrap())
    };
    registry.push("shop", "1.10.0", &[]);
    assert_eq!(call(&registry.url("books")), 0, "another repository");
    hub.until("the set is called", |_| call(&registry.url("shop")) == 1).await;
    hub.until("the new tag is there", |hub| tags(hub) == ["1.9.0", "1.10.0"]).await;

    // Many calls cost few lists.
    registry.requests();
    let begun = Instant::now();
    for _ in 0..100 {
        assert_eq!(call(&registry.url("shop")), 1);
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    let lists = registry.requests().into_iter().filter(|request| request.contains("tags/list")).count();
    let bound = 2 + begun.elapsed().as_secs() / 2;
    assert!(lists as u64 <= bound, "{lists} lists in {:?}", begun.elapsed());
}
