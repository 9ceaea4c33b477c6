//! Names that Moorline and its users share on a cluster: labels, annotations, the field manager,
//! and the custom resources `Sync`, `Notifier` and `ChangeWindow`.
//!
//! No other crate writes these names out. The spec of a Sync is in `sync.rs` and `git.rs`, its
//! status in `status.rs` and `notification.rs`, the reasons of its conditions in `condition.rs` and
//! of Events in `event.rs`, renamed ones in `former_reasons.rs`. A Notifier is in `notifier.rs`, a
//! change window in `change_window.rs`, and all CustomResourceDefinitions are in `definition.rs`.
//! All of these but the names belong to the feature `crd`, which is on by default.
#![cfg_attr(feature = "crd", doc = include_str!("../README.md"))]
#![warn(unreachable_pub)]
// Nothing panics on input. Tests may panic.
#![cfg_attr(not(test), deny(clippy::unwrap_used, clippy::expect_used, clippy::panic))]
#![cfg_attr(not(test), deny(clippy::print_stdout, clippy::print_stderr))]

mod acted_by;
#[cfg(feature = "crd")]
mod approval;
#[cfg(feature = "crd")]
mod artifact_verification;
#[cfg(feature = "crd")]
mod change_window;
#[cfg(feature = "crd")]
mod cluster_generator;
#[cfg(feature = "crd")]
mod cluster_target;
#[cfg(feature = "crd")]
mod condition;
#[cfg(feature = "crd")]
mod decryption;
#[cfg(feature = "crd")]
mod definition;
#[cfg(feature = "crd")]
mod deletion;
mod deletion_protection;
#[cfg(feature = "crd")]
mod duration_text;
mod event;
mod former_reasons;
#[cfg(feature = "crd")]
mod git;
mod git_generator;
#[cfg(feature = "crd")]
mod health;
#[cfg(feature = "crd")]
mod helm;
#[cfg(feature = "crd")]
mod history;
mod hold;
#[cfg(feature = "crd")]
mod identity;
#[cfg(feature = "crd")]
mod kustomize;
mod moves;
#[cfg(feature = "crd")]
mod notification;
#[cfg(feature = "crd")]
mod notifier;
#[cfg(feature = "crd")]
mod oci;
#[cfg(feature = "crd")]
mod pull_request_generator;
mod render;
#[cfg(feature = "crd")]
mod revision_text;
#[cfg(feature = "crd")]
mod source_mount;
mod spec_hash;
#[cfg(feature = "crd")]
mod status;
#[cfg(feature = "crd")]
mod substitute;
#[cfg(feature = "crd")]
mod sync;
mod sync_name;
#[cfg(feature = "crd")]
mod sync_set;
#[cfg(feature = "crd")]
mod sync_set_rollout;
mod sync_target;
mod tag_generator;
mod window_override;

