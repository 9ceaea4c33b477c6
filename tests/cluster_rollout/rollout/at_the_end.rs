//! Hooks that run when a Sync is deleted with its objects.

use kube::api::{DeleteParams, ListParams, Patch, PatchParams};
use serde_json::{Value, json};

use super::{end, hook, job, map, uid, value};
use moorline_test_support::daemon::until;
use moorline_test_support::scene::{QUIET_TIME, Scene};
use moorline_test_support::status::{clear, report, waiting};

#[tokio::test]
async fn hooks_run_before_the_objects_are_deleted_and_after() {
    let Some(scene) = Scene::beside("hooks-at-the-end").await else { return };
    let jobs = scene.dynamic("batch", "v1", "Job");
    let files = [
        hook("backup", "dump", "before-delete"),
        job("farewell", "tell", json!({"argocd.argoproj.io/hook": "PostDelete"})),
        map("app", "1"),
    ];
    let commit = scene.push(&files);
    let daemon = scene.daemon();
    let spec = json!({"deletionPolicy": "Delete", "timeout": "1m"});
    waiting(&scene, "shop", spec.clone()).await;
    scene.until_ready("shop", &commit).await;
    assert!(jobs.get_opt("backup").await.unwrap().is_none(), "it is not its time");
    assert_eq!(scene.status("shop", "/hooksAtDeletion").await.as_array().map(Vec::len), Some(2));
    let delete = async || {
        scene.syncs().delete("shop", &DeleteParams::default()).await.unwrap();
    };
    delete().await;
    uid(&jobs, "backup", "").await;
    // The daemon that goes on with it after a restart finds the run that there is.
    drop(daemon);
    let _daemon = scene.daemon();
    tokio::time::sleep(QUIET_TIME).await;
    assert_eq!(value(&scene, "app").await.as_deref(), Some("1"), "not before the backup is made");
    end(&jobs, "backup", true).await;
    until("the object is gone", async || value(&scene, "app").await.is_none().then_some(())).await;
    uid(&jobs, "farewell", "").await;
    end(&jobs, "farewell", true).await;
    let gone = async || scene.syncs().get_opt("shop").await.unwrap().is_none().then_some(());
    until("the Sync is gone", gone).await;
    until("its hooks are gone", async || {
        let left = jobs.list(&ListParams::default()).await.unwrap();
        left.items.iter().all(|job| job.metadata.deletion_timestamp.is_some()).then_some(())
    })
    .await;

    // If the backup fails nothing is deleted.
    let commit = scene.push(&[hook("backup", "other", "before-delete")]);
    waiting(&scene, "shop", spec).await;
    scene.until_ready("shop", &commit).await;
    delete().await;
    uid(&jobs, "backup", "").await;
    end(&jobs, "backup", false).await;
    until("the Sync is gone", gone).await;
    assert_eq!(value(&scene, "app").await.as_deref(), Some("1"));
    let events = scene.dynamic("events.k8s.io", "v1", "Event");
    let events = events.list(&ListParams::default()).await.unwrap();
    let notes: Vec<_> = events.items.iter().filter_map(|event| event.data["note"].as_str()).collect();
    assert!(notes.iter().any(|note| note.contains("HookFailed")), "{notes:?}");
}

