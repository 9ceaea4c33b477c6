//! The order of writes: by wave, and in each wave dependencies first; prunes in reverse.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use super::{Action, Step};
use crate::desired::PhaseWave;
use moorline_core::object::ObjectId;

/// Objects that may be written at the same time. Stages compare in the order of execution.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Stage {
    /// Creates, adoptions, updates and hand-overs.
    Apply {
        /// The phase and the wave in it; lower ones go first.
        turn: PhaseWave,
        /// The rank of the kind; dependencies go first.
        rank: Rank,
    },
    /// Prunes, last wave and last rank first.
    Prune {
        /// The wave; higher ones go first.
        wave: Reverse<i32>,
        /// The rank of the kind; dependents go first.
        rank: Reverse<Rank>,
    },
}

/// Position of a kind within a wave.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Rank {
    /// Every namespaced object needs its namespace.
    Namespace,
    /// A custom resource needs its definition.
    Definition,
    /// Other objects name classes of storage, ingress, priority and so on.
    Class,
    /// A workload runs as a service account, with the permissions at its start.
    Access,
    /// Quotas, limits and network policies apply to objects created after them.
    Limit,
    /// Workloads read configuration at their start.
    Configuration,
    /// Volumes are claimed before they are mounted.
    Volume,
    /// A workload gets the addresses of the services that exist at its start.
    Service,
    /// Deployments, Jobs and the like.
    Workload,
    /// Every other kind, including custom resources: their operators are workloads.
    Other,
    /// Webhooks and APIServices intercept requests and come after their backend.
    Interception,
}

impl Rank {
    /// Returns the rank of an object's kind.
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

/// Returns the stage of an object at this position.
pub(super) fn stage_of(id: &ObjectId, turn: PhaseWave, prune: bool) -> Stage {
    let rank = Rank::of(id);
    match prune {
        false => Stage::Apply { turn, rank },
        true => Stage::Prune { wave: Reverse(turn.wave), rank: Reverse(rank) },
    }
}

/// Returns the position of an object of which only the wave is known.
pub(super) fn phase_wave_of(wave: i32) -> PhaseWave {
    PhaseWave { wave, ..PhaseWave::default() }
}

/// Sorts steps into stages.
pub(super) fn stages(steps: Vec<(PhaseWave, Step)>) -> Vec<(Stage, Vec<Step>)> {
    let mut stages: BTreeMap<Stage, Vec<Step>> = BTreeMap::new();
    for (turn, step) in steps {
        let prune = match step.action {
            Action::Create
            | Action::ReplaceHookRuns { .. }
            | Action::Adopt { .. }
            | Action::Update(_)
            | Action::HandOver { .. } => false,
            Action::Prune { .. } => true,
        };
        stages.entry(stage_of(&step.id, turn, prune)).or_default().push(step);
    }
    stages.values_mut().for_each(|steps| steps.sort_by(|a, b| a.id.cmp(&b.id)));
    stages.into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::test_fixtures::id;

    #[test]
    fn ranks_follow_who_needs_whom() {
        // Objects of each line may be needed by those of later lines.
        let order: [&[&str]; 11] = [
            &["/Namespace|/a"],
            &["apiextensions.k8s.io/CustomResourceDefinition|/a.b"],
            &[
                "storage.k8s.io/StorageClass|/a",
                "scheduling.k8s.io/PriorityClass|/a",
                "gateway.networking.k8s.io/GatewayClass|/a",
            ],
            &[
                "rbac.authorization.k8s.io/ClusterRole|/a",
                "rbac.authorization.k8s.io/RoleBinding|a/a",
                "/ServiceAccount|a/a",
            ],
            &["/ResourceQuota|a/a", "/LimitRange|a/a", "networking.k8s.io/NetworkPolicy|a/a"],
            &["/ConfigMap|a/a", "/Secret|a/a"],
            &["/PersistentVolume|/a", "/PersistentVolumeClaim|a/a"],
            &["/Service|a/a"],
            &["apps/Deployment|a/a", "apps/StatefulSet|a/a", "batch/CronJob|a/a", "/Pod|a/a"],
            &[
                "example.com/Widget|a/a",
                "serving.knative.dev/Service|a/a",
                "example.com/Namespace|a/a",
                "policy/PodDisruptionBudget|a/a",
            ],
            &[
                "admissionregistration.k8s.io/ValidatingWebhookConfiguration|/a",
                "apiregistration.k8s.io/APIService|/a",
            ],
        ];
        for (at, line) in order.iter().enumerate() {
            for text in *line {
                let rank = Rank::of(&id(text));
                assert_eq!(rank, Rank::of(&id(line[0])), "{text}");
                assert!(at == 0 || Rank::of(&id(order[at - 1][0])) < rank, "{text}");
            }
        }
    }

    #[test]
    fn waves_outrank_kinds_and_prunes_go_backwards() {
        let step = |text: &str, wave, prune: bool| {
            let action = match prune {
                false => Action::Create,
                true => Action::Prune { uid: "1".into(), resource_version: "1".into() },
            };
            (phase_wave_of(wave), Step { id: id(text), action })
        };
        let apply = [
            ("/Namespace|/a", 0),
            ("/Secret|a/b", 0),
            ("/ConfigMap|a/a", -1),
            ("/ConfigMap|a/b", 0),
            ("/Namespace|/b", 1),
        ];
        let order = |prune| {
            let steps = apply.iter().map(|(text, wave)| step(text, *wave, prune)).collect();
            let stages = stages(steps).into_iter();
            stages
                .map(|(_, steps)| steps.iter().map(|step| step.id.to_string()).collect::<Vec<_>>())
                .collect::<Vec<_>>()
        };
        let expect = [
            vec!["ConfigMap a/a"],
            vec!["Namespace a"],
            vec!["ConfigMap a/b", "Secret a/b"],
            vec!["Namespace b"],
        ];
        assert_eq!(order(false), expect);
        assert_eq!(order(true), expect.into_iter().rev().collect::<Vec<_>>());
        let mixed = stages(vec![step("/Namespace|/a", 9, true), step("/Namespace|/b", 10, false)]);
        assert!(matches!(mixed[0].0, Stage::Apply { .. }), "prunes come last, whatever their wave");
    }
}
