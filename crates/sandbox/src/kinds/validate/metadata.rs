//! Validation of metadata: names, labels, annotations, owners and finalizers.
//!
//! In: an object and its kind.
//! Out: the problems in its metadata.

use serde_json::{Value, json};

use super::name_formats;
use super::name_formats::SyntaxCheck;
use super::{Cause, invalid, is_empty, required};
use moorline_core::name_rules::lower_key;

/// Maximum size of all annotations together, in bytes.
const MAX_ANNOTATIONS: usize = 256 * 1024;

const NO_DOTS: &str = "must not contain dots";

/// Validates the metadata of an object.
pub(super) fn causes(kind: &str, object: &Value) -> Vec<Cause> {
    let mut causes = Vec::new();
    let metadata = &object["metadata"];
    name(kind, metadata, &mut causes);
    labels("metadata.labels", metadata.get("labels"), &mut causes);
    annotations("metadata.annotations", metadata.get("annotations"), &mut causes);
    owners(metadata, &mut causes);
    finalizers(metadata, &mut causes);
    causes
}

fn name(kind: &str, metadata: &Value, causes: &mut Vec<Cause>) {
    let at = "metadata.name";
    let Some(name) = metadata["name"].as_str().filter(|it| !it.is_empty()) else {
        return causes.push(required(at, "name or generateName is required"));
    };
    let rule: SyntaxCheck = match kind {
        "Namespace" | "Service" => |name| {
            let dots = name.contains('.').then(|| NO_DOTS.to_owned());
            dots.map_or_else(|| name_formats::label(name), |it| vec![it])
        },
        "ClusterRole" | "ClusterRoleBinding" | "Role" | "RoleBinding" | "CSINode" => {
            name_formats::path_segment
        }
        // The names of these kinds depend on their content and are checked with it.
        "APIService" | "IPAddress" => |_| Vec::new(),
        _ => name_formats::subdomain,
    };
    causes.extend(rule(name).iter().map(|words| invalid(at, Some(&json!(name)), words)));
}

/// Validates labels, or maps with the same syntax.
pub(super) fn labels(at: &str, labels: Option<&Value>, causes: &mut Vec<Cause>) {
    for (key, value) in labels.and_then(Value::as_object).into_iter().flatten() {
        causes.extend(name_formats::qualified(key).iter().map(|words| invalid(at, Some(&json!(key)), words)));
        let text = value.as_str().unwrap_or_default();
        causes.extend(name_formats::label_value(text).iter().map(|words| invalid(at, Some(value), words)));
    }
}

pub(super) fn annotations(at: &str, annotations: Option<&Value>, causes: &mut Vec<Cause>) {
    let mut size = 0;
    for (key, value) in annotations.and_then(Value::as_object).into_iter().flatten() {
        size += key.len() + value.as_str().map_or(0, str::len);
        // Annotation keys may have upper-case letters before the slash.
        let wrong = name_formats::qualified(&lower_key(key));
        causes.extend(wrong.iter().map(|words| invalid(at, Some(&json!(key)), words)));
    }
    if size > MAX_ANNOTATIONS {
        let message = format!("Too long: may not be more than {MAX_ANNOTATIONS} bytes");
        causes.push(Cause { reason: "FieldValueTooLong", message, field: at.to_owned() });
    }
}

fn owners(metadata: &Value, causes: &mut Vec<Cause>) {
    let at = "metadata.ownerReferences";
    let mut controller: Option<&Value> = None;
    for owner in metadata["ownerReferences"].as_array().into_iter().flatten() {
        for field in ["apiVersion", "kind", "name", "uid"] {
            if owner.get(field).is_none_or(is_empty) {
                let words =
                    if field == "apiVersion" { "version must not be empty" } else { "must not be empty" };
                causes.push(invalid(&format!("{at}.{field}"), Some(&json!("")), words));
            }
        }
        if owner["kind"] == "Event" && owner["apiVersion"] == "v1" {
            causes.push(invalid(at, Some(owner), "/v1, Kind=Event is disallowed from being an owner"));
        }
        if owner["controller"] == true {
            let named = |it: &Value| {
                format!("{}/{}", it["kind"].as_str().unwrap_or(""), it["name"].as_str().unwrap_or(""))
            };
            if let Some(first) = controller {
                let words = format!(
                    "Only one reference can have Controller set to true. Found \"true\" in references for {} and {}",
                    named(first),
                    named(owner)
                );
                causes.push(invalid(at, metadata.get("ownerReferences"), &words));
            }
            controller = Some(owner);
        }
    }
}

fn finalizers(metadata: &Value, causes: &mut Vec<Cause>) {
    let at = "metadata.finalizers";
    for (index, finalizer) in metadata["finalizers"].as_array().into_iter().flatten().enumerate() {
        let text = finalizer.as_str().unwrap_or_default();
        causes.extend(name_formats::qualified(text).iter().map(|words| invalid(at, Some(finalizer), words)));
        if !text.contains('/') && !matches!(text, "orphan" | "foregroundDeletion" | "kubernetes") {
            let words = "name is neither a standard finalizer name nor is it fully qualified";
            causes.push(invalid(&format!("{at}[{index}]"), Some(finalizer), words));
        }
    }
}
