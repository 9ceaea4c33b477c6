//! Commits and clusters of which only a part can be read: nothing is deleted by halves.

use k8s_openapi::api::core::v1::Secret;
use kube::api::Api;
use serde_json::json;

use super::{deleted, until_asked, until_told};
use moorline_test_support::audit::AuditMark;
use moorline_test_support::daemon::until;
use moorline_test_support::fault_proxy::{Fate, RecordedRequest};
use moorline_test_support::scene::{QUIET_TIME, Scene, many};

#[tokio::test]
async fn a_commit_that_breaks_a_file_deletes_nothing_of_what_it_removes() {
    let Some(scene) = Scene::new("broken").await else { return };
    let commit = scene.push(&many(3, "one"));
    let _daemon = scene.daemon();
    scene.sync("shop", json!({})).await;
    scene.until_ready("shop", &commit).await;
    let (mark, before) = (AuditMark::set(&scene.plane).await, scene.versions().await);
    scene.work.git(&["rm", "-q", "a-2.json"]);
    scene.push(&[("broken.yaml".to_owned(), "kind: [".to_owned())]);
    scene.nudge("shop", "broken").await;
    until("the file is named", async || {
        let status = scene.status("shop", "").await;
        let named = status["problems"].to_string().contains("broken.yaml");
        (named && status["conditions"][0]["status"] == "False").then_some(())
    })
    .await;
    assert_ne!(scene.status("shop", "/conditions/0/reason").await, "Progressing");
    scene.assert_calm("while it is broken").await;
    assert_eq!((deleted(&mark).await, scene.versions().await), (Vec::new(), before));
    let applied = scene.status("shop", "/revision/applied").await;
    assert!(applied.as_str().is_some_and(|it| it.ends_with(&commit)), "{applied}");

    let commit = scene.remove(&["broken.yaml"]);
    scene.nudge("shop", "mended").await;
    scene.until_ready("shop", &commit).await;
    scene.until_values(&many(2, "one"), "what left Git is gone").await;
    assert_eq!(deleted(&mark).await, ["a-2"]);
    scene.delete_sync("shop").await;
}

/// The next daemon knows from the status that there may be Secrets, and cannot see them.
#[tokio::test]
async fn what_cannot_be_listed_is_not_deleted_and_keeps_nothing_else_waiting() {
    let Some(scene) = Scene::new("unlisted").await else { return };
    let secret = |name: &str| {
        let body = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name}});
        (format!("{name}.json"), body.to_string())
    };
    scene.push(&many(3, "one"));
    let commit = scene.push(&[secret("old"), secret("kept")]);
    let daemon = scene.daemon();
    scene.sync("shop", json!({})).await;
    scene.until_ready("shop", &commit).await;
    drop(daemon);
    scene.work.git(&["rm", "-q", "old.json", "a-2.json"]);
    scene.push(&many(2, "two"));

    let mark = AuditMark::set(&scene.plane).await;
    let lists = |asked: &RecordedRequest| asked.method == "GET" && asked.path.ends_with("/secrets");
    scene.proxy.take_requests();
    scene.proxy.rule(move |asked| if lists(asked) { Fate::Answer(500, None) } else { Fate::Pass });
    let _daemon = scene.daemon_at(&scene.proxy, "second", &["--leader-election=false"]);
    scene.until_values(&many(2, "two"), "all others go on").await;
    let secrets: Api<Secret> = Api::namespaced(scene.admin.clone(), &scene.namespace);
    until("it is tried again and again", async || {
        tokio::time::sleep(QUIET_TIME).await;
        (scene.proxy.take_requests().iter().filter(|one| lists(one)).count() > 1).then_some(())
    })
    .await;
    assert!(secrets.get_opt("old").await.unwrap().is_some(), "what nobody can see stays");
    assert_eq!(deleted(&mark).await, ["a-2"]);

    scene.proxy.heal();
    until("what left Git is gone", async || secrets.get_opt("old").await.unwrap().is_none().then_some(()))
        .await;
    assert_eq!(deleted(&mark).await, ["a-2", "old"]);
    assert!(secrets.get_opt("kept").await.unwrap().is_some());
    scene.assert_calm("when all is seen").await;

    // Then the server forgets where the watch was, and does not list again.
    scene.proxy.rule(move |asked| match lists(asked) {
        true if asked.query.contains("&resourceVersion=") => Fate::Answer(410, None),
        true => Fate::Answer(500, None),
        false => Fate::Pass,
    });
    scene.proxy.take_requests();
    scene.proxy.cut_watches();
    let anew = |asked: &RecordedRequest| lists(asked) && asked.query.contains("resourceVersionMatch");
    until_asked(&scene, "it is to be listed anew", anew).await;
    scene.remove(&["kept.json"]);
    scene.nudge("shop", "none").await;
    until_told(&scene, "/kept", "ListIncomplete").await;
    assert_eq!(deleted(&mark).await, ["a-2", "old"]);
    scene.proxy.heal();
    until("it goes as well", async || secrets.get_opt("kept").await.unwrap().is_none().then_some(())).await;
    assert_eq!(deleted(&mark).await, ["a-2", "old", "kept"]);
    scene.delete_sync("shop").await;
}
