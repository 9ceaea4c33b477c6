//! Reports or removes extra fields that people added to objects by hand (`spec.drift.extraFields`).
//!
//! In: the extra fields that the watches show.
//! Out: one status line for each object, or a JSON patch that removes the fields.
//!
//! Under the rules of server-side apply an extra field is no drift, so an apply cannot remove it. A
//! JSON patch can. It is guarded by the values that were read, and it removes only fields that were
//! set with interactive tools.

use std::collections::BTreeMap;

use serde_json::Value;

use super::field_handover::paths_left_to_others;
use super::{ApplyContext, failed};
use crate::api::ExtraFieldPolicy;
use crate::cluster::ApiError;
use crate::controller::memory::SyncMemory;
use crate::controller::schedule::Uptime;
use crate::controller::spec::ValidatedSpec;
use crate::controller::status::reconcile_result::ReportedExtraFields;
use crate::desired::{DesiredObject, redact_path};
use crate::fields::{FieldPath, FieldSet};
use crate::journal::Reason;
use crate::object::ObjectId;
use crate::observed::{
    Drift, InstallationRole, Observed, Ownership, find_extra_fields, has_field, removal_patch,
};
use crate::plan::{Change, Failure, FailureReason, Outcome};

/// Attempts to remove extra fields of one object while others keep writing to it.
const MAX_REMOVALS: usize = 3;

/// Removes extra fields if the Sync says so; returns those that are only reported.
pub(crate) async fn process_extra_fields(
    work: &ApplyContext<'_>,
    valid_spec: &ValidatedSpec,
    memory: &SyncMemory,
    outcomes: &mut BTreeMap<ObjectId, Outcome>,
) -> Vec<ReportedExtraFields> {
    if valid_spec.extra_fields == ExtraFieldPolicy::Keep {
        return Vec::new();
    }
    let found: Vec<(ObjectId, Observed)> = work.cluster.read_observed(work.owner, |observed| {
        let added = observed
            .iter()
            .filter(|(_, seen)| !seen.extra_fields.is_empty() && seen.ownership == Ownership::Ours);
        added.filter_map(|(id, seen)| Some((id.clone(), only_added(work, id, seen)?))).collect()
    });
    let mut reports = Vec::new();
    for (id, seen) in found {
        let remove = valid_spec.extra_fields == ExtraFieldPolicy::Remove
            && !valid_spec.suspend
            && !work.stop.is_cancelled();
        if remove && may_remove(work, memory, &id, &seen) {
            let outcome = remove_fields(work, &id)
                .await
                .unwrap_or_else(|failure| Some(failed(&failure, work.desired.is_redacted(&id, None))));
            outcomes.extend(outcome.map(|outcome| (id, outcome)));
        } else {
            let tainted = work.desired.is_tainted(&id);
            reports.push((id, text(&seen, tainted)));
        }
    }
    reports
}

/// Returns the object with the extra fields that Git does not set; `None` if none are left. A
/// manager that took over a field of ours has added nothing.
fn only_added(work: &ApplyContext<'_>, id: &ObjectId, seen: &Observed) -> Option<Observed> {
    let paths: Vec<FieldPath> = seen.extra_fields.iter().map(|extra| extra.path.clone()).collect();
    let added = added(work.desired.get(id)?, &paths);
    let extras: Box<[_]> =
        seen.extra_fields.iter().filter(|extra| added.contains(&extra.path)).cloned().collect();
    (!extras.is_empty()).then(|| Observed { extra_fields: extras, ..seen.clone() })
}

/// Returns true if extra fields may be removed now: drift and failed writes are repaired first.
fn may_remove(work: &ApplyContext<'_>, memory: &SyncMemory, id: &ObjectId, seen: &Observed) -> bool {
    let now: Uptime = work.context.now();
    let left_alone = |it: &DesiredObject| it.annotations.reconcile_disabled || it.annotations.apply_once;
    let disabled = work.desired.get(id).is_some_and(left_alone);
    let paused = seen
        .pause_until
        .is_some_and(|until| until > crate::controller::reconcile::policy_inputs::wall_clock());
    // Key rotation adds keys that Git does not have.
    let is_keys = seen.installation_role == InstallationRole::Keys
        || work.cluster.notary().key_secret().as_ref() == Some(id);
    seen.verification.is_sound()
        && !is_keys
        && !(seen.deleting || seen.reconcile_disabled || disabled || paused)
        && memory.retries.get(id).is_none_or(|known| !known.waits(now))
}

async fn remove_fields(work: &ApplyContext<'_>, id: &ObjectId) -> Result<Option<Outcome>, ApiError> {
    for _ in 0..MAX_REMOVALS {
        match remove_once(work, id).await {
            // A guard of the patch did not hold: the object changed after the patch was
            // computed.
            Err(ApiError::Refused(refusal)) if refusal.code == 422 && refusal.causes.is_empty() => {}
            done => return done,
        }
    }
    let message =
        "another client keeps changing the object, so the extra fields could not be removed".to_owned();
    Ok(Some(Outcome::Failed(Failure { reason: FailureReason::Conflict, message, manifest: false })))
}

async fn remove_once(work: &ApplyContext<'_>, id: &ObjectId) -> Result<Option<Outcome>, ApiError> {
    let Some(live) = work.cluster.objects().read_whole(id, None).await? else { return Ok(None) };
    let metadata = live.body.get("metadata").and_then(Value::as_object);
    let (Some(metadata), Some(wanted)) = (metadata, work.desired.get(id)) else { return Ok(None) };
    let found = find_extra_fields(metadata, &work.owner.manager(), None);
    let added = added(wanted, &found.iter().map(|(_, path)| path.clone()).collect::<Vec<_>>());
    let found = found.into_iter().filter(|(_, path)| added.contains(path));
    let (managers, paths): (Vec<Box<str>>, Vec<_>) = found.unzip();
    let Some(patch) = removal_patch(&live.body, &paths) else { return Ok(None) };
    let cluster = work.cluster.for_reason(Reason::DriftRepaired);
    cluster.objects().patch(id, None, work.owner, &patch).await?;
    let fields = paths.iter().map(ToString::to_string).collect();
    let manager = managers.first().map(ToString::to_string);
    let drift = Drift { fields, manager, time: None };
    Ok(Some(Outcome::Updated(Change::Drifted(Box::new(drift)))))
}

/// Returns the paths that are true additions: Git does not set them and they are not ignored.
fn added(wanted: &DesiredObject, paths: &[FieldPath]) -> Vec<FieldPath> {
    let body = wanted.body();
    let left = paths_left_to_others(wanted, &FieldSet::from_paths(paths), &[]);
    paths.iter().filter(|path| !has_field(&body, path) && !left.contains(path)).cloned().collect()
}

fn text(seen: &Observed, tainted: bool) -> Box<str> {
    let one = |extra: &crate::observed::ExtraField| {
        let path = extra.path.to_string();
        let path = if tainted { redact_path(&path).into_owned() } else { path };
        format!("{} added {path}", extra.manager)
    };
    let all: Vec<String> = seen.extra_fields.iter().map(one).collect();
    format!("{}, which is not in Git", all.join(", ")).into()
}
