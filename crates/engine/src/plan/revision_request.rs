//! The plan of a revision that a person has to approve.
//!
//! In: a plan, and the rendered objects by their digest.
//! Out: [`RevisionRequest`]: the changes, and a hash that identifies them. [`RevisionChanges`] are
//! the changes alone.
//!
//! The hash covers its own kind, the Sync, the revision, every rendered object and every deletion.
//! Drift that is repaired meanwhile does not change it.

use std::collections::BTreeSet;

use sha2::{Digest, Sha256};

use super::{Action, Change, Plan};
use crate::desired::SetDigest;
use moorline_core::object::ObjectId;

/// Number of hex digits of the hash: more than that of a prune has, so that neither is the other.
const REQUEST_DIGITS: usize = 32;

/// Most lines of a plan in the status.
const MAX_LINES: usize = 20;

/// A revision as its render identifies it.
#[derive(Debug, Clone, Copy)]
pub struct RenderedRevision<'a> {
    /// The revision, as `main@1f0c...`, with its chart and its mounts.
    pub revision: &'a str,
    /// A hash of the URL and the ref.
    pub source: &'a str,
    /// A hash of the fields of the spec that change the rendered objects.
    pub spec: &'a str,
    /// Digest of its objects.
    pub digest: &'a SetDigest,
}

/// A revision that waits for approval.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RevisionRequest {
    /// The revision.
    pub revision: String,
    /// The value of `moorline.dev/approve` that approves it.
    pub hash: String,
    /// The number of objects that are created.
    pub created: usize,
    /// The number of objects that are changed.
    pub changed: usize,
    /// The number of objects that are deleted, with those whose deletion needs its own approval.
    pub pruned: usize,
    /// The first lines of the plan.
    pub lines: Vec<String>,
}

/// Changes that a revision makes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RevisionChanges {
    /// The number of objects that are created.
    pub created: usize,
    /// The number of objects that are changed.
    pub changed: usize,
    /// The number of objects that are deleted, with those whose deletion needs an approval.
    pub pruned: usize,
    /// The first lines of the plan.
    pub lines: Vec<String>,
}

impl RevisionChanges {
    /// Returns the changes of a plan, with at most this number of lines.
    pub fn of(plan: &Plan, max_lines: usize) -> Self {
        let pruned = pruned(plan);
        let steps = plan.steps().filter_map(|step| Some((&step.id, changing_verb(&step.action)?)));
        let changes: Vec<(&ObjectId, &'static str)> =
            steps.chain(pruned.iter().map(|id| (*id, "prune"))).collect();
        let count = |fits: fn(&str) -> bool| changes.iter().filter(|(_, verb)| fits(verb)).count();
        let mut lines: Vec<String> =
            changes.iter().take(max_lines).map(|(id, verb)| format!("{verb} {id}")).collect();
        if changes.len() > max_lines {
            lines.push(format!("and {} more", changes.len() - max_lines));
        }
        Self {
            created: count(|verb| verb == "create"),
            changed: count(|verb| verb == "adopt" || verb == "update"),
            pruned: pruned.len(),
            lines,
        }
    }
}

/// Returns the question about a revision; none without a hash of its objects that can be recorded.
pub fn request_revision(uid: &str, what: RenderedRevision<'_>, plan: &Plan) -> Option<RevisionRequest> {
    let digest = what.digest.recorded_hash()?;
    let mut hash = Sha256::new();
    let parts = ["Revision", uid, what.revision, what.source, what.spec, &digest.to_string()];
    for part in parts.into_iter().chain(pruned(plan).iter().map(|id| id.as_str())) {
        // With its length in front, no part can be read as two.
        hash.update(format!("{}:{part}\n", part.len()));
    }
    let hash: String = hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect();
    let RevisionChanges { created, changed, pruned, lines } = RevisionChanges::of(plan, MAX_LINES);
    Some(RevisionRequest {
        revision: what.revision.to_owned(),
        hash: hash[..REQUEST_DIGITS].to_owned(),
        created,
        changed,
        pruned,
        lines,
    })
}

/// Returns the objects that are deleted, with those whose deletion needs an approval.
fn pruned(plan: &Plan) -> BTreeSet<&ObjectId> {
    let steps = plan.steps().filter(|step| is_deletion(&step.action)).map(|step| &step.id);
    steps.chain(plan.pending_prunes()).collect()
}

/// Returns the verb of a step that the revision causes; none for repairs and deletions.
fn changing_verb(action: &Action) -> Option<&'static str> {
    match action {
        Action::Create | Action::ReplaceHookRuns { .. } => Some("create"),
        Action::Adopt { .. } => Some("adopt"),
        Action::Update(Change::Committed | Change::RerunHook) => Some("update"),
        Action::Update(
            Change::Drifted(_) | Change::EntryLost | Change::Unverified | Change::MaybeDrifted,
        )
        | Action::HandOver { .. }
        | Action::Prune { .. } => None,
    }
}

