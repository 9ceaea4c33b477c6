//! Numbers of answers that were recorded from tools written in Go.

use serde_json::{Number, Value};

/// Numbers as both sides can hold them: integers of 64 bits, else floats.
pub(crate) fn normal(value: Value) -> Value {
    match value {
        Value::Number(number) if number.is_i64() => Value::Number(number),
        Value::Number(number) => {
            let float = number.as_f64().expect("a float");
            Number::from_f64(float).map_or(Value::Null, Value::Number)
        }
        Value::Array(items) => items.into_iter().map(normal).collect(),
        Value::Object(map) => map.into_iter().map(|(key, value)| (key, normal(value))).collect(),
        value => value,
    }
}