pub use crate::deletion_protection::deletion_protection_key;
#[cfg(feature = "crd")]
pub use crate::duration_text::{DurationText, MAX_DURATION, MIN_DURATION};
pub use acted_by::{
    APPROVED_BY_ANNOTATION, REQUESTED_BY_ANNOTATION, SUSPEND_BY_ANNOTATION, signed_by, signer_of,
};
#[cfg(feature = "crd")]
pub use approval::{
    ApprovalPolicy, ApprovalSubject, ApprovedRevision, MAX_APPROVED, PendingApproval, RevisionApproval,
};
#[cfg(feature = "crd")]
pub use artifact_verification::{
    ArtifactKeys, ArtifactVerification, ConfigMapRef, SignerIdentity, TrustedRoot,
};
#[cfg(feature = "crd")]
pub use change_window::{
    ChangeWindow, ChangeWindowSpec, ChangeWindowStatus, HeldByWindow, LabelOperator, OverriddenRevision,
    WindowEffect, WindowRequirement, WindowSelector,
};
#[cfg(feature = "crd")]
pub use cluster_generator::{ClusterGenerator, ClusterSelector, LabelCondition};
#[cfg(feature = "crd")]
pub use cluster_target::{ClusterSecretRef, ClusterTarget};
#[cfg(feature = "crd")]
pub use condition::{ConditionType, Reason};
#[cfg(feature = "crd")]
pub use decryption::{DecryptionSpec, SopsSpec};
#[cfg(feature = "crd")]
pub use definition::{
    change_window_definition, definition, definitions, namespace_change_window_definition,
    notifier_definition, sync_set_definition,
};
#[cfg(feature = "crd")]
pub use deletion::{FINALIZER, format_deletion_answer, parse_deletion_answer};
pub use event::EventReason;
pub use former_reasons::{FORMER_REASONS, current_reason};
#[cfg(feature = "crd")]
pub use git::{GitRef, GitSource, SecretRef, SignatureVerification, Source, VerifyMode};
#[cfg(feature = "crd")]
pub use git_generator::{GitGenerator, PathPatterns};
pub use health::{HealthRule, HealthSpec};
#[cfg(feature = "crd")]
pub use helm::{ChartSource, HelmSpec, HelmValuesFrom};
#[cfg(feature = "crd")]
pub use history::{ChangeCounts, ChosenRevision, HistoryEntry, MAX_HISTORY};
pub use hold::{HOLD_BY_ANNOTATION, HOLD_REASON_ANNOTATION, HOLD_REVISION_ANNOTATION, RevisionHold};
#[cfg(feature = "crd")]
pub use identity::{CloudProvider, GitProvider};
#[cfg(feature = "crd")]
pub use kustomize::{AnnotationText, KustomizeImage, KustomizePatch, KustomizeSpec, LabelText, PatchTarget};
pub use moves::{MOVES_TO_ANNOTATION, parse_moves_to};
#[cfg(feature = "crd")]
pub use notification::{
    AnnouncedRepairs, AnnouncedState, NotificationRecord, NotificationState, Transition, TransitionDetails,
};
#[cfg(feature = "crd")]
pub use notifier::{
    Notifier, NotifierSpec, NotifierStatus, NotifierTarget, PullRequestOptions, SyncSelector,
};
#[cfg(feature = "crd")]
pub use oci::{LayerOperation, OciLayer, OciRef, OciSource};
#[cfg(feature = "crd")]
pub use pull_request_generator::{AllowedFork, PullRequestGenerator, RepositoryHost};
pub use render::{PlainSpec, RenderSpec, RenderType};
#[cfg(feature = "crd")]
pub use revision_text::{AppliedChart, applied_mounts, short_revision, split_chart, split_mounts};
#[cfg(feature = "crd")]
pub use source_mount::{AppliedMount, MAX_MOUNTS, SourceMount};
pub use spec_hash::{CanonicalForm, SpecHash};
#[cfg(feature = "crd")]
pub use status::{
    Approval, ContestedField, FinishedObject, HeldRevision, ObjectCounts, Revisions, Scope, StatusProblem,
    SyncStatus,
};
#[cfg(feature = "crd")]
pub use substitute::{SubstituteSpec, ValuesFrom, ValuesKind, VariableText};
#[cfg(feature = "crd")]
pub use sync::{
    ConflictPolicy, DeletionPolicy, Dependency, DriftMode, DriftPolicy, ExtraFieldPolicy, IgnoreFields,
    IgnoreTarget, PruneBudget, PrunePolicy, Sync, SyncSpec,
};
pub use sync_name::SyncName;
#[cfg(feature = "crd")]
pub use sync_set::{
    FieldValue, Generator, HeldRemoval, ListGenerator, MergeGenerator, NestedGenerator, SetCounts,
    SetRevision, SyncRemoval, SyncSet, SyncSetSpec, SyncSetStatus, SyncTemplate, TemplateMetadata,
};
#[cfg(feature = "crd")]
pub use sync_set_rollout::{RolloutStage, RolloutStatus, SetRollout};
pub use sync_target::{MAX_TARGET_NAME, target_mark};
pub use tag_generator::TagGenerator;
pub use window_override::{
    OVERRIDE_ANNOTATION, OVERRIDE_BY_ANNOTATION, OVERRIDE_REASON_ANNOTATION, WindowOverride,
};

/// Label on every object of a Sync; the watches of the daemon select by it.
pub const SYNC_LABEL: &str = "moorline.dev/sync";

/// Annotation on every object of a Sync: the owning Sync and the id of the object. A copy of the
/// object carries the id of the original, which shows that it is a copy.
pub const ID_ANNOTATION: &str = "moorline.dev/id";

/// Annotation on every object of a Sync: hash of the object as rendered.
pub const SPEC_HASH_ANNOTATION: &str = "moorline.dev/spec-hash";

