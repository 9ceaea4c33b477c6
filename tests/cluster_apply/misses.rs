//! Changes that managed fields do not show, and how a running daemon learns of them on a real API server.

use k8s_openapi::api::core::v1::Secret;
use kube::api::{Api, ApiResource, DynamicObject, Patch, PatchParams, PostParams};
use kube::core::GroupVersionKind;
use serde_json::{Value, json};

use moorline_test_support::admission::mutating_policy_version;
use moorline_test_support::audit::AuditMark;
use moorline_test_support::credentials::MOORLINE;
use moorline_test_support::daemon::until;
use moorline_test_support::fault_proxy::{Fate, RecordedRequest};
use moorline_test_support::scene::{Scene, config_map, many};

/// Returns the daemon's requests for the objects in the scene's namespace.
async fn asked(scene: &Scene, mark: &AuditMark) -> Vec<String> {
    let requests = mark.requests().await.by_user(MOORLINE).in_namespace(&scene.namespace);
    requests
        .filter(|it| !["syncs", "events"].contains(&it.resource.as_str()) && it.verb != "watch")
        .tally()
        .into_iter()
        .map(|(what, count)| format!("{count} {what}"))
        .collect()
}

/// The same, of one of them.
async fn asked_of(scene: &Scene, mark: &AuditMark, name: &str) -> Vec<String> {
    let requests = mark.requests().await.by_user(MOORLINE).in_namespace(&scene.namespace);
    let tally = requests.filter(|it| it.verb != "watch" && it.name == name).tally();
    tally.into_iter().map(|(what, count)| format!("{count} {what}")).collect()
}

async fn edit(scene: &Scene, manager: &str, name: &str, patch: &Value) {
    let by = PatchParams { field_manager: Some(manager.to_owned()), ..PatchParams::default() };
    scene.maps().patch(name, &by, &Patch::Merge(patch)).await.unwrap();
}

async fn until_value(scene: &Scene, name: &str, value: &str) {
    until(&format!("{name} is {value}"), async || (scene.values().await.get(name)? == value).then_some(()))
        .await;
}

#[tokio::test]
async fn an_object_that_loses_our_label_is_found_by_its_name() {
    let Some(scene) = Scene::new("label").await else { return };
    let all = many(3, "one");
    let commit = scene.push(&all);
    let _daemon = scene.daemon();
    scene.sync("shop", json!({})).await;
    scene.until_ready("shop", &commit).await;
    let mark = AuditMark::set(&scene.plane).await;
    let label = format!("{}.shop", scene.namespace);
    let marks = json!({"moorline.dev/id": null, "moorline.dev/spec-hash": null});
    for (name, metadata) in [
        ("a-0", json!({"labels": {"moorline.dev/sync": null}})),
        ("a-1", json!({"labels": {"moorline.dev/sync": "x"}})),
        ("a-2", json!({"labels": null, "annotations": marks})),
    ] {
        let uid = scene.versions().await[name].0.clone();
        edit(&scene, "kubectl-label", name, &json!({"metadata": metadata, "data": {"key": "by hand"}})).await;
        until_value(&scene, name, "one").await;
        let metadata = scene.maps().get(name).await.unwrap().metadata;
        assert_eq!(metadata.labels.unwrap_or_default().get("moorline.dev/sync"), Some(&label), "{name}");
        assert_eq!(metadata.annotations.unwrap_or_default().len(), 3, "{name}");
        assert_eq!(metadata.uid, Some(uid), "{name} is the same object");
    }
    scene.assert_calm("after the repairs").await;
    assert_eq!(asked(&scene, &mark).await, ["6 patch configmaps"], "a look at each, and a repair by force");
    scene.until_ready("shop", &commit).await;
    scene.delete_sync("shop").await;
}

