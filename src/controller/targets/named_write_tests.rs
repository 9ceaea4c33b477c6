//! Writes in another cluster that need no check of its identity.
//!
//! In: commits for a Sync with objects there, and a second cluster behind the same address.
//! Out: one request for each object, and none that the second cluster carries out.

use std::sync::atomic::Ordering;
use std::time::Duration;

use serde_json::json;

use super::tests::{Hub, MAPS, kubeconfig, map, text};
use crate::sandbox::Sandbox;

/// Longer than a check of the identity counts.
const LATER: Duration = Duration::from_millis(2100);

impl Hub {
    /// Starts a Sync in the other cluster, which is reached with this token.
    async fn start(&self, token: &str) {
        self.secret(&kubeconfig(token, &json!({})));
        self.sync("east", &json!({"cluster": {"secretRef": {"name": "east"}}}));
        self.until("east is applied", |hub| hub.has(&hub.east, "east") && hub.ready("east").0 == "Applied")
            .await;
    }

    fn has(&self, sandbox: &Sandbox, value: &str) -> bool {
        ["settings", "extra"].iter().all(|name| Hub::place(sandbox, name) == text(value))
    }

    /// Changes both objects in Git.
    fn commit(&self, value: &str) {
        let (settings, extra) = (map("settings", value), map("extra", value));
        let files = [("east/settings.yaml", &*settings), ("east/extra.yaml", &*extra)];
        self.books.commit(value, &files, &[]).unwrap();
        let patch = json!({"metadata": {"annotations": {"moorline.dev/requested-at": value}}});
        self.home.merge(&format!("{}/east", super::tests::SYNCS), &patch, "test").unwrap();
    }

    /// Changes both objects, and returns the requests to the other cluster besides watches.
    async fn requests_of_a_commit(&self, value: &str) -> Vec<String> {
        tokio::time::sleep(LATER).await;
        self.east.take_requests();
        self.commit(value);
        self.until("it is applied", |hub| hub.has(&hub.east, value)).await;
        tokio::time::sleep(Duration::from_millis(500)).await;
        let asked = self.east.take_requests().into_iter().filter(|it| !it.uri.contains("watch="));
        asked.map(|it| format!("{} {}", it.method, it.uri.split('?').next().unwrap_or_default())).collect()
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_commit_costs_an_apply_of_each_object_and_nothing_else() {
    let hub = Hub::new();
    hub.start("one").await;
    let applies = ["extra", "settings"].map(|name| format!("PATCH {MAPS}/{name}"));
    let mut first = hub.requests_of_a_commit("two").await;
    first.sort();
    let check = "GET /api/v1/namespaces/kube-system".to_owned();
    assert_eq!(
        first,
        [vec![check], applies.to_vec()].concat(),
        "the first check after the objects were created"
    );
    for value in ["three", "four"] {
        let mut next = hub.requests_of_a_commit(value).await;
        next.sort();
        assert_eq!(next, applies);
    }
    // An object that is created is in no cluster yet.
    hub.books.commit("new", &[("east/new.yaml", &map("new", "new"))], &[]).unwrap();
    hub.east.take_requests();
    hub.look("east");
    hub.until("it is created", |hub| Hub::place(&hub.east, "new") == text("new")).await;
    let asked = hub.east.take_requests();
    assert_eq!(asked.iter().filter(|it| it.uri.ends_with("/kube-system")).count(), 1, "{asked:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn another_cluster_behind_the_same_address_refuses_what_names_an_object_of_the_first() {
    let hub = Hub::new();
    hub.start("switched").await;
    hub.requests_of_a_commit("two").await;
    let theirs = map("settings", "theirs");
    let theirs = serde_json::from_str(&theirs).unwrap();
    hub.west.apply(MAPS, &theirs, "others").unwrap();
    // The watches stay with the first cluster, and its last check is a moment ago.
    hub.switched.store(true, Ordering::SeqCst);
    hub.west.take_requests();
    hub.commit("three");
    hub.until("it is noticed", |hub| hub.message("east").contains("another one than before")).await;
    tokio::time::sleep(LATER).await;
    assert_eq!((Hub::place(&hub.west, "settings"), Hub::place(&hub.west, "extra")), (text("theirs"), None));
    assert!(hub.has(&hub.east, "two"));
    let named = hub.west.take_requests().into_iter().filter(|it| it.method == "PATCH").count();
    assert!(named >= 1, "an apply was sent, and refused");
    // The first cluster is back.
    hub.switched.store(false, Ordering::SeqCst);
    hub.until("it is applied", |hub| hub.has(&hub.east, "three")).await;
    assert_eq!((Hub::place(&hub.west, "settings"), Hub::place(&hub.west, "extra")), (text("theirs"), None));
}
