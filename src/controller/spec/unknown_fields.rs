//! Fields of a Sync that this version does not know.
//!
//! In: the spec of a Sync, as JSON. Out: the first field that the schema of this version does not
//! have, and the one that may be meant. The API server drops such a field, unless its
//! CustomResourceDefinition is of a newer version: a daemon that ignored it would do less than the
//! Sync asks for.

use serde_json::Value;

use super::{SpecError, refuse};
use crate::api::{SyncSpec, definition};
use crate::did_you_mean::nearest_name;

/// JSON pointer to the schema of `spec` in the definition of Syncs.
const SCHEMA: &str = "/spec/versions/0/schema/openAPIV3Schema/properties/spec";

/// Field that is not in the schema.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct UnknownField {
    /// Its path, such as `spec.prune.enable`.
    pub(crate) path: String,
    /// The field beside it with a similar name.
    pub(crate) meant: Option<Box<str>>,
}

/// Finds the first unknown field of a spec.
pub(crate) fn find_unknown_field(spec: &Value) -> Option<UnknownField> {
    let definition = definition().ok()?;
    unknown_below("spec", spec, definition.pointer(SCHEMA)?)
}

/// Refuses a Sync with an unknown field. It costs no schema if every field was read.
pub(crate) fn check_fields(sync: &Value, read: &SyncSpec) -> Result<(), SpecError> {
    let Some(given) = sync.get("spec") else { return Ok(()) };
    let Some(UnknownField { path, .. }) = find_unread_field(given, read) else { return Ok(()) };
    let version = env!("CARGO_PKG_VERSION");
    refuse(
        path,
        format!(
            "Moorline {version} does not know this field, which the CustomResourceDefinition has: remove it from the Sync, \
             or run the Moorline that knows it"
        ),
    )
}

fn find_unread_field(given: &Value, read: &SyncSpec) -> Option<UnknownField> {
    let read = serde_json::to_value(read).ok()?;
    if is_within(given, &read) { None } else { find_unknown_field(given) }
}

/// True if every field that holds something is in the other value. A field that holds nothing may
/// be left out there.
fn is_within(given: &Value, read: &Value) -> bool {
    match (given, read) {
        (Value::Object(given), Value::Object(read)) => given
            .iter()
            .all(|(key, value)| read.get(key).map_or(is_empty(value), |read| is_within(value, read))),
        (Value::Array(given), Value::Array(read)) => {
            given.len() == read.len() && given.iter().zip(read).all(|(given, read)| is_within(given, read))
        }
        (Value::Object(_) | Value::Array(_), _) => false,
        _ => true,
    }
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Array(items) => items.is_empty(),
        Value::Object(fields) => fields.is_empty(),
        Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
    }
}

fn unknown_below(path: &str, value: &Value, schema: &Value) -> Option<UnknownField> {
    match value {
        Value::Array(items) => {
            let below = |(at, item)| unknown_below(&format!("{path}[{at}]"), item, schema.get("items")?);
            items.iter().enumerate().find_map(below)
        }
        Value::Object(fields) => {
            let known = schema.get("properties")?.as_object()?;
            fields.iter().find_map(|(key, value)| match known.get(key) {
                Some(schema) => unknown_below(&format!("{path}.{key}"), value, schema),
                None => Some(UnknownField {
                    path: format!("{path}.{key}"),
                    meant: nearest_name(key, known.keys().map(String::as_str)).map(Box::from),
                }),
            })
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_first_field_that_is_not_in_the_schema_is_found() {
        let check = |over: Value, expect: Option<&str>| {
            let mut spec = json!({"source": {"git": {"url": "https://host/a.git"}}});
            spec.as_object_mut().unwrap().extend(over.as_object().unwrap().clone());
            let read: SyncSpec = serde_json::from_value(spec.clone()).unwrap();
            let found = find_unread_field(&spec, &read);
            assert_eq!(found, find_unknown_field(&spec), "{over}");
            assert_eq!(found.map(|it| it.path).as_deref(), expect, "{over}");
        };
        check(json!({}), None);
        check(json!({"path": "./a", "targetNamespace": null, "dependsOn": [], "interval": "60s"}), None);
        check(json!({"prune": {"enabled": false, "budget": {}}, "render": {"helm": {"values": {}}}}), None);
        check(json!({"render": {"helm": {"values": {"anything": {"goes": [1]}}}}}), None);
        check(json!({"render": {"substitute": {"vars": {"ANY": "name"}}}}), None);
        check(json!({"future": "on"}), Some("spec.future"));
        check(json!({"prune": {"enabled": true, "guard": "Strict"}}), Some("spec.prune.guard"));
        check(
            json!({"dependsOn": [{"name": "a"}, {"name": "b", "until": "Healthy"}]}),
            Some("spec.dependsOn[1].until"),
        );
        check(json!({"render": {"cue": {"strict": true}}}), Some("spec.render.cue"));
    }

    #[test]
    fn an_unknown_field_is_refused_with_a_remedy() {
        let sync = json!({"spec": {"source": {"git": {"url": "https://host/a.git"}}, "future": true}});
        let read: SyncSpec = serde_json::from_value(sync["spec"].clone()).unwrap();
        let refusal = check_fields(&sync, &read).unwrap_err().to_string();
        assert!(
            refusal.starts_with("spec.future: Moorline ") && refusal.contains("remove it from the Sync"),
            "{refusal}"
        );
        assert_eq!(check_fields(&json!({}), &read), Ok(()));
    }
}
