//! Messages for Microsoft Teams.
//!
//! In: a Sync, a record and a text.
//! Out: the body of a Workflows webhook: one adaptive card.

use moorline_api::{NotificationRecord, Transition, short_revision};
use serde_json::{Value, json};

use crate::markup::without_markup;
use crate::subject::Subject;

/// Returns the body of a message.
pub(crate) fn teams_body(subject: &Subject, record: &NotificationRecord, text: &str) -> Value {
    let color = match record.transition {
        Transition::Applied | Transition::Healthy | Transition::Recovered => "good",
        Transition::Degraded | Transition::Failed | Transition::RolledBack => "attention",
        Transition::PruneHeld | Transition::ApprovalRequired | Transition::DriftRepaired => "warning",
    };
    let revision = record.details.as_ref().map(|details| short_revision(&details.revision));
    let facts = [
        ("Cluster", subject.cluster.to_string()),
        ("Sync", format!("{}/{}", subject.namespace, subject.name)),
        ("Revision", revision.unwrap_or_default()),
    ];
    let facts: Vec<Value> = facts
        .into_iter()
        .filter(|(_, value)| !value.is_empty())
        // The values of facts may have Markdown.
        .map(|(title, value)| json!({"title": title, "value": without_markup(&value)}))
        .collect();
    let card = json!({
        "$schema": "http://adaptivecards.io/schemas/adaptive-card.json",
        "type": "AdaptiveCard",
        "version": "1.4",
        "body": [
            {"type": "TextBlock", "text": record.transition.to_string(), "weight": "bolder", "color": color},
            // A RichTextBlock has no Markdown, so that no text becomes a link.
            {"type": "RichTextBlock", "inlines": [{"type": "TextRun", "text": text}]},
            {"type": "FactSet", "facts": facts},
        ],
    });
    json!({
        "type": "message",
        "attachments": [
            {"contentType": "application/vnd.microsoft.card.adaptive", "contentUrl": null, "content": card},
        ],
    })
}
