//! What may be shown of an object: what Git wants, what is live, and where the two differ.
//!
//! In: an object that should exist, and a live one that was read because somebody looks at it. Out: the same without
//! whatever may be the value of a Secret. Of a Secret the keys are shown; of an object into which a value from one went,
//! nothing but what it is called; of one that Git has no more, too, because nobody knows any more what went into it.

use serde_json::{Map, Value};

use crate::desired::DesiredObject;
use crate::object::ObjectId;

/// Instead of a value.
pub const NOT_SHOWN: &str = "(not shown)";
/// The annotations that are ours, which hold nothing secret.
const OURS: &str = crate::api::KEY_PREFIX;
/// Where kubectl keeps a copy of all that was applied.
const COPY: &str = "kubectl.kubernetes.io/last-applied-configuration";

/// What may be shown of an object.
#[derive(Debug, Clone, PartialEq)]
pub struct Shown {
    /// Its body as far as it may be shown.
    pub body: Value,
    /// Why something is left out, as a sentence; empty where nothing is.
    pub left_out: &'static str,
}

/// One field that is not as Git says.
#[derive(Debug, Clone, PartialEq)]
pub struct Differs {
    /// Its path.
    pub path: String,
    /// The live value and the one in Git, each of which may be missing; none where they may not be shown.
    pub values: Option<(Option<Value>, Option<Value>)>,
}

/// Who wrote to the live object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Writer {
    /// The field manager.
    pub manager: String,
    /// When it wrote last.
    pub time: String,
    /// Which part of the object, such as `status`; empty for the whole.
    pub part: String,
}

/// A live object, as it was read because somebody looks at it.
#[derive(Debug, Clone, PartialEq)]
pub struct Seen {
    /// None where there is none.
    pub live: Option<Shown>,
    /// Where it is not as Git says.
    pub differences: Vec<Differs>,
    /// Who wrote to it.
    pub writers: Vec<Writer>,
}

const OF_A_SECRET: &str = "Values of Secrets are not shown.";
const OF_A_TAINTED_ONE: &str = "A value from a Secret went into it, so that its content is not shown.";
const OF_A_FORMER_ONE: &str =
    "Git has it no more, so that nobody can tell what came from a Secret: its content is not shown.";

impl Shown {
    /// What Git wants.
    pub fn wanted(wanted: &DesiredObject) -> Self {
        let body = wanted.body();
        match wanted.is_tainted() {
            true => Self { body: named(&body), left_out: OF_A_TAINTED_ONE },
            false => shown(&wanted.id, body),
        }
    }
}

/// What may be shown of a live object, and who wrote to it.
pub fn shown_live(
    id: &ObjectId,
    wanted: Option<&DesiredObject>,
    mut body: Map<String, Value>,
) -> (Shown, Vec<Writer>) {
    let metadata = body.get_mut("metadata").and_then(Value::as_object_mut);
    let managed = metadata.and_then(|metadata| metadata.remove("managedFields"));
    let text =
        |entry: &Value, key: &str| entry.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
    let writer = |entry: &Value| Writer {
        manager: text(entry, "manager"),
        time: text(entry, "time"),
        part: text(entry, "subresource"),
    };
    let writers = managed.as_ref().and_then(Value::as_array).map(|all| all.iter().map(writer).collect());
    let left_out = match wanted {
        Some(wanted) if wanted.is_tainted() => Some(OF_A_TAINTED_ONE),
        Some(_) => None,
        None => Some(OF_A_FORMER_ONE),
    };
    let shown = match left_out {
        Some(left_out) => Shown { body: named(&body), left_out },
        None => shown(id, body),
    };
    (shown, writers.unwrap_or_default())
}

/// The body of an object that is no secret, and what may be shown of one that is.
fn shown(id: &ObjectId, mut body: Map<String, Value>) -> Shown {
    let secret = id.is("", "Secret");
    if let Some(Value::Object(metadata)) = body.get_mut("metadata")
        && let Some(Value::Object(annotations)) = metadata.get_mut("annotations")
    {
        annotations.remove(COPY);
        // Tools write copies of what they have applied there.
        let foreign = annotations.iter_mut().filter(|(key, _)| secret && !key.starts_with(OURS));
        foreign.for_each(|(_, value)| *value = NOT_SHOWN.into());
    }
    if !secret {
        return Shown { body: Value::Object(body), left_out: "" };
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
    Shown { body: Value::Object(body), left_out: OF_A_SECRET }
}

/// What an object is called, and nothing else of it.
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
        assert_eq!(shown.left_out, OF_A_SECRET);
    }

    #[test]
    fn of_what_git_has_no_more_only_the_name_is_shown() {
        let id = ObjectId::parse("/ConfigMap|shop/old").unwrap();
        let body = map(json!({
            "apiVersion": "v1", "kind": "ConfigMap", "data": {"a": "hunter2"},
            "metadata": {"name": "old", "uid": "u", "annotations": {"a": "hunter2"},
                "managedFields": [{"manager": "kubectl", "time": "2026-01-01T00:00:00Z", "fieldsV1": {}}]},
        }));
        let (shown, writers) = shown_live(&id, None, body);
        assert!(!shown.body.to_string().contains("hunter2"));
        assert_eq!(shown.body["metadata"], json!({"name": "old", "uid": "u"}));
        let time = "2026-01-01T00:00:00Z".to_owned();
        assert_eq!(writers, [Writer { manager: "kubectl".into(), time, part: String::new() }]);
    }
}
