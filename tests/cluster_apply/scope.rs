//! Places where a daemon without a Sync looks for objects that left Git while it was down, on a real API server.

use serde_json::{Value, json};

use moorline_test_support::audit::AuditMark;
use moorline_test_support::control_plane::shared;
use moorline_test_support::credentials::{ADMIN, MOORLINE, TENANT};
use moorline_test_support::daemon::{Daemon, until};
use moorline_test_support::git_server::{GitServer, Work};
use moorline_test_support::rest::{self, grant, rule, send_request};

const MAP: &str =
    r#"{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": {"key": "one"}}"#;

/// Runs a daemon without a Sync and returns its treatment of a kind that left Git while it was down.
async fn a_kind_that_left_git_is_pruned(purpose: &str, user: &str, election: &str) -> Option<Value> {
    let plane = shared()?;
    let namespace = plane.namespace(purpose).await;
    let admin = plane.client(ADMIN).await;
    if user == TENANT {
        let verbs = ["get", "list", "watch", "create", "patch", "delete"];
        let own = rule("", &["configmaps", "serviceaccounts"], &verbs);
        let leases = rule("coordination.k8s.io", &["leases"], &["get", "create", "update"]);
        // The keys that objects are proven with.
        let keys = rule("", &["secrets"], &["get", "list", "watch", "create", "patch"]);
        grant(&admin, &namespace, &rest::user(TENANT), &json!([own, leases, keys])).await;
    }
    let root = tempfile::tempdir().expect("a folder");
    let (work, server) = (Work::new(root.path()), GitServer::start(root.path()));
    let account = json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "robot"}});
    work.push(&[("a.json", MAP), ("b.json", &account.to_string())]);
    let url = server.url("repository.git");
    let arguments = ["--url", &url, "--namespace", &namespace, "--interval", "1", election];
    let there = async |place: &str| {
        let uri = format!("/api/v1/namespaces/{namespace}/{place}");
        send_request(&admin, "GET", &uri, &Value::Null).await.ok()
    };
    let lease = async || {
        let uri = format!("/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases/moorline-default");
        send_request(&admin, "GET", &uri, &Value::Null).await.ok()?["metadata"]["annotations"]
            .get("moorline.dev/scope")
            .cloned()
    };
    let mut daemon = Daemon::start_as(&plane, user, root.path(), &arguments);
    until("both are there", async || there("configmaps/a").await.and(there("serviceaccounts/robot").await))
        .await;
    let leads = !election.contains("false");
    if leads {
        until("the scope is noted", async || {
            lease().await.filter(|scope| scope.as_str().is_some_and(|it| it.contains("ServiceAccount")))
        })
        .await;
    }
    daemon.terminate();
    work.git(&["rm", "-q", "b.json"]);
    work.push(&[]);
    let mark = AuditMark::set(&plane).await;
    let daemon = Daemon::start_as(&plane, user, root.path(), &arguments);
    until("it is pruned", async || there("serviceaccounts/robot").await.is_none().then_some(())).await;
    assert!(there("configmaps/a").await.is_some());
    if leads {
        let lists = mark.requests().await.by_user(user).filter(|it| it.verb == "list").tally();
        assert!(lists.is_empty(), "the note tells where to look: {lists:?}");
        let narrow = json!({"kinds": ["ConfigMap"], "namespaces": [namespace]}).to_string();
        until("less is noted", async || lease().await.filter(|scope| *scope == narrow)).await;
    }
    drop(daemon);
    lease().await
}

#[tokio::test]
async fn the_lease_says_where_to_look_for_what_left_git_while_nobody_looked() {
    a_kind_that_left_git_is_pruned("noted", TENANT, "--leader-election=true").await;
}

#[tokio::test]
async fn without_a_lease_all_kinds_are_looked_at() {
    let noted = a_kind_that_left_git_is_pruned("unnoted", MOORLINE, "--leader-election=false").await;
    assert_eq!(noted, None);
}
