//! OpenAPI documents, as far as kubectl needs them.
//!
//! In: the resource registry.
//! Out: the index of `/openapi/v3`, and the document of one group version: the operations and
//! fields of its kinds.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::schema::{ListType, Scalar, Schema, Shape};
use crate::resource_registry::{Resource, ResourceRegistry};

/// Content type of OpenAPI v2.
pub(crate) const OLD_FORM: &str = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf";

/// Maximum depth of schemas: types may contain themselves.
const MAX_DEPTH: usize = 24;

/// Description of every built-in kind.
const UNDESCRIBED: &str = "The sandbox has fields and types, but no descriptions.";

/// Returns the index: the URLs of all documents.
pub(crate) fn index(served: &ResourceRegistry) -> Value {
    let mut paths = Map::new();
    for resource in served.iter() {
        for version in resource.served() {
            let path = match &*resource.group {
                "" => format!("api/{}", version.name),
                group => format!("apis/{group}/{}", version.name),
            };
            let url = format!("/openapi/v3/{path}");
            paths.insert(path, json!({"serverRelativeURL": url}));
        }
    }
    json!({"paths": paths})
}

/// Returns one document by its path in the index.
pub(crate) fn document(served: &ResourceRegistry, path: &str) -> Option<Value> {
    let parts: Vec<&str> = path.split('/').collect();
    let (group, version) = match *parts.as_slice() {
        ["api", version] => ("", version),
        ["apis", group, version] => (group, version),
        _ => return None,
    };
    let (mut paths, mut types) = (Map::new(), BTreeMap::new());
    for resource in served.iter().filter(|resource| *resource.group == *group) {
        let Some(known) = resource.served().find(|known| *known.name == *version) else { continue };
        let name = format!("{}.{version}.{}", if group.is_empty() { "core" } else { group }, resource.kind);
        let kind = json!({"group": group, "version": version, "kind": &*resource.kind});
        let mut schema = match &known.described {
            Some(described) => described.clone(),
            None => type_schema(&known.schema, &mut types, MAX_DEPTH),
        };
        if known.described.is_none() {
            schema["description"] = UNDESCRIBED.into();
        }
        schema["x-kubernetes-group-version-kind"] = json!([kind]);
        add_paths(&mut paths, resource, path, &kind, &name);
        types.insert(name, schema);
    }
    if paths.is_empty() {
        return None;
    }
    Some(json!({
        "openapi": "3.0.0", "info": {"title": "Kubernetes", "version": super::discovery::RELEASE},
        "paths": paths, "components": {"schemas": types},
    }))
}

fn add_paths(paths: &mut Map<String, Value>, resource: &Resource, path: &str, kind: &Value, name: &str) {
    let root = match resource.namespaced {
        true => format!("/{path}/namespaces/{{namespace}}/{}", resource.plural),
        false => format!("/{path}/{}", resource.plural),
    };
    let parameter =
        |name: &str| json!({"name": name, "in": "query", "schema": {"type": "string", "uniqueItems": true}});
    let parameters: Vec<Value> =
        ["dryRun", "fieldManager", "fieldValidation", "force"].into_iter().map(parameter).collect();
    let reference = json!({"$ref": format!("#/components/schemas/{name}")});
    let verb = |action: &str, takes: &str| {
        json!({
            "x-kubernetes-action": action, "x-kubernetes-group-version-kind": kind, "parameters": parameters,
            "requestBody": {"content": {takes: {"schema": reference}}},
            "responses": {"200": {"description": "OK", "content": {"application/json": {"schema": reference}}}},
        })
    };
    paths.insert(root.clone(), json!({"post": verb("post", "application/json")}));
    let patch = verb("patch", "application/apply-patch+yaml");
    paths.insert(format!("{root}/{{name}}"), json!({"put": verb("put", "application/json"), "patch": patch}));
}

/// Returns the OpenAPI schema of a type; named types in it are added to `types` once.
fn type_schema(schema: &Schema, types: &mut BTreeMap<String, Value>, depth: usize) -> Value {
    let Some(depth) = depth.checked_sub(1) else { return json!({}) };
    match schema.shape() {
        Shape::Scalar(scalar) => scalar_told(*scalar),
        Shape::Anything | Shape::Opaque => {
            json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true})
        }
        Shape::List(list) => {
            let mut told = json!({"type": "array", "items": linked(list.items(), types, depth)});
            match &list.merge {
                ListType::Atomic => told["x-kubernetes-list-type"] = "atomic".into(),
                ListType::Set => told["x-kubernetes-list-type"] = "set".into(),
                ListType::Keyed(keys) => {
                    told["x-kubernetes-list-type"] = "map".into();
                    told["x-kubernetes-list-map-keys"] = keys.iter().map(|key| Value::from(&**key)).collect();
                }
            }
            told
        }
        Shape::Fields(fields) => {
            let mut told = json!({"type": "object"});
            let (mut properties, mut required) = (Map::new(), Vec::new());
            for field in fields.known() {
                properties.insert(field.name.to_string(), linked(field.schema(), types, depth));
                if field.required {
                    required.push(Value::from(&*field.name));
                }
            }
            if !properties.is_empty() {
                told["properties"] = properties.into();
            }
            if !required.is_empty() {
                told["required"] = required.into();
            }
            if let Some(others) = fields.others() {
                told["additionalProperties"] = linked(others, types, depth);
            }
            told
        }
    }
}

/// Returns a reference to a named type, or the schema itself if it has no name.
fn linked(schema: &Schema, types: &mut BTreeMap<String, Value>, depth: usize) -> Value {
    let name = schema.name();
    if name.is_empty() || !matches!(schema.shape(), Shape::Fields(_)) {
        return type_schema(schema, types, depth);
    }
    if !types.contains_key(name) {
        types.insert(name.to_owned(), Value::Null);
        let whole = type_schema(schema, types, MAX_DEPTH);
        types.insert(name.to_owned(), whole);
    }
    json!({"allOf": [{"$ref": format!("#/components/schemas/{name}")}]})
}

fn scalar_told(scalar: Scalar) -> Value {
    match scalar {
        Scalar::String | Scalar::Quantity | Scalar::Duration | Scalar::Formatted => json!({"type": "string"}),
        Scalar::Int32 => json!({"type": "integer", "format": "int32"}),
        Scalar::Int64 => json!({"type": "integer", "format": "int64"}),
        Scalar::Number => json!({"type": "number"}),
        Scalar::Boolean => json!({"type": "boolean"}),
        Scalar::IntOrString => json!({"x-kubernetes-int-or-string": true}),
        Scalar::Time | Scalar::MicroTime => json!({"type": "string", "format": "date-time"}),
        Scalar::Bytes => json!({"type": "string", "format": "byte"}),
    }
}
