//! Applies one object, and resolves conflicts over its fields as `spec.conflicts` says.
//!
//! In: an object, and the reason for applying it.
//! Out: its outcome.
//!
//! Before the apply, fields that are ignored from now on are handed over with their values
//! (`field_handover.rs`). After it, fields that Git no longer sets are removed if another manager
//! has kept them alive (`removed_fields.rs`).

use serde_json::Value;

use super::ApplyContext;
use super::field_handover::transfer_fields;
use super::list_key_conflict::resolve_list_key_conflict;
use super::managers::own_and_foreign;
use super::recreate::recreate;
use super::removed_fields::clear;
use super::stale_owner::{has_owner_released, is_owner_gone, release_others, syncs_of};
use super::unconvertible_entries::remove_unconvertible_entries;
use crate::api::{self, ConflictPolicy};
use crate::cluster::{ApiError, ApiStatus, ApplyResult, Force, classify_error};
use crate::controller::memory::field_conflicts::YieldedField;
use crate::controller::reconcile::autoscalers::new_scaler;
use crate::desired::DesiredObject;
use crate::fields::{FieldSet, find_by_display_form, find_by_server_form, overlaps, pointer_of};
use crate::object::ObjectId;
use crate::plan::{Change, FailureReason, Hold, Outcome, may_fill_keys};

/// Attempts to apply one object while the owners of its fields keep changing.
const MAX_ROUNDS: usize = 3;

/// Applies an object; `change` is `None` for one that the cache does not have or that is not
/// ours yet.
pub(crate) async fn apply(
    work: &ApplyContext<'_>,
    id: &ObjectId,
    change: Option<&Change>,
    outcome: impl FnOnce(&ApplyResult) -> Outcome,
) -> Result<Outcome, ApiError> {
    let Some(wanted) = work.desired.get(id) else { return Ok(Outcome::Held(Hold::UnknownKind)) };
    if let Some(scaler) = new_scaler(work, wanted) {
        return Ok(Outcome::Held(Hold::WaitsFor(scaler)));
    }
    let marks = match change.is_none() && is_existing_apply_once(work, wanted).await? {
        true => Some(wanted.without_content()),
        false => None,
    };
    let wanted = marks.as_ref().unwrap_or(wanted);
    let force = force(work, change);
    match send_named(work, wanted, force, change).await {
        Ok(applied) => Ok(outcome(&applied)),
        Err(ApiError::Refused(refusal)) if force == Force::No && refusal.code == 409 => {
            match conflict(work, wanted, refusal, change).await {
                Ok((None, applied)) => Ok(outcome(&applied)),
                Ok((Some(managers), _)) => Ok(Outcome::Adopted(managers)),
                Err(UnresolvedConflict::Held(hold)) => Ok(Outcome::Held(hold)),
                Err(UnresolvedConflict::Failed(failure)) => {
                    retry_after_resolving(work, wanted, change, failure, outcome).await
                }
            }
        }
        Err(failure) => retry_after_resolving(work, wanted, change, failure, outcome).await,
    }
}

/// Applies the object once more if the cause of the refusal could be removed: a conflicting list
/// item, or managed fields that the server cannot convert.
async fn retry_after_resolving(
    work: &ApplyContext<'_>,
    wanted: &DesiredObject,
    change: Option<&Change>,
    failure: ApiError,
    outcome: impl FnOnce(&ApplyResult) -> Outcome,
) -> Result<Outcome, ApiError> {
    let is_resolved = resolve_list_key_conflict(work, wanted, &failure, change.is_some()).await?
        || change.is_some() && remove_unconvertible_entries(work, wanted, &failure).await?;
    if !is_resolved {
        return refused(work, wanted, failure).await;
    }
    Ok(outcome(&send(work, wanted, Force::Yes, change, None).await?))
}

/// Decides if fields of other managers are taken at once. Fields that are known to have been
/// ours are. After a start it is not known who changed a field, and a Sync that yields must not
/// find out by force.
fn force(work: &ApplyContext<'_>, change: Option<&Change>) -> Force {
    match (work.conflicts, change) {
        (_, None) => Force::No,
        (ConflictPolicy::Force, Some(_)) => Force::Yes,
        (ConflictPolicy::Yield, Some(Change::Committed | Change::Unverified | Change::MaybeDrifted)) => {
            Force::No
        }
        (ConflictPolicy::Fail, Some(Change::Committed)) => Force::No,
        (ConflictPolicy::Yield | ConflictPolicy::Fail, Some(_)) => Force::Yes,
    }
}

