//! The keys are read as the ServiceAccount of the Sync: an author of a Sync can decrypt no more than it.

use moorline_test_support::person::moorline;
use moorline_test_support::rest::send_request;
use moorline_test_support::scene::Scene;
use moorline_test_support::sops::AGE_KEYS;
use serde_json::{Value, json};

use super::{decrypting, encrypted, make_keys, until_password};

#[tokio::test(flavor = "multi_thread")]
async fn keys_are_read_as_the_sync_acts_and_rbac_prints_the_right_to() {
    let Some(scene) = Scene::new("tenant-keys").await else { return };
    let place = scene.namespace.clone();
    make_keys(&scene, &[&AGE_KEYS[0]]).await;
    let account = json!({"metadata": {"name": "tenant"}});
    let accounts = format!("/api/v1/namespaces/{place}/serviceaccounts");
    send_request(&scene.admin, "POST", &accounts, account).await.unwrap();
    let commit = scene.push(&[encrypted("login.yaml", "first", &AGE_KEYS[0])]);
    let _daemon = scene.daemon();
    let mut spec = decrypting();
    spec["serviceAccountName"] = json!("tenant");
    scene.sync("shop", spec).await;
    scene.until_reason("shop", "RightsMissing").await;
    let message = scene.status("shop", "/conditions/0/message").await;
    let message = message.as_str().unwrap();
    let expect = "spec.decryption.sops.secretRef names the Secret keys, which may not be read";
    assert!(message.starts_with(expect), "{message}");

    let printed = moorline(&scene, &["rbac", "--sync", "shop"]);
    assert_eq!(printed.code, 0, "{}", printed.words);
    let documents =
        moorline::yaml::read("printed", printed.data.as_bytes(), moorline::yaml::Dialect::Kubectl);
    let documents: Vec<Value> = documents.unwrap().into_iter().map(|document| document.value).collect();
    let rules: Vec<&Value> = documents.iter().filter_map(|it| it["rules"].as_array()).flatten().collect();
    let reads = json!({"apiGroups": [""], "resources": ["secrets"], "resourceNames": ["keys"], "verbs": ["get", "list", "watch"]});
    assert!(rules.contains(&&reads), "{rules:?}");
    for document in &documents {
        let kind = document["kind"].as_str().unwrap().to_lowercase();
        let namespace = document["metadata"]["namespace"].as_str();
        let scope = namespace.map(|namespace| format!("namespaces/{namespace}/")).unwrap_or_default();
        let uri = format!("/apis/rbac.authorization.k8s.io/v1/{scope}{kind}s");
        send_request(&scene.admin, "POST", &uri, document.clone()).await.unwrap();
    }
    scene.until_ready("shop", &commit).await;
    until_password(&scene, "login", "first").await;
    // A person who plans it decrypts only if asked to.
    let plan = moorline(&scene, &["plan", "--sync", "shop"]);
    assert!(plan.code == 1 && plan.words.contains("add --decrypt to plan it"), "{}", plan.words);
    let plan = moorline(&scene, &["plan", "--sync", "shop", "--decrypt", "--show-all"]);
    assert!(plan.code != 1 && !plan.data.contains("first"), "{}{}", plan.data, plan.words);
    scene.delete_sync("shop").await;
}
