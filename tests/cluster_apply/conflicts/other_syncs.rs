//! Fields of other Syncs: those of a Sync that left are taken over and released once, those of a
//! Sync that keeps the object stay, and so do those of people beside them.

use std::collections::BTreeMap;

use kube::api::{Patch, PatchParams};
use serde_json::{Value, json};

use moorline_test_support::daemon::until;
use moorline_test_support::scene::{Scene, file, text};

fn map(name: &str, data: Value) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data})
}

/// Applies a ConfigMap without the marks of a Sync.
async fn apply_as(scene: &Scene, manager: &str, name: &str, data: Value) {
    let parameters = PatchParams::apply(manager).force();
    scene.maps().patch(name, &parameters, &Patch::Apply(map(name, data))).await.unwrap();
}

fn manager(scene: &Scene, sync: &str) -> String {
    format!("moorline/{}/{sync}", scene.namespace)
}

/// Managers of the fields of a ConfigMap, sorted.
async fn managers(scene: &Scene, name: &str) -> Vec<String> {
    let entries = scene.maps().get(name).await.unwrap().metadata.managed_fields.unwrap_or_default();
    let mut managers: Vec<String> = entries.into_iter().filter_map(|entry| entry.manager).collect();
    managers.sort();
    managers
}

async fn data(scene: &Scene, name: &str) -> BTreeMap<String, String> {
    scene.maps().get(name).await.unwrap().data.unwrap_or_default()
}

async fn until_held(scene: &Scene, sync: &str, reason: &str) {
    until(&format!("{sync} says {reason}"), async || {
        let problems = scene.status(sync, "/problems").await;
        problems.as_array()?.iter().any(|it| it["reason"] == reason).then_some(())
    })
    .await;
}

#[tokio::test]
async fn fields_of_a_sync_that_left_are_released_once() {
    let Some(scene) = Scene::new("conflict-left").await else { return };
    let files = [file("main/b", "one"), file("other/c", "one")];
    let (_daemon, commit) = scene.applied(&files, json!({"path": "main"})).await;
    scene.sync("other", json!({"path": "other"})).await;
    scene.until_ready("other", &commit).await;
    // One that is served and does not see the object, and one that does not exist.
    for left in ["other", "gone"] {
        let theirs = json!({"key": "theirs", "more": "theirs"});
        apply_as(&scene, &manager(&scene, left), left, theirs).await;
        scene.settle().await;
        let commit = scene.push(&[file(&format!("main/{left}"), "one")]);
        scene.nudge("shop", left).await;
        scene.until_ready("shop", &commit).await;
        assert_eq!(json!(data(&scene, left).await), json!({"key": "one"}));
        assert_eq!(managers(&scene, left).await, [manager(&scene, "shop")]);
        let parameter = format!("fieldManager={}", manager(&scene, left));
        let requests = scene.proxy.take_requests();
        let releases = requests.iter().filter(|one| {
            let query = one.query.replace("%2F", "/");
            one.writes() && one.path.ends_with(&format!("/configmaps/{left}")) && query.contains(&parameter)
        });
        assert_eq!(releases.count(), 1, "{left}");
    }
}

#[tokio::test]
async fn an_object_of_a_sync_that_keeps_it_stays_although_one_that_is_gone_has_it_too() {
    let Some(scene) = Scene::new("conflict-kept").await else { return };
    let files = [file("main/b", "one"), file("other/a", "theirs")];
    let (_daemon, commit) = scene.applied(&files, json!({"path": "main"})).await;
    scene.sync("other", json!({"path": "other"})).await;
    scene.until_ready("other", &commit).await;
    // Its name is the first of the two, and it has the field with the same value.
    let parameters = PatchParams::apply(&manager(&scene, "gone"));
    let same = Patch::Apply(map("a", json!({"key": "theirs"})));
    scene.maps().patch("a", &parameters, &same).await.unwrap();
    scene.settle().await;
    scene.push(&[file("main/a", "one")]);
    scene.nudge("shop", "a").await;
    until_held(&scene, "shop", "OwnedBy").await;
    assert_eq!(data(&scene, "a").await["key"], "theirs");
    assert!(!managers(&scene, "a").await.contains(&manager(&scene, "shop")));
}

#[tokio::test]
async fn fields_of_people_are_not_taken_with_those_of_a_sync_that_is_gone() {
    let Some(scene) = Scene::new("conflict-people").await else { return };
    let (_daemon, _) = scene.applied(&[file("main/b", "one")], json!({"path": "main"})).await;
    for policy in ["Fail", "Yield"] {
        let name = policy.to_lowercase();
        apply_as(&scene, &manager(&scene, "gone"), &name, json!({"key": "theirs"})).await;
        apply_as(&scene, "kubectl", &name, json!({"more": "theirs"})).await;
        let wanted = map(&name, json!({"key": "one", "more": "one"}));
        let commit = scene.push(&[text(&format!("{name}/a.json"), &wanted.to_string())]);
        scene.sync(&name, json!({"path": name, "conflicts": policy})).await;
        let key = match policy {
            "Fail" => {
                until_held(&scene, &name, "Conflict").await;
                "theirs"
            }
            _ => {
                scene.until_ready(&name, &commit).await;
                assert!(!managers(&scene, &name).await.contains(&manager(&scene, "gone")));
                "one"
            }
        };
        let found = data(&scene, &name).await;
        assert_eq!((&*found["key"], &*found["more"]), (key, "theirs"), "{policy}");
    }
}
