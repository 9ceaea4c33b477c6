//! Redacts objects for the status page: the desired one, the live one, and their differences.
//!
//! In: a desired object, and a live one that was read for a viewer. Out: both without any value
//! that may come from a Secret. Of a Secret only the keys are shown; of an object that contains a
//! value from a Secret only its name; likewise of one that Git no longer has, because it is not
//! known any more if it contained such a value.

use serde_json::{Map, Value};

use crate::desired::DesiredObject;
use crate::object::ObjectId;

/// Placeholder for a value.
pub const NOT_SHOWN: &str = "(not shown)";
/// Prefix of our own annotations, which contain no secrets.
const OURS: &str = crate::api::KEY_PREFIX;
/// Annotation in which kubectl stores a copy of everything that was applied.
const COPY: &str = "kubectl.kubernetes.io/last-applied-configuration";

/// The part of an object that may be shown.
#[derive(Debug, Clone, PartialEq)]
pub struct RedactedBody {
    /// The redacted body.
    pub body: Value,
    /// The reason for a redaction, as a sentence; empty if nothing is redacted.
    pub omission: &'static str,
}

/// A field that differs from Git.
#[derive(Debug, Clone, PartialEq)]
pub struct LiveDifference {
    /// Its path.
    pub path: String,
    /// The live value and the one in Git, each of which may be missing; `None` if they must not be
    /// shown.
    pub values: Option<(Option<Value>, Option<Value>)>,
}

/// A manager that wrote to the live object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ObjectWriter {
    /// The field manager.
    pub manager: String,
    /// Time of its last write.
    pub time: String,
    /// The subresource, such as `status`; empty for the object itself.
    pub subresource: String,
}

/// A live object that was read for a viewer.
#[derive(Debug, Clone, PartialEq)]
pub struct LiveObject {
    /// `None` if it does not exist.
    pub live: Option<RedactedBody>,
    /// The fields that differ from Git.
    pub differences: Vec<LiveDifference>,
    /// The managers that wrote to it.
    pub writers: Vec<ObjectWriter>,
}

const OF_A_SECRET: &str = "Values of Secrets are not shown.";
const TAINTED_NOTE: &str = "It contains a secret value, so its content is not shown.";
const REMOVED_NOTE: &str = "It was removed from Git, so it is not known if it contains values from Secrets: its content is not shown.";

impl RedactedBody {
    /// Redacts a desired object.
    pub fn wanted(wanted: &DesiredObject) -> Self {
        let body = wanted.body();
        match wanted.is_tainted() {
            true => Self { body: named(&body), omission: TAINTED_NOTE },
            false => shown(&wanted.id, body),
        }
    }
}

/// Redacts a live object, and lists the managers that wrote to it.
pub fn redact_live(
    id: &ObjectId,
    wanted: Option<&DesiredObject>,
    mut body: Map<String, Value>,
) -> (RedactedBody, Vec<ObjectWriter>) {
    let metadata = body.get_mut("metadata").and_then(Value::as_object_mut);
    let managed = metadata.and_then(|metadata| metadata.remove("managedFields"));
    let text =
        |entry: &Value, key: &str| entry.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
    let writer = |entry: &Value| ObjectWriter {
        manager: text(entry, "manager"),
        time: text(entry, "time"),
        subresource: text(entry, "subresource"),
    };
    let writers = managed.as_ref().and_then(Value::as_array).map(|all| all.iter().map(writer).collect());
    let left_out = match wanted {
        Some(wanted) if wanted.is_tainted() => Some(TAINTED_NOTE),
        Some(_) => None,
        None => Some(REMOVED_NOTE),
    };
    let shown = match left_out {
        Some(left_out) => RedactedBody { body: named(&body), omission: left_out },
        None => shown(id, body),
    };
    (shown, writers.unwrap_or_default())
}

