//! Converts the variables of a Kustomization to those of a Sync.
//!
//! In: `spec.postBuild`. Out: `spec.render.substitute`, and remarks about differences. Values of
//! Secrets are not read: only names are carried over.

use serde_json::{Map, Value, json};

use super::OldResource;
use super::sync_builder::{SyncBuilder, is_set, text};

/// Known fields. With the last, Flux replaces variables even if none is given; Moorline always
/// does.
const KNOWN: [&str; 3] = ["substitute", "substituteFrom", "substituteStrategy"];

pub(super) fn convert_post_build(old: &OldResource<'_>, draft: &mut SyncBuilder) {
    let build = &old.body["spec"]["postBuild"];
    draft.mark_unknown_lost(build, "spec.postBuild", &KNOWN);
    let always = text(build, "/substituteStrategy") == "Always";
    if !(is_set(&build["substitute"]) || is_set(&build["substituteFrom"]) || always) {
        return;
    }
    let mut substitute = Map::new();
    if let Some(vars) = build["substitute"].as_object().filter(|vars| !vars.is_empty()) {
        substitute.insert("vars".into(), vars.clone().into());
    }
    let from: Vec<Value> = build["substituteFrom"].as_array().into_iter().flatten().map(source).collect();
    let (own, namespace) = (text(old.body, "/metadata/namespace"), draft.requested.sync.namespace.clone());
    if !from.is_empty() && own != &*namespace {
        let names: Vec<String> =
            from.iter().map(|one| format!("{} {}", text(one, "/kind"), text(one, "/name"))).collect();
        let why =
            format!("these are read in {namespace}, where the Sync is: copy {} from {own}", names.join(", "));
        draft.mark_lost("spec.postBuild.substituteFrom", why);
    }
    if !from.is_empty() {
        substitute.insert("from".into(), from.into());
    }
    draft.spec["render"]["substitute"] = substitute.into();
    let why = "a variable without a value is an error here, as in Flux where it is strict (releases before 2.9 are not unless told to): write ${NAME:=} where there may be none";
    draft.mark_lost("spec.postBuild", why);
}

fn source(from: &Value) -> Value {
    let mut source = json!({"kind": from["kind"], "name": from["name"]});
    if from["optional"] == json!(true) {
        source["optional"] = true.into();
    }
    source
}
