//! While a newer commit is known that cannot be applied, no object is deleted to be created again, but by an approval that was
//! given after the refusal.

use kube::api::{Patch, PatchParams};
use serde_json::{Value, json};

use moorline_test_support::daemon::{Daemon, until};
use moorline_test_support::kept::{QUIET, until_revision_held, until_value};
use moorline_test_support::scene::{Scene, text};

/// A ConfigMap that cannot change, and asks to be created again for that.
fn settings(value: &str) -> (String, String) {
    let body = json!({
        "apiVersion": "v1", "kind": "ConfigMap", "immutable": true, "data": {"key": value},
        "metadata": {"name": "settings", "annotations": {"moorline.dev/recreate": "enabled"}},
    });
    text("app/settings.json", &body.to_string())
}

async fn uid(scene: &Scene) -> Option<String> {
    scene.maps().get_opt("settings").await.unwrap()?.metadata.uid
}

async fn approve(scene: &Scene, hash: &Value) {
    let patch = json!({"metadata": {"annotations": {"moorline.dev/approve": hash}}});
    scene.patch_sync("shop", patch).await;
}

/// A commit that cannot be applied comes after one that needs the object to be created again.
async fn is_refused(scene: &Scene, kept: &str) {
    let refused = scene.push(&[text("app/bad.yaml", "a: [")]);
    scene.nudge("shop", "broken").await;
    until_revision_held(scene, "YamlInvalid", &refused, kept).await;
}

/// The approval that is asked for because of the newer commit.
async fn until_asked(scene: &Scene) -> Value {
    until("the replacement asks because of the newer commit", async || {
        let problems = scene.status("shop", "/problems").await.to_string();
        let hash = scene.status("shop", "/approval/hash").await;
        (hash.is_string() && problems.contains("NewerRefused")).then_some(hash)
    })
    .await
}

/// The object is as it was, and no request to delete it was sent.
async fn is_there_still(scene: &Scene, before: &Option<String>) {
    tokio::time::sleep(QUIET).await;
    assert_eq!((uid(scene).await, &*scene.values().await["settings"]), (before.clone(), "one"));
    assert!(scene.proxy.take_requests().iter().all(|one| one.method != "DELETE"));
}

/// The approval of now counts, also for a daemon that starts later.
async fn is_made_anew(scene: &Scene, before: &Option<String>, hash: &Value) {
    approve(scene, hash).await;
    until("the object is made anew", async || uid(scene).await.filter(|now| Some(now) != before.as_ref()))
        .await;
    scene.until_values(&[settings("two")], "as the kept revision has it").await;
    scene.delete_sync("shop").await;
}

#[tokio::test]
async fn what_could_be_made_anew_before_asks_while_a_newer_commit_is_refused() {
    let Some(scene) = Scene::new("kept-anew").await else { return };
    let (daemon, _) = scene.applied(&[settings("one")], json!({"path": "app"})).await;
    let before = uid(&scene).await;
    let spare = async |value: Value| {
        let patch = Patch::Merge(json!({"metadata": {"annotations": {"moorline.dev/prune": value}}}));
        scene.maps().patch("settings", &PatchParams::default(), &patch).await.unwrap();
    };
    spare(json!("disabled")).await;
    let kept = scene.push(&[settings("two")]);
    scene.nudge("shop", "two").await;
    scene.until_reason("shop", "ApplyFailed").await;
    is_refused(&scene, &kept).await;
    scene.proxy.take_requests();
    // Nothing but the newer commit keeps it from being made again now.
    spare(Value::Null).await;
    scene.nudge("shop", "again").await;
    until_asked(&scene).await;
    is_there_still(&scene, &before).await;
    scene.assert_calm("nothing is tried again for nothing").await;
    let _daemon = starts_again(&scene, daemon);
    until_revision_held(&scene, "YamlInvalid", &scene.work.git(&["rev-parse", "HEAD"]), &kept).await;
    is_there_still(&scene, &before).await;
    let hash = until_asked(&scene).await;
    is_made_anew(&scene, &before, &hash).await;
}

fn starts_again(scene: &Scene, daemon: Daemon) -> Daemon {
    drop(daemon);
    scene.daemon()
}

#[tokio::test]
async fn an_approval_of_before_the_refusal_makes_nothing_anew() {
    let Some(scene) = Scene::new("kept-anew-before").await else { return };
    let spec = json!({"path": "app", "prune": {"protect": ["ConfigMap"]}});
    let (_daemon, _) = scene.applied(&[settings("one")], spec).await;
    let before = uid(&scene).await;
    let kept = scene.push(&[settings("two")]);
    scene.nudge("shop", "two").await;
    let first = until("an approval is asked for", async || {
        let hash = scene.status("shop", "/approval/hash").await;
        hash.is_string().then_some(hash)
    })
    .await;
    is_refused(&scene, &kept).await;
    scene.proxy.take_requests();
    approve(&scene, &first).await;
    is_there_still(&scene, &before).await;
    let now = until("another approval is asked for", async || {
        let hash = scene.status("shop", "/approval/hash").await;
        (hash.is_string() && hash != first).then_some(hash)
    })
    .await;
    is_made_anew(&scene, &before, &now).await;
}

async fn variable(scene: &Scene, value: &str) {
    let body = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "values"}, "data": {"VALUE": value}});
    let by = PatchParams::apply("test").force();
    scene.maps().patch("values", &by, &Patch::Apply(&body)).await.unwrap();
}

#[tokio::test]
async fn a_new_value_of_a_kept_revision_makes_nothing_anew() {
    let Some(scene) = Scene::new("kept-anew-value").await else { return };
    variable(&scene, "one").await;
    let from = json!({"substitute": {"from": [{"kind": "ConfigMap", "name": "values"}]}});
    let spec = json!({"path": "app", "render": from});
    let (_daemon, kept) = scene.applied(&[settings("${VALUE}")], spec).await;
    until_value(&scene, "settings", "one").await;
    is_refused(&scene, &kept).await;
    let before = uid(&scene).await;
    scene.proxy.take_requests();
    // The kept revision takes the new value, for which the object has to be another one.
    variable(&scene, "two").await;
    let hash = until_asked(&scene).await;
    is_there_still(&scene, &before).await;
    is_made_anew(&scene, &before, &hash).await;
}
