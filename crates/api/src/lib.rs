//! The names that Moorline and its users share on a cluster: labels, annotations, the field manager, and the
//! custom resource `Sync`.
//!
//! This is the only place where they are spelled. The spec of a Sync is in `sync.rs` and `git.rs`, its status
//! in `status.rs`, why Events tell more in `event.rs`, and the CustomResourceDefinition that the API server gets of both in `definition.rs`.
#![doc = include_str!("../README.md")]
#![warn(unreachable_pub)]
// Nothing panics on input; tests may.
#![cfg_attr(not(test), deny(clippy::unwrap_used, clippy::expect_used, clippy::panic))]
#![cfg_attr(not(test), deny(clippy::print_stdout, clippy::print_stderr))]

mod definition;
mod deletion;
mod event;
mod git;
mod health;
mod helm;
mod history;
mod kept;
mod moves;
mod render;
mod span;
mod spec_hash;
mod status;
mod substitute;
mod sync;

pub use definition::definition;
pub use deletion::{DELETION_ANNOTATION, FINALIZER, answered, deletion_answer};
pub use event::EventReason;
pub use git::{Git, GitRef, SecretRef, Source, Verify, VerifyMode};
pub use health::{HealthRule, HealthSpec};
pub use helm::{ChartSource, HelmSpec};
pub use history::{ChangeCounts, HistoryEntry, MAX_HISTORY};
pub use kept::kept_by;
pub use moves::{MOVES_TO_ANNOTATION, moves_to};
pub use render::{Plain, Render, RenderType};
pub use span::{MAX_SPAN, MIN_SPAN, Span};
pub use spec_hash::{CanonicalForm, SpecHash};
pub use status::{
    Approval, ConditionType, Contested, Finished, HeldRevision, ObjectCounts, Reason, Revisions, Scope,
    StatusProblem, SyncStatus, short_revision,
};
pub use substitute::{Substitute, ValuesFrom, ValuesKind, VariableText};
pub use sync::{
    Conflicts, DeletionPolicy, Dependency, Drift, DriftMode, ExtraFields, IgnoreFields, IgnoreTarget, Prune,
    PruneBudget, Sync, SyncSpec,
};

/// Label on every object of a Sync, and the selector of the daemon's watches.
pub const SYNC_LABEL: &str = "moorline.dev/sync";

/// Annotation on every object of a Sync: which Sync applied which object. A copy of the object carries the
/// identity of the original and is recognised by that.
pub const ID_ANNOTATION: &str = "moorline.dev/id";

/// Annotation on every object of a Sync: the hash of the object as rendered.
pub const SPEC_HASH_ANNOTATION: &str = "moorline.dev/spec-hash";

/// Annotation on every object of a Sync: the keyed proof that the daemon itself wrote its marks; see `proof.rs`.
pub const PROOF_ANNOTATION: &str = "moorline.dev/proof";

/// Annotation: the wave in which an object is applied (an integer, 0 when absent).
pub const WAVE_ANNOTATION: &str = "moorline.dev/wave";

/// Argo CD's annotation for the same purpose, understood where ours is absent.
pub const ARGO_WAVE_ANNOTATION: &str = "argocd.argoproj.io/sync-wave";

/// Annotation: `disabled` keeps Moorline from pruning the object.
pub const PRUNE_ANNOTATION: &str = "moorline.dev/prune";

/// Annotation: `disabled` keeps Moorline from touching the object at all.
pub const RECONCILE_ANNOTATION: &str = "moorline.dev/reconcile";

/// Annotation: `once` creates the object and leaves it alone from then on.
pub const APPLY_ANNOTATION: &str = "moorline.dev/apply";

/// Annotation: `enabled` lets Moorline delete and create the object anew when a field of it cannot change.
pub const RECREATE_ANNOTATION: &str = "moorline.dev/recreate";

/// Annotation: until this time (RFC 3339) edits by hand stay; they are repaired when it has passed.
pub const PAUSE_ANNOTATION: &str = "moorline.dev/pause-until";

/// Annotation or label on an object in Git: `disabled` keeps its text as it is, whatever looks like a variable in it.
pub const SUBSTITUTE_ANNOTATION: &str = "moorline.dev/substitute";

/// Ours and Flux's annotation (or label) for that.
pub const SUBSTITUTE_SWITCHES: [&str; 2] = [SUBSTITUTE_ANNOTATION, "kustomize.toolkit.fluxcd.io/substitute"];

/// Annotation on the definition of Syncs: the version of the program whose definition it is.
pub const VERSION_ANNOTATION: &str = "moorline.dev/version";

/// Annotation on a Sync: any new value asks the daemon to look at the repository now.
pub const REQUEST_ANNOTATION: &str = "moorline.dev/requested-at";

/// What the value of that annotation begins with where no person asks, but a webhook that a daemon without the Lease took.
pub const WEBHOOK_REQUEST: &str = "webhook ";

/// Annotation on a Sync: the approval of a prune that is held, by the hash that the status names.
pub const APPROVE_ANNOTATION: &str = "moorline.dev/approve";

/// Annotation on a Sync: what it was made from, as the id of an object such as `argoproj.io/Application|argocd/shop`. What that
/// tool wrote before the Sync was there counts as left behind.
pub const ADOPTED_FROM_ANNOTATION: &str = "moorline.dev/adopted-from";

/// Annotation on what a Sync was made from: how it was before, so that it can be restored.
pub const BEFORE_ADOPTION_ANNOTATION: &str = "moorline.dev/before-adoption";

/// Annotation on an object: it is a hook, and when it runs.
pub const HOOK_ANNOTATION: &str = "moorline.dev/hook";

