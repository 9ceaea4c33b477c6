//! Messages for Slack, and for chats that take the same.
//!
//! In: a text. Out: the body of an incoming webhook.

use serde_json::{Value, json};

use crate::markup::without_markup;

/// Returns the body of a message. The text is shown as it is: no link hides its target, and nobody
/// is mentioned.
pub(crate) fn slack_body(text: &str) -> Value {
    let text = without_markup(text).replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
    // Only Slack reads `mrkdwn`; its text has no Markdown then.
    json!({"text": text, "mrkdwn": false})
}
