//! Environment of one test in the shared control plane: a namespace, a repository, and a daemon
//! behind a fault proxy.
//!
//! In: a purpose.
//! Out: a [`Scene`], with the actions and checks that tests share. The scenes of one program run
//! one after the other, because every daemon sees all Syncs.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use k8s_openapi::api::core::v1::ConfigMap;
use kube::Client;
use kube::api::{Api, ApiResource, DeleteParams, DynamicObject, ListParams, Patch, PatchParams, PostParams};
use kube::core::GroupVersionKind;
use serde_json::{Value, json};

use moorline_api::INSTANCE_LABEL;

use super::control_plane::{PlaneGuard, own_sandbox, shared, shared_beside};
use super::credentials::{ADMIN, MOORLINE};
use super::daemon::{Daemon, install, until};
use super::fault_proxy::{FaultProxy, RecordedRequest};
use super::git_server::{GitServer, Work};

/// Time without activity after which a test assumes that nothing more will happen.
pub const QUIET_TIME: Duration = Duration::from_millis(1500);

pub struct Scene {
    pub proxy: FaultProxy,
    pub namespace: String,
    pub admin: Client,
    pub work: Work,
    pub git: GitServer,
    pub root: tempfile::TempDir,
    pub plane: PlaneGuard,
    /// Instance of its daemons and Syncs, if other scenes may run beside it.
    pub instance: Option<String>,
}

/// A ConfigMap as in Git.
pub fn config_map(name: &str, value: &str) -> String {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"key": value}})
        .to_string()
}

/// A file with one ConfigMap, which has the name of the file.
pub fn file(path: &str, value: &str) -> (String, String) {
    let name = path.rsplit('/').next().unwrap_or(path);
    (format!("{path}.json"), config_map(name, value))
}

/// A file with this text.
pub fn text(path: &str, text: &str) -> (String, String) {
    (path.to_owned(), text.to_owned())
}

/// ConfigMaps a-0, a-1 and so on, as files.
pub fn many(count: usize, value: &str) -> Vec<(String, String)> {
    (0..count).map(|at| (format!("a-{at}.json"), config_map(&format!("a-{at}"), value))).collect()
}

impl Scene {
    /// Creates a scene once no other runs; `None` without a control plane.
    pub async fn new(purpose: &str) -> Option<Self> {
        Some(Self::on(shared()?, purpose).await)
    }

    /// Creates a scene that runs beside others of this kind: its daemons serve an instance of their
    /// own. It must not stop servers, or change what belongs to the whole cluster.
    pub async fn beside(purpose: &str) -> Option<Self> {
        let mut scene = Self::on(shared_beside()?, purpose).await;
        scene.instance = Some(scene.namespace.clone());
        Some(scene)
    }

    /// Creates a scene on a sandbox of its own.
    pub async fn on_sandbox(purpose: &str) -> Self {
        Self::on(own_sandbox(), purpose).await
    }

    async fn on(plane: PlaneGuard, purpose: &str) -> Self {
        install(&plane).await;
        let root = tempfile::tempdir().unwrap();
        Self {
            proxy: FaultProxy::start(&plane),
            namespace: plane.namespace(purpose).await,
            admin: plane.client(ADMIN).await,
            work: Work::new(root.path()),
            git: GitServer::start(root.path()),
            root,
            plane,
            instance: None,
        }
    }

    /// Name of the Lease of its daemons.
    pub fn lease_name(&self) -> String {
        self.instance.as_ref().map_or("moorline".to_owned(), |instance| format!("moorline-{instance}"))
    }

    /// Arguments that limit a daemon to the instance; a run without Syncs takes none.
    pub fn instance_arguments(&self) -> Vec<&str> {
        self.instance.iter().flat_map(|instance| ["--instance", instance]).collect()
    }

    /// Starts a daemon without leader election.
    pub fn daemon(&self) -> Daemon {
        self.daemon_with(&["--leader-election=false"])
    }

    pub fn daemon_with(&self, arguments: &[&str]) -> Daemon {
        self.daemon_at(&self.proxy, "daemon", arguments)
    }

    pub fn daemon_at(&self, proxy: &FaultProxy, name: &str, arguments: &[&str]) -> Daemon {
        let arguments = [&["--namespace", &self.namespace], arguments].concat();
        self.daemon_in(proxy, name, &arguments, &[])
    }

