//! Health of a live object: one rule for each known kind, and one generic rule for all others.
//!
//! In: the kind, the body as the API server has it, and facts that the body does not contain
//! ([`Context`]).
//! Out: [`Health`]. A rule reads one body and nothing else. [`cause()`] finds the Pod or ReplicaSet
//! behind an unhealthy workload, [`rules`] evaluates the rules that a Sync defines for a kind, and
//! [`Progress`] judges objects that have been progressing for too long.
//!
//! [`Watchlist`] combines these for all objects of a Sync and schedules which of them have to be
//! read.
//!
//! Two principles hold for every rule. A status of an older generation never counts for the newest
//! one. A status that reports no trouble is trusted: no object is degraded on a guess.
#![doc = include_str!("../README.md")]
#![warn(unreachable_pub)]
// Nothing panics on input; tests may.
#![cfg_attr(not(test), deny(clippy::unwrap_used, clippy::expect_used, clippy::panic))]
#![cfg_attr(not(test), deny(clippy::print_stdout, clippy::print_stderr))]

mod apps;
mod autoscaling;
mod batch;
mod condition;
mod definitions;
mod gateway;
mod generic;
mod message;
mod networking;
mod object_view;
mod pod;
mod progress_deadline;
mod root_cause;
pub mod rules;
mod storage;
#[cfg(test)]
mod test_fixtures;
mod third_party;
mod watchlist;

use serde_json::{Map, Value};

use crate::object_view::ObjectView;
pub use crate::progress_deadline::{Progress, apply_deadline, deadline_for};
pub use crate::root_cause::{Cause, cause, newest_replica_set};
pub use crate::third_party::{DocumentedRule, DocumentedStatus, Verdict, documented_rules};
pub use watchlist::{DueReads, HealthSummary, JudgementInputs, ObjectList, Watchlist};

use moorline_core::object::GroupKind;

/// Health of an object. `why` is a sentence about this object for people; it contains names, counts
/// and messages of controllers, and never the content of a Secret.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Health {
    /// The object is as it should be.
    Healthy,
    /// The object is not ready yet, and may become so.
    Progressing {
        /// The step that is still missing.
        why: String,
    },
    /// The object failed, or has been progressing for too long.
    Degraded {
        /// The failure.
        why: String,
    },
    /// A person or another tool paused the object: nothing is wrong, and nothing waits for it.
    Suspended,
    /// The status does not allow a verdict.
    Unknown {
        /// The information that is missing.
        why: String,
    },
}

/// Tells if objects of a kind report a status.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Reports {
    /// No evidence that they do: the definition has no status subresource.
    #[default]
    No,
    /// The definition has a status subresource, but no object of the kind was seen to use it. Many
    /// definitions have one by habit, so a missing status is waited for, for one minute, and is no
    /// failure.
    Perhaps,
    /// Another object of the kind has reported a status.
    Yes,
}

/// Time at which the volume of a claim is provisioned: `volumeBindingMode` of the StorageClass.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Binding {
    /// Immediately.
    Immediate,
    /// Once a Pod uses the claim.
    WaitForFirstConsumer,
}

/// Facts about an object that its body does not contain.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Context {
    /// Tells if objects of this kind report a status; used only for kinds without a rule of their
    /// own.
    pub reports: Reports,
    /// Binding mode of a volume claim's StorageClass, if it is known.
    pub binding: Option<Binding>,
}

/// Returns the health of a live object as its body reports it now. Pass the result to
/// [`apply_deadline`], so that an object that has been progressing for too long becomes degraded.
#[must_use]
pub fn health(kind: &GroupKind, body: &Map<String, Value>, context: &Context) -> Health {
    let live = ObjectView::new(body);
    if let Some(deletion) = live.deletion_progress() {
        // The status of a namespace names the content that blocks its deletion.
        return if builtin_rule(kind).is_some_and(|family| family.kind == "Namespace") {
            definitions::namespace(live, context)
        } else {
            deletion
        };
    }
    match builtin_rule(kind) {
        Some(family) => (family.rule)(live, context),
        None if has_no_health(kind) => Health::Healthy,
        None => {
            crate::third_party::health(kind, live, context).unwrap_or_else(|| generic::generic(live, context))
        }
    }
}

