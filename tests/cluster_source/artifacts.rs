//! Syncs whose files come from a registry: they do all that Syncs of a repository do.

use std::time::Duration;

use moorline_test_support::artifact_registry::{
    ArtifactRegistry, CONTENT, RegistryFault, RegistryLogin, gzip, tar,
};
use moorline_test_support::daemon::until;
use moorline_test_support::person::moorline;
use moorline_test_support::rest::send_request;
use moorline_test_support::scene::{QUIET_TIME, Scene, config_map, many};
use serde_json::{Value, json};

/// A registry beside a scene, and the Secret `registry` for it.
async fn registry(scene: &Scene, login: RegistryLogin) -> ArtifactRegistry {
    let root = scene.root.path().join("registry");
    std::fs::create_dir_all(&root).unwrap();
    let registry = ArtifactRegistry::start(&root);
    registry.login(login);
    let secret = match login {
        RegistryLogin::Nobody | RegistryLogin::Anonymous => registry.authority_secret("registry"),
        RegistryLogin::Basic | RegistryLogin::Pair(..) | RegistryLogin::Bearer => {
            registry.docker_secret("registry")
        }
    };
    let secrets = format!("/api/v1/namespaces/{}/secrets", scene.namespace);
    send_request(&scene.admin, "POST", &secrets, secret).await.unwrap();
    registry
}

/// The spec of a Sync of the repository `shop`, polled only when asked.
fn spec(registry: &ArtifactRegistry, reference: &Value) -> Value {
    let oci = json!({"url": registry.url("shop"), "ref": reference, "secretRef": {"name": "registry"}});
    json!({"source": {"oci": oci}, "interval": "1h"})
}

fn files(count: usize, value: &str) -> Vec<(String, String)> {
    many(count, value)
}

#[tokio::test]
async fn an_artifact_is_applied_its_changes_follow_and_what_it_lacks_is_pruned() {
    let Some(scene) = Scene::new("artifact").await else { return };
    let registry = registry(&scene, RegistryLogin::Bearer).await;
    let first = registry.push("shop", "v1", &files(3, "one"));
    let _daemon = scene.daemon();
    scene.sync("shop", spec(&registry, &json!({"tag": "v1"}))).await;
    scene.until_ready("shop", &format!("v1@{first}")).await;
    scene.until_values(&files(3, "one"), "all of it is applied").await;
    assert_eq!(scene.status("shop", "/revision/short").await, format!("v1@{}", &first[..15]));
    scene.edit("a-0", "by hand").await;
    scene.until_values(&files(3, "one"), "the edit is repaired").await;

    let second = registry.push("shop", "v1", &files(2, "two"));
    let plan = |arguments: &[&str]| moorline(&scene, &[&["plan", "--sync", "shop"], arguments].concat());
    let next = plan(&[]);
    assert!(next.code == 2 && next.data.contains("2 to update"), "{} {}", next.data, next.words);
    for revision in [&first, &format!("v1@{first}")] {
        let same = plan(&["--revision", revision]);
        assert_eq!(same.code, 0, "{} {}", same.data, same.words);
    }
    scene.nudge("shop", "second").await;
    scene.until_ready("shop", &second).await;
    scene.until_values(&files(2, "two"), "what is gone is pruned").await;
    // The tag moves back: nothing is fetched, because the files are here.
    registry.requests();
    registry.tag("shop", "v1", &first);
    scene.nudge("shop", "back").await;
    scene.until_ready("shop", &first).await;
    scene.until_values(&files(3, "one"), "as before").await;
    assert_eq!(registry.requests(), ["HEAD shop/manifests/v1"]);
    let history = scene.status("shop", "/history").await;
    let revisions: Vec<_> =
        history.as_array().unwrap().iter().map(|entry| entry["revision"].clone()).collect();
    assert_eq!(revisions, [&first, &second, &first].map(|digest| json!(format!("v1@{digest}"))));
    let subject = history.pointer("/0/subject").cloned().unwrap_or_default();
    assert!(subject.as_str().is_some_and(|text| text.starts_with("claims to be main@sha1:")), "{subject}");
}

#[tokio::test]
async fn an_unchanged_tag_costs_one_head_and_nothing_else() {
    let Some(scene) = Scene::new("artifact-calm").await else { return };
    let registry = registry(&scene, RegistryLogin::Bearer).await;
    let digest = registry.push("shop", "v1", &files(2, "one"));
    let daemon = scene.daemon();
    let mut spec = spec(&registry, &json!({"tag": "v1"}));
    spec["interval"] = json!("5s");
    scene.sync("shop", spec).await;
    scene.until_ready("shop", &digest).await;
    scene.settle().await;
    let reads = |daemon: &moorline_test_support::daemon::Daemon| {
        let page = daemon.get("/metrics").unwrap_or_default();
        let count = page.lines().find(|line| {
            line.starts_with("moorline_git_operation_seconds_count") && line.contains("\"read\"")
        });
        count.map(str::to_owned)
    };
    let before = reads(&daemon);
    assert!(before.is_some(), "the metric is there");
    registry.requests();
    scene.proxy.take_requests();
    tokio::time::sleep(Duration::from_secs(12)).await;
    let asked = registry.requests();
    assert!((2..=4).contains(&asked.len()), "{asked:?}");
    assert!(asked.iter().all(|one| one == "HEAD shop/manifests/v1"), "{asked:?}");
    assert_eq!(reads(&daemon), before, "nothing is read, so nothing is rendered");
    scene.assert_calm("with an unchanged tag").await;
}

