//! Generates the definitions from the types, and compares them with the files.
//!
//! In: the types of `sync.rs`, `status.rs`, `notifier.rs`, `sync_set.rs` and `change_window.rs`.
//! Out: the definitions as JSON. The derive macros generate it; this file removes what the API
//! server rejects or misreads. With MOORLINE_WRITE_DOCS=1 a test writes the files.

use std::path::Path;

use kube::CustomResourceExt as _;
use serde_json::{Map, Value, json};

use crate::{ChangeWindow, Notifier, Sync, SyncSet, VERSION_ANNOTATION};

/// JSON pointer to the schema inside the definition.
const SCHEMA: &str = "/spec/versions/0/schema/openAPIV3Schema";

fn definition() -> Result<Value, serde_json::Error> {
    completed(serde_json::to_value(Sync::crd())?)
}

fn notifier_definition() -> Result<Value, serde_json::Error> {
    completed(serde_json::to_value(Notifier::crd())?)
}

fn change_window_definition() -> Result<Value, serde_json::Error> {
    completed(serde_json::to_value(ChangeWindow::crd())?)
}

/// The definition of NamespaceChangeWindow is that of ChangeWindow in another scope, without a
/// selection of namespaces.
fn namespace_change_window_definition() -> Result<Value, serde_json::Error> {
    let mut definition = change_window_definition()?;
    definition["metadata"]["name"] = json!("namespacechangewindows.moorline.dev");
    definition["spec"]["scope"] = json!("Namespaced");
    let names = &mut definition["spec"]["names"];
    names["kind"] = json!("NamespaceChangeWindow");
    names["plural"] = json!("namespacechangewindows");
    names["singular"] = json!("namespacechangewindow");
    names["shortNames"] = json!(["ncw"]);
    if let Some(schema) = definition.pointer_mut(SCHEMA) {
        schema["description"] = json!(NAMESPACED_WINDOW);
        if let Some(Value::Object(fields)) = schema.pointer_mut("/properties/spec/properties") {
            fields.remove("namespaceSelector");
        }
    }
    Ok(definition)
}

/// Description of the namespaced window.
const NAMESPACED_WINDOW: &str = "A NamespaceChangeWindow narrows the times at which the Syncs of its namespace take up new revisions. It opens nothing that a ChangeWindow closes.";

fn sync_set_definition() -> Result<Value, serde_json::Error> {
    completed(serde_json::to_value(SyncSet::crd())?)
}

/// All definitions, in the order of [`super::definitions`].
fn definitions() -> Result<[Value; 5], serde_json::Error> {
    Ok([
        definition()?,
        notifier_definition()?,
        sync_set_definition()?,
        change_window_definition()?,
        namespace_change_window_definition()?,
    ])
}

fn completed(mut definition: Value) -> Result<Value, serde_json::Error> {
    // The version keeps an older program from overwriting the definition of a newer one.
    definition["metadata"]["annotations"] = json!({VERSION_ANNOTATION: env!("CARGO_PKG_VERSION")});
    if let Some(schema) = definition.pointer_mut(SCHEMA) {
        tidy(schema);
        // The server must not fill defaults into a status: it would claim facts that no daemon
        // wrote.
        if let Some(status) = schema.pointer_mut("/properties/status") {
            each(status, &mut |schema| drop(schema.remove("default")));
        }
    }
    Ok(definition)
}

/// Removes keywords that schemars generates and Kubernetes does not accept.
fn tidy(schema: &mut Value) {
    each(schema, &mut |schema| {
        schema.remove("title");
        // The server reads null in a field that may not be null as an absent field, which is
        // intended. Where null is allowed it is stored and keeps the default from being applied.
        schema.remove("nullable");
        if schema.get("format").and_then(Value::as_str).is_some_and(|format| format.starts_with("uint")) {
            schema.remove("format");
        }
        // Bounds of integers must be integers; schemars passes them through a type that has floats.
        for bound in ["minimum", "maximum"] {
            if let Some(number) = schema.get_mut(bound)
                && let Some(whole) =
                    number.as_f64().filter(|number| number.fract() == 0.0 && number.abs() < 1e9)
            {
                *number = Value::from(whole as i64);
            }
        }
        // Line breaks in doc comments are for the source; kubectl explain wraps lines itself.
        if let Some(Value::String(text)) = schema.get_mut("description") {
            let paragraphs = text.split("\n\n").map(|paragraph| paragraph.replace('\n', " "));
            *text = paragraphs.collect::<Vec<_>>().join("\n");
        }
    });
}

