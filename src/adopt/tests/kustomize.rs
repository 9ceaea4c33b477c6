//! Tables: options of kustomize in an Application.

use super::*;

#[test]
fn options_of_argo_cd_are_options_of_the_sync() {
    let target = json!({"kind": "Deployment"});
    let found = argo(plain(json!({"source": {"kustomize": {
        "namePrefix": "a-", "nameSuffix": "-b", "namespace": "shop", "version": "v5.3.0",
        "images": ["web:2", "registry.example.com:5000/api=other@sha256:0", "old=new", "host:5000/tool=host:5000/tool:3"],
        "commonLabels": {"team": "shop"}, "labelWithoutSelector": true, "forceCommonLabels": true,
        "patches": [{"patch": "kind: A", "target": target}], "components": ["../tls"],
        "replicas": [{"name": "web.v1", "count": 3}, {"name": "api", "count": "2"}],
    }}})));
    assert_eq!(found.refused, []);
    let scaled = |count: i64| {
        format!(
            r#"{{"apiVersion":"v1","kind":"Any","metadata":{{"name":"any"}},"spec":{{"replicas":{count}}}}}"#
        )
    };
    let kinds = "Deployment|ReplicaSet|ReplicationController|StatefulSet";
    let expect = json!({
        "namePrefix": "a-", "nameSuffix": "-b", "namespace": "shop", "components": ["../tls"], "labels": {"team": "shop"},
        "images": [
            {"name": "web", "newTag": "2"},
            {"name": "registry.example.com:5000/api", "newName": "other", "digest": "sha256:0"},
            {"name": "old", "newName": "new"},
            {"name": "host:5000/tool", "newName": "host:5000/tool", "newTag": "3"},
        ],
        "patches": [
            {"patch": "kind: A", "target": target},
            {"patch": scaled(3), "target": {"kind": kinds, "name": "web[.]v1"}},
            {"patch": scaled(2), "target": {"kind": kinds, "name": "api"}},
        ],
    });
    assert_eq!(found.sync["spec"]["render"]["type"], "Kustomize");
    assert_eq!(found.sync["spec"]["render"]["kustomize"], expect);
    assert_eq!(fields(&found.lost), ["spec.source.kustomize.version", "spec.syncPolicy.automated"]);
}

/// Renders a folder with the options of an adopted Sync, or with those of a kustomization.
fn objects_of(files: &[(&str, &str)], sync: Option<&Value>) -> Vec<Value> {
    let spec = sync.cloned().unwrap_or_default();
    let spec: crate::api::RenderSpec =
        serde_json::from_value(spec["spec"]["render"].clone()).unwrap_or_default();
    let kustomize = crate::controller::spec::kustomize_options(&spec).unwrap();
    let options = crate::render::RenderOptions { kustomize, ..Default::default() };
    match crate::render::render(&crate::tree::FileTree::from_texts(files.iter().copied()), &options) {
        crate::render::Rendered::Complete(complete) => {
            complete.objects().iter().map(|object| Value::Object(object.object().body)).collect()
        }
        crate::render::Rendered::Incomplete(incomplete) => panic!("{:?}", incomplete.problems),
    }
}

#[test]
fn annotations_and_replicas_of_argo_cd_change_the_same_fields_as_kustomize() {
    let workloads = "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web}\nspec: {template: {metadata: {labels: {a: b}}}}\n---\n\
         apiVersion: batch/v1\nkind: CronJob\nmetadata: {name: night}\nspec: {jobTemplate: {spec: {template: {spec: {}}}}}\n---\n\
         apiVersion: v1\nkind: Service\nmetadata: {name: web, annotations: {note: old}}\n";
    let found = argo(plain(json!({"source": {"kustomize": {
        "commonAnnotations": {"note": "$5"}, "replicas": [{"name": "web", "count": 3}],
    }}})));
    assert_eq!(found.refused, []);
    let plain = [("all.yaml", workloads), ("kustomization.yaml", "resources: [all.yaml]\n")];
    let written = "resources: [all.yaml]\ncommonAnnotations: {note: $5}\nreplicas: [{name: web, count: 3}]\n";
    let written = [("all.yaml", workloads), ("kustomization.yaml", written)];
    assert_eq!(objects_of(&plain, Some(&found.sync)), objects_of(&written, None));
}
