//! SyncSets: folders become Syncs, and nothing of a set is removed without an answer and a budget.

use serde_json::{Value, json};

use moorline_test_support::daemon::until;
use moorline_test_support::git_server::Reply;
use moorline_test_support::rest::{grant, send_request};
use moorline_test_support::scene::{Scene, file};

const DEFINITION: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";

/// A SyncSet of a scene.
pub(crate) struct SetUnderTest<'a>(pub(crate) &'a Scene);

impl SetUnderTest<'_> {
    /// Defines the kind.
    pub(crate) async fn define(&self) {
        let definition = moorline::api::sync_set_definition().unwrap();
        send_request(&self.0.admin, "POST", DEFINITION, definition).await.unwrap();
        until("SyncSets are served", async || {
            send_request(&self.0.admin, "GET", &self.path(), json!(null)).await.ok()
        })
        .await;
    }

    /// Removes the kind.
    pub(crate) async fn undefine(&self) {
        let path = format!("{DEFINITION}/syncsets.moorline.dev");
        send_request(&self.0.admin, "DELETE", &path, json!(null)).await.unwrap();
    }

    /// Lets the ServiceAccount of the set write Syncs.
    pub(crate) async fn grant(&self) {
        let account = json!({"kind": "ServiceAccount", "name": "setter", "namespace": self.0.namespace});
        let rights = of_syncs();
        grant(&self.0.admin, &self.0.namespace, &account, &rights).await;
    }

    pub(crate) fn path(&self) -> String {
        format!("/apis/moorline.dev/v1alpha1/namespaces/{}/syncsets", self.0.namespace)
    }

    pub(crate) async fn get(&self) -> Option<Value> {
        send_request(&self.0.admin, "GET", &format!("{}/apps", self.path()), json!(null)).await.ok()
    }

    pub(crate) async fn patch(&self, patch: Value) {
        send_request(&self.0.admin, "PATCH", &format!("{}/apps", self.path()), patch).await.unwrap();
    }

    pub(crate) async fn until_reason(&self, reason: &str) -> Value {
        until(&format!("the set says {reason}"), async || {
            let status = self.get().await?["status"].clone();
            (status["conditions"][0]["reason"] == reason).then_some(status)
        })
        .await
    }

    pub(crate) async fn syncs(&self) -> Vec<String> {
        let list = self.0.syncs().list(&kube::api::ListParams::default()).await.unwrap();
        list.items.into_iter().filter_map(|sync| sync.metadata.name).collect()
    }
}

/// Rights to write the Syncs of a set.
fn of_syncs() -> Value {
    json!([{"apiGroups": ["moorline.dev"], "resources": ["syncs"], "verbs": ["get", "create", "patch", "delete"]}])
}

fn resource(scene: &Scene) -> Value {
    let url = scene.git.url("repository.git");
    json!({
        "apiVersion": "moorline.dev/v1alpha1", "kind": "SyncSet", "metadata": {"name": "apps"},
        "spec": {
            "serviceAccountName": "setter",
            "interval": "5s",
            "generators": [{"git": {"url": url, "folders": {"include": ["apps/*"]}}}],
            "name": "params.folder.name",
            "template": {"spec": {"source": {"git": {"url": url}}, "interval": "5s", "health": {"wait": false}}},
            "set": [
                {"field": "/spec/path", "value": "params.folder.path"},
                {"field": "/metadata/labels/app", "value": "params.folder.name"},
            ],
        },
    })
}

