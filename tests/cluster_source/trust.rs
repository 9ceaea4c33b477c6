//! A Sync that asks for signatures takes up what somebody has signed who is trusted, and holds what it has else.

use std::path::PathBuf;
use std::time::Duration;

use k8s_openapi::api::core::v1::Secret;
use kube::api::{Api, Patch, PatchParams};
use moorline_test_support::daemon::until;
use moorline_test_support::fault_proxy::{Fate, RecordedRequest};
use moorline_test_support::git_server::Work;
use moorline_test_support::person::moorline;
use moorline_test_support::scene::{QUIET_TIME, Scene, config_map};
use moorline_test_support::signers::{key, sign, spec, trust, value};
use serde_json::json;

#[tokio::test]
async fn only_what_is_signed_is_taken_up_and_the_last_good_is_held() {
    let Some(scene) = Scene::new("trust").await else { return };
    let (Some(ann), Some(bob)) = (key(&scene, "ann"), key(&scene, "bob")) else { return };
    let push = |value: &str| scene.push(&[("a.json".to_owned(), config_map("a", value))]);
    trust(&scene, &[&ann]).await;
    let _daemon = scene.daemon();
    sign(&scene, None);
    push("unsigned");
    scene.sync("shop", spec(&scene, "HEAD", serde_json::Value::Null)).await;
    scene.until_reason("shop", "SignatureMissing").await;
    assert_eq!(value(&scene).await, None, "nothing of it is applied");
    sign(&scene, Some(&ann));
    let first = push("first");
    scene.nudge("shop", "first").await;
    scene.until_ready("shop", &first).await;
    assert_eq!(value(&scene).await.as_deref(), Some("first"));

    sign(&scene, Some(&bob));
    let second = push("second");
    scene.nudge("shop", "second").await;
    scene.until_reason("shop", "SignerUnknown").await;
    assert_eq!(scene.status("shop", "/conditions/0/status").await, "False");
    // The good revision is held meanwhile, whatever others do.
    scene.edit("a", "by hand").await;
    until("the edit is repaired", async || (value(&scene).await? == "first").then_some(())).await;
    trust(&scene, &[&ann, &bob]).await;
    scene.until_ready("shop", &second).await;
    assert_eq!(value(&scene).await.as_deref(), Some("second"));
    // Somebody leaves: what is here now was signed by nobody who is trusted any more.
    trust(&scene, &[&ann]).await;
    scene.until_reason("shop", "SignerUnknown").await;
    assert_eq!(value(&scene).await.as_deref(), Some("second"), "nothing is taken away");
    trust(&scene, &[&ann, &bob]).await;
    scene.until_ready("shop", &second).await;
    scene.assert_calm("with a commit that is trusted").await;
}

/// The watch of the Secret begins after it was read: its first list has to tell what was missed in between.
#[tokio::test]
async fn keys_that_change_before_their_watch_begins_count() {
    let Some(scene) = Scene::new("early").await else { return };
    let (Some(ann), Some(bob)) = (key(&scene, "ann"), key(&scene, "bob")) else { return };
    trust(&scene, &[&ann]).await;
    sign(&scene, Some(&bob));
    let commit = scene.push(&[("a.json".to_owned(), config_map("a", "first"))]);
    // The list, or the watch that brings it.
    let begins =
        |asked: &RecordedRequest| asked.path.ends_with("/secrets") && asked.query.contains("signers");
    scene.proxy.first(1, begins, Fate::Delay(Duration::from_secs(3)));
    let _daemon = scene.daemon();
    scene.sync("shop", spec(&scene, "HEAD", serde_json::Value::Null)).await;
    scene.until_reason("shop", "SignerUnknown").await;
    trust(&scene, &[&bob]).await;
    scene.until_ready("shop", &commit).await;
    // The status that was written last is a change of the Sync, for which its keys are read once more.
    let reads = |asked: &RecordedRequest| asked.method == "GET" && asked.path.contains("/secrets/signers");
    until("it is not read again for nothing", async || {
        scene.proxy.take_requests();
        tokio::time::sleep(QUIET_TIME).await;
        (!scene.proxy.take_requests().iter().any(reads)).then_some(())
    })
    .await;

    // Other keys are asked for, and cannot be read yet: by the old ones nothing more is taken up.
    let others = |asked: &RecordedRequest| asked.path.contains("/secrets/others");
    scene.proxy.rule(move |asked| if others(asked) { Fate::Answer(503, None) } else { Fate::Pass });
    let patch = json!({"spec": {"source": {"git": {"verify": {"secretRef": {"name": "others"}}}}}});
    scene.patch_sync("shop", patch).await;
    until("they are asked for", async || scene.proxy.take_requests().iter().any(others).then_some(())).await;
    scene.push(&[("a.json".to_owned(), config_map("a", "second"))]);
    scene.git.requests();
    until("the repository is asked", async || (!scene.git.requests().is_empty()).then_some(())).await;
    tokio::time::sleep(QUIET_TIME).await;
    assert_eq!(value(&scene).await.as_deref(), Some("first"));
}