#[tokio::test]
async fn each_runs_once_however_often_the_deletion_is_taken_up_again() {
    let Some(scene) = Scene::beside("hooks-once-at-the-end").await else { return };
    let jobs = scene.dynamic("batch", "v1", "Job");
    let files =
        [hook("backup", "dump", "before-delete"), hook("farewell", "tell", "after-delete"), map("app", "1")];
    let commit = scene.push(&files);
    let daemon = scene.daemon();
    waiting(&scene, "shop", json!({"deletionPolicy": "Delete", "timeout": "1m"})).await;
    scene.until_ready("shop", &commit).await;
    // Somebody who takes their time with the end of the object.
    let held = |finalizers: Value| Patch::Merge(json!({"metadata": {"finalizers": finalizers}}));
    let params = PatchParams::default();
    scene.maps().patch("app", &params, &held(json!(["moorline.test/held"]))).await.unwrap();
    scene.syncs().delete("shop", &DeleteParams::default()).await.unwrap();
    let saved = uid(&jobs, "backup", "").await;
    end(&jobs, "backup", true).await;
    let is_dying = async || scene.maps().get("app").await.unwrap().metadata.deletion_timestamp;
    until("the object is on its way", is_dying).await;

    drop(daemon);
    let daemon = scene.daemon();
    tokio::time::sleep(QUIET_TIME).await;
    assert_eq!(uid(&jobs, "backup", "").await, saved, "what it would save now is half gone");
    assert!(jobs.get_opt("farewell").await.unwrap().is_none(), "not before all is gone");
    scene.maps().patch("app", &params, &held(json!(null))).await.unwrap();
    let told = uid(&jobs, "farewell", "").await;

    drop(daemon);
    let _daemon = scene.daemon();
    tokio::time::sleep(QUIET_TIME).await;
    assert_eq!(uid(&jobs, "farewell", "").await, told, "it is still on its way");
    assert_eq!(uid(&jobs, "backup", "").await, saved, "there is nothing left to be saved");
    end(&jobs, "farewell", true).await;
    let gone = async || scene.syncs().get_opt("shop").await.unwrap().is_none().then_some(());
    until("the Sync is gone", gone).await;
    let left = jobs.list(&ListParams::default()).await.unwrap().items;
    assert!(left.iter().all(|job| job.metadata.deletion_timestamp.is_some()), "its hooks go with it");
}

#[tokio::test]
async fn a_backup_that_was_cleared_away_is_not_made_again_of_what_is_half_gone() {
    let Some(scene) = Scene::beside("backup-cleared-away").await else { return };
    let jobs = scene.dynamic("batch", "v1", "Job");
    let commit = scene.push(&[hook("backup", "dump", "before-delete"), map("app", "1"), map("held", "1")]);
    let daemon = scene.daemon();
    waiting(&scene, "shop", json!({"deletionPolicy": "Delete", "timeout": "1m"})).await;
    scene.until_ready("shop", &commit).await;
    let held = |finalizers: Value| Patch::Merge(json!({"metadata": {"finalizers": finalizers}}));
    let params = PatchParams::default();
    scene.maps().patch("held", &params, &held(json!(["moorline.test/held"]))).await.unwrap();
    scene.syncs().delete("shop", &DeleteParams::default()).await.unwrap();
    uid(&jobs, "backup", "").await;
    end(&jobs, "backup", true).await;
    until("the other object is gone", async || value(&scene, "app").await.is_none().then_some(())).await;
    // As by its TTL.
    clear(&jobs, "backup").await;
    drop(daemon);
    let _daemon = scene.daemon();
    tokio::time::sleep(QUIET_TIME).await;
    assert!(jobs.get_opt("backup").await.unwrap().is_none(), "it has saved all of it");
    scene.maps().patch("held", &params, &held(json!(null))).await.unwrap();
    let gone = async || scene.syncs().get_opt("shop").await.unwrap().is_none().then_some(());
    until("the Sync is gone", gone).await;
    assert!(jobs.get_opt("backup").await.unwrap().is_none());
}

#[tokio::test]
async fn a_hook_of_another_time_is_no_backup_and_one_that_rests_has_not_run() {
    let Some(scene) = Scene::beside("hook-of-two-times").await else { return };
    let jobs = scene.dynamic("batch", "v1", "Job");
    let commit = scene.push(&[hook("backup", "dump", "before,before-delete"), map("app", "1")]);
    let _daemon = scene.daemon();
    waiting(&scene, "shop", json!({"deletionPolicy": "Delete", "timeout": "1m"})).await;
    let first = uid(&jobs, "backup", "").await;
    end(&jobs, "backup", true).await;
    scene.until_ready("shop", &commit).await;
    scene.syncs().delete("shop", &DeleteParams::default()).await.unwrap();
    uid(&jobs, "backup", &first).await;
    let rests = json!({"conditions": [{"type": "Suspended", "status": "True", "reason": "Told"}]});
    report(&jobs, "backup", rests).await;
    tokio::time::sleep(QUIET_TIME).await;
    assert_eq!(value(&scene, "app").await.as_deref(), Some("1"), "nothing is saved yet");
    end(&jobs, "backup", true).await;
    until("the object is gone", async || value(&scene, "app").await.is_none().then_some(())).await;
}
