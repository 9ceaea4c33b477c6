//! What only a real API server can prove: that the requests Moorline is built on do what the design says.

mod support;

use std::collections::BTreeMap;
use std::path::Path;
use std::time::{Duration, Instant};

use k8s_openapi::api::core::v1::{ConfigMap, Namespace};
use kube::api::{Api, ApiResource, DeleteParams, DynamicObject, Patch, PatchParams, PostParams};
use kube::core::GroupVersionKind;
use kube::discovery::{Discovery, Scope};
use kube::{Client, ResourceExt as _};
use moorline::desired::{self, DesiredObject, Scopes, desired};
use moorline::object::GroupKind;
use moorline::render::{self, Options, Rendered};
use moorline::source::directory;
use serde_json::Value;

use support::audit::AuditMark;
use support::control_plane::shared;
use support::credentials::{ADMIN, MOORLINE, TENANT};

/// For what the controllers do in a moment on an idle machine.
const DEADLINE: Duration = Duration::from_secs(120);
/// The controllers have nothing more to write when nothing has changed for this long.
const QUIET: Duration = Duration::from_millis(500);

#[tokio::test]
async fn the_api_server_answers_with_the_version_that_the_figures_are_for() {
    let Some(plane) = shared() else { return };
    let version = plane.client(ADMIN).await.apiserver_version().await.expect("/version");
    assert_eq!(version.git_version, "v1.36.3");
}

#[tokio::test]
async fn the_audit_log_tells_each_request_once_and_whose_it_was() {
    let Some(plane) = shared() else { return };
    let namespace = plane.namespace("audit").await;
    let [moorline, tenant] = [plane.client(MOORLINE).await, plane.client(TENANT).await];
    let mark = AuditMark::set(&plane).await;
    for _ in 0..20 {
        Api::<ConfigMap>::namespaced(moorline.clone(), &namespace)
            .list(&Default::default())
            .await
            .expect("Moorline may list");
    }
    Api::<ConfigMap>::namespaced(tenant, &namespace)
        .get("absent")
        .await
        .expect_err("the tenant has no rights");

    let requests = mark.requests().await.within(&namespace);
    let listed = requests.clone().of(MOORLINE).of_this_test();
    assert_eq!(listed.tally(), BTreeMap::from([("list configmaps".to_owned(), 20)]));
    let refused = requests.of(TENANT);
    assert_eq!(refused.tally(), BTreeMap::from([("get configmaps".to_owned(), 1)]));
    assert_eq!(refused.as_slice()[0].code, 403);
}

#[tokio::test]
async fn a_second_equal_apply_of_fifty_objects_of_ten_kinds_changes_no_resource_version() {
    let Some(plane) = shared() else { return };
    let namespace = plane.namespace("fifty").await;
    let manager = format!("moorline/{namespace}/fifty");
    let objects = Applicable::all(plane.client(ADMIN).await, &namespace, fifty(&namespace)).await;
    let moorline = plane.client(MOORLINE).await;

    let first = AuditMark::set(&plane).await;
    apply_all(&objects, &moorline, &manager).await;
    assert_eq!(first.requests().await.of(MOORLINE).of_this_test().tally(), patches_of_fifty());

    let resting = resting_versions(&plane.client(ADMIN).await, &objects).await;
    let second = AuditMark::set(&plane).await;
    let applied = apply_all(&objects, &moorline, &manager).await;
    let requests = second.requests().await;
    assert_eq!(applied.len(), 50);
    assert_eq!(applied, resting, "an equal apply changed what it should have left alone");
    assert_eq!(requests.of(MOORLINE).of_this_test().tally(), patches_of_fifty());
}

#[tokio::test]
async fn the_table_of_scopes_is_what_the_server_says() {
    let Some(plane) = shared() else { return };
    let discovery = Discovery::new(plane.client(ADMIN).await)
        .run_aggregated()
        .await
        .expect("the API server tells its kinds");
    let scope = |scope| match scope {
        Scope::Namespaced => desired::Scope::Namespaced,
        Scope::Cluster => desired::Scope::Cluster,
    };
    // What cannot be listed and patched cannot be held to anything: reviews, bindings, component status.
    let served: BTreeMap<GroupKind, desired::Scope> = discovery
        .groups()
        .flat_map(|group| group.recommended_resources())
        .filter(|(_, can)| can.supports_operation("list") && can.supports_operation("patch"))
        .map(|(kind, capabilities)| (GroupKind::new(&kind.group, &kind.kind), scope(capabilities.scope)))
        .collect();
    let builtin = Scopes::builtin();
    let known: BTreeMap<GroupKind, desired::Scope> =
        builtin.iter().map(|(kind, scope)| (kind.clone(), scope)).collect();
    let missing: Vec<_> = served.iter().filter(|(kind, scope)| known.get(kind) != Some(scope)).collect();
    assert!(missing.is_empty(), "not in the table, or otherwise: {missing:?}");
    let unserved: Vec<_> =
        known.keys().filter(|kind| !served.contains_key(kind)).map(ToString::to_string).collect();
    // Served only where an alpha or beta feature is on, or on older servers.
    let expect: [&str; 0] = [];
    assert_eq!(unserved, expect);
}

