//! Keeps a revision from being applied while a change window is closed.
//!
//! In: a revision with its rendered objects, the windows, and the override of a person.
//! Out: nothing if it may be applied; else an error, and what is held in the memory of the Sync.
//!
//! Repair of the applied revision goes on, and so does a roll-out that began before the window
//! closed: its revision is in the status. A rollback or a hold passes a closed window only if the
//! revision renders what the history says was applied then, or what is applied now. An override is
//! in the status before the first write of its revision.

use std::sync::Arc;

use super::object_claims::revision_record;
use super::prepare::PreparedRevision;
use super::refused_commit::{forget_refusal, hold_for_window};
use super::revision_gate::{ask, keyless, rendered, usage};
use super::{Aim, ReconcileContext, ReconcileResult};
use crate::api::{
    HeldByWindow, OVERRIDE_ANNOTATION, OverriddenRevision, SpecHash, SyncStatus, WindowOverride,
};
use crate::cluster::WatchRequirements;
use crate::controller::memory::SyncMemory;
use crate::controller::reconcile::inventory_scope::unwritten;
use crate::controller::status::approvals::applied_before;
use crate::controller::status::overrides::{labels, last_override, record_override};
use crate::desired::{HashMatch, SetDigest};
use crate::plan::{RenderedRevision, RevisionRequest};
use crate::report::{ErrorCause, ReconcileError, RevisionUse, covering_approval};
use crate::windows::{ClosedWindow, WindowState};

/// Checks that the windows let a revision be applied.
///
/// # Errors
///
/// Returns `WindowClosed` while a window holds it.
pub(super) async fn check_windows(
    inputs: &ReconcileContext,
    memory: &mut SyncMemory,
    prepared: &PreparedRevision,
    need: &WatchRequirements,
    report: &mut ReconcileResult,
) -> Result<(), ReconcileError> {
    let Some(recorder) = inputs.resource_recorder.as_ref() else { return Ok(()) };
    let revision = inputs.revision.to_string();
    let rendered = rendered(inputs, &revision, prepared);
    let is_free = is_known(&recorder.status(), rendered, usage(inputs), inputs.has_new_values);
    let state = match is_free {
        true => WindowState::Open,
        false => {
            let cluster = &inputs.context.cluster;
            inputs.context.windows.state_of(cluster, &inputs.owner, &labels(recorder)).await
        }
    };
    let WindowState::Closed(closed) = state else {
        if memory.refused_commit.as_ref().is_some_and(|it| it.window.is_some()) {
            forget_refusal(inputs, memory);
        }
        return Ok(());
    };
    if matches!(inputs.aim, Aim::Keep { .. }) {
        let message = format!("what {revision} renders to now was not applied, and is {closed}");
        return Err(window_closed(message));
    }
    // Only with everything observed does the plan name all deletions.
    let blind = inputs.cluster().ensure_watches(&inputs.owner, need, inputs.valid_spec().timeout).await;
    let Some(request) = ask(inputs, rendered, prepared) else { return Err(keyless()) };
    let given = inputs.order.window_override.as_ref();
    let digest = prepared.digest.recorded_hash().map(|digest| digest.to_string());
    match given.map(|given| judge_override(given, &request, digest, &recorder.status())) {
        Some(Ok(taken)) if blind.is_empty() => {
            let both = (taken.clone(), revision_record(inputs));
            if !record_override(recorder, both, inputs.valid_spec().timeout).await {
                return Err(unwritten());
            }
            report.overridden = Some(taken);
            forget_refusal(inputs, memory);
            Ok(())
        }
        judged => {
            let note = judged.and_then(Result::err).map(|note| format!("; {note}")).unwrap_or_default();
            let error = window_closed(format!("{revision} is {closed}{note}"));
            hold_for_window(inputs, memory, error.clone(), Arc::new(held(&request, &closed)));
            Err(error)
        }
    }
}

/// Returns the override that a person gave for the revision of a reconcile as it renders now.
pub(super) fn override_of_revision(
    inputs: &ReconcileContext,
    prepared: &PreparedRevision,
) -> Option<OverriddenRevision> {
    let known = last_override(inputs.resource_recorder.as_ref()?)?;
    is_about(&known, &inputs.revision.to_string(), &prepared.digest).then_some(known)
}

/// True if an override is about these objects of a revision.
fn is_about(known: &OverriddenRevision, revision: &str, digest: &SetDigest) -> bool {
    let recorded = known.digest.as_deref().and_then(SpecHash::parse);
    known.revision == revision && recorded.is_some_and(|it| digest.matches(&it) == HashMatch::Same)
}

