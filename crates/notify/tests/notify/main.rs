//! Tests of this crate over its public interface.

mod crashes;
mod late;
mod pull_requests;
mod requests;
mod throttle;
mod transitions;

use std::sync::Arc;

use moorline_api::{Notifier, SyncStatus};
use moorline_notify::{CompiledNotifier, HostedRepository, Subject};
use serde_json::{Value, json};

/// The Sync of the tests.
fn subject() -> Subject {
    Subject {
        cluster: "prod-eu".into(),
        namespace: "apps".into(),
        name: "shop".into(),
        uid: "5f0c".into(),
        labels: [("tier".to_owned(), "prod".to_owned())].into(),
        repository: HostedRepository::of_url("https://git.example.com/team/shop.git"),
    }
}

/// Compiles a Notifier in a namespace.
fn compiled(namespace: &str, name: &str, spec: &Value) -> Result<CompiledNotifier, Vec<String>> {
    let resource = json!({
        "apiVersion": "moorline.dev/v1alpha1", "kind": "Notifier", "spec": spec,
        "metadata": {"namespace": namespace, "name": name, "uid": format!("uid-{name}")},
    });
    let notifier: Notifier = serde_json::from_value(resource).expect("a Notifier");
    CompiledNotifier::compile(&notifier, "moorline")
}

/// A Notifier of everything, changed by some fields.
fn notifier(name: &str, more: &Value) -> Arc<CompiledNotifier> {
    let mut spec = json!({
        "slack": {"url": "https://chat.example.com"},
        "transitions": ["Applied", "Healthy", "Degraded", "Failed", "DriftRepaired", "PruneHeld", "ApprovalRequired", "RolledBack", "Recovered"],
    });
    for (key, value) in more.as_object().expect("fields") {
        spec[key] = value.clone();
    }
    Arc::new(compiled("apps", name, &spec).expect("a sound Notifier"))
}

/// A status from its JSON.
fn status(value: Value) -> SyncStatus {
    serde_json::from_value(value).expect("a status")
}

/// A revision with a commit of one digit.
fn revision(digit: u64) -> String {
    format!("main@{}", format!("{digit:x}").repeat(40).get(..40).expect("40 digits"))
}
