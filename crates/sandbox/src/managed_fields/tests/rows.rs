//! Effects of other writers on the fields of an applier: every case that the daemon relies on.

use serde_json::json;

use super::scene::{OURS, Scene, writer};
use super::*;

#[test]
fn whoever_changes_or_removes_a_leaf_takes_it() {
    let mut scene = Scene::config_map(json!({"a": "1", "b": "1"}));
    assert_eq!(scene.ours(), ["data.a", "data.b"]);
    scene.edit("edit", "/data/a", Some(json!("2")));
    assert_eq!(
        (scene.ours(), scene.owned("edit", "Update")),
        (vec!["data.b".to_owned()], vec!["data.a".to_owned()])
    );
    scene.edit("edit", "/data/b", None);
    assert_eq!((scene.ours().len(), scene.owned("edit", "Update")), (0, vec!["data.a".to_owned()]));
    // An Update under our own name is a separate entry.
    let mut scene = Scene::config_map(json!({"a": "1", "b": "1"}));
    scene.edit(OURS, "/data/a", Some(json!("2")));
    assert_eq!(
        (scene.ours(), scene.owned(OURS, "Update")),
        (vec!["data.b".to_owned()], vec!["data.a".to_owned()])
    );
}

#[test]
fn equal_values_are_shared_and_others_conflict() {
    let mut scene = Scene::config_map(json!({"a": "1", "b": "1"}));
    let same = scene.config.clone();
    scene.apply("other", &same, false).unwrap();
    assert_eq!((scene.ours(), scene.owned("other", "Apply")), (scene.ours(), scene.ours()));
    let mut changed = same.clone();
    changed["data"] = json!({"a": "2"});
    let (message, causes) = scene.apply(OURS, &changed, false).unwrap_err();
    assert_eq!(message, "Apply failed with 1 conflict: conflict with \"other\": .data.a");
    assert_eq!(
        causes,
        json!([{"reason": "FieldManagerConflict", "message": "conflict with \"other\"", "field": ".data.a"}])
    );
    // A field that another manager owns stays when we release it.
    changed["data"] = json!({"a": "1"});
    scene.apply(OURS, &changed, false).unwrap();
    assert_eq!(
        (scene.ours(), &scene.live["data"]),
        (vec!["data.a".to_owned()], &json!({"a": "1", "b": "1"}))
    );
    changed["data"] = json!({});
    scene.apply("other", &changed, false).unwrap();
    assert_eq!(scene.live["data"], json!({"a": "1"}));
    scene.edit("kubectl-edit", "/data/a", Some(json!("3")));
    let (message, _) = scene.apply(OURS, &same, false).unwrap_err();
    assert_eq!(message, "Apply failed with 1 conflict: conflict with \"kubectl-edit\" using v1: .data.a");
    scene.apply(OURS, &same, true).unwrap();
    assert_eq!((scene.ours().len(), scene.owned("kubectl-edit", "Update").len()), (2, 0));
}

#[test]
fn only_the_time_moves_when_we_are_imitated() {
    let mut scene = Scene::config_map(json!({"a": "1"}));
    let before = scene.live["metadata"]["managedFields"].clone();
    let mut changed = scene.config.clone();
    let same = changed.clone();
    scene.apply(OURS, &same, true).unwrap();
    assert_eq!(scene.live["metadata"]["managedFields"], before);
    changed["data"]["a"] = json!("2");
    let later = Writer { now: "2026-01-02T03:04:06Z", ..writer(OURS, "v1") };
    let live = apply(&scene.schema, Some(&scene.live), &changed, &later, true).unwrap();
    let entry = &live["metadata"]["managedFields"][0];
    assert_eq!(
        (&entry["fieldsV1"], &entry["time"]),
        (&before[0]["fieldsV1"], &json!("2026-01-02T03:04:06Z"))
    );
    // A write that changes nothing leaves the time unchanged, too.
    let mut new = scene.live.clone();
    new["metadata"]["managedFields"][0]["time"] = json!("2026-01-02T03:04:09Z");
    keep_times(&scene.live, &mut new);
    assert_eq!(new, scene.live);
    new["data"]["a"] = json!("2");
    new["metadata"]["managedFields"][0]["time"] = json!("2026-01-02T03:04:09Z");
    keep_times(&scene.live, &mut new);
    assert_eq!(new["metadata"]["managedFields"][0]["time"], "2026-01-02T03:04:09Z");
}

