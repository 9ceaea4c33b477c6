//! Finds the transitions of a Sync from the status that was written last to the next one.
//!
//! In: two statuses, and in the first one the state for which notifications were written last.
//! Out: [`Occurrence`]s, and that state afterwards. Only a revision that changed objects is Applied
//! and Healthy: a commit elsewhere in the repository says nothing about this Sync. A failure is
//! sent once, also if its retries report progress in between.
//!
//! The next status is compared with that state. So a status that was written before the list of
//! Notifiers arrived hides no transition whose state still holds.

use moorline_api::{
    AnnouncedRepairs, AnnouncedState, ApprovalSubject, ChangeCounts, ChosenRevision, ConditionType,
    PendingApproval, Reason, RevisionHold, Revisions, SyncStatus, Transition, TransitionDetails,
};
use moorline_core::sanitize::sanitize;

use crate::text::cut;

/// Maximum number of characters of a message.
const MAX_MESSAGE: usize = 500;
/// Stands for the revision of a Sync that has applied none.
const NOT_APPLIED: &str = "-";

/// A transition that happened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Occurrence {
    /// The transition.
    pub(crate) transition: Transition,
    /// Its details.
    pub(crate) details: TransitionDetails,
    /// True if it can happen again with the same details: then its time is part of its id.
    pub(crate) repeats: bool,
}

/// Returns the transitions, and the state that is known after them.
pub(crate) fn detect(prev: &SyncStatus, next: &SyncStatus) -> (AnnouncedState, Vec<Occurrence>) {
    let mut state = known_before(prev);
    let mut found = Vec::new();
    found.extend(rolled_back(&mut state, prev, next));
    found.extend(failed(&mut state, next));
    found.extend(applied(&mut state, prev, next));
    found.extend(healthy(&mut state, next));
    found.extend(degraded(&mut state, next));
    found.extend(prune_held(&mut state, next));
    found.extend(approval_required(&mut state, next));
    found.extend(drift_repaired(&mut state, prev, next));
    found.extend(recovered(&mut state, next));
    (state, found)
}

/// Returns the state that Notifiers know before the next status.
pub fn known_before(prev: &SyncStatus) -> AnnouncedState {
    let Some(known) = prev.announced.clone() else { return everything_before(prev) };
    // An earlier version wrote fewer fields, and had compared the rest with this status.
    if known.applied.is_empty() && !known.revision.is_empty() {
        let AnnouncedState { revision, digest, healthy, failed, degraded, .. } = known;
        return AnnouncedState { revision, digest, healthy, failed, degraded, ..everything_before(prev) };
    }
    known
}

/// Returns the state of a Sync that had no Notifier until now: everything before is known.
fn everything_before(prev: &SyncStatus) -> AnnouncedState {
    let revision = revisions(prev);
    let applied = revision.applied.clone().unwrap_or_default();
    let rendered = prev.render_digest.clone().filter(|_| revision.attempted == revision.applied);
    AnnouncedState {
        healthy: !applied.is_empty() && revision.healthy.as_ref() == Some(&applied),
        digest: revision.applied_digest.or(rendered).unwrap_or_default(),
        failed: failure(prev).unwrap_or_default(),
        degraded: if is_degraded(prev) { degraded_at(prev) } else { String::new() },
        prune: prev.approval.as_ref().map(|waits| waits.hash.clone()).unwrap_or_default(),
        approval: revision_to_approve(prev).map(|waits| waits.hash.clone()).unwrap_or_default(),
        chosen: revision.chosen.map(|chosen| chosen.revision).unwrap_or_default(),
        rejected: revision.rejected.unwrap_or_default(),
        repairs: prev.history.iter().find(|entry| entry.changes.repaired > 0).map(|entry| AnnouncedRepairs {
            revision: entry.revision.clone(),
            objects: repaired_at(prev, &entry.revision),
        }),
        applied: applied.clone(),
        revision: applied,
    }
}

fn revisions(status: &SyncStatus) -> Revisions {
    status.revision.clone().unwrap_or_default()
}