#[tokio::test(flavor = "multi_thread")]
async fn folders_become_syncs_and_none_is_removed_without_an_answer_and_a_budget() {
    let Some(scene) = Scene::new("sync-sets").await else { return };
    let set = SetUnderTest(&scene);
    set.define().await;
    let folder = |name: &str| file(&format!("apps/{name}/{name}"), "1");
    scene.push(&[folder("a"), folder("b"), folder("c"), file("readme", "1")]);
    send_request(&scene.admin, "POST", &set.path(), resource(&scene)).await.unwrap();
    let foreign = scene.sync("apps-c", json!({"path": "apps/c", "suspend": true})).await;

    // Only the ServiceAccount may write the Syncs, and a Sync of others is left alone.
    let _daemon = scene.daemon();
    set.until_reason("RightsMissing").await;
    assert_eq!(set.syncs().await, ["apps-c"]);
    set.grant().await;
    let status = set.until_reason("ObjectsHeld").await;
    assert!(status["conditions"][0]["message"].as_str().unwrap().contains("apps-c"), "{status}");
    assert_eq!(scene.syncs().get("apps-c").await.unwrap().metadata.uid, foreign.metadata.uid);
    scene.delete_sync("apps-c").await;
    let status = set.until_reason("Applied").await;
    assert_eq!(status["children"], json!({"desired": 3, "ready": 3, "held": 0}));
    assert_eq!(set.syncs().await, ["apps-a", "apps-b", "apps-c"]);
    scene.assert_calm("a set at rest").await;

    // A hand edit is undone, a suspension is not.
    scene.patch_sync("apps-a", json!({"spec": {"path": "elsewhere", "suspend": true}})).await;
    until("the path is back", async || {
        let sync = scene.syncs().get("apps-a").await.unwrap();
        (sync.data["spec"]["path"] == "apps/a").then(|| assert_eq!(sync.data["spec"]["suspend"], true))
    })
    .await;
    scene.patch_sync("apps-a", json!({"spec": {"suspend": false}})).await;

    // Without an answer nothing is removed, also after a restart.
    scene.git.rule(|_| Reply::Raw(503, "", b"gone fishing".to_vec()));
    scene.remove(&["apps/b/b.json", "apps/c/c.json"]);
    until("the set says that Git is away", async || {
        let status = set.get().await?["status"].clone();
        status["conditions"][0]["reason"].as_str()?.starts_with("Repository").then_some(())
    })
    .await;
    assert_eq!(set.syncs().await.len(), 3);

    // A removal of two of three Syncs exceeds the budget.
    scene.git.rule(|_| Reply::Git);
    let held = set.until_reason("PruneHeld").await;
    assert_eq!(held["removal"]["syncs"], json!(["apps-b", "apps-c"]));
    assert_eq!(set.syncs().await.len(), 3);
    set.patch(json!({"metadata": {"annotations": {"moorline.dev/approve": held["removal"]["hash"]}}})).await;
    until("the Syncs are removed", async || (set.syncs().await == ["apps-a"]).then_some(())).await;
    set.until_reason("Applied").await;
    let kept: Vec<String> = scene.values().await.into_keys().collect();
    assert_eq!(kept, ["a", "b", "c"], "each Sync has its own deletionPolicy");

    // By default the Syncs stay when the set is deleted.
    send_request(&scene.admin, "DELETE", &format!("{}/apps", set.path()), json!(null)).await.unwrap();
    until("the set is gone", async || set.get().await.is_none().then_some(())).await;
    scene.settle().await;
    assert_eq!(set.syncs().await, ["apps-a"]);
    // A set of the same name takes it up, and deletes it if it is asked to.
    let mut second = resource(&scene);
    second["spec"]["onDelete"] = json!("Delete");
    send_request(&scene.admin, "POST", &set.path(), second).await.unwrap();
    set.until_reason("Applied").await;
    send_request(&scene.admin, "DELETE", &format!("{}/apps", set.path()), json!(null)).await.unwrap();
    until("the set is gone", async || set.get().await.is_none().then_some(())).await;
    assert_eq!(set.syncs().await, [""; 0]);
    clusters_become_syncs_and_a_refused_list_removes_none(&set).await;
    set.undefine().await;
}

