//! Options of a kustomization that make no sense.

use serde_json::{Value, json};

use super::nonsense::{Bad, bad};

pub(crate) fn bad_kustomize_options() -> Vec<Bad> {
    let options = |field: &str, value: Value| json!({"render": {"kustomize": {field: value}}});
    const ALL: &str = "spec.render.kustomize";
    let image = |image: Value| options("images", json!([image]));
    let component = |path: &str| options("components", json!(["../a", path]));
    const FOLDERS: &str = "write folders of the same repository";
    const SECOND: &str = "spec.render.kustomize.components[1]";
    vec![
        bad(
            json!({"render": {"type": "Helm", "kustomize": {}}}),
            "kustomize is not valid for a Helm chart",
            ALL,
        ),
        bad(json!({"render": {"helm": {}, "kustomize": {}}}), "kustomize is not valid for a Helm chart", ALL),
        bad(options("namePrefix", json!("a b")), "such as staging-", "spec.render.kustomize.namePrefix"),
        bad(options("nameSuffix", json!("${A}")), "such as -staging", "spec.render.kustomize.nameSuffix"),
        bad(
            options("namespace", json!("Shop")),
            "write the name of a namespace",
            "spec.render.kustomize.namespace",
        ),
        bad(component("/a"), FOLDERS, SECOND),
        bad(component("https://planted@example.com/a/b"), FOLDERS, SECOND),
        bad(component("git::https://example.com/a/b"), FOLDERS, SECOND),
        bad(component("git@example.com:a/b"), FOLDERS, SECOND),
        bad(component("github.com/a/b"), FOLDERS, SECOND),
        bad(component("example.com/a/b?ref=main"), FOLDERS, SECOND),
        bad(options("labels", json!({"a b": "c"})), "write keys of labels", "spec.render.kustomize.labels"),
        bad(options("labels", json!({"a": "b c"})), "write values of labels", "spec.render.kustomize.labels"),
        bad(
            options("annotations", json!({"a b": "c"})),
            "write keys of annotations",
            "spec.render.kustomize.annotations",
        ),
        bad(image(json!({"name": "a"})), "write at least one of newName", "spec.render.kustomize.images[0]"),
        bad(image(json!({"name": "a", "newTag": "b c"})), "write a tag", "spec.render.kustomize.images[0]"),
        bad(
            image(json!({"name": "a", "digest": "b c"})),
            "write a digest",
            "spec.render.kustomize.images[0]",
        ),
        bad(
            options("patches", json!([{"patch": ""}])),
            "should be at least 1 chars long",
            "spec.render.kustomize.patches[0].patch",
        ),
    ]
}
