//! A Kustomization of an artifact that an ArtifactGenerator copies from a repository follows that repository.

use moorline_test_support::fault_proxy::FaultProxy;
use moorline_test_support::gitops_tools::{Part, Robot, install, path};
use moorline_test_support::rest::send_request;
use moorline_test_support::scene::{Scene, text};
use serde_json::{Value, json};

use super::{adopt, three, until_held};

async fn create(scene: &Scene, group: &str, plural: &str, name: &str, spec: Value) {
    let place = format!("/apis/{group}/namespaces/{}/{plural}", scene.namespace);
    let body = json!({"apiVersion": group, "kind": kind(plural), "metadata": {"name": name}, "spec": spec});
    send_request(&scene.admin, "POST", &place, body).await.unwrap();
}

fn kind(plural: &str) -> &str {
    match plural {
        "externalartifacts" => "ExternalArtifact",
        "artifactgenerators" => "ArtifactGenerator",
        "gitrepositories" => "GitRepository",
        _ => "Kustomization",
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_generated_artifact_is_followed_in_its_repository() {
    let Some(scene) = Scene::new("adopt-generated").await else { return };
    install(&scene).await;
    let (part, proxy) = (Part::Flux, FaultProxy::start(&scene.plane));
    let _robot = Robot::start(&scene, part, three());
    let one = |object: &Value| {
        (format!("apps/base/{}.json", object["metadata"]["name"]).replace('"', ""), object.to_string())
    };
    let mut files: Vec<(String, String)> = three().iter().map(one).collect();
    files.push(text("apps/base/kustomization.yaml", "resources: [a-0.json, a-1.json, a-2.json]\n"));
    files.push(text("apps/production/kustomization.yaml", "resources: [../base]\n"));
    scene.push(&files);
    let git = json!({"url": scene.git.url("repository.git"), "ref": {"branch": "main"}, "interval": "10s"});
    create(&scene, "source.toolkit.fluxcd.io/v1", "gitrepositories", "fleet", git).await;
    let copy = |folder: &str| json!({"from": format!("@fleet/apps/{folder}/**"), "to": format!("@artifact/{folder}/")});
    let generator = json!({
        "sources": [{"alias": "fleet", "kind": "GitRepository", "name": "fleet"}],
        "artifacts": [{"name": "apps", "originRevision": "@fleet", "copy": [copy("base"), copy("production")]}],
    });
    create(&scene, "source.extensions.fluxcd.io/v1beta1", "artifactgenerators", "all", generator).await;
    let maker = json!({"sourceRef": {"apiVersion": "source.extensions.fluxcd.io/v1beta1", "kind": "ArtifactGenerator", "name": "all"}});
    create(&scene, "source.toolkit.fluxcd.io/v1", "externalartifacts", "apps", maker).await;
    let spec = json!({"sourceRef": {"kind": "ExternalArtifact", "name": "apps"}, "path": "./production", "prune": true,
        "interval": "10m", "targetNamespace": scene.namespace});
    create(&scene, "kustomize.toolkit.fluxcd.io/v1", "kustomizations", "shop", spec).await;
    until_held(&scene, part, 3).await;

    let shown = adopt(&scene, &proxy, part, &[]);
    for expect in ["path: ./apps/production", "Owned by Flux (3): Git has 3 of them", "Adopt (3)"] {
        assert!(shown.data.contains(expect), "{expect}: {}{}", shown.data, shown.words);
    }
    assert!(!shown.data.contains(" -> "), "a difference: {}", shown.data);

    // Without its generator the repository of the artifact is not known.
    let place = format!(
        "/apis/source.extensions.fluxcd.io/v1beta1/namespaces/{}/artifactgenerators/all",
        scene.namespace
    );
    send_request(&scene.admin, "DELETE", &place, Value::Null).await.unwrap();
    let refused = adopt(&scene, &proxy, part, &[]);
    assert!(
        refused.code == 1 && refused.data.contains("spec.sourceRef"),
        "{}{}",
        refused.data,
        refused.words
    );
    send_request(&scene.admin, "DELETE", &path(part, &scene.namespace), Value::Null).await.unwrap();
}
