//! A control plane with a daemon and a team that is measured.
//!
//! In: arguments of the daemon.
//! Out: [`SharedDaemon`], which times a commit of the team from its push until its object is live,
//! and in which neighbours have Syncs and repositories.

use std::path::Path;
use std::time::{Duration, Instant};

use futures::StreamExt as _;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::Client;
use kube::api::{Api, ApiResource, DynamicObject, Patch, PatchParams, PostParams, WatchEvent, WatchParams};
use kube::core::GroupVersionKind;
use serde_json::{Value, json};

use moorline_test_support::binaries::Binaries;
use moorline_test_support::control_plane::ControlPlane;
use moorline_test_support::credentials::ADMIN;
use moorline_test_support::daemon::{Daemon, install};
use moorline_test_support::git_server::{GitServer, Work};
use moorline_test_support::start::start;

/// Namespace of the measured team.
pub(crate) const TEAM: &str = "team";
/// Namespace of all other tenants.
pub(crate) const OTHERS: &str = "others";
/// ServiceAccount that the Syncs of a namespace impersonate.
const ACCOUNT: &str = "tenant";
/// Timeout for a commit to become live, regardless of the neighbours.
const PATIENCE: Duration = Duration::from_secs(120);

/// Environment of a measurement. The daemon is declared first, so that it is dropped first.
pub(crate) struct SharedDaemon {
    pub(crate) daemon: Daemon,
    pub(crate) git: GitServer,
    pub(crate) work: Work,
    pub(crate) admin: Client,
    commits: usize,
    _plane: ControlPlane,
    pub(crate) root: tempfile::TempDir,
}

impl SharedDaemon {
    /// Creates a new environment with the team in sync.
    pub(crate) async fn new(arguments: &[&str], variables: &[(&str, &str)]) -> Self {
        let binaries = Binaries::find().unwrap_or_else(|missing| panic!("{missing}"));
        let plane = start(&binaries).await.unwrap_or_else(|why| panic!("{why}"));
        install(&plane).await;
        let admin = plane.client(ADMIN).await;
        prepare(&admin).await;
        let root = tempfile::tempdir().expect("a temporary folder");
        let (work, git) = (Work::new(root.path()), GitServer::start(root.path()));
        let arguments = [&["--leader-election=false", "--namespace", "moorline"], arguments].concat();
        let daemon = Daemon::with_environment(
            &plane.reaper,
            &plane.kubeconfig(moorline_test_support::credentials::MOORLINE),
            root.path(),
            &arguments,
            &variables.iter().map(|(name, value)| (*name, Path::new(*value))).collect::<Vec<_>>(),
        );
        Self { daemon, git, work, admin, commits: 0, _plane: plane, root }
    }

    /// Creates another repository beside that of the team.
    pub(crate) fn repository(&self, name: &str) -> Work {
        let folder = self.root.path().join(name);
        std::fs::create_dir_all(&folder).expect("a folder");
        Work::new(&folder)
    }

    /// Creates a Sync.
    pub(crate) async fn sync(&self, namespace: &str, name: &str, url: &str, spec: Value) {
        let mut whole = json!({
            "apiVersion": "moorline.dev/v1alpha1", "kind": "Sync",
            "metadata": {"name": name, "namespace": namespace},
            "spec": {"source": {"git": {"url": url}}, "interval": "10m", "health": {"wait": false},
                "serviceAccountName": ACCOUNT},
        });
        for (field, value) in spec.as_object().into_iter().flatten() {
            whole["spec"][field] = value.clone();
        }
        create(&self.syncs(namespace), whole).await;
    }

    pub(crate) fn syncs(&self, namespace: &str) -> Api<DynamicObject> {
        Api::namespaced_with(self.admin.clone(), namespace, &resource("moorline.dev", "v1alpha1", "Sync"))
    }