/// Returns true for an object that is applied only once and that another manager has created:
/// it gets our marks, and its values stay.
async fn is_existing_apply_once(work: &ApplyContext<'_>, wanted: &DesiredObject) -> Result<bool, ApiError> {
    // An apply that omits the fields that we own would delete them.
    Ok(wanted.annotations.apply_once && entry(work, wanted).await?.is_some_and(|own| own.is_empty()))
}

/// Creates an object whose first manifest differs from later ones: with the number of replicas
/// in Git, which is released right after, or only once. A Secret is created this way as well,
/// because it may exist with the keys of another daemon. Returns `None` if the object exists
/// already.
pub(crate) async fn create_new(
    work: &ApplyContext<'_>,
    wanted: &DesiredObject,
) -> Result<Option<Outcome>, ApiError> {
    let first = match wanted.created_as.as_deref() {
        Some(first) => first,
        None if wanted.annotations.apply_once || may_fill_keys(wanted) => wanted,
        None => return Ok(None),
    };
    match work.cluster.create(first, work.owner).await {
        Ok(applied) => work.field_conflicts.warned(wanted, &applied.warnings),
        Err(failure) if failure.code() == Some(409) => return Ok(None),
        Err(failure) => return Err(failure),
    }
    if wanted.created_as.is_some() {
        send(work, wanted, Force::Yes, Some(&Change::Committed), None).await?;
    }
    Ok(Some(Outcome::Created))
}

/// Applies our fields of an object to the very object that we know, if its uid is proven.
/// Otherwise, and after a refusal, the cluster has to be the same as before.
async fn send_named(
    work: &ApplyContext<'_>,
    wanted: &DesiredObject,
    force: Force,
    change: Option<&Change>,
) -> Result<ApplyResult, ApiError> {
    let Some(uid) = change.and_then(|_| work.named_uid(&wanted.id)) else {
        work.confirm().await?;
        return send(work, wanted, force, change, None).await;
    };
    match send(work, wanted, force, change, Some(&uid)).await {
        Err(failure) if failure.is_of_other_uid() => {
            // It was deleted and created again, or another cluster has answered.
            work.context.targets.doubt(work.owner, work.cluster);
            work.confirm().await?;
            send(work, wanted, force, change, None).await
        }
        Err(ApiError::Refused(refusal)) => {
            // Requests after a refusal may name no uid.
            work.confirm().await?;
            Err(ApiError::Refused(refusal))
        }
        sent => sent,
    }
}

/// Applies our fields of an object, and cleans up fields that were ours before. With a uid, the
/// apply is the first write, and shows that the cluster is the same as before.
pub(super) async fn send(
    work: &ApplyContext<'_>,
    wanted: &DesiredObject,
    force: Force,
    change: Option<&Change>,
    uid: Option<&str>,
) -> Result<ApplyResult, ApiError> {
    let before = match change {
        Some(Change::Committed) => before(work, wanted).await?,
        // An object with an autoscaler may be ours although the cache does not have it, for
        // example if its label was removed.
        None if wanted.created_as.is_some() => entry(work, wanted).await?.filter(|own| !own.is_empty()),
        _ => None,
    };
    let mut less = work.field_conflicts.yielded(wanted);
    if uid.is_some() && (wanted.ignored.is_some() || !less.is_empty()) {
        // Fields may be transferred first.
        work.confirm().await?;
    }
    if let Some(before) = &before {
        transfer_fields(work, wanted, before, &less).await?;
    }
    let contested = contested(work, wanted);
    let without = |less: &[Box<str>]| [less, &contested].concat();
    let mut applied = work.cluster.apply_named(wanted, work.owner, force, (&without(&less), uid)).await?;
    let free = fields_without_manager(work, wanted, &applied, &less);
    if !free.is_empty() {
        work.field_conflicts.reclaim(wanted, &free);
        less.retain(|place| !free.contains(place));
        applied = work.cluster.apply_named(wanted, work.owner, Force::No, (&without(&less), uid)).await?;
    }
    work.field_conflicts.warned(wanted, &applied.warnings);
    release_others(work, wanted, &applied).await;
    if let Some(before) = &before {
        clear(work, wanted, before, &applied, &without(&less)).await;
    }
    Ok(applied)
}

