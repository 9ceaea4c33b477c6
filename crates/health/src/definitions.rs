//! Kinds that provide APIs or contain other objects: CustomResourceDefinition, APIService and
//! Namespace.
//!
//! In: a live object.
//! Out: its health. None of their controllers writes `observedGeneration`.

use super::condition::Condition;
use super::{Context, Health};
use crate::object_view::ObjectView;

pub(super) fn definition(live: ObjectView<'_>, _: &Context) -> Health {
    if let Some(refused) = live.condition("NamesAccepted").filter(Condition::is_false) {
        return Health::degraded(format!("its names are not accepted: {}", refused.reason_and_message()));
    }
    if live.true_condition("Terminating").is_some() {
        return Health::progressing("it is being deleted together with all objects of its kind");
    }
    match live.true_condition("Established") {
        Some(_) => Health::Healthy,
        None => Health::progressing("the API server does not serve it yet"),
    }
}

/// Judges an APIService. Its backend may be deployed after it, so an unavailable API is
/// progressing.
pub(super) fn api_service(live: ObjectView<'_>, _: &Context) -> Health {
    match live.condition("Available") {
        Some(available) if available.is_true() => Health::Healthy,
        Some(available) => {
            Health::progressing(format!("it is not available: {}", available.reason_and_message()))
        }
        None => Health::progressing("the API server has not checked it yet"),
    }
}

pub(super) fn namespace(live: ObjectView<'_>, _: &Context) -> Health {
    /// Conditions that explain a blocked deletion, the most informative first.
    const REMAINS: [&str; 5] = [
        "NamespaceDeletionDiscoveryFailure",
        "NamespaceDeletionGroupVersionParsingFailure",
        "NamespaceDeletionContentFailure",
        "NamespaceFinalizersRemaining",
        "NamespaceContentRemaining",
    ];
    let going = live.text(&["metadata", "deletionTimestamp"]).is_some();
    match live.text(&["status", "phase"]) {
        Some("Active") if !going => Health::Healthy,
        Some("Terminating" | "Active") => match REMAINS.iter().find_map(|kind| live.true_condition(kind)) {
            Some(remains) => {
                Health::progressing(format!("it is being deleted: {}", remains.reason_and_message()))
            }
            None => Health::progressing("it is being deleted"),
        },
        _ => Health::progressing("it is being created"),
    }
}

#[cfg(test)]
mod tests {
    use crate::test_fixtures::check;

    fn with(conditions: &[(&str, &str)]) -> String {
        let conditions = conditions.iter().map(|(kind, status)| {
            format!(r#"{{"type": "{kind}", "status": "{status}", "reason": "R", "message": "m"}}"#)
        });
        let conditions = conditions.collect::<Vec<_>>().join(", ");
        format!(r#"{{"metadata": {{"generation": 2}}, "status": {{"conditions": [{conditions}]}}}}"#)
    }

    #[test]
    fn a_definition() {
        let check = |conditions: &[(&str, &str)], expect: &str| {
            check("CustomResourceDefinition.apiextensions.k8s.io", &with(conditions), expect);
        };
        let waits = "Progressing: the API server does not serve it yet";
        check(&[("NamesAccepted", "True"), ("Established", "True")], "Healthy");
        check(&[], waits);
        check(&[("NamesAccepted", "True"), ("Established", "False")], waits);
        check(
            &[("NamesAccepted", "False"), ("Established", "False")],
            "Degraded: its names are not accepted: R: m",
        );
        check(
            &[("NamesAccepted", "False"), ("Established", "True")],
            "Degraded: its names are not accepted: R: m",
        );
        let going = "Progressing: it is being deleted together with all objects of its kind";
        check(&[("Established", "True"), ("Terminating", "True")], going);
    }

    #[test]
    fn an_api_service() {
        let check = |conditions: &[(&str, &str)], expect: &str| {
            check("APIService.apiregistration.k8s.io", &with(conditions), expect);
        };
        check(&[("Available", "True")], "Healthy");
        check(&[("Available", "False")], "Progressing: it is not available: R: m");
        check(&[("Available", "Unknown")], "Progressing: it is not available: R: m");
        check(&[], "Progressing: the API server has not checked it yet");
    }

    #[test]
    fn a_namespace() {
        let check = |json: &str, expect: &str| check("Namespace", json, expect);
        let going = r#"{"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}, "status": {"phase": "Terminating", "conditions": [
            {"type": "NamespaceContentRemaining", "status": "True", "message": "pods. has 1 resource instances"},
            {"type": "NamespaceFinalizersRemaining", "status": "False"}]}}"#;
        check(r#"{"status": {"phase": "Active"}}"#, "Healthy");
        check("{}", "Progressing: it is being created");
        check(going, "Progressing: it is being deleted: pods. has 1 resource instances");
        check(r#"{"status": {"phase": "Terminating"}}"#, "Progressing: it is being deleted");
        let just =
            r#"{"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}, "status": {"phase": "Active"}}"#;
        check(just, "Progressing: it is being deleted");
    }
}