#[tokio::test]
async fn a_field_that_somebody_takes_just_before_git_drops_it_goes_or_is_named() {
    let Some(scene) = Scene::new("taken").await else { return };
    let two = |name: &str| {
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"key": "one", "more": "one"}}).to_string()
    };
    let files = ["kubectl", "robot", "wiped"].map(|name| (format!("{name}.json"), two(name)));
    let commit = scene.push(&files);
    let _daemon = scene.daemon();
    scene.sync("shop", json!({})).await;
    scene.until_ready("shop", &commit).await;

    // No write of the daemon comes through until Git has dropped the field.
    scene.proxy.rule(|it| if it.writes_object() { Fate::Answer(503, None) } else { Fate::Pass });
    edit(&scene, "kubectl-edit", "kubectl", &json!({"data": {"more": "by hand"}})).await;
    edit(&scene, "robot", "robot", &json!({"data": {"more": "by robot"}})).await;
    edit(&scene, "x", "wiped", &json!({"metadata": {"managedFields": [{}]}})).await;
    tokio::time::sleep(std::time::Duration::from_secs(1)).await;
    until("the edits are seen", async || {
        scene.proxy.take_requests().iter().any(RecordedRequest::writes_object).then_some(())
    })
    .await;
    let commit = scene
        .push(&["kubectl", "robot", "wiped"].map(|name| (format!("{name}.json"), config_map(name, "two"))));
    scene.nudge("shop", "dropped").await;
    until("the commit is seen", async || {
        let seen = scene.status("shop", "/revision/attempted").await;
        seen.as_str()?.ends_with(&commit).then_some(())
    })
    .await;
    scene.proxy.heal();
    scene.until_ready("shop", &commit).await;
    until_value(&scene, "kubectl", "two").await;
    until_value(&scene, "robot", "two").await;
    let more = async |name: &str| scene.maps().get(name).await.unwrap().data.unwrap().remove("more");
    until("what a person took is gone", async || more("kubectl").await.is_none().then_some(())).await;
    until_value(&scene, "wiped", "two").await;
    until("what was held by nobody is gone", async || more("wiped").await.is_none().then_some(())).await;
    assert_eq!(more("robot").await.as_deref(), Some("by robot"));
    let problems = scene.status("shop", "/problems").await;
    let problem =
        problems.as_array().unwrap().iter().find(|it| it["reason"] == "FieldRemains").expect("it is told");
    let message = problem["message"].as_str().unwrap();
    assert!(message.contains("data.more") && message.contains("robot"), "{message}");
    assert!(problem["object"].as_str().unwrap().ends_with("/robot"), "{problem}");
    scene.assert_calm("after all").await;
    scene.delete_sync("shop").await;
}

/// Something between the daemon and the server hides who wrote what: then every change is looked at, and none for ever.
#[tokio::test]
async fn where_entries_are_hidden_changes_are_looked_at_and_nothing_is_pruned() {
    let Some(scene) = Scene::new("hidden").await else { return };
    scene.proxy.hide_entries();
    let commit = scene.push(&many(3, "one"));
    let daemon = scene.daemon();
    scene.sync("shop", json!({})).await;
    scene.until_ready("shop", &commit).await;
    scene.assert_calm("after the first sync").await;
    scene.edit("a-1", "by hand").await;
    until_value(&scene, "a-1", "one").await;
    scene.assert_calm("after a repair").await;
    let commit = scene.push(&many(3, "two"));
    scene.nudge("shop", "two").await;
    scene.until_values(&many(3, "two"), "a commit is applied").await;
    scene.until_ready("shop", &commit).await;
    scene.remove(&["a-2.json"]);
    scene.nudge("shop", "less").await;
    scene.until_reason("shop", "Applied").await;
    scene.assert_calm("after a removal").await;
    assert!(scene.values().await.contains_key("a-2"), "whether it is ours cannot be seen");
    assert_eq!(daemon.log().matches("removes managedFields from the responses").count(), 1);
    scene.delete_sync("shop").await;
}

