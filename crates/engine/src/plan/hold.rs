//! Reasons for holding an object although it differs from the desired state.
//!
//! In: the facts of a decision.
//! Out: [`Hold`], its reason for conditions and metrics, and its message for people.

use std::fmt;

use super::{BackendState, Contest, Replacement, UnservedWebhook};
use crate::observed::{Drift, Observed};
use moorline_api::MOVES_TO_ANNOTATION;
use moorline_core::grammar;
use moorline_core::object::{GroupKind, ObjectId};

/// The reason for holding an object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Hold {
    /// The Sync is suspended.
    Suspended,
    /// Neither the server nor a definition at hand knows the kind, so the object cannot be
    /// identified.
    UnknownKind,
    /// An annotation, in Git or live, disables reconciliation.
    ReconcileDisabled,
    /// It is being deleted, and these finalizers block that.
    BeingDeleted(Box<[Box<str>]>),
    /// Another Sync owns it.
    OwnedBy(Box<str>),
    /// Other managers own fields that Git sets, and the Sync does not force a change.
    Conflict {
        /// The managers that own them.
        managers: Vec<Box<str>>,
        /// The fields, as the API server writes them.
        fields: Vec<Box<str>>,
    },
    /// Its namespace does not exist.
    NamespaceMissing(Box<str>),
    /// Its namespace is being deleted.
    NamespaceTerminating(Box<str>),
    /// It has drifted, and the Sync only reports drift.
    DriftReported(Box<Drift>),
    /// It was deleted after this revision was applied, and the Sync only reports drift.
    Deleted,
    /// Git changed or removed it, and an annotation pauses changes until this time: milliseconds
    /// since 1970.
    Paused(i64),
    /// It is the Secret with the keys of the daemon: no Sync may write its data or delete it.
    DaemonKeys,
    /// It is no longer desired and carries our annotations, but its proof is missing or invalid.
    Unproven,
    /// An autoscaler may own its replica count; this prevents us from finding out.
    AutoscalerUnknown(Box<str>),
    /// Others revert every repair, so it is repaired at growing intervals.
    Contested(Box<Contest>),
    /// It is unverified since the start or since a write of another manager, and the Sync only
    /// reports drift: it is compared, not applied.
    Unverified,
    /// An object that must come first does not exist yet, or one that must go first still exists.
    WaitsFor(ObjectId),
    /// A webhook intercepts its requests, and no backend serves the webhook.
    WebhookUnserved(Box<UnservedWebhook>),
    /// It is a hook that still runs for an earlier set.
    HookRunning,
    /// Another Sync claims it and cannot adopt it now.
    ClaimedBy(Box<str>),
    /// It is no longer desired here, and another Sync may claim it: that one has not rendered this
    /// commit.
    PossiblyClaimed(Box<str>),
    /// It is no longer desired here, and the Sync that receives the objects of this one has not
    /// polled since.
    AwaitsMoveTarget(Box<str>),
    /// It is no longer desired here, and a Sync that claims it or may claim it has blocked its
    /// deletion for too long.
    ClaimOverdue(Box<str>),
    /// It is no longer desired here, and a Sync of its namespace claims it but may not patch it.
    ClaimedWithoutRights(Box<str>),
    /// It would be deleted, but this newer commit or spec cannot be applied and may contain it.
    NewerRefused(Box<str>),
    /// It is no longer desired, and the Sync or an annotation disables pruning.
    PruneDisabled,
    /// It is no longer desired, and the annotation or label with this key protects it.
    ProtectedBy(&'static str),
    /// It is no longer desired, but the whole desired set is empty, which is more likely a mistake.
    EmptyRender,
    /// It is no longer desired, and its kind could not be listed completely.
    ListIncomplete,
    /// It carries our identity, but our field manager did not apply it.
    NotAppliedByUs,
    /// It is no longer desired, but its uid or version is unknown.
    IdentityUnknown,
    /// It is the same object as a desired one with another id.
    DuplicateOf(ObjectId),
    /// It is no longer desired, but this object in it would be deleted with it.
    NotEmpty(ObjectId),
    /// It is no longer desired, but objects of this kind cannot be listed, and any in it would be
    /// deleted with it.
    ContentUnknown(GroupKind),
    /// It is no longer desired, and objects of its kind are pruned only by approval.
    Protected,
    /// It is no longer desired, and this object is pruned only by approval, independent of its
    /// kind.
    Guarded(PruneGuard),
    /// It can only change by being deleted and recreated, which waits for approval.
    ReplacementWaits(Box<Replacement>),
    /// It is no longer desired, but this object, which waits for approval, may need it to finish
    /// its deletion.
    BlocksPendingPrune(ObjectId),
    /// It is no longer desired, and so many objects would be pruned that a person must approve.
    PruneBudgetExceeded {
        /// Number of objects that would be pruned.
        prunes: usize,
        /// Number of objects that the Sync owns.
        owned: usize,
    },
}

