//! Autoscaling of Pods and nodes.
//!
//! In: nothing.
//! Out: rules.

use super::rule::Check::{FailedIfFalse, FailedIfTrue, ProgressingIfTrue, Required, SuspendedIfTrue};
use super::rule::Generation::{Nowhere, WhereWritten};
use super::rule::IfFalse::{ByReason, Fails, Waits};
use super::rule::Switch::Annotation;
use super::rule::{MissingStatus, Project, Rule, kind_rule, no_status, status_rule};

/// Resources that a provider must find before it can create nodes: images, networks, roles.
const NODE_CLASS: Rule =
    status_rule(WhereWritten, &[FailedIfFalse(&["ValidationSucceeded"]), Required("Ready", ByReason)]);

#[rustfmt::skip]
pub(super) const PROJECTS: &[Project] = &[
    Project { name: "Karpenter", rows: &[
        kind_rule("karpenter.sh", &["NodePool"], 10, NODE_CLASS),
        kind_rule("karpenter.sh", &["NodeClaim"], 20, status_rule(WhereWritten, &[Required("Ready", Waits)])),
        kind_rule("karpenter.k8s.aws", &["EC2NodeClass"], 10, NODE_CLASS),
        kind_rule("karpenter.azure.com", &["AKSNodeClass"], 10, NODE_CLASS),
    ]},
    Project { name: "KEDA", rows: &[
        kind_rule("keda.sh", &["ScaledObject", "ScaledJob"], 10, status_rule(Nowhere, &[Required("Ready", Fails), SuspendedIfTrue(&["Paused"])])
            .with_suspended_by(&[Annotation("autoscaling.keda.sh/paused", "true")])),
        no_status("keda.sh", &["TriggerAuthentication", "ClusterTriggerAuthentication"]),
    ]},
    Project { name: "Vertical Pod Autoscaler", rows: &[
        kind_rule("autoscaling.k8s.io", &["VerticalPodAutoscaler"], 10, status_rule(Nowhere, &[
            FailedIfTrue(&["ConfigUnsupported"]), ProgressingIfTrue(&["NoPodsMatched"]),
        ]).with_missing_status(MissingStatus::Healthy)),
        no_status("autoscaling.k8s.io", &["VerticalPodAutoscalerCheckpoint"]),
    ]},
];
