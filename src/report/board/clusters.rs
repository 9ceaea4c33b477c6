//! Summarizes the clusters that hold the objects of Syncs.
//!
//! In: the statuses of Syncs, each with the name of its cluster, and what is known of the servers.
//! Out: one [`ClusterSummary`] for each cluster that a Sync names. Without a Sync there is no row,
//! so people who may not read the Syncs of a cluster do not learn that it exists.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use serde_json::Value;

use super::SyncState;
use crate::api::SyncStatus;

/// Name of the cluster in which the Syncs themselves are. Names of other clusters have a slash.
pub const HOME_CLUSTER: &str = "home";

/// Prefix of messages about the cluster of a Sync.
const ABOUT_CLUSTER: &str = "spec.cluster: ";

/// Facts about the API server of a cluster.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ClusterFacts {
    /// Its version, such as `v1.33.4`.
    pub release: Option<Box<str>>,
    /// Time since which it has not answered; `None` while it answers.
    pub silent_since: Option<Time>,
    /// Version of the board at the last change.
    pub version: u64,
}

/// State of a cluster. States that need a person come first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum ClusterState {
    /// The access leads to another cluster than before.
    OtherCluster,
    /// The Secret gives no access, or the cluster refuses its user.
    Refused,
    /// The API server does not answer.
    Unreachable,
    /// Nothing has been heard of it yet.
    Unknown,
    /// The API server answers.
    Reachable,
}

impl ClusterState {
    /// All states.
    pub const ALL: [Self; 5] =
        [Self::OtherCluster, Self::Refused, Self::Unreachable, Self::Unknown, Self::Reachable];

    /// The label in JSON and in filters.
    pub fn label(self) -> &'static str {
        match self {
            Self::OtherCluster => "OtherCluster",
            Self::Refused => "Refused",
            Self::Unreachable => "Unreachable",
            Self::Unknown => "Unknown",
            Self::Reachable => "Reachable",
        }
    }

    /// The meaning, as a sentence without a subject.
    pub fn meaning(self) -> &'static str {
        match self {
            Self::OtherCluster => "the Secret leads to another cluster than before",
            Self::Refused => "the Secret gives no access, or the cluster refuses its user",
            Self::Unreachable => "the API server does not answer",
            Self::Unknown => "nothing has been heard of it yet",
            Self::Reachable => "the API server answers",
        }
    }
}

/// Summary of one cluster.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClusterSummary {
    /// [`HOME_CLUSTER`], or the Secret that gives access.
    pub name: Box<str>,
    /// Its state.
    pub state: ClusterState,
    /// Begin of an outage.
    pub since: Option<Time>,
    /// Message of a Sync about the state; empty if there is none.
    pub message: String,
    /// Version of its API server.
    pub release: Option<Box<str>>,
    /// Number of its Syncs in each state.
    pub syncs: BTreeMap<SyncState, usize>,
}

impl ClusterSummary {
    /// The number of its Syncs.
    pub fn total(&self) -> usize {
        self.syncs.values().sum()
    }
}

/// Returns the name of another cluster that a Sync names: `NAMESPACE/SECRET`, and the key if it
/// names one. `None` for the home cluster.
pub fn named_cluster(namespace: &str, sync: &Value) -> Option<Box<str>> {
    let cluster = sync.pointer("/spec/cluster").filter(|cluster| !cluster.is_null())?;
    let text = |field: &str| cluster.pointer(field).and_then(Value::as_str);
    let secret = text("/secretRef/name").unwrap_or_default();
    Some(cluster_name(namespace, secret, text("/secretRef/key")))
}

/// Returns the name of the cluster to which a Secret gives access.
pub fn cluster_name(namespace: &str, secret: &str, key: Option<&str>) -> Box<str> {
    match key {
        Some(key) => format!("{namespace}/{secret}/{key}").into(),
        None => format!("{namespace}/{secret}").into(),
    }
}

