//! Encrypted files on a real control plane: what is applied, what a rotated or lost key does, and that nobody sees a value.

mod canary;
mod rights;
mod vault;

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::Secret;
use kube::api::Api;
use moorline_test_support::daemon::until;
use moorline_test_support::rest::send_request;
use moorline_test_support::scene::{QUIET_TIME, Scene, config_map, text};
use moorline_test_support::sops::{AGE_KEYS, AgeKey, encrypt_dotenv, encrypt_json, encrypt_yaml};
use serde_json::{Value, json};

/// Value in encrypted files, and nowhere else.
const PLANTED: &str = "hunter2-planted";

fn secret(name: &str, password: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name}, "stringData": {"password": password}})
}

/// A file with a Secret that is encrypted for a key.
fn encrypted(path: &str, password: &str, key: &AgeKey) -> (String, String) {
    let name = path.split('.').next().unwrap();
    let document = secret(name, password);
    let fields = ["data", "stringData"];
    let file = match path.ends_with(".json") {
        true => encrypt_json(&document, &fields, &key.metadata()),
        false => encrypt_yaml(&document, &fields, &key.metadata()),
    };
    text(path, &file)
}

async fn make_keys(scene: &Scene, keys: &[&AgeKey]) {
    let path = format!("/api/v1/namespaces/{}/secrets", scene.namespace);
    let body = json!({"metadata": {"name": "keys"}, "stringData": entries(keys)});
    send_request(&scene.admin, "POST", &path, body).await.unwrap();
}

/// Entries of a key Secret as Flux names them.
fn entries(keys: &[&AgeKey]) -> Value {
    let lines: String = keys.iter().map(|key| format!("# a key\n{}\n", key.identity)).collect();
    json!({"identity.agekey": lines})
}

async fn change_keys(scene: &Scene, method: &str, body: Value) {
    let path = format!("/api/v1/namespaces/{}/secrets/keys", scene.namespace);
    send_request(&scene.admin, method, &path, body).await.unwrap();
}

fn decrypting() -> Value {
    json!({"decryption": {"sops": {"secretRef": {"name": "keys"}}}, "interval": "1h"})
}

/// The passwords of the Secrets in the scene's namespace.
async fn passwords(scene: &Scene) -> BTreeMap<String, String> {
    let secrets: Api<Secret> = Api::namespaced(scene.admin.clone(), &scene.namespace);
    let all = secrets.list(&Default::default()).await.unwrap().items;
    let password = |secret: Secret| {
        let data = secret.data?;
        let bytes = data.get("password")?;
        Some((secret.metadata.name?, String::from_utf8(bytes.0.clone()).unwrap()))
    };
    all.into_iter().filter_map(password).collect()
}

