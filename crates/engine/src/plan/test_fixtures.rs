//! Fixtures of the plan tests: desired sets from manifests, and observed objects.

#![cfg(test)]

use serde_json::{Value, json};

use crate::desired::{DesiredSet, Scope, Scopes, build_desired_set};
use crate::observed::{Observed, ObservedSet, Ownership, Verification};
use moorline_core::object::{GroupKind, ObjectId};
use moorline_core::tree::FileTree;
use moorline_render::{RenderOptions, Rendered, render};

pub(super) fn id(text: &str) -> ObjectId {
    ObjectId::parse(text).unwrap()
}

/// Returns the manifest of an object in a wave.
pub(super) fn manifest(id_text: &str, wave: i32) -> Value {
    let id = id(id_text);
    let version = match id.group() {
        "" => "v1".to_owned(),
        group => format!("{group}/v1"),
    };
    let mut metadata = json!({"name": id.name(), "annotations": {"moorline.dev/wave": wave.to_string()}});
    if let Some(namespace) = id.namespace() {
        metadata["namespace"] = namespace.into();
    }
    json!({"apiVersion": version, "kind": id.kind(), "metadata": metadata})
}

/// Returns the desired set of these manifests; `Widget.example.com` and `Workflow.argoproj.io` are
/// known namespaced kinds.
pub(super) fn wanted(manifests: &[Value]) -> DesiredSet {
    let texts: Vec<_> = manifests.iter().map(Value::to_string).collect();
    let names: Vec<_> = (0..texts.len()).map(|at| format!("{at}.json")).collect();
    let files = names.iter().map(String::as_str).zip(texts.iter().map(String::as_str));
    let Rendered::Complete(complete) = render(&FileTree::from_texts(files), &RenderOptions::default()) else {
        panic!("the manifests are sound")
    };
    let mut scopes = Scopes::builtin();
    scopes.insert(GroupKind::new("example.com", "Widget"), Scope::Namespaced);
    scopes.insert(GroupKind::new("argoproj.io", "Workflow"), Scope::Namespaced);
    build_desired_set(complete, "default", &scopes).unwrap()
}

/// Returns an object as we applied it, with its own uid.
pub(super) fn seen(id: &ObjectId) -> Observed {
    Observed {
        applied_by_us: true,
        proven: true,
        ownership: Ownership::Ours,
        verification: Verification::Verified,
        ..Observed::new(&format!("uid of {}", id.as_str()), "7")
    }
}

/// Returns the observed set of these objects, as we applied them.
pub(super) fn there<'a>(ids: impl IntoIterator<Item = &'a str>) -> ObservedSet {
    let mut observed = ObservedSet::default();
    for text in ids {
        let id = id(text);
        observed.insert(id.clone(), seen(&id));
    }
    observed
}
