//! Fields that a write cannot set: generation, status, and values that the server assigns.
//!
//! In: the object before the write, if it existed, and the new object with defaults.
//! Out: the new object as it is stored. The main endpoint never changes the status, and the status
//! endpoint changes nothing else.

use serde_json::{Map, Value, json};

use super::Allocator;
use super::builtin::Kind;
use super::lifecycle;
use super::lifecycle::GenerationRule;
use super::{pods, services};

/// Prepares an object of a built-in kind for storage; `subresource` is empty for the object itself.
pub(crate) fn prepare(
    kind: &Kind,
    subresource: &str,
    old: Option<&Value>,
    new: &mut Value,
    allocate: &mut dyn Allocator,
) {
    let has_status = kind.subresource("status").is_some();
    match old {
        None => {
            if has_status && kind.kind != "Node" {
                let version = new["apiVersion"].as_str().unwrap_or_default().to_owned();
                new["status"] = lifecycle::first_status(kind.kind, &version);
            }
            set_first_generation(kind.kind, new);
            complete(kind.kind, new, allocate);
        }
        Some(old) if subresource == "status" => {
            let metadata = new.get("metadata").cloned().unwrap_or_default();
            let status = new.get("status").cloned();
            *new = old.clone();
            new["metadata"] = metadata;
            carry(new, old, "/metadata", lifecycle::metadata_kept_by_status_update(kind.kind));
            put(new, "status", status);
            carry(new, old, "/metadata", &["generation"]);
        }
        Some(old) => {
            if has_status {
                put(new, "status", old.get("status").cloned());
            }
            carry(new, old, "/metadata", &["generation"]);
            keep(kind.kind, subresource, old, new, allocate);
            move_generation(lifecycle::generation(kind.kind), old, new);
        }
    }
}

/// Prepares a custom resource; `has_status` is true if its version has the status subresource.
pub(crate) fn prepare_custom(has_status: bool, subresource: &str, old: Option<&Value>, new: &mut Value) {
    let Some(old) = old else {
        if has_status && let Some(new) = new.as_object_mut() {
            new.remove("status");
        }
        set_generation(new, 1);
        return;
    };
    if subresource == "status" {
        let status = new.get("status").cloned();
        let entries = new.pointer("/metadata/managedFields").cloned();
        *new = old.clone();
        put(new, "status", status);
        if let Some(metadata) = new.get_mut("metadata") {
            put(metadata, "managedFields", entries);
        }
        return;
    }
    if has_status {
        put(new, "status", old.get("status").cloned());
    }
    carry(new, old, "/metadata", &["generation"]);
    let changed = |left: &Value, right: &Value| {
        let parts =
            |it: &Value| it.as_object().map(|it| it.keys().cloned().collect::<Vec<_>>()).unwrap_or_default();
        let names = parts(left).into_iter().chain(parts(right));
        let own = |name: &String| !matches!(name.as_str(), "apiVersion" | "kind" | "metadata");
        names
            .filter(own)
            .filter(|name| !has_status || name != "status")
            .any(|name| left.get(&name) != right.get(&name))
    };
    if changed(old, new) {
        add_to_generation(old, new);
    }
}

fn set_first_generation(kind: &str, new: &mut Value) {
    match lifecycle::generation(kind) {
        GenerationRule::Absent | GenerationRule::Late(_) => {}
        GenerationRule::Constant
        | GenerationRule::Field(_)
        | GenerationRule::SpecAndAnnotations
        | GenerationRule::BodyAndLabels => set_generation(new, 1),
    }
}

fn move_generation(rule: GenerationRule, old: &Value, new: &mut Value) {
    let differs = |path: &str| old.pointer(path) != new.pointer(path);
    let body = |it: &Value| {
        let mut it = it.as_object().cloned().unwrap_or_default();
        it.remove("metadata");
        it
    };
    let moves = match rule {
        GenerationRule::Absent | GenerationRule::Constant => false,
        GenerationRule::Field(field) | GenerationRule::Late(field) => old.get(field) != new.get(field),
        GenerationRule::SpecAndAnnotations => differs("/spec") || differs("/metadata/annotations"),
        GenerationRule::BodyAndLabels => differs("/metadata/labels") || body(old) != body(new),
    };
    if moves {
        add_to_generation(old, new);
    }
}

fn add_to_generation(old: &Value, new: &mut Value) {
    let before = old.pointer("/metadata/generation").and_then(Value::as_i64).unwrap_or(0);
    set_generation(new, before.saturating_add(1));
}

fn set_generation(new: &mut Value, generation: i64) {
    if let Some(metadata) = new.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.insert("generation".to_owned(), generation.into());
    }
}

/// Adds the values that the server assigns to a new object.
fn complete(kind: &str, new: &mut Value, allocate: &mut dyn Allocator) {
    match kind {
        "Namespace" => add_to_list(new, "/spec", "finalizers", json!("kubernetes")),
        "Node" => {
            drop_config_source(new);
            let taint = json!({"effect": "NoSchedule", "key": "node.kubernetes.io/not-ready"});
            add_to_list(new, "/spec", "taints", taint);
        }
        "PersistentVolume" => {
            add_to_list(new, "/metadata", "finalizers", json!("kubernetes.io/pv-protection"));
            new["status"]["lastPhaseTransitionTime"] = allocate.now().into();
        }
        "PersistentVolumeClaim" => {
            add_to_list(new, "/metadata", "finalizers", json!("kubernetes.io/pvc-protection"));
            if let Some(spec) = new.get_mut("spec").and_then(Value::as_object_mut) {
                copy(spec, "dataSource", "dataSourceRef");
                copy(spec, "dataSourceRef", "dataSource");
            }
        }
        "VolumeAttributesClass" => {
            add_to_list(new, "/metadata", "finalizers", json!("kubernetes.io/vac-protection"));
        }
        "Pod" => pods::complete(new, allocate),
        "Service" => services::allocate_for(new, allocate),
        "Job" => select_own_pods(new),
        "DaemonSet" => set_template_generation(new, 1),
        "CustomResourceDefinition" => add_stored_version(new),
        "APIService" if new.pointer("/spec/service").is_none_or(Value::is_null) => {
            new["status"] = json!({"conditions": [{
                "type": "Available", "status": "True", "reason": "Local",
                "message": "Local APIServices are always available", "lastTransitionTime": allocate.now(),
            }]});
        }
        _ => {}
    }
}

