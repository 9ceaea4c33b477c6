//! What is deleted with a Sync that asks for that.
//!
//! In: what is there. Out: prunes for everything of ours, in strict reverse. The deletion of the Sync is the
//! consent, so that no budget and no empty render stand against it; what is protected stays.

use super::{Action, Decided, Decision, Hold, Plan, Policy, order, prune, wait};
use crate::desired::DesiredSet;
use crate::observed::ObservedSet;

/// Decides what is deleted with the Sync.
pub fn farewell(observed: &ObservedSet, policy: &Policy) -> Plan {
    let nothing = DesiredSet::nothing();
    let mut decided = Decided { steps: Vec::new(), held: Vec::new(), kept: Vec::new() };
    let ours: Vec<prune::Entry<'_>> = observed.iter().filter(|(_, seen)| prune::is_ours(seen)).collect();
    for (id, seen) in &ours {
        let hold = if seen.deleting {
            Some(Hold::BeingDeleted)
        } else if seen.reconcile_disabled {
            Some(Hold::ReconcileDisabled)
        } else if seen.prune_disabled {
            Some(Hold::PruneDisabled)
        } else if policy.protected.contains(&id.group_kind()) {
            Some(Hold::Protected)
        } else if !seen.applied_by_us {
            Some(Hold::NotAppliedByUs)
        } else if seen.uid.is_empty() || seen.resource_version.is_empty() {
            Some(Hold::Unidentified)
        } else {
            None
        };
        let decision = match hold {
            Some(hold) => Decision::Hold(hold),
            None => Decision::Write(Action::Prune {
                uid: seen.uid.clone(),
                resource_version: seen.resource_version.clone(),
            }),
        };
        decided.add((*id).clone(), decision, seen.wave);
    }
    wait::hold_back(&nothing, observed, &ours, &mut decided);
    decided.held.sort_by(|(a, _), (b, _)| a.cmp(b));
    Plan { stages: order::stages(decided.steps), held: decided.held, kept: decided.kept, approval: None }
}