/// The reason why an object is pruned only by approval, independent of its kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PruneGuard {
    /// Its deletion also deletes something that no commit restores.
    CascadingDelete,
    /// In a rollback: the object may have existed before the commit that is rolled back.
    Preexisting,
    /// It is a part of an installation of Moorline: the daemon that deletes it may delete itself.
    PartOfMoorline,
}

impl Hold {
    /// Returns the hold of an object that an annotation or label protects.
    pub(super) fn protected_object(seen: &Observed) -> Self {
        seen.protected_by.map_or(Self::PruneDisabled, Self::ProtectedBy)
    }

    /// Returns the reason for conditions, events and metrics.
    pub fn reason(&self) -> &'static str {
        match self {
            Self::Suspended => "Suspended",
            Self::UnknownKind => "UnknownKind",
            Self::ReconcileDisabled => "ReconcileDisabled",
            Self::BeingDeleted(_) => "BeingDeleted",
            Self::OwnedBy(_) => "OwnedBy",
            Self::Conflict { .. } => "Conflict",
            Self::NamespaceMissing(_) => "NamespaceMissing",
            Self::NamespaceTerminating(_) => "NamespaceTerminating",
            Self::DriftReported(_) => "DriftReported",
            Self::Deleted => "Deleted",
            Self::Paused(_) => "Paused",
            Self::DaemonKeys => "DaemonKeys",
            Self::Unproven => "Unproven",
            Self::AutoscalerUnknown(_) => "AutoscalerUnknown",
            Self::Contested(_) => "Contested",
            Self::Unverified => "Unverified",
            Self::WaitsFor(_) | Self::WebhookUnserved(_) => "WaitingForObject",
            Self::HookRunning => "HookRunning",
            Self::ClaimedBy(_) => "ClaimedBy",
            Self::PossiblyClaimed(_) | Self::AwaitsMoveTarget(_) => "PossiblyClaimed",
            Self::ClaimOverdue(_) => "ClaimOverdue",
            Self::ClaimedWithoutRights(_) => "ClaimedWithoutRights",
            Self::NewerRefused(_) => "NewerRefused",
            Self::PruneDisabled | Self::ProtectedBy(_) => "PruneDisabled",
            Self::EmptyRender => "EmptyRender",
            Self::ListIncomplete => "ListIncomplete",
            Self::NotAppliedByUs => "NotAppliedByUs",
            Self::IdentityUnknown => "IdentityUnknown",
            Self::DuplicateOf(_) => "StillInGit",
            Self::NotEmpty(_) => "NotEmpty",
            Self::ContentUnknown(_) => "PossiblyNotEmpty",
            Self::Protected | Self::Guarded(_) => "Protected",
            Self::ReplacementWaits(replacement) => replacement.why.reason(),
            Self::BlocksPendingPrune(_) => "BlocksPendingPrune",
            Self::PruneBudgetExceeded { .. } => "PruneBudgetExceeded",
        }
    }

    /// Returns the message of a hold because of another Sync.
    fn between(&self, sync: &str) -> String {
        match self {
            Self::ClaimedBy(_) => format!("the Sync {sync} claims it and cannot adopt it now"),
            Self::PossiblyClaimed(_) => format!(
                "no longer in Git here, but the Sync {sync} follows the same repository, has not rendered this commit and may claim it"
            ),
            Self::AwaitsMoveTarget(_) if is_no_name(sync) => format!(
                "no longer in Git here, but {MOVES_TO_ANNOTATION} is {sync}, which does not name another Sync"
            ),
            Self::AwaitsMoveTarget(_) => format!(
                "no longer in Git here, but {MOVES_TO_ANNOTATION} names {sync}, which has not polled and rendered its repository since"
            ),
            Self::ClaimOverdue(_) if is_no_name(sync) => format!(
                "no longer in Git here, but {MOVES_TO_ANNOTATION} is {sync}, which does not name another Sync; correct it, or approve the deletion"
            ),
            Self::ClaimOverdue(_) => format!(
                "no longer in Git here, but the Sync {sync} claims or may claim it and has not adopted it for too long; fix that Sync, or approve the deletion"
            ),
            Self::ClaimedWithoutRights(_) => format!(
                "no longer in Git here, but the Sync {sync} claims it but may not patch it; grant the permission, or approve the deletion"
            ),
            _ => format!("the Sync {sync} owns it"),
        }
    }

    /// True if the hold keeps a desired object out of its desired state, so that later waves wait.
    pub fn blocks_later_waves(&self) -> bool {
        matches!(
            self,
            Self::UnknownKind
                | Self::BeingDeleted(_)
                | Self::OwnedBy(_)
                | Self::WaitsFor(_)
                | Self::WebhookUnserved(_)
                | Self::HookRunning
                | Self::Conflict { .. }
                | Self::NamespaceMissing(_)
                | Self::NamespaceTerminating(_)
                | Self::Paused(_)
                | Self::AutoscalerUnknown(_)
                | Self::ReplacementWaits(_)
        )
    }

    /// True if the object is no longer desired and is deleted once a person approves.
    pub fn is_prune_to_approve(&self) -> bool {
        matches!(
            self,
            Self::Protected
                | Self::Guarded(_)
                | Self::BlocksPendingPrune(_)
                | Self::PruneBudgetExceeded { .. }
                | Self::NewerRefused(_)
                | Self::Unproven
                | Self::ClaimOverdue(_)
                | Self::ClaimedWithoutRights(_)
        )
    }

    /// True if a person asked for it: in the spec of the Sync, or in an annotation.
    pub fn is_requested(&self) -> bool {
        match self {
            Self::Suspended
            | Self::ReconcileDisabled
            | Self::PruneDisabled
            | Self::ProtectedBy(_)
            | Self::Paused(_) => true,
            Self::ReplacementWaits(replacement) => replacement.why.is_requested(),
            _ => false,
        }
    }
}