/// Calls `act` for the schema and every schema nested in it.
fn each(schema: &mut Value, act: &mut impl FnMut(&mut Map<String, Value>)) {
    let Value::Object(fields) = schema else { return };
    act(fields);
    if let Some(Value::Object(properties)) = fields.get_mut("properties") {
        properties.values_mut().for_each(|property| each(property, act));
    }
    for inner in ["items", "additionalProperties"] {
        if let Some(inner) = fields.get_mut(inner) {
            each(inner, act);
        }
    }
}

#[test]
fn the_files_are_those_of_the_types() {
    let root = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."));
    let is_written = std::env::var_os("MOORLINE_WRITE_DOCS").is_some_and(|value| value == "1");
    for definition in definitions().unwrap() {
        let name = definition["spec"]["names"]["plural"].as_str().unwrap();
        for folder in ["config/crd", "charts/moorline/crds"] {
            let file = root.join(folder).join(format!("moorline.dev_{name}.yaml"));
            let text = moorline_yaml::write(&definition);
            if is_written {
                std::fs::write(&file, text).unwrap();
                continue;
            }
            assert!(
                std::fs::read_to_string(&file).unwrap() == text,
                "{folder} is not that of the types; update it with\n\n    MOORLINE_WRITE_DOCS=1 cargo test -p moorline-api\n"
            );
        }
    }
}

#[test]
fn the_definitions_of_the_program_are_those_of_the_types() {
    assert_eq!(super::definitions().unwrap(), definitions().unwrap());
}

#[test]
fn every_field_is_explained_and_every_rule_says_what_to_write() {
    let mut fields = 0;
    let mut check = |schema: &mut Map<String, Value>| {
        for (name, property) in schema.get("properties").and_then(Value::as_object).into_iter().flatten() {
            let described = property["description"].as_str().is_some_and(|text| !text.contains('\n'));
            assert!(described, "{name} has no description of one paragraph: {property}");
            fields += 1;
        }
        let rules = schema.get("x-kubernetes-validations").and_then(Value::as_array);
        for rule in rules.into_iter().flatten() {
            assert!(rule["message"].as_str().is_some_and(|text| text.len() > 20), "{rule}");
        }
        assert!(!schema.contains_key("nullable") && !schema.contains_key("title"));
    };
    for mut definition in definitions().unwrap() {
        each(definition.pointer_mut(SCHEMA).unwrap(), &mut check);
    }
    assert!(fields > 60, "{fields}");
}

/// Fields of `spec` that have had a default since the first version.
const DEFAULTS_OF_FIRST_VERSION: [&str; 26] = [
    "conflicts",
    "createNamespace",
    "deletionPolicy",
    "drift",
    "drift.extraFields",
    "drift.mode",
    "health",
    "health.rules[].group",
    "health.wait",
    "ignoreFields[].target",
    "interval",
    "path",
    "prune",
    "prune.enabled",
    "render",
    "render.helm.skipCrds",
    "render.plain",
    "render.plain.recurse",
    "render.substitute.from[].optional",
    "render.type",
    "rollback",
    "rollback.onFailure",
    "source.git.submodules",
    "source.git.verify.mode",
    "suspend",
    "timeout",
];

fn defaults(path: &str, schema: &Value, found: &mut Vec<String>) {
    if schema.get("default").is_some() {
        found.push(path.to_owned());
    }
    let dot = if path.is_empty() { "" } else { "." };
    for (name, property) in schema.get("properties").and_then(Value::as_object).into_iter().flatten() {
        defaults(&format!("{path}{dot}{name}"), property, found);
    }
    for (inner, mark) in [("items", "[]"), ("additionalProperties", "{}")] {
        schema.get(inner).into_iter().for_each(|inner| defaults(&format!("{path}{mark}"), inner, found));
    }
}

/// The API server would write the default of a newer version into every Sync, and an older
/// daemon refuses Syncs with fields that it does not know.
#[test]
fn a_field_that_is_added_later_has_no_default_in_the_schema() {
    let (definition, mut found) = (definition().unwrap(), Vec::new());
    defaults("", definition.pointer(&format!("{SCHEMA}/properties/spec")).unwrap(), &mut found);
    assert!(!found.is_empty());
    // An older daemon refuses a Sync with mounts for the mounts, so their defaults harm nobody.
    found.retain(|path| !path.starts_with("source.mounts[]."));
    let added: Vec<&String> =
        found.iter().filter(|path| !DEFAULTS_OF_FIRST_VERSION.contains(&path.as_str())).collect();
    assert!(added.is_empty(), "let the daemon decide if the field is absent: {added:?}");
}

#[test]
fn the_definition_fits_into_the_annotation_of_a_client_side_apply() {
    let size = definition().unwrap().to_string().len();
    assert!(size < 200 * 1024, "{size} bytes; kubectl apply writes all of it into one annotation");
}
