//! Objects that hold data, and objects that others have made: neither are deleted with a Sync or with a definition.

use serde_json::{Value, json};

use super::kubelet::Kubelet;
use super::life::{DEFINITIONS, clear, files, remove};
use moorline_test_support::audit::AuditMark;
use moorline_test_support::credentials::MOORLINE;
use moorline_test_support::daemon::until;
use moorline_test_support::rest::send_request;
use moorline_test_support::scene::{Scene, config_map};

/// The names of all that the daemon asked to be deleted since the mark.
async fn deleted(mark: &AuditMark) -> Vec<String> {
    let requests = mark.requests().await.by_user(MOORLINE).filter(|it| it.verb == "delete");
    requests.as_slice().iter().map(|it| it.name.clone()).collect()
}

async fn is_there(scene: &Scene, uri: &str) {
    let live = send_request(&scene.admin, "GET", uri, Value::Null)
        .await
        .unwrap_or_else(|error| panic!("{uri}: {error}"));
    assert!(live["metadata"].get("deletionTimestamp").is_none(), "{uri}");
}

#[tokio::test]
async fn a_sync_that_is_deleted_with_its_objects_leaves_a_database() {
    let Some(scene) = Scene::new("orphaned").await else { return };
    let commit = scene.push(&[files("db-postgres"), files("memcached")].concat());
    let _daemon = scene.daemon();
    scene.sync("shop", json!({"deletionPolicy": "Delete"})).await;
    scene.until_ready("shop", &commit).await;
    let mark = AuditMark::set(&scene.plane).await;
    scene.delete_sync("shop").await;

    let orders = "/apis/db.example.com/v1/namespaces/db-system/postgresclusters/orders";
    let (databases, caches) = (
        format!("{DEFINITIONS}/postgresclusters.db.example.com"),
        format!("{DEFINITIONS}/memcacheds.cache.example.com"),
    );
    let kept =
        [orders, &databases, &caches, "/api/v1/namespaces/db-system", "/api/v1/namespaces/memcached-system"];
    for uri in kept {
        is_there(&scene, uri).await;
    }
    let deleted = deleted(&mark).await;
    assert_eq!(deleted.first().map(String::as_str), Some("memcached-sample"), "{deleted:?}");
    assert!(!deleted.contains(&"orders".to_owned()), "{deleted:?}");
    let uri = format!("/apis/events.k8s.io/v1/namespaces/{}/events", scene.namespace);
    let note = until("it is told what stays", async || {
        let events = send_request(&scene.admin, "GET", &uri, Value::Null).await.ok()?;
        let orphaned = events["items"].as_array()?.iter().find(|it| it["reason"] == "ObjectsOrphaned")?;
        orphaned["note"].as_str().map(str::to_owned)
    })
    .await;
    assert!(note.starts_with("5 objects were not deleted: "), "{note}");
    assert!(note.contains("PostgresCluster.db.example.com db-system/orders (Protected)"), "{note}");
    clear(&scene, &kept).await;
}

#[tokio::test]
async fn a_definition_stays_while_others_have_resources_of_its_kind() {
    let Some(scene) = Scene::new("foreign").await else { return };
    let _kubelet = Kubelet::start(&scene.admin);
    let mut all = files("redis");
    all.push(("redis/stays.json".to_owned(), config_map("stays", "x")));
    let commit = scene.push(&all);
    let _daemon = scene.daemon();
    scene.sync("shop", json!({})).await;
    scene.until_ready("shop", &commit).await;
    let collection =
        format!("/apis/redis.redis.opstreelabs.in/v1beta2/namespaces/{}/redisclusters", scene.namespace);
    let theirs = json!({"apiVersion": "redis.redis.opstreelabs.in/v1beta2", "kind": "RedisCluster",
        "metadata": {"name": "theirs"}, "spec": {"clusterSize": 3, "kubernetesConfig": {"image": "example.com/redis:7.0"}}});
    send_request(&scene.admin, "POST", &collection, theirs).await.unwrap();

    let mark = AuditMark::set(&scene.plane).await;
    remove(&scene, ["redis"].into_iter());
    scene.nudge("shop", "less").await;
    let hash = until("an approval is asked for", async || {
        scene.status("shop", "/approval/hash").await.as_str().map(str::to_owned)
    })
    .await;
    scene.patch_sync("shop", json!({"metadata": {"annotations": {"moorline.dev/approve": hash}}})).await;
    let name = "redisclusters.redis.redis.opstreelabs.in";
    let message = until("the definition is held", async || {
        let problems = scene.status("shop", "/problems").await;
        let held = |it: &&Value| {
            it["reason"] == "NotEmpty" && it["object"].as_str().unwrap_or_default().ends_with(name)
        };
        problems.as_array()?.iter().find(held)?["message"].as_str().map(str::to_owned)
    })
    .await;
    let shown = format!("RedisCluster.redis.redis.opstreelabs.in {}/theirs", scene.namespace);
    assert_eq!(message, format!("no longer in Git, but {shown} would be deleted with it"));
    is_there(&scene, &format!("{collection}/theirs")).await;
    is_there(&scene, &format!("{DEFINITIONS}/{name}")).await;
    let deleted = deleted(&mark).await;
    assert_eq!(deleted.first().map(String::as_str), Some("redis-cluster"), "{deleted:?}");
    assert!(!deleted.contains(&name.to_owned()), "{deleted:?}");
    scene.delete_sync("shop").await;
    let namespace = "/api/v1/namespaces/redis-operator";
    clear(&scene, &[&format!("{collection}/theirs"), &format!("{DEFINITIONS}/{name}"), namespace]).await;
}