    /// Starts a daemon with these arguments, which may name another namespace, and these
    /// environment variables.
    pub fn daemon_in(
        &self,
        proxy: &FaultProxy,
        name: &str,
        arguments: &[&str],
        variables: &[(&str, &Path)],
    ) -> Daemon {
        let folder = self.root.path().join(name);
        std::fs::create_dir_all(&folder).unwrap();
        let kubeconfig = proxy.kubeconfig(&self.plane, MOORLINE);
        let of_instance = if arguments.contains(&"--url") { Vec::new() } else { self.instance_arguments() };
        let arguments =
            [&["--retry-base", "100ms", "--retry-cap", "1s"], &of_instance[..], arguments].concat();
        let reaper = &self.plane.reaper;
        let daemon = Daemon::with_environment(reaper, &kubeconfig, &folder, &arguments, variables);
        proxy.victim(daemon.running.child.id());
        daemon
    }

    /// Starts a daemon and waits until the Sync `shop` with this spec has applied these files;
    /// returns the daemon and the commit.
    pub async fn applied(&self, files: &[(String, String)], spec: Value) -> (Daemon, String) {
        let (commit, daemon) = (self.push(files), self.daemon());
        self.sync("shop", spec).await;
        self.until_ready("shop", &commit).await;
        (daemon, commit)
    }

    pub fn push(&self, files: &[(String, String)]) -> String {
        let files: Vec<_> = files.iter().map(|(path, text)| (path.as_str(), text.as_str())).collect();
        self.work.push(&files)
    }

    /// Removes files from the repository.
    pub fn remove(&self, files: &[&str]) -> String {
        self.work.git(&[&["rm", "-q", "--"], files].concat());
        self.work.push(&[])
    }

    /// Edits a ConfigMap manually.
    pub async fn edit(&self, name: &str, value: &str) {
        let patch = Patch::Merge(json!({"data": {"key": value}}));
        let parameters =
            PatchParams { field_manager: Some("kubectl-edit".to_owned()), ..PatchParams::default() };
        self.maps().patch(name, &parameters, &patch).await.unwrap();
    }

    pub fn maps(&self) -> Api<ConfigMap> {
        Api::namespaced(self.admin.clone(), &self.namespace)
    }

    /// Values of all ConfigMaps except the one that the controllers create.
    pub async fn values(&self) -> BTreeMap<String, String> {
        let maps = self.maps().list(&ListParams::default()).await.unwrap();
        let one = |map: ConfigMap| Some((map.metadata.name?, map.data?.remove("key")?));
        maps.items.into_iter().filter_map(one).collect()
    }

    /// Uid and resourceVersion of all ConfigMaps.
    pub async fn versions(&self) -> BTreeMap<String, (String, String)> {
        let maps = self.maps().list(&ListParams::default()).await.unwrap();
        let one = |map: ConfigMap| {
            let metadata = map.metadata;
            Some((metadata.name?, (metadata.uid?, metadata.resource_version?)))
        };
        maps.items.into_iter().filter_map(one).collect()
    }

    /// Waits until exactly the ConfigMaps in Git exist, with their values.
    pub async fn until_values(&self, expect: &[(String, String)], what: &str) {
        let expect: BTreeMap<String, String> = expect
            .iter()
            .map(|(_, text)| {
                let map: Value = serde_json::from_str(text).unwrap();
                let text = |pointer: &str| map.pointer(pointer).unwrap().as_str().unwrap().to_owned();
                (text("/metadata/name"), text("/data/key"))
            })
            .collect();
        until(what, async || (self.values().await == expect).then_some(())).await;
    }