fn applied(state: &mut AnnouncedState, prev: &SyncStatus, next: &SyncStatus) -> Option<Occurrence> {
    let now = revisions(next);
    let (applied, digest) = (now.applied?, now.applied_digest.unwrap_or_default());
    let is_new = std::mem::replace(&mut state.applied, applied.clone()) != applied;
    // A set without a recorded digest may be another one.
    let is_other = digest.is_empty() || state.digest != digest;
    if is_new || !digest.is_empty() {
        state.digest.clone_from(&digest);
    }
    if !is_new || !is_other {
        return None;
    }
    let was_there = prev.history.iter().skip(1).any(|entry| entry.revision == applied);
    let previous = std::mem::replace(&mut state.revision, applied.clone());
    state.healthy = false;
    let details =
        TransitionDetails { digest, previous_revision: previous, ..details(next, applied, Reason::Applied) };
    Some(Occurrence { transition: Transition::Applied, details, repeats: was_there })
}

fn healthy(state: &mut AnnouncedState, next: &SyncStatus) -> Option<Occurrence> {
    let now = revisions(next);
    let is_whole = now.healthy.is_some() && now.healthy == now.applied;
    if state.healthy || state.revision.is_empty() || !is_whole {
        return None;
    }
    state.healthy = true;
    let details = TransitionDetails {
        digest: state.digest.clone(),
        ..details(next, state.revision.clone(), Reason::Healthy)
    };
    Some(Occurrence { transition: Transition::Healthy, details, repeats: true })
}

fn failed(state: &mut AnnouncedState, next: &SyncStatus) -> Option<Occurrence> {
    state.failed = failure(next).filter(|failure| *failure != state.failed)?;
    Some(still_failed(state, next))
}

/// Returns the failure that the known state has.
pub(crate) fn still_failed(state: &AnnouncedState, next: &SyncStatus) -> Occurrence {
    let failure = &state.failed;
    let (reason, revision) = failure.split_once(' ').unwrap_or((failure, ""));
    let message = condition(next, ConditionType::Ready).map(|it| it.message.as_str()).unwrap_or_default();
    let details = TransitionDetails {
        reason: reason.to_owned(),
        message: shortened(message),
        previous_revision: revisions(next).applied.unwrap_or_default(),
        ..details(next, revision.to_owned(), Reason::ApplyFailed)
    };
    Occurrence { transition: Transition::Failed, details, repeats: true }
}

fn degraded(state: &mut AnnouncedState, next: &SyncStatus) -> Option<Occurrence> {
    let at = degraded_at(next);
    if !is_degraded(next) || state.degraded == at {
        return None;
    }
    state.degraded = at;
    Some(still_degraded(state, next))
}

/// Returns that the Sync is degraded, as the known state has it.
pub(crate) fn still_degraded(state: &AnnouncedState, next: &SyncStatus) -> Occurrence {
    let message = condition(next, ConditionType::Healthy).map(|it| it.message.as_str()).unwrap_or_default();
    let details = TransitionDetails {
        message: shortened(message),
        digest: state.digest.clone(),
        ..details(next, revisions(next).applied.unwrap_or_default(), Reason::Degraded)
    };
    Occurrence { transition: Transition::Degraded, details, repeats: true }
}

/// Returns the revision that a Sync is degraded at, as the known state has it; it is never empty.
fn degraded_at(status: &SyncStatus) -> String {
    revisions(status).applied.unwrap_or_else(|| NOT_APPLIED.to_owned())
}

fn prune_held(state: &mut AnnouncedState, next: &SyncStatus) -> Option<Occurrence> {
    let hash = next.approval.as_ref().map(|waits| waits.hash.clone()).unwrap_or_default();
    let is_known = std::mem::replace(&mut state.prune, hash.clone()) == hash;
    let waits = next.approval.as_ref().filter(|_| !is_known)?;
    let revision = revisions(next).attempted.unwrap_or_default();
    let message = format!("{} objects wait for the approval {} of their deletion", waits.objects, waits.hash);
    let details = TransitionDetails {
        message,
        digest: waits.hash.clone(),
        ..details(next, revision, Reason::PruneHeld)
    };
    Some(Occurrence { transition: Transition::PruneHeld, details, repeats: true })
}

