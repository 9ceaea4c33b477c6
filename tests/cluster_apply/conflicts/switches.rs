//! Annotation switches on an object, in Git and live.

use serde_json::json;

use super::ground::{Ground, MERGE, config_map, expect, moment};

fn annotated(name: &str, key: &str, value: &str, data: &str) -> serde_json::Value {
    let mut map = config_map(name, json!({"key": data}));
    map["metadata"]["annotations"] = json!({key: value});
    map
}

#[tokio::test]
async fn what_is_applied_once_is_left_alone_then() {
    let Some(ground) = Ground::new("once").await else { return };
    let once = |data| annotated("a", "moorline.dev/apply", "once", data);
    let off = |data| annotated("off", "moorline.dev/reconcile", "disabled", data);
    let first = ground.push(&[once("one"), off("one"), config_map("b", json!({"key": "one"}))]);
    let mark = ground.mark().await;
    ground.sync(json!({})).await;
    ground.ready(&first, "Applied").await;
    let path = format!("{}/a", ground.maps());
    ground.patch("kubectl-edit", &path, MERGE, json!({"data": {"key": "by hand"}})).await;
    let second = ground.push(&[once("two"), off("two"), config_map("b", json!({"key": "two"}))]);
    ground.nudge("second").await;
    ground.ready(&second, "Applied").await;
    assert_eq!(ground.get(&path).await.expect("it is there")["data"]["key"], "by hand");
    assert!(ground.get(&format!("{}/off", ground.maps())).await.is_none(), "it is never applied");
    assert_eq!(ground.tally(&mark).await, expect([("patch configmaps", 3)]));
    ground.delete(&path).await;
    ground.until("it is created anew", &path, |live| live["data"]["key"] == "two").await;
}

#[tokio::test]
async fn live_annotations_keep_an_object_from_change_and_from_deletion() {
    let Some(ground) = Ground::new("live").await else { return };
    let map = |name, data| config_map(name, json!({"key": data}));
    let first = ground.push(&[map("frozen", "one"), map("kept", "one"), map("other", "one")]);
    ground.sync(json!({})).await;
    ground.ready(&first, "Applied").await;
    let path = |name: &str| format!("{}/{name}", ground.maps());
    let annotate = async |name: &str, key: &str, value: serde_json::Value| {
        let change = json!({"metadata": {"annotations": {key: value}}});
        ground.patch("kubectl-annotate", &path(name), MERGE, change).await;
    };
    annotate("frozen", "moorline.dev/reconcile", json!("disabled")).await;
    annotate("kept", "moorline.dev/prune", json!("disabled")).await;
    moment(500).await;
    let mark = ground.mark().await;
    ground.work.git(&["rm", "-q", "ConfigMap-kept.json"]);
    let second = ground.push(&[map("frozen", "two"), map("other", "two")]);
    ground.nudge("second").await;
    let status = ground.ready(&second, "Applied").await;
    assert_eq!(status["objects"]["held"], 2, "{status}");
    ground.patch("kubectl-edit", &path("frozen"), MERGE, json!({"data": {"key": "by hand"}})).await;
    moment(1000).await;
    assert_eq!(ground.get(&path("frozen")).await.expect("it is there")["data"]["key"], "by hand");
    assert_eq!(ground.tally(&mark).await, expect([("patch configmaps", 1)]), "only the third object");
    annotate("frozen", "moorline.dev/reconcile", json!(null)).await;
    ground.until("it is as in Git again", &path("frozen"), |live| live["data"]["key"] == "two").await;
    annotate("kept", "moorline.dev/prune", json!(null)).await;
    moorline_test_support::daemon::until("it is pruned", async || {
        ground.get(&path("kept")).await.is_none().then_some(())
    })
    .await;
}
