//! A set of fields as `managedFields` has it.

use serde_json::{Map, Value};

use super::{FieldSet, Node};

impl FieldSet {
    /// The `fieldsV1` of the set.
    pub fn written(&self) -> Value {
        Value::Object(fields_of(&self.root))
    }
}

fn fields_of(node: &Node) -> Map<String, Value> {
    let mut fields = Map::new();
    // A place that is owned and holds nothing is said by being there.
    if node.owned && !node.children.is_empty() {
        fields.insert(".".to_owned(), Value::Object(Map::new()));
    }
    for (element, inner) in &node.children {
        fields.insert(element.written(), Value::Object(fields_of(inner)));
    }
    fields
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_set_is_written_as_it_is_read() {
        let fields = json!({
            "f:metadata": {"f:annotations": {".": {}, "f:a.b/c": {}}, "f:finalizers": {".": {}, "v:\"x\"": {}, "v:\"a\\u003cb\"": {}}},
            "f:ports": {"k:{\"containerPort\":80,\"protocol\":\"TCP\"}": {".": {}, "f:containerPort": {}}},
            "f:numbers": {"v:1": {}, "v:true": {}}, "f:list": {"i:3": {}}, "z:later": {},
        });
        let set = FieldSet::parse(&fields);
        assert_eq!(set.written(), fields);
        assert!(FieldSet::default().written().as_object().is_some_and(Map::is_empty));
    }
}