/// Annotation on every object of a Sync: keyed proof that the daemon itself wrote the other
/// annotations; see `crates/engine/src/proof.rs`.
pub const PROOF_ANNOTATION: &str = "moorline.dev/proof";

/// Annotation: wave in which an object is applied (an integer, 0 when absent).
pub const WAVE_ANNOTATION: &str = "moorline.dev/wave";

/// Argo CD's annotation for the same purpose, used where ours is absent.
pub const ARGO_WAVE_ANNOTATION: &str = "argocd.argoproj.io/sync-wave";

/// Annotation: `disabled` keeps Moorline from pruning the object.
pub const PRUNE_ANNOTATION: &str = "moorline.dev/prune";

/// Annotation: `disabled` keeps Moorline from changing the object at all.
pub const RECONCILE_ANNOTATION: &str = "moorline.dev/reconcile";

/// Annotation: `once` creates the object and never updates it.
pub const APPLY_ANNOTATION: &str = "moorline.dev/apply";

/// Annotation: `enabled` lets Moorline delete and recreate the object when an immutable field
/// changes.
pub const RECREATE_ANNOTATION: &str = "moorline.dev/recreate";

/// Annotation: manual edits are kept until this time (RFC 3339) and repaired afterwards.
pub const PAUSE_ANNOTATION: &str = "moorline.dev/pause-until";

/// Annotation or label on an object in Git: `disabled` turns variable substitution off for its
/// text.
pub const SUBSTITUTE_ANNOTATION: &str = "moorline.dev/substitute";

/// Keys that turn variable substitution off for an object: ours, and that of Flux.
pub const SUBSTITUTE_SWITCHES: [&str; 2] = [SUBSTITUTE_ANNOTATION, "kustomize.toolkit.fluxcd.io/substitute"];

/// Annotation on the CustomResourceDefinition and on the daemon's Lease: version of the program
/// that wrote it.
pub const VERSION_ANNOTATION: &str = "moorline.dev/version";

/// Annotation on a Sync: any new value makes the daemon poll the repository now.
pub const REQUEST_ANNOTATION: &str = "moorline.dev/requested-at";

/// Prefix of that annotation's value if the request comes from a webhook that reached a daemon
/// without the Lease, not from a person.
pub const WEBHOOK_REQUEST: &str = "webhook ";

/// Annotation on a Sync: approves the pending prune with this hash, which the status shows.
pub const APPROVE_ANNOTATION: &str = "moorline.dev/approve";

/// Annotation on a Sync of a SyncSet: the SyncSet, its uid and the Sync itself, as `set/uid/name`.
/// A copy of the Sync carries the name of the original, which shows that it is a copy.
pub const SYNC_SET_ANNOTATION: &str = "moorline.dev/sync-set";

/// Annotation on a Sync of a SyncSet: hash of the desired Sync.
pub const SYNC_SET_HASH_ANNOTATION: &str = "moorline.dev/sync-set-hash";

/// Annotation on a Sync that is being deleted: a person's answer, such as `Orphan@7`.
pub const DELETION_ANNOTATION: &str = "moorline.dev/deletion";

/// Annotation on a Sync: id of the object that it was converted from, such as
/// `argoproj.io/Application|argocd/shop`. Fields that this tool wrote before the Sync existed count
/// as left behind.
pub const ADOPTED_FROM_ANNOTATION: &str = "moorline.dev/adopted-from";

/// Annotation on the object that a Sync was converted from: its previous settings, so that `adopt
/// --undo` can restore them.
pub const BEFORE_ADOPTION_ANNOTATION: &str = "moorline.dev/before-adoption";

/// Annotation that makes an object a hook: the phases in which it runs.
pub const HOOK_ANNOTATION: &str = "moorline.dev/hook";

/// Annotation on a hook: results after which it is deleted.
pub const HOOK_DELETE_ANNOTATION: &str = "moorline.dev/hook-delete";

/// Argo CD's annotations for hooks.
pub const ARGO_HOOK_ANNOTATIONS: [&str; 2] =
    ["argocd.argoproj.io/hook", "argocd.argoproj.io/hook-delete-policy"];

/// Helm's annotations for hooks.
pub const HELM_HOOK_ANNOTATIONS: [&str; 2] = ["helm.sh/hook", "helm.sh/hook-delete-policy"];

