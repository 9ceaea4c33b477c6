//! Tests: what ends the Syncs of a set, with a daemon and a cluster in this process.

use std::time::Duration;

use serde_json::json;

use super::run_beside;
use crate::api::sync_set_definition;
use crate::controller::targets::tests::{Hub, SYNCS};

const SETS: &str = "/apis/moorline.dev/v1alpha1/namespaces/moorline/syncsets";
const DEFINITION: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/syncsets.moorline.dev";

fn set(hub: &Hub) {
    let url = format!("file://{}", hub.books.path().display());
    let body = json!({
        "apiVersion": "moorline.dev/v1alpha1", "kind": "SyncSet",
        "metadata": {"name": "apps", "namespace": "moorline"},
        "spec": {
            "onDelete": "Delete", "name": "params.folder.name",
            "generators": [{"git": {"url": url, "folders": {"include": ["*"]}}}],
            "template": {"spec": {"source": {"git": {"url": "https://git.example.com/apps.git"}}, "suspend": true}},
            "set": [{"field": "/spec/path", "value": "params.folder.path"}],
        },
    });
    hub.home.apply(SETS, &body, "test").unwrap();
}

/// Suspends the set or lets it go on; false if it is gone.
fn suspend(hub: &Hub, suspend: bool) -> bool {
    let patch = json!({"spec": {"suspend": suspend}});
    hub.home.merge(&format!("{SETS}/apps"), &patch, "test").is_ok()
}

/// The number of Syncs that are there, and not being deleted.
fn syncs(hub: &Hub) -> usize {
    let names = ["apps-home", "apps-east"];
    let found = names.iter().filter_map(|name| hub.home.get(&format!("{SYNCS}/{name}")));
    found.filter(|sync| sync["metadata"]["deletionTimestamp"].is_null()).count()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_suspended_set_and_the_end_of_the_definition_delete_no_sync() {
    let hub = Hub::new();
    hub.home.define(&sync_set_definition().unwrap()).unwrap();
    tokio::spawn(run_beside(hub.context.clone(), std::future::pending::<()>()));
    set(&hub);
    hub.until("both Syncs are there", |hub| syncs(hub) == 2).await;
    let is_there = |hub: &Hub| hub.home.get(&format!("{SETS}/apps")).is_some();
    assert!(suspend(&hub, true));
    hub.home.delete(&format!("{SETS}/apps")).unwrap();
    tokio::time::sleep(Duration::from_millis(500)).await;
    assert!(is_there(&hub) && syncs(&hub) == 2, "a suspended set deletes nothing");
    hub.home.delete(DEFINITION).unwrap();
    // The worker may have seen the end of the definition already.
    suspend(&hub, false);
    hub.until("the set is gone", |hub| !is_there(hub)).await;
    assert_eq!(syncs(&hub), 2, "the end of the definition is no request to delete Syncs");
}
