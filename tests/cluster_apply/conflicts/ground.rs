//! A daemon for each test, and its Sync, which writes into another namespace.

use std::collections::BTreeMap;

use kube::Client;
use kube::api::{Api, ApiResource, DynamicObject, Patch, PatchParams, PostParams};
use kube::core::GroupVersionKind;
use serde_json::{Value, json};
use tempfile::TempDir;

use moorline_test_support::audit::AuditMark;
use moorline_test_support::control_plane::{PlaneGuard, shared};
use moorline_test_support::credentials::{ADMIN, MOORLINE};
use moorline_test_support::daemon::{Daemon, install, until};
use moorline_test_support::git_server::{GitServer, Work};

pub(crate) const APPLY: &str = "application/apply-patch+yaml";
pub(crate) const MERGE: &str = "application/merge-patch+json";
const JSON: &str = "application/json";

/// Cluster, repository and daemon of one test.
pub(crate) struct Ground {
    _daemon: Daemon,
    pub(crate) plane: PlaneGuard,
    pub(crate) admin: Client,
    /// Namespace of the objects; the Sync has the same name.
    pub(crate) target: String,
    pub(crate) work: Work,
    server: GitServer,
    syncs: Api<DynamicObject>,
    _root: TempDir,
}

impl Ground {
    pub(crate) async fn new(purpose: &str) -> Option<Self> {
        let plane = shared()?;
        let target = plane.namespace(purpose).await;
        Some(Self::into(plane, target).await)
    }

    /// The same without the namespace.
    pub(crate) async fn without_namespace(target: &str) -> Option<Self> {
        Some(Self::into(shared()?, target.to_owned()).await)
    }

    async fn into(plane: PlaneGuard, target: String) -> Self {
        install(&plane).await;
        let namespace = plane.namespace("syncs").await;
        let root = tempfile::tempdir().expect("a folder");
        let arguments = ["--namespace", &namespace, "--leader-election=false"];
        let daemon = Daemon::start(&plane, root.path(), &arguments);
        let admin = plane.client(ADMIN).await;
        let resource = ApiResource::from_gvk(&GroupVersionKind::gvk("moorline.dev", "v1alpha1", "Sync"));
        let syncs = Api::namespaced_with(admin.clone(), &namespace, &resource);
        let (work, server) = (Work::new(root.path()), GitServer::start(root.path()));
        Self { _daemon: daemon, plane, admin, target, work, server, syncs, _root: root }
    }

    /// Pushes objects, each into a file of its own.
    pub(crate) fn push(&self, objects: &[Value]) -> String {
        let files: Vec<(String, String)> = objects
            .iter()
            .map(|object| {
                let name = |pointer: &str| object.pointer(pointer).and_then(Value::as_str).expect("a name");
                (format!("{}-{}.json", name("/kind"), name("/metadata/name")), object.to_string())
            })
            .collect();
        let files: Vec<_> = files.iter().map(|(path, text)| (path.as_str(), text.as_str())).collect();
        self.work.push(&files)
    }

    /// Creates the Sync; `spec` comes on top of what every one has.
    pub(crate) async fn sync(&self, mut spec: Value) {
        spec["source"] = json!({"git": {"url": self.server.url("repository.git")}});
        spec["targetNamespace"] = self.target.clone().into();
        spec["health"] = json!({"wait": false});
        let sync = json!({
            "apiVersion": "moorline.dev/v1alpha1", "kind": "Sync", "spec": spec,
            "metadata": {"name": self.target},
        });
        let sync = serde_json::from_value(sync).expect("a Sync");
        self.syncs.create(&PostParams::default(), &sync).await.expect("the Sync is accepted");
    }

    pub(crate) async fn change_sync(&self, change: Value) {
        let patch = Patch::Merge(&change);
        self.syncs.patch(&self.target, &PatchParams::default(), &patch).await.expect("a patch of the Sync");
    }