/// True if a revision brings nothing new to the cluster: it was begun or applied as it renders now,
/// or it is an earlier one that renders the objects of that time. An unknown digest is new.
fn is_known(status: &SyncStatus, what: RenderedRevision<'_>, why: RevisionUse, has_new_values: bool) -> bool {
    let applied = applied_before(status);
    let matches = |digest: &Option<String>| {
        let recorded = digest.as_deref().and_then(SpecHash::parse)?;
        Some(what.digest.matches(&recorded))
    };
    match why {
        RevisionUse::Newest => covering_approval(&applied, what, why).is_some(),
        RevisionUse::Held => {
            let same = applied.iter().find(|known| known.revision == what.revision);
            match same.and_then(|known| matches(&known.digest)) {
                Some(HashMatch::Same) => true,
                Some(HashMatch::Other) => false,
                Some(HashMatch::KeyLost) | None => !has_new_values,
            }
        }
        RevisionUse::WayBack => {
            let entries = status.history.iter().filter(|entry| entry.revision == what.revision);
            let is_entry = entries.into_iter().any(|entry| matches(&entry.digest) == Some(HashMatch::Same));
            is_entry || covering_approval(applied.get(..1).unwrap_or_default(), what, why).is_some()
        }
    }
}

/// Returns the override, or the reason why it does not count.
fn judge_override(
    given: &WindowOverride,
    request: &RevisionRequest,
    digest: Option<String>,
    status: &SyncStatus,
) -> Result<OverriddenRevision, String> {
    if given.hash != request.hash {
        return Err(format!("{OVERRIDE_ANNOTATION} is about another plan"));
    }
    let Some(by) = given.by.clone() else {
        return Err(format!("{OVERRIDE_ANNOTATION}-by names no person for this plan"));
    };
    if given.reason.is_empty() {
        return Err(format!("{OVERRIDE_ANNOTATION}-reason is missing"));
    }
    let (revision, hash, reason) = (request.revision.clone(), request.hash.clone(), given.reason.clone());
    let taken = OverriddenRevision { revision, hash, by, reason, digest };
    match is_spent(&taken, status) {
        true => Err(format!(
            "{OVERRIDE_ANNOTATION} was used before another revision was applied; it counts again with another reason"
        )),
        false => Ok(taken),
    }
}

/// True if another revision was applied or held since this override was used. The annotation stays,
/// and a person who may only release a hold must not apply the revision again with it.
fn is_spent(taken: &OverriddenRevision, status: &SyncStatus) -> bool {
    let Some(revisions) = &status.revision else { return false };
    let is_same = |known: &OverriddenRevision| {
        (&known.hash, &known.by, &known.reason) == (&taken.hash, &taken.by, &taken.reason)
    };
    let is_held = revisions.held.as_ref().is_some_and(|held| held.revision == taken.revision);
    revisions.overridden.as_ref().is_some_and(is_same) && !is_held
}

fn held(request: &RevisionRequest, closed: &ClosedWindow) -> HeldByWindow {
    let number = |count: usize| i64::try_from(count).unwrap_or(i64::MAX);
    HeldByWindow {
        revision: request.revision.clone(),
        hash: request.hash.clone(),
        by: closed.by.clone(),
        until: closed.until.clone(),
        created: number(request.created),
        changed: number(request.changed),
        pruned: number(request.pruned),
        plan: request.lines.clone(),
    }
}