async fn until_password(scene: &Scene, name: &str, expect: &str) {
    until(&format!("{name} is {expect}"), async || {
        (passwords(scene).await.get(name).map(String::as_str) == Some(expect)).then_some(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn encrypted_files_are_applied_and_a_rotated_key_renders_anew() {
    let Some(scene) = Scene::new("sops").await else { return };
    let [one, two] = &AGE_KEYS;
    make_keys(&scene, &[one]).await;
    let settings = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "settings"}, "data": {"key": PLANTED}});
    let commit = scene.push(&[
        encrypted("login.yaml", "first", one),
        encrypted("more.json", "second", one),
        text("settings.yaml", &encrypt_yaml(&settings, &["data"], &one.metadata())),
        text("plain.json", &config_map("plain", "open")),
    ]);
    let daemon = scene.daemon();
    scene.sync("shop", decrypting()).await;
    scene.until_ready("shop", &commit).await;
    let found = passwords(&scene).await;
    assert_eq!((found["login"].as_str(), found["more"].as_str()), ("first", "second"));
    let values = scene.values().await;
    assert_eq!((values["settings"].as_str(), values["plain"].as_str()), (PLANTED, "open"));
    scene.settle().await;
    scene.assert_calm("nothing has changed").await;

    // A commit that changes no rendered file asks for no key and writes no object.
    let commit = scene.push(&[text("notes.txt", "text")]);
    scene.proxy.take_requests();
    scene.nudge("shop", "a commit").await;
    scene.until_ready("shop", &commit).await;
    let asked = scene.proxy.take_requests();
    let of_objects =
        asked.iter().filter(|one| !one.is_watch() && (one.is_on_object() || one.path.contains("/secrets")));
    assert_eq!(of_objects.count(), 0);

    // A file for a new key is refused until the key is there, and then applied at once.
    let commit = scene.push(&[encrypted("login.yaml", "third", two)]);
    scene.nudge("shop", "a rotation").await;
    scene.until_reason("shop", "DecryptionFailed").await;
    let message = scene.status("shop", "/problems/0/message").await;
    let message = message.as_str().unwrap();
    assert!(
        message.starts_with("login.yaml:") && message.contains("no key here opens this file"),
        "{message}"
    );
    assert!(message.contains(two.recipient), "{message}");
    assert_eq!(passwords(&scene).await["login"], "first");
    change_keys(&scene, "PATCH", json!({"stringData": entries(&[one, two])})).await;
    scene.until_ready("shop", &commit).await;
    until_password(&scene, "login", "third").await;
    drop(daemon);
    scene.delete_sync("shop").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn without_keys_the_revision_of_before_is_held_and_nothing_is_pruned() {
    let Some(scene) = Scene::new("lost").await else { return };
    let [one, two] = &AGE_KEYS;
    make_keys(&scene, &[one]).await;
    let commit = scene.push(&[encrypted("login.yaml", "first", one), encrypted("more.yaml", "second", one)]);
    let _daemon = scene.daemon();
    scene.sync("shop", decrypting()).await;
    scene.until_ready("shop", &commit).await;
    until_password(&scene, "more", "second").await;

    // A Secret without the key, without any key, and no Secret at all; a commit removes an object meanwhile.
    scene.remove(&["more.yaml"]);
    change_keys(&scene, "PATCH", json!({"stringData": entries(&[two])})).await;
    scene.until_reason("shop", "DecryptionFailed").await;
    change_keys(&scene, "PATCH", json!({"data": {"identity.agekey": null}})).await;
    scene.until_reason("shop", "KeysInvalid").await;
    let message = scene.status("shop", "/conditions/0/message").await;
    let expect = "the Secret keys that spec.decryption.sops.secretRef names: it has no key";
    assert!(message.as_str().unwrap().starts_with(expect), "{message}");
    change_keys(&scene, "DELETE", Value::Null).await;
    scene.until_reason("shop", "SecretMissing").await;
    tokio::time::sleep(QUIET_TIME).await;
    assert_eq!(passwords(&scene).await["more"], "second", "nothing is pruned");

    // An edit by hand is still repaired to the previous revision.
    let login = format!("/api/v1/namespaces/{}/secrets/login", scene.namespace);
    send_request(&scene.admin, "PATCH", &login, json!({"stringData": {"password": "by hand"}}))
        .await
        .unwrap();
    until_password(&scene, "login", "first").await;

    make_keys(&scene, &[one]).await;
    until("the newest commit is applied", async || {
        (!passwords(&scene).await.contains_key("more")).then_some(())
    })
    .await;
    scene.delete_sync("shop").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_that_was_changed_is_refused_and_one_that_nobody_reads_is_not() {
    let Some(scene) = Scene::new("forged").await else { return };
    let [one, two] = &AGE_KEYS;
    make_keys(&scene, &[one]).await;
    let (path, file) = encrypted("login.yaml", "first", one);
    let commit = scene.push(&[
        (path.clone(), file.clone()),
        text("kustomization.yaml", "resources: [login.yaml]\n"),
        // For somebody else, and read by no kustomization.
        encrypted("other.yaml", "other", two),
    ]);
    let _daemon = scene.daemon();
    scene.sync("shop", decrypting()).await;
    scene.until_ready("shop", &commit).await;

    // A plain field is changed without sops, so that the MAC does not fit.
    scene.push(&[(path.clone(), file.replace("name: \"login\"", "name: \"stolen\""))]);
    scene.nudge("shop", "forged").await;
    scene.until_reason("shop", "DecryptionFailed").await;
    let message = scene.status("shop", "/problems/0/message").await;
    assert!(message.as_str().unwrap().contains("the MAC does not fit"), "{message}");
    tokio::time::sleep(QUIET_TIME).await;
    let found = passwords(&scene).await;
    assert_eq!((found["login"].as_str(), found.get("stolen")), ("first", None));

    // Without spec.decryption it is refused by name.
    scene.push(&[(path, file)]);
    scene.patch_sync("shop", json!({"spec": {"decryption": null}})).await;
    scene.until_reason("shop", "Encrypted").await;
    let message = scene.status("shop", "/problems/0/message").await;
    assert!(message.as_str().unwrap().contains("spec.decryption.sops.secretRef"), "{message}");
    scene.delete_sync("shop").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn generators_and_patches_of_a_kustomization_read_decrypted_files() {
    let Some(scene) = Scene::new("generated").await else { return };
    let [one, _] = &AGE_KEYS;
    make_keys(&scene, &[one]).await;
    let patch = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "settings"}, "data": {"key": PLANTED}});
    let kustomization = "resources: [settings.json]\npatches: [{path: patch.yaml}]\n\
        generatorOptions: {disableNameSuffixHash: true}\n\
        secretGenerator: [{name: login, envs: [login.env]}]\n";
    let commit = scene.push(&[
        text("kustomization.yaml", kustomization),
        text("settings.json", &config_map("settings", "open")),
        text("patch.yaml", &encrypt_yaml(&patch, &["data"], &one.metadata())),
        text("login.env", &encrypt_dotenv(&[("password", "of a generator")], &one.metadata())),
    ]);
    let _daemon = scene.daemon();
    scene.sync("shop", decrypting()).await;
    scene.until_ready("shop", &commit).await;
    assert_eq!(passwords(&scene).await["login"], "of a generator");
    assert_eq!(scene.values().await["settings"], PLANTED);
    scene.delete_sync("shop").await;
}
