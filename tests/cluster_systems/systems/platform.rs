//! Whole repositories of examples: Syncs that depend on each other, applied as a person applies them.

use std::path::Path;

use serde_json::{Value, json};

use super::conversion::Conversion;
use super::kubelet::Kubelet;
use super::life::{DEFINITIONS, clear, tell};
use super::table::{Resource, SYSTEMS, System};
use moorline_test_support::audit::{AuditMark, Request, Requests};
use moorline_test_support::credentials::MOORLINE;
use moorline_test_support::daemon::until;
use moorline_test_support::rest::send_request;
use moorline_test_support::scene::Scene;

/// All files below a folder of `examples/`, by their paths in it.
fn tree(folder: &str) -> Vec<(String, String)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples");
    let (mut open, mut files) = (vec![root.join(folder)], Vec::new());
    while let Some(place) = open.pop() {
        for entry in std::fs::read_dir(&place).unwrap() {
            let path = entry.unwrap().path();
            match path.is_dir() {
                true => open.push(path),
                false => {
                    let name = path.strip_prefix(&root).unwrap().to_str().unwrap().to_owned();
                    files.push((name, std::fs::read_to_string(&path).unwrap()));
                }
            }
        }
    }
    files
}

/// Creates the Syncs of an example, with the repository and the namespace of the scene; their names, and on whom each
/// depends.
async fn apply_syncs(scene: &Scene, folder: &str) -> Vec<(String, Vec<String>)> {
    let mut all = Vec::new();
    for (path, text) in tree(&format!("{folder}/syncs")) {
        let documents =
            moorline::yaml::read(&path, text.as_bytes(), moorline::yaml::Dialect::Kubectl).unwrap();
        let mut sync = documents[0].value.clone();
        sync["metadata"]["namespace"] = scene.namespace.as_str().into();
        sync["spec"]["source"]["git"]["url"] = scene.git.url("repository.git").into();
        sync["spec"]["interval"] = "1h".into();
        let uri = format!("/apis/moorline.dev/v1alpha1/namespaces/{}/syncs", scene.namespace);
        let made = send_request(&scene.admin, "POST", &uri, &sync)
            .await
            .unwrap_or_else(|error| panic!("{path}: {error}"));
        let name = made["metadata"]["name"].as_str().unwrap().to_owned();
        let needs = made["spec"]["dependsOn"].as_array().cloned().unwrap_or_default();
        let needs = needs.iter().map(|it| it["name"].as_str().unwrap().to_owned());
        all.push((name, needs.collect()));
    }
    all
}

fn system(folder: &str) -> &'static System {
    SYSTEMS.iter().find(|system| system.folder == folder).unwrap()
}

/// Operators say that a resource is well, once it is there.
async fn become_well(scene: &Scene, resource: &Resource) {
    until(&format!("{} is there", resource.shown()), async || {
        send_request(&scene.admin, "GET", &resource.uri(), Value::Null).await.ok()
    })
    .await;
    if let Some(told) = &resource.told {
        tell(scene, resource, told.well).await;
    }
}

/// When the daemon wrote to a resource for the first time.
fn first_write(requests: &Requests, resource: &str, name: &str) -> f64 {
    let write = |it: &&Request| {
        it.user == MOORLINE && it.verb == "patch" && it.resource == resource && it.name == name
    };
    requests.as_slice().iter().find(write).unwrap_or_else(|| panic!("{resource}/{name}")).received
}

/// Syncs, definitions and namespaces that a test leaves go, so that the next begins without them.
async fn clear_all(scene: &Scene, syncs: &[(String, Vec<String>)], folders: &[&str], namespaces: &[&str]) {
    for (name, _) in syncs {
        scene.delete_sync(name).await;
    }
    let resources = folders.iter().flat_map(|folder| system(folder).resources);
    let definitions = resources.map(|resource| format!("{DEFINITIONS}/{}", resource.definition()));
    let namespaces = namespaces.iter().map(|name| format!("/api/v1/namespaces/{name}"));
    let all: Vec<String> = definitions.chain(namespaces).collect();
    clear(scene, &all.iter().map(String::as_str).collect::<Vec<_>>()).await;
}

