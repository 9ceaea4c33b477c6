//! Finds the Pod or ReplicaSet that explains why a workload is unhealthy.
//!
//! In: the body of a workload, and the bodies of ReplicaSets and Pods in its namespace.
//! Out: [`Cause`]: the one object that explains most, and its sentence. Objects of other owners are
//! skipped, so the caller may pass more than belongs to the workload.

use std::cmp::Reverse;

use serde_json::{Map, Value};

use super::pod;
use crate::message::quote;
use crate::object_view::ObjectView;
use moorline_core::object::GroupKind;

/// Annotation that the Deployment controller writes on its ReplicaSets: a number that grows with
/// each rollout.
const REVISION: &str = "deployment.kubernetes.io/revision";
/// Label on the Pods of StatefulSets and DaemonSets: the revision that they were created from.
const REVISION_LABEL: &str = "controller-revision-hash";

/// Reason for the bad health of a workload.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cause {
    /// Kind of the object with the problem: `Pod` or `ReplicaSet`.
    pub kind: &'static str,
    /// Name of this object, in the workload's namespace.
    pub name: String,
    /// Number of Pods of the workload with a problem of the same rank, including this one.
    pub pods: usize,
    /// The problem, as a sentence.
    pub why: String,
}

/// Returns the newest ReplicaSet of a Deployment: the one that all its Pods should come from.
pub fn newest_replica_set<'a>(
    deployment: &Map<String, Value>,
    replica_sets: &[&'a Map<String, Value>],
) -> Option<&'a Map<String, Value>> {
    let own =
        replica_sets.iter().filter(|set| is_owned_by(ObjectView::new(set), ObjectView::new(deployment)));
    let revision = |set: &Map<String, Value>| {
        let text = ObjectView::new(set).text(&["metadata", "annotations", REVISION]);
        text.and_then(|text| text.parse::<u64>().ok()).unwrap_or_default()
    };
    // Of two ReplicaSets with the same revision the smaller name wins, so that the result is
    // stable.
    own.max_by_key(|set| (revision(set), Reverse(ObjectView::new(set).name()))).copied()
}

/// Returns the cause of a workload's problem, as far as its ReplicaSets and Pods reveal it. The
/// caller decides by [`super::health`] if there is a problem at all.
pub fn cause(
    kind: &GroupKind,
    workload: &Map<String, Value>,
    replica_sets: &[&Map<String, Value>],
    pods: &[&Map<String, Value>],
) -> Option<Cause> {
    let owner = match (&*kind.group, &*kind.kind) {
        ("apps", "Deployment") => newest_replica_set(workload, replica_sets)?,
        _ => workload,
    };
    let live = ObjectView::new(owner);
    // With an exceeded quota or a Pod Security violation no Pod exists that could report the
    // problem.
    if let Some(failure) = live.true_condition("ReplicaFailure") {
        let why = format!("its Pods cannot be created: {}", failure.reason_and_message());
        return Some(Cause { kind: "ReplicaSet", name: quote(live.name()), pods: 0, why });
    }
    let own = pods.iter().map(|pod| ObjectView::new(pod)).filter(|pod| is_owned_by(*pod, live));
    let mut troubles: Vec<(ProblemRank, &str, String)> =
        own.filter_map(|pod| ranked_problem(pod, live)).collect();
    troubles.sort();
    let (rank, name, why) = troubles.first()?;
    let pods = troubles.iter().filter(|(other, _, _)| other == rank).count();
    Some(Cause { kind: "Pod", name: quote(name), pods, why: why.clone() })
}

/// Problems, ordered by explanatory value: the first explains most.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum ProblemRank {
    /// A Pod of the newest revision that cannot recover without a change.
    NewHopeless,
    /// A Pod of an older revision that cannot recover without a change.
    OldHopeless,
    /// A Pod that has ended in failure.
    Failed,
    /// A Pod that may still start.
    Passing,
}

fn ranked_problem<'a>(pod: ObjectView<'a>, owner: ObjectView<'_>) -> Option<(ProblemRank, &'a str, String)> {
    let failed = pod.text(&["status", "phase"]) == Some("Failed");
    if pod.text(&["metadata", "deletionTimestamp"]).is_some()
        || pod.text(&["status", "phase"]) == Some("Succeeded")
    {
        return None;
    }
    if failed {
        return Some((ProblemRank::Failed, pod.name(), pod::failure_reason(pod)));
    }
    let trouble = pod::find_problem(pod)?;
    let newest = owner.text(&["status", "updateRevision"]);
    let revision = pod.text(&["metadata", "labels", REVISION_LABEL]);
    let old = newest.is_some_and(|newest| revision.is_some_and(|revision| revision != newest));
    let rank = match (trouble.is_permanent, old) {
        (true, false) => ProblemRank::NewHopeless,
        (true, true) => ProblemRank::OldHopeless,
        (false, _) => ProblemRank::Passing,
    };
    Some((rank, pod.name(), trouble.why))
}

