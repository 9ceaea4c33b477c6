//! Converts an Argo CD ApplicationSet to a SyncSet.
//!
//! In: the ApplicationSet. Out: the SyncSet, field by field. The template is converted as an
//! Application, with a mark in the place of each placeholder; a field in which a mark is found then
//! becomes an expression. What an expression must not set, such as an address, is refused by the
//! name of its field. The SyncSet is compiled as the daemon does, so that none is shown that the
//! daemon refuses.

use serde_json::{Map, Value, json};

use super::set_generators::{ConvertedGenerators, convert_generators};
use super::set_placeholders::{Piece, expression};
use super::sync_builder::{SyncBuilder, is_set, text};
use super::template_marks::TemplateMarks;
use super::{Adoption, FieldRemark, OldResource, RequestedSync, Tool, argocd};
use crate::api::SyncSet;
use crate::sync_set::CompiledSet;

/// Longest name of a SyncSet.
const MAX_NAME: usize = 30;
/// Names that Argo CD has for the cluster in which it runs.
const OWN_CLUSTER: [&str; 2] = ["https://kubernetes.default.svc", "in-cluster"];
/// The Secret of the cluster, in a Sync.
const CLUSTER: &str = "/spec/cluster/secretRef/name";
/// Known fields.
const SPEC: [&str; 10] = [
    "applyNestedSelectors",
    "generators",
    "goTemplate",
    "goTemplateOptions",
    "ignoreApplicationDifferences",
    "preservedFields",
    "strategy",
    "syncPolicy",
    "template",
    "templatePatch",
];
const POLICY: [&str; 2] = ["applicationsSync", "preserveResourcesOnDeletion"];
const TEMPLATE: [&str; 2] = ["metadata", "spec"];
const METADATA: [&str; 5] = ["annotations", "finalizers", "labels", "name", "namespace"];
/// Annotations of Argo CD about notifications.
const NOTIFICATIONS: &str = "notifications.argoproj.io/";

/// Converts an ApplicationSet.
pub fn adopt_set(set: &Value, wanted: &RequestedSync) -> Adoption {
    let spec = &set["spec"];
    let mut draft = SyncBuilder::new(wanted.clone());
    draft.mark_unknown_lost(spec, "spec", &SPEC);
    let strategy = text(spec, "/strategy/type");
    if !["", "AllAtOnce"].contains(&strategy) || spec["strategy"].as_object().is_some_and(|all| all.len() > 1)
    {
        draft.refuse("spec.strategy", "all Syncs of a SyncSet take up a commit at once: write dependsOn into a template of later ones, or leave the steps out");
    }
    if is_set(&spec["templatePatch"]) {
        draft.refuse(
            "spec.templatePatch",
            "text is not patched: write the fields into template, and set those that differ",
        );
    }
    if is_set(&spec["ignoreApplicationDifferences"]) {
        let why = "fields of the template are repaired on each Sync; other fields of a Sync, and suspend, stay as people write them";
        draft.mark_lost("spec.ignoreApplicationDifferences", why);
    }
    let found = convert_generators(spec, &mut draft);
    if found.has_clusters {
        let why = format!(
            "clusters are the Secrets with these labels in the namespace {} of the SyncSet, by the names of the Secrets, which may be others than Argo CD shows: copy them there, or choose their namespace with --sync-namespace; Applications of other clusters are stopped by hand",
            wanted.sync.namespace
        );
        draft.mark_lost("spec.generators.clusters", why);
    }
    let mut marks = TemplateMarks::new(&found.names);
    let mut new = json!({"generators": found.generators});
    convert_template(set, (&found, &mut marks), (&mut new, &mut draft));
    if let Some(interval) = found.interval() {
        new["interval"] = interval.into();
    }
    convert_policy(&spec["syncPolicy"], &mut new, &mut draft);
    let (name, namespace) = (&wanted.sync.name, &wanted.sync.namespace);
    if name.len() > MAX_NAME {
        let why = format!("a SyncSet has a name of at most {MAX_NAME} characters: choose one with --sync");
        draft.refuse("metadata.name", why);
    }
    let sync = json!({
        "apiVersion": "moorline.dev/v1alpha1", "kind": "SyncSet",
        "metadata": {"name": name, "namespace": namespace}, "spec": new,
    });
    let mut adoption = Adoption { sync, lost: draft.lost, refused: draft.refused };
    check(&mut adoption);
    adoption
}