    /// Asks the daemon to look at the repository now.
    pub(crate) async fn nudge(&self, word: &str) {
        self.change_sync(json!({"metadata": {"annotations": {"moorline.dev/requested-at": word}}})).await;
    }

    pub(crate) async fn status(&self) -> Value {
        let sync = self.syncs.get(&self.target).await.expect("the Sync");
        sync.data.get("status").cloned().unwrap_or_default()
    }

    /// Waits until the Sync says this about the revision, and gives its status.
    pub(crate) async fn ready(&self, revision: &str, reason: &str) -> Value {
        until(&format!("{} is {reason}", self.target), async || {
            let status = self.status().await;
            let attempted = status.pointer("/revision/attempted")?.as_str()?.ends_with(revision);
            let said = status.pointer("/conditions/0/reason")?.as_str()? == reason;
            (attempted && said).then_some(status)
        })
        .await
    }

    /// Sends a request of the API server.
    pub(crate) async fn ask(
        &self,
        verb: &str,
        uri: &str,
        content: &str,
        body: &Value,
    ) -> Result<Value, String> {
        let request = http::Request::builder()
            .method(verb)
            .uri(uri)
            .header("Content-Type", content)
            .body(if body.is_null() { Vec::new() } else { body.to_string().into_bytes() })
            .expect("a request");
        self.admin.request(request).await.map_err(|error| error.to_string())
    }

    pub(crate) async fn create(&self, manager: &str, collection: &str, body: Value) {
        let uri = format!("{collection}?fieldManager={manager}");
        self.ask("POST", &uri, JSON, &body).await.expect("it is created");
    }

    pub(crate) async fn patch(&self, manager: &str, path: &str, content: &str, body: Value) {
        let uri = format!("{path}?fieldManager={manager}");
        self.ask("PATCH", &uri, content, &body).await.expect("it is patched");
    }

    pub(crate) async fn get(&self, path: &str) -> Option<Value> {
        self.ask("GET", path, JSON, &Value::Null).await.ok()
    }

    pub(crate) async fn delete(&self, path: &str) {
        self.ask("DELETE", path, JSON, &Value::Null).await.expect("it is deleted");
    }

    /// Waits until a live object is as it should be.
    pub(crate) async fn until(&self, what: &str, path: &str, is: impl Fn(&Value) -> bool) -> Value {
        until(what, async || self.get(path).await.filter(|live| is(live))).await
    }

    /// Path of the ConfigMaps in the target.
    pub(crate) fn maps(&self) -> String {
        format!("/api/v1/namespaces/{}/configmaps", self.target)
    }

    pub(crate) fn deployment(&self) -> String {
        format!("/apis/apps/v1/namespaces/{}/deployments/web", self.target)
    }

    pub(crate) async fn mark(&self) -> AuditMark {
        AuditMark::set(&self.plane).await
    }

    /// Counts the daemon's requests since the mark, of objects in the target.
    pub(crate) async fn tally(&self, mark: &AuditMark) -> BTreeMap<String, usize> {
        mark.requests().await.by_user(MOORLINE).in_namespace(&self.target).tally()
    }
}

pub(crate) fn config_map(name: &str, data: Value) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data})
}

/// Paused, so that no controller writes more than its status.
pub(crate) fn deployment(spec: Value) -> Value {
    let mut web = json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"},
        "spec": {
            "paused": true, "selector": {"matchLabels": {"app": "web"}},
            "template": {"metadata": {"labels": {"app": "web"}}, "spec": {
                "containers": [{"name": "app", "image": "web:1"}],
            }},
        },
    });
    for (field, value) in spec.as_object().into_iter().flatten() {
        web["spec"][field] = value.clone();
    }
    web
}

pub(crate) fn expect<const N: usize>(expect: [(&str, usize); N]) -> BTreeMap<String, usize> {
    expect.into_iter().map(|(what, count)| (what.to_owned(), count)).collect()
}

pub(crate) async fn moment(millis: u64) {
    tokio::time::sleep(std::time::Duration::from_millis(millis)).await;
}
