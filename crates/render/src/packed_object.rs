//! Stores the objects of a render as JSON text.
//!
//! In: an object. Out: the same with its body as JSON. A render holds all of its objects at the
//! same time, and as trees of maps they would take twenty times the memory of their texts.

use serde_json::{Map, Value};

use moorline_core::object::{Object, ObjectId, Origin};

/// An object of a render.
#[derive(Debug, Clone, PartialEq)]
pub struct PackedObject {
    /// Group, kind, namespace (as written, so possibly none) and name.
    pub id: ObjectId,
    /// Position of the object in its file.
    pub origin: Origin,
    /// A value from a Secret or of a decrypted file is in it, so its values are never shown.
    pub contains_secret: bool,
    version: Box<str>,
    body: Box<[u8]>,
}

impl PackedObject {
    pub(super) fn from_object(object: Object) -> Self {
        let Object { id, version, body, origin } = object;
        // Only a map with non-text keys cannot be serialized, and this one has text keys.
        Self {
            id,
            origin,
            contains_secret: false,
            version,
            body: serde_json::to_vec(&body).unwrap_or_default().into(),
        }
    }

    /// Returns the object marked as one whose values are never shown.
    pub(super) fn with_secret(self) -> Self {
        Self { contains_secret: true, ..self }
    }

    /// Size of the body in bytes.
    pub(super) fn size(&self) -> usize {
        self.body.len()
    }

    /// Returns the object with its body parsed.
    pub fn object(&self) -> Object {
        let mut reader = serde_json::Deserializer::from_slice(&self.body);
        // The depth of a manifest was checked when it was read.
        reader.disable_recursion_limit();
        let body: Map<String, Value> = serde::Deserialize::deserialize(&mut reader).unwrap_or_default();
        Object { id: self.id.clone(), version: self.version.clone(), body, origin: self.origin.clone() }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_object_is_the_same_after_it_was_packed() {
        let mut deep = json!([0.1, -0.0, 1e300, u64::MAX, i64::MIN, "\u{0}\u{85}é", null, {}, []]);
        (0..300).for_each(|_| deep = json!({ "in": deep }));
        let Value::Object(body) = json!({"kind": "ConfigMap", "data": deep}) else {
            unreachable!("a mapping")
        };
        let id = ObjectId::new("", "ConfigMap", "shop", "a").unwrap();
        let origin = Origin { file: "a.yaml".into(), document: 0, line: 1, item: None };
        let object = Object { id, version: "v1".into(), body, origin };
        assert_eq!(PackedObject::from_object(object.clone()).object(), object);
    }
}
