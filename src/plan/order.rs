//! The order of writes: waves, and in each wave what others need before what needs it; prunes in reverse.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use super::{Action, Step};
use crate::object::ObjectId;

/// Objects that may be written at the same time. Stages compare in the order in which they are carried out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Stage {
    /// Objects are created, adopted, updated and handed over.
    Apply {
        /// The wave; lower ones go first.
        wave: i32,
        /// What others need goes first.
        rank: Rank,
    },
    /// Objects are pruned, last wave and last rank first.
    Prune {
        /// The wave; higher ones go first.
        wave: Reverse<i32>,
        /// What needs others goes first.
        rank: Reverse<Rank>,
    },
}

/// How early a kind is applied within a wave.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Rank {
    /// Everything namespaced needs its namespace.
    Namespace,
    /// A custom resource needs its definition.
    Definition,
    /// Classes of storage, ingress, priority and the like are named by others.
    Class,
    /// A workload runs as a service account, and with the rights it has when it starts.
    Access,
    /// Quotas, limits and network policies hold for what comes after them.
    Limit,
    /// Configuration is read when a workload starts.
    Configuration,
    /// Volumes are claimed before they are mounted.
    Volume,
    /// A workload gets the addresses of the services that are there when it starts.
    Service,
    /// Deployments, Jobs and the like.
    Workload,
    /// Every other kind, custom resources among them: their operators are workloads.
    Other,
    /// What intercepts requests comes when its backend is there.
    Interception,
}

impl Rank {
    /// The rank of an object's kind.
    pub fn of(id: &ObjectId) -> Self {
        match (id.group(), id.kind()) {
            ("", "Namespace") => Self::Namespace,
            ("apiextensions.k8s.io", "CustomResourceDefinition") => Self::Definition,
            ("rbac.authorization.k8s.io", _) | ("", "ServiceAccount") => Self::Access,
            ("", "ResourceQuota" | "LimitRange") | ("networking.k8s.io", "NetworkPolicy") => Self::Limit,
            ("", "ConfigMap" | "Secret") => Self::Configuration,
            ("", "PersistentVolume" | "PersistentVolumeClaim") => Self::Volume,
            ("", "Service") => Self::Service,
            ("apps" | "batch", _) | ("", "Pod" | "ReplicationController") => Self::Workload,
            ("apiregistration.k8s.io", "APIService") => Self::Interception,
            ("admissionregistration.k8s.io", kind) if kind.ends_with("WebhookConfiguration") => {
                Self::Interception
            }
            (_, kind) if kind.ends_with("Class") => Self::Class,
            _ => Self::Other,
        }
    }
}

/// Puts steps, each with its wave, into stages.
pub(super) fn stages(steps: Vec<(i32, Step)>) -> Vec<(Stage, Vec<Step>)> {
    let mut stages: BTreeMap<Stage, Vec<Step>> = BTreeMap::new();
    for (wave, step) in steps {
        let rank = Rank::of(&step.id);
        let stage = match step.action {
            Action::Create | Action::Adopt { .. } | Action::Update(_) | Action::HandOver { .. } => {
                Stage::Apply { wave, rank }
            }
            Action::Prune { .. } => Stage::Prune { wave: Reverse(wave), rank: Reverse(rank) },
        };
        stages.entry(stage).or_default().push(step);
    }
    stages.values_mut().for_each(|steps| steps.sort_by(|a, b| a.id.cmp(&b.id)));
    stages.into_iter().collect()
}