/// Has the key of ConfigMaps changed on the way to the server where this holds.
async fn policy(scene: &Scene, name: &str, condition: &str, value: &str) {
    let name = format!("{name}.{}", scene.namespace);
    let here = json!({"matchLabels": {"kubernetes.io/metadata.name": scene.namespace}});
    let rule = json!({"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE", "UPDATE"], "resources": ["configmaps"]});
    let step = format!("[JSONPatch{{op: 'add', path: '/data/key', value: {value}}}]");
    let spec = json!({
        "matchConstraints": {"namespaceSelector": here, "resourceRules": [rule]},
        "matchConditions": [{"name": "which", "expression": format!("object.metadata.name.startsWith('a-') && {condition}")}],
        "failurePolicy": "Fail", "reinvocationPolicy": "Never",
        "mutations": [{"patchType": "JSONPatch", "jsonPatch": {"expression": step}}],
    });
    let version = mutating_policy_version(&scene.admin).await;
    for (kind, spec) in
        [("MutatingAdmissionPolicy", spec), ("MutatingAdmissionPolicyBinding", json!({"policyName": name}))]
    {
        let object = json!({"apiVersion": version, "kind": kind, "metadata": {"name": name}, "spec": spec});
        let (group, version_in_group) = version.split_once('/').unwrap();
        let resource = ApiResource::from_gvk(&GroupVersionKind::gvk(group, version_in_group, kind));
        let all: Api<DynamicObject> = Api::all_with(scene.admin.clone(), &resource);
        all.create(&PostParams::default(), &serde_json::from_value(object).unwrap()).await.unwrap();
    }
}

/// Admission changes the writes of others, so that a field of ours changes of which no managed field tells.
#[tokio::test]
async fn what_admission_adds_to_the_writes_of_others_is_repaired_once() {
    let Some(scene) = Scene::new("hitchhiker").await else { return };
    let commit = scene.push(&many(2, "one"));
    let _daemon = scene.daemon();
    scene.sync("shop", json!({})).await;
    scene.until_ready("shop", &commit).await;
    policy(&scene, "theirs", "request.options.fieldManager == 'hitchhiker'", "'changed'").await;
    let write = async |name: &str, at: usize| {
        let label = PatchParams { field_manager: Some("hitchhiker".to_owned()), ..PatchParams::default() };
        let patch = Patch::Merge(json!({"metadata": {"labels": {"at": at.to_string()}}}));
        let written = scene.maps().patch(name, &label, &patch).await.unwrap();
        written.data.unwrap_or_default().remove("key").unwrap() == "changed"
    };
    let mut at = 0;
    until("the policy is in force", async || {
        at += 1;
        write("a-0", at).await.then_some(())
    })
    .await;
    until_value(&scene, "a-0", "one").await;
    let mark = AuditMark::set(&scene.plane).await;
    assert!(write("a-1", 1).await);
    until_value(&scene, "a-1", "one").await;
    scene.assert_calm("after the repair").await;
    assert_eq!(asked_of(&scene, &mark, "a-1").await, ["1 patch configmaps"]);
    scene.delete_sync("shop").await;
}

