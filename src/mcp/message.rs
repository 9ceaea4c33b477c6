//! Messages of JSON-RPC 2.0, as the Model Context Protocol uses them.
//!
//! In: a line. Out: a request, a notification, or the answer to a line that is neither. A batch is
//! refused: no version of the protocol that is spoken here has them.

use serde_json::{Map, Value, json};

/// The most characters of an id.
pub(super) const MAX_ID_CHARS: usize = 256;

/// The id of a request: a text or a whole number.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct RequestId(Value);

impl RequestId {
    /// Reads an id; null, fractions and other values are none.
    pub(crate) fn read(value: &Value) -> Option<Self> {
        let fits = match value {
            Value::String(text) => text.chars().count() <= MAX_ID_CHARS,
            Value::Number(number) => number.is_i64() || number.is_u64(),
            _ => false,
        };
        fits.then(|| Self(value.clone()))
    }
}

/// A message of the client.
#[derive(Debug, PartialEq)]
pub(crate) enum Message {
    /// It is answered.
    Request { id: RequestId, method: String, params: Map<String, Value> },
    /// It is never answered.
    Notification { method: String, params: Map<String, Value> },
    /// An answer to a request that was never made.
    Ignored,
}

/// Codes of errors.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ErrorCode {
    ParseError,
    InvalidRequest,
    MethodNotFound,
    InvalidParams,
    Busy,
}

impl ErrorCode {
    fn number(self) -> i32 {
        match self {
            Self::ParseError => -32700,
            Self::InvalidRequest => -32600,
            Self::MethodNotFound => -32601,
            Self::InvalidParams => -32602,
            Self::Busy => -32000,
        }
    }
}

/// The answer to a request, as one line without its line break.
pub(crate) fn result(id: &RequestId, result: &Value) -> String {
    json!({"jsonrpc": "2.0", "id": id.0, "result": result}).to_string()
}

/// The answer that reports an error; without an id where none could be read.
pub(crate) fn error(id: Option<&RequestId>, code: ErrorCode, message: &str) -> String {
    let id = id.map_or(Value::Null, |id| id.0.clone());
    json!({"jsonrpc": "2.0", "id": id, "error": {"code": code.number(), "message": message}}).to_string()
}

/// Reads a line; the error is the answer to it.
pub(crate) fn read(line: &[u8]) -> Result<Message, String> {
    let refuse = |id: Option<&RequestId>, message: &str| Err(error(id, ErrorCode::InvalidRequest, message));
    let Ok(value) = serde_json::from_slice::<Value>(line) else {
        return Err(error(None, ErrorCode::ParseError, "the line is not JSON"));
    };
    let fields = match value {
        Value::Object(fields) => fields,
        Value::Array(_) => return refuse(None, "batches are not supported"),
        _ => return refuse(None, "a message is an object"),
    };
    let id = fields.get("id").and_then(RequestId::read);
    if fields.get("jsonrpc").and_then(Value::as_str) != Some("2.0") {
        return refuse(id.as_ref(), "`jsonrpc` has to be \"2.0\"");
    }
    let method = match fields.get("method") {
        Some(Value::String(method)) => method.clone(),
        None if fields.contains_key("result") || fields.contains_key("error") => return Ok(Message::Ignored),
        _ => return refuse(id.as_ref(), "`method` has to be a text"),
    };
    let params = match fields.get("params") {
        None => Some(Map::new()),
        Some(Value::Object(params)) => Some(params.clone()),
        Some(_) => None,
    };
    match (fields.contains_key("id"), id, params) {
        (false, _, Some(params)) => Ok(Message::Notification { method, params }),
        // A notification is never answered, even if it is wrong.
        (false, _, None) => Ok(Message::Ignored),
        (true, None, _) => refuse(None, "`id` has to be a text or a whole number"),
        (true, Some(id), None) => {
            Err(error(Some(&id), ErrorCode::InvalidParams, "`params` has to be an object"))
        }
        (true, Some(id), Some(params)) => Ok(Message::Request { id, method, params }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_a_message_or_has_an_answer() {
        let check = |line: &str, expect: &str| {
            let told = match read(line.as_bytes()) {
                Ok(Message::Request { id, method, .. }) => format!("request {} {method}", id.0),
                Ok(Message::Notification { method, .. }) => format!("notification {method}"),
                Ok(Message::Ignored) => "ignored".to_owned(),
                Err(answer) => {
                    let answer: Value = serde_json::from_str(&answer).unwrap();
                    format!("{} {}", answer["error"]["code"], answer["id"])
                }
            };
            assert_eq!(told, expect, "{line}");
        };
        check(r#"{"jsonrpc":"2.0","id":1,"method":"a"}"#, "request 1 a");
        check(r#"{"jsonrpc":"2.0","id":"1","method":"a","params":{}}"#, "request \"1\" a");
        check(r#"{"jsonrpc":"2.0","method":"a"}"#, "notification a");
        check(r#"{"jsonrpc":"2.0","method":"a","params":[1]}"#, "ignored");
        check(r#"{"jsonrpc":"2.0","id":7,"result":{}}"#, "ignored");
        check("", "-32700 null");
        check("{", "-32700 null");
        check("\u{0}", "-32700 null");
        check(&"[".repeat(100_000), "-32700 null");
        check("[]", "-32600 null");
        check(r#"[{"jsonrpc":"2.0","id":1,"method":"a"}]"#, "-32600 null");
        check("7", "-32600 null");
        check(r#"{"id":1,"method":"a"}"#, "-32600 1");
        check(r#"{"jsonrpc":"1.0","id":1,"method":"a"}"#, "-32600 1");
        check(r#"{"jsonrpc":"2.0","id":1}"#, "-32600 1");
        check(r#"{"jsonrpc":"2.0","id":1,"method":5}"#, "-32600 1");
        check(r#"{"jsonrpc":"2.0","id":null,"method":"a"}"#, "-32600 null");
        check(r#"{"jsonrpc":"2.0","id":1.5,"method":"a"}"#, "-32600 null");
        check(r#"{"jsonrpc":"2.0","id":{},"method":"a"}"#, "-32600 null");
        check(r#"{"jsonrpc":"2.0","id":1,"method":"a","params":[1]}"#, "-32602 1");
        assert!(read(b"\xff\xfe").is_err());
    }
}
