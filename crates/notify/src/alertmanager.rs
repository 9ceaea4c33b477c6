//! Alerts for Alertmanager.
//!
//! In: a Sync, a record and a text.
//! Out: the body of `POST /api/v2/alerts`. Alerts with equal labels are one alert, so a repeated
//! request shows nothing twice. Recovered ends the alerts Degraded and Failed, and Applied ends
//! ApprovalRequired.

use std::time::Duration;

use moorline_api::{NotificationRecord, Transition};
use serde_json::{Value, json};

use crate::selection::CompiledNotifier;
use crate::subject::Subject;

/// Time after which an alert that nothing ended ends by itself.
const LASTS: Duration = Duration::from_secs(24 * 3600);
/// The same for one that only informs.
const INFORMS: Duration = Duration::from_secs(300);

/// Returns the body of a request.
pub(crate) fn alerts(
    notifier: &CompiledNotifier,
    subject: &Subject,
    record: &NotificationRecord,
    text: &str,
) -> Value {
    let begins = record.time.0;
    let alert = |transition: Transition, severity: &str, lasts: Duration| {
        let details = record.details.clone().unwrap_or_default();
        json!({
            "labels": {
                "alertname": format!("MoorlineSync{transition}"), "severity": severity,
                "cluster": subject.cluster, "namespace": subject.namespace, "sync": subject.name,
            },
            "annotations": {"summary": text, "revision": details.revision, "reason": details.reason},
            "startsAt": begins.to_string(),
            "endsAt": begins.checked_add(lasts).unwrap_or(begins).to_string(),
        })
    };
    match record.transition {
        Transition::Degraded | Transition::Failed => json!([alert(record.transition, "critical", LASTS)]),
        Transition::PruneHeld | Transition::ApprovalRequired | Transition::RolledBack => {
            json!([alert(record.transition, "warning", LASTS)])
        }
        Transition::Applied if notifier.is_on(Transition::ApprovalRequired) => json!([
            alert(Transition::Applied, "info", INFORMS),
            alert(Transition::ApprovalRequired, "warning", Duration::ZERO),
        ]),
        Transition::Applied | Transition::Healthy | Transition::DriftRepaired => {
            json!([alert(record.transition, "info", INFORMS)])
        }
        Transition::Recovered => json!([
            alert(Transition::Degraded, "critical", Duration::ZERO),
            alert(Transition::Failed, "critical", Duration::ZERO),
        ]),
    }
}