/// Returns the contested fields that another manager owns now. Fields that we own at the moment
/// stay in the apply: omitting them would delete them.
fn contested(work: &ApplyContext<'_>, wanted: &DesiredObject) -> Vec<Box<str>> {
    let contest = work.contested.get(&wanted.id).filter(|contest| wanted.is_recorded_as(&contest.hash));
    let Some(contest) = contest.filter(|contest| !contest.fields.is_empty()) else { return Vec::new() };
    let taken: Vec<&String> = work.cluster.read_observed(work.owner, |set| {
        let seen = set.get(&wanted.id);
        contest.fields.iter().filter(|field| seen.is_some_and(|seen| seen.has_lost_field(field))).collect()
    });
    let body = Value::Object(wanted.body());
    taken.into_iter().flat_map(|field| find_by_display_form(&body, field)).map(Box::from).collect()
}

/// Returns the fields that we owned until now; `None` if we had none.
async fn before(work: &ApplyContext<'_>, wanted: &DesiredObject) -> Result<Option<FieldSet>, ApiError> {
    let known = work.cluster.read_observed(work.owner, |set| {
        // An entry that another manager wiped was ours all the same.
        let seen = set.get(&wanted.id).filter(|seen| seen.applied_by_us || seen.baseline.is_some())?;
        Some(seen.owned_fields())
    });
    match known {
        None => Ok(None),
        Some(Some(own)) => Ok(Some(own)),
        // The object was created again or is not cached, and after the apply it is too late to
        // look.
        Some(None) => entry(work, wanted).await,
    }
}

/// Reads our managed fields from the cluster; `None` if the object does not exist.
async fn entry(work: &ApplyContext<'_>, wanted: &DesiredObject) -> Result<Option<FieldSet>, ApiError> {
    let live = work.cluster.objects().read_metadata(&wanted.id, &wanted.version).await?;
    let entries = live.map(|live| own_and_foreign(&live, &work.owner.manager()));
    Ok(entries.map(|(own, _)| own))
}

/// Returns the yielded fields that no other manager owns any more.
fn fields_without_manager(
    work: &ApplyContext<'_>,
    wanted: &DesiredObject,
    applied: &ApplyResult,
    less: &[Box<str>],
) -> Vec<Box<str>> {
    if less.is_empty() {
        return Vec::new();
    }
    let body = Value::Object(wanted.body());
    let (_, foreign) = own_and_foreign(&applied.object, &work.owner.manager());
    let held: Vec<String> = foreign
        .iter()
        .flat_map(|entry| entry.fields.owned_paths())
        .filter_map(|path| pointer_of(&path, &body))
        .collect();
    let is_held = |place: &str| held.iter().any(|held| overlaps(held, place));
    less.iter().filter(|place| !is_held(place)).cloned().collect()
}

/// Resolves a conflict over fields that Git sets. Returns the managers from which the object
/// was adopted, if it was.
async fn conflict(
    work: &ApplyContext<'_>,
    wanted: &DesiredObject,
    mut refusal: Box<ApiStatus>,
    change: Option<&Change>,
) -> Result<(Option<Vec<Box<str>>>, ApplyResult), UnresolvedConflict> {
    let mut force = Force::No;
    let adopted = |managers: Vec<Box<str>>| change.is_none().then_some(managers);
    for _ in 0..MAX_ROUNDS {
        let managers = refusal.managers();
        let gone = gone_syncs(work, wanted, &managers).await?;
        let is_free = |name: &str| name == api::HANDOVER_MANAGER || name.starts_with(api::MANAGER_PREFIX);
        let all_free = !managers.is_empty() && managers.iter().all(|manager| is_free(manager));
        match work.conflicts {
            ConflictPolicy::Force => force = Force::Yes,
            ConflictPolicy::Yield | ConflictPolicy::Fail if all_free => force = Force::Yes,
            ConflictPolicy::Yield if yield_fields(work, wanted, &refusal, &mut force) => {}
            ConflictPolicy::Yield | ConflictPolicy::Fail if managers.is_empty() => {
                return Err(UnresolvedConflict::Failed(ApiError::Refused(refusal)));
            }
            ConflictPolicy::Yield | ConflictPolicy::Fail => {
                return Err(UnresolvedConflict::Held(held(&refusal)));
            }
        }
        match send(work, wanted, force, change, None).await {
            Ok(applied) => {
                // `send` has released the fields of the Syncs that exist.
                for sync in syncs_of(&applied).filter(|sync| gone.iter().any(|gone| **gone == **sync)) {
                    work.cluster.release_object(&wanted.id, &wanted.version, sync).await?;
                }
                return Ok((adopted(managers), applied));
            }
            Err(ApiError::Refused(again)) if force == Force::No && again.code == 409 => refusal = again,
            Err(failure) => return Err(UnresolvedConflict::Failed(failure)),
        }
    }
    Err(UnresolvedConflict::Held(held(&refusal)))
}

