//! A change that needs a new object: the deletion of the old one needs what a prune needs.

use kube::api::{Api, DynamicObject, PostParams};
use serde_json::{Value, json};

use moorline_test_support::daemon::until;
use moorline_test_support::scene::Scene;

/// The kind of a database whose cluster name cannot change.
fn database_kind() -> Value {
    let same = json!([{"rule": "self == oldSelf", "message": "Value is immutable"}]);
    let cluster = json!({"type": "string", "x-kubernetes-validations": same});
    let spec = json!({"type": "object", "properties": {"cluster": cluster}});
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "clusters.postgresql.cnpg.io"},
        "spec": {
            "group": "postgresql.cnpg.io", "scope": "Namespaced",
            "names": {"kind": "Cluster", "plural": "clusters", "singular": "cluster"},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema":
                {"type": "object", "properties": {"spec": spec}}}}],
        },
    })
}

/// Objects that need a new one when the word changes; each asks to be recreated.
fn objects(word: &str) -> Vec<(String, String)> {
    let labels = json!({"app": "db"});
    let metadata = |name: &str| json!({"name": name, "annotations": {"moorline.dev/recreate": "enabled"}});
    let stateful = json!({
        "apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": metadata("db"),
        "spec": {
            "replicas": 0, "serviceName": word, "selector": {"matchLabels": labels},
            "persistentVolumeClaimRetentionPolicy": {"whenDeleted": "Delete", "whenScaled": "Retain"},
            "template": {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "a", "image": "a:1"}]}},
        },
    });
    let settings = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata("settings"),
        "immutable": true, "data": {"key": word}});
    let database = json!({"apiVersion": "postgresql.cnpg.io/v1", "kind": "Cluster", "metadata": metadata("pg"),
        "spec": {"cluster": word}});
    let free = json!({"apiVersion": "v1", "kind": "Secret", "metadata": metadata("free"),
        "immutable": true, "stringData": {"key": word}});
    [("stateful", stateful), ("settings", settings), ("database", database), ("free", free)]
        .map(|(name, object)| (format!("{name}.json"), object.to_string()))
        .into()
}

/// The uids of the objects that are protected, and then that of the one that is not.
async fn uids(scene: &Scene) -> [Option<String>; 4] {
    let uid = async |group: &str, version: &str, kind: &str, name: &str| {
        let found = scene.dynamic(group, version, kind).get_opt(name).await.unwrap();
        found.and_then(|it| it.metadata.uid)
    };
    [
        uid("apps", "v1", "StatefulSet", "db").await,
        uid("", "v1", "ConfigMap", "settings").await,
        uid("postgresql.cnpg.io", "v1", "Cluster", "pg").await,
        uid("", "v1", "Secret", "free").await,
    ]
}

/// Waits until three objects wait for approval, and gives it.
async fn until_asked(scene: &Scene) -> String {
    until("three replacements wait for approval", async || {
        let waits = scene.status("shop", "/approval/objects").await == 3;
        let hash = scene.status("shop", "/approval/hash").await;
        hash.as_str().filter(|_| waits).map(ToOwned::to_owned)
    })
    .await
}

#[tokio::test]
async fn a_replacement_asks_where_a_prune_would_ask() {
    let Some(scene) = Scene::new("replacement").await else { return };
    let kinds: Api<DynamicObject> = Api::all_with(
        scene.admin.clone(),
        &kube::api::ApiResource::from_gvk(&kube::core::GroupVersionKind::gvk(
            "apiextensions.k8s.io",
            "v1",
            "CustomResourceDefinition",
        )),
    );
    let kind = serde_json::from_value(database_kind()).unwrap();
    kinds.create(&PostParams::default(), &kind).await.unwrap();
    let spec = json!({"prune": {"protect": ["ConfigMap"]}});
    let (_daemon, _) = scene.applied(&objects("one"), spec).await;
    let before = uids(&scene).await;
    scene.proxy.take_requests();

    let commit = scene.push(&objects("two"));
    scene.nudge("shop", "two").await;
    let hash = until_asked(&scene).await;
    let held = uids(&scene).await;
    assert_eq!(held[..3], before[..3], "nothing that is protected was deleted");
    assert_ne!(held[3], before[3], "what is not protected is made anew at once");
    let deleted: Vec<String> = scene
        .proxy
        .take_requests()
        .into_iter()
        .filter(|one| one.method == "DELETE")
        .map(|one| one.path)
        .collect();
    assert!(deleted.iter().all(|path| path.ends_with("/free")), "{deleted:?}");
    assert_eq!(scene.status("shop", "/conditions/0/status").await, "False");
    let problems = scene.status("shop", "/problems").await.to_string();
    for part in [
        "its kind is protected",
        "its deletion also deletes others",
        "must be deleted and created again; that needs approval",
    ] {
        assert!(problems.contains(part), "{part}: {problems}");
    }
    // Nothing is tried again for nothing.
    scene.assert_calm("replacements wait").await;

    let approval = json!({"metadata": {"annotations": {"moorline.dev/approve": hash}}});
    scene.patch_sync("shop", approval).await;
    scene.until_ready("shop", &commit).await;
    let after = uids(&scene).await;
    for (old, new) in held[..3].iter().zip(&after) {
        assert!(new.is_some() && old != new, "{held:?} {after:?}");
    }
    assert_eq!(after[3], held[3]);
    scene.delete_sync("shop").await;
    kinds.delete("clusters.postgresql.cnpg.io", &kube::api::DeleteParams::default()).await.unwrap();
}

#[tokio::test]
async fn an_approval_counts_for_the_object_that_it_was_given_for() {
    let Some(scene) = Scene::new("replacement-once").await else { return };
    let files = |word: &str| {
        objects(word).into_iter().filter(|(name, _)| name == "settings.json").collect::<Vec<_>>()
    };
    let spec = json!({"prune": {"protect": ["ConfigMap"]}});
    let (_daemon, _) = scene.applied(&files("one"), spec).await;
    let ask = async |word: &str| {
        let commit = scene.push(&files(word));
        scene.nudge("shop", word).await;
        until("an approval is asked for", async || {
            // The status of the commit before may ask for the same still.
            let attempted = scene.status("shop", "/revision/attempted").await;
            let is_of = attempted.as_str().is_some_and(|it| it.ends_with(&commit))
                && scene.status("shop", "/problems/0/reason").await == "Protected";
            let hash = scene.status("shop", "/approval/hash").await;
            hash.as_str().filter(|_| is_of).map(ToOwned::to_owned)
        })
        .await
    };
    let first = ask("two").await;
    let approval = json!({"metadata": {"annotations": {"moorline.dev/approve": first}}});
    scene.patch_sync("shop", approval).await;
    until("it is made anew", async || {
        (scene.values().await.get("settings").map(String::as_str) == Some("two")).then_some(())
    })
    .await;
    let second = ask("three").await;
    assert_ne!(first, second);
    scene.assert_calm("the old approval does not count").await;
    assert_eq!(scene.values().await["settings"], "two");
}
