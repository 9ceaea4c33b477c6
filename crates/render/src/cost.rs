//! What values take in memory, before they are made.
//!
//! In: the bytes of a file, or a value. Out: bytes. It is more than most files take: every line, colon, comma, dash and bracket is counted
//! as one more value, and no text of YAML or JSON has more of them.

use serde_json::Value;

/// What one value takes with its place in a list or a map, its key, and what the allocator adds.
const VALUE: u64 = 64;

/// How often the text is there while it is read.
const TEXTS: u64 = 3;

/// What the values of a file take, all of its documents together.
pub(super) fn of_file(bytes: &[u8]) -> u64 {
    let values = bytes.iter().filter(|byte| matches!(byte, b'\n' | b':' | b',' | b'-' | b'[' | b'{')).count();
    VALUE * values as u64 + TEXTS * bytes.len() as u64
}

/// What a value takes.
pub(super) fn of(value: &Value) -> u64 {
    VALUE
        + match value {
            Value::Null | Value::Bool(_) | Value::Number(_) => 0,
            Value::String(text) => text.len() as u64,
            Value::Array(items) => items.iter().map(of).sum(),
            Value::Object(map) => map.iter().map(|(key, value)| key.len() as u64 + of(value)).sum(),
        }
}

#[cfg(test)]
mod tests {
    use super::*;
    use moorline_yaml as yaml;

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
            let values: u64 = documents.iter().map(|document| of(&document.value)).sum();
            assert!(of_file(text.as_bytes()) + VALUE >= values, "{text}: {values}");
        }
    }
}