#[tokio::test]
async fn a_rollback_by_force_is_refused_also_after_a_restart() {
    let Some(scene) = Scene::new("rollback").await else { return };
    let Some(ann) = key(&scene, "ann") else { return };
    let push = |value: &str| scene.push(&[("a.json".to_owned(), config_map("a", value))]);
    trust(&scene, &[&ann]).await;
    sign(&scene, Some(&ann));
    let first = push("first");
    let second = push("second");
    let daemon = scene.daemon();
    scene.sync("shop", spec(&scene, "HEAD", serde_json::Value::Null)).await;
    scene.until_ready("shop", &second).await;
    scene.work.git(&["reset", "-q", "--hard", &first]);
    scene.work.git(&["push", "-q", "--force", "origin", "HEAD"]);
    scene.nudge("shop", "back").await;
    scene.until_reason("shop", "HistoryRewritten").await;
    let message = scene.status("shop", "/conditions/0/message").await;
    assert!(message.as_str().unwrap().contains(&second), "{message}");
    drop(daemon);
    let _daemon = scene.daemon();
    scene.nudge("shop", "again").await;
    tokio::time::sleep(QUIET_TIME).await;
    scene.until_reason("shop", "HistoryRewritten").await;
    assert_eq!(value(&scene).await.as_deref(), Some("second"));
    // The daemon that has only just begun holds it as well.
    scene.edit("a", "by hand").await;
    until("the edit is repaired", async || (value(&scene).await? == "second").then_some(())).await;
    // A person may want it all the same.
    scene.patch_sync("shop", json!({"spec": {"source": {"git": {"ref": {"commit": first}}}}})).await;
    scene.until_ready("shop", &first).await;
    assert_eq!(value(&scene).await.as_deref(), Some("first"));
}

#[tokio::test]
async fn a_signed_tag_is_asked_for() {
    let Some(scene) = Scene::new("tags").await else { return };
    let (Some(ann), Some(bob)) = (key(&scene, "ann"), key(&scene, "bob")) else { return };
    let push = |value: &str| scene.push(&[("a.json".to_owned(), config_map("a", value))]);
    let tag = |name: &str, key: &PathBuf| {
        sign(&scene, Some(key));
        scene.work.git(&["tag", "-s", "-m", name, name]);
        scene.work.git(&["push", "-q", "origin", name]);
    };
    trust(&scene, &[&ann]).await;
    sign(&scene, None);
    scene.work.git(&["config", "user.name", "Ann"]);
    scene.work.git(&["config", "user.email", "ann@example.com"]);
    let first = push("first");
    tag("v1.0.0", &ann);
    let _daemon = scene.daemon();
    scene.sync("shop", spec(&scene, "Tag", json!({"semver": "1.x"}))).await;
    scene.until_ready("shop", &first).await;
    sign(&scene, None);
    push("second");
    tag("v1.1.0", &bob);
    scene.nudge("shop", "second").await;
    scene.until_reason("shop", "SignerUnknown").await;
    assert_eq!(value(&scene).await.as_deref(), Some("first"));
    sign(&scene, None);
    let third = push("third");
    tag("v1.2.0", &ann);
    scene.nudge("shop", "third").await;
    scene.until_ready("shop", &third).await;
    let without = Patch::Merge(json!({"spec": {"source": {"git": {"ref": null}}}}));
    let told = scene.syncs().patch("shop", &PatchParams::default(), &without).await.unwrap_err().to_string();
    assert!(told.contains("set ref.tag or ref.semver"), "{told}");
    // The signature of a commit says nothing of the tags on it.
    let head = Patch::Merge(json!({"spec": {"source": {"git": {"verify": {"mode": "HEAD"}}}}}));
    let told = scene.syncs().patch("shop", &PatchParams::default(), &head).await.unwrap_err().to_string();
    assert!(told.contains("use mode Tag or TagAndHEAD with ref.semver"), "{told}");
}

