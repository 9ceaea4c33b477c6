//! What lies beneath a workload that is not well.
//!
//! In: the body of a workload, and those of ReplicaSets and Pods of its namespace that were read because of it. Out:
//! [`Cause`]: the one object that says most, and its sentence. Whatever is not the workload's own is passed over, so more may
//! be given than belongs to it.

use std::cmp::Reverse;

use serde_json::{Map, Value};

use super::live::Live;
use super::pod;
use super::sentence::told;
use moorline_core::object::GroupKind;

/// Written by the Deployment controller on its ReplicaSets: a number that grows with each rollout.
const REVISION: &str = "deployment.kubernetes.io/revision";
/// On the Pods of a StatefulSet and a DaemonSet: the revision that they were made from.
const REVISION_LABEL: &str = "controller-revision-hash";

/// Why a workload is not well.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cause {
    /// The kind of the object that says so: `Pod` or `ReplicaSet`.
    pub kind: &'static str,
    /// Its name, in the workload's namespace.
    pub name: String,
    /// How many Pods of the workload are in the same trouble, this one counted.
    pub pods: usize,
    /// What it says, as a sentence.
    pub why: String,
}

/// The newest ReplicaSet of a Deployment: the one that its Pods have to come from.
pub fn newest_replica_set<'a>(
    deployment: &Map<String, Value>,
    replica_sets: &[&'a Map<String, Value>],
) -> Option<&'a Map<String, Value>> {
    let own = replica_sets.iter().filter(|set| is_owned_by(Live::new(set), Live::new(deployment)));
    let revision = |set: &Map<String, Value>| {
        let text = Live::new(set).text(&["metadata", "annotations", REVISION]);
        text.and_then(|text| text.parse::<u64>().ok()).unwrap_or_default()
    };
    // Of two of one revision the one with the smaller name: the same answer each time.
    own.max_by_key(|set| (revision(set), Reverse(Live::new(set).name()))).copied()
}

/// The cause of a workload's trouble, as far as its ReplicaSets and Pods tell. None where they say nothing; whether there is
/// trouble at all is for [`super::health`] to say.
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
    let live = Live::new(owner);
    // A quota or Pod Security: no Pod was made that could say it.
    if let Some(failure) = live.holds("ReplicaFailure") {
        let why = format!("its Pods cannot be created: {}", failure.says());
        return Some(Cause { kind: "ReplicaSet", name: told(live.name()), pods: 0, why });
    }
    let own = pods.iter().map(|pod| Live::new(pod)).filter(|pod| is_owned_by(*pod, live));
    let mut troubles: Vec<(Rank, &str, String)> = own.filter_map(|pod| trouble(pod, live)).collect();
    troubles.sort();
    let (rank, name, why) = troubles.first()?;
    let pods = troubles.iter().filter(|(other, _, _)| other == rank).count();
    Some(Cause { kind: "Pod", name: told(name), pods, why: why.clone() })
}

/// Which trouble says most, the first first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Rank {
    /// A Pod of the newest revision that will not come up by itself.
    NewHopeless,
    /// One of an older revision.
    OldHopeless,
    /// A Pod that has ended in failure.
    Failed,
    /// One that may still come up.
    Passing,
}

fn trouble<'a>(pod: Live<'a>, owner: Live<'_>) -> Option<(Rank, &'a str, String)> {
    let failed = pod.text(&["status", "phase"]) == Some("Failed");
    if pod.text(&["metadata", "deletionTimestamp"]).is_some()
        || pod.text(&["status", "phase"]) == Some("Succeeded")
    {
        return None;
    }
    if failed {
        return Some((Rank::Failed, pod.name(), pod::end(pod)));
    }
    let trouble = pod::trouble(pod)?;
    let newest = owner.text(&["status", "updateRevision"]);
    let revision = pod.text(&["metadata", "labels", REVISION_LABEL]);
    let old = newest.is_some_and(|newest| revision.is_some_and(|revision| revision != newest));
    let rank = match (trouble.hopeless, old) {
        (true, false) => Rank::NewHopeless,
        (true, true) => Rank::OldHopeless,
        (false, _) => Rank::Passing,
    };
    Some((rank, pod.name(), trouble.why))
}

/// Whether the controller of an object is this one, by its uid.
fn is_owned_by(object: Live<'_>, owner: Live<'_>) -> bool {
    let Some(uid) = owner.text(&["metadata", "uid"]) else { return false };
    let controls = |reference: &Value| {
        reference.get("controller").and_then(Value::as_bool) == Some(true)
            && reference.get("uid").and_then(Value::as_str) == Some(uid)
    };
    object.items(&["metadata", "ownerReferences"]).iter().any(controls)
}

#[cfg(test)]
mod tests {
    use super::super::fixture::{body, kind};
    use super::*;

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

    /// `kind/name (pods): why`.
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