/// Returns those of the managers that are Syncs which no longer exist. Their fields have no owner,
/// and neither have those of a Sync that cannot see the object any more. Any other Sync keeps the
/// object.
async fn gone_syncs(
    work: &ApplyContext<'_>,
    wanted: &DesiredObject,
    managers: &[Box<str>],
) -> Result<Vec<Box<str>>, UnresolvedConflict> {
    let own = work.owner.manager();
    let others = managers.iter().filter(|manager| ***manager != *own);
    let mut gone = Vec::new();
    for sync in others.filter_map(|manager| manager.strip_prefix(api::MANAGER_PREFIX)) {
        if is_owner_gone(work.context, work.owner, sync).await? {
            gone.push(sync.into());
        } else if !has_owner_released(work, sync, wanted).await? {
            return Err(UnresolvedConflict::Held(Hold::OwnedBy(sync.into())));
        }
    }
    Ok(gone)
}

/// Yields the fields of a conflict to their owners; returns false if the fields cannot be
/// identified. Our marks are never yielded: without them the object is not ours. Fields of other
/// Syncs are taken: a Sync that keeps the object has ended the apply before.
fn yield_fields(
    work: &ApplyContext<'_>,
    wanted: &DesiredObject,
    refusal: &ApiStatus,
    force: &mut Force,
) -> bool {
    let body = Value::Object(wanted.body());
    let mut fields = Vec::new();
    for (cause, manager) in refusal.field_conflicts() {
        let manager = manager.unwrap_or_default();
        if is_mark(&cause.field) || manager.starts_with(api::MANAGER_PREFIX) {
            *force = Force::Yes;
            continue;
        }
        let places = find_by_server_form(&body, &cause.field);
        if places.is_empty() {
            return false;
        }
        fields.extend(places.into_iter().map(|pointer| YieldedField {
            pointer: pointer.into(),
            field: cause.field.trim_start_matches('.').into(),
            manager: manager.into(),
        }));
    }
    let clear = !fields.is_empty() || *force == Force::Yes;
    for it in &fields {
        tracing::info!(sync = %work.owner, object = %wanted.id, field = %wanted.display_path(&it.field), manager = %it.manager, "field yielded to another manager");
    }
    work.field_conflicts.yield_to(wanted, fields);
    clear
}

/// Maps a refused apply to an outcome; an object that may be recreated is replaced.
pub(crate) async fn refused(
    work: &ApplyContext<'_>,
    wanted: &DesiredObject,
    failure: ApiError,
) -> Result<Outcome, ApiError> {
    let namespace = || wanted.id.namespace().unwrap_or_default().into();
    match classify_error(&failure, wanted.contains_secret).reason {
        FailureReason::NamespaceMissing => Ok(Outcome::Held(Hold::NamespaceMissing(namespace()))),
        FailureReason::NamespaceTerminating => Ok(Outcome::Held(Hold::NamespaceTerminating(namespace()))),
        FailureReason::Immutable => recreate(work, wanted, failure).await,
        _ => Err(failure),
    }
}

/// Reason for a conflict that was not resolved.
enum UnresolvedConflict {
    Held(Hold),
    Failed(ApiError),
}

impl From<ApiError> for UnresolvedConflict {
    fn from(failure: ApiError) -> Self {
        Self::Failed(failure)
    }
}

fn held(refusal: &ApiStatus) -> Hold {
    let mut fields: Vec<Box<str>> =
        refusal.field_conflicts().map(|(cause, _)| cause.field.trim_start_matches('.').into()).collect();
    fields.sort();
    fields.dedup();
    Hold::Conflict { managers: refusal.managers(), fields }
}

fn is_mark(field: &str) -> bool {
    let marks = [
        (".metadata.labels.", api::SYNC_LABEL),
        (".metadata.annotations.", api::ID_ANNOTATION),
        (".metadata.annotations.", api::SPEC_HASH_ANNOTATION),
        (".metadata.annotations.", api::PROOF_ANNOTATION),
    ];
    marks.iter().any(|(place, key)| field.strip_prefix(place) == Some(key))
}
