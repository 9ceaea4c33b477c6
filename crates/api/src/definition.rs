//! The CustomResourceDefinition of `Sync`: what `moorline crd` prints, `config/crd/` holds and the tests install.
//!
//! In: the types of `sync.rs` and `status.rs`. Out: the definition as JSON. The derive says everything; here only
//! what the API server does not want, or would take for something else, is left out.

use kube::CustomResourceExt as _;
use serde_json::{Map, Value, json};

use super::{Sync, VERSION_ANNOTATION};

/// Where the schema lies in the definition.
const SCHEMA: &str = "/spec/versions/0/schema/openAPIV3Schema";

/// The CustomResourceDefinition.
pub fn definition() -> Result<Value, serde_json::Error> {
    let mut definition = serde_json::to_value(Sync::crd())?;
    // An older program does not overwrite what a newer one has written.
    definition["metadata"]["annotations"] = json!({VERSION_ANNOTATION: env!("CARGO_PKG_VERSION")});
    if let Some(schema) = definition.pointer_mut(SCHEMA) {
        tidy(schema);
        // A status is what the daemon wrote, and nothing that somebody fills in behind its back.
        if let Some(status) = schema.pointer_mut("/properties/status") {
            each(status, &mut |schema| drop(schema.remove("default")));
        }
    }
    Ok(definition)
}

/// Leaves out what schemars knows and Kubernetes does not.
fn tidy(schema: &mut Value) {
    each(schema, &mut |schema| {
        schema.remove("title");
        // The server takes null in a field that may not be null for a field that is absent, which is what is
        // meant; where null is allowed, it would be kept and stand in the way of the default.
        schema.remove("nullable");
        if schema.get("format").and_then(Value::as_str).is_some_and(|format| format.starts_with("uint")) {
            schema.remove("format");
        }
        // Bounds of integers are integers; the type that the definition passes through has floats for them.
        for bound in ["minimum", "maximum"] {
            if let Some(number) = schema.get_mut(bound)
                && let Some(whole) =
                    number.as_f64().filter(|number| number.fract() == 0.0 && number.abs() < 1e9)
            {
                *number = Value::from(whole as i64);
            }
        }
        // Lines are broken for who reads the code; kubectl breaks them for who reads the explanation.
        if let Some(Value::String(text)) = schema.get_mut("description") {
            let paragraphs = text.split("\n\n").map(|paragraph| paragraph.replace('\n', " "));
            *text = paragraphs.collect::<Vec<_>>().join("\n");
        }
    });
}

/// Every schema inside a schema, itself included.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_field_is_explained_and_every_rule_says_what_to_write() {
        let mut definition = definition().unwrap();
        let mut fields = 0;
        each(definition.pointer_mut(SCHEMA).unwrap(), &mut |schema| {
            for (name, property) in schema.get("properties").and_then(Value::as_object).into_iter().flatten()
            {
                let described = property["description"].as_str().is_some_and(|text| !text.contains('\n'));
                assert!(described, "{name} has no description of one paragraph: {property}");
                fields += 1;
            }
            let rules = schema.get("x-kubernetes-validations").and_then(Value::as_array);
            for rule in rules.into_iter().flatten() {
                assert!(rule["message"].as_str().is_some_and(|text| text.len() > 20), "{rule}");
            }
            assert!(!schema.contains_key("nullable") && !schema.contains_key("title"));
        });
        assert!(fields > 60, "{fields}");
    }

    #[test]
    fn the_definition_fits_into_the_annotation_of_a_client_side_apply() {
        let size = definition().unwrap().to_string().len();
        assert!(size < 200 * 1024, "{size} bytes; kubectl apply writes all of it into one annotation");
    }
}
