//! The end of a Sync: its deletion is the consent, and where it does not delete, nothing keeps it.

use kube::api::DeleteParams;
use serde_json::json;

use super::{deleted, until_told};
use moorline_test_support::audit::AuditMark;
use moorline_test_support::daemon::until;
use moorline_test_support::person::moorline;
use moorline_test_support::scene::{Scene, many};

#[tokio::test]
async fn whoever_deletes_a_sync_with_its_objects_need_not_approve_each() {
    let Some(scene) = Scene::new("consent").await else { return };
    let commit = scene.push(&many(16, "one"));
    let _daemon = scene.daemon();
    // The budget is about what leaves Git unseen, and not about what a person deletes.
    let spec = json!({"deletionPolicy": "Delete", "prune": {"budget": {"count": 1, "percent": 1}}});
    scene.sync("shop", spec).await;
    scene.until_ready("shop", &commit).await;
    let mark = AuditMark::set(&scene.plane).await;
    scene.delete_sync("shop").await;
    scene.until_values(&[], "all are gone").await;
    let mut names = deleted(&mark).await;
    names.sort();
    let mut expect: Vec<String> = (0..16).map(|at| format!("a-{at}")).collect();
    expect.sort();
    assert_eq!(names, expect, "each is deleted once");
}

#[tokio::test]
async fn a_sync_has_a_finalizer_only_while_it_deletes() {
    let Some(scene) = Scene::new("finalizer").await else { return };
    let commit = scene.push(&many(3, "one"));
    let daemon = scene.daemon();
    scene.sync("shop", json!({"deletionPolicy": "Delete"})).await;
    scene.until_ready("shop", &commit).await;
    let finalizers =
        async || scene.syncs().get("shop").await.unwrap().metadata.finalizers.unwrap_or_default();
    assert_eq!(finalizers().await, ["moorline.dev/delete"]);
    scene.patch_sync("shop", json!({"spec": {"deletionPolicy": "Orphan"}})).await;
    until("the finalizer is gone", async || finalizers().await.is_empty().then_some(())).await;
    scene.until_ready("shop", &commit).await;
    scene.assert_calm("without a finalizer").await;

    // Nobody is there who could let it go, and nobody is needed.
    drop(daemon);
    let (mark, before) = (AuditMark::set(&scene.plane).await, scene.versions().await);
    scene.syncs().delete("shop", &DeleteParams::default()).await.unwrap();
    assert!(scene.syncs().get_opt("shop").await.unwrap().is_none(), "it is gone at once");
    assert_eq!((deleted(&mark).await, scene.versions().await), (Vec::new(), before));
}

#[tokio::test]
async fn a_stateful_set_that_takes_its_claims_with_it_waits_for_a_person() {
    let Some(scene) = Scene::new("claims-with-it").await else { return };
    let set = |name: &str, when: &str| {
        let labels = json!({"app": name});
        let body = json!({
            "apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": {"name": name},
            "spec": {
                "replicas": 0, "selector": {"matchLabels": labels}, "serviceName": name,
                "persistentVolumeClaimRetentionPolicy": {"whenDeleted": when},
                "template": {
                    "metadata": {"labels": labels},
                    "spec": {"containers": [{"name": "main", "image": "example.com/main:1"}]},
                },
            },
        });
        (format!("{name}.json"), body.to_string())
    };
    let files = [many(6, "one"), vec![set("keeps", "Retain"), set("takes", "Delete")]].concat();
    let (_daemon, _) = scene.applied(&files, json!({"deletionPolicy": "Delete"})).await;
    let sets = scene.dynamic("apps", "v1", "StatefulSet");
    scene.remove(&["keeps.json", "takes.json"]);
    let plan = moorline(&scene, &["plan", "--sync", "shop"]);
    assert!(plan.data.contains("takes: no longer in Git; its deletion also deletes others"), "{}", plan.data);
    scene.nudge("shop", "gone").await;
    until_told(&scene, "/takes", "Protected").await;
    until("the other is gone", async || sets.get_opt("keeps").await.unwrap().is_none().then_some(())).await;
    scene.settle().await;
    scene.assert_calm("while it waits for a person").await;
    assert!(sets.get("takes").await.unwrap().metadata.deletion_timestamp.is_none());
    // With the Sync it stays, and is named, as a claim is.
    scene.delete_sync("shop").await;
    assert!(sets.get("takes").await.unwrap().metadata.deletion_timestamp.is_none());
    assert!(scene.values().await.is_empty());
}
