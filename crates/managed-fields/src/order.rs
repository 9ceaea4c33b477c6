//! Order in which the API server lists the fields of a set.
//!
//! At every level the owned positions come first, then the positions below them. Numbers in the
//! keys of list items are compared as numbers.

use std::cmp::Ordering;

use serde_json::Value;

use super::{Element, FieldPath, Node};

/// Collects the owned paths below a node, in order.
pub(super) fn collect_in_order<'a>(node: &'a Node, way: &mut Vec<&'a Element>, found: &mut Vec<FieldPath>) {
    let mut children: Vec<(&Element, &Node)> = node.children.iter().collect();
    children.sort_by(|one, other| compare(one.0, other.0));
    for (element, inner) in &children {
        if inner.owned {
            way.push(element);
            found.push(FieldPath::new(way));
            way.pop();
        }
    }
    for (element, inner) in children {
        way.push(element);
        collect_in_order(inner, way, found);
        way.pop();
    }
}

fn compare(one: &Element, other: &Element) -> Ordering {
    match (one, other) {
        (Element::Key(one), Element::Key(other)) | (Element::Value(one), Element::Value(other)) => {
            let read = |json: &str| serde_json::from_str(json).unwrap_or_default();
            compare_values(&read(one), &read(other))
        }
        (one, other) => one.cmp(other),
    }
}

fn compare_values(one: &Value, other: &Value) -> Ordering {
    let rank = |value: &Value| match value {
        Value::Number(_) => 0,
        Value::String(_) => 1,
        Value::Bool(_) => 2,
        Value::Array(_) => 3,
        Value::Object(_) => 4,
        Value::Null => 5,
    };
    match (one, other) {
        (Value::Number(one), Value::Number(other)) => {
            one.as_f64().partial_cmp(&other.as_f64()).unwrap_or(Ordering::Equal)
        }
        (Value::String(one), Value::String(other)) => one.cmp(other),
        (Value::Bool(one), Value::Bool(other)) => one.cmp(other),
        (Value::Object(one), Value::Object(other)) => {
            let pairs = one
                .iter()
                .zip(other)
                .map(|(one, other)| one.0.cmp(other.0).then_with(|| compare_values(one.1, other.1)));
            pairs.fold(Ordering::Equal, Ordering::then).then(one.len().cmp(&other.len()))
        }
        (one, other) => rank(one).cmp(&rank(other)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::FieldSet;
    use serde_json::json;

    #[test]
    fn owned_fields_come_before_what_is_in_them_and_numbers_are_numbers() {
        let set = FieldSet::parse(&json!({
            "f:z": {}, "f:m": {".": {}, "f:b": {}}, "f:a": {"f:x": {}},
            "f:p": {"k:{\"port\":443}": {".": {}}, "k:{\"port\":80}": {".": {}, "f:name": {}}},
            "f:s": {"v:10": {}, "v:9": {}, "v:\"a\"": {}},
        }));
        let shown: Vec<String> = set.in_server_order().iter().map(FieldPath::server_form).collect();
        let expect = [
            ".m",
            ".z",
            ".a.x",
            ".m.b",
            ".p[port=80]",
            ".p[port=443]",
            ".p[port=80].name",
            ".s[=9]",
            ".s[=10]",
            ".s[=\"a\"]",
        ];
        assert_eq!(shown, expect);
    }
}
