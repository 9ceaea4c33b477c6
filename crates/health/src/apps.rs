//! Long-running workloads: Deployment, StatefulSet, DaemonSet, ReplicaSet and
//! ReplicationController.
//!
//! In: a live object.
//! Out: its health. All of these controllers write `observedGeneration`, so a status without it
//! counts as missing, and all omit counts of 0. Counts are compared in the order of a rollout:
//! created, updated, available.

use super::{Context, Health};
use crate::message::{count_are, count_of_are};
use crate::object_view::ObjectView;

/// Replicas of a workload whose spec has no `replicas`.
const DEFAULT_REPLICAS: u64 = 1;

pub(super) fn deployment(live: ObjectView<'_>, _: &Context) -> Health {
    if live.is_true(&["spec", "paused"]) {
        return Health::Suspended;
    }
    if let Some(unseen) = live.unobserved_status() {
        return unseen;
    }
    let wanted = desired_replicas(live);
    let count = |field| live.count(&["status", field]);
    let (all, updated, available) = (count("replicas"), count("updatedReplicas"), count("availableReplicas"));
    let rollout = if updated < wanted {
        Some(format!("{} updated", count_of_are(updated, wanted, "replica")))
    } else if all > updated {
        Some(format!("{} still to be removed", count_are(all - updated, "old replica")))
    } else if available < wanted {
        Some(format!("{} available", count_of_are(available, wanted, "replica")))
    } else {
        None
    };
    // If all Pods of the newest template exist, the condition is about an older template that a
    // corrected one has replaced.
    if let Some(failure) = live.true_condition("ReplicaFailure").filter(|_| updated < wanted) {
        return Health::degraded(format!("its Pods cannot be created: {}", failure.reason_and_message()));
    }
    let late =
        live.condition("Progressing").filter(|it| it.is_false() && it.reason == "ProgressDeadlineExceeded");
    match (rollout, late) {
        (Some(why), Some(_)) => {
            Health::degraded(format!("{why}, and there was no progress within {}", limit(live)))
        }
        (None, Some(_)) => Health::degraded(format!("there was no progress within {}", limit(live))),
        (Some(why), None) => Health::progressing(why),
        (None, None) => Health::Healthy,
    }
}

pub(super) fn replica_set(live: ObjectView<'_>, _: &Context) -> Health {
    if let Some(unseen) = live.unobserved_status() {
        return unseen;
    }
    if let Some(failure) = live.true_condition("ReplicaFailure") {
        return Health::degraded(format!("its Pods cannot be created: {}", failure.reason_and_message()));
    }
    let (wanted, all) = (desired_replicas(live), live.count(&["status", "replicas"]));
    let available = live.count(&["status", "availableReplicas"]);
    if available < wanted {
        return Health::progressing(format!("{} available", count_of_are(available, wanted, "replica")));
    }
    surplus(all, wanted).unwrap_or(Health::Healthy)
}

pub(super) fn stateful_set(live: ObjectView<'_>, _: &Context) -> Health {
    if let Some(unseen) = live.unobserved_status() {
        return unseen;
    }
    let (wanted, all) = (desired_replicas(live), live.count(&["status", "replicas"]));
    // Only `availableReplicas` takes `minReadySeconds` into account.
    let (field, word) = match live.count(&["spec", "minReadySeconds"]) {
        0 => ("readyReplicas", "ready"),
        _ => ("availableReplicas", "available"),
    };
    let ready = live.count(&["status", field]);
    if ready < wanted {
        return Health::progressing(format!("{} {word}", count_of_are(ready, wanted, "replica")));
    }
    if let Some(surplus) = surplus(all, wanted) {
        return surplus;
    }
    // With OnDelete, old Pods stay until a person deletes them: this is the intended behaviour.
    if live.text(&["spec", "updateStrategy", "type"]) == Some("OnDelete") {
        return Health::Healthy;
    }
    let updated = live.count(&["status", "updatedReplicas"]);
    // Pods below the partition keep the old revision.
    let partition = live.count(&["spec", "updateStrategy", "rollingUpdate", "partition"]);
    let revision = |field| live.text(&["status", field]);
    let rolled_out = match partition {
        0 => revision("updateRevision") == revision("currentRevision"),
        _ => updated >= wanted.saturating_sub(partition),
    };
    match rolled_out {
        true => Health::Healthy,
        false => {
            let wanted = wanted.saturating_sub(partition);
            Health::progressing(format!("{} updated", count_of_are(updated.min(wanted), wanted, "replica")))
        }
    }
}

