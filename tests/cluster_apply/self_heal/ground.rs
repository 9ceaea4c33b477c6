//! Fixtures for the tests of self-healing: manifests, edits under names of managers, and counts of requests.

use std::collections::BTreeMap;
use std::time::Duration;

use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::Client;
use kube::api::{Api, Patch, PatchParams};
use serde_json::{Value, json};

use moorline_test_support::audit::{AuditMark, Request};
use moorline_test_support::credentials::MOORLINE;
use moorline_test_support::daemon::until;

/// Longer than the daemon takes for anything that it does at once.
pub(crate) const QUIET: Duration = Duration::from_millis(1000);

pub(crate) fn config_map(name: &str, value: &str) -> String {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"key": value}})
        .to_string()
}

pub(crate) fn job(name: &str, container: &str) -> String {
    // The Job controller leaves Jobs alone that somebody else manages, so that a test writes their status.
    json!({
        "apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": name},
        "spec": {"managedBy": "example.com/tests", "template": {"spec": {
            "restartPolicy": "Never", "containers": [{"name": container, "image": "example.com/x:1"}],
        }}},
    })
    .to_string()
}

pub(crate) fn by(manager: &str) -> PatchParams {
    PatchParams { field_manager: Some(manager.to_owned()), ..PatchParams::default() }
}

pub(crate) fn tally<const N: usize>(expect: [(&str, usize); N]) -> BTreeMap<String, usize> {
    expect.into_iter().map(|(what, count)| (what.to_owned(), count)).collect()
}

/// Returns the daemon's requests of the objects of a namespace whose names begin with this.
pub(crate) async fn asked(mark: &AuditMark, namespace: &str, name: &str) -> BTreeMap<String, usize> {
    let about = |request: &Request| request.resource != "syncs" && request.name.starts_with(name);
    mark.requests().await.by_user(MOORLINE).in_namespace(namespace).filter(about).tally()
}

pub(crate) struct Maps(pub(crate) Api<ConfigMap>);

impl Maps {
    pub(crate) async fn new(client: Client, namespace: &str) -> Self {
        Self(Api::namespaced(client, namespace))
    }

    pub(crate) async fn data(&self, name: &str) -> Option<BTreeMap<String, String>> {
        self.0.get_opt(name).await.unwrap()?.data
    }

    pub(crate) async fn value(&self, name: &str) -> Option<String> {
        self.data(name).await?.remove("key")
    }

    pub(crate) async fn is(&self, name: &str, value: &str) {
        until(&format!("{name} is {value}"), async || self.value(name).await.filter(|it| it == value)).await;
    }

    pub(crate) async fn edit(&self, name: &str, manager: &str, edit: Value) {
        self.0.patch(name, &by(manager), &Patch::Merge(&edit)).await.unwrap();
    }
}

/// Sets the status of a Job as its controller would when it ends.
pub(crate) async fn end(jobs: &Api<Job>, name: &str, before: &str, how: &str) {
    let now = jiff::Timestamp::from_second(jiff::Timestamp::now().as_second()).unwrap().to_string();
    let condition = |kind: &str| json!({"type": kind, "status": "True", "lastTransitionTime": now});
    let mut status = json!({"startTime": now, "conditions": [condition(before), condition(how)]});
    if how == "Complete" {
        status["completionTime"] = now.clone().into();
    }
    let patch = json!({"status": status});
    jobs.patch_status(name, &by("example.com/tests"), &Patch::Merge(&patch)).await.unwrap();
}
