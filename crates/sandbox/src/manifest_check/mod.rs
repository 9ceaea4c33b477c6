//! Validates manifests without a cluster: types, unknown fields, required fields, values.
//!
//! In: an object, and the CustomResourceDefinitions at hand.
//! Out: a [`Verdict`]. Built-in kinds are validated by the tables of the sandbox, which were
//! recorded from a real API server. An object of a kind without a schema is `Unchecked`, never
//! valid.

mod findings;
mod mismatches;
mod path;

#[cfg(test)]
mod tests;

use std::collections::HashMap;

use serde_json::{Map, Value, json};

use super::kinds::{self, Allocator};
use super::schema::Schema;
use crate::cel_rules::CelRules;
pub use findings::Finding;
pub use path::{PathStep, path_steps};

/// Reasons after which CEL rules are not evaluated: the object does not have the types that they
/// expect.
const BLIND: [&str; 5] = [
    "FieldValueNotSupported",
    "FieldValueRequired",
    "FieldValueTooLong",
    "FieldValueTooMany",
    "FieldValueTypeInvalid",
];

/// Maximum number of findings for one object.
const MAX_FINDINGS: usize = 50;

/// API group of CustomResourceDefinitions.
const EXTENSIONS: &str = "apiextensions.k8s.io";

/// Result for one object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// No problem was found.
    Valid,
    /// No schema is known for the kind; the text names it.
    Unchecked(String),
    /// The problems that were found.
    Invalid(Vec<Finding>),
}

/// Known schemas of custom resources.
#[derive(Debug, Default)]
pub struct Schemas {
    /// Versions of the custom resources, by group and kind.
    custom: HashMap<(Box<str>, Box<str>), Vec<Version>>,
}

/// One version of a custom resource.
#[derive(Debug)]
struct Version {
    name: Box<str>,
    is_served: bool,
    has_status: bool,
    /// `None` if the definition has no schema.
    schema: Option<(Schema, CelRules)>,
}

impl Schemas {
    /// Adds the kind of a CustomResourceDefinition; a later definition of the same kind replaces an
    /// earlier one.
    pub fn add_definition(&mut self, object: &Map<String, Value>) {
        if !is_definition(object) {
            return;
        }
        let text = |value: &Value| value.as_str().unwrap_or_default().into();
        let Some(spec) = object.get("spec") else { return };
        let versions = spec["versions"].as_array().map(Vec::as_slice).unwrap_or_default();
        let version = |version: &Value| {
            let schema = version["schema"].get("openAPIV3Schema").filter(|schema| schema.is_object());
            Version {
                name: text(&version["name"]),
                is_served: version["served"] == true,
                has_status: version["subresources"]["status"].is_object(),
                schema: schema.map(|schema| (Schema::of_definition(schema), CelRules::new(schema))),
            }
        };
        let key = (text(&spec["group"]), text(&spec["names"]["kind"]));
        self.custom.insert(key, versions.iter().map(version).collect());
    }

    /// Validates an object. If `hides` is true, the findings contain no values.
    pub fn check(&self, object: &Map<String, Value>, hides: bool) -> Verdict {
        let text = |field: &str| object.get(field).and_then(Value::as_str).unwrap_or_default();
        let (api_version, kind) = (text("apiVersion"), text("kind"));
        let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
        let object = Value::Object(object.clone());
        let found = match (kinds::find_kind(group, kind), Schema::builtin(group, version, kind)) {
            (Some(known), Some(schema)) => builtin(known, &schema, &object, hides),
            (Some(known), None) => {
                let served: Vec<String> = known.versions.iter().map(|it| in_group(group, it)).collect();
                let served = served.join(" and ");
                return Verdict::Unchecked(format!("{kind} of {api_version}; the known version is {served}"));
            }
            (None, _) => match self.custom.get(&(group.into(), kind.into())) {
                Some(versions) => match custom(versions, version, &object, hides) {
                    Some(found) => found,
                    None => return Verdict::Unchecked(format!("{kind} of {api_version}")),
                },
                None => return Verdict::Unchecked(format!("{kind} of {api_version}")),
            },
        };
        let mut found: Vec<Finding> =
            found.into_iter().filter(|found| !has_variable(found.value_in(&object))).collect();
        found.truncate(MAX_FINDINGS);
        if found.is_empty() { Verdict::Valid } else { Verdict::Invalid(found) }
    }
}

