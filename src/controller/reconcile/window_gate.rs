//! Keeps a revision from being applied while a change window is closed.
//!
//! In: a revision with its rendered objects, the windows, and the override of a person.
//! Out: nothing if it may be applied; else an error, and what is held in the memory of the Sync.
//!
//! Repair of the applied revision goes on, and so does a roll-out that began before the edge: its
//! revision is in the status. The way back to an earlier revision is always open. An override is in
//! the status before the first write of its revision.

use std::sync::Arc;

use super::prepare::PreparedRevision;
use super::refused_commit::{forget_refusal, hold_for_window};
use super::revision_gate::{ask, keyless, rendered, usage};
use super::{Aim, ReconcileContext, ReconcileResult};
use crate::api::{
    HeldByWindow, OVERRIDE_ANNOTATION, OverriddenRevision, Reason, SpecHash, SyncStatus, WindowOverride,
};
use crate::cluster::WatchRequirements;
use crate::controller::memory::SyncMemory;
use crate::controller::reconcile::inventory_scope::unwritten;
use crate::controller::status::approvals::applied_before;
use crate::controller::status::overrides::{labels, last_override, record_override};
use crate::desired::HashMatch;
use crate::plan::{RenderedRevision, RevisionRequest};
use crate::report::{ErrorCause, ReconcileError, RevisionUse, covering_approval};
use crate::windows::{ClosedWindow, WindowState};

/// Checks that the windows let a revision be applied.
///
/// # Errors
///
/// Returns `WindowClosed` while a window holds it.
pub(super) async fn check_windows(
    inputs: &ReconcileContext<'_>,
    memory: &mut SyncMemory,
    prepared: &PreparedRevision,
    need: &WatchRequirements,
    report: &mut ReconcileResult,
) -> Result<(), ReconcileError> {
    let Some(recorder) = inputs.resource_recorder else { return Ok(()) };
    let revision = inputs.revision.to_string();
    let rendered = rendered(inputs, &revision, prepared);
    let is_free = is_known(&recorder.status(), rendered, usage(inputs), inputs.is_chosen);
    let state = match is_free {
        true => WindowState::Open,
        false => {
            let cluster = &inputs.context.cluster;
            inputs.context.windows.state_of(cluster, inputs.owner, &labels(recorder)).await
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
    let blind = inputs.cluster.ensure_watches(inputs.owner, need, inputs.valid_spec.timeout).await;
    let Some(request) = ask(inputs, rendered, prepared) else { return Err(keyless()) };
    let given = inputs.window_override;
    match given.map(|given| judge_override(given, &request)) {
        Some(Ok(taken)) if blind.is_empty() => {
            if !record_override(recorder, taken.clone(), inputs.valid_spec.timeout).await {
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

/// Returns the override that a person gave for the revision of a reconcile.
pub(super) fn override_of_revision(inputs: &ReconcileContext<'_>) -> Option<OverriddenRevision> {
    let known = last_override(inputs.resource_recorder?)?;
    (known.revision == inputs.revision.to_string()).then_some(known)
}

/// True if a revision is no news to the cluster: it was applied as it renders now, or it is an
/// earlier one to which a person or a rollback goes back.
fn is_known(status: &SyncStatus, what: RenderedRevision<'_>, why: RevisionUse, is_chosen: bool) -> bool {
    let applied = applied_before(status);
    let is_other = |digest: &Option<String>| {
        let recorded = digest.as_deref().and_then(SpecHash::parse);
        recorded.is_some_and(|recorded| what.digest.matches(&recorded) == HashMatch::Other)
    };
    let same = applied.iter().find(|known| known.revision == what.revision);
    let is_as_applied = same.is_none_or(|known| !is_other(&known.digest));
    match why {
        RevisionUse::Newest => covering_approval(&applied, what, why).is_some(),
        RevisionUse::Held => is_as_applied,
        RevisionUse::WayBack if !is_chosen => true,
        RevisionUse::WayBack => match same {
            Some(_) => is_as_applied,
            None => status.history.iter().any(|it| it.revision == what.revision && was_applied(&it.result)),
        },
    }
}

/// True if an entry of the history is about a revision whose objects were applied.
fn was_applied(result: &str) -> bool {
    let result = Reason::parse(result);
    matches!(
        result,
        Some(
            Reason::Applied
                | Reason::Degraded
                | Reason::HealthUnknown
                | Reason::PruneHeld
                | Reason::Contested
        )
    )
}

/// Returns the override, or the reason why it does not count.
fn judge_override(given: &WindowOverride, request: &RevisionRequest) -> Result<OverriddenRevision, String> {
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
    Ok(OverriddenRevision { revision, hash, by, reason })
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
    fn what_was_applied_is_no_news_and_everything_else_is() {
        use RevisionUse::{Held, Newest, WayBack};
        let (old, new) = (set("old"), set("new"));
        let digest = old.digest().recorded_hash().map(|digest| digest.to_string());
        let held = json!({"revision": "main@2", "source": "source", "spec": "spec"});
        let revision =
            json!({"applied": "main@2", "healthy": "main@2", "held": held, "appliedDigest": digest});
        let entry = |revision: &str, result: &str| json!({"revision": revision, "result": result, "time": "2026-11-27T12:00:00Z"});
        let history =
            json!([entry("main@2", "Applied"), entry("main@1", "Degraded"), entry("main@0", "SpecInvalid")]);
        let status: SyncStatus =
            serde_json::from_value(json!({"revision": revision, "history": history})).unwrap();
        let begun = json!({"applied": "main@1", "attempted": "main@2", "held": held});
        let begun: SyncStatus = serde_json::from_value(json!({"revision": begun})).unwrap();
        let none = SyncStatus::default();
        for (what, status, revision, set, why, is_chosen, expect) in [
            ("the first revision", &none, "main@1", &old, Newest, false, false),
            ("a new one", &status, "main@3", &new, Newest, false, false),
            ("one that changes nothing", &status, "main@3", &old, Newest, false, true),
            ("the applied one", &status, "main@2", &old, Newest, false, true),
            ("the applied one with another spec", &status, "main@2", &new, Newest, false, false),
            ("a roll-out that has begun", &begun, "main@2", &new, Newest, false, true),
            ("repair", &status, "main@2", &old, Held, false, true),
            ("repair with other values", &status, "main@2", &new, Held, false, false),
            ("repair without a record", &begun, "main@2", &new, Held, false, true),
            ("an automatic rollback", &status, "main@1", &new, WayBack, false, true),
            ("a hold at an applied one", &status, "main@1", &new, WayBack, true, true),
            ("a hold at a refused one", &status, "main@0", &new, WayBack, true, false),
            ("a hold at an unknown one", &status, "main@3", &new, WayBack, true, false),
            ("a hold at the applied one with another spec", &status, "main@2", &new, WayBack, true, false),
        ] {
            let digest = set.digest();
            let rendered = RenderedRevision { revision, source: "source", spec: "spec", digest: &digest };
            assert_eq!(is_known(status, rendered, why, is_chosen), expect, "{what}");
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
            match (judge_override(&given, &request), expect) {
                (Ok(taken), Ok(by)) => assert_eq!((&*taken.by, &*taken.revision), (by, "main@3")),
                (Err(said), Err(part)) => assert!(said.contains(part), "{said}"),
                (judged, _) => panic!("{judged:?}"),
            }
        }
    }
}