/// The ServiceAccount of the set lists the Secrets of clusters. What it may not list is not gone.
async fn clusters_become_syncs_and_a_refused_list_removes_none(set: &SetUnderTest<'_>) {
    let scene = set.0;
    let admin = &scene.admin;
    scene.push(&["east", "west"].map(|name| file(&format!("apps/{name}/{name}"), "1")));
    let secrets = format!("/api/v1/namespaces/{}/secrets", scene.namespace);
    let label = |env: &str| json!({"metadata": {"labels": {"env": env}}});
    for name in ["east", "west"] {
        let secret =
            json!({"metadata": {"name": name, "labels": {"env": "prod"}}, "stringData": {"value": "-"}});
        send_request(admin, "POST", &secrets, secret).await.unwrap();
    }
    let mut clusters = resource(scene);
    clusters["spec"]["onDelete"] = json!("Delete");
    clusters["spec"]["generators"] = json!([{"clusters": {"selector": {"matchLabels": {"env": "prod"}}}}]);
    clusters["spec"]["name"] = json!("params.cluster.name");
    clusters["spec"]["set"] = json!([{"field": "/spec/path", "value": "'apps/' + params.cluster.name"}]);
    let takes = |value: &str| json!([{"field": "/spec/cluster/secretRef/name", "value": value}]);
    for (pointer, value, why) in [
        ("/spec/set", takes("'east'"), "write params.cluster.name"),
        ("/spec/set", takes("params.cluster.labels.env"), "write params.cluster.name"),
        ("/spec/generators/0/clusters/selector", json!({}), "write matchLabels or matchExpressions"),
        (
            "/spec/generators/0/list",
            json!({"elements": [{"a": "b"}]}),
            "write exactly one of list, git, clusters",
        ),
    ] {
        let mut wrong = clusters.clone();
        let (place, field) = pointer.rsplit_once('/').unwrap();
        wrong.pointer_mut(place).unwrap()[field] = value;
        let refused = send_request(admin, "POST", &format!("{}?dryRun=All", set.path()), wrong).await;
        let refused = refused.expect_err(pointer).to_string();
        assert!(refused.contains(why), "{pointer}: {refused}");
    }
    let role = format!("/apis/rbac.authorization.k8s.io/v1/namespaces/{}/roles/tenant", scene.namespace);
    let grant_lists = async |allowed: bool| {
        let lists = json!({"apiGroups": [""], "resources": ["secrets"], "verbs": ["list"]});
        let mut rules = of_syncs().as_array().unwrap().clone();
        rules.extend(Some(lists).filter(|_| allowed));
        send_request(admin, "PATCH", &role, json!({"rules": rules})).await.unwrap();
    };
    send_request(admin, "POST", &set.path(), clusters).await.unwrap();
    let status = set.until_reason("RightsMissing").await;
    let message = status["conditions"][0]["message"].as_str().unwrap();
    assert!(message.contains("cannot be listed with the labels env=prod"), "{message}");
    assert_eq!(set.syncs().await, [""; 0]);
    grant_lists(true).await;
    set.until_reason("Applied").await;
    assert_eq!(set.syncs().await, ["apps-east", "apps-west"]);

    grant_lists(false).await;
    set.until_reason("RightsMissing").await;
    send_request(admin, "PATCH", &format!("{secrets}/west"), label("dev")).await.unwrap();
    set.patch(json!({"metadata": {"annotations": {"moorline.dev/requested-at": "now"}}})).await;
    scene.settle().await;
    assert_eq!(set.syncs().await, ["apps-east", "apps-west"], "what may not be listed is not gone");
    grant_lists(true).await;
    until("the Sync is removed", async || (set.syncs().await == ["apps-east"]).then_some(())).await;
    set.until_reason("Applied").await;
    send_request(admin, "DELETE", &format!("{}/apps", set.path()), json!(null)).await.unwrap();
    until("the set is gone", async || set.get().await.is_none().then_some(())).await;
}