fn is_definition(object: &Map<String, Value>) -> bool {
    let version = object.get("apiVersion").and_then(Value::as_str).unwrap_or_default();
    let group = version.split_once('/').map(|(group, _)| group);
    group == Some(EXTENSIONS) && object.get("kind").is_some_and(|kind| kind == "CustomResourceDefinition")
}

fn in_group(group: &str, version: &str) -> String {
    if group.is_empty() { version.to_owned() } else { format!("{group}/{version}") }
}

/// A substitution variable may get any value, so its field is not judged.
fn has_variable(value: Option<&Value>) -> bool {
    value.and_then(Value::as_str).is_some_and(|text| text.contains("${"))
}

fn builtin(kind: &kinds::Kind, schema: &Schema, object: &Value, hides: bool) -> Vec<Finding> {
    let (mut found, fits) = mismatches::findings(schema, object, hides);
    if !fits {
        return found;
    }
    let mut new = identified(object, kind.namespaced);
    kinds::normalize(schema, kind.kind, &mut new);
    kinds::set_defaults(kind.group, kind.kind, &mut new);
    kinds::prepare(kind, "", None, &mut new, &mut PlaceholderAllocator);
    let causes = kinds::validate(kind, "", None, &new);
    // A missing selector is reported once, and not again for the labels that it does not match.
    let selects = new["spec"]["selector"].is_object();
    let follows = |it: &&kinds::Cause| !selects && it.message.contains("`selector` does not match");
    found.extend(
        causes
            .iter()
            .filter(|it| !follows(it))
            .map(|it| findings::finding_of_cause(it.reason, &it.message, &it.field, &new, hides)),
    );
    found
}

/// Validates a custom resource; `None` if its version has no schema.
fn custom(versions: &[Version], version: &str, object: &Value, hides: bool) -> Option<Vec<Finding>> {
    let served = versions.iter().filter(|known| known.is_served);
    let Some(version) = served.clone().find(|known| *known.name == *version) else {
        let names: Vec<&str> = served.map(|known| &*known.name).collect();
        return Some(vec![Finding::version(version, &names.join(", "))]);
    };
    let (schema, rules) = version.schema.as_ref()?;
    let (mut found, fits) = mismatches::findings(schema, object, hides);
    if !fits {
        return Some(found);
    }
    let mut new = identified(object, true);
    schema.prune(&mut new);
    schema.without_nulls(&mut new);
    schema.with_defaults(&mut new);
    kinds::prepare_custom(version.has_status, "", None, &mut new);
    let metadata = kinds::validate_custom(&new);
    let metadata = metadata.iter().map(|it| (it.reason, it.message.as_str(), it.field.as_str()));
    let problems = schema.validate(None, &new);
    let problems = problems.iter().map(|it| (it.reason, it.message.as_str(), it.field.as_str()));
    let causes: Vec<(&str, &str, &str)> = metadata.chain(problems).collect();
    let is_blind = causes.iter().any(|(reason, ..)| BLIND.contains(reason));
    found.extend(
        causes
            .into_iter()
            .map(|(reason, message, field)| findings::finding_of_cause(reason, message, field, &new, hides)),
    );
    if !is_blind && !rules.is_empty() {
        let broken = rules.evaluate(None, &new);
        found.extend(
            broken
                .problems
                .iter()
                .map(|it| findings::finding_of_cause(it.reason, &it.message, &it.field, &new, hides)),
        );
    }
    Some(found)
}

/// Adds the metadata that a server or a Sync sets.
fn identified(object: &Value, namespaced: bool) -> Value {
    let mut new = object.clone();
    if !new["metadata"].is_object() {
        new["metadata"] = json!({});
    }
    let metadata = &mut new["metadata"];
    metadata["uid"] = "00000000-0000-4000-8000-000000000000".into();
    if namespaced && !metadata["namespace"].is_string() {
        metadata["namespace"] = "default".into();
    }
    if !metadata["name"].is_string() && metadata["generateName"].is_string() {
        metadata["name"] = "generated".into();
    }
    new
}

/// Placeholders for values that a server allocates.
struct PlaceholderAllocator;

impl Allocator for PlaceholderAllocator {
    fn address(&mut self) -> String {
        "10.0.0.10".to_owned()
    }

    fn node_port(&mut self) -> u16 {
        30_000
    }

    fn suffix(&mut self) -> String {
        "xxxxx".to_owned()
    }

    fn now(&self) -> String {
        "2026-01-01T00:00:00Z".to_owned()
    }
}
