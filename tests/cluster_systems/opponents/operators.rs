//! Operators of custom resources: one that fills in what Git leaves open, and one that rewrites what Git sets.

use std::time::Duration;

use serde_json::{Value, json};

use super::ground::{
    Opponent, asked_within, assert_repaired, define, file, quiet_after, until_contested, until_told, writes,
};
use moorline_test_support::scene::Scene;

fn database(name: &str) -> Value {
    json!({
        "apiVersion": "data.example.com/v1", "kind": "Database", "metadata": {"name": name},
        "spec": {"engine": "fast", "size": 3},
    })
}

fn anything() -> Value {
    json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true})
}

#[tokio::test]
async fn an_operator_that_fills_in_what_is_missing_is_left_alone() {
    let Some(scene) = Scene::new("defaults").await else { return };
    let databases = define(&scene, "data.example.com", "v1", "Database", anything()).await;
    let (_daemon, _) = scene.applied(&[file(&database("main"))], json!({})).await;
    let operator = Opponent::new(&databases, "database-operator");
    for (field, value) in [("version", json!("16")), ("backup", json!({"keep": 7})), ("ports", json!([5432]))]
    {
        operator.merges("main", json!({"spec": {field: value}})).await;
    }
    let asked = quiet_after(&scene, operator.moved(), "defaults").await;
    assert!(writes(&asked, "main") <= 3, "one look for each generation");
    assert_eq!(scene.status("shop", "/problems").await, Value::Null, "that is its business");
    assert_repaired(&scene, &databases, "main", json!({"spec": {"size": 9}}), "spec.size").await;
    let spec = operator.live("main").await["spec"].clone();
    let expect =
        json!({"engine": "fast", "size": 3, "version": "16", "backup": {"keep": 7}, "ports": [5432]});
    assert_eq!(spec, expect);
}

#[tokio::test]
async fn an_operator_that_rewrites_a_field_is_contested_for_that_field() {
    let Some(scene) = Scene::new("rewrites").await else { return };
    let databases = define(&scene, "data.example.com", "v1", "Database", anything()).await;
    let (_daemon, _) = scene.applied(&[file(&database("main"))], json!({})).await;
    scene.proxy.take_requests();
    let operator = Opponent::new(&databases, "database-operator");
    let theirs = json!({"spec": {"size": 5}});
    for _ in 0..5 {
        operator.merges("main", theirs.clone()).await;
        operator.until("it is repaired", "main", |live| live["spec"]["size"] == 3).await;
    }
    operator.merges("main", theirs).await;
    let (contested, message) = until_contested(&scene, "shop").await;
    assert_eq!(contested, [("spec.size".to_owned(), "database-operator".to_owned())]);
    assert!(message.contains("database-operator reverts every repair of spec.size"), "{message}");
    until_told(&scene, &["main", "spec.size", "changed by database-operator"]).await;
    let asked = quiet_after(&scene, operator.moved(), "contested").await;
    assert_eq!(writes(&asked, "main"), 5);
    assert_eq!(operator.live("main").await["spec"]["size"], 5);

    assert_repaired(&scene, &databases, "main", json!({"spec": {"engine": "slow"}}), "spec.engine").await;
    assert_eq!(operator.live("main").await["spec"]["size"], 5, "theirs is left to them");
    operator.merges("main", json!({"spec": {"size": 6}})).await;
    let asked = asked_within(&scene, Duration::from_secs(2)).await;
    assert_eq!(writes(&asked, "main"), 0, "the first pause is a minute");
}
