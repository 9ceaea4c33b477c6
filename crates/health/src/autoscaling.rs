//! Limits and changes of the number of Pods: HorizontalPodAutoscaler and PodDisruptionBudget.
//!
//! In: a live object.
//! Out: its health. The number of disruptions that a budget allows does not affect health: 0 is a
//! legitimate result.

use super::{Context, Health};
use crate::object_view::ObjectView;

/// Errors that only a change of the autoscaler fixes. Metrics are often unavailable at first for a
/// new workload, so missing metrics are progressing until the deadline.
const WRONG_SPEC: [&str; 3] = ["InvalidSelector", "InvalidMetricSourceType", "AmbiguousSelector"];

pub(super) fn autoscaler(live: ObjectView<'_>, _: &Context) -> Health {
    if let Some(stale) = live.stale_status() {
        return stale;
    }
    if let Some(unable) = live.condition("AbleToScale").filter(|it| it.is_false()) {
        return Health::degraded(format!("it cannot scale: {}", unable.reason_and_message()));
    }
    match live.condition("ScalingActive").filter(|it| it.is_false()) {
        // A person scaled the workload to 0.
        Some(idle) if idle.reason == "ScalingDisabled" => Health::Suspended,
        Some(idle) if WRONG_SPEC.contains(&idle.reason) => {
            Health::degraded(format!("it does not scale: {}", idle.reason_and_message()))
        }
        Some(idle) => Health::progressing(format!("it does not scale: {}", idle.reason_and_message())),
        // In autoscaling/v1 the conditions are in an annotation, but the status has at least the
        // replicas.
        None if live.has_no_status() => Health::progressing("the controller has not observed it yet"),
        None => Health::Healthy,
    }
}

pub(super) fn disruption_budget(live: ObjectView<'_>, _: &Context) -> Health {
    if let Some(unseen) = live.unobserved_status() {
        return unseen;
    }
    match live.condition("DisruptionAllowed").filter(|it| it.is_false() && it.reason == "SyncFailed") {
        Some(failed) => Health::degraded(failed.reason_and_message()),
        None => Health::Healthy,
    }
}

#[cfg(test)]
mod tests {
    use crate::test_fixtures::check;

    #[test]
    fn an_autoscaler() {
        let check = |status: &str, expect: &str| {
            let json = format!(r#"{{"metadata": {{"generation": 2}}, "status": {{{status}}}}}"#);
            check("HorizontalPodAutoscaler.autoscaling", &json, expect);
        };
        let conditions = |able: &str, active: &str, reason: &str| {
            format!(
                r#""conditions": [{{"type": "AbleToScale", "status": "{able}", "reason": "{reason}", "message": "m"}},
                    {{"type": "ScalingActive", "status": "{active}", "reason": "{reason}", "message": "m"}},
                    {{"type": "ScalingLimited", "status": "True", "reason": "TooManyReplicas"}}]"#
            )
        };
        check(&conditions("True", "True", "R"), "Healthy");
        check(r#""currentReplicas": 2, "desiredReplicas": 2"#, "Healthy");
        check("", "Progressing: the controller has not observed it yet");
        check(&conditions("False", "True", "FailedGetScale"), "Degraded: it cannot scale: FailedGetScale: m");
        let late = "Progressing: it does not scale: FailedGetResourceMetric: m";
        check(&conditions("True", "False", "FailedGetResourceMetric"), late);
        check(
            &conditions("True", "False", "InvalidSelector"),
            "Degraded: it does not scale: InvalidSelector: m",
        );
        check(&conditions("True", "False", "ScalingDisabled"), "Suspended");
        let stale = format!(r#""observedGeneration": 1, {}"#, conditions("False", "True", "R"));
        check(
            &stale,
            "Progressing: the controller has observed generation 1, but the object is at generation 2",
        );
    }

    #[test]
    fn a_disruption_budget() {
        let check = |status: &str, expect: &str| {
            let json = format!(r#"{{"metadata": {{"generation": 2}}, "status": {{{status}}}}}"#);
            check("PodDisruptionBudget.policy", &json, expect);
        };
        let budget = |status: &str, reason: &str| {
            format!(
                r#""observedGeneration": 2, "disruptionsAllowed": 0,
                    "conditions": [{{"type": "DisruptionAllowed", "status": "{status}", "reason": "{reason}", "message": "m"}}]"#
            )
        };
        check(&budget("True", "SufficientPods"), "Healthy");
        check(&budget("False", "InsufficientPods"), "Healthy");
        check(&budget("False", "SyncFailed"), "Degraded: SyncFailed: m");
        check("", "Progressing: the controller has not observed it yet");
        let stale = budget("True", "SufficientPods")
            .replace(r#""observedGeneration": 2"#, r#""observedGeneration": 1"#);
        check(
            &stale,
            "Progressing: the controller has observed generation 1, but the object is at generation 2",
        );
    }
}
