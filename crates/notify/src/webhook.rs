//! Notifications for a program: JSON with a signature.
//!
//! In: a Sync, a record and a text; a key.
//! Out: the body, and the header that signs it, as `moorline`'s own webhook endpoint expects it.

use moorline_api::NotificationRecord;
use ring::hmac;
use serde_json::{Value, json};

use crate::subject::Subject;

/// Returns the body of a notification.
pub(crate) fn webhook_body(subject: &Subject, record: &NotificationRecord, text: &str) -> Value {
    let details = record.details.clone().unwrap_or_default();
    let changes = details.changes;
    json!({
        "id": record.id,
        "time": record.time.0.to_string(),
        "cluster": subject.cluster,
        "sync": {"namespace": subject.namespace, "name": subject.name, "uid": subject.uid, "labels": subject.labels},
        "transition": record.transition.to_string(),
        "revision": details.revision,
        "previousRevision": details.previous_revision,
        "reason": details.reason,
        "message": details.message,
        "text": text,
        "counts": {
            "created": changes.created, "changed": changes.changed, "pruned": changes.pruned,
            "repaired": changes.repaired, "objects": details.objects,
        },
    })
}

/// Returns the value of the header X-Moorline-Signature.
pub(crate) fn signature(key: &[u8], body: &[u8]) -> String {
    let tag = hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, key), body);
    tag.as_ref().iter().fold("sha256=".to_owned(), |text, byte| text + &format!("{byte:02x}"))
}
