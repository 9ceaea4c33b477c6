//! Life of a system from its commit to the commit that takes it away.
//!
//! In: a scene and a row of the table. Out: nothing, or a panic that names the system and what it was expected to do.

use std::path::Path;

use serde_json::{Value, json};

use crate::systems::conversion::Conversion;
use crate::systems::table::{Resource, System};
use moorline_test_support::audit::{Request, Requests};
use moorline_test_support::credentials::MOORLINE;
use moorline_test_support::daemon::until;
use moorline_test_support::rest::send_request;
use moorline_test_support::scene::{Scene, config_map};
use moorline_test_support::status::{condition, waiting};

pub(crate) const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";

/// The files of a folder of examples, by their paths below `examples/operators`.
pub(crate) fn files(folder: &str) -> Vec<(String, String)> {
    let place = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/operators").join(folder);
    let entries = std::fs::read_dir(&place).unwrap_or_else(|error| panic!("{folder}: {error}"));
    let file = |entry: std::io::Result<std::fs::DirEntry>| {
        let file = entry.unwrap();
        let name = file.file_name().into_string().unwrap();
        (format!("{folder}/{name}"), std::fs::read_to_string(file.path()).unwrap())
    };
    entries.map(file).collect()
}

/// Pushes folders of examples, each with a ConfigMap that is to stay when all else goes.
pub(crate) fn push<'a>(
    scene: &Scene,
    conversion: &Conversion,
    folders: impl Iterator<Item = &'a str>,
) -> String {
    let mut all = Vec::new();
    for folder in folders {
        all.extend(files(folder));
        all.push((format!("{folder}/stays.json"), config_map(folder, "stays")));
    }
    for (_, text) in all.iter_mut().filter(|(path, _)| path == "database/definition.yaml") {
        *text = conversion.in_place(text);
    }
    scene.push(&all)
}

/// Takes everything but the ConfigMaps out of the repository.
pub(crate) fn remove<'a>(scene: &Scene, folders: impl Iterator<Item = &'a str>) -> String {
    let patterns: Vec<String> = folders.map(|folder| format!("{folder}/*.yaml")).collect();
    scene.remove(&patterns.iter().map(String::as_str).collect::<Vec<_>>())
}

/// Makes the Sync of a system.
pub(crate) async fn follow(scene: &Scene, system: &System) {
    waiting(scene, system.folder, json!({"path": system.folder})).await;
}

/// The operator writes a status.
pub(crate) async fn tell(scene: &Scene, resource: &Resource, status: &str) {
    let Some(told) = &resource.told else { return };
    let status: Value = serde_json::from_str(status).unwrap();
    let part = if told.is_subresource { "/status" } else { "" };
    let uri = format!("{}{part}", resource.uri());
    send_request(&scene.admin, "PATCH", &uri, json!({"status": status})).await.unwrap();
}

async fn until_there(scene: &Scene, resource: &Resource) -> Value {
    until(&format!("{} is there", resource.shown()), async || {
        send_request(&scene.admin, "GET", &resource.uri(), Value::Null).await.ok()
    })
    .await
}

/// Waits until a Sync says of its health that it has this status and reason, with these words in it.
async fn until_said(scene: &Scene, sync: &str, status: &str, reason: &str, words: &str) {
    let what = format!("{sync}: Healthy is {status} because of {reason}: {words}");
    let mut last = Value::Null;
    let said = until(&what, async || {
        let told = condition(scene, sync, "Healthy").await;
        if told != last {
            // Shown where the test fails.
            println!("{sync}: {} because of {}: {}", told["status"], told["reason"], told["message"]);
            last.clone_from(&told);
        }
        let message = told["message"].as_str().unwrap_or_default();
        (told["status"] == status && told["reason"] == reason && message.contains(words)).then_some(())
    });
    said.await;
}

/// The resources are there, their operators begin with them, and the Sync says so.
pub(crate) async fn begins(scene: &Scene, system: &System) {
    for resource in system.resources {
        until_there(scene, resource).await;
        if let Some(finalizer) = resource.finalizer {
            let patch = json!({"metadata": {"finalizers": [finalizer]}});
            send_request(&scene.admin, "PATCH", &resource.uri(), patch).await.unwrap();
        }
        if let Some(told) = &resource.told {
            tell(scene, resource, told.on_its_way).await;
        }
    }
    // Once the operator itself is up, the first to be named is a resource.
    let shown = system.resources.iter().find(|resource| resource.told.is_some()).unwrap();
    until_said(scene, system.folder, "Unknown", "Progressing", shown.kind).await;
}

/// The operators are done, and the Sync is ready.
pub(crate) async fn becomes_well(scene: &Scene, system: &System, commit: &str) {
    for resource in system.resources {
        if let Some(told) = &resource.told {
            tell(scene, resource, told.well).await;
        }
    }
    until_said(scene, system.folder, "True", "Healthy", "").await;
    scene.until_ready(system.folder, commit).await;
}

/// The operator says what is wrong, and so does the Sync.
pub(crate) async fn breaks(scene: &Scene, system: &System) {
    let resource = &system.resources[0];
    let told = resource.told.as_ref().unwrap();
    tell(scene, resource, told.broken).await;
    until_said(scene, system.folder, "False", "Degraded", told.words).await;
    let ready = condition(scene, system.folder, "Ready").await;
    assert_eq!((&ready["status"], &ready["reason"]), (&json!("False"), &json!("Degraded")), "{ready}");
    let message = ready["message"].as_str().unwrap();
    assert!(message.contains(&resource.shown()), "{}: {message}", system.folder);
}