/// Helm's annotation for the order of hooks.
pub const HELM_WEIGHT_ANNOTATION: &str = "helm.sh/hook-weight";

/// Field manager that owns fields temporarily during a handover. No user's edits carry its name.
pub const HANDOVER_MANAGER: &str = "moorline-handover";

/// Field manager of the daemon's writes on Syncs, Events, Leases and the Secret with its keys.
pub const DAEMON_MANAGER: &str = "moorline-daemon";

/// Label on every object of an installation of Moorline itself, and its value.
pub const PART_OF_LABEL: (&str, &str) = ("app.kubernetes.io/part-of", "moorline");

/// Label on a Sync: instance of the daemon that serves it; absent for the instance without a name.
pub const INSTANCE_LABEL: &str = "moorline.dev/instance";

/// Annotation on a Lease: repository that is followed without a Sync.
pub const SOURCE_ANNOTATION: &str = "moorline.dev/source";

/// Annotation on a Lease: folder in that repository.
pub const PATH_ANNOTATION: &str = "moorline.dev/path";

/// Annotation on a Lease: scope of a run without a Sync, the kinds and namespaces that it may own.
pub const SCOPE_ANNOTATION: &str = "moorline.dev/scope";
/// Annotation on the Lease of a run without a Sync: the newest revision that rendered completely,
/// as `status.revision.held` has it.
pub const HELD_ANNOTATION: &str = "moorline.dev/held";
/// Annotation on the Lease of a daemon that writes a journal: number and hash of its last line.
pub const JOURNAL_ANNOTATION: &str = "moorline.dev/journal";

/// Label on a Secret with the keys of a daemon or of a run: no Sync may read it, set its data or
/// delete it.
pub const KEYS_LABEL: &str = "moorline.dev/keys";

/// Annotation on a Secret with a repository login: the hosts that may receive it, separated by
/// commas.
pub const HOSTS_ANNOTATION: &str = "moorline.dev/hosts";

/// Prefix of the annotation of a kustomization with the digest of a chart. The chart's name, a dash
/// and its version follow.
pub const CHART_DIGEST_PREFIX: &str = "moorline.dev/digest.";

/// Prefix of all our labels and annotations.
pub const KEY_PREFIX: &str = "moorline.dev/";

/// Every annotation with [`KEY_PREFIX`] that has a meaning.
pub const ANNOTATIONS: [&str; 32] = [
    ADOPTED_FROM_ANNOTATION,
    APPLY_ANNOTATION,
    APPROVE_ANNOTATION,
    APPROVED_BY_ANNOTATION,
    BEFORE_ADOPTION_ANNOTATION,
    DELETION_ANNOTATION,
    HOLD_BY_ANNOTATION,
    HOLD_REASON_ANNOTATION,
    HOLD_REVISION_ANNOTATION,
    HOOK_ANNOTATION,
    HOOK_DELETE_ANNOTATION,
    HOSTS_ANNOTATION,
    ID_ANNOTATION,
    JOURNAL_ANNOTATION,
    MOVES_TO_ANNOTATION,
    OVERRIDE_ANNOTATION,
    OVERRIDE_BY_ANNOTATION,
    OVERRIDE_REASON_ANNOTATION,
    PAUSE_ANNOTATION,
    PROOF_ANNOTATION,
    PRUNE_ANNOTATION,
    RECONCILE_ANNOTATION,
    RECREATE_ANNOTATION,
    REQUEST_ANNOTATION,
    REQUESTED_BY_ANNOTATION,
    SPEC_HASH_ANNOTATION,
    SUBSTITUTE_ANNOTATION,
    SUSPEND_BY_ANNOTATION,
    SYNC_SET_ANNOTATION,
    SYNC_SET_HASH_ANNOTATION,
    VERSION_ANNOTATION,
    WAVE_ANNOTATION,
];

/// Prefix of every field manager of Moorline.
pub const MANAGER_PREFIX: &str = "moorline/";

/// Start of the value of [`SYNC_LABEL`] on an object whose Sync is in another cluster. No namespace
/// has the second character.
pub const TARGET_LABEL: &str = "r_";

/// Serde default of options that are on.
#[cfg(feature = "crd")]
fn yes() -> bool {
    true
}