fn window_closed(message: String) -> ReconcileError {
    ReconcileError { cause: ErrorCause::WindowClosed, message, problems: Vec::new(), permanent: true }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::desired::{DesiredSet, Scopes, build_desired_set};
    use crate::render::{RenderOptions, Rendered, render};
    use crate::tree::FileTree;

    fn set(name: &str) -> DesiredSet {
        let text = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}}).to_string();
        let rendered = render(&FileTree::from_texts([("a.json", &*text)]), &RenderOptions::default());
        let Rendered::Complete(complete) = rendered else { panic!("the manifest is sound") };
        build_desired_set(complete, "shop", &Scopes::builtin()).unwrap()
    }

    #[test]
    fn what_was_applied_passes_and_everything_else_is_held() {
        use RevisionUse::{Held, Newest, WayBack};
        let (old, new, older) = (set("old"), set("new"), set("older"));
        let digest = old.digest().recorded_hash().map(|digest| digest.to_string());
        let held = json!({"revision": "main@2", "source": "source", "spec": "spec"});
        let revision =
            json!({"applied": "main@2", "healthy": "main@2", "held": held, "appliedDigest": digest});
        let entry = |revision: &str, digest: &Option<String>| json!({"revision": revision, "result": "Applied", "digest": digest, "time": "2026-11-27T12:00:00Z"});
        let past = older.digest().recorded_hash().map(|digest| digest.to_string());
        let history = json!([entry("main@2", &digest), entry("main@1", &past), entry("main@0", &None)]);
        let status: SyncStatus =
            serde_json::from_value(json!({"revision": revision, "history": history})).unwrap();
        let mut with_digest = held.clone();
        with_digest["digest"] = json!(digest);
        let begun = json!({"applied": "main@1", "attempted": "main@2", "held": held});
        let partly = json!({"applied": "main@1", "attempted": "main@3", "held": with_digest});
        let partly: SyncStatus = serde_json::from_value(json!({"revision": partly})).unwrap();
        let begun: SyncStatus = serde_json::from_value(json!({"revision": begun})).unwrap();
        let none = SyncStatus::default();
        for (what, status, revision, set, why, has_new_values, expect) in [
            ("the first revision", &none, "main@1", &old, Newest, false, false),
            ("a new revision", &status, "main@3", &new, Newest, false, false),
            ("a revision that changes nothing", &status, "main@3", &old, Newest, false, true),
            ("the applied revision", &status, "main@2", &old, Newest, false, true),
            ("the applied revision with another spec", &status, "main@2", &new, Newest, false, false),
            ("a roll-out that has begun", &begun, "main@2", &new, Newest, false, true),
            ("repair", &status, "main@2", &old, Held, false, true),
            ("repair with other values", &status, "main@2", &new, Held, false, false),
            ("repair without a record", &begun, "main@2", &new, Held, false, true),
            ("new values without a record", &begun, "main@2", &new, Held, true, false),
            ("repair of a revision that is applied in part", &partly, "main@2", &old, Held, true, true),
            ("its new values while another revision is held", &partly, "main@2", &new, Held, true, false),
            ("other values of a roll-out that has begun", &partly, "main@2", &new, Newest, false, false),
            ("a rollback to what was applied", &status, "main@1", &older, WayBack, false, true),
            ("a rollback with another spec", &status, "main@1", &new, WayBack, false, false),
            ("a rollback without a record", &status, "main@0", &older, WayBack, false, false),
            ("a rollback to a revision that changes nothing", &status, "main@3", &old, WayBack, false, true),
            ("a rollback to new objects", &status, "main@3", &new, WayBack, false, false),
            ("the applied revision with another spec, held", &status, "main@2", &new, WayBack, false, false),
        ] {
            let digest = set.digest();
            let rendered = RenderedRevision { revision, source: "source", spec: "spec", digest: &digest };
            assert_eq!(is_known(status, rendered, why, has_new_values), expect, "{what}");
        }
    }

    #[test]
    fn an_override_is_of_one_plan_with_a_name_and_a_reason() {
        let request = RevisionRequest {
            revision: "main@3".to_owned(),
            hash: "5c7d".to_owned(),
            created: 0,
            changed: 1,
            pruned: 0,
            lines: Vec::new(),
        };
        for (hash, by, reason, expect) in [
            ("5c7d", Some("ada"), "CVE", Ok("ada")),
            ("5c7e", Some("ada"), "CVE", Err("another plan")),
            ("5c7d", None, "CVE", Err("names no person")),
            ("5c7d", Some("ada"), "", Err("reason is missing")),
        ] {
            let given = WindowOverride {
                hash: hash.to_owned(),
                by: by.map(str::to_owned),
                reason: reason.to_owned(),
            };
            match (judge_override(&given, &request, None, &SyncStatus::default()), expect) {
                (Ok(taken), Ok(by)) => assert_eq!((&*taken.by, &*taken.revision), (by, "main@3")),
                (Err(said), Err(part)) => assert!(said.contains(part), "{said}"),
                (judged, _) => panic!("{judged:?}"),
            }
        }
    }

    #[test]
    fn an_override_is_spent_once_another_revision_is_held_and_is_about_its_own_objects() {
        let (old, new) = (set("old"), set("new"));
        let digest = new.digest().recorded_hash().map(|digest| digest.to_string());
        let of = |hash: &str, reason: &str| OverriddenRevision {
            revision: "main@3".to_owned(),
            hash: hash.to_owned(),
            by: "ada".to_owned(),
            reason: reason.to_owned(),
            digest: digest.clone(),
        };
        for (what, held, given, expect) in [
            ("its own roll-out", "main@3", of("5c7d", "CVE"), false),
            ("after a hold at an earlier one", "main@2", of("5c7d", "CVE"), true),
            ("given once more", "main@2", of("5c7d", "CVE, again"), false),
            ("another plan", "main@2", of("5c7e", "CVE"), false),
            (
                "by another person",
                "main@2",
                OverriddenRevision { by: "bob".to_owned(), ..of("5c7d", "CVE") },
                false,
            ),
        ] {
            let held = json!({"revision": held, "source": "source", "spec": "spec"});
            let revision = json!({"held": held, "overridden": of("5c7d", "CVE")});
            let status = serde_json::from_value(json!({"revision": revision})).unwrap();
            assert_eq!(is_spent(&given, &status), expect, "{what}");
        }
        assert!(is_about(&of("5c7d", "CVE"), "main@3", &new.digest()));
        assert!(!is_about(&of("5c7d", "CVE"), "main@3", &old.digest()), "another spec in an open window");
        assert!(!is_about(&of("5c7d", "CVE"), "main@2", &new.digest()));
    }
}
