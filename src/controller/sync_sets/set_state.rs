//! Concludes the Ready condition of a set.
//!
//! In: the plan of a pass, its conflicts and the numbers of Syncs. Out: [`SetState`], about what a
//! person has to know first.

use super::set_rollout::describe_rollout;
use super::set_status::{SetState, list_names};
use crate::api::{APPROVE_ANNOTATION, HeldRemoval, Reason, SyncName};
use crate::report::ReconcileError;
use crate::sync_set::{PlannedRemoval, SetPlan};

/// Numbers of Syncs of a set.
pub(super) struct ChildNumbers {
    /// Those that the generators give.
    pub(super) desired: usize,
    /// Those of them that are ready.
    pub(super) ready: usize,
    /// Those that the generators no longer give.
    pub(super) left: usize,
}

/// Returns the Ready condition; `asked` is the reason why the generators gave no newer answer.
pub(super) fn set_state(
    name: &SyncName,
    (plan, removal): (&SetPlan, Option<&HeldRemoval>),
    conflicts: &[String],
    ChildNumbers { desired, ready, left }: ChildNumbers,
    asked: Option<ReconcileError>,
) -> SetState {
    let rollout = plan.rollout.as_ref().and_then(|rollout| rollout.state.as_ref());
    if let Some(error) = asked {
        let message = format!("{}; the Syncs stay as they are", error.message);
        return SetState::not_ready(error.cause.reason(), message);
    }
    if !conflicts.is_empty() {
        let message = format!(
            "Syncs of these names exist that are not of this SyncSet, and are left alone: {}; rename or delete them, or change spec.name",
            list_names(conflicts)
        );
        return SetState::not_ready(Reason::ObjectsHeld, message);
    }
    if let Some(open) = rollout {
        let reason = if open.is_stopped { Reason::Degraded } else { Reason::Progressing };
        return SetState::not_ready(reason, describe_rollout(open));
    }
    if let Some(removal) = removal {
        let message = format!(
            "the generators no longer give {left} of the Syncs: {}; to delete them: kubectl annotate syncset {} -n {} --overwrite {APPROVE_ANNOTATION}={}",
            list_names(&removal.syncs),
            name.name,
            name.namespace,
            removal.hash
        );
        return SetState::not_ready(Reason::PruneHeld, message);
    }
    if let PlannedRemoval::Wait { syncs, awaited } = &plan.removal {
        let message = format!(
            "{} are deleted when these Syncs have rendered their newest specs, so that objects can be handed over: {}",
            list_names(syncs),
            list_names(awaited)
        );
        return SetState::not_ready(Reason::Progressing, message);
    }
    if ready < desired {
        return SetState::not_ready(Reason::Progressing, format!("{ready} of {desired} Syncs are ready"));
    }
    let (reason, message) = (Reason::Applied.to_string().into(), format!("{ready} Syncs are ready"));
    SetState { is_ready: true, reason, message }
}