/// True if this owner is the controller of the object, compared by uid.
fn is_owned_by(object: ObjectView<'_>, owner: ObjectView<'_>) -> bool {
    let Some(uid) = owner.text(&["metadata", "uid"]) else { return false };
    let controls = |reference: &Value| {
        reference.get("controller").and_then(Value::as_bool) == Some(true)
            && reference.get("uid").and_then(Value::as_str) == Some(uid)
    };
    object.items(&["metadata", "ownerReferences"]).iter().any(controls)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_fixtures::{body, kind};

    fn set(name: &str, owner: &str, revision: &str, status: &str) -> Map<String, Value> {
        body(&format!(
            r#"{{"metadata": {{"name": "{name}", "uid": "{name}", "annotations": {{"{REVISION}": "{revision}"}},
                "ownerReferences": [{{"uid": "{owner}", "controller": true}}]}}, "status": {{{status}}}}}"#
        ))
    }

    fn pod(name: &str, owner: &str, status: &str) -> Map<String, Value> {
        body(&format!(
            r#"{{"metadata": {{"name": "{name}", "labels": {{"{REVISION_LABEL}": "{name}"}},
                "ownerReferences": [{{"uid": "{owner}", "controller": true}}]}}, "status": {{{status}}}}}"#
        ))
    }

    fn waiting(reason: &str) -> String {
        format!(
            r#""phase": "Pending", "containerStatuses": [{{"name": "app", "state": {{"waiting": {{"reason": "{reason}"}}}}}}]"#
        )
    }

    /// Formats the cause as `kind/name (pods): why`.
    fn found(of: &str, sets: &[Map<String, Value>], pods: &[Map<String, Value>]) -> String {
        let workload =
            body(r#"{"metadata": {"name": "web", "uid": "web"}, "status": {"updateRevision": "new"}}"#);
        let (sets, pods): (Vec<_>, Vec<_>) = (sets.iter().collect(), pods.iter().collect());
        match cause(&kind(of), &workload, &sets, &pods) {
            Some(Cause { kind, name, pods, why }) => format!("{kind}/{name} ({pods}): {why}"),
            None => "none".to_owned(),
        }
    }

    #[test]
    fn a_deployment_s_newest_replica_set_counts() {
        let sets = [set("old", "web", "9", ""), set("new", "web", "10", ""), set("other", "else", "11", "")];
        let pods = [
            pod("a", "old", &waiting("CrashLoopBackOff")),
            pod("b", "new", &waiting("ImagePullBackOff")),
            pod("c", "new", &waiting("ImagePullBackOff")),
            pod("d", "other", &waiting("ErrImagePull")),
        ];
        let expect = "Pod/b (2): the container app waits: ImagePullBackOff";
        assert_eq!(found("Deployment.apps", &sets, &pods), expect);
        assert_eq!(found("Deployment.apps", &sets[2..], &pods), "none");
        assert_eq!(found("Deployment.apps", &sets, &pods[..1]), "none");
    }

    #[test]
    fn what_keeps_pods_from_being_made_is_said_by_the_replica_set() {
        let status = r#""conditions": [{"type": "ReplicaFailure", "status": "True", "reason": "FailedCreate",
            "message": "pods \"web-1\" is forbidden: violates PodSecurity \"restricted:latest\""}]"#;
        let sets = [set("new", "web", "2", status)];
        let expect = "ReplicaSet/new (0): its Pods cannot be created: FailedCreate: \
            pods \"web-1\" is forbidden: violates PodSecurity \"restricted:latest\"";
        assert_eq!(found("Deployment.apps", &sets, &[]), expect);
    }

    #[test]
    fn the_trouble_that_says_most_comes_first() {
        let nowhere = r#""phase": "Pending", "conditions": [{"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "no node"}]"#;
        let pods = [
            pod("a", "web", nowhere),
            pod("b", "web", r#""phase": "Failed", "reason": "Evicted""#),
            pod("c", "web", &waiting("CrashLoopBackOff")),
            pod("new", "web", &waiting("ErrImagePull")),
            pod("e", "web", r#""phase": "Running""#),
        ];
        let found = |pods: &[Map<String, Value>]| found("StatefulSet.apps", &[], pods);
        assert_eq!(found(&pods), "Pod/new (1): the container app waits: ErrImagePull");
        assert_eq!(found(&pods[..3]), "Pod/c (1): the container app waits: CrashLoopBackOff (it ended)");
        assert_eq!(found(&pods[..2]), "Pod/b (1): it failed: Evicted");
        assert_eq!(found(&pods[..1]), "Pod/a (1): it cannot be scheduled: Unschedulable: no node");
        assert_eq!(found(&pods[4..]), "none");
    }
}