#[tokio::test]
async fn without_its_keys_nothing_new_is_taken_up() {
    let Some(scene) = Scene::new("keyless").await else { return };
    let Some(ann) = key(&scene, "ann") else { return };
    let push = |value: &str| scene.push(&[("a.json".to_owned(), config_map("a", value))]);
    let _daemon = scene.daemon();
    sign(&scene, None);
    let first = push("first");
    scene.sync("shop", json!({})).await;
    scene.until_ready("shop", &first).await;
    // Signatures are asked for from now on, and the Secret is not there yet.
    let asked = spec(&scene, "HEAD", serde_json::Value::Null);
    scene.patch_sync("shop", json!({"spec": {"source": asked["source"]}})).await;
    scene.until_reason("shop", "SecretMissing").await;
    push("unsigned");
    scene.nudge("shop", "unsigned").await;
    tokio::time::sleep(QUIET_TIME).await;
    assert_eq!(value(&scene).await.as_deref(), Some("first"), "what nobody vouches for is not applied");
    trust(&scene, &[&ann]).await;
    scene.until_reason("shop", "SignatureMissing").await;
    sign(&scene, Some(&ann));
    let signed = push("signed");
    scene.nudge("shop", "signed").await;
    scene.until_ready("shop", &signed).await;
    // Without the keys there is no trust.
    let secrets: Api<Secret> = Api::namespaced(scene.admin.clone(), &scene.namespace);
    secrets.delete("signers", &Default::default()).await.unwrap();
    scene.until_reason("shop", "SecretMissing").await;
    push("after");
    scene.nudge("shop", "after").await;
    tokio::time::sleep(QUIET_TIME).await;
    assert_eq!(value(&scene).await.as_deref(), Some("signed"));
}

#[tokio::test]
async fn what_was_taken_up_counts_also_when_it_was_never_applied_and_the_spec_changes_meanwhile() {
    let Some(scene) = Scene::new("attempted").await else { return };
    let Some(ann) = key(&scene, "ann") else { return };
    let push = |files: &[(String, String)]| scene.push(files);
    trust(&scene, &[&ann]).await;
    sign(&scene, Some(&ann));
    let first = push(&[("a.json".to_owned(), config_map("a", "first"))]);
    let daemon = scene.daemon();
    scene.sync("shop", spec(&scene, "HEAD", serde_json::Value::Null)).await;
    scene.until_ready("shop", &first).await;
    // This one is signed, and part of it cannot be applied.
    let bad = json!({
        "apiVersion": "v1", "kind": "Service", "metadata": {"name": "bad"}, "spec": {"ports": [{"port": 99999}]},
    });
    let second =
        push(&[("a.json".to_owned(), config_map("a", "second")), ("bad.json".to_owned(), bad.to_string())]);
    scene.nudge("shop", "second").await;
    until("it is attempted", async || {
        let attempted = scene.status("shop", "/revision/attempted").await;
        (attempted.as_str()?.ends_with(&second) && value(&scene).await? == "second").then_some(())
    })
    .await;
    scene.work.git(&["reset", "-q", "--hard", &first]);
    scene.work.git(&["push", "-q", "--force", "origin", "HEAD"]);
    scene.nudge("shop", "back").await;
    scene.until_reason("shop", "HistoryRewritten").await;
    drop(daemon);
    scene.patch_sync("shop", json!({"spec": {"interval": "6s"}})).await;
    let _daemon = scene.daemon();
    scene.nudge("shop", "again").await;
    tokio::time::sleep(QUIET_TIME).await;
    scene.until_reason("shop", "HistoryRewritten").await;
    assert_eq!(value(&scene).await.as_deref(), Some("second"));
}