#[test]
fn subresources_have_entries_of_their_own() {
    let mut scene = Scene::deployment(json!({"replicas": 1, "minReadySeconds": 5}));
    let mut new = scene.live.clone();
    new["spec"]["replicas"] = json!(3);
    scene.put(new, &Writer { subresource: "scale", reset: &[], ..writer("hpa", "apps/v1") });
    assert_eq!(
        (scene.ours(), scene.owned("hpa", "Update")),
        (vec!["spec.minReadySeconds".to_owned()], vec!["spec.replicas".to_owned()])
    );
    let (message, _) = scene.apply(OURS, &scene.config.clone(), false).unwrap_err();
    assert_eq!(
        message,
        "Apply failed with 1 conflict: conflict with \"hpa\" with subresource \"scale\" using apps/v1: .spec.replicas"
    );
    let mut new = scene.live.clone();
    new["status"] = json!({"replicas": 3});
    new["spec"]["minReadySeconds"] = json!(9);
    scene.put(new, &Writer { subresource: "status", reset: &[&["spec"]], ..writer("controller", "apps/v1") });
    assert_eq!(scene.ours(), ["spec.minReadySeconds"]);
    assert_eq!(scene.owned("controller", "Update"), ["status.replicas"]);
}

#[test]
fn what_is_added_to_granular_things_leaves_us_alone_and_to_atomic_ones_not() {
    let container = |name: &str| json!({"name": name, "image": "i", "env": [{"name": "A", "value": "1"}]});
    let mut scene = Scene::deployment(json!({"template": {"spec": {"containers": [container("a")]}}}));
    let before = scene.ours();
    assert!(
        before.contains(&"spec.template.spec.containers[name=a].env[name=A].value".to_owned()),
        "{before:?}"
    );
    scene.edit("edit", "/spec/template/spec/containers", Some(json!([container("b"), container("a")])));
    scene.edit(
        "edit",
        "/spec/template/spec/containers/1/env",
        Some(json!([{"name": "B"}, {"name": "A", "value": "1"}])),
    );
    scene.edit("edit", "/spec/template/spec/hostNetwork", Some(json!(true)));
    assert_eq!(scene.ours(), before);
    assert!(
        scene
            .owned("edit", "Update")
            .contains(&"spec.template.spec.containers[name=a].env[name=B].name".to_owned())
    );
    // An item that was inserted before ours stays there.
    scene.apply(OURS, &scene.config.clone(), true).unwrap();
    let names: Vec<&Value> = scene.live["spec"]["template"]["spec"]["containers"]
        .as_array()
        .unwrap()
        .iter()
        .map(|it| &it["name"])
        .collect();
    assert_eq!(names, ["b", "a"]);
    let rule = |verb: &str| json!({"apiGroups": [""], "resources": ["pods"], "verbs": [verb]});
    let role = json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role", "metadata": {"name": "n"}, "rules": [rule("get")]});
    let mut scene = Scene::of(schema_of("Role"), "rbac.authorization.k8s.io/v1", role);
    assert_eq!(scene.ours(), ["rules"]);
    scene.edit("edit", "/rules", Some(json!([rule("get"), rule("list")])));
    assert_eq!((scene.ours().len(), scene.owned("edit", "Update")), (0, vec!["rules".to_owned()]));
}

#[test]
fn order_is_nobody_s_and_an_item_that_stands_twice_is_lost() {
    let mut scene = Scene::widget(
        json!({"set": ["a", "b"], "keyed": [{"name": "x", "zone": "a"}, {"name": "y", "zone": "a"}]}),
    );
    let before = scene.live["metadata"]["managedFields"].clone();
    scene.edit("edit", "/spec/set", Some(json!(["b", "a"])));
    assert_eq!(scene.live["metadata"]["managedFields"], before);
    scene.apply(OURS, &scene.config.clone(), false).unwrap();
    assert_eq!(scene.live["spec"]["set"], json!(["a", "b"]));
    scene.edit(
        "edit",
        "/spec/keyed",
        Some(json!([{"name": "x"}, {"name": "y", "zone": "a"}, {"name": "x", "zone": "a"}])),
    );
    assert!(!scene.ours().iter().any(|path| path.contains("name=x")), "{:?}", scene.ours());
    assert_eq!(scene.owned("edit", "Update"), ["spec.keyed[name=x,zone=a]"]);
}

