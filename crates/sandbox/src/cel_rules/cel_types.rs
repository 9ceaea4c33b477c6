//! CEL types of the values of a schema.
//!
//! In: a structural schema.
//! Out: its CEL [`Kind`]; `None` for values without a type, which expressions cannot access.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Map, Value};

use moorline_cel::{FieldKind, Kind, ListKind, ListType};

/// Reserved words of CEL.
const RESERVED: [&str; 21] = [
    "true",
    "false",
    "null",
    "in",
    "as",
    "break",
    "const",
    "continue",
    "else",
    "for",
    "function",
    "if",
    "import",
    "let",
    "loop",
    "package",
    "namespace",
    "return",
    "var",
    "void",
    "while",
];

/// Returns the CEL type of a value; `whole` is true for an object with `apiVersion`, `kind` and
/// `metadata`.
pub(super) fn kind(schema: &Value, whole: bool) -> Option<Kind> {
    if schema["x-kubernetes-int-or-string"] == true {
        return Some(Kind::Any);
    }
    let inner = |schema: &Value| kind(schema, is_embedded(schema));
    Some(match schema["type"].as_str().unwrap_or_default() {
        _ if whole => fields(schema, true),
        "array" => {
            Kind::List(Arc::new(ListKind { items: inner(schema.get("items")?)?, list_type: merge(schema) }))
        }
        "object" => match schema.get("additionalProperties").filter(|values| values.is_object()) {
            Some(values) => Kind::Map(inner(values)?.into()),
            None => fields(schema, false),
        },
        "string" => match schema["format"].as_str().unwrap_or_default() {
            "byte" => Kind::Bytes,
            "duration" => Kind::Span,
            "date" | "date-time" => Kind::Time,
            _ => Kind::Text,
        },
        "boolean" => Kind::Bool,
        "number" => Kind::Double,
        "integer" => Kind::Int,
        _ => return None,
    })
}

/// True for an embedded Kubernetes object.
pub(super) fn is_embedded(schema: &Value) -> bool {
    schema["x-kubernetes-embedded-resource"] == true
}

fn fields(schema: &Value, whole: bool) -> Kind {
    let none = Map::new();
    let properties = schema["properties"].as_object().unwrap_or(&none);
    let mut fields = BTreeMap::new();
    let mut add = |name: &str, kind: Kind| {
        let Some(escaped) = escaped(name) else { return };
        let known = FieldKind { name: name.into(), kind };
        // After a dot, most reserved words are valid names.
        if RESERVED.contains(&name) {
            fields.insert(name.into(), known.clone());
        }
        fields.insert(escaped.into_boxed_str(), known);
    };
    for (name, property) in properties {
        if let Some(kind) = kind(property, is_embedded(property)) {
            add(name, kind);
        }
    }
    if whole {
        let text = |name: &str| (Box::from(name), FieldKind { name: name.into(), kind: Kind::Text });
        add("apiVersion", Kind::Text);
        add("kind", Kind::Text);
        add("metadata", Kind::Fields(Arc::new(["name", "generateName"].map(text).into())));
    }
    Kind::Fields(Arc::new(fields))
}

fn merge(schema: &Value) -> ListType {
    match schema["x-kubernetes-list-type"].as_str().unwrap_or_default() {
        "set" => ListType::Set,
        "map" => {
            let keys = schema["x-kubernetes-list-map-keys"].as_array().into_iter().flatten();
            ListType::Keyed(keys.filter_map(Value::as_str).map(Box::from).collect())
        }
        _ => ListType::Atomic,
    }
}

/// Returns the name of a field in expressions; `None` if it cannot be accessed.
pub(super) fn escaped(name: &str) -> Option<String> {
    if name.is_empty() || name.starts_with(|char: char| char.is_ascii_digit()) {
        return None;
    }
    if RESERVED.contains(&name) {
        return Some(format!("__{name}__"));
    }
    let (mut escaped, mut rest) = (String::with_capacity(name.len()), name);
    while let Some(char) = rest.chars().next() {
        let (taken, written) = match char {
            _ if rest.starts_with("__") => (2, "__underscores__"),
            '.' => (1, "__dot__"),
            '-' => (1, "__dash__"),
            '/' => (1, "__slash__"),
            char if char.is_ascii_alphanumeric() || char == '_' => (1, &rest[..1]),
            _ => return None,
        };
        escaped.push_str(written);
        rest = &rest[taken..];
    }
    Some(escaped)
}