pub(super) fn daemon_set(live: ObjectView<'_>, _: &Context) -> Health {
    if let Some(unseen) = live.unobserved_status() {
        return unseen;
    }
    let count = |field| live.count(&["status", field]);
    let wanted = count("desiredNumberScheduled");
    let on_delete = live.text(&["spec", "updateStrategy", "type"]) == Some("OnDelete");
    let updated = count("updatedNumberScheduled");
    if updated < wanted && !on_delete {
        return Health::progressing(format!("{} updated", count_of_are(updated, wanted, "Pod")));
    }
    let available = count("numberAvailable");
    if available < wanted {
        return Health::progressing(format!("{} available", count_of_are(available, wanted, "Pod")));
    }
    Health::Healthy
}

fn desired_replicas(live: ObjectView<'_>) -> u64 {
    live.number(&["spec", "replicas"]).unwrap_or(DEFAULT_REPLICAS)
}

/// Progressing while there are more replicas than wanted.
fn surplus(all: u64, wanted: u64) -> Option<Health> {
    let surplus = all.checked_sub(wanted).filter(|surplus| *surplus > 0)?;
    Some(Health::progressing(format!("{} still to be removed", count_are(surplus, "replica"))))
}

/// The controller's own deadline for a rollout.
fn limit(live: ObjectView<'_>) -> String {
    let seconds = live.number(&["spec", "progressDeadlineSeconds"]).unwrap_or(600);
    crate::message::format_duration(i64::try_from(seconds).unwrap_or(i64::MAX / 1000).saturating_mul(1000))
}

#[cfg(test)]
mod tests {
    use crate::test_fixtures::check;

    /// Body of generation 2 with this spec, and a status that has observed it.
    fn seen(spec: &str, status: &str) -> String {
        format!(
            r#"{{"metadata": {{"generation": 2}}, "spec": {{{spec}}}, "status": {{"observedGeneration": 2{}{status}}}}}"#,
            if status.is_empty() { "" } else { ", " }
        )
    }