#[test]
fn who_resets_the_managers_has_everything_shared_before_the_first_apply() {
    let mut scene = Scene::config_map(json!({"a": "1"}));
    let ours = scene.live["metadata"]["managedFields"].clone();
    scene.edit("edit", "/data/a", Some(json!("2")));
    // Our entry is forged back: it exists again, next to the other one.
    let mut forged = scene.live.clone();
    forged["metadata"]["managedFields"]
        .as_array_mut()
        .unwrap()
        .extend(ours.as_array().unwrap().iter().cloned());
    scene.put(forged, &writer("edit", "v1"));
    assert_eq!(
        (scene.ours(), scene.owned("edit", "Update")),
        (vec!["data.a".to_owned()], vec!["data.a".to_owned()])
    );
    for empty in [json!([{}]), json!([])] {
        scene.edit("edit", "/data/a", Some(json!("2")));
        scene.edit("edit", "/metadata/managedFields", Some(empty));
        assert!(scene.live["metadata"].get("managedFields").is_none(), "{}", scene.live);
        scene.edit("edit", "/data/b", Some(json!("2")));
        assert!(scene.live["metadata"].get("managedFields").is_none(), "{}", scene.live);
        let config = scene.config.clone();
        let (message, _) = scene.apply(OURS, &config, false).unwrap_err();
        assert!(message.ends_with("conflict with \"before-first-apply\" using v1: .data.a"), "{message}");
        scene.apply(OURS, &config, true).unwrap();
        assert_eq!(scene.owned("before-first-apply", "Update"), ["data.b"]);
        assert_eq!(scene.ours(), ["data.a"]);
    }
    // An invalid entry is ignored.
    scene.edit("edit", "/metadata/managedFields", Some(json!([{"manager": "x", "operation": "Guess"}])));
    assert_eq!(scene.ours(), ["data.a"]);
}

#[test]
fn zeros_and_nothing_are_owned() {
    let mut scene = Scene::deployment(json!({
        "replicas": 0, "paused": null, "template": {"spec": {"hostNetwork": false, "tolerations": [], "securityContext": {}}},
    }));
    let expect = [
        "spec.paused",
        "spec.replicas",
        "spec.template.spec.hostNetwork",
        "spec.template.spec.securityContext",
        "spec.template.spec.tolerations",
    ];
    assert_eq!(scene.ours(), expect);
    // The server omits zero values, yet a later value of another manager is detected.
    scene.edit("edit", "/spec/template/spec/hostNetwork", None);
    scene.apply(OURS, &scene.config.clone(), true).unwrap();
    let mut new = scene.live.clone();
    normal(&scene.schema, &mut new);
    scene.live = new;
    scene.edit("edit", "/spec/template/spec/hostNetwork", Some(json!(true)));
    assert!(!scene.ours().contains(&"spec.template.spec.hostNetwork".to_owned()), "{:?}", scene.ours());
}

#[test]
fn the_oldest_updates_become_one() {
    let mut scene = Scene::config_map(json!({"a": "1"}));
    for at in 0..14 {
        let now = format!("2026-01-02T03:04:{at:02}Z");
        let mut new = scene.live.clone();
        new["data"][format!("k{at}")] = json!("v");
        let manager = format!("u{at}");
        scene.put(new, &Writer { now: &now, ..writer(&manager, "v1") });
    }
    assert_eq!(scene.live["metadata"]["managedFields"].as_array().unwrap().len(), 11);
    assert_eq!(
        scene.owned("ancient-changes", "Update"),
        ["data.k0", "data.k1", "data.k2", "data.k3", "data.k4"]
    );
    assert_eq!(scene.owned("u13", "Update"), ["data.k13"]);
    assert_eq!(scene.ours(), ["data.a"]);
}