#[tokio::test]
async fn a_daemon_that_begins_with_an_unsigned_head_holds_what_was_signed_before() {
    let Some(scene) = Scene::new("begins").await else { return };
    let (Some(ann), Some(bob)) = (key(&scene, "ann"), key(&scene, "bob")) else { return };
    let push = |value: &str| scene.push(&[("a.json".to_owned(), config_map("a", value))]);
    let is_held = async |expect: &str| {
        scene.edit("a", "by hand").await;
        until("the edit is repaired", async || (value(&scene).await? == expect).then_some(())).await;
    };
    trust(&scene, &[&ann]).await;
    sign(&scene, Some(&ann));
    let first = push("first");
    let daemon = scene.daemon();
    scene.sync("shop", spec(&scene, "HEAD", serde_json::Value::Null)).await;
    scene.until_ready("shop", &first).await;
    drop(daemon);
    sign(&scene, None);
    push("unsigned");
    let _daemon = scene.daemon();
    scene.until_reason("shop", "SignatureMissing").await;
    is_held("first").await;
    let applied = scene.status("shop", "/revision/applied").await;
    assert!(applied.as_str().unwrap().ends_with(&first), "{applied}");
    // Others are trusted as well: what is held is verified again, and held.
    trust(&scene, &[&ann, &bob]).await;
    tokio::time::sleep(QUIET_TIME).await;
    is_held("first").await;
    // The signer is trusted no more: it stays, and nobody holds it.
    trust(&scene, &[&bob]).await;
    tokio::time::sleep(QUIET_TIME).await;
    scene.edit("a", "by hand").await;
    tokio::time::sleep(QUIET_TIME).await;
    assert_eq!(value(&scene).await.as_deref(), Some("by hand"));
    sign(&scene, Some(&bob));
    let last = push("last");
    scene.nudge("shop", "last").await;
    scene.until_ready("shop", &last).await;
}

#[tokio::test]
async fn versions_of_a_range_go_up_only() {
    let Some(scene) = Scene::new("lowered").await else { return };
    let Some(ann) = key(&scene, "ann") else { return };
    let push = |value: &str| scene.push(&[("a.json".to_owned(), config_map("a", value))]);
    scene.work.git(&["config", "user.name", "Ann"]);
    scene.work.git(&["config", "user.email", "ann@example.com"]);
    trust(&scene, &[&ann]).await;
    let release = |name: &str| {
        sign(&scene, Some(&ann));
        let commit = push(name);
        scene.work.git(&["tag", "-s", "-m", name, name]);
        scene.work.git(&["push", "-q", "origin", name]);
        commit
    };
    release("v1.0.0");
    let second = release("v1.1.0");
    let daemon = scene.daemon();
    // The commit and the tag have to be signed.
    scene.sync("shop", spec(&scene, "TagAndHEAD", json!({"semver": "1.x"}))).await;
    scene.until_ready("shop", &second).await;
    scene.work.git(&["push", "-q", "origin", ":refs/tags/v1.1.0"]);
    scene.nudge("shop", "gone").await;
    scene.until_reason("shop", "VersionLowered").await;
    let message = scene.status("shop", "/conditions/0/message").await;
    assert!(message.as_str().unwrap().contains("v1.0.0@"), "{message}");
    assert!(message.as_str().unwrap().contains("v1.1.0@"), "{message}");
    drop(daemon);
    let _daemon = scene.daemon();
    scene.nudge("shop", "again").await;
    tokio::time::sleep(QUIET_TIME).await;
    scene.until_reason("shop", "VersionLowered").await;
    assert_eq!(value(&scene).await.as_deref(), Some("v1.1.0"));
    // Also by the daemon that has only just begun, of whose tag the server knows nothing any more.
    scene.edit("a", "by hand").await;
    until("the edit is repaired", async || (value(&scene).await? == "v1.1.0").then_some(())).await;
    let third = release("v1.2.0");
    scene.nudge("shop", "third").await;
    scene.until_ready("shop", &third).await;
    // The tag is signed, and its commit is not.
    sign(&scene, None);
    push("unsigned");
    scene.work.git(&["config", "gpg.format", "ssh"]);
    scene.work.git(&["tag", "-s", "-m", "v1.3.0", "v1.3.0"]);
    scene.work.git(&["push", "-q", "origin", "v1.3.0"]);
    scene.nudge("shop", "unsigned").await;
    scene.until_reason("shop", "SignatureMissing").await;
    assert_eq!(value(&scene).await.as_deref(), Some("v1.2.0"));
}