    #[test]
    fn a_deployment() {
        let check =
            |spec: &str, status: &str, expect: &str| check("Deployment.apps", &seen(spec, status), expect);
        let three = r#""replicas": 3"#;
        let counts = |all, updated, available| {
            format!(r#""replicas": {all}, "updatedReplicas": {updated}, "availableReplicas": {available}"#)
        };
        check(three, &counts(3, 3, 3), "Healthy");
        check("", &counts(1, 1, 1), "Healthy");
        check(r#""replicas": 0"#, "", "Healthy");
        check(three, "", "Progressing: 0 of 3 replicas are updated");
        check(three, &counts(4, 1, 3), "Progressing: 1 of 3 replicas is updated");
        check(three, &counts(4, 3, 3), "Progressing: 1 old replica is still to be removed");
        check(three, &counts(3, 3, 2), "Progressing: 2 of 3 replicas are available");
        check(r#""replicas": 0"#, r#""replicas": 2"#, "Progressing: 2 old replicas are still to be removed");
        check(r#""replicas": 3, "paused": true"#, &counts(4, 1, 3), "Suspended");
        check(r#""replicas": 3, "paused": false"#, &counts(3, 3, 3), "Healthy");

        let late = r#""conditions": [{"type": "Progressing", "status": "False", "reason": "ProgressDeadlineExceeded"}]"#;
        let expect = "Degraded: 2 of 3 replicas are available, and there was no progress within 10 minutes";
        check(three, &format!("{}, {late}", counts(3, 3, 2)), expect);
        check(
            r#""progressDeadlineSeconds": 30"#,
            late,
            "Degraded: 0 of 1 replica is updated, and there was no progress within 30 seconds",
        );
        let complete =
            late.replace("False", "True").replace("ProgressDeadlineExceeded", "NewReplicaSetAvailable");
        check(
            three,
            &format!("{}, {complete}", counts(3, 3, 2)),
            "Progressing: 2 of 3 replicas are available",
        );
        let quota = r#""conditions": [{"type": "ReplicaFailure", "status": "True", "reason": "FailedCreate",
            "message": "pods \"web-1\" is forbidden: exceeded quota: few"}]"#;
        let expect = r#"Degraded: its Pods cannot be created: FailedCreate: pods "web-1" is forbidden: exceeded quota: few"#;
        check(three, quota, expect);
        // The newest Pods were created; the failure belongs to the previous template.
        let mended = format!("{}, {quota}", counts(4, 3, 2));
        check(three, &mended, "Progressing: 1 old replica is still to be removed");
        check(three, &format!("{}, {}", counts(3, 3, 3), quota.replace("True", "False")), "Healthy");
    }

    #[test]
    fn a_status_of_an_older_generation_says_nothing() {
        let fine = r#""replicas": 1, "updatedReplicas": 1, "readyReplicas": 1, "availableReplicas": 1"#;
        for kind in [
            "Deployment.apps",
            "StatefulSet.apps",
            "DaemonSet.apps",
            "ReplicaSet.apps",
            "ReplicationController",
        ] {
            let body = seen("", fine);
            check(kind, &body, "Healthy");
            let old =
                "Progressing: the controller has observed generation 1, but the object is at generation 2";
            check(kind, &body.replace(r#""observedGeneration": 2"#, r#""observedGeneration": 1"#), old);
            let never = "Progressing: the controller has not observed it yet";
            check(kind, &body.replace(r#""observedGeneration": 2, "#, ""), never);
            check(kind, r#"{"metadata": {"generation": 1}}"#, never);
            // As after a restore from a backup.
            check(kind, &body.replace(r#""observedGeneration": 2"#, r#""observedGeneration": 9"#), "Healthy");
        }
    }

    #[test]
    fn a_replica_set() {
        let check =
            |spec: &str, status: &str, expect: &str| check("ReplicaSet.apps", &seen(spec, status), expect);
        let two = r#""replicas": 2"#;
        check(two, r#""replicas": 2, "availableReplicas": 2"#, "Healthy");
        check(r#""replicas": 0"#, "", "Healthy");
        check(two, r#""replicas": 2, "availableReplicas": 1"#, "Progressing: 1 of 2 replicas is available");
        check(
            two,
            r#""replicas": 4, "availableReplicas": 4"#,
            "Progressing: 2 replicas are still to be removed",
        );
        let failure = r#""conditions": [{"type": "ReplicaFailure", "status": "True", "message": "no"}]"#;
        check(two, failure, "Degraded: its Pods cannot be created: no");
    }

    #[test]
    fn a_stateful_set() {
        let check =
            |spec: &str, status: &str, expect: &str| check("StatefulSet.apps", &seen(spec, status), expect);
        let three = r#""replicas": 3"#;
        let rest = r#""replicas": 3, "readyReplicas": 3, "currentRevision": "a", "updateRevision": "a""#;
        let rolling = r#""replicas": 3, "readyReplicas": 3, "currentRevision": "a", "updateRevision": "b", "updatedReplicas": 1"#;
        check(three, rest, "Healthy");
        check(r#""replicas": 0"#, "", "Healthy");
        check(three, "", "Progressing: 0 of 3 replicas are ready");
        check(three, rolling, "Progressing: 1 of 3 replicas is updated");
        check(r#""replicas": 2"#, rest, "Progressing: 1 replica is still to be removed");
        let part = |partition| {
            format!(r#"{three}, "updateStrategy": {{"rollingUpdate": {{"partition": {partition}}}}}"#)
        };
        check(&part(2), rolling, "Healthy");
        check(&part(1), rolling, "Progressing: 1 of 2 replicas is updated");
        check(&part(9), rolling, "Healthy");
        let on_delete = format!(r#"{three}, "updateStrategy": {{"type": "OnDelete"}}"#);
        check(&on_delete, rolling, "Healthy");
        check(
            &on_delete,
            &rolling.replace(r#""readyReplicas": 3"#, r#""readyReplicas": 2"#),
            "Progressing: 2 of 3 replicas are ready",
        );
        let patient = format!(r#"{three}, "minReadySeconds": 30"#);
        check(&patient, rest, "Progressing: 0 of 3 replicas are available");
        check(&patient, &format!(r#"{rest}, "availableReplicas": 3"#), "Healthy");
    }

    #[test]
    fn a_daemon_set() {
        let check =
            |spec: &str, status: &str, expect: &str| check("DaemonSet.apps", &seen(spec, status), expect);
        let counts = |updated, available| {
            format!(
                r#""desiredNumberScheduled": 3, "updatedNumberScheduled": {updated}, "numberAvailable": {available}"#
            )
        };
        check("", &counts(3, 3), "Healthy");
        check("", r#""desiredNumberScheduled": 0"#, "Healthy");
        check("", &counts(1, 3), "Progressing: 1 of 3 Pods is updated");
        check("", &counts(3, 2), "Progressing: 2 of 3 Pods are available");
        let on_delete = r#""updateStrategy": {"type": "OnDelete"}"#;
        check(on_delete, &counts(0, 3), "Healthy");
        check(on_delete, &counts(0, 2), "Progressing: 2 of 3 Pods are available");
    }
}
