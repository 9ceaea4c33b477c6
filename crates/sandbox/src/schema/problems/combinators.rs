//! Combined schemas: `allOf`, `anyOf`, `oneOf` and `not`.
//!
//! In: the OpenAPI keywords of a place, and the value.
//! Out: the problems that the server reports, including those of the best matching alternative.

use serde_json::{Map, Value};

use super::{Problem, bounds};

/// Maximum nesting of combined schemas; deeper ones are ignored.
const MAX_DEPTH: usize = 64;

/// Validates a value against combined schemas.
pub(super) fn of_value(rules: &Map<String, Value>, path: &str, value: &Value, found: &mut Vec<Problem>) {
    combined(rules, path, value, found, MAX_DEPTH);
}

fn combined(rules: &Map<String, Value>, path: &str, value: &Value, found: &mut Vec<Problem>, depth: usize) {
    let Some(depth) = depth.checked_sub(1) else { return };
    let problems = |rules: &Value| {
        let mut found = Vec::new();
        if let Some(rules) = rules.as_object() {
            nested(rules, path, value, &mut found, depth);
        }
        found
    };
    let each = |name: &str| -> Option<Vec<Vec<Problem>>> {
        let rules = rules.get(name)?.as_array().filter(|rules| !rules.is_empty())?;
        Some(rules.iter().map(problems).collect())
    };
    let best = |results: Vec<Vec<Problem>>| results.into_iter().min_by_key(Vec::len).unwrap_or_default();
    if let Some(results) = each("anyOf").filter(|results| results.iter().all(|it| !it.is_empty())) {
        found.push(Problem::of_all(&format!("{path:?} must validate at least one schema (anyOf)")));
        found.extend(best(results));
    }
    if let Some(results) = each("oneOf") {
        let valid = results.iter().filter(|result| result.is_empty()).count();
        if valid != 1 {
            let how = match valid {
                0 => "Found none valid".to_owned(),
                some => format!("Found {some} valid alternatives"),
            };
            let words = format!("{path:?} must validate one and only one schema (oneOf). {how}");
            found.push(Problem::of_all(&words));
            if valid == 0 {
                found.extend(best(results));
            }
        }
    }
    if let Some(results) = each("allOf") {
        let valid = results.iter().filter(|result| result.is_empty()).count();
        let count = results.len();
        found.extend(results.into_iter().flatten());
        if valid != count {
            let none = if valid == 0 { ". None validated" } else { "" };
            found.push(Problem::of_all(&format!("{path:?} must validate all the schemas (allOf){none}")));
        }
    }
    if rules.get("not").is_some_and(|rules| problems(rules).is_empty()) {
        found.push(Problem::of_all(&format!("{path:?} must not validate the schema (not)")));
    }
}

/// Validates a value and its children against a raw schema.
fn nested(rules: &Map<String, Value>, path: &str, value: &Value, found: &mut Vec<Problem>, depth: usize) {
    let Some(depth) = depth.checked_sub(1) else { return };
    bounds::of_value(rules, path, value, found);
    combined(rules, path, value, found, depth);
    match value {
        Value::Object(map) => {
            for (name, value) in map {
                let property = rules.get("properties").and_then(|it| it.get(name));
                let inner = property.or_else(|| rules.get("additionalProperties"));
                if let Some(inner) = inner.and_then(Value::as_object) {
                    let path = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
                    nested(inner, &path, value, found, depth);
                }
            }
            bounds::required(rules, path, map, found);
        }
        Value::Array(items) => {
            if let Some(inner) = rules.get("items").and_then(Value::as_object) {
                for (at, item) in items.iter().enumerate() {
                    nested(inner, &format!("{path}[{at}]"), item, found, depth);
                }
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}
