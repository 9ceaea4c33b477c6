//! An adoption does not overwrite what the old tool left alone, delete what it should keep, resume what is
//! on its way out, or believe that the old tool is stopped when somebody has set it going again.

use serde_json::{Value, json};

use crate::adopt::{adopt, config_map, push, resource, three, until_held};
use moorline_test_support::daemon::until;
use moorline_test_support::fault_proxy::FaultProxy;
use moorline_test_support::gitops_tools::{Part, Robot, application, install, kustomization, path};
use moorline_test_support::rest::send_request;
use moorline_test_support::scene::Scene;

/// Three ConfigMaps, of which the one at this place has an annotation.
fn annotated(at: usize, annotations: Value) -> Vec<Value> {
    let mut all = three();
    all[at]["metadata"]["annotations"] = annotations;
    all
}

#[tokio::test(flavor = "multi_thread")]
async fn objects_that_argo_cd_was_to_keep_are_kept() {
    let Some(scene) = Scene::new("adopt-kept").await else { return };
    install(&scene).await;
    let (part, proxy) = (Part::ArgoCd, FaultProxy::start(&scene.plane));
    let in_git =
        annotated(1, json!({"argocd.argoproj.io/sync-options": "ServerSideApply=true, Prune=false"}));
    let _robot = Robot::start(&scene, part, in_git.clone());
    application(&scene, json!({"prune": true, "selfHeal": true})).await;
    until_held(&scene, part, 3).await;
    push(&scene, &in_git);
    let _daemon = scene.daemon();
    let applied = adopt(&scene, &proxy, part, &["--apply"]);
    assert_eq!(applied.code, 0, "{}{}", applied.data, applied.words);

    scene.remove(&["a-1.json", "a-2.json"]);
    let gone = async || (!scene.values().await.contains_key("a-2")).then_some(());
    until("what nobody asked to keep is pruned", gone).await;
    let status = until("the other is held", async || {
        let status = &scene.syncs().get_opt("shop").await.unwrap()?.data["status"];
        status.to_string().contains("PruneDisabled").then(|| status.clone())
    })
    .await;
    assert_eq!(status["objects"]["held"], 1, "{status}");
    assert_eq!(config_map(&scene, "a-1").await["data"]["key"], "one");
    scene.delete_sync("shop").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_flux_leaves_alone_is_not_overwritten() {
    let Some(scene) = Scene::new("adopt-alone").await else { return };
    install(&scene).await;
    let (part, proxy) = (Part::Flux, FaultProxy::start(&scene.plane));
    let once = ("kustomize.toolkit.fluxcd.io/ssa", "IfNotPresent");
    let mut in_git = annotated(0, json!({once.0: once.1}));
    // Flux made it once, and somebody has changed it since.
    let mut made = in_git[0].clone();
    made["data"] = json!({"key": "changed since", "own": "kept"});
    let maps = format!("/api/v1/namespaces/{}/configmaps", scene.namespace);
    send_request(&scene.admin, "POST", &maps, made.clone()).await.unwrap();
    let _robot = Robot::start(&scene, part, in_git[1..].to_vec());
    kustomization(&scene).await;
    until_held(&scene, part, 2).await;
    push(&scene, &in_git);
    let _daemon = scene.daemon();
    let refused = adopt(&scene, &proxy, part, &["--apply"]);
    let expect = "Flux ignores it (kustomize.toolkit.fluxcd.io/ssa: IfNotPresent): add the annotation moorline.dev/apply: once in Git as well";
    assert!(refused.code == 1 && refused.data.contains(expect), "{}{}", refused.data, refused.words);
    assert_eq!(resource(&scene, part).await["metadata"].get("annotations"), None);

    in_git[0]["metadata"]["annotations"]["moorline.dev/apply"] = "once".into();
    push(&scene, &in_git);
    let shown = adopt(&scene, &proxy, part, &[]);
    assert!(shown.code == 2 && !shown.data.contains("changed since"), "{}{}", shown.data, shown.words);
    let applied = adopt(&scene, &proxy, part, &["--apply"]);
    assert_eq!(applied.code, 0, "{}{}", applied.data, applied.words);
    assert_eq!(config_map(&scene, "a-0").await["data"], made["data"]);
    scene.settle().await;
    scene.assert_calm("adopted").await;

    // A commit that changes it changes nothing; one that removes it removes it.
    in_git[0]["data"]["key"] = "two".into();
    let commit = push(&scene, &in_git);
    scene.until_ready("shop", &commit).await;
    assert_eq!(config_map(&scene, "a-0").await["data"], made["data"]);
    scene.remove(&["a-0.json"]);
    until("it is pruned", async || (!scene.values().await.contains_key("a-0")).then_some(())).await;
    scene.delete_sync("shop").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_being_deleted_is_neither_taken_over_nor_set_going_again() {
    let Some(scene) = Scene::new("adopt-ending").await else { return };
    install(&scene).await;
    let (part, proxy) = (Part::ArgoCd, FaultProxy::start(&scene.plane));
    let robot = Robot::start(&scene, part, three());
    application(&scene, json!({"prune": true})).await;
    until_held(&scene, part, 3).await;
    push(&scene, &three());
    let _daemon = scene.daemon();
    let applied = adopt(&scene, &proxy, part, &["--apply"]);
    assert_eq!(applied.code, 0, "{}{}", applied.data, applied.words);
    assert!(applied.words.contains("no object is deleted with it"), "{}", applied.words);

    // As Argo CD's own command deletes it: with the finalizer, which nobody obeys while it is skipped.
    let path = path(part, &scene.namespace);
    let finalizers = json!({"metadata": {"finalizers": ["resources-finalizer.argocd.argoproj.io"]}});
    send_request(&scene.admin, "PATCH", &path, finalizers).await.unwrap();
    send_request(&scene.admin, "DELETE", &path, Value::Null).await.unwrap();
    for command in ["--undo", "--apply"] {
        let refused = adopt(&scene, &proxy, part, &[command]);
        let told = format!("{}{}", refused.data, refused.words);
        assert!(refused.code == 1 && told.contains("is being deleted"), "{command}: {told}");
    }
    assert!(scene.syncs().get_opt("shop").await.unwrap().is_some());
    let whole = resource(&scene, part).await;
    assert_eq!(whole["metadata"]["annotations"]["argocd.argoproj.io/skip-reconcile"], "true");
    assert_eq!(scene.values().await.len(), 3);
    drop(robot);
    send_request(&scene.admin, "PATCH", &path, json!({"metadata": {"finalizers": null}})).await.unwrap();
    scene.delete_sync("shop").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn who_has_set_the_old_tool_going_again_is_noticed() {
    let Some(scene) = Scene::new("adopt-again").await else { return };
    install(&scene).await;
    let (part, proxy) = (Part::ArgoCd, FaultProxy::start(&scene.plane));
    application(&scene, json!({"prune": true})).await;
    push(&scene, &three());
    let _daemon = scene.daemon();
    // Somebody applies the Application whenever it is not as his repository says.
    let (admin, at) = (scene.admin.clone(), path(part, &scene.namespace));
    let parent = tokio::spawn(async move {
        let finalizers = json!({"metadata": {"finalizers": ["resources-finalizer.argocd.argoproj.io"]}});
        loop {
            let whole = send_request(&admin, "GET", &at, Value::Null).await.unwrap_or_default();
            if whole["metadata"]["annotations"]["moorline.dev/before-adoption"].is_string() {
                let _ = send_request(&admin, "PATCH", &at, finalizers.clone()).await;
            }
            tokio::time::sleep(std::time::Duration::from_millis(10)).await;
        }
    });
    let applied = adopt(&scene, &proxy, part, &["--apply"]);
    assert!(applied.code == 1 && applied.words.contains("do not delete it"), "{}", applied.words);
    assert!(!applied.words.contains("no object is deleted with it"), "{}", applied.words);
    parent.abort();
    let undone = adopt(&scene, &proxy, part, &["--undo"]);
    assert_eq!(undone.code, 0, "{}", undone.words);
}

#[tokio::test(flavor = "multi_thread")]
async fn versions_that_are_not_read_are_named() {
    let Some(scene) = Scene::new("adopt-versions").await else { return };
    install(&scene).await;
    let (part, proxy) = (Part::Flux, FaultProxy::start(&scene.plane));
    let definition =
        "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/kustomizations.kustomize.toolkit.fluxcd.io";
    let whole = send_request(&scene.admin, "GET", definition, Value::Null).await.unwrap();
    let current = whole["spec"]["versions"].clone();
    let (mut old, mut unserved) = (current[0].clone(), current[0].clone());
    (old["name"], old["storage"], unserved["served"]) = ("v1beta2".into(), false.into(), false.into());
    let serve = async |versions: Value| {
        let patch = json!({"spec": {"versions": versions}});
        send_request(&scene.admin, "PATCH", definition, patch).await.unwrap();
    };
    serve(json!([unserved, old])).await;
    let served = async || {
        let all = send_request(&scene.admin, "GET", "/apis", Value::Null).await.unwrap();
        let mut groups = all["groups"].as_array().unwrap().iter();
        // Between two lists of versions the group may not be served at all.
        let versions = groups
            .find(|it| it["name"] == "kustomize.toolkit.fluxcd.io")
            .and_then(|it| it["versions"].as_array());
        versions.into_iter().flatten().map(|it| it["version"].clone()).collect::<Vec<_>>()
    };
    until("the older version is all there is", async || (served().await == ["v1beta2"]).then_some(())).await;
    let told = adopt(&scene, &proxy, part, &[]).words;
    serve(current).await;
    let expect = "the cluster serves kustomize.toolkit.fluxcd.io as v1beta2, but a Kustomization needs v1";
    assert!(told.contains(expect), "{told}");
    let none = format!("there is no Kustomization shop in the namespace {}", scene.namespace);
    until("the newer one is there again", async || {
        adopt(&scene, &proxy, part, &[]).words.contains(&none).then_some(())
    })
    .await;
}