#[tokio::test]
async fn syncs_of_one_repository_trust_each_for_itself() {
    let Some(scene) = Scene::new("each").await else { return };
    let Some(ann) = key(&scene, "ann") else { return };
    let push = |value: &str| {
        scene.push(&[
            ("free/b.json".to_owned(), config_map("b", value)),
            ("strict/a.json".to_owned(), config_map("a", value)),
        ])
    };
    trust(&scene, &[&ann]).await;
    sign(&scene, Some(&ann));
    let first = push("first");
    let _daemon = scene.daemon();
    let mut strict = spec(&scene, "HEAD", serde_json::Value::Null);
    strict["path"] = "strict".into();
    scene.sync("strict", strict).await;
    scene.sync("free", json!({"path": "free"})).await;
    scene.until_ready("strict", &first).await;
    scene.until_ready("free", &first).await;
    sign(&scene, None);
    let second = push("second");
    scene.nudge("free", "second").await;
    scene.until_ready("free", &second).await;
    scene.until_reason("strict", "SignatureMissing").await;
    tokio::time::sleep(QUIET_TIME).await;
    assert_eq!(scene.values().await, [("a", "first"), ("b", "second")].map(owned).into());
    // A plan is no way around it.
    let plan = moorline(&scene, &["plan", "--sync", "strict"]);
    assert!(plan.code == 1 && plan.words.contains("is not signed"), "{}{}", plan.data, plan.words);
    let plan = moorline(&scene, &["plan", "--sync", "strict", "--revision", &second]);
    assert!(plan.code == 1 && plan.words.contains("is not signed"), "{}{}", plan.data, plan.words);
    let plan = moorline(&scene, &["plan", "--sync", "strict", "--revision", &first]);
    assert_eq!(plan.code, 0, "{}{}", plan.data, plan.words);
}

fn owned((name, value): (&str, &str)) -> (String, String) {
    (name.to_owned(), value.to_owned())
}

/// A commit of nothing that OpenPGP has signed, recorded once.
fn recorded(path: &str) -> Vec<u8> {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/signatures");
    std::fs::read(format!("{folder}/{path}")).unwrap()
}

#[tokio::test]
async fn an_openpgp_signature_counts_as_well() {
    let Some(scene) = Scene::new("openpgp").await else { return };
    scene.push(&[]);
    let file = scene.root.path().join("recorded");
    std::fs::write(&file, recorded("objects/openpgp-gina.commit")).unwrap();
    let bare = |arguments: &[&str]| Work::git_in(&scene.work.bare, arguments);
    bare(&["hash-object", "-t", "tree", "-w", "/dev/null"]);
    let commit = bare(&["hash-object", "-t", "commit", "-w", &file.display().to_string()]);
    bare(&["update-ref", "refs/heads/main", &commit]);
    let secrets: Api<Secret> = Api::namespaced(scene.admin.clone(), &scene.namespace);
    let keys = async |name: &str| {
        let text = String::from_utf8(recorded(&format!("keys/{name}.asc"))).unwrap();
        let secret = json!({
            "apiVersion": "v1", "kind": "Secret", "metadata": {"name": "signers"}, "stringData": {"team": text},
        });
        secrets.patch("signers", &PatchParams::apply("test").force(), &Patch::Apply(&secret)).await.unwrap();
    };
    keys("hugo").await;
    let _daemon = scene.daemon();
    scene.sync("shop", spec(&scene, "HEAD", serde_json::Value::Null)).await;
    scene.until_reason("shop", "SignerUnknown").await;
    assert_eq!(scene.status("shop", "/revision/seen").await, serde_json::Value::Null);
    // It is trusted from now on; there is nothing in it.
    keys("gina").await;
    scene.until_reason("shop", "NoManifests").await;
    assert!(scene.status("shop", "/revision/seen").await.as_str().unwrap().ends_with(&commit));
}