/// Annotation on a hook: how it has to end to be deleted then.
pub const HOOK_DELETE_ANNOTATION: &str = "moorline.dev/hook-delete";

/// Argo CD's annotations for hooks.
pub const ARGO_HOOK_ANNOTATIONS: [&str; 2] =
    ["argocd.argoproj.io/hook", "argocd.argoproj.io/hook-delete-policy"];

/// Helm's annotations for hooks, and for their order.
pub const HELM_HOOK_ANNOTATIONS: [&str; 2] = ["helm.sh/hook", "helm.sh/hook-delete-policy"];

/// Helm's annotation for the order of hooks.
pub const HELM_WEIGHT_ANNOTATION: &str = "helm.sh/hook-weight";

/// The field manager that holds what goes from us to others, or from others to us. Nobody's edits bear its name.
pub const HANDOVER_MANAGER: &str = "moorline-handover";

/// Label on every object of an installation of Moorline itself, and its value.
pub const PART_OF_LABEL: (&str, &str) = ("app.kubernetes.io/part-of", "moorline");

/// Label on a Sync: which instance of the daemon serves it; none for the one without a name.
pub const INSTANCE_LABEL: &str = "moorline.dev/instance";

/// Annotation on a Lease: the repository that is followed without a Sync.
pub const SOURCE_ANNOTATION: &str = "moorline.dev/source";

/// Annotation on a Lease: the folder in it.
pub const PATH_ANNOTATION: &str = "moorline.dev/path";

/// Annotation on a Lease: where what is followed without a Sync may own objects.
pub const SCOPE_ANNOTATION: &str = "moorline.dev/scope";
/// On the Lease of a run without a Sync: the revision that rendered completely last, as `status.revision.held` has it.
pub const HELD_ANNOTATION: &str = "moorline.dev/held";

/// Label on a Secret that holds the keys of a daemon or of a run: no Sync may read it, set its data or delete it.
pub const KEYS_LABEL: &str = "moorline.dev/keys";

/// Annotation on a Secret with the login of repositories: the hosts that may have it, between commas.
pub const HOSTS_ANNOTATION: &str = "moorline.dev/hosts";

/// Prefix of the annotation of a kustomization with the digest of a chart. The chart's name, a dash and its version follow.
pub const CHART_DIGEST_PREFIX: &str = "moorline.dev/digest.";

/// What the keys of all our labels and annotations begin with.
pub const KEY_PREFIX: &str = "moorline.dev/";

/// Every annotation with [`KEY_PREFIX`] that has a meaning.
pub const ANNOTATIONS: [&str; 20] = [
    ADOPTED_FROM_ANNOTATION,
    APPLY_ANNOTATION,
    APPROVE_ANNOTATION,
    BEFORE_ADOPTION_ANNOTATION,
    DELETION_ANNOTATION,
    HOOK_ANNOTATION,
    HOOK_DELETE_ANNOTATION,
    HOSTS_ANNOTATION,
    ID_ANNOTATION,
    MOVES_TO_ANNOTATION,
    PAUSE_ANNOTATION,
    PROOF_ANNOTATION,
    PRUNE_ANNOTATION,
    RECONCILE_ANNOTATION,
    RECREATE_ANNOTATION,
    REQUEST_ANNOTATION,
    SPEC_HASH_ANNOTATION,
    SUBSTITUTE_ANNOTATION,
    VERSION_ANNOTATION,
    WAVE_ANNOTATION,
];

/// Every field manager of Moorline begins with this.
pub const MANAGER_PREFIX: &str = "moorline/";

/// The most characters that the value of a label may have.
const MAX_LABEL_VALUE: usize = 63;

/// A Sync by namespace and name: the owner of objects.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SyncName {
    /// The namespace of the Sync.
    pub namespace: Box<str>,
    /// The name of the Sync.
    pub name: Box<str>,
}

impl SyncName {
    /// A Sync's name from its parts.
    pub fn new(namespace: &str, name: &str) -> Self {
        Self { namespace: namespace.into(), name: name.into() }
    }

    /// The field manager under which the objects of this Sync are applied. One for each Sync, so that two
    /// Syncs never overwrite each other silently.
    pub fn manager(&self) -> String {
        format!("{MANAGER_PREFIX}{}/{}", self.namespace, self.name)
    }

    /// The value of [`SYNC_LABEL`]: `<namespace>.<name>`, or `h-` and 40 hex digits where that is too long.
    pub fn label(&self) -> String {
        use sha2::{Digest, Sha256};
        let plain = format!("{}.{}", self.namespace, self.name);
        if plain.len() <= MAX_LABEL_VALUE {
            return plain;
        }
        let digest = Sha256::digest(plain.as_bytes());
        digest[..20].iter().fold("h-".to_owned(), |text, byte| text + &format!("{byte:02x}"))
    }

    /// The value of [`ID_ANNOTATION`] for an object, given the text of its id.
    pub fn identity(&self, object_id: &str) -> String {
        format!("{}/{}|{object_id}", self.namespace, self.name)
    }
}

impl std::fmt::Display for SyncName {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}/{}", self.namespace, self.name)
    }
}

/// The default of a switch that is on.
fn yes() -> bool {
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_name_is_hashed_for_the_label_only() {
        let short = SyncName::new("shop", "web");
        assert_eq!(short.label(), "shop.web");
        assert_eq!(short.manager(), "moorline/shop/web");
        assert_eq!(short.identity("/Service|shop/web"), "shop/web|/Service|shop/web");
        let long = SyncName::new(&"n".repeat(63), "web");
        assert_eq!(long.label().len(), 42);
        assert!(long.label().starts_with("h-"));
        assert!(long.identity("/Service|a/b").starts_with(&"n".repeat(63)));
    }
}