/// Summarizes the clusters of these Syncs, ordered by name, the home cluster first.
pub fn summarize_clusters<'a>(
    syncs: impl IntoIterator<Item = (&'a str, &'a SyncStatus)>,
    facts: impl Fn(&str) -> Option<ClusterFacts>,
) -> Vec<ClusterSummary> {
    let mut members = BTreeMap::<(bool, &str), Vec<&SyncStatus>>::new();
    for (cluster, status) in syncs {
        members.entry((cluster != HOME_CLUSTER, cluster)).or_default().push(status);
    }
    members.into_iter().map(|((_, name), all)| summarize(name, &all, facts(name))).collect()
}

fn summarize(name: &str, all: &[&SyncStatus], facts: Option<ClusterFacts>) -> ClusterSummary {
    let mut syncs = BTreeMap::new();
    for status in all {
        *syncs.entry(SyncState::from_status(status)).or_default() += 1;
    }
    let of_syncs = all.iter().filter_map(|status| judge(name, status));
    // The first Sync that says the worst.
    let worst = of_syncs.min_by_key(|(state, _)| *state);
    let silent_since = facts.as_ref().and_then(|facts| facts.silent_since.clone());
    let (state, message) = match worst {
        Some((state @ (ClusterState::OtherCluster | ClusterState::Refused), ready)) => {
            (state, ready.message.clone())
        }
        Some((ClusterState::Unreachable, ready)) => (ClusterState::Unreachable, ready.message.clone()),
        _ if silent_since.is_some() => (ClusterState::Unreachable, String::new()),
        Some((state, _)) => (state, String::new()),
        None if facts.is_some() => (ClusterState::Reachable, String::new()),
        None => (ClusterState::Unknown, String::new()),
    };
    let said = || {
        let is_away =
            |ready: &&Condition| ClusterReason::parse(&ready.reason) == Some(ClusterReason::Unreachable);
        let away = all.iter().filter_map(|status| ready_of(status).filter(is_away));
        away.map(|ready| ready.last_transition_time.clone()).min_by_key(|time| time.0)
    };
    let since = silent_since.or_else(said).filter(|_| state == ClusterState::Unreachable);
    let release = facts.and_then(|facts| facts.release);
    ClusterSummary { name: name.into(), state, since, message, release, syncs }
}

/// Reason of a Sync that cannot work in its cluster.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ClusterReason {
    /// The access leads to another cluster.
    Other,
    /// The Secret has no usable access.
    Invalid,
    /// The access, or some other Secret or right, is missing.
    Missing,
    /// The cluster does not answer.
    Unreachable,
}

impl ClusterReason {
    fn parse(text: &str) -> Option<Self> {
        Some(match text {
            "OtherCluster" => Self::Other,
            "KubeconfigInvalid" => Self::Invalid,
            "RightsMissing" | "SecretMissing" | "SecretNotAllowed" => Self::Missing,
            "ClusterUnreachable" => Self::Unreachable,
            _ => return None,
        })
    }
}

/// Returns the state of a cluster by one of its Syncs; `None` if the Sync says nothing about it.
fn judge<'a>(name: &str, status: &'a SyncStatus) -> Option<(ClusterState, &'a Condition)> {
    let ready = ready_of(status)?;
    let is_about = ready.message.starts_with(ABOUT_CLUSTER);
    let state = match ClusterReason::parse(&ready.reason) {
        Some(ClusterReason::Other) => ClusterState::OtherCluster,
        Some(ClusterReason::Invalid) => ClusterState::Refused,
        Some(ClusterReason::Missing) if is_about => ClusterState::Refused,
        Some(ClusterReason::Unreachable) => ClusterState::Unreachable,
        _ if ready.status == "True" || name == HOME_CLUSTER => ClusterState::Reachable,
        _ => return None,
    };
    Some((state, ready))
}