/// True for a step that takes the object away from this Sync.
fn is_deletion(action: &Action) -> bool {
    matches!(action, Action::Prune { .. } | Action::HandOver { .. })
}

#[cfg(test)]
mod tests {
    use super::super::plan;
    use super::*;
    use crate::desired::DesiredSet;
    use crate::observed::Observed;
    use crate::plan::test_fixtures::{id, manifest, seen, there, wanted};
    use crate::plan::{Policy, PruneBudget};

    const UID: &str = "uid-1";

    fn rendered<'a>(revision: &'a str, spec: &'a str, digest: &'a SetDigest) -> RenderedRevision<'a> {
        RenderedRevision { revision, source: "source", spec, digest }
    }

    fn set(names: &[&str]) -> DesiredSet {
        wanted(&names.iter().map(|name| manifest(&format!("/ConfigMap|shop/{name}"), 0)).collect::<Vec<_>>())
    }

    #[test]
    fn the_question_names_what_the_revision_changes() {
        let desired = set(&["a", "b", "new"]);
        let mut observed =
            there(["/ConfigMap|shop/b", "/ConfigMap|shop/old", "/PersistentVolumeClaim|shop/data"]);
        let kept = id("/ConfigMap|shop/a");
        let recorded_hash = desired.get(&kept).unwrap().recorded_hash();
        observed.insert(kept.clone(), Observed { recorded_hash, ..seen(&kept) });
        let digest = desired.digest();
        let ask = |policy: &Policy| {
            request_revision(UID, rendered("main@1", "s", &digest), &plan(&desired, &observed, policy))
                .unwrap()
        };
        let asked = ask(&Policy::default());
        assert_eq!((asked.created, asked.changed, asked.pruned), (1, 1, 2), "{asked:?}");
        assert_eq!(
            asked.lines,
            [
                "update ConfigMap shop/b",
                "create ConfigMap shop/new",
                "prune ConfigMap shop/old",
                "prune PersistentVolumeClaim shop/data"
            ]
        );
        let changes = RevisionChanges::of(&plan(&desired, &observed, &Policy::default()), 1);
        assert_eq!((changes.created, changes.changed, changes.pruned), (1, 1, 2));
        assert_eq!(changes.lines, ["update ConfigMap shop/b", "and 3 more"]);
        // The budget of prunes decides nothing here: a prune over budget asks for itself later.
        let strict = PruneBudget { count: Some(0), percent: None };
        assert_eq!(ask(&Policy { budget: strict, ..Policy::default() }).hash, asked.hash);
        assert_eq!(asked.hash.len(), REQUEST_DIGITS);
    }

    #[test]
    fn a_hash_is_of_one_sync_one_revision_and_one_plan() {
        let (desired, other) = (set(&["a"]), set(&["a", "b"]));
        let (digest, digest_of_other) = (desired.digest(), other.digest());
        let nothing = plan(&desired, &there([]), &Policy::default());
        let prunes = plan(&desired, &there(["/ConfigMap|shop/old"]), &Policy::default());
        let hash = |uid: &str, revision: &str, spec: &str, digest: &SetDigest, plan: &Plan| {
            request_revision(uid, rendered(revision, spec, digest), plan).unwrap().hash
        };
        let first = hash(UID, "main@1", "s", &digest, &nothing);
        let same = plan(&desired, &there(["/ConfigMap|shop/a"]), &Policy::default());
        assert_eq!(hash(UID, "main@1", "s", &digest, &same), first, "what is there already changes nothing");
        for (what, changed) in [
            ("another Sync", hash("uid-2", "main@1", "s", &digest, &nothing)),
            ("another commit", hash(UID, "main@2", "s", &digest, &nothing)),
            ("another spec", hash(UID, "main@1", "t", &digest, &nothing)),
            ("other objects", hash(UID, "main@1", "s", &digest_of_other, &nothing)),
            ("a deletion", hash(UID, "main@1", "s", &digest, &prunes)),
            ("parts that are joined", hash(UID, "main@1s", "", &digest, &nothing)),
        ] {
            assert_ne!(changed, first, "{what}");
        }
        // The hash of a prune approves no revision, and the other way round.
        let strict = Policy { budget: PruneBudget { count: Some(0), percent: None }, ..Policy::default() };
        let asked = plan(&desired, &there(["/ConfigMap|shop/old"]), &strict).approval.unwrap();
        let revision = hash(UID, "main@1", "s", &digest, &prunes);
        assert_ne!(asked.len(), revision.len());
        let given = Policy { approved: Some(revision), ..strict };
        assert!(plan(&desired, &there(["/ConfigMap|shop/old"]), &given).approval.is_some());
    }
}