/// Admission changes our writes: always to the same, or each time to something else. We say it once, and again
/// only after others have written.
#[tokio::test]
async fn what_admission_makes_of_our_writes_is_not_repaired_for_ever() {
    let Some(scene) = Scene::new("ours").await else { return };
    let ours = format!("request.options.fieldManager == 'moorline/{}/shop'", scene.namespace);
    policy(&scene, "same", &format!("{ours} && object.metadata.name == 'a-0'"), "'changed'").await;
    let other = "'after ' + object.metadata.?resourceVersion.orValue('none')";
    policy(&scene, "other", &format!("{ours} && object.metadata.name == 'a-1'"), other).await;
    let probe =
        PatchParams { dry_run: true, ..PatchParams::apply(&format!("moorline/{}/shop", scene.namespace)) };
    for name in ["a-0", "a-1"] {
        let map: Value = serde_json::from_str(&config_map(name, "x")).unwrap();
        until("the policy is in force", async || {
            let made = scene.maps().patch(name, &probe, &Patch::Apply(&map)).await.unwrap();
            (made.data.unwrap_or_default().remove("key")? != "x").then_some(())
        })
        .await;
    }
    let mark = AuditMark::set(&scene.plane).await;
    let commit = scene.push(&many(3, "one"));
    let _daemon = scene.daemon();
    scene.sync("shop", json!({})).await;
    scene.until_ready("shop", &commit).await;
    scene.assert_calm("at first").await;
    assert_eq!(asked(&scene, &mark).await, ["3 patch configmaps"], "each is applied once");
    for name in ["a-0", "a-1"] {
        edit(&scene, "kubectl-edit", name, &json!({"data": {"key": "by hand"}})).await;
        until("it is repaired as far as the policy lets us", async || {
            (scene.values().await.get(name)? != "by hand").then_some(())
        })
        .await;
    }
    scene.assert_calm("after others wrote").await;
    assert_eq!(asked(&scene, &mark).await, ["5 patch configmaps"], "and each of the two once more");
    let values = scene.values().await;
    assert_eq!(values["a-0"], "changed");
    assert!(values["a-1"].starts_with("after "), "{values:?}");
    scene.until_ready("shop", &commit).await;
    scene.delete_sync("shop").await;
}

fn secret(data: &Value) -> (String, String) {
    let secret = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "a"}, "stringData": data});
    ("a.json".to_owned(), secret.to_string())
}

#[tokio::test]
async fn what_git_writes_as_string_data_is_held_key_by_key() {
    let Some(scene) = Scene::new("secret").await else { return };
    let commit = scene.push(&[secret(&json!({"one": "1", "two": "2"}))]);
    let _daemon = scene.daemon();
    scene.sync("shop", json!({})).await;
    scene.until_ready("shop", &commit).await;
    let secrets: Api<Secret> = Api::namespaced(scene.admin.clone(), &scene.namespace);
    let is = async |expect: &[(&str, &str)], what: &str| {
        until(what, async || {
            let data = secrets.get("a").await.unwrap().data.unwrap_or_default();
            let is = |(key, value): &(&str, &str)| data.get(*key).is_some_and(|it| it.0 == value.as_bytes());
            (data.len() == expect.len() && expect.iter().all(is)).then_some(())
        })
        .await;
    };
    let both = [("one", "1"), ("two", "2")];
    is(&both, "it is applied").await;
    let mark = AuditMark::set(&scene.plane).await;
    let kubectl = PatchParams { field_manager: Some("kubectl-edit".into()), ..PatchParams::default() };
    // A manager that applies `stringData` owns nothing of what it changes.
    let helm = PatchParams { field_manager: Some("helm".into()), force: true, ..PatchParams::default() };
    let by_hand = json!({"apiVersion": "v1", "kind": "Secret", "stringData": {"one": "by hand"}});
    for (what, by, patch) in [
        ("a value is changed", &kubectl, Patch::Merge(json!({"data": {"one": "eA=="}}))),
        ("a key is removed", &kubectl, Patch::Merge(json!({"data": {"two": null}}))),
        ("a value is written as text", &kubectl, Patch::Merge(json!({"stringData": {"one": "by hand"}}))),
        ("a value is applied as text", &helm, Patch::Apply(by_hand)),
    ] {
        let before = secrets.get("a").await.unwrap().metadata.resource_version;
        let written = secrets.patch("a", by, &patch).await.unwrap();
        assert_ne!(written.metadata.resource_version, before, "{what}");
        is(&both, what).await;
    }
    scene.assert_calm("after the repairs").await;
    assert_eq!(asked(&scene, &mark).await, ["4 patch secrets"], "one for each");
    let commit = scene.push(&[secret(&json!({"one": "1", "three": "3"}))]);
    scene.nudge("shop", "renamed").await;
    scene.until_ready("shop", &commit).await;
    is(&[("one", "1"), ("three", "3")], "a key that is renamed leaves nothing behind").await;
    scene.delete_sync("shop").await;
}
