//! Reads files that are JSON.
//!
//! In: a file that begins with a brace. Out: the JSON values in it, one after another, each with
//! its first line. kubectl reads such a file with a JSON reader, so `\/` is an escape and comments
//! are errors; numbers and repeated keys mean the same as in YAML.

use std::cell::Cell;
use std::fmt;

use serde::de::{Deserialize, DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Value};

use super::error::{ErrorKind, MAX_DEPTH, MAX_DOCUMENTS, MAX_NODES, MarkedError};
use super::parser::Mark;
use super::{KeepGoing, scalar};

/// A value with its position.
pub(super) struct JsonDocument {
    pub(super) value: Value,
    /// Byte offset of its first character.
    pub(super) start: usize,
    /// Byte offset behind its last character.
    pub(super) end: usize,
    /// Line and column of its first character.
    pub(super) mark: Mark,
}

/// Returns the values of a file.
pub(super) fn read_documents(text: &str, go_on: KeepGoing<'_>) -> Result<Vec<JsonDocument>, MarkedError> {
    let mut documents = Vec::new();
    let (mut mark, mut start) = (Mark::default(), 0);
    loop {
        let rest = &text[start..];
        let value = rest.trim_start_matches([' ', '\t', '\r', '\n']);
        let blank = rest.len() - value.len();
        mark = mark.after(&rest[..blank]);
        start += blank;
        if value.is_empty() {
            return Ok(documents);
        }
        if !go_on() {
            return Err(MarkedError::new(mark, ErrorKind::Stopped));
        }
        if documents.len() >= MAX_DOCUMENTS as usize {
            return Err(MarkedError::new(mark, ErrorKind::Documents));
        }
        let mut deserializer = serde_json::Deserializer::from_str(value);
        // Depth is counted below, against the same bound as in YAML.
        deserializer.disable_recursion_limit();
        let mut stream = deserializer.into_iter::<BoundedValue>();
        let read = match stream.next() {
            Some(Ok(BoundedValue(read))) => read,
            Some(Err(error)) => return Err(fault(&error, mark)),
            None => return Ok(documents),
        };
        let length = stream.byte_offset();
        let end = start + length;
        documents.push(JsonDocument { value: read, start, end, mark });
        mark = mark.after(&value[..length]);
        start = end;
    }
}

/// Converts an error of serde_json; the position is cut out of its message.
fn fault(error: &serde_json::Error, origin: Mark) -> MarkedError {
    let place = format!(" at line {} column {}", error.line(), error.column());
    let text = error.to_string();
    let text = text.strip_suffix(&place).unwrap_or(&text);
    let count = |number: usize| u32::try_from(number.saturating_sub(1)).unwrap_or(u32::MAX);
    let mark = match count(error.line()) {
        0 => Mark { line: origin.line, column: origin.column.saturating_add(count(error.column())) },
        line => Mark { line: origin.line.saturating_add(line), column: count(error.column()) },
    };
    match text {
        DEPTH => MarkedError::new(mark, ErrorKind::Depth),
        NODES => MarkedError::new(mark, ErrorKind::Nodes),
        text => MarkedError::new(mark, ErrorKind::Json(text.into())),
    }
}

/// Messages by which our own errors are recognized after they passed through serde_json.
const DEPTH: &str = "nested too deep";
const NODES: &str = "too many values";

/// One value of the file, read with bounds on depth and nodes.
struct BoundedValue(Value);

impl<'de> Deserialize<'de> for BoundedValue {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Node { depth: 0, nodes: &Cell::new(0) }.deserialize(deserializer).map(Self)
    }
}

/// Deserializes one value; `depth` is its level, `nodes` counts the values of the whole document.
#[derive(Clone, Copy)]
struct Node<'a> {
    depth: usize,
    nodes: &'a Cell<usize>,
}

impl Node<'_> {
    fn below<E: serde::de::Error>(self) -> Result<Self, E> {
        match self.depth < MAX_DEPTH {
            true => Ok(Self { depth: self.depth + 1, ..self }),
            false => Err(E::custom(DEPTH)),
        }
    }
}

impl<'de> DeserializeSeed<'de> for Node<'_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        self.nodes.set(self.nodes.get() + 1);
        if self.nodes.get() > MAX_NODES {
            return Err(serde::de::Error::custom(NODES));
        }
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Node<'_> {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(Value::Number(value.into()))
    }

    fn visit_u64<E: serde::de::Error>(self, value: u64) -> Result<Value, E> {
        match i64::try_from(value) {
            Ok(value) => self.visit_i64(value),
            Err(_) => self.visit_f64(value as f64),
        }
    }

    fn visit_f64<E: serde::de::Error>(self, value: f64) -> Result<Value, E> {
        scalar::float(value).map(Value::Number).map_err(E::custom)
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(Value::String(value.to_owned()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut access: A) -> Result<Value, A::Error> {
        let below = self.below()?;
        let mut items = Vec::new();
        while let Some(item) = access.next_element_seed(below)? {
            items.push(item);
        }
        Ok(Value::Array(items))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut access: A) -> Result<Value, A::Error> {
        let below = self.below()?;
        let mut map = Map::new();
        while let Some(key) = access.next_key::<String>()? {
            map.insert(key, access.next_value_seed(below)?);
        }
        Ok(Value::Object(map))
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Dialect, read};

    #[test]
    fn json_has_the_bounds_of_yaml() {
        let refusal =
            |text: String| read("a.json", text.as_bytes(), Dialect::Kubectl).unwrap_err().to_string();
        let many = refusal(format!("{{\"a\": [{}0]}}", "0,".repeat(super::MAX_NODES)));
        assert!(many.contains("found more than 8000000 nodes"), "{many}");
        let deep = refusal(format!("{{\"a\": {}", "[".repeat(100_000)));
        assert!(deep.contains("512"), "{deep}");
    }
}
