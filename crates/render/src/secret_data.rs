//! Checks the data of a Secret before the API server does: its messages would quote the values.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value};

use super::documents::{FieldPath, MAX_PROBLEMS_PER_FILE};
use super::problem::Problem;
use moorline_core::position::SourcePosition;
use moorline_yaml::{Step, type_name};

/// Returns the problems of `data` and `stringData`; `place` finds the position of a field.
pub(super) fn check(
    body: &Map<String, Value>,
    place: impl Fn(&FieldPath<'_>) -> SourcePosition,
) -> Vec<Problem> {
    let mut problems = Vec::new();
    for (field, broken) in [("data", base64_rule as fn(&Value) -> _), ("stringData", string_rule)] {
        match body.get(field) {
            None | Some(Value::Null) => {}
            Some(Value::Object(values)) => {
                let wrong = values.iter().filter_map(|(key, value)| Some((key, broken(value)?)));
                // Each problem costs another reading of the file.
                for (key, rule) in wrong.take(MAX_PROBLEMS_PER_FILE) {
                    let place = place(&[Step::Key(field), Step::Key(key)]);
                    problems.push(Problem::SecretData { place, field: format!("{field}.{key}"), rule });
                }
            }
            Some(other) => problems.push(Problem::WrongType {
                place: place(&[Step::Key(field)]),
                field: field.to_owned(),
                expected: "a mapping",
                found: type_name(other),
            }),
        }
    }
    problems
}

fn base64_rule(value: &Value) -> Option<&'static str> {
    match value {
        Value::Null => None,
        // The API server's decoder skips line breaks, such as those of the base64 command.
        Value::String(text) => {
            let unbroken: String = text.chars().filter(|char| !matches!(char, '\r' | '\n')).collect();
            STANDARD.decode(unbroken).is_err().then_some("must be base64; plain text belongs in stringData")
        }
        _ => Some("must be a string in base64; put it in quotes"),
    }
}

fn string_rule(value: &Value) -> Option<&'static str> {
    match value {
        Value::Null | Value::String(_) => None,
        _ => Some("must be a string; put it in quotes"),
    }
}