/// Redacts a body if it is a Secret's, and removes kubectl's copy.
fn shown(id: &ObjectId, mut body: Map<String, Value>) -> RedactedBody {
    let secret = id.is_kind("", "Secret");
    if let Some(Value::Object(metadata)) = body.get_mut("metadata")
        && let Some(Value::Object(annotations)) = metadata.get_mut("annotations")
    {
        annotations.remove(COPY);
        // Tools store copies of applied objects in annotations, which would show the values.
        let foreign = annotations.iter_mut().filter(|(key, _)| secret && !key.starts_with(OURS));
        foreign.for_each(|(_, value)| *value = NOT_SHOWN.into());
    }
    if !secret {
        return RedactedBody { body: Value::Object(body), omission: "" };
    }
    body.retain(|field, _| {
        ["apiVersion", "kind", "metadata", "type", "immutable", "data", "stringData"]
            .contains(&field.as_str())
    });
    for field in ["data", "stringData"] {
        match body.get_mut(field) {
            Some(Value::Object(values)) => values.values_mut().for_each(|value| *value = NOT_SHOWN.into()),
            Some(other) => *other = NOT_SHOWN.into(),
            None => {}
        }
    }
    RedactedBody { body: Value::Object(body), omission: OF_A_SECRET }
}

/// Reduces a body to the fields that name the object.
fn named(body: &Map<String, Value>) -> Value {
    let mut short = Map::new();
    for field in ["apiVersion", "kind"] {
        short.extend(body.get(field).map(|value| (field.to_owned(), value.clone())));
    }
    let metadata = body.get("metadata").and_then(Value::as_object);
    let kept = ["name", "namespace", "uid", "creationTimestamp", "deletionTimestamp"];
    let kept = kept.into_iter().filter_map(|field| Some((field.to_owned(), metadata?.get(field)?.clone())));
    short.insert("metadata".to_owned(), Value::Object(kept.collect()));
    Value::Object(short)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn map(value: Value) -> Map<String, Value> {
        match value {
            Value::Object(map) => map,
            _ => panic!("a literal mapping"),
        }
    }

    #[test]
    fn of_a_secret_the_keys_are_shown_and_nothing_else() {
        let id = ObjectId::parse("/Secret|shop/login").unwrap();
        let body = map(json!({
            "apiVersion": "v1", "kind": "Secret", "type": "Opaque",
            "metadata": {"name": "login", "annotations": {COPY: "hunter2", "tool/copy": "hunter2",
                "moorline.dev/wave": "1"}, "labels": {"a": "b"}},
            "data": {"password": "aHVudGVyMg=="}, "stringData": {"other": "hunter2"}, "odd": "hunter2",
        }));
        let shown = shown(&id, body);
        let text = shown.body.to_string();
        assert!(!text.contains("hunter2") && !text.contains("aHVudGVyMg"), "{text}");
        assert_eq!(shown.body["data"], json!({"password": NOT_SHOWN}));
        assert_eq!(shown.body["metadata"]["annotations"]["moorline.dev/wave"], "1");
        assert_eq!(shown.body["metadata"]["labels"], json!({"a": "b"}));
        assert_eq!(shown.omission, OF_A_SECRET);
    }

    #[test]
    fn of_what_git_has_no_more_only_the_name_is_shown() {
        let id = ObjectId::parse("/ConfigMap|shop/old").unwrap();
        let body = map(json!({
            "apiVersion": "v1", "kind": "ConfigMap", "data": {"a": "hunter2"},
            "metadata": {"name": "old", "uid": "u", "annotations": {"a": "hunter2"},
                "managedFields": [{"manager": "kubectl", "time": "2026-01-01T00:00:00Z", "fieldsV1": {}}]},
        }));
        let (shown, writers) = redact_live(&id, None, body);
        assert!(!shown.body.to_string().contains("hunter2"));
        assert_eq!(shown.body["metadata"], json!({"name": "old", "uid": "u"}));
        let time = "2026-01-01T00:00:00Z".to_owned();
        assert_eq!(writers, [ObjectWriter { manager: "kubectl".into(), time, subresource: String::new() }]);
    }
}
