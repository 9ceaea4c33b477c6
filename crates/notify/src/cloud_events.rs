//! CloudEvents over HTTP in binary mode.
//!
//! In: a Sync, a record and a text.
//! Out: the headers and the body. Applied and RolledBack are events of CDEvents: a service was
//! deployed, upgraded or rolled back; the others have types of our own. The id stays the same when
//! an event is repeated.

use moorline_api::{NotificationRecord, Transition};
use moorline_identity::{SecretText, encoded};
use serde_json::{Value, json};

use crate::subject::Subject;
use crate::webhook::webhook_body;

/// The version of the specification of CDEvents.
const CDEVENTS: &str = "0.4.1";

/// Returns the type of an event.
fn event_type(record: &NotificationRecord) -> String {
    let is_first = record.details.as_ref().is_none_or(|details| details.previous_revision.is_empty());
    let word = match record.transition {
        Transition::Applied if is_first => return "dev.cdevents.service.deployed.0.2.0".to_owned(),
        Transition::Applied => return "dev.cdevents.service.upgraded.0.2.0".to_owned(),
        Transition::RolledBack => return "dev.cdevents.service.rolledback.0.2.0".to_owned(),
        Transition::Healthy => "healthy",
        Transition::Degraded => "degraded",
        Transition::Failed => "failed",
        Transition::DriftRepaired => "driftrepaired",
        Transition::PruneHeld => "pruneheld",
        Transition::ApprovalRequired => "approvalrequired",
        Transition::Recovered => "recovered",
    };
    format!("dev.moorline.sync.{word}")
}

fn source(subject: &Subject) -> String {
    format!("/moorline/{}", encoded(&subject.cluster))
}

fn subject_id(subject: &Subject) -> String {
    format!("{}/{}", subject.namespace, subject.name)
}

/// Returns the headers of an event.
pub(crate) fn event_headers(
    subject: &Subject,
    record: &NotificationRecord,
) -> Vec<(&'static str, SecretText)> {
    vec![
        ("ce-specversion", "1.0".into()),
        ("ce-id", record.id.as_str().into()),
        ("ce-source", source(subject).as_str().into()),
        ("ce-type", event_type(record).as_str().into()),
        ("ce-subject", subject_id(subject).as_str().into()),
        ("ce-time", record.time.0.to_string().as_str().into()),
    ]
}

/// Returns the body of an event.
pub(crate) fn event_body(subject: &Subject, record: &NotificationRecord, text: &str) -> Value {
    let data = webhook_body(subject, record, text);
    let kind = event_type(record);
    if !kind.starts_with("dev.cdevents.") {
        return data;
    }
    let details = record.details.clone().unwrap_or_default();
    let stands = match record.transition {
        Transition::RolledBack => &details.previous_revision,
        _ => &details.revision,
    };
    let (source, id) = (source(subject), subject_id(subject));
    json!({
        "context": {
            "version": CDEVENTS, "id": record.id, "source": source, "type": kind,
            "timestamp": record.time.0.to_string(),
        },
        "subject": {
            "id": id, "source": source, "type": "service",
            "content": {
                "environment": {"id": subject.cluster, "source": source},
                "artifactId": format!("pkg:generic/{}@{}", encoded(&subject.name), encoded(stands)),
            },
        },
        "customData": data,
        "customDataContentType": "application/json",
    })
}