    pub fn dynamic(&self, group: &str, version: &str, kind: &str) -> Api<DynamicObject> {
        let resource = ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, kind));
        Api::namespaced_with(self.admin.clone(), &self.namespace, &resource)
    }

    pub fn syncs(&self) -> Api<DynamicObject> {
        self.dynamic("moorline.dev", "v1alpha1", "Sync")
    }

    /// Creates a Sync of the repository; `spec` is merged into its spec. There is no kubelet to run
    /// Pods, so by default the Sync does not wait for health.
    pub async fn sync(&self, name: &str, spec: Value) -> DynamicObject {
        let mut whole = json!({
            "apiVersion": "moorline.dev/v1alpha1", "kind": "Sync",
            "metadata": {"name": name, "namespace": self.namespace},
            "spec": {"source": {"git": {"url": self.git.url("repository.git")}}, "interval": "5s",
                "health": {"wait": false}},
        });
        for (field, value) in spec.as_object().unwrap() {
            whole["spec"][field] = value.clone();
        }
        if let Some(instance) = &self.instance {
            whole["metadata"]["labels"] = json!({INSTANCE_LABEL: instance});
        }
        self.syncs().create(&PostParams::default(), &serde_json::from_value(whole).unwrap()).await.unwrap()
    }

    /// Changes a Sync.
    pub async fn patch_sync(&self, name: &str, patch: Value) {
        self.syncs().patch(name, &PatchParams::default(), &Patch::Merge(&patch)).await.unwrap();
    }

    /// Asks the daemon to poll the repository now.
    pub async fn nudge(&self, name: &str, word: &str) {
        let patch = json!({"metadata": {"annotations": {"moorline.dev/requested-at": word}}});
        self.patch_sync(name, patch).await;
    }

    /// A field of the status of a Sync.
    pub async fn status(&self, name: &str, pointer: &str) -> Value {
        let sync = self.syncs().get_opt(name).await.unwrap();
        let sync = sync.map(|sync| sync.data).unwrap_or_default();
        sync.pointer(&format!("/status{pointer}")).cloned().unwrap_or_default()
    }

    /// Waits until a Sync is ready at this commit.
    pub async fn until_ready(&self, name: &str, commit: &str) -> DynamicObject {
        until(&format!("{name} is ready at {commit}"), async || {
            let sync = self.syncs().get(name).await.unwrap();
            let text = |pointer: &str| sync.data.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
            let ready = text("/status/conditions/0/status") == "True";
            let applied = text("/status/revision/applied").ends_with(commit);
            let seen = sync.data.pointer("/status/observedGeneration").and_then(Value::as_i64);
            (ready && applied && seen == sync.metadata.generation).then_some(sync)
        })
        .await
    }

    /// Waits until the Ready condition of a Sync has this reason.
    pub async fn until_reason(&self, name: &str, reason: &str) {
        until(&format!("{name} says {reason}"), async || {
            (self.status(name, "/conditions/0/reason").await == reason).then_some(())
        })
        .await;
    }

    /// Deletes a Sync and waits until it is gone.
    pub async fn delete_sync(&self, name: &str) {
        self.syncs().delete(name, &DeleteParams::default()).await.unwrap();
        until("the Sync is gone", async || self.syncs().get_opt(name).await.unwrap().is_none().then_some(()))
            .await;
    }

    /// Waits for a period without requests, for a server that has to start or to catch up.
    pub async fn settle(&self) {
        self.proxy.take_requests();
        until("there are no requests for a while", async || {
            tokio::time::sleep(QUIET_TIME).await;
            self.proxy
                .take_requests()
                .iter()
                .all(|one| one.is_watch() || one.checks_server_identity())
                .then_some(())
        })
        .await;
    }

    /// Checks that for a while no requests about objects are sent and no status is written.
    pub async fn assert_calm(&self, what: &str) {
        self.assert_nothing_but(what, |_| false).await;
    }

    /// Same as [`Self::assert_calm`], but reads of statuses are allowed: an unhealthy or unfinished
    /// object is read from time to time.
    pub async fn assert_calm_but_for_looks(&self, what: &str) {
        self.assert_nothing_but(what, RecordedRequest::reads_health).await;
    }

    async fn assert_nothing_but(&self, what: &str, allowed: impl Fn(&RecordedRequest) -> bool) {
        tokio::time::sleep(QUIET_TIME).await;
        self.proxy.take_requests();
        tokio::time::sleep(QUIET_TIME).await;
        let shown =
            |one: &RecordedRequest| format!("{} {}?{} {}", one.method, one.path, one.query, one.text());
        // A watch that is reopened after its pause requests nothing that was already delivered,
        // except to check if the server is still the same.
        let asked = self.proxy.take_requests();
        let asked: Vec<String> = asked
            .iter()
            .filter(|one| !one.is_watch() && !one.checks_server_identity() && !allowed(one))
            .map(shown)
            .collect();
        assert!(asked.is_empty(), "{what}: {asked:?}");
    }
}