/// Returns the revision that waits for approval, if there is one.
fn revision_to_approve(status: &SyncStatus) -> Option<&PendingApproval> {
    status.approvals.iter().find(|waits| waits.of == ApprovalSubject::Revision)
}

fn approval_required(state: &mut AnnouncedState, next: &SyncStatus) -> Option<Occurrence> {
    let waits = revision_to_approve(next);
    let hash = waits.map(|waits| waits.hash.clone()).unwrap_or_default();
    let is_known = std::mem::replace(&mut state.approval, hash.clone()) == hash;
    let waits = waits.filter(|_| !is_known)?;
    let PendingApproval { created, changed, pruned, .. } = *waits;
    let changes = ChangeCounts { created, changed, pruned, ..ChangeCounts::default() };
    let revision = waits.revision.clone().or_else(|| revisions(next).seen).unwrap_or_default();
    let details = TransitionDetails {
        message: format!("{changes}; its hash is {hash}"),
        previous_revision: revisions(next).applied.unwrap_or_default(),
        digest: hash,
        changes,
        ..details(next, revision, Reason::ApprovalRequired)
    };
    Some(Occurrence { transition: Transition::ApprovalRequired, details, repeats: true })
}

fn rolled_back(state: &mut AnnouncedState, prev: &SyncStatus, next: &SyncStatus) -> Option<Occurrence> {
    let (before, now) = (revisions(prev), revisions(next));
    let chosen = now.chosen.as_ref().map(|chosen| chosen.revision.clone()).unwrap_or_default();
    let rejected = now.rejected.clone().unwrap_or_default();
    let is_known = std::mem::replace(&mut state.chosen, chosen.clone()) == chosen;
    let is_rejected_before = std::mem::replace(&mut state.rejected, rejected.clone()) == rejected;
    if let Some(held) = now.chosen.as_ref().filter(|_| !is_known) {
        let newest = now.seen.clone().or_else(|| before.applied.clone()).unwrap_or_default();
        let ChosenRevision { revision, by, reason } = held.clone();
        let who_and_why = RevisionHold { revision, by, reason }.who_and_why();
        let details = TransitionDetails {
            previous_revision: held.revision.clone(),
            message: shortened(&format!("held at {}{who_and_why}", held.revision)),
            ..details(next, newest, Reason::RevisionHeld)
        };
        return Some(Occurrence { transition: Transition::RolledBack, details, repeats: true });
    }
    if rejected.is_empty() || is_rejected_before {
        return None;
    }
    let why = next.history.iter().find(|entry| entry.revision == rejected).map(|entry| &*entry.message);
    let details = TransitionDetails {
        previous_revision: now.held.map(|held| held.revision).or(before.healthy).unwrap_or_default(),
        message: shortened(why.unwrap_or_default()),
        ..details(next, rejected, Reason::RolledBack)
    };
    Some(Occurrence { transition: Transition::RolledBack, details, repeats: true })
}

/// Returns the number of objects that were repaired at a revision.
fn repaired_at(status: &SyncStatus, revision: &str) -> i64 {
    let entries = status.history.iter().filter(|entry| entry.revision == revision);
    entries.map(|entry| entry.changes.repaired).sum()
}

fn drift_repaired(state: &mut AnnouncedState, prev: &SyncStatus, next: &SyncStatus) -> Option<Occurrence> {
    let known = |revision: &str| match &state.repairs {
        Some(known) if known.revision == revision => known.objects,
        _ => repaired_at(prev, revision),
    };
    let more = |revision: &str| repaired_at(next, revision) - known(revision);
    let is_repaired = |revision: &str| more(revision) > 0;
    let entry =
        next.history.iter().find(|entry| entry.changes.repaired > 0 && is_repaired(&entry.revision))?;
    let (revision, repaired) = (entry.revision.clone(), more(&entry.revision));
    state.repairs = Some(AnnouncedRepairs { objects: repaired_at(next, &revision), revision });
    let objects = if repaired == 1 { "object" } else { "objects" };
    let details = TransitionDetails {
        reason: "DriftRepaired".to_owned(),
        message: format!("{repaired} {objects} repaired after others had changed them"),
        changes: ChangeCounts { repaired, ..ChangeCounts::default() },
        ..details(next, entry.revision.clone(), Reason::Applied)
    };
    Some(Occurrence { transition: Transition::DriftRepaired, details, repeats: true })
}

