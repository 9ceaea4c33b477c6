//! JSON patch that removes fields from a live object.
//!
//! In: the whole live object and paths.
//! Out: a JSON patch with `test` operations: it fails as a whole if the object has changed since it
//! was read.

use serde_json::{Map, Value, json};

use moorline_managed_fields::{Element, FieldPath};

/// A step into a body. Items of a list sort by index.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum PatchStep {
    Field(Box<str>),
    Item(usize),
}

/// True if a body sets the field.
pub fn has_field(body: &Map<String, Value>, path: &FieldPath) -> bool {
    find(body, path).is_some()
}

/// Returns the patch that removes these fields; none if none of them is present.
pub fn removal_patch(body: &Map<String, Value>, paths: &[FieldPath]) -> Option<Value> {
    let mut found: Vec<(Vec<PatchStep>, &Value)> = paths.iter().filter_map(|path| find(body, path)).collect();
    found.sort_by(|(one, _), (other, _)| one.cmp(other));
    // Fields below a removed field go with it.
    found.dedup_by(|(inner, _), (outer, _)| inner.starts_with(outer));
    if found.is_empty() {
        return None;
    }
    let version = body.get("metadata").and_then(|metadata| metadata.get("resourceVersion"));
    let guard = version.map(|version| test("/metadata/resourceVersion", version));
    // From the end, so that no removal shifts the indexes of the next.
    let operations = found.iter().rev().flat_map(|(steps, value)| {
        let pointer = pointer(steps);
        [test(&pointer, value), json!({"op": "remove", "path": pointer})]
    });
    Some(guard.into_iter().chain(operations).collect())
}

fn test(pointer: &str, value: &Value) -> Value {
    json!({"op": "test", "path": pointer, "value": value})
}

fn pointer(steps: &[PatchStep]) -> String {
    let text = |step: &PatchStep| match step {
        PatchStep::Field(name) => format!("/{}", name.replace('~', "~0").replace('/', "~1")),
        PatchStep::Item(at) => format!("/{at}"),
    };
    steps.iter().map(text).collect()
}

/// Follows a path in a body. A path into a list identifies an item by its content, and matches only
/// if exactly one item does.
fn find<'a>(body: &'a Map<String, Value>, path: &FieldPath) -> Option<(Vec<PatchStep>, &'a Value)> {
    let (first, rest) = path.elements().split_first()?;
    let Element::Field(name) = first else { return None };
    let mut steps = vec![PatchStep::Field(name.clone())];
    let mut value = body.get(&**name)?;
    for element in rest {
        let step = step(value, element)?;
        value = match &step {
            PatchStep::Field(name) => value.get(&**name)?,
            PatchStep::Item(at) => value.get(at)?,
        };
        steps.push(step);
    }
    Some((steps, value))
}

fn step(value: &Value, element: &Element) -> Option<PatchStep> {
    let fits = |item: &Value| match element {
        Element::Key(json) => serde_json::from_str::<Map<String, Value>>(json)
            .is_ok_and(|key| key.iter().all(|(field, wanted)| item.get(field) == Some(wanted))),
        Element::Value(json) => serde_json::from_str::<Value>(json).is_ok_and(|wanted| wanted == *item),
        Element::Field(_) | Element::Index(_) | Element::Other(_) => false,
    };
    match element {
        Element::Field(name) => Some(PatchStep::Field(name.clone())),
        Element::Index(at) => usize::try_from(*at).ok().map(PatchStep::Item),
        Element::Key(_) | Element::Value(_) => {
            let mut places = value.as_array()?.iter().enumerate().filter(|(_, item)| fits(item));
            let (at, _) = places.next()?;
            places.next().is_none().then_some(PatchStep::Item(at))
        }
        Element::Other(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use moorline_managed_fields::FieldSet;

    #[test]
    fn a_removal_is_guarded_and_goes_from_the_end() {
        let body = json!({
            "metadata": {"resourceVersion": "7", "annotations": {"a/b": "x"}, "finalizers": ["one", "two"]},
            "spec": {"containers": [{"name": "app"}, {"name": "side"}, {"name": "more", "env": [{"name": "X", "value": "1"}]}]},
        });
        let fields = json!({
            "f:metadata": {"f:annotations": {"f:a/b": {}}, "f:finalizers": {"v:\"two\"": {}}},
            "f:spec": {"f:gone": {}, "f:containers": {
                "k:{\"name\":\"side\"}": {}, "k:{\"name\":\"more\"}": {"f:env": {"k:{\"name\":\"X\"}": {".": {}, "f:value": {}}}},
            }},
        });
        let paths = FieldSet::parse(&fields).owned_paths();
        let patch = removal_patch(body.as_object().unwrap(), &paths).unwrap();
        let pointers: Vec<String> = patch
            .as_array()
            .unwrap()
            .iter()
            .map(|op| format!("{} {}", op["op"], op["path"]).replace('"', ""))
            .collect();
        assert_eq!(
            pointers,
            [
                "test /metadata/resourceVersion",
                "test /spec/containers/2/env/0",
                "remove /spec/containers/2/env/0",
                "test /spec/containers/1",
                "remove /spec/containers/1",
                "test /metadata/finalizers/1",
                "remove /metadata/finalizers/1",
                "test /metadata/annotations/a~1b",
                "remove /metadata/annotations/a~1b",
            ]
        );
        let gone = FieldSet::parse(&json!({"f:spec": {"f:gone": {}}})).owned_paths();
        assert_eq!(removal_patch(body.as_object().unwrap(), &gone), None);
    }
}
