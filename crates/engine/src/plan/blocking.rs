//! Blocking: writes that wait for an object that does not exist yet, or for one that still exists.
//!
//! In: the decisions about all objects, not yet in order.
//! Out: the same, with the writes on hold whose wave has not begun. A wave begins when the previous
//! one is complete, and nothing is created in a namespace, or of a kind, that is being deleted.
//! Prunes are in strict reverse order: while a custom resource is being deleted, the operator that
//! must remove its finalizer is kept.

use std::collections::BTreeSet;

use super::order::{Stage, phase_wave_of, stage_of};
use super::prune::{LiveEntry, is_ours};
use super::{Action, Hold, PlanBuilder, Step};
use crate::desired::{DesiredSet, PhaseWave};
use crate::observed::ObservedSet;
use moorline_core::object::ObjectId;

/// Holds every write whose wave has not begun.
pub(super) fn hold_blocked(
    desired: &DesiredSet,
    observed: &ObservedSet,
    unwanted: &[LiveEntry<'_>],
    decided: &mut PlanBuilder,
) {
    if decided.steps.is_empty() {
        return;
    }
    let gate = BlockingObjects::new(desired, observed, unwanted, &decided.held);
    let steps = std::mem::take(&mut decided.steps);
    for (turn, step) in steps {
        match gate.before(turn, &step) {
            Some(blocker) => decided.held.push((step.id, Hold::WaitsFor(blocker.clone()))),
            None => decided.steps.push((turn, step)),
        }
    }
}

/// Holds the possible operator of a custom resource that waits for approval: its workload,
/// permissions and configuration. Without them the resource could not be deleted after an approval.
/// This applies only to a commit that also removes the definition of the kind. If the definition
/// stays, the operator is expected to stay, too.
pub(super) fn hold_operators(unwanted: &[LiveEntry<'_>], decided: &mut PlanBuilder) {
    let definitions: Vec<&ObjectId> = unwanted
        .iter()
        .filter(|(id, seen)| id.is_kind("apiextensions.k8s.io", "CustomResourceDefinition") && is_ours(seen))
        .map(|(id, _)| *id)
        .collect();
    if definitions.is_empty() {
        return;
    }
    let protected =
        decided.held.iter().filter(|(_, hold)| matches!(hold, Hold::Protected | Hold::Guarded(_)));
    let protected: BTreeSet<ObjectId> = protected.map(|(id, _)| id.clone()).collect();
    let waits = |id: &ObjectId| protected.contains(id);
    let asked = unwanted
        .iter()
        .filter(|(id, _)| definitions.iter().any(|definition| contains(definition, id)) && waits(id));
    let Some((first, blocker)) =
        asked.map(|(id, seen)| (stage_of(id, phase_wave_of(seen.wave), true), *id)).min()
    else {
        return;
    };
    let (held, steps) =
        std::mem::take(&mut decided.steps).into_iter().partition(|(turn, step): &(PhaseWave, Step)| {
            matches!(step.action, Action::Prune { .. }) && first < stage_of(&step.id, *turn, true)
        });
    let held: Vec<(PhaseWave, Step)> = held;
    decided.steps = steps;
    decided
        .held
        .extend(held.into_iter().map(|(_, step)| (step.id, Hold::BlocksPendingPrune(blocker.clone()))));
}

/// Returns the object that a step of this stage waits for, given the objects that could not be
/// written or are still being deleted, with their stages. Nothing is pruned while a desired object
/// could not be applied: it may be the replacement of a pruned one.
pub fn find_blocker(failed: &[(Stage, ObjectId)], stage: Stage, id: &ObjectId) -> Option<ObjectId> {
    let holds = |(first, blocker): &&(Stage, ObjectId)| match (first, stage) {
        (Stage::Apply { turn: first, .. }, Stage::Apply { turn, .. }) => {
            *first < turn || contains(blocker, id)
        }
        (Stage::Apply { .. }, Stage::Prune { .. }) => true,
        (Stage::Prune { .. }, _) => *first < stage,
    };
    failed.iter().find(holds).map(|(_, blocker)| blocker.clone())
}

/// True if this object blocks steps that the objects in `failed` do not block. Each step is checked
/// against the whole list, so objects that block nothing more are left out of it.
pub fn blocks_more(failed: &[(Stage, ObjectId)], stage: Stage, id: &ObjectId) -> bool {
    let says_as_much = |(first, _): &(Stage, ObjectId)| match (first, stage) {
        (Stage::Apply { turn: first, .. }, Stage::Apply { turn, .. }) => *first <= turn,
        (Stage::Prune { .. }, Stage::Prune { .. }) => *first <= stage,
        (Stage::Apply { .. }, Stage::Prune { .. }) | (Stage::Prune { .. }, Stage::Apply { .. }) => false,
    };
    is_container(id) || !failed.iter().any(says_as_much)
}

/// True for kinds whose deletion also deletes other objects.
pub(super) fn is_container(id: &ObjectId) -> bool {
    id.is_kind("", "Namespace") || id.is_kind("apiextensions.k8s.io", "CustomResourceDefinition")
}

/// True if `resident` is deleted with `container`.
pub(super) fn contains(container: &ObjectId, resident: &ObjectId) -> bool {
    if container.is_kind("", "Namespace") {
        return resident.namespace() == Some(container.name());
    }
    is_container(container) && defines(container.name(), resident)
}

/// True if a definition of this name, `<plural>.<group>`, may define the object's kind. Only the
/// stem of the plural follows from the kind: `Policy` and `policies`, `Widget` and `widgets`.
fn defines(name: &str, id: &ObjectId) -> bool {
    let Some((plural, group)) = name.split_once('.') else { return false };
    let kind = id.kind().to_ascii_lowercase();
    let stem = kind.char_indices().last().map_or("", |(end, _)| &kind[..end]);
    group == id.group() && plural.starts_with(stem)
}

struct BlockingObjects<'a> {
    /// The first desired object, by phase and wave, that cannot exist yet.
    missing: Option<(PhaseWave, &'a ObjectId)>,
    /// Namespaces and definitions that are being deleted.
    going: Vec<&'a ObjectId>,
    /// The first undesired object, by prune order, that is being deleted.
    leaving: Option<(super::Stage, &'a ObjectId)>,
}

impl<'a> BlockingObjects<'a> {
    fn new(
        desired: &'a DesiredSet,
        observed: &'a ObservedSet,
        unwanted: &[LiveEntry<'a>],
        held: &[(ObjectId, Hold)],
    ) -> Self {
        let blocking: BTreeSet<&ObjectId> =
            held.iter().filter(|(_, hold)| hold.blocks_later_waves()).map(|(id, _)| id).collect();
        let missing = blocking.into_iter().filter_map(|id| desired.get(id));
        let leaving = unwanted.iter().filter(|(_, seen)| seen.deleting && is_ours(seen));
        Self {
            missing: missing.map(|object| (object.annotations.phase_wave(), &object.id)).min(),
            going: observed
                .iter()
                .filter(|(id, seen)| seen.deleting && is_container(id))
                .map(|(id, _)| id)
                .collect(),
            leaving: leaving.map(|(id, seen)| (stage_of(id, phase_wave_of(seen.wave), true), *id)).min(),
        }
    }

    /// Returns the object that a write waits for, if any.
    fn before(&self, turn: PhaseWave, step: &Step) -> Option<&'a ObjectId> {
        match step.action {
            Action::Create | Action::ReplaceHookRuns { .. } | Action::Adopt { .. } | Action::Update(_) => {
                let container = self.going.iter().find(|container| contains(container, &step.id));
                let earlier = self.missing.filter(|(first, _)| *first < turn).map(|(_, id)| id);
                container.copied().or(earlier)
            }
            Action::Prune { .. } => {
                let here = stage_of(&step.id, turn, true);
                self.leaving.filter(|(first, _)| *first < here).map(|(_, id)| id)
            }
            Action::HandOver { .. } => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Policy, plan};
    use super::*;
    use crate::observed::Observed;
    use crate::plan::test_fixtures::{id, manifest, seen, there, wanted};

    /// The objects that wait and their blockers, while one object is being deleted.
    fn waits(wants: &[(&str, i32)], unwanted: &[&str], deleting: &str) -> Vec<String> {
        let manifests: Vec<_> = wants.iter().map(|(id, wave)| manifest(id, *wave)).collect();
        let mut observed = there(unwanted.iter().copied());
        let going = id(deleting);
        observed.insert(going.clone(), Observed { deleting: true, ..seen(&going) });
        let plan = plan(&wanted(&manifests), &observed, &Policy::default());
        let waits = plan.held.iter().filter_map(|(held, hold)| match hold {
            Hold::WaitsFor(blocker) => Some(format!("{held} for {blocker}")),
            _ => None,
        });
        waits.collect()
    }

    #[test]
    fn a_wave_begins_when_the_one_before_it_stands() {
        let wants = [("/ConfigMap|a/first", 0), ("/ConfigMap|a/peer", 0), ("/ConfigMap|a/next", 1)];
        assert_eq!(waits(&wants, &[], "/ConfigMap|a/first"), ["ConfigMap a/next for ConfigMap a/first"]);
        assert!(waits(&wants, &[], "/ConfigMap|a/next").is_empty());
        assert!(waits(&wants, &[], "/ConfigMap|a/unwanted").is_empty());
    }

    #[test]
    fn nothing_is_created_in_what_is_going() {
        let wants = [("/ConfigMap|a/x", 0), ("/ConfigMap|b/x", 0), ("example.com/Widget|b/x", 0)];
        assert_eq!(waits(&wants, &[], "/Namespace|/a"), ["ConfigMap a/x for Namespace a"]);
        let crd = "apiextensions.k8s.io/CustomResourceDefinition|/widgets.example.com";
        assert_eq!(waits(&wants, &[], crd).len(), 1);
    }

    #[test]
    fn an_operator_outlives_resources_that_wait_for_approval() {
        const CRD: &str = "apiextensions.k8s.io/CustomResourceDefinition|/databases.example.com";
        let operator = ["apps/Deployment|a/operator", "/ServiceAccount|a/operator"];
        let check = |more: &[&str], expect: &[&str]| {
            let unwanted = operator.iter().chain(more).copied();
            let plan = plan(&wanted(&[manifest("/ConfigMap|a/x", 0)]), &there(unwanted), &Policy::default());
            let after = |(id, hold): &(ObjectId, Hold)| match hold {
                Hold::BlocksPendingPrune(first) => Some(format!("{id} after {first}")),
                _ => None,
            };
            assert_eq!(plan.held.iter().filter_map(after).collect::<Vec<_>>(), expect, "{more:?}");
        };
        let database = "example.com/Database|a/orders";
        let after = [
            "ServiceAccount a/operator after Database.example.com a/orders",
            "Deployment.apps a/operator after Database.example.com a/orders",
        ];
        check(&[database, CRD], &after);
        check(&[CRD], &[]);
        check(&["example.com/Cache|a/orders", CRD], &[]);
        // The definition stays, and with it the operator of its kind.
        check(&[database], &[]);
        // Objects that are pruned before the resource are not part of its operator.
        check(&[database, CRD, "admissionregistration.k8s.io/ValidatingWebhookConfiguration|/a"], &after);
        // A claim has no operator.
        check(&["/PersistentVolumeClaim|a/data"], &[]);
    }

    #[test]
    fn an_operator_outlives_its_resources() {
        let wants = [("/ConfigMap|a/x", 0)];
        let unwanted = ["apps/Deployment|a/operator", "example.com/Widget|a/peer"];
        let expect = ["Deployment.apps a/operator for Widget.example.com a/going"];
        assert_eq!(waits(&wants, &unwanted, "example.com/Widget|a/going"), expect);
        assert!(waits(&wants, &unwanted, "/Secret|a/later").is_empty());
    }

    /// Checks the blocker of a step after another step failed; each is an id, its wave and true for
    /// a prune.
    #[track_caller]
    fn holds(failed: (&str, i32, bool), next: (&str, i32, bool), expect: bool) {
        let stage = |(text, wave, prune): (&str, i32, bool)| {
            (super::stage_of(&id(text), phase_wave_of(wave), prune), id(text))
        };
        let ((first, blocker), (then, step)) = (stage(failed), stage(next));
        let held = find_blocker(&[(first, blocker.clone())], then, &step);
        assert_eq!(held, expect.then_some(blocker), "{next:?} after {failed:?}");
        assert_eq!(find_blocker(&[], then, &step), None);
    }

    #[test]
    fn what_could_not_be_written_holds_higher_waves_and_never_its_peers() {
        let failed = ("/ConfigMap|a/x", 0, false);
        holds(failed, ("/ConfigMap|a/y", 1, false), true);
        holds(failed, ("/Namespace|/b", 1, false), true);
        holds(failed, ("/ConfigMap|a/y", 0, false), false);
        // A Deployment comes later in the same wave and does not depend on its peers.
        holds(failed, ("apps/Deployment|a/y", 0, false), false);
        holds(failed, ("/ConfigMap|a/y", -1, false), false);
        holds(("/ConfigMap|a/x", -2, false), ("/ConfigMap|a/y", -1, false), true);
    }

    #[test]
    fn what_could_not_be_written_holds_what_cannot_be_without_it() {
        let namespace = ("/Namespace|/a", 0, false);
        holds(namespace, ("/ConfigMap|a/x", 0, false), true);
        holds(namespace, ("example.com/Widget|a/x", 0, false), true);
        holds(namespace, ("/ConfigMap|b/x", 0, false), false);
        holds(namespace, ("rbac.authorization.k8s.io/ClusterRole|/a", 0, false), false);
        holds(namespace, ("/ConfigMap|a/x", -1, false), true);
        let definition = ("apiextensions.k8s.io/CustomResourceDefinition|/widgets.example.com", 0, false);
        holds(definition, ("example.com/Widget|a/x", 0, false), true);
        holds(definition, ("example.com/Gadget|a/x", 0, false), false);
        holds(definition, ("other.com/Widget|a/x", 0, false), false);
        // A ConfigMap with the name of the namespace is not the namespace.
        holds(("/ConfigMap|b/a", 0, false), ("/ConfigMap|a/x", 0, false), false);
    }

    #[test]
    fn prunes_wait_for_all_that_is_written_and_for_what_goes_before_them() {
        holds(("/ConfigMap|a/x", 5, false), ("/ConfigMap|a/y", 9, true), true);
        holds(("/ConfigMap|a/x", 5, false), ("/ConfigMap|b/y", 0, true), true);
        let going = ("example.com/Widget|a/x", 0, true);
        holds(going, ("apps/Deployment|a/operator", 0, true), true);
        let definition = "apiextensions.k8s.io/CustomResourceDefinition|/widgets.example.com";
        holds(going, (definition, 0, true), true);
        holds(going, ("example.com/Widget|a/y", 0, true), false);
        holds(going, ("/ConfigMap|a/y", -1, true), true);
        holds(going, ("/ConfigMap|a/y", 1, true), false);
        // No desired object waits for an undesired one.
        holds(going, ("/ConfigMap|a/y", 9, false), false);
    }

    #[test]
    fn a_definition_is_known_by_its_plural() {
        let defines = |name, text: &str| defines(name, &id(text));
        assert!(defines("widgets.example.com", "example.com/Widget|a/x"));
        assert!(defines("policies.example.com", "example.com/Policy|a/x"));
        assert!(!defines("widgets.example.com", "other.com/Widget|a/x"));
        assert!(!defines("widgets.example.com", "example.com/Gadget|a/x"));
        assert!(!defines("nonsense", "example.com/Widget|a/x"));
    }
}
