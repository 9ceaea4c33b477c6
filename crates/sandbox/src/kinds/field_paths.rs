//! Field paths such as `spec.containers[].ports[].protocol`.
//!
//! In: a value, and a path whose steps are names, `name[]` for every item of a list, and `name{}`
//! for every entry of a map.
//! Out: the matching values. A missing value is never created.

use serde_json::Value;

/// A parsed path.
#[derive(Debug, Clone)]
pub(crate) struct Path(Vec<Step>);

#[derive(Debug, Clone, Copy)]
enum Step {
    Field(&'static str),
    Items,
    Members,
}

impl Path {
    /// Parses a path of the tables.
    pub(crate) fn of(text: &'static str) -> Self {
        let mut steps = Vec::new();
        for word in text.split('.').filter(|word| !word.is_empty()) {
            let (name, every) = match word {
                _ if word.ends_with("[]") => (word.trim_end_matches("[]"), Some(Step::Items)),
                _ if word.ends_with("{}") => (word.trim_end_matches("{}"), Some(Step::Members)),
                _ => (word, None),
            };
            steps.push(Step::Field(name));
            steps.extend(every);
        }
        Self(steps)
    }

    /// Splits off the last step and returns its name; the name is empty if the path ends with
    /// items.
    pub(crate) fn split_last(&self) -> (Self, &'static str) {
        match self.0.split_last() {
            Some((Step::Field(name), rest)) => (Self(rest.to_vec()), name),
            _ => (self.clone(), ""),
        }
    }

    /// Calls `act` for every matching value.
    pub(crate) fn each(&self, root: &mut Value, act: &mut dyn FnMut(&mut Value)) {
        each(&self.0, root, act);
    }

    /// Returns the first matching value.
    pub(crate) fn first<'a>(&self, root: &'a Value) -> Option<&'a Value> {
        let mut found = None;
        look(&self.0, root, "", &mut |value, _| {
            found.get_or_insert(value);
        });
        found
    }

    /// Calls `see` for every matching value, with its path such as `spec.rules[0].host`.
    pub(crate) fn look<'a>(&self, root: &'a Value, see: &mut dyn FnMut(&'a Value, &str)) {
        look(&self.0, root, "", see);
    }
}

fn each(steps: &[Step], node: &mut Value, act: &mut dyn FnMut(&mut Value)) {
    let Some((step, rest)) = steps.split_first() else { return act(node) };
    match step {
        Step::Field(name) => {
            if let Some(child) = node.get_mut(*name) {
                each(rest, child, act);
            }
        }
        Step::Items => node.as_array_mut().into_iter().flatten().for_each(|item| each(rest, item, act)),
        Step::Members => {
            node.as_object_mut()
                .into_iter()
                .for_each(|map| map.values_mut().for_each(|item| each(rest, item, act)));
        }
    }
}

fn look<'a>(steps: &[Step], node: &'a Value, place: &str, see: &mut dyn FnMut(&'a Value, &str)) {
    let Some((step, rest)) = steps.split_first() else { return see(node, place) };
    match step {
        Step::Field(name) => {
            if let Some(child) = node.get(*name) {
                look(rest, child, &below(place, name), see);
            }
        }
        Step::Items => {
            for (index, item) in node.as_array().into_iter().flatten().enumerate() {
                look(rest, item, &format!("{place}[{index}]"), see);
            }
        }
        Step::Members => {
            for (name, item) in node.as_object().into_iter().flatten() {
                look(rest, item, &format!("{place}[{name}]"), see);
            }
        }
    }
}

/// Appends a field name to a path.
pub(crate) fn below(place: &str, name: &str) -> String {
    if place.is_empty() { name.to_owned() } else { format!("{place}.{name}") }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn places_are_found_and_named() {
        let object = json!({"a": [{"b": {"x": 1, "y": 2}}, {}, {"b": {"x": 3}}]});
        let mut seen = Vec::new();
        Path::of("a[].b{}").look(&object, &mut |value, place| seen.push(format!("{place}={value}")));
        assert_eq!(seen, ["a[0].b[x]=1", "a[0].b[y]=2", "a[2].b[x]=3"]);
        assert_eq!(Path::of("a[].b.y").first(&object), Some(&json!(2)));
        assert_eq!(Path::of("a.b").first(&object), None);
        let mut object = object;
        Path::of("a[].b.x").each(&mut object, &mut |value| *value = json!(0));
        assert_eq!(object, json!({"a": [{"b": {"x": 0, "y": 2}}, {}, {"b": {"x": 0}}]}));
    }
}
