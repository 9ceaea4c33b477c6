//! Fields that cannot change: each kind's words for it, and the object that takes its place where that is asked for.

use serde_json::{Value, json};

use super::ground::{Ground, MERGE, config_map, deployment, expect, moment};

/// One object of each kind that has such fields, before or after a change of one.
fn all(target: &str, changed: bool, recreate: bool) -> Vec<Value> {
    let pick = |before: Value, after: Value| if changed { after } else { before };
    let word = pick(json!("one"), json!("two"));
    let labels = json!({"app": word});
    let pods =
        json!({"metadata": {"labels": labels}, "spec": {"containers": [{"name": "a", "image": "a:1"}]}});
    let object = |version: &str, kind: &str, name: &str, more: Value| {
        let mut object = json!({"apiVersion": version, "kind": kind, "metadata": {"name": name}});
        for (field, value) in more.as_object().into_iter().flatten() {
            object[field] = value.clone();
        }
        object
    };
    let role = json!({"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": word});
    let mut job = pods.clone();
    job["spec"]["restartPolicy"] = "Never".into();
    job["metadata"] = json!({"labels": {"x": word}});
    let claim = json!({"accessModes": [pick(json!("ReadWriteOnce"), json!("ReadWriteMany"))], "resources": {"requests": {"storage": "1Gi"}}});
    let ip = pick(json!("None"), json!("10.0.0.77"));
    let env = json!([{"name": "X", "value": word}]);
    let mut all = vec![
        deployment(json!({"replicas": 0, "selector": {"matchLabels": labels}, "template": pods})),
        object("rbac.authorization.k8s.io/v1", "RoleBinding", "a", json!({"roleRef": role})),
        object(
            "storage.k8s.io/v1",
            "StorageClass",
            target,
            json!({"provisioner": "none.test/none", "parameters": {"a": word}}),
        ),
        object("batch/v1", "Job", "a", json!({"spec": {"parallelism": 0, "template": job}})),
        object("v1", "ConfigMap", "a", json!({"immutable": true, "data": {"a": word}})),
        object("v1", "Secret", "a", json!({"immutable": true, "stringData": {"a": word}})),
        object("v1", "PersistentVolumeClaim", "a", json!({"spec": claim})),
        object(
            "v1",
            "Service",
            "a",
            json!({"spec": {"clusterIP": ip, "selector": {"app": "a"}, "ports": [{"port": 80}]}}),
        ),
        object(
            "apps/v1",
            "StatefulSet",
            "a",
            json!({"spec": {
                "replicas": 0, "serviceName": word, "selector": {"matchLabels": {"app": "a"}},
                "template": {"metadata": {"labels": {"app": "a"}}, "spec": pods["spec"]},
            }}),
        ),
        object(
            "v1",
            "Pod",
            "a",
            json!({"spec": {"containers": [{"name": "a", "image": "a:1", "env": env}]}}),
        ),
    ];
    if recreate {
        for object in &mut all {
            object["metadata"]["annotations"] = json!({"moorline.dev/recreate": "enabled"});
        }
    }
    all
}

#[tokio::test]
async fn what_cannot_change_says_how_and_is_recreated_where_that_is_asked_for() {
    let Some(ground) = Ground::new("immutable").await else { return };
    let first = ground.push(&all(&ground.target, false, false));
    ground.sync(json!({})).await;
    ground.ready(&first, "Applied").await;
    let second = ground.push(&all(&ground.target, true, false));
    ground.nudge("second").await;
    let status = ground.ready(&second, "ApplyFailed").await;
    let problems = status["problems"].as_array().expect("problems");
    let mut of_kind: Vec<String> = problems
        .iter()
        .map(|it| {
            let kind = it["object"].as_str().expect("an object").split([' ', '.']).next().expect("a kind");
            format!("{kind} {}", it["reason"].as_str().expect("a reason"))
        })
        .collect();
    of_kind.sort();
    let kinds = [
        "ConfigMap",
        "Deployment",
        "Job",
        "PersistentVolumeClaim",
        "Pod",
        "RoleBinding",
        "Secret",
        "Service",
        "StatefulSet",
        "StorageClass",
    ];
    assert_eq!(of_kind, kinds.map(|kind| format!("{kind} Immutable")), "{problems:#?}");
    for it in problems {
        let (kind, message) =
            (it["object"].as_str().unwrap_or_default(), it["message"].as_str().expect("a message"));
        let how = if kind.starts_with("PersistentVolumeClaim") {
            "delete it by hand"
        } else {
            "moorline.dev/recreate: enabled"
        };
        assert!(message.contains(how), "{kind}: {message}");
        assert!(!kind.starts_with("Secret") || !message.contains("b25l"), "{message}");
    }

    let third = ground.push(&all(&ground.target, true, true));
    ground.nudge("third").await;
    let status = ground.ready(&third, "ApplyFailed").await;
    let left = |status: &Value| -> Vec<String> {
        let problems = status["problems"].as_array().expect("problems").iter();
        problems.map(|it| format!("{} {}", it["object"], it["reason"]).replace('"', "")).collect()
    };
    // A StorageClass is protected, and a volume claim is never deleted for a change.
    let class = format!("StorageClass.storage.k8s.io {} Protected", ground.target);
    let claim = format!("PersistentVolumeClaim {}/a Immutable", ground.target);
    let mut found = left(&status);
    found.sort();
    assert_eq!(found, [claim.clone(), class], "{status:#}");
    let hash = status["approval"]["hash"].as_str().expect("an approval");
    ground.change_sync(json!({"metadata": {"annotations": {"moorline.dev/approve": hash}}})).await;
    let path = format!("/apis/storage.k8s.io/v1/storageclasses/{}", ground.target);
    ground.until("the class is made anew", &path, |live| live["parameters"]["a"] == "two").await;
    let web = ground.get(&ground.deployment()).await.expect("the Deployment");
    assert_eq!(web["spec"]["selector"]["matchLabels"]["app"], "two");
    ground.delete(&format!("/apis/storage.k8s.io/v1/storageclasses/{}", ground.target)).await;
}

#[tokio::test]
async fn what_takes_long_to_go_is_waited_for() {
    let Some(ground) = Ground::new("going").await else { return };
    let map = |word: &str| {
        let mut map = config_map("a", json!({"a": word}));
        map["immutable"] = true.into();
        map["metadata"]["annotations"] = json!({"moorline.dev/recreate": "enabled"});
        map
    };
    let first = ground.push(&[map("one")]);
    ground.sync(json!({})).await;
    ground.ready(&first, "Applied").await;
    let path = format!("{}/a", ground.maps());
    ground.patch("guard", &path, MERGE, json!({"metadata": {"finalizers": ["tests.dev/guard"]}})).await;
    moment(500).await;
    let mark = ground.mark().await;
    let second = ground.push(&[map("two")]);
    ground.nudge("second").await;
    let going = |live: &Value| live["metadata"]["deletionTimestamp"].is_string();
    ground.until("it is being deleted", &path, going).await;
    moment(300).await;
    ground.patch("guard", &path, MERGE, json!({"metadata": {"finalizers": null}})).await;
    ground.until("it is there anew", &path, |live| live["data"]["a"] == "two").await;
    ground.ready(&second, "Applied").await;
    let mut tally = ground.tally(&mark).await;
    let looks = tally.remove("get configmaps").unwrap_or_default();
    assert!((2..8).contains(&looks), "{looks} looks");
    assert_eq!(tally, expect([("delete configmaps", 1), ("patch configmaps", 2)]));
}