fn ready_of(status: &SyncStatus) -> Option<&Condition> {
    status.conditions.iter().find(|known| known.type_ == "Ready")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn status(ready: &str, reason: &str, message: &str) -> SyncStatus {
        let condition = json!({
            "type": "Ready", "status": ready, "reason": reason, "message": message,
            "lastTransitionTime": "2026-01-02T03:04:05Z",
        });
        serde_json::from_value(json!({"conditions": [condition]})).unwrap()
    }

    fn time(text: &str) -> Time {
        Time(text.parse().unwrap())
    }

    #[test]
    fn the_state_of_a_cluster_is_the_worst_that_a_sync_or_its_server_says() {
        let well = status("True", "Applied", "");
        let broken = status("False", "RenderFailed", "a.yaml:1: no kind");
        let away = status("False", "ClusterUnreachable", "spec.cluster: connection refused");
        let other = status("False", "OtherCluster", "spec.cluster: it leads to another one");
        let no_secret = status("False", "SecretMissing", "spec.cluster: there is no Secret");
        let no_login = status("False", "SecretMissing", "the Secret git does not exist");
        let new = SyncStatus::default();
        let answers = ClusterFacts { release: Some("v1.36.3".into()), ..ClusterFacts::default() };
        let silent = ClusterFacts { silent_since: Some(time("2026-01-02T02:00:00Z")), ..answers.clone() };
        let (said, seen) = (Some("2026-01-02T03:04:05Z"), Some("2026-01-02T02:00:00Z"));
        for (name, syncs, facts, state, since, message) in [
            ("a/east", vec![&well], None, ClusterState::Reachable, None, ""),
            ("a/east", vec![&new], None, ClusterState::Unknown, None, ""),
            ("a/east", vec![&broken], None, ClusterState::Unknown, None, ""),
            ("a/east", vec![&broken], Some(&answers), ClusterState::Reachable, None, ""),
            (HOME_CLUSTER, vec![&broken], None, ClusterState::Reachable, None, ""),
            ("a/east", vec![&well], Some(&silent), ClusterState::Unreachable, seen, ""),
            ("a/east", vec![&well, &away], None, ClusterState::Unreachable, said, "spec.cluster: conn"),
            ("a/east", vec![&away], Some(&silent), ClusterState::Unreachable, seen, "spec.cluster: conn"),
            ("a/east", vec![&well, &no_secret, &away], None, ClusterState::Refused, None, "spec.cluster: th"),
            ("a/east", vec![&no_login], Some(&answers), ClusterState::Reachable, None, ""),
            ("a/east", vec![&no_secret, &other], Some(&silent), ClusterState::OtherCluster, None, "spec.cl"),
        ] {
            let members = syncs.iter().map(|&status| (name, status));
            let [found] = &summarize_clusters(members, |_| facts.cloned())[..] else { panic!("{name}") };
            assert_eq!(found.state, state, "{found:?}");
            assert_eq!(found.since, since.map(time), "{found:?}");
            assert!(found.message.starts_with(message) && found.message.is_empty() == message.is_empty());
            assert_eq!(found.total(), syncs.len());
            assert_eq!(found.release, facts.and_then(|facts| facts.release.clone()));
        }
        let two = summarize_clusters([("a/b", &well), (HOME_CLUSTER, &well), ("a/b", &new)], |_| None);
        let rows: Vec<(&str, usize)> = two.iter().map(|it| (&*it.name, it.total())).collect();
        assert_eq!(rows, [(HOME_CLUSTER, 1), ("a/b", 2)]);
    }

    #[test]
    fn a_cluster_is_named_by_the_secret_that_gives_access() {
        let named = |spec: Value| named_cluster("shop", &json!({"spec": spec}));
        assert_eq!(named(json!({})), None);
        assert_eq!(named(json!({"cluster": null})), None);
        let secret = |more: Value| named(json!({"cluster": {"secretRef": more}}));
        assert_eq!(secret(json!({"name": "east"})).as_deref(), Some("shop/east"));
        assert_eq!(secret(json!({"name": "east", "key": "value"})).as_deref(), Some("shop/east/value"));
    }
}