fn being_deleted(finalizers: &[Box<str>]) -> String {
    match finalizers {
        [] => "it is being deleted".to_owned(),
        all => format!("it is being deleted, and waits for the finalizer {}", all.join(" and ")),
    }
}

/// True for a quoted text of a user in the place of a Sync's name.
fn is_no_name(sync: &str) -> bool {
    sync.starts_with('"')
}

const RUNS: &str = "it is still running for an earlier revision, and runs again after that";

const OWN_KEYS: &str = "it holds the keys of the daemon: no Sync may set its data or delete it; leave data and stringData out in Git";

const UNPROVEN: &str = "no longer in Git, and it has the annotations of this Sync without a valid moorline.dev/proof, \
     so that it is pruned only by approval";

impl fmt::Display for Hold {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Suspended => f.write_str("the Sync is suspended"),
            Self::UnknownKind => f.write_str("unknown kind; waits for its CustomResourceDefinition"),
            Self::ReconcileDisabled => write!(f, "{} is disabled", moorline_api::RECONCILE_ANNOTATION),
            Self::BeingDeleted(finalizers) => f.write_str(&being_deleted(finalizers)),
            Self::OwnedBy(sync)
            | Self::ClaimedBy(sync)
            | Self::PossiblyClaimed(sync)
            | Self::AwaitsMoveTarget(sync)
            | Self::ClaimOverdue(sync)
            | Self::ClaimedWithoutRights(sync) => f.write_str(&self.between(sync)),
            Self::Conflict { managers, fields } => {
                write!(f, "{} belongs to {}", fields.join(", "), managers.join(", "))?;
                f.write_str(", and the Sync does not force a change (spec.conflicts)")
            }
            Self::NamespaceMissing(name) => write!(f, "the namespace {name} does not exist"),
            Self::NamespaceTerminating(name) => write!(f, "the namespace {name} is being deleted"),
            Self::DriftReported(drift) => {
                write!(f, "changed by {}, and only reported", drift.author())
            }
            Self::DaemonKeys => f.write_str(OWN_KEYS),
            Self::Unproven => f.write_str(UNPROVEN),
            Self::Deleted => f.write_str("deleted by others, and only reported"),
            Self::Paused(until) => {
                let until = jiff::Timestamp::from_millisecond(*until).unwrap_or_default();
                write!(f, "changed in Git, but {} is {until}", moorline_api::PAUSE_ANNOTATION)
            }
            Self::AutoscalerUnknown(why) => {
                write!(f, "an autoscaler may scale it, which cannot be checked now: {why}")
            }
            Self::Contested(contest) => contest.fmt(f),
            Self::Unverified => {
                f.write_str("not verified yet; it is compared with Git, and drift is only reported")
            }
            Self::WaitsFor(id) => write!(f, "it waits for {id}"),
            Self::WebhookUnserved(why) => why.fmt(f),
            Self::HookRunning => f.write_str(RUNS),
            Self::NewerRefused(newer) => write!(
                f,
                "it is not deleted while {newer}, which may contain it, cannot be applied; fix that, or approve the deletion"
            ),
            Self::PruneDisabled => f.write_str("no longer in Git, and pruning is disabled"),
            Self::ProtectedBy(key) => write!(f, "no longer in Git, and {key} on the object protects it"),
            Self::EmptyRender => f.write_str("no longer in Git, but an empty render prunes nothing"),
            Self::ListIncomplete => {
                f.write_str("no longer in Git, but its kind could not be listed completely")
            }
            Self::NotAppliedByUs => f.write_str("it has our identity annotation, but we did not apply it"),
            Self::IdentityUnknown => {
                f.write_str("no longer in Git, but its uid and resourceVersion are unknown")
            }
            Self::DuplicateOf(id) => write!(f, "it is {id} under another name, which is in Git"),
            Self::NotEmpty(id) => write!(f, "no longer in Git, but {id} would be deleted with it"),
            Self::ContentUnknown(kind) => write!(
                f,
                "no longer in Git, but {kind} objects that would be deleted with it may not be listed"
            ),
            Self::Protected => f.write_str("no longer in Git, and its kind is pruned only by approval"),
            Self::Guarded(guard) => guard.fmt(f),
            Self::ReplacementWaits(replacement) => replacement.fmt(f),
            Self::BlocksPendingPrune(id) => {
                write!(f, "no longer in Git, and is deleted after {id}, which waits for approval")
            }
            Self::PruneBudgetExceeded { prunes, owned } => {
                let owned = grammar::counted(*owned, "object");
                write!(f, "no longer in Git, but {prunes} of {owned} would be pruned")
            }
        }
    }
}