/// Restores the fields that an update cannot change.
fn keep(kind: &str, subresource: &str, old: &Value, new: &mut Value, allocate: &mut dyn Allocator) {
    match kind {
        "Namespace" if subresource != "finalize" => carry(new, old, "/spec", &["finalizers"]),
        "Node" => drop_config_source(new),
        "CertificateSigningRequest" => put(new, "spec", old.get("spec").cloned()),
        "Service" => {
            services::keep_allocated(old, new);
            services::allocate_for(new, allocate);
        }
        "DaemonSet" => {
            let before = template_generation(old);
            let moved = old.pointer("/spec/template") != new.pointer("/spec/template");
            set_template_generation(new, before + i64::from(moved));
        }
        "CustomResourceDefinition" => add_stored_version(new),
        _ => {}
    }
}

/// Removes a field of a Node that Kubernetes accepts but no longer stores.
fn drop_config_source(node: &mut Value) {
    if let Some(spec) = node.get_mut("spec").and_then(Value::as_object_mut) {
        spec.remove("configSource");
    }
}

/// Sets the selector of a Job to its own uid, unless `manualSelector` is true.
fn select_own_pods(job: &mut Value) {
    if job.pointer("/spec/manualSelector") == Some(&json!(true)) {
        return;
    }
    let of = |field: &str| job["metadata"][field].as_str().unwrap_or_default().to_owned();
    let (uid, name) = (of("uid"), of("name"));
    let before = job.pointer("/spec/template/metadata/labels").cloned().unwrap_or_default();
    let mut labels = before.as_object().cloned().unwrap_or_default();
    for (key, value) in [("controller-uid", &uid), ("job-name", &name)] {
        labels.entry(key).or_insert_with(|| value.clone().into());
        labels.entry(format!("batch.kubernetes.io/{key}")).or_insert_with(|| value.clone().into());
    }
    if job.pointer("/metadata/labels").is_none_or(|own| *own == before) {
        job["metadata"]["labels"] = Value::Object(labels.clone());
    }
    let selector = &mut job["spec"]["selector"];
    if !selector.is_object() {
        *selector = json!({});
    }
    selector["matchLabels"]["batch.kubernetes.io/controller-uid"] = uid.into();
    job["spec"]["template"]["metadata"]["labels"] = Value::Object(labels);
}

const TEMPLATE_GENERATION: &str = "deprecated.daemonset.template.generation";

fn template_generation(set: &Value) -> i64 {
    let written = set["metadata"]["annotations"][TEMPLATE_GENERATION].as_str();
    written.and_then(|it| it.parse().ok()).unwrap_or(0)
}

fn set_template_generation(set: &mut Value, least: i64) {
    let generation = if least == 1 { template_generation(set).max(1) } else { least };
    set["metadata"]["annotations"][TEMPLATE_GENERATION] = generation.to_string().into();
}

/// Adds the storage version to `storedVersions`: a definition lists every version in which objects
/// were ever stored.
fn add_stored_version(definition: &mut Value) {
    let versions = definition["spec"]["versions"].as_array();
    let stored = versions.into_iter().flatten().find(|it| it["storage"] == true).map(|it| it["name"].clone());
    let Some(stored) = stored else { return };
    let known = &mut definition["status"]["storedVersions"];
    match known.as_array_mut() {
        Some(known) if known.contains(&stored) => {}
        Some(known) => known.push(stored),
        None => *known = json!([stored]),
    }
}

/// Adds an item to a list unless it is in there already.
fn add_to_list(object: &mut Value, holder: &str, field: &str, item: Value) {
    let Some(holder) = object.pointer_mut(holder).and_then(Value::as_object_mut) else { return };
    let list = holder.entry(field).or_insert(Value::Null);
    match list.as_array_mut() {
        Some(items) if items.contains(&item) => {}
        Some(items) => items.push(item),
        None => *list = json!([item]),
    }
}

fn copy(holder: &mut Map<String, Value>, from: &str, to: &str) {
    // A reference to another namespace cannot be expressed in the older field.
    if let Some(value) = holder.get(from).filter(|it| !it.is_null() && it.get("namespace").is_none()).cloned()
    {
        holder.entry(to).or_insert(value);
    }
}

/// Copies fields of a map from the old object, and removes those that it does not have.
fn carry(new: &mut Value, old: &Value, holder: &str, fields: &[&str]) {
    let Some(target) = new.pointer_mut(holder) else { return };
    for field in fields {
        put(target, field, old.pointer(holder).and_then(|it| it.get(*field)).cloned());
    }
}

fn put(holder: &mut Value, field: &str, value: Option<Value>) {
    let Some(holder) = holder.as_object_mut() else { return };
    match value {
        Some(value) => {
            holder.insert(field.to_owned(), value);
        }
        None => {
            holder.remove(field);
        }
    }
}