/// True for kinds whose controllers write a status for every object: an object without a status has
/// not been processed yet.
pub fn always_reports(kind: &GroupKind) -> bool {
    builtin_rule(kind).is_some() || crate::third_party::always_reports(kind)
}

/// True for kinds whose status may report health and therefore has to be read. Of all other kinds
/// only a deletion matters, and their metadata show it.
pub fn may_report(kind: &GroupKind) -> bool {
    builtin_rule(kind).is_some() || !has_no_health(kind) && !crate::third_party::has_no_health(kind)
}

impl Health {
    /// Name of the variant, for conditions, metrics and tables.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Healthy => "Healthy",
            Self::Progressing { .. } => "Progressing",
            Self::Degraded { .. } => "Degraded",
            Self::Suspended => "Suspended",
            Self::Unknown { .. } => "Unknown",
        }
    }

    /// Sentence that explains the health, if there is one.
    pub fn message(&self) -> Option<&str> {
        match self {
            Self::Progressing { why } | Self::Degraded { why } | Self::Unknown { why } => Some(why),
            Self::Healthy | Self::Suspended => None,
        }
    }

    fn progressing(why: impl Into<String>) -> Self {
        Self::Progressing { why: why.into() }
    }

    fn degraded(why: impl Into<String>) -> Self {
        Self::Degraded { why: why.into() }
    }

    fn unknown(why: impl Into<String>) -> Self {
        Self::Unknown { why: why.into() }
    }
}

/// Rule of one built-in kind, and how long its objects may progress without a change.
struct BuiltinRule {
    group: &'static str,
    kind: &'static str,
    rule: fn(ObjectView<'_>, &Context) -> Health,
    deadline: i64,
}

const fn row(
    group: &'static str,
    kind: &'static str,
    minutes: i64,
    rule: fn(ObjectView<'_>, &Context) -> Health,
) -> BuiltinRule {
    BuiltinRule { group, kind, rule, deadline: minutes * 60_000 }
}

const GATEWAY: &str = "gateway.networking.k8s.io";

/// All built-in rules, with their deadlines in minutes. Work that runs to completion may take an
/// hour without a sign of progress; a mere registration finishes within seconds if it finishes at
/// all.
#[rustfmt::skip]
const BUILTIN_RULES: [BuiltinRule; 25] = [
    row("apps",                   "Deployment",              10, apps::deployment),
    row("apps",                   "StatefulSet",             10, apps::stateful_set),
    row("apps",                   "DaemonSet",               10, apps::daemon_set),
    row("apps",                   "ReplicaSet",              10, apps::replica_set),
    row("",                       "ReplicationController",   10, apps::replica_set),
    row("",                       "Pod",                     10, pod::pod),
    row("batch",                  "Job",                     60, batch::job),
    row("batch",                  "CronJob",                  2, batch::cron_job),
    row("",                       "PersistentVolumeClaim",    5, storage::claim),
    row("",                       "Service",                 10, networking::service),
    row("networking.k8s.io",      "Ingress",                 10, networking::ingress),
    row("autoscaling",            "HorizontalPodAutoscaler",  5, autoscaling::autoscaler),
    row("policy",                 "PodDisruptionBudget",      5, autoscaling::disruption_budget),
    row("apiregistration.k8s.io", "APIService",               5, definitions::api_service),
    row("apiextensions.k8s.io",   "CustomResourceDefinition", 2, definitions::definition),
    row("",                       "Namespace",               10, definitions::namespace),
    row(GATEWAY,                  "GatewayClass",            10, gateway::class),
    row(GATEWAY,                  "Gateway",                 10, gateway::gateway),
    row(GATEWAY,                  "HTTPRoute",               10, gateway::route),
    row(GATEWAY,                  "GRPCRoute",               10, gateway::route),
    row(GATEWAY,                  "TLSRoute",                10, gateway::route),
    row(GATEWAY,                  "TCPRoute",                10, gateway::route),
    row(GATEWAY,                  "UDPRoute",                10, gateway::route),
    row(GATEWAY,                  "ReferenceGrant",          10, always_healthy),
    row(GATEWAY,                  "BackendTLSPolicy",        10, gateway::policy),
];

/// Groups with kinds that are static data and have no health of their own; `*` means every kind of
/// the group.
#[rustfmt::skip]
const KINDS_WITHOUT_HEALTH: [(&str, &[&str]); 12] = [
    ("", &[
        "ConfigMap", "Secret", "ServiceAccount", "Endpoints", "Event", "LimitRange", "ResourceQuota", "PodTemplate",
    ]),
    ("apps", &["ControllerRevision"]),
    ("admissionregistration.k8s.io", &[
        "MutatingWebhookConfiguration", "ValidatingWebhookConfiguration", "ValidatingAdmissionPolicyBinding",
        "MutatingAdmissionPolicy", "MutatingAdmissionPolicyBinding",
    ]),
    ("coordination.k8s.io", &["*"]),
    ("discovery.k8s.io", &["*"]),
    ("events.k8s.io", &["*"]),
    ("networking.k8s.io", &["IngressClass", "NetworkPolicy", "IPAddress"]),
    ("node.k8s.io", &["*"]),
    ("policy", &["PodSecurityPolicy"]),
    ("rbac.authorization.k8s.io", &["*"]),
    ("scheduling.k8s.io", &["*"]),
    ("storage.k8s.io", &["StorageClass", "CSIDriver", "CSINode", "CSIStorageCapacity", "VolumeAttributesClass"]),
];

/// True for an object that is healthy as soon as it exists, judged by its manifest alone: a Service
/// that needs no load balancer.
pub fn is_healthy_by_manifest(kind: &GroupKind, manifest: &[u8]) -> bool {
    let balanced = || manifest.windows(BALANCER.len()).any(|part| part == BALANCER);
    kind.group.is_empty() && &*kind.kind == "Service" && !balanced()
}

/// True if a controller has written anything into the status of the object.
pub fn has_reported(body: &Map<String, Value>) -> bool {
    !generic::has_no_report(ObjectView::new(body))
}

const BALANCER: &[u8] = b"LoadBalancer";

fn builtin_rule(kind: &GroupKind) -> Option<&'static BuiltinRule> {
    BUILTIN_RULES.iter().find(|family| family.kind == &*kind.kind && family.group == &*kind.group)
}

fn has_no_health(kind: &GroupKind) -> bool {
    let group = KINDS_WITHOUT_HEALTH.iter().find(|(group, _)| *group == &*kind.group);
    group.is_some_and(|(_, kinds)| kinds.iter().any(|still| *still == "*" || *still == &*kind.kind))
}

/// Rule of a kind without a health of its own.
fn always_healthy(_: ObjectView<'_>, _: &Context) -> Health {
    Health::Healthy
}

#[cfg(test)]
mod tests {
    use super::test_fixtures::check;
    use super::*;

