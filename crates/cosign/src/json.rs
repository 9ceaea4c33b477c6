//! Fields of JSON documents, read by their path.
//!
//! In: JSON, and a path such as `/content/hash`.
//! Out: the field in the type that is expected, or a refusal that names its path. Protobuf writes
//! numbers of 64 bits as texts and bytes as base64.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;

use crate::error::{MAX_DOCUMENT_BYTES, Reason, malformed};

/// Reads a document. Nesting is bounded by the reader.
pub(crate) fn read(bytes: &[u8]) -> Result<Value, Reason> {
    if bytes.len() > MAX_DOCUMENT_BYTES {
        let size = format!("it has {} bytes, and at most {MAX_DOCUMENT_BYTES} are read", bytes.len());
        return Err(malformed(size));
    }
    serde_json::from_slice(bytes).map_err(|error| {
        malformed(format!("its JSON is not valid in line {}, column {}", error.line(), error.column()))
    })
}

/// Returns a field; `None` if it is missing or null.
pub(crate) fn field<'a>(value: &'a Value, path: &str) -> Option<&'a Value> {
    value.pointer(path).filter(|value| !value.is_null())
}

/// Returns a text.
pub(crate) fn text<'a>(value: &'a Value, path: &str) -> Result<&'a str, Reason> {
    field(value, path).and_then(Value::as_str).ok_or_else(|| malformed(format!("{path} must be a text")))
}

/// Returns the bytes of a text in base64.
pub(crate) fn bytes(value: &Value, path: &str) -> Result<Vec<u8>, Reason> {
    STANDARD.decode(text(value, path)?).map_err(|_| malformed(format!("{path} must be bytes in base64")))
}

/// Returns a number, which may be written as a text. Protobuf leaves zero out.
pub(crate) fn number(value: &Value, path: &str) -> Result<u64, Reason> {
    let number = match field(value, path) {
        None => Some(0),
        // A number has one form: neither a sign nor zeros before it.
        Some(Value::String(text)) => text.parse().ok().filter(|number: &u64| number.to_string() == *text),
        Some(value) => value.as_u64(),
    };
    number
        .filter(|number| i64::try_from(*number).is_ok())
        .ok_or_else(|| malformed(format!("{path} must be a number")))
}

/// Returns the items of a list of at most this many; a list that is missing is empty.
pub(crate) fn list<'a>(value: &'a Value, path: &str, most: usize) -> Result<&'a [Value], Reason> {
    match field(value, path) {
        None => Ok(&[]),
        Some(Value::Array(items)) if items.len() <= most => Ok(items),
        Some(Value::Array(items)) => {
            Err(malformed(format!("{path} has {} items, and at most {most} are read", items.len())))
        }
        Some(_) => Err(malformed(format!("{path} must be a list"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn fields_have_their_types() {
        let value = json!({"a": {"b": "aGk=", "n": "7", "m": 8, "big": u64::MAX, "l": [1, 2], "z": null, "zero": "07"}});
        assert_eq!(bytes(&value, "/a/b"), Ok(b"hi".to_vec()));
        assert_eq!(
            (number(&value, "/a/n"), number(&value, "/a/m"), number(&value, "/a/x")),
            (Ok(7), Ok(8), Ok(0))
        );
        assert_eq!(list(&value, "/a/l", 2).map(<[Value]>::len), Ok(2));
        assert_eq!(list(&value, "/a/z", 2).map(<[Value]>::len), Ok(0));
        for refused in [
            number(&value, "/a/big").map(drop),
            number(&value, "/a/zero").map(drop),
            text(&value, "/a/m").map(drop),
            bytes(&value, "/a/n").map(drop),
            list(&value, "/a/l", 1).map(drop),
            list(&value, "/a/b", 1).map(drop),
            read(&vec![b' '; MAX_DOCUMENT_BYTES + 1]).map(drop),
            read("[".repeat(1000).as_bytes()).map(drop),
        ] {
            assert!(matches!(refused, Err(Reason::Malformed(_))), "{refused:?}");
        }
    }
}
