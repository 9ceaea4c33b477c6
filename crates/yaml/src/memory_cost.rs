//! Estimates the memory that values need, before they are built.
//!
//! In: the bytes of a file, or a value. Out: an upper estimate in bytes. Every line, colon, comma,
//! dash and bracket counts as one value, and no YAML or JSON text has more values than these.

use serde_json::Value;

/// Cost of one value: its slot in a list or map, its key, and the overhead of the allocator.
const VALUE: u64 = 64;

/// Number of copies of the text while it is read.
const TEXTS: u64 = 3;

/// Estimates the values of all documents of a file.
pub fn estimate_file(bytes: &[u8]) -> u64 {
    let values = bytes.iter().filter(|byte| matches!(byte, b'\n' | b':' | b',' | b'-' | b'[' | b'{')).count();
    VALUE * values as u64 + TEXTS * bytes.len() as u64
}

/// Estimates one value.
pub fn estimate_value(value: &Value) -> u64 {
    VALUE
        + match value {
            Value::Null | Value::Bool(_) | Value::Number(_) => 0,
            Value::String(text) => text.len() as u64,
            Value::Array(items) => items.iter().map(estimate_value).sum(),
            Value::Object(map) => {
                map.iter().map(|(key, value)| key.len() as u64 + estimate_value(value)).sum()
            }
        }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate as yaml;

    #[test]
    fn a_file_costs_no_less_than_its_values() {
        let table = [
            "a: 1\n",
            "[[],[],{a: {b: c}}]",
            "- - - x\n- y: |\n    text\n",
            "{\"a\": [1, 2, {\"b\": null}]}",
            "? a\n: b\n",
        ];
        for text in table {
            let documents = yaml::read("", text.as_bytes(), yaml::Dialect::Kubectl).unwrap();
            let values: u64 = documents.iter().map(|document| estimate_value(&document.value)).sum();
            assert!(estimate_file(text.as_bytes()) + VALUE >= values, "{text}: {values}");
        }
    }
}
