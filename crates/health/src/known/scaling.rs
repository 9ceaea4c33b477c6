//! Autoscaling of Pods and nodes.
//!
//! In: nothing.
//! Out: rules.

use super::rule::Generation::{Nowhere, WhereWritten};
use super::rule::IfFalse::{ByReason, Fails, Waits};
use super::rule::Reading::{Busy, Needs, Refused, Rests, Trouble};
use super::rule::Switch::Annotation;
use super::rule::{Project, Rule, Silence, reads, row, still};

/// Resources that a provider must find before it can create nodes: images, networks, roles.
const NODE_CLASS: Rule = reads(WhereWritten, &[Refused(&["ValidationSucceeded"]), Needs("Ready", ByReason)]);

#[rustfmt::skip]
pub(super) const PROJECTS: &[Project] = &[
    Project { name: "Karpenter", rows: &[
        row("karpenter.sh", &["NodePool"], 10, NODE_CLASS),
        row("karpenter.sh", &["NodeClaim"], 20, reads(WhereWritten, &[Needs("Ready", Waits)])),
        row("karpenter.k8s.aws", &["EC2NodeClass"], 10, NODE_CLASS),
        row("karpenter.azure.com", &["AKSNodeClass"], 10, NODE_CLASS),
    ]},
    Project { name: "KEDA", rows: &[
        row("keda.sh", &["ScaledObject", "ScaledJob"], 10, reads(Nowhere, &[Needs("Ready", Fails), Rests(&["Paused"])])
            .asleep(&[Annotation("autoscaling.keda.sh/paused", "true")])),
        still("keda.sh", &["TriggerAuthentication", "ClusterTriggerAuthentication"]),
    ]},
    Project { name: "Vertical Pod Autoscaler", rows: &[
        row("autoscaling.k8s.io", &["VerticalPodAutoscaler"], 10, reads(Nowhere, &[
            Trouble(&["ConfigUnsupported"]), Busy(&["NoPodsMatched"]),
        ]).silent(Silence::Fine)),
        still("autoscaling.k8s.io", &["VerticalPodAutoscalerCheckpoint"]),
    ]},
];