impl fmt::Display for Replacement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let why = match &self.why {
            Hold::NewerRefused(newer) => format!("{newer} cannot be applied"),
            Hold::Guarded(PruneGuard::CascadingDelete) => "its deletion also deletes others".to_owned(),
            Hold::Guarded(PruneGuard::PartOfMoorline) => "it is a part of Moorline itself".to_owned(),
            Hold::Unproven => format!("it has no valid {}", moorline_api::PROOF_ANNOTATION),
            _ => "its kind is protected".to_owned(),
        };
        write!(
            f,
            "Git changes an immutable field, so that the object must be deleted and created again; that needs approval, because {why}"
        )
    }
}

impl fmt::Display for UnservedWebhook {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "it waits for {}, which serves the webhook {}", self.backend, self.webhook)?;
        f.write_str(match self.state {
            BackendState::Ready | BackendState::NotReady => "",
            BackendState::ScaledToZero => " and is scaled to zero",
            BackendState::Unreached => ", and which the API server cannot reach yet",
        })
    }
}

impl fmt::Display for PruneGuard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::CascadingDelete => {
                "no longer in Git; its deletion also deletes others, so it is pruned only by approval"
            }
            Self::Preexisting => {
                "not in the commit of the rollback, but it may have existed before the rolled-back commit, so it is pruned only by approval"
            }
            Self::PartOfMoorline => {
                "no longer in Git, and it is a part of Moorline itself, so that it is pruned only by approval"
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_number_of_objects_is_written_in_singular_or_plural() {
        let told = |prunes, owned| Hold::PruneBudgetExceeded { prunes, owned }.to_string();
        assert_eq!(told(1, 1), "no longer in Git, but 1 of 1 object would be pruned");
        assert_eq!(told(11, 20), "no longer in Git, but 11 of 20 objects would be pruned");
    }

    #[test]
    fn who_asks_to_keep_an_object_is_named() {
        let told = Hold::ProtectedBy("helm.sh/resource-policy").to_string();
        assert_eq!(told, "no longer in Git, and helm.sh/resource-policy on the object protects it");
    }
}