    pub(crate) async fn patch(&self, namespace: &str, name: &str, patch: Value) {
        let done = self.syncs(namespace).patch(name, &PatchParams::default(), &Patch::Merge(&patch)).await;
        done.unwrap_or_else(|error| panic!("{namespace}/{name}: {error}"));
    }

    /// Asks the daemon to poll the repository of a Sync now.
    pub(crate) async fn trigger_poll(&self, namespace: &str, name: &str) {
        let word = format!("{:?}", std::time::SystemTime::now());
        self.patch(
            namespace,
            name,
            json!({"metadata": {"annotations": {"moorline.dev/requested-at": word}}}),
        )
        .await;
    }

    /// Returns a field of the status of a Sync.
    pub(crate) async fn status(&self, namespace: &str, name: &str, pointer: &str) -> Value {
        let sync = self.syncs(namespace).get(name).await.map(|sync| sync.data).unwrap_or_default();
        sync.pointer(&format!("/status{pointer}")).cloned().unwrap_or_default()
    }

    /// Pushes a commit of the team that changes the ConfigMap of one of its Syncs; returns the
    /// seconds from the trigger of the poll until the ConfigMap is live.
    pub(crate) async fn commit(&mut self, sync: &str) -> f64 {
        self.commits += 1;
        let value = format!("v{}", self.commits);
        self.work.push(&[(&format!("{sync}/map.json"), &map(sync, &value))]);
        let maps: Api<ConfigMap> = Api::namespaced(self.admin.clone(), TEAM);
        let follow = WatchParams::default().fields(&format!("metadata.name={sync}"));
        let mut events = Box::pin(maps.watch(&follow, "0").await.expect("a watch"));
        let begun = Instant::now();
        self.trigger_poll(TEAM, sync).await;
        let live = async {
            while let Some(event) = events.next().await {
                if let Ok(WatchEvent::Added(map) | WatchEvent::Modified(map)) = event
                    && map.data.as_ref().and_then(|data| data.get("key")) == Some(&value)
                {
                    return true;
                }
            }
            false
        };
        let is_live = tokio::time::timeout(PATIENCE, live).await;
        assert!(is_live == Ok(true), "{sync} has not {value}:\n{}", self.daemon.log());
        begun.elapsed().as_secs_f64()
    }
}

/// Creates the namespaces, and a ServiceAccount in each that may do everything.
async fn prepare(admin: &Client) {
    let namespaces: Api<DynamicObject> = Api::all_with(admin.clone(), &resource("", "v1", "Namespace"));
    for name in [TEAM, OTHERS, "moorline"] {
        let body = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}});
        create(&namespaces, body).await;
        let accounts: Api<DynamicObject> =
            Api::namespaced_with(admin.clone(), name, &resource("", "v1", "ServiceAccount"));
        let body = json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": ACCOUNT}});
        create(&accounts, body).await;
    }
    let group = "rbac.authorization.k8s.io";
    let bindings: Api<DynamicObject> =
        Api::all_with(admin.clone(), &resource(group, "v1", "ClusterRoleBinding"));
    let body = json!({
        "apiVersion": format!("{group}/v1"), "kind": "ClusterRoleBinding", "metadata": {"name": ACCOUNT},
        "subjects": [{"kind": "Group", "apiGroup": group, "name": "system:serviceaccounts"}],
        "roleRef": {"apiGroup": group, "kind": "ClusterRole", "name": "cluster-admin"},
    });
    create(&bindings, body).await;
}

/// Manifest of a ConfigMap.
pub(crate) fn map(name: &str, value: &str) -> String {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"key": value}})
        .to_string()
}

fn resource(group: &str, version: &str, kind: &str) -> ApiResource {
    ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, kind))
}

async fn create(api: &Api<DynamicObject>, body: Value) {
    let object = serde_json::from_value(body).expect("a literal object");
    api.create(&PostParams::default(), &object).await.unwrap_or_else(|error| panic!("{error}"));
}
