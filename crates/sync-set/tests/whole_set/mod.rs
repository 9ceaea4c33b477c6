//! Tests of whole sets: one wrong Sync stops all, and a manifest has what the set gives it.
//!
//! In: literal resources. Out: errors, manifests and plans.

use super::*;

#[test]
fn what_is_wrong_with_one_sync_changes_nothing_of_the_set() {
    let raw = of_names(&["a", "b"]);
    let set: SyncSet = serde_json::from_value(raw.clone()).unwrap();
    let compiled = CompiledSet::compile(&set, &raw).unwrap();
    let parameters = generate(&set.spec, &SourceAnswers::default()).unwrap();
    let refuses = |name: &str, _: &Value| if name == "apps-b" { Err("no".to_owned()) } else { Ok(()) };
    let built = SetChildren::build(&compiled, &SetOwner::of(&raw), &parameters, refuses);
    assert_eq!(built.unwrap_err(), ["apps-b: no"]);
    let twice = json!({"field": "/spec/path", "value": "params.name"});
    let raw = resource(&json!([list(json!([{"name": "a"}]))]), json!({"set": [twice, twice]}));
    assert!(children(&raw, &[]).unwrap_err().contains("/spec/path is set twice"));
    let [one, two] =
        [json!([{"name": "a"}]), json!([{"name": "a", "b": 1}, {"name": "a", "b": 2}])].map(list);
    let raw = resource(&json!([{"merge": {"keys": ["name"], "generators": [one, two]}}]), json!({}));
    assert!(children(&raw, &[]).unwrap_err().contains("two sets of generator 1 have the same keys"));
    let many = |letter: &str| {
        list(json!((0..300).map(|at| json!({"name": format!("{letter}{at}")})).collect::<Vec<_>>()))
    };
    let raw = resource(&json!([many("a"), many("b")]), json!({}));
    assert!(children(&raw, &[]).unwrap_err().contains("600 sets of parameters are more than 500"));
}

#[test]
fn a_sync_keeps_the_instance_of_its_set_and_an_approval_is_about_uids() {
    let mut raw = of_names(&["a"]);
    raw["metadata"]["labels"] = json!({"moorline.dev/instance": "blue"});
    raw["spec"]["template"]["spec"]["suspend"] = json!(false);
    let manifest = children(&raw, &[]).unwrap().get("apps-a").unwrap().manifest.clone();
    assert_eq!(manifest["metadata"]["labels"], json!({"moorline.dev/instance": "blue"}));
    assert_eq!(manifest["spec"]["suspend"], Value::Null, "a person may suspend it");
    let depends = json!({"template": {"spec": {"source": {"git": {"url": "https://h/a"}}, "dependsOn": [{"name": "x"}]}}});
    let raw = resource(&json!([list(json!([{"name": "a"}]))]), depends);
    let manifest = children(&raw, &[]).unwrap().get("apps-a").unwrap().manifest.clone();
    let longer = live(&manifest, |sync| sync["spec"]["dependsOn"] = json!([{"name": "x"}, {"name": "y"}]));
    let planned = plan(&raw, &[longer], &RemovalPolicy::default());
    assert!(matches!(planned.steps[..], [SetStep::Update { .. }]), "an entry of others is removed");

    let old = children(&of_names(&["a", "b"]), &[]).unwrap();
    let [a, b] = ["apps-a", "apps-b"].map(|name| old.get(name).unwrap().manifest.clone());
    let hash = |uid: &str| {
        let gone = live(&b, |sync| sync["metadata"]["uid"] = json!(uid));
        let policy = RemovalPolicy { count: Some(0), ..RemovalPolicy::default() };
        match plan(&of_names(&["a"]), &[live(&a, |_| {}), gone], &policy).removal {
            PlannedRemoval::Hold { hash, .. } => hash,
            other => panic!("{other:?}"),
        }
    };
    assert_ne!(hash("1"), hash("2"));
}
