//! Conversion between field paths and JSON pointers into a concrete object.
//!
//! In: an object and a path, in the API server's form or from `managedFields`.
//! Out: JSON pointers. An object does not show the key fields of its lists, so all candidates are
//! tried: the server identifies an item by some of its own fields, or by defaults that are not
//! written.

use serde_json::{Map, Value};

use super::path::{Element, FieldPath};

/// Maximum number of fields that identify a list item.
const MAX_KEYS: usize = 3;

/// Key field of ports that the server defaults if it is not written.
const DEFAULT_KEY: (&str, &str) = ("protocol", "TCP");

/// Finds the positions that the API server prints as `field`, such as `.spec.ports[port=80].name`.
pub fn find_by_server_form(body: &Value, field: &str) -> Vec<String> {
    places(body, field, FieldPath::server_form)
}

/// Finds the positions that messages print as `field`, such as `spec.ports[port=80].name`.
pub fn find_by_display_form(body: &Value, field: &str) -> Vec<String> {
    places(body, field, ToString::to_string)
}

fn places(body: &Value, field: &str, print: fn(&FieldPath) -> String) -> Vec<String> {
    let mut search = PathSearch { field, print, way: Vec::new(), found: Vec::new() };
    search.enter(body, "");
    search.found
}

/// Search of an object for all positions that print as one text.
struct PathSearch<'a> {
    field: &'a str,
    print: fn(&FieldPath) -> String,
    way: Vec<Element>,
    found: Vec<String>,
}

impl PathSearch<'_> {
    fn enter(&mut self, value: &Value, pointer: &str) {
        match value {
            Value::Object(fields) => {
                for (name, inner) in fields {
                    self.go(
                        Element::Field(name.as_str().into()),
                        inner,
                        &format!("{pointer}/{}", escape(name)),
                    );
                }
            }
            Value::Array(items) => {
                for (at, item) in items.iter().enumerate() {
                    let index = Element::Index(i64::try_from(at).unwrap_or(i64::MAX));
                    for element in names(item).into_iter().chain([index]) {
                        self.go(element, item, &format!("{pointer}/{at}"));
                    }
                }
            }
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }

    fn go(&mut self, element: Element, inner: &Value, pointer: &str) {
        self.way.push(element);
        let printed = (self.print)(&FieldPath::new(&self.way.iter().collect::<Vec<_>>()));
        match self.field.strip_prefix(printed.as_str()) {
            Some("") => self.found.push(pointer.to_owned()),
            // A name must be followed by a new step; otherwise it is only a prefix of the searched
            // name.
            Some(rest) if rest.starts_with(['.', '[']) => self.enter(inner, pointer),
            Some(_) | None => {}
        }
        self.way.pop();
    }
}

/// Returns all elements that may identify a list item.
fn names(item: &Value) -> Vec<Element> {
    let Value::Object(fields) = item else { return vec![Element::Value(item.to_string().into())] };
    let scalar = |value: &Value| !value.is_object() && !value.is_array() && !value.is_null();
    let mut known: Map<String, Value> = fields
        .iter()
        .filter(|(_, value)| scalar(value))
        .map(|(name, value)| (name.clone(), value.clone()))
        .collect();
    known.entry(DEFAULT_KEY.0).or_insert_with(|| DEFAULT_KEY.1.into());
    let known: Vec<(String, Value)> = known.into_iter().collect();
    let mut names = Vec::new();
    choose(&known, &mut Map::new(), &mut names);
    names
}

/// Collects every combination of at most [`MAX_KEYS`] fields.
fn choose(fields: &[(String, Value)], chosen: &mut Map<String, Value>, names: &mut Vec<Element>) {
    for (at, (name, value)) in fields.iter().enumerate() {
        chosen.insert(name.clone(), value.clone());
        names.push(Element::Key(Value::Object(chosen.clone()).to_string().into()));
        if chosen.len() < MAX_KEYS {
            choose(&fields[at + 1..], chosen, names);
        }
        chosen.remove(name);
    }
}

/// Returns the pointer of a path in an object; none if nothing is there.
pub fn pointer_of(path: &FieldPath, body: &Value) -> Option<String> {
    let mut value = body;
    let mut pointer = String::new();
    for element in path.elements() {
        let (step, inner) = enter(value, element)?;
        pointer.push('/');
        pointer.push_str(&step);
        value = inner;
    }
    Some(pointer)
}

/// Returns the pointer of a path without list items, even if nothing is there.
pub fn pointer_of_fields(path: &FieldPath) -> Option<String> {
    path.elements().iter().try_fold(String::new(), |pointer, element| match element {
        Element::Field(name) => Some(pointer + "/" + &escape(name)),
        Element::Key(_) | Element::Value(_) | Element::Index(_) | Element::Other(_) => None,
    })
}