/// The hash that a person has to give, once the Sync names it.
async fn approval(scene: &Scene, system: &System) -> String {
    until(&format!("{} asks for approval", system.folder), async || {
        scene.status(system.folder, "/approval/hash").await.as_str().map(str::to_owned)
    })
    .await
}

/// Without a person nothing goes whose loss is a loss, and nothing that it needs to go.
pub(crate) async fn waits_for_a_person(scene: &Scene, system: &System) {
    scene.nudge(system.folder, "removed").await;
    approval(scene, system).await;
    for resource in system.resources.iter().filter(|resource| resource.holds_data) {
        let live = until_there(scene, resource).await;
        assert_eq!(live["metadata"].get("deletionTimestamp"), None, "{}", resource.shown());
    }
}

/// A person approves once; the operator lets its resources go, and then everything is gone.
pub(crate) async fn goes_once_approved(scene: &Scene, system: &System) {
    let hash = approval(scene, system).await;
    let approve = json!({"metadata": {"annotations": {"moorline.dev/approve": hash}}});
    scene.patch_sync(system.folder, approve).await;
    for resource in system.resources {
        let Some(_) = resource.finalizer else { continue };
        until(&format!("{} is being deleted", resource.shown()), async || {
            let live = send_request(&scene.admin, "GET", &resource.uri(), Value::Null).await.unwrap();
            live["metadata"].get("deletionTimestamp").map(|_| ())
        })
        .await;
        let (namespace, name) = system.operator;
        let operator = format!("/apis/apps/v1/namespaces/{namespace}/deployments/{name}");
        send_request(&scene.admin, "GET", &operator, Value::Null)
            .await
            .expect("the operator is needed until then");
    }
    for resource in system.resources.iter().filter(|resource| resource.finalizer.is_some()) {
        let patch = json!({"metadata": {"finalizers": null}});
        send_request(&scene.admin, "PATCH", &resource.uri(), patch).await.unwrap();
    }
    // Objects in a namespace are deleted at the pace of its controller.
    let namespace = format!("/api/v1/namespaces/{}", system.operator.0);
    until(&format!("{namespace} is being deleted"), async || {
        let live = send_request(&scene.admin, "GET", &namespace, Value::Null).await;
        live.map_or(Some(()), |live| live["metadata"].get("deletionTimestamp").map(|_| ()))
    })
    .await;
}

/// Waits until something is gone.
pub(crate) async fn until_gone(scene: &Scene, uri: &str) {
    until(&format!("{uri} is gone"), async || {
        send_request(&scene.admin, "GET", uri, Value::Null).await.err()
    })
    .await;
}

/// Takes away what a test leaves.
pub(crate) async fn clear(scene: &Scene, uris: &[&str]) {
    for uri in uris {
        send_request(&scene.admin, "DELETE", uri, Value::Null).await.unwrap();
    }
    for uri in uris {
        until_gone(scene, uri).await;
    }
}

fn is_on(request: &Request, plural: &str, group: &str, name: &str) -> bool {
    request.user == MOORLINE && request.resource == plural && request.group == group && request.name == name
}

fn first<'a>(requests: &'a Requests, verbs: &[&str], it: (&str, &str, &str)) -> Option<&'a Request> {
    let is = |request: &&Request| {
        verbs.contains(&&*request.verb) && request.subresource.is_empty() && is_on(request, it.0, it.1, it.2)
    };
    requests.as_slice().iter().find(is)
}

/// Plural and group of definitions.
const DEFINITION: (&str, &str) = ("customresourcedefinitions", "apiextensions.k8s.io");

/// Definitions were there, and served, before a resource of theirs was written.
pub(crate) fn assert_came_in_order(requests: &Requests, system: &System) {
    for resource in system.resources {
        let definition = resource.definition();
        let definition = first(requests, &["patch"], (DEFINITION.0, DEFINITION.1, &definition)).unwrap();
        let place = (resource.plural, resource.group, resource.name);
        let write = first(requests, &["patch"], place).unwrap();
        let (namespace, name) = system.operator;
        let operator = first(requests, &["patch"], ("deployments", "apps", name)).unwrap();
        assert!(definition.answered <= operator.received, "{namespace}/{name} is later than its definition");
        assert!(operator.answered <= write.received, "{} is later than its operator", resource.shown());
        assert_eq!(write.code, 201, "the first attempt is one that can succeed: {}", write.uri);
    }
}

/// While a person is asked, nothing of the operator went.
pub(crate) fn assert_operator_stays(requests: &Requests, system: &System) {
    if system.resources.iter().any(|resource| resource.holds_data) {
        let deleted = first(requests, &["delete"], ("deployments", "apps", system.operator.1));
        assert!(deleted.is_none(), "{} is needed until its resources are gone", system.operator.1);
    }
}

/// Resources went first, then their operator, then their definitions.
pub(crate) fn assert_went_in_order(requests: &Requests, system: &System) {
    let operator = first(requests, &["delete"], ("deployments", "apps", system.operator.1)).unwrap();
    for resource in system.resources {
        let place = (resource.plural, resource.group, resource.name);
        let resource_went = first(requests, &["delete"], place).unwrap();
        let definition = resource.definition();
        let definition = first(requests, &["delete"], (DEFINITION.0, DEFINITION.1, &definition)).unwrap();
        assert!(resource_went.answered <= operator.received, "{} goes before its operator", resource.shown());
        assert!(operator.answered <= definition.received, "{} goes before its definition", system.operator.1);
    }
}
