//! One kind in three groups, and one group with two schemas: objects, health, metrics and plans go by the group.

use kube::api::{Api, DynamicObject};
use serde_json::{Value, json};

use super::life::{DEFINITIONS, clear};
use moorline_test_support::daemon::{Daemon, until};
use moorline_test_support::fault_proxy::Fate;
use moorline_test_support::person::moorline;
use moorline_test_support::scene::{Scene, config_map};
use moorline_test_support::status::{condition, report, until_healthy, waiting};

/// The groups, each with the versions in which it serves Databases.
const GROUPS: [(&str, &[&str]); 3] =
    [("example.com", &["v1"]), ("apps.example.com", &["v1"]), ("db.example.com", &["v1", "v1alpha1"])];

fn definition((group, versions): (&str, &[&str])) -> (String, String) {
    let text = json!({"type": "string"});
    let status = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    let version = |version: &&str| {
        // The older version of the one group calls its engine otherwise.
        let field = if *version == "v1" { "engine" } else { "dbType" };
        let spec = json!({"type": "object", "properties": {field: text, "version": text},
            "x-kubernetes-preserve-unknown-fields": true});
        let schema = json!({"type": "object", "properties": {"spec": spec, "status": status}});
        json!({"name": version, "served": true, "storage": *version == "v1",
            "subresources": {"status": {}}, "schema": {"openAPIV3Schema": schema}})
    };
    let body = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("databases.{group}")},
        "spec": {"group": group, "scope": "Namespaced",
            "names": {"plural": "databases", "singular": "database", "kind": "Database"},
            "versions": versions.iter().map(version).collect::<Vec<_>>()},
    });
    (format!("definition-{group}.json"), body.to_string())
}

fn database(group: &str, version: &str, name: &str, spec: Value) -> (String, String) {
    let api = format!("{group}/{version}");
    let body = json!({"apiVersion": api, "kind": "Database", "metadata": {"name": name}, "spec": spec});
    (format!("{name}-{group}.json"), body.to_string())
}

fn postgresql(version: &str) -> Value {
    json!({"engine": "postgresql", "version": version})
}

async fn version_of(databases: &Api<DynamicObject>) -> Value {
    databases.get("orders").await.unwrap().data["spec"]["version"].clone()
}

/// Writes the statuses of the groups' operators, one after the other, and checks the Sync's health.
async fn is_judged_by_group(scene: &Scene, databases: &[Api<DynamicObject>], commit: &str) {
    let phase = |phase: &str, message: &str| json!({"phase": phase, "message": message});
    let place = format!("{}/orders", scene.namespace);
    report(&databases[0], "orders", phase("Running", "")).await;
    report(&databases[1], "orders", phase("Failed", "no disk")).await;
    report(&databases[2], "orders", phase("Pending", "soon")).await;
    report(&databases[2], "archive", phase("Running", "")).await;
    let told = until_healthy(scene, "shop", "False", "Degraded").await;
    assert!(
        told.contains(&format!("Database.apps.example.com {place}: its phase is Failed (no disk)")),
        "{told}"
    );
    report(&databases[1], "orders", phase("Running", "")).await;
    let told = until("the other one is waited for", async || {
        let told = condition(scene, "shop", "Healthy").await["message"].as_str().unwrap().to_owned();
        told.contains("db.example.com").then_some(told)
    })
    .await;
    assert!(
        told.contains(&format!("Database.db.example.com {place}: its phase is Pending (soon)")),
        "{told}"
    );
    report(&databases[2], "orders", phase("Running", "")).await;
    scene.until_ready("shop", commit).await;
}

/// A watch that restarts is counted for its group alone.
async fn is_counted_by_group(scene: &Scene, daemon: &Daemon) {
    scene.proxy.rule(|asked| {
        let of_apps = asked.path.starts_with("/apis/apps.example.com/") && asked.is_watch();
        if of_apps { Fate::Answer(410, None) } else { Fate::Pass }
    });
    scene.proxy.cut_watches();
    let restarts = async || {
        let metrics = daemon.get("/metrics")?;
        let counted = metrics.lines().filter(|line| line.starts_with("moorline_watch_relists_total"));
        let counted: Vec<String> = counted
            .filter(|line| line.contains("Database") && !line.contains("broken"))
            .map(str::to_owned)
            .collect();
        (!counted.is_empty()).then_some(counted)
    };
    let counted = until("a watch begins anew", restarts).await;
    scene.proxy.heal();
    let by_group = |line: &String| line.contains("group_kind=\"Database.apps.example.com\"");
    assert!(counted.iter().all(by_group), "{counted:?}");
    scene.settle().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn one_kind_in_three_groups_is_three_kinds() {
    let Some(scene) = Scene::new("namesakes").await else { return };
    let mut files = GROUPS.map(definition).to_vec();
    files.extend(GROUPS.map(|(group, _)| database(group, "v1", "orders", postgresql("14.5"))));
    let archive = json!({"dbType": "mysql", "version": "8.0"});
    files.push(database("db.example.com", "v1alpha1", "archive", archive.clone()));
    files.push(("map.json".to_owned(), config_map("map", "one")));
    let commit = scene.push(&files);
    let mut daemon = scene.daemon();
    waiting(&scene, "shop", json!({})).await;
    let databases = GROUPS.map(|(group, _)| scene.dynamic(group, "v1", "Database"));
    until("all of them are there", async || {
        for api in &databases {
            api.get_opt("orders").await.ok()??;
        }
        databases[2].get_opt("archive").await.ok()?
    })
    .await;
    is_judged_by_group(&scene, &databases, &commit).await;
    let old = scene.dynamic("db.example.com", "v1alpha1", "Database");
    assert_eq!(old.get("archive").await.unwrap().data["spec"], archive);
    scene.settle().await;
    scene.assert_calm("with three namesakes").await;

    is_counted_by_group(&scene, &daemon).await;

    // A person is shown which of them a commit is about.
    daemon.terminate();
    let newer = scene.push(&[database("apps.example.com", "v1", "orders", postgresql("15.1"))]);
    let plan = moorline(&scene, &["plan", "--sync", "shop"]);
    let line = format!("~ Database.apps.example.com {}/orders: changed in Git", scene.namespace);
    assert!(plan.code == 2 && plan.data.contains(&line), "{}{}", plan.data, plan.words);
    assert!(plan.data.contains("1 to update, 7 as in Git."), "{}", plan.data);
    let _daemon = scene.daemon_at(&scene.proxy, "next", &["--leader-election=false"]);
    scene.until_ready("shop", &newer).await;
    let [first, apps, db] = &databases;
    assert_eq!(
        [version_of(first).await, version_of(apps).await, version_of(db).await],
        ["14.5", "15.1", "14.5"]
    );

    // One of them leaves Git, and a person is asked about it alone.
    scene.remove(&["orders-apps.example.com.json"]);
    scene.nudge("shop", "less").await;
    let hash = until("it waits for approval", async || {
        scene.status("shop", "/approval/hash").await.as_str().map(str::to_owned)
    })
    .await;
    assert_eq!(scene.status("shop", "/approval/objects").await, 1);
    scene.patch_sync("shop", json!({"metadata": {"annotations": {"moorline.dev/approve": hash}}})).await;
    until("it is gone", async || apps.get_opt("orders").await.unwrap().is_none().then_some(())).await;
    for other in [first, db] {
        assert!(other.get("orders").await.unwrap().metadata.deletion_timestamp.is_none());
    }
    scene.delete_sync("shop").await;
    for (group, _) in GROUPS {
        clear(&scene, &[&format!("{DEFINITIONS}/databases.{group}")]).await;
    }
}
