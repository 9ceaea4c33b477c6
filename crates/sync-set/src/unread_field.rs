//! A field of a SyncSet that this version does not know.
//!
//! In: the spec as the API server gave it, and as it was read. Out: the path of the first field
//! that was not read. A field of a later version may narrow a generator or a removal: without it,
//! the answer is another one.

use moorline_api::SyncSetSpec;
use serde_json::Value;

/// Returns the first field that was not read, outside of the template, which is checked as a Sync.
pub(crate) fn find_unread_field(given: &Value, read: &SyncSetSpec) -> Option<String> {
    let mut given = given.clone();
    given.as_object_mut()?.remove("template");
    unread_below("spec", &given, &serde_json::to_value(read).ok()?)
}

fn unread_below(path: &str, given: &Value, read: &Value) -> Option<String> {
    match (given, read) {
        (Value::Object(given), Value::Object(read)) => given.iter().find_map(|(name, value)| {
            let path = format!("{path}.{name}");
            match read.get(name) {
                Some(read) => unread_below(&path, value, read),
                None => (!is_nothing(value)).then_some(path),
            }
        }),
        (Value::Array(given), Value::Array(read)) => {
            let pairs = given.iter().zip(read).enumerate();
            pairs
                .into_iter()
                .find_map(|(at, (given, read))| unread_below(&format!("{path}[{at}]"), given, read))
        }
        _ => None,
    }
}

/// True for a value that a read spec may leave out.
fn is_nothing(value: &Value) -> bool {
    match value {
        Value::Null | Value::Bool(false) => true,
        Value::Object(map) => map.is_empty(),
        Value::Array(items) => items.is_empty(),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_field_of_a_later_version_is_found_outside_of_the_template() {
        for (field, more, expect) in [
            ("prune", json!({"enabled": false, "budget": {}}), None),
            ("suspend", json!(false), None),
            ("template", json!({"spec": {"source": {"git": {"url": "https://h/a"}}, "later": 1}}), None),
            ("waves", json!({"stages": 2}), Some("spec.waves")),
            ("rollout", json!({"stages": [{"soak": 2}]}), Some("spec.rollout.stages[0].soak")),
            ("prune", json!({"budget": {"stages": 2}}), Some("spec.prune.budget.stages")),
            (
                "generators",
                json!([{"list": {"elements": [{}], "where": "x"}}]),
                Some("spec.generators[0].list.where"),
            ),
        ] {
            let template = json!({"spec": {"source": {"git": {"url": "https://h/a"}}}});
            let mut spec = json!({"generators": [], "name": "'a'", "template": template});
            spec[field] = more;
            let read: SyncSetSpec = serde_json::from_value(spec.clone()).unwrap();
            assert_eq!(find_unread_field(&spec, &read).as_deref(), expect, "{spec}");
        }
    }
}