fn enter<'a>(value: &'a Value, element: &Element) -> Option<(String, &'a Value)> {
    match element {
        Element::Field(name) => Some((escape(name), value.get(&**name)?)),
        Element::Index(at) => Some((at.to_string(), value.get(usize::try_from(*at).ok()?)?)),
        Element::Value(json) => {
            let wanted: Value = serde_json::from_str(json).ok()?;
            let at = value.as_array()?.iter().position(|item| *item == wanted)?;
            Some((at.to_string(), &value[at]))
        }
        Element::Key(json) => {
            let key: Map<String, Value> = serde_json::from_str(json).ok()?;
            let items = value.as_array()?;
            let all = |item: &&Value| key.iter().all(|(name, value)| item.get(name) == Some(value));
            // An unwritten key field has its default; written ones must be equal.
            let some = |item: &&Value| {
                key.iter().any(|(name, value)| item.get(name) == Some(value))
                    && key.iter().all(|(name, value)| item.get(name).is_none_or(|found| found == value))
            };
            let found = |fits: &dyn Fn(&&Value) -> bool| items.iter().position(|item| fits(&item));
            let at = found(&all).or_else(|| found(&some))?;
            Some((at.to_string(), &items[at]))
        }
        Element::Other(_) => None,
    }
}

/// Removes a value, and the mappings around it that become empty. None if it is not there.
pub fn remove_value(body: &mut Value, pointer: &str) -> Option<Value> {
    let (parent, step) = pointer.rsplit_once('/')?;
    let taken = match body.pointer_mut(parent)? {
        Value::Object(fields) => fields.remove(&unescape(step))?,
        Value::Array(items) => {
            let at: usize = step.parse().ok().filter(|at| *at < items.len())?;
            items.remove(at)
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => return None,
    };
    let emptied = body.pointer(parent).is_some_and(|it| it.as_object().is_some_and(Map::is_empty));
    if emptied && !parent.is_empty() {
        remove_value(body, parent);
    }
    Some(taken)
}

/// Removes several values, named in any order.
pub fn remove_values(body: &mut Value, pointers: &[Box<str>]) {
    for pointer in removal_order(pointers.to_vec()) {
        remove_value(body, &pointer);
    }
}

/// Sorts pointers so that they can be removed one by one: the last item of a list first, so that
/// the indexes of the others stay valid, and children before their parents.
pub fn removal_order(mut pointers: Vec<Box<str>>) -> Vec<Box<str>> {
    let steps = |pointer: &str| -> Vec<(usize, String)> {
        pointer.split('/').map(|step| (step.parse().unwrap_or_default(), step.to_owned())).collect()
    };
    pointers.sort_by_key(|pointer| std::cmp::Reverse(steps(pointer)));
    pointers.dedup();
    pointers
}

/// True if one position is equal to, below or above the other.
pub fn overlaps(one: &str, other: &str) -> bool {
    is_inside(one, other) || is_inside(other, one)
}

/// True if the position is `outer` or below it.
pub fn is_inside(place: &str, outer: &str) -> bool {
    place.strip_prefix(outer).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// Returns an object with only the live values of these paths and the key fields of the list items
/// around them.
pub fn excerpt(live: &Value, paths: &[FieldPath]) -> Value {
    let mut body = Value::Object(Map::new());
    for path in paths {
        copy(live, &mut body, path.elements());
    }
    body
}

fn copy(live: &Value, into: &mut Value, elements: &[Element]) {
    let Some((element, rest)) = elements.split_first() else {
        // A parent of other copied fields is copied field by field.
        if into.as_object().is_none_or(Map::is_empty) && into.as_array().is_none_or(Vec::is_empty) {
            *into = live.clone();
        }
        return;
    };
    let Some((_, inner)) = enter(live, element) else { return };
    match element {
        Element::Field(name) => {
            if !into.is_object() {
                *into = Value::Object(Map::new());
            }
            copy(inner, &mut into[&**name], rest);
        }
        Element::Key(json) => {
            let Ok(key) = serde_json::from_str::<Value>(json) else { return };
            if !into.is_array() {
                *into = Value::Array(Vec::new());
            }
            let Some(items) = into.as_array_mut() else { return };
            let known =
                items.iter().position(|item| enter(&Value::Array(vec![item.clone()]), element).is_some());
            let at = known.unwrap_or_else(|| {
                items.push(key);
                items.len() - 1
            });
            if !rest.is_empty() {
                copy(inner, &mut items[at], rest);
            }
        }
        Element::Value(_) => {
            if !into.is_array() {
                *into = Value::Array(Vec::new());
            }
            if let Some(items) = into.as_array_mut().filter(|items| !items.contains(inner)) {
                items.push(inner.clone());
            }
        }
        // Managers never own an item by index.
        Element::Index(_) | Element::Other(_) => {}
    }
}

fn escape(name: &str) -> String {
    name.replace('~', "~0").replace('/', "~1")
}

fn unescape(step: &str) -> String {
    step.replace("~1", "/").replace("~0", "~")
}

#[cfg(test)]
mod tests {
    use super::super::FieldSet;
    use super::*;
    use serde_json::json;

    fn body() -> Value {
        json!({
            "metadata": {"annotations": {"a.b/c": "1"}, "finalizers": ["x"]},
            "spec": {
                "replicas": 3,
                "containers": [
                    {"name": "app", "image": "a", "ports": [{"containerPort": 80}]},
                    {"name": "side", "image": "b", "env": [{"name": "X", "value": "1"}]},
                ],
            },
        })
    }

    #[test]
    fn the_server_s_words_are_found_by_printing_ours() {
        let check =
            |field: &str, expect: &[&str]| assert_eq!(find_by_server_form(&body(), field), expect, "{field}");
        check(".spec.replicas", &["/spec/replicas"]);
        check(".spec.rep", &[]);
        check(".metadata.annotations.a.b/c", &["/metadata/annotations/a.b~1c"]);
        check(".metadata.finalizers[=\"x\"]", &["/metadata/finalizers/0"]);
        check(".spec.containers[name=\"side\"].image", &["/spec/containers/1/image"]);
        check(".spec.containers[name=\"side\"].env[name=\"X\"].value", &["/spec/containers/1/env/0/value"]);
        check(
            ".spec.containers[name=\"app\"].ports[containerPort=80,protocol=\"TCP\"]",
            &["/spec/containers/0/ports/0"],
        );
        check(".spec.absent", &[]);
        let check = |field: &str, expect: &[&str]| {
            assert_eq!(find_by_display_form(&body(), field), expect, "{field}")
        };
        check("spec.replicas", &["/spec/replicas"]);
        check("spec.containers[name=side].env[name=X].value", &["/spec/containers/1/env/0/value"]);
        check("metadata.annotations[\"a.b/c\"]", &["/metadata/annotations/a.b~1c"]);
        check("metadata.finalizers[\"x\"]", &["/metadata/finalizers/0"]);
    }

    #[test]
    fn a_path_leads_into_a_body_and_is_copied_from_it() {
        let set = FieldSet::parse(&json!({
            "f:metadata": {"f:finalizers": {"v:\"x\"": {}}},
            "f:spec": {
                "f:replicas": {},
                "f:containers": {
                    "k:{\"name\":\"side\"}": {".": {}, "f:image": {}, "f:absent": {}},
                    "k:{\"name\":\"app\"}": {"f:ports": {"k:{\"containerPort\":80,\"protocol\":\"TCP\"}": {".": {}}}},
                },
            },
        }));
        let pointers: Vec<_> = set.leaf_paths().iter().filter_map(|path| pointer_of(path, &body())).collect();
        assert_eq!(
            pointers,
            [
                "/metadata/finalizers/0",
                "/spec/containers/0/ports/0",
                "/spec/containers/1/image",
                "/spec/replicas"
            ]
        );
        assert_eq!(
            excerpt(&body(), &set.owned_paths()),
            json!({"metadata": {"finalizers": ["x"]}, "spec": {
                "replicas": 3,
                "containers": [
                    {"name": "app", "ports": [{"containerPort": 80, "protocol": "TCP"}]},
                    {"name": "side", "image": "b"},
                ],
            }})
        );
    }

    #[test]
    fn what_is_taken_out_leaves_nothing_empty() {
        let mut body = body();
        let pointers = ["/metadata/annotations/a.b~1c", "/spec/containers/0", "/spec/containers/1/image"];
        remove_values(&mut body, &pointers.map(Box::from));
        let expect = json!({"metadata": {"finalizers": ["x"]}, "spec": {
            "replicas": 3, "containers": [{"name": "side", "env": [{"name": "X", "value": "1"}]}],
        }});
        assert_eq!(body, expect);
        assert_eq!(remove_value(&mut body, "/spec/containers/7"), None);
        assert!(
            is_inside("/a/b", "/a")
                && is_inside("/a", "/a")
                && !is_inside("/ab", "/a")
                && overlaps("/a", "/a/b")
        );
    }
}