    #[test]
    fn kinds_that_only_say_something_are_healthy() {
        for kind in
            ["ConfigMap", "Secret", "ClusterRole.rbac.authorization.k8s.io", "Lease.coordination.k8s.io"]
        {
            check(kind, r#"{"data": {"a": "b"}}"#, "Healthy");
        }
        check(
            "Secret",
            r#"{"status": {"phase": "Failed", "conditions": [{"type": "Ready", "status": "False"}]}}"#,
            "Healthy",
        );
        let deleted =
            r#"{"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z", "finalizers": ["a/b", "c"]}}"#;
        check("Secret", deleted, "Progressing: it is being deleted, and waits for the finalizer a/b and c");
        check("Deployment.apps", &deleted.replace(r#""a/b", "c""#, ""), "Progressing: it is being deleted");
    }

    #[test]
    fn the_shell_knows_which_statuses_to_read() {
        let check = |group: &str, kind: &str, rule: bool, report: bool| {
            let kind = GroupKind::new(group, kind);
            assert_eq!((always_reports(&kind), may_report(&kind)), (rule, report), "{kind}");
        };
        check("apps", "Deployment", true, true);
        check("extensions", "Deployment", false, true);
        check("", "ConfigMap", false, false);
        check("example.com", "Widget", false, true);
        check("", "PersistentVolume", false, true);
        check("rbac.authorization.k8s.io", "Role", false, false);
        let service = GroupKind::new("", "Service");
        assert!(is_healthy_by_manifest(&service, br#"{"spec":{"ports":[]}}"#));
        assert!(!is_healthy_by_manifest(&service, br#"{"spec":{"type":"LoadBalancer"}}"#));
        assert!(!is_healthy_by_manifest(&GroupKind::new("apps", "Deployment"), b"{}"));
    }
}
