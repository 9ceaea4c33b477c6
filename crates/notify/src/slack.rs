//! Messages for Slack, and for chats that take the same.
//!
//! In: a text. Out: the body of an incoming webhook.

use serde_json::{Value, json};

/// Returns the body of a message. The text is shown as it is: it has no links and mentions nobody.
pub(crate) fn slack_body(text: &str) -> Value {
    let text = text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
    json!({"text": text})
}