/// Compiles the SyncSet, unless it is refused anyway.
fn check(adoption: &mut Adoption) {
    if !adoption.refused.is_empty() {
        return;
    }
    let errors = match serde_json::from_value::<SyncSet>(adoption.sync.clone()) {
        Ok(set) => CompiledSet::compile(&set, &adoption.sync).err().unwrap_or_default(),
        Err(error) => vec![error.to_string()],
    };
    let refuse = |why: String| FieldRemark { field: "the SyncSet".into(), why: why.into() };
    adoption.refused.extend(errors.into_iter().map(refuse));
}

fn convert_policy(policy: &Value, new: &mut Value, draft: &mut SyncBuilder) {
    draft.mark_unknown_lost(policy, "spec.syncPolicy", &POLICY);
    if policy["preserveResourcesOnDeletion"] == Value::Bool(true) {
        new["onDelete"] = "Orphan".into();
    }
    let allowed = text(policy, "/applicationsSync");
    if ["create-only", "create-update"].contains(&allowed) {
        new["prune"] = json!({"enabled": false});
    }
    if ["create-only", "create-delete"].contains(&allowed) {
        let why =
            "the Syncs of a SyncSet are also updated: suspend the SyncSet while they are not meant to be";
        draft.mark_lost("spec.syncPolicy.applicationsSync", why);
    }
}

