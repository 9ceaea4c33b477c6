//! Fifty objects of ten kinds, and what it takes to apply them.
//!
//! In: the manifests in `tests/api_server/fifty/`. Out: [`Applicable`]s, and the resourceVersions that they come to.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::{Duration, Instant};

use kube::api::{Api, ApiResource, DynamicObject, Patch, PatchParams};
use kube::core::GroupVersionKind;
use kube::discovery::{Discovery, Scope};
use kube::{Client, ResourceExt as _};
use moorline::desired::{DesiredObject, Scopes, build_desired_set};
use moorline::render::{self, RenderOptions, Rendered};
use moorline::source::directory;
use serde_json::Value;

use crate::api_server::DEADLINE;

/// The controllers have nothing more to write when nothing has changed for this long.
const QUIET: Duration = Duration::from_millis(500);

/// The objects of `tests/api_server/fifty/` as Moorline reads them, in canonical form.
pub(crate) fn fifty(namespace: &str) -> Vec<Value> {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/api_server/fifty");
    let (tree, path) = directory::read(&directory, render::is_read).expect("the fixture can be read");
    let Rendered::Complete(complete) =
        render::render(&tree, &RenderOptions { path, ..RenderOptions::default() })
    else {
        panic!("the fixture is sound");
    };
    let desired = build_desired_set(complete, namespace, &Scopes::builtin()).expect("the fixture is sound");
    let body = |object: &DesiredObject| serde_json::from_slice(&object.canonical).expect("JSON");
    desired.objects().iter().map(body).collect()
}

pub(crate) fn patches_of_fifty() -> BTreeMap<String, usize> {
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
pub(crate) struct Applicable {
    resource: ApiResource,
    /// None for what belongs to the whole cluster.
    namespace: Option<String>,
    body: DynamicObject,
}

impl Applicable {
    /// Asks the API server once how each kind is called in a path, and whether it has namespaces.
    pub(crate) async fn all(client: Client, namespace: &str, bodies: Vec<Value>) -> Vec<Self> {
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
pub(crate) async fn apply_all(
    objects: &[Applicable],
    client: &Client,
    manager: &str,
) -> BTreeMap<String, String> {
    let mut versions = BTreeMap::new();
    for object in objects {
        versions.insert(object.label(), object.apply(client, manager).await);
    }
    versions
}

/// The resourceVersion of each object once no controller has anything more to write: those of workloads write a
/// status until it tells all that there is to tell on a cluster without nodes.
pub(crate) async fn resting_versions(client: &Client, objects: &[Applicable]) -> BTreeMap<String, String> {
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

/// True if the status of a workload is of its newest spec and counts as many pods as the spec wants.
fn is_told_in_full(live: &DynamicObject) -> bool {
    let is_workload = live.types.as_ref().is_some_and(|types| types.api_version == "apps/v1");
    let status = &live.data["status"];
    let wanted = &live.data["spec"]["replicas"];
    !is_workload
        || status["observedGeneration"].as_i64() == live.metadata.generation
            && (wanted.is_null() || status["replicas"] == *wanted)
}
