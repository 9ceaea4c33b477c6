//! Content of mounts: charts, values, encrypted files, the path of the Sync itself; and whose login reads it.

use moorline_test_support::artifact_registry::RegistryLogin;
use moorline_test_support::rest::send_request;
use moorline_test_support::scene::{Scene, text};
use moorline_test_support::sops::{AGE_KEYS, encrypt_yaml};
use serde_json::{Value, json};

use super::{Elsewhere, Mounted, kustomization, map, message, spec, values};
use crate::helm::daemon::daemon;

const TEMPLATE: &str =
    "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: {key: {{ .Values.value | quote }}}\n";

fn chart(path: &str) -> [(String, String); 2] {
    let about = "apiVersion: v2\nname: shop\nversion: 1.0.0\n";
    [text(&format!("{path}/Chart.yaml"), about), text(&format!("{path}/templates/a.yaml"), TEMPLATE)]
}

/// The spec of a Sync with this path, mounts and values files.
fn with_values(scene: &Scene, path: &str, mounts: &[Value], file: &str) -> Value {
    let mut spec = spec(scene, mounts, "1h");
    spec["path"] = json!(path);
    spec["render"] = json!({"helm": {"valuesFiles": [file]}});
    spec
}

#[tokio::test(flavor = "multi_thread")]
async fn a_chart_and_its_values_may_come_from_different_sources() {
    let Some(scene) = Scene::new("mounts-helm").await else { return };
    let Some(_daemon) = daemon(&scene) else { return };
    let elsewhere = Elsewhere::new(&scene).await;
    let [about, template] = chart("chart");
    let other =
        elsewhere.push(&[about.clone(), template.clone(), text("values/prod.yaml", "value: theirs\n")]);
    let own = scene.push(&[about, template, text("values/prod.yaml", "value: ours\n")]);
    let mounts = [elsewhere.repository("vendor/base")];
    scene.sync("shop", with_values(&scene, "./chart", &mounts, "../vendor/base/values/prod.yaml")).await;
    scene.until_ready("shop", &format!("main@{own}+vendor/base/:main@{other}")).await;
    scene.until_values(&values(&[("a", "theirs")]), "the chart is ours, the values are of the mount").await;
    let elsewhere_now = elsewhere.push(&[text("values/prod.yaml", "value: newer\n")]);
    scene.nudge("shop", "values").await;
    scene.until_ready("shop", &elsewhere_now).await;
    scene.until_values(&values(&[("a", "newer")]), "a change of the values alone is applied").await;
    let there = with_values(&scene, "./vendor/base/chart", &mounts, "../../../values/prod.yaml");
    scene.patch_sync("shop", json!({"spec": there})).await;
    scene.until_values(&values(&[("a", "ours")]), "the chart is of the mount, the values are ours").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_encrypted_file_in_a_mount_is_decrypted() {
    let Some(scene) = Scene::new("mounts-sops").await else { return };
    let elsewhere = Elsewhere::new(&scene).await;
    let key = &AGE_KEYS[0];
    let secrets = format!("/api/v1/namespaces/{}/secrets", scene.namespace);
    let keys = json!({"metadata": {"name": "keys"}, "stringData": {"identity.agekey": key.identity}});
    send_request(&scene.admin, "POST", &secrets, keys).await.unwrap();
    let document: Value =
        serde_json::from_str(&moorline_test_support::scene::config_map("a", "one")).unwrap();
    elsewhere.push(&[
        kustomization("app", &["a.yaml"]),
        text("app/a.yaml", &encrypt_yaml(&document, &["data"], &key.metadata())),
    ]);
    scene.push(&[kustomization("clusters/prod", &["../../vendor/base/app"])]);
    let _daemon = scene.daemon();
    let mut spec = spec(&scene, &[elsewhere.repository("vendor/base")], "1h");
    spec["decryption"] = json!({"sops": {"secretRef": {"name": "keys"}}});
    scene.sync("shop", spec).await;
    scene.until_values(&values(&[("a", "one")]), "it is decrypted").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_path_of_a_sync_may_be_a_mount_or_hold_one() {
    let Some(scene) = Scene::new("mounts-path").await else { return };
    let elsewhere = Elsewhere::new(&scene).await;
    elsewhere.push(&[map("app/a.json", "a", "one"), map("b.json", "b", "one")]);
    let own = scene.push(&[map("apps/c.json", "c", "one"), text("readme.txt", "nothing")]);
    let _daemon = scene.daemon();
    let mounts = [elsewhere.repository("apps/base")];
    let mut whole = spec(&scene, &mounts, "1h");
    whole["path"] = json!("./apps");
    scene.sync("shop", whole).await;
    scene.until_values(&values(&[("a", "one"), ("b", "one"), ("c", "one")]), "files of both are read").await;
    scene
        .patch_sync("shop", json!({"spec": {"path": "./apps/base/app", "prune": {"budget": {"count": 9}}}}))
        .await;
    scene.until_values(&values(&[("a", "one")]), "the path lies in the mount").await;
    scene.patch_sync("shop", json!({"spec": {"path": "./apps/base/gone"}})).await;
    scene.until_reason("shop", "PathNotFound").await;
    scene.until_values(&values(&[("a", "one")]), "nothing is pruned").await;
    // A mount that the Sync does not need any more goes, and with it what was applied of it.
    scene.patch_sync("shop", json!({"spec": {"path": "./apps", "source": {"mounts": null}}})).await;
    scene.until_values(&values(&[("c", "one")]), "the mount is gone").await;
    scene.until_ready("shop", &format!("main@{own}")).await;
    assert_eq!(scene.status("shop", "/revision/mounts").await, Value::Null);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_mount_is_read_with_its_own_login_only() {
    let Some(it) = Mounted::new("mounts-login", "1h").await else { return };
    let secrets = format!("/api/v1/namespaces/{}/secrets", it.scene.namespace);
    let other = it.elsewhere.registry.authority_secret("authority");
    send_request(&it.scene.admin, "POST", &secrets, other).await.unwrap();
    // The artifact is on disk, and another Sync has a login for it.
    it.elsewhere.registry.login(RegistryLogin::Bearer);
    let mut mount = it.elsewhere.artifact("vendor/extra");
    mount["oci"]["secretRef"]["name"] = json!("authority");
    let mut spec = spec(&it.scene, &[mount], "1h");
    spec["path"] = json!("./vendor/extra");
    spec["targetNamespace"] = json!("elsewhere");
    it.scene.sync("thief", spec).await;
    it.scene.until_reason("thief", "RepositoryAccessDenied").await;
    let told = it.scene.status("thief", "/conditions/0/message").await.to_string();
    assert!(told.contains("spec.source.mounts[0] (vendor/extra): "), "{told}");
    // A Secret that is missing is named with the mount, and the previous revision is held.
    let mut mounts = [it.elsewhere.repository("vendor/base"), it.elsewhere.artifact("vendor/extra")];
    mounts[1]["oci"]["secretRef"]["name"] = json!("gone");
    it.scene.patch_sync("shop", json!({"spec": {"source": {"mounts": mounts}}})).await;
    it.scene.until_reason("shop", "SecretMissing").await;
    let told = message(&it.scene).await;
    assert!(told.starts_with("spec.source.mounts[1] (vendor/extra): the Secret gone"), "{told}");
    it.scene.edit("a", "by hand").await;
    it.has(["one", "one", "one"], "the previous revision is held").await;
}
