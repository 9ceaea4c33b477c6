//! Conversion of field sets to `fieldsV1`.

use serde_json::{Map, Value};

use super::Node;

pub(super) fn fields_of(node: &Node) -> Map<String, Value> {
    let mut fields = Map::new();
    // An owned leaf is an empty object; "." marks ownership only where there are children.
    if node.owned && !node.children.is_empty() {
        fields.insert(".".to_owned(), Value::Object(Map::new()));
    }
    for (element, inner) in &node.children {
        let mut key = String::new();
        element.write_key(&mut key);
        fields.insert(key, Value::Object(fields_of(inner)));
    }
    fields
}

pub(super) fn is_written(node: &Node, fields: &Value, is_root: bool, key: &mut String) -> bool {
    let Some(fields) = fields.as_object() else { return false };
    if node.children.is_empty() {
        return fields.is_empty() && (node.owned || is_root);
    }
    fields.len() == node.children.len() + usize::from(node.owned)
        && fields.contains_key(".") == node.owned
        && node.children.iter().all(|(element, inner)| {
            key.clear();
            element.write_key(key);
            fields.get(key.as_str()).is_some_and(|fields| is_written(inner, fields, false, key))
        })
}

pub(super) fn meets(node: &Node, fields: &Value, key: &mut String) -> bool {
    let Some(fields) = fields.as_object() else { return false };
    node.children.iter().any(|(element, inner)| {
        key.clear();
        element.write_key(key);
        let Some(below) = fields.get(key.as_str()) else { return false };
        let is_owned = below.as_object().is_none_or(|below| below.is_empty() || below.contains_key("."));
        inner.owned && is_owned || meets(inner, below, key)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::FieldSet;
    use serde_json::json;

    #[test]
    fn a_set_is_written_as_it_is_read() {
        let fields = json!({
            "f:metadata": {"f:annotations": {".": {}, "f:a.b/c": {}}, "f:finalizers": {".": {}, "v:\"x\"": {}, "v:\"a\\u003cb\"": {}}},
            "f:ports": {"k:{\"containerPort\":80,\"protocol\":\"TCP\"}": {".": {}, "f:containerPort": {}}},
            "f:numbers": {"v:1": {}, "v:true": {}}, "f:list": {"i:3": {}}, "z:later": {},
        });
        let set = FieldSet::parse(&fields);
        assert_eq!(set.to_fields_v1(), fields);
        assert!(
            set.equals_fields_v1(&fields)
                && set.shares_fields_with(&fields)
                && !set.equals_fields_v1(&json!({}))
        );
        for other in [
            json!({"f:metadata": {"f:annotations": {}}}),
            json!({"f:ports": {"k:{\"containerPort\":80,\"protocol\":\"TCP\"}": {"f:containerPort": {}}}}),
        ] {
            assert!(set.shares_fields_with(&other) && !set.equals_fields_v1(&other));
            let other = FieldSet::parse(&other);
            assert!(other.shares_fields_with(&fields) && !other.equals_fields_v1(&fields));
        }
        assert!(!set.shares_fields_with(&json!({"f:metadata": {}, "f:ports": {".": {}}, "f:other": {}})));
        assert!(FieldSet::default().equals_fields_v1(&json!({})));
        assert!(FieldSet::default().to_fields_v1().as_object().is_some_and(Map::is_empty));
    }
}