#[tokio::test]
async fn a_platform_comes_up_in_the_order_of_its_syncs() {
    let Some(scene) = Scene::new("platform").await else { return };
    let _kubelet = Kubelet::start(&scene.admin);
    let commit = scene.push(&[tree("operators"), tree("platform")].concat());
    let mark = AuditMark::set(&scene.plane).await;
    let _daemon = scene.daemon();
    let syncs = apply_syncs(&scene, "platform").await;
    assert_eq!(syncs.len(), 4);
    scene.until_reason("postgres", "DependencyNotReady").await;
    scene.until_reason("shop", "DependencyNotReady").await;
    for resource in system("prometheus").resources.iter().chain(system("cert-manager").resources) {
        become_well(&scene, resource).await;
    }
    scene.until_ready("monitoring", &commit).await;
    scene.until_ready("certificates", &commit).await;
    scene.until_reason("shop", "DependencyNotReady").await;
    for resource in system("crunchy-postgres").resources {
        become_well(&scene, resource).await;
    }
    scene.until_ready("postgres", &commit).await;
    let certificate =
        Resource { namespace: Some("shop"), name: "shop", ..system("cert-manager").resources[0] };
    become_well(&scene, &certificate).await;
    scene.until_ready("shop", &commit).await;

    let requests = mark.requests().await;
    let place = [
        first_write(&requests, "prometheuses", "prometheus"),
        first_write(&requests, "postgresclusters", "my-postgres"),
        first_write(&requests, "deployments", "shop"),
    ];
    assert!(place.is_sorted(), "{place:?}");
    assert!(first_write(&requests, "clusterissuers", "letsencrypt-prod") < place[2]);
    scene.settle().await;
    scene.assert_calm("with a platform").await;
    let namespaces = ["monitoring", "cert-manager", "postgres-operator", "shop"];
    clear_all(&scene, &syncs, &["prometheus", "cert-manager", "crunchy-postgres"], &namespaces).await;
}

#[tokio::test]
async fn tenants_get_their_databases_once_the_operator_is_there() {
    let Some(scene) = Scene::new("self-service").await else { return };
    let _kubelet = Kubelet::start(&scene.admin);
    let conversion = Conversion::start(&scene);
    let mut all = [tree("operators"), tree("self-service")].concat();
    for (_, text) in all.iter_mut().filter(|(path, _)| path == "operators/database/definition.yaml") {
        *text = conversion.in_place(text);
    }
    let commit = scene.push(&all);
    let mark = AuditMark::set(&scene.plane).await;
    let _daemon = scene.daemon();
    let syncs = apply_syncs(&scene, "self-service").await;
    let database = &system("database").resources[0];
    scene.until_reason("orders", "DependencyNotReady").await;
    become_well(&scene, database).await;
    scene.until_ready("databases", &commit).await;
    for (tenant, needs) in syncs.iter().filter(|(name, _)| name != "databases") {
        assert_eq!(needs, &["databases"]);
        let uri = format!("/apis/example.com/v1/namespaces/{tenant}/databases/{tenant}");
        until(&format!("{tenant} has a Database"), async || {
            send_request(&scene.admin, "GET", &uri, Value::Null).await.ok()
        })
        .await;
        let status: Value = serde_json::from_str(database.told.unwrap().well).unwrap();
        send_request(&scene.admin, "PATCH", &format!("{uri}/status"), json!({"status": status}))
            .await
            .unwrap();
        scene.until_ready(tenant, &commit).await;
        let requests = mark.requests().await;
        assert!(
            first_write(&requests, "databases", "my-postgres") < first_write(&requests, "databases", tenant)
        );
    }
    let namespaces = ["database-system", "production", "orders", "billing"];
    clear_all(&scene, &syncs, &["database"], &namespaces).await;
}