#[tokio::test]
async fn what_cannot_be_believed_or_rendered_is_named_and_the_last_good_is_held() {
    let Some(scene) = Scene::new("artifact-held").await else { return };
    let registry = registry(&scene, RegistryLogin::Basic).await;
    let first = registry.push("shop", "v1", &files(2, "one"));
    let daemon = scene.daemon();
    scene.sync("shop", spec(&registry, &json!({"tag": "v1"}))).await;
    scene.until_ready("shop", &first).await;

    let says = async |word: &str, reason: &str, part: &str| {
        scene.nudge("shop", word).await;
        scene.until_reason("shop", reason).await;
        let message = scene.status("shop", "/conditions/0/message").await.to_string();
        assert!(message.contains(part) && !message.contains("planted"), "{message}");
        scene.edit("a-0", "by hand").await;
        scene.until_values(&files(2, "one"), &format!("the last good revision is held: {word}")).await;
    };
    registry.fault(RegistryFault::OtherManifest);
    registry.push("shop", "v1", &files(1, "two"));
    says("lie", "ArtifactDigestDiffers", "nothing of it is used").await;
    let link = registry.layer("shop", "v1", CONTENT, &gzip(&tar(&[("a.yaml", b'2', b"")])));
    scene.nudge("shop", "next").await;
    until("the next revision is seen", async || {
        (scene.status("shop", "/revision/seen").await == format!("v1@{link}")).then_some(())
    })
    .await;
    // From here on the registry serves what it announces; the previous revision would be fine.
    registry.fault(RegistryFault::None);
    says("link", "ArtifactArchiveInvalid", "has the link a.yaml").await;
    registry.push("shop", "v1", &[("a.yaml".to_owned(), "kind: [".to_owned())]);
    scene.nudge("shop", "broken").await;
    until("the broken file is named", async || {
        let message = scene.status("shop", "/conditions/0/message").await.to_string();
        message.contains("a.yaml").then_some(())
    })
    .await;
    scene.until_values(&files(2, "one"), "nothing of it is applied").await;
    // A new daemon holds it as well, although no tag leads to it any more.
    drop(daemon);
    let _daemon = scene.daemon();
    scene.edit("a-0", "by hand").await;
    scene.until_values(&files(2, "one"), "the new daemon repairs it").await;
    let second = registry.push("shop", "v1", &files(2, "two"));
    scene.nudge("shop", "good").await;
    scene.until_ready("shop", &second).await;
}

#[tokio::test]
async fn versions_and_digests_are_followed_and_a_closed_registry_is_named() {
    let Some(scene) = Scene::new("artifact-refs").await else { return };
    let registry = registry(&scene, RegistryLogin::Nobody).await;
    let old = registry.push("shop", "1.9.0", &files(1, "old"));
    let new = registry.push("shop", "1.10.0", &files(1, "new"));
    registry.push("shop", "2.0.0", &files(1, "other"));
    let _daemon = scene.daemon();
    scene.sync("shop", spec(&registry, &json!({"semver": "1.x"}))).await;
    scene.until_ready("shop", &format!("1.10.0@{new}")).await;
    let newer = registry.push("shop", "1.11.0", &files(1, "newer"));
    scene.nudge("shop", "newer").await;
    scene.until_ready("shop", &format!("1.11.0@{newer}")).await;
    let oci = |reference: Value| {
        let mut absent = json!({"tag": null, "semver": null, "digest": null, "filter": null});
        for (name, value) in reference.as_object().unwrap() {
            absent[name] = value.clone();
        }
        json!({"spec": {"source": {"oci": {"ref": absent}}}})
    };
    scene.patch_sync("shop", oci(json!({"semver": "1.x", "filter": "^1[.]9[.]"}))).await;
    scene.until_ready("shop", &format!("1.9.0@{old}")).await;
    scene.patch_sync("shop", oci(json!({"digest": new}))).await;
    scene.until_ready("shop", &new).await;
    scene.until_values(&files(1, "new"), "the digest is applied").await;
    registry.login(RegistryLogin::Basic);
    scene.patch_sync("shop", oci(json!({"tag": "2.0.0"}))).await;
    scene.until_reason("shop", "RepositoryAccessDenied").await;
    scene.edit("a-0", "by hand").await;
    scene.until_values(&files(1, "new"), "it is held meanwhile").await;
}

#[tokio::test]
async fn a_sync_moves_between_a_repository_and_an_artifact_without_a_change() {
    let Some(scene) = Scene::new("artifact-moves").await else { return };
    let registry = registry(&scene, RegistryLogin::Nobody).await;
    let digest = registry.push("shop", "v1", &[("a.json".to_owned(), config_map("a", "one"))]);
    let (_daemon, commit) = scene.applied(&[("a.json".to_owned(), config_map("a", "one"))], json!({})).await;
    let before = scene.versions().await;
    let oci = json!({"url": registry.url("shop"), "ref": {"tag": "v1"}, "secretRef": {"name": "registry"}});
    scene.patch_sync("shop", json!({"spec": {"source": {"git": null, "oci": oci}}})).await;
    scene.until_ready("shop", &digest).await;
    assert_eq!(scene.versions().await["a"], before["a"], "the objects are the same");
    let git = json!({"url": scene.git.url("repository.git")});
    scene.patch_sync("shop", json!({"spec": {"source": {"oci": null, "git": git}}})).await;
    scene.until_ready("shop", &commit).await;
    tokio::time::sleep(QUIET_TIME).await;
    assert_eq!(scene.versions().await["a"], before["a"]);
}
