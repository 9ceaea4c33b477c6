//! A SyncSet over clusters: a home cluster and two others in this process.
//!
//! In: Secrets with labels. Out: a Sync for each, in the cluster of its Secret; none is removed
//! without a complete list.

use serde_json::{Value, json};

use super::tests::{Hub, SECRETS, SYNCS, kubeconfig};
use crate::api;
use crate::controller::sync_sets;
use crate::sync_set::MAX_SETS;

const SETS: &str = "/apis/moorline.dev/v1alpha1/namespaces/moorline/syncsets";

impl Hub {
    /// Writes a Secret with the kubeconfig for a token, and the label `env`.
    fn cluster(&self, name: &str, token: &str, env: &str) {
        let body = json!({
            "apiVersion": "v1", "kind": "Secret",
            "metadata": {"name": name, "namespace": "moorline", "labels": {"env": env}},
            "stringData": {"config": kubeconfig(token, &json!({}))},
        });
        self.home.apply(SECRETS, &body, "test").unwrap();
    }

    /// Asks the generators again.
    fn ask(&self, request: &str) {
        let patch = json!({"metadata": {"annotations": {"moorline.dev/requested-at": request}}});
        self.home.merge(&format!("{SETS}/all"), &patch, "test").unwrap();
    }

    fn set_status(&self) -> Value {
        self.home.get(&format!("{SETS}/all")).unwrap_or_default()["status"].clone()
    }

    fn child(&self, name: &str) -> Option<Value> {
        self.home.get(&format!("{SYNCS}/all-{name}"))
    }

    /// Number of lists of Secrets since the last call.
    fn lists(&self) -> usize {
        let lists = self.home.take_requests().into_iter();
        lists.filter(|it| it.uri.starts_with(&format!("{SECRETS}?")) && it.uri.contains("env%3Dprod")).count()
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn labelled_secrets_become_syncs_and_none_is_removed_without_a_complete_list() {
    let hub = Hub::new();
    hub.home.define(&api::sync_set_definition().unwrap()).unwrap();
    tokio::spawn(sync_sets::run_beside(hub.context.clone(), std::future::pending::<()>()));
    hub.cluster("east", "one", "prod");
    hub.cluster("west", "other", "prod");
    hub.cluster("test", "three", "dev");
    let source = json!({"git": {"url": format!("file://{}", hub.books.path().display())}});
    let set = json!({
        "apiVersion": "moorline.dev/v1alpha1", "kind": "SyncSet",
        "metadata": {"name": "all", "namespace": "moorline"},
        "spec": {
            "generators": [{"clusters": {"selector": {"matchLabels": {"env": "prod"}}, "key": "config"}}],
            "name": "params.cluster.name",
            "template": {"spec": {"source": source, "path": "./east", "health": {"wait": false}}},
            "set": [
                {"field": "/spec/cluster/secretRef/name", "value": "params.cluster.name"},
                {"field": "/metadata/labels/env", "value": "params.cluster.labels.env"},
            ],
        },
    });
    hub.home.apply(SETS, &set, "test").unwrap();

    let places = |hub: &Hub| [&hub.home, &hub.east, &hub.west].map(|it| Hub::place(it, "settings"));
    let east = || Some("east".to_owned());
    hub.until("both clusters are applied", |hub| places(hub) == [None, east(), east()]).await;
    hub.until("the set is ready", |hub| hub.set_status()["conditions"][0]["status"] == "True").await;
    let child = hub.child("west").unwrap();
    assert_eq!(child["spec"]["cluster"], json!({"secretRef": {"name": "west", "key": "config"}}));
    assert_eq!(child["metadata"]["labels"]["env"], "prod");
    assert!(hub.child("test").is_none(), "its label is another one");
    assert_eq!(hub.lists(), 1, "Secrets are listed once, and not watched");

    // Too many Secrets are no answer: the Sync whose Secret lost its label stays.
    let extras = || (0..=MAX_SETS).map(|number| format!("extra-{number}"));
    extras().for_each(|name| hub.cluster(&name, "x", "prod"));
    hub.cluster("east", "one", "gone");
    hub.ask("1");
    hub.until("the list is refused", |hub| {
        let message = hub.set_status()["conditions"][0]["message"].to_string();
        message.contains("more than 500") && message.contains("stay as they are")
    })
    .await;
    assert!(hub.child("east").is_some() && hub.child("extra-0").is_none());

    extras().for_each(|name| drop(hub.home.delete(&format!("{SECRETS}/{name}")).unwrap()));
    hub.ask("2");
    hub.until("the Sync is removed", |hub| hub.child("east").is_none()).await;
    assert!(hub.child("west").is_some());

    // Labels that select nothing remove nothing either.
    hub.cluster("west", "other", "gone");
    hub.ask("3");
    hub.until("the removal waits", |hub| hub.set_status()["conditions"][0]["reason"] == "PruneHeld").await;
    assert!(hub.child("west").is_some());

    // The Secrets are listed again after the interval, without a request.
    hub.lists();
    hub.home.merge(&format!("{SETS}/all"), &json!({"spec": {"interval": "5s"}}), "test").unwrap();
    hub.until("the new spec is served", |hub| hub.lists() > 0).await;
    hub.cluster("west", "other", "prod");
    hub.until("the set is ready again", |hub| hub.set_status()["conditions"][0]["status"] == "True").await;
}