#[test]
fn another_version_is_seen_in_its_own_paths_and_one_that_is_gone_takes_its_managers_along() {
    let hpa = |version: &str, spec: Value| json!({"apiVersion": version, "kind": "HorizontalPodAutoscaler", "metadata": {"name": "n"}, "spec": spec});
    let old = Schema::builtin("autoscaling", "v1", "HorizontalPodAutoscaler").unwrap();
    let new = Schema::builtin("autoscaling", "v2", "HorizontalPodAutoscaler").unwrap();
    let config = hpa("autoscaling/v1", json!({"maxReplicas": 3, "targetCPUUtilizationPercentage": 50}));
    let live = apply(&old, None, &config, &writer(OURS, "autoscaling/v1"), false).unwrap();
    let as_new = |object: &Value| {
        let metric = json!({"type": "Resource", "resource": {"name": "cpu", "target": object["spec"]["targetCPUUtilizationPercentage"]}});
        let mut new =
            hpa("autoscaling/v2", json!({"maxReplicas": object["spec"]["maxReplicas"], "metrics": [metric]}));
        new["metadata"] = object["metadata"].clone();
        new
    };
    let as_old = |object: &Value| {
        let target = &object["spec"]["metrics"][0]["resource"]["target"];
        hpa(
            "autoscaling/v1",
            json!({"maxReplicas": object["spec"]["maxReplicas"], "targetCPUUtilizationPercentage": target}),
        )
    };
    let write = |in_version: &dyn Fn(&str, &Value) -> InVersion| {
        let before = as_new(&live);
        let mut after = before.clone();
        after["spec"]["metrics"][0]["resource"]["target"] = json!(80);
        let writer = Writer { in_version, ..writer("edit", "autoscaling/v2") };
        update(&new, Some(&before), &mut after, &writer);
        Scene { schema: new.clone(), api_version: "autoscaling/v2", config: Value::Null, live: after }
    };
    let scene = write(&|version, object| {
        assert_eq!(version, "autoscaling/v1");
        InVersion::Other(old.clone(), as_old(object))
    });
    assert_eq!(scene.ours(), ["spec.maxReplicas"]);
    assert_eq!(scene.owned("edit", "Update"), ["spec.metrics"]);
    let scene = write(&|_, _| InVersion::Gone);
    assert_eq!((scene.ours().len(), scene.owned("edit", "Update")), (0, vec!["spec.metrics".to_owned()]));
}

#[test]
fn a_definition_that_changes_changes_what_is_owned() {
    let mut scene = Scene::widget(json!({"set": ["a", "b"], "nested": {"a": "x"}, "title": "t"}));
    assert_eq!(scene.ours(), ["spec.nested.a", "spec.set[\"a\"]", "spec.set[\"b\"]", "spec.title"]);
    let mut definition: Value = serde_json::from_str(DEFINITION).unwrap();
    let spec =
        definition.pointer_mut("/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties").unwrap();
    spec["set"]["x-kubernetes-list-type"] = json!("atomic");
    spec["nested"]["x-kubernetes-map-type"] = json!("atomic");
    spec.as_object_mut().unwrap().remove("title");
    scene.schema = Schema::of_definition(&definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"]);
    scene.edit("edit", "/spec/size", Some(json!(1)));
    assert_eq!(scene.ours(), ["spec.nested", "spec.set", "spec.title"]);
    let (message, _) = scene.apply(OURS, &scene.config.clone(), true).unwrap_err();
    assert_eq!(
        message,
        "failed to create typed patch object (/n; tests.moorline.dev/v1, Kind=Widget): .spec.title: field not declared in schema"
    );
}

#[test]
fn what_cannot_be_applied_is_said_in_the_server_s_words() {
    let mut scene = Scene::config_map(json!({"a": "1"}));
    let mut config = scene.config.clone();
    config["metadata"]["managedFields"] = json!([]);
    assert_eq!(scene.apply(OURS, &config, true).unwrap_err().0, "metadata.managedFields must be nil");
    let mut scene = Scene::widget(json!({}));
    let mut config = scene.config.clone();
    config["spec"] = json!({"keyed": [{"name": "a"}, {"name": "a", "zone": "a"}]});
    assert_eq!(
        scene.apply(OURS, &config, true).unwrap_err().0,
        "failed to create typed patch object (/n; tests.moorline.dev/v1, Kind=Widget): .spec.keyed: duplicate entries for key [name=\"a\",zone=\"a\"]"
    );
}