fn recovered(state: &mut AnnouncedState, next: &SyncStatus) -> Option<Occurrence> {
    let is = |type_, expect: &str| condition(next, type_).is_some_and(|it| it.status == expect);
    let is_well = is(ConditionType::Ready, "True") && !is_degraded(next);
    let is_sure = state.degraded.is_empty() || is(ConditionType::Healthy, "True");
    if state.failed.is_empty() && state.degraded.is_empty() || !is_well || !is_sure {
        return None;
    }
    let was = if state.degraded.is_empty() { Transition::Failed } else { Transition::Degraded };
    (state.failed, state.degraded) = Default::default();
    Some(well_again(state, next, was))
}

/// Returns that the Sync is well after a transition.
pub(crate) fn well_again(state: &AnnouncedState, next: &SyncStatus, was: Transition) -> Occurrence {
    let revision = revisions(next).applied.unwrap_or_default();
    let details = TransitionDetails {
        message: format!("it was {was}"),
        digest: state.digest.clone(),
        ..details(next, revision, Reason::Healthy)
    };
    Occurrence { transition: Transition::Recovered, details, repeats: true }
}

/// Returns the details that every transition has.
fn details(next: &SyncStatus, revision: String, reason: Reason) -> TransitionDetails {
    let entry = next.history.iter().find(|entry| entry.revision == revision);
    TransitionDetails {
        message: entry.map(|entry| shortened(&entry.subject)).unwrap_or_default(),
        changes: entry.map(|entry| entry.changes).unwrap_or_default(),
        objects: next.objects.map(|objects| objects.desired).unwrap_or_default(),
        reason: reason.to_string(),
        revision,
        ..TransitionDetails::default()
    }
}

/// Returns reason and revision of a failure, if there is one.
fn failure(status: &SyncStatus) -> Option<String> {
    let ready = condition(status, ConditionType::Ready).filter(|ready| ready.status == "False")?;
    let fails = match Reason::parse(&ready.reason) {
        // A reason of rendering or of the repository.
        None => true,
        Some(reason) => match reason {
            Reason::SpecInvalid
            | Reason::ManifestInvalid
            | Reason::ApplyFailed
            | Reason::ServiceAccountRequired
            | Reason::DependencyCycle
            | Reason::RightsMissing
            | Reason::Contested => true,
            Reason::Applied
            | Reason::Progressing
            | Reason::Suspended
            | Reason::Deleting
            | Reason::DeletionHeld
            | Reason::ObjectsHeld
            | Reason::PruneHeld
            | Reason::ApprovalRequired
            | Reason::WindowClosed
            | Reason::HeldByOther
            | Reason::DependencyNotReady
            | Reason::Healthy
            | Reason::Degraded
            | Reason::HealthUnknown
            | Reason::RolledBack
            | Reason::RevisionHeld
            | Reason::FieldsDiffer => false,
        },
    };
    let revision = revisions(status);
    let about = revision.attempted.or(revision.seen).unwrap_or_default();
    fails.then(|| format!("{} {about}", ready.reason))
}

fn is_degraded(status: &SyncStatus) -> bool {
    condition(status, ConditionType::Healthy)
        .is_some_and(|it| it.status == "False" && Reason::parse(&it.reason) == Some(Reason::Degraded))
}

fn condition(
    status: &SyncStatus,
    type_: ConditionType,
) -> Option<&k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition> {
    let type_ = type_.to_string();
    status.conditions.iter().find(|condition| condition.type_ == type_)
}

fn shortened(text: &str) -> String {
    cut(&sanitize(text), MAX_MESSAGE)
}
