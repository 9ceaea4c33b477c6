//! What becomes of objects that are there and no longer wanted.
//!
//! Deleting is the one thing that cannot be taken back. An object is pruned only if every proof is at hand
//! that it is ours, that it is the one we applied, and that its absence from Git is meant; else it is held
//! and the missing proof is named.

use sha2::{Digest, Sha256};

use super::{Action, Decided, Decision, Hold, Policy};
use crate::desired::DesiredSet;
use crate::object::ObjectId;
use crate::observed::{Mark, Observed, ObservedSet};

/// How many hex digits of its hash an approval has.
const APPROVAL_DIGITS: usize = 16;

type Entry<'a> = (&'a ObjectId, &'a Observed);

/// Adds a decision for every unwanted object of ours; gives what would approve those that wait for a person.
pub(super) fn decide(
    desired: &DesiredSet,
    observed: &ObservedSet,
    policy: &Policy,
    unwanted: &[Entry<'_>],
    decided: &mut Decided,
) -> Option<String> {
    let ours: Vec<Entry<'_>> = unwanted.iter().copied().filter(|(_, seen)| is_ours(seen)).collect();
    let mut prunes = Vec::new();
    let mut protected = Vec::new();
    for (id, seen) in ours {
        match missing_proof(desired, observed, policy, id, seen) {
            Some(decision) => decided.add(id.clone(), policy.restrain(decision), seen.wave),
            None if policy.protected.contains(&id.group_kind()) => protected.push((id, seen)),
            None => prunes.push((id, seen)),
        }
    }
    let (count, owned) = (prunes.len(), owned(observed));
    let over_budget = policy.budget.is_exceeded(count, owned);
    // An approval speaks of what waits for it, so that prunes that need none do not make it stale.
    let waiting: Vec<Entry<'_>> = prunes.iter().filter(|_| over_budget).chain(&protected).copied().collect();
    let approval = approval(&waiting);
    let approved = policy.approved.as_deref() == Some(approval.as_str());
    for (entries, needs_approval, hold) in
        [(prunes, over_budget, Hold::OverBudget { prunes: count, owned }), (protected, true, Hold::Protected)]
    {
        for (id, seen) in entries {
            let decision = match needs_approval && !approved {
                true => Decision::Hold(hold.clone()),
                false => Decision::Write(Action::Prune {
                    uid: seen.uid.clone(),
                    resource_version: seen.resource_version.clone(),
                }),
            };
            decided.add(id.clone(), policy.restrain(decision), seen.wave);
        }
    }
    (!waiting.is_empty() && !approved).then_some(approval)
}

/// An object is ours if its identity says so and nobody else controls it. Whatever else bears our label is
/// a copy or a child, and is neither pruned nor counted.
fn is_ours(seen: &Observed) -> bool {
    seen.mark == Mark::Ours && !seen.controlled
}

fn owned(observed: &ObservedSet) -> usize {
    observed.iter().filter(|(_, seen)| is_ours(seen)).count()
}

/// The first proof that is missing, if any, or what is done instead.
fn missing_proof(
    desired: &DesiredSet,
    observed: &ObservedSet,
    policy: &Policy,
    id: &ObjectId,
    seen: &Observed,
) -> Option<Decision> {
    let claim = policy.claims.get(id);
    let hold = match claim {
        _ if seen.deleting => Hold::BeingDeleted,
        _ if seen.reconcile_disabled => Hold::ReconcileDisabled,
        Some(claim) if claim.ready => {
            return Some(Decision::Write(Action::HandOver { to: claim.sync.clone() }));
        }
        Some(claim) => Hold::ClaimedBy(claim.sync.clone()),
        None if desired.is_empty() => Hold::EmptyRender,
        None if !policy.prune || seen.prune_disabled => Hold::PruneDisabled,
        None if !observed.is_listed(id) => Hold::Unlisted,
        None if !seen.applied_by_us || seen.uid.is_empty() => Hold::NotAppliedByUs,
        None => return None,
    };
    Some(Decision::Hold(hold))
}

/// The hash over what would be pruned. Another object, or the same one made anew, is another approval.
fn approval(prunes: &[Entry<'_>]) -> String {
    let mut lines: Vec<String> =
        prunes.iter().map(|(id, seen)| format!("{} {}\n", id.as_str(), seen.uid)).collect();
    lines.sort();
    let digest = Sha256::digest(lines.concat().as_bytes());
    let text: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
    text[..APPROVAL_DIGITS].to_owned()
}