/// Converts the template to `name`, `template` and `set` of a SyncSet.
fn convert_template(
    old: &Value,
    (found, marks): (&ConvertedGenerators, &mut TemplateMarks<'_>),
    (new, draft): (&mut Value, &mut SyncBuilder),
) {
    let template = &old["spec"]["template"];
    draft.mark_unknown_lost(template, "spec.template", &TEMPLATE);
    draft.mark_unknown_lost(&template["metadata"], "spec.template.metadata", &METADATA);
    let set_name = draft.requested.sync.name.clone();
    new["name"] = name_of(text(template, "/metadata/name"), &set_name, found, draft).into();
    if is_set(&template["metadata"]["finalizers"]) {
        let why = "a Sync that is deleted leaves its objects: write deletionPolicy: Delete into the template to delete them";
        draft.mark_lost("spec.template.metadata.finalizers", why);
    }
    if is_set(&template["metadata"]["namespace"]) {
        draft.mark_lost("spec.template.metadata.namespace", "the Syncs are in the namespace of the SyncSet");
    }
    let mut marked = marks.mark("spec.template", template);
    let takes_cluster = cluster_of(&mut marked, template, found, draft);
    let (sync, told) = convert_marked(&marked, draft);
    let metadata = metadata_of(&marked);
    let mut whole = json!({"spec": sync});
    if metadata.values().any(is_set) {
        whole["metadata"] = metadata.into();
    }
    let mut fields = marks.take_fields(&mut whole);
    if takes_cluster {
        fields.push(json!({"field": CLUSTER, "value": "params.cluster.name"}));
    }
    draft.lost.extend(marks.restored(told.lost));
    draft.refused.extend(marks.restored(told.refused));
    draft.refused.append(&mut marks.refused);
    draft.lost.append(&mut marks.lost);
    new["template"] = whole;
    if !fields.is_empty() {
        new["set"] = fields.into();
    }
}

/// Converts the template, which has a mark for each placeholder, as an Application.
fn convert_marked(marked: &Value, draft: &SyncBuilder) -> (Value, SyncBuilder) {
    let notifications = marked.pointer("/metadata/annotations").and_then(Value::as_object);
    let notifications: Map<String, Value> = notifications
        .into_iter()
        .flatten()
        .filter(|(key, _)| key.starts_with(NOTIFICATIONS))
        .map(|(key, value)| (key.clone(), value.clone()))
        .collect();
    let application = json!({
        "metadata": {"name": text(marked, "/metadata/name"), "annotations": notifications},
        "spec": marked["spec"],
    });
    let old = OldResource {
        tool: Tool::ArgoCd,
        body: &application,
        repository: None,
        included: &[],
        generator: None,
        chart: None,
        chart_source: None,
        parent: None,
        application_set: None,
        adopted: std::collections::BTreeMap::new(),
    };
    let mut inner = SyncBuilder::new(draft.requested.clone());
    argocd::convert_application(&old, &mut inner);
    for remark in inner.lost.iter_mut().chain(&mut inner.refused) {
        remark.field = format!("spec.template.{}", remark.field).into();
    }
    (inner.spec.take(), inner)
}

/// Returns the labels and annotations of each Sync.
fn metadata_of(marked: &Value) -> Map<String, Value> {
    let place = |place: &str| -> Option<(String, Value)> {
        let all = marked.pointer(&format!("/metadata/{place}"))?.as_object()?;
        let kept = all.iter().filter(|(key, _)| !key.contains("argoproj.io/"));
        let kept: Map<String, Value> = kept.map(|(key, value)| (key.clone(), value.clone())).collect();
        Some((place.to_owned(), kept.into())).filter(|(_, kept)| is_set(kept))
    };
    ["labels", "annotations"].into_iter().filter_map(place).collect()
}

/// Returns the expression for the last part of a Sync's name, which begins with that of the set.
fn name_of(name: &str, set: &str, found: &ConvertedGenerators, draft: &mut SyncBuilder) -> String {
    match found.names.read(name) {
        Ok(mut pieces) => {
            if pieces.len() > 1
                && let Some(Piece::Text(first)) = pieces.first_mut()
                && let Some(rest) = first.strip_prefix(set).and_then(|rest| rest.strip_prefix('-'))
            {
                *first = rest.to_owned();
                pieces.retain(|piece| *piece != Piece::Text(String::new()));
            }
            expression(&pieces)
        }
        Err(why) => {
            draft.refuse("spec.template.metadata.name", why);
            "''".to_owned()
        }
    }
}

/// Removes the cluster of the template where a generator gives it; true if each Sync has that
/// cluster.
fn cluster_of(
    marked: &mut Value,
    template: &Value,
    found: &ConvertedGenerators,
    draft: &mut SyncBuilder,
) -> bool {
    let mut takes_cluster = false;
    for field in ["server", "name"] {
        let given = text(template, &format!("/spec/destination/{field}"));
        if !given.contains("{{") {
            continue;
        }
        let pieces = found.names.read(given).unwrap_or_default();
        let cel = if pieces.len() == 1 { expression(&pieces) } else { String::new() };
        let is_own = |element: &Map<String, Value>| {
            let value = cel.strip_prefix("params.").and_then(|name| element.get(name)?.as_str());
            value.is_some_and(|value| OWN_CLUSTER.contains(&value))
        };
        if cel == "params.cluster.name" {
            takes_cluster = true;
        } else if found.elements.is_empty() || !found.elements.iter().all(is_own) {
            let why = "the cluster of a Sync is a literal, or the Secret that a clusters generator found: select the Secrets of the clusters by labels";
            draft.refuse(format!("spec.template.spec.destination.{field}"), why);
        }
        if let Some(destination) = marked.pointer_mut("/spec/destination").and_then(Value::as_object_mut) {
            destination.remove(field);
        }
    }
    takes_cluster
}