#[tokio::test]
async fn a_deleted_namespace_is_emptied_by_the_controllers_and_then_gone() {
    let Some(plane) = shared() else { return };
    let name = plane.namespace("deleted").await;
    let admin = plane.client(ADMIN).await;
    let kept: ConfigMap =
        serde_json::from_value(serde_json::json!({"metadata": {"name": "content"}})).expect("a ConfigMap");
    Api::namespaced(admin.clone(), &name)
        .create(&PostParams::default(), &kept)
        .await
        .expect("a ConfigMap in a new namespace");
    let namespaces: Api<Namespace> = Api::all(admin);
    namespaces.delete(&name, &DeleteParams::default()).await.expect("the deletion begins");
    let deadline = Instant::now() + DEADLINE;
    while let Some(namespace) = namespaces.get_opt(&name).await.expect("an answer about the namespace") {
        assert!(Instant::now() < deadline, "still there after {DEADLINE:?}: {:?}", namespace.status);
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

/// The objects of `tests/api_server/fifty/` as Moorline reads them, in canonical form.
fn fifty(namespace: &str) -> Vec<Value> {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/api_server/fifty");
    let (tree, path) = directory::read(&directory, render::is_read).expect("the fixture can be read");
    let Rendered::Complete(complete) = render::render(&tree, &Options { path, ..Options::default() }) else {
        panic!("the fixture is sound");
    };
    let desired = desired(complete, namespace, &Scopes::builtin()).expect("the fixture is sound");
    let body = |object: &DesiredObject| serde_json::from_slice(&object.canonical).expect("JSON");
    desired.objects().iter().map(body).collect()
}

fn patches_of_fifty() -> BTreeMap<String, usize> {
    [
        ("patch clusterroles.rbac.authorization.k8s.io", 5),
        ("patch configmaps", 10),
        ("patch daemonsets.apps", 1),
        ("patch deployments.apps", 2),
        ("patch rolebindings.rbac.authorization.k8s.io", 5),
        ("patch roles.rbac.authorization.k8s.io", 5),
        ("patch secrets", 10),
        ("patch serviceaccounts", 5),
        ("patch services", 5),
        ("patch statefulsets.apps", 2),
    ]
    .map(|(what, count)| (what.to_owned(), count))
    .into()
}

/// An object with what is needed to send it.
struct Applicable {
    resource: ApiResource,
    /// None for what belongs to the whole cluster.
    namespace: Option<String>,
    body: DynamicObject,
}

impl Applicable {
    /// Asks the API server once how each kind is called in a path, and whether it has namespaces.
    async fn all(client: Client, namespace: &str, bodies: Vec<Value>) -> Vec<Self> {
        let discovery =
            Discovery::new(client).run_aggregated().await.expect("the API server tells its kinds");
        let applicable = |body: Value| {
            let body: DynamicObject = serde_json::from_value(body).expect("an object");
            let types = body.types.as_ref().expect("apiVersion and kind");
            let kind = GroupVersionKind::try_from(types).expect("a group, a version and a kind");
            let (resource, capabilities) = discovery
                .resolve_gvk(&kind)
                .unwrap_or_else(|| panic!("the API server does not know {kind:?}"));
            let namespace = match capabilities.scope {
                Scope::Namespaced => Some(namespace.to_owned()),
                Scope::Cluster => None,
            };
            Self { resource, namespace, body }
        };
        bodies.into_iter().map(applicable).collect()
    }

    fn label(&self) -> String {
        format!("{} {}", self.resource.kind, self.body.name_any())
    }

    fn api(&self, client: &Client) -> Api<DynamicObject> {
        match &self.namespace {
            Some(namespace) => Api::namespaced_with(client.clone(), namespace, &self.resource),
            None => Api::all_with(client.clone(), &self.resource),
        }
    }

    /// Applies it by force, has only the metadata sent back, and gives the resourceVersion in it.
    async fn apply(&self, client: &Client, manager: &str) -> String {
        let parameters = PatchParams::apply(manager).force();
        let answer = self
            .api(client)
            .patch_metadata(&self.body.name_any(), &parameters, &Patch::Apply(&self.body))
            .await
            .unwrap_or_else(|error| panic!("{}: {error}", self.label()));
        let entries = answer.managed_fields();
        assert!(
            entries.iter().any(|entry| entry.manager.as_deref() == Some(manager)),
            "{}: {manager} has no entry in {entries:?}",
            self.label()
        );
        answer.resource_version().expect("a resourceVersion")
    }
}

/// The resourceVersion of each object after it was applied.
async fn apply_all(objects: &[Applicable], client: &Client, manager: &str) -> BTreeMap<String, String> {
    let mut versions = BTreeMap::new();
    for object in objects {
        versions.insert(object.label(), object.apply(client, manager).await);
    }
    versions
}

/// The resourceVersion of each object once no controller has anything more to write: those of workloads write a
/// status until it tells all that there is to tell on a cluster without nodes.
async fn resting_versions(client: &Client, objects: &[Applicable]) -> BTreeMap<String, String> {
    let deadline = Instant::now() + DEADLINE;
    let mut seen = BTreeMap::new();
    loop {
        let mut versions = BTreeMap::new();
        let mut busy = Vec::new();
        for object in objects {
            let live = object.api(client).get(&object.body.name_any()).await.expect("the applied object");
            if !is_told_in_full(&live) {
                busy.push(object.label());
            }
            versions.insert(object.label(), live.resource_version().expect("a resourceVersion"));
        }
        if busy.is_empty() && versions == seen {
            return versions;
        }
        assert!(Instant::now() < deadline, "no rest after {DEADLINE:?}, busy: {busy:?}");
        seen = versions;
        tokio::time::sleep(QUIET).await;
    }
}

/// Whether the status of a workload is of its newest spec and counts as many pods as the spec wants.
fn is_told_in_full(live: &DynamicObject) -> bool {
    let is_workload = live.types.as_ref().is_some_and(|types| types.api_version == "apps/v1");
    let status = &live.data["status"];
    let wanted = &live.data["spec"]["replicas"];
    !is_workload
        || status["observedGeneration"].as_i64() == live.metadata.generation
            && (wanted.is_null() || status["replicas"] == *wanted)
}
