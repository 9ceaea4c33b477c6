//! `moorline adopt --undo`: deletes the Sync, keeps its objects, and restarts the old tool.
//!
//! In: a resource that was adopted. Out: no Sync, objects without its marks, and the resource as it
//! was. In this order: the Sync is deleted before the old tool writes again, and the record on the
//! resource stays until everything else is done, so that the same command continues after an
//! interruption.

use std::time::{Duration, Instant};

use anyhow::{Context as _, bail};

use super::super::Streams;
use super::super::exit::Exit;
use super::inputs::{AdoptionInputs, kind};
use super::proposal::adopted_from;
use crate::adopt::is_being_deleted;
use crate::api::{DeletionPolicy, SyncName};
use crate::cluster::{ApiError, Cluster, Connection, OperatorError, SyncResource};
use crate::controller::deletion::object_release::release_objects;

/// Interval at which the deletion of the Sync is polled.
const POLL_INTERVAL: Duration = Duration::from_millis(250);

/// The most objects that are named in messages.
const MAX_NAMED: usize = 10;

/// Undoes an adoption.
///
/// # Guarantees
///
/// No object is deleted: a Sync that would delete its objects is refused. The old tool starts only
/// after the Sync is gone.
///
/// # Cancellation
///
/// Safe at any time: a later run continues from the record on the resource, which is removed last.
///
/// # Errors
///
/// Fails if there is nothing to undo, if the old resource is being deleted, if the Sync is not gone
/// in time, or if an object could not be released for a reason that may pass.
pub(super) async fn undo(
    connection: &Connection,
    cluster: &Cluster,
    gathered: &AdoptionInputs,
    timeout: u64,
    streams: &mut Streams<'_>,
) -> anyhow::Result<Exit> {
    let AdoptionInputs { tool, namespace, name, live, record: former, .. } = gathered;
    let called = gathered.display_name();
    let Some((former, sync)) = former.as_ref().and_then(|former| Some((former, former.sync_name()?))) else {
        bail!("{called} was not adopted: nothing to undo");
    };
    if is_being_deleted(live) {
        bail!(
            "{called} is being deleted: if it were restored, its deletion would continue and might delete its objects. Nothing was changed. Keep the Sync {sync}, and remove the finalizers from {name} (kubectl patch {} {name} -n {namespace} --type merge -p '{{\"metadata\":{{\"finalizers\":null}}}}')",
            tool.resource()
        );
    }
    if delete_sync(connection, gathered, &sync, timeout).await? {
        streams.say(&format!("the Sync {sync} is deleted, and its objects are unchanged"));
        clean(cluster, &sync, streams).await?;
    }
    let patch = former.restore_patch(live);
    let restored = connection.patch_third_party(kind(*tool), namespace, name, &patch).await;
    restored.with_context(|| format!("{called} is not restored yet; run this again"))?;
    streams.say(&format!("{called} is restored, and {} reconciles it again", tool.name()));
    Ok(Exit::Done)
}

/// Removes the marks of the Sync from its objects.
async fn clean(cluster: &Cluster, sync: &SyncName, streams: &mut Streams<'_>) -> anyhow::Result<()> {
    let forgotten = release_objects(cluster, sync).await;
    let forgotten =
        forgotten.with_context(|| format!("the objects of {sync} cannot be listed; run this again"))?;
    // A write that is forbidden stays forbidden, so it only gets a note; other failures may pass,
    // and the next run tries them again.
    let may = |failure: &ApiError| !matches!(failure.code(), Some(400..=499));
    if let Some((id, failure)) = forgotten.failed.iter().find(|(_, failure)| may(failure)) {
        bail!("{id} still has the label or annotations of {sync}: {failure}; run this again");
    }
    for (id, failure) in forgotten.failed.iter().take(MAX_NAMED) {
        streams.say(&format!(
            "note: {id} keeps label, annotations and field manager of the Sync ({failure}): a field of it that leaves Git may stay until they are removed"
        ));
    }
    if forgotten.blind {
        streams.say("note: you may not list every kind: objects of those kinds keep label, annotations and field manager of the Sync, if it had any");
    }
    let done = forgotten.done;
    streams.say(&format!("{done} {} released", if done == 1 { "object was" } else { "objects were" }));
    Ok(())
}

/// Deletes the Sync and waits until it is gone. A Sync that would delete its objects is not
/// deleted. Returns false if another Sync has that name by now.
async fn delete_sync(
    connection: &Connection,
    gathered: &AdoptionInputs,
    sync: &SyncName,
    timeout: u64,
) -> anyhow::Result<bool> {
    let until = Instant::now() + Duration::from_secs(timeout);
    let mut asked = false;
    loop {
        let seen = match connection.sync(sync).await {
            Ok(seen) => seen,
            Err(OperatorError::NoSync { .. } | OperatorError::NoDefinition) => return Ok(true),
            Err(error) => return Err(error.into()),
        };
        let id = gathered.tool.id(&gathered.namespace, &gathered.name);
        if adopted_from(&seen) != id.as_ref().map(|id| id.as_str()) {
            // This Sync was created after ours was gone, and the objects may belong to it.
            return Ok(false);
        }
        let (name, namespace) = (&sync.name, &sync.namespace);
        if takes_its_objects(&seen) {
            bail!(
                "the Sync {sync} has deletionPolicy: Delete, and would delete its objects; nothing was changed: kubectl patch syncs.moorline.dev {name} -n {namespace} --type merge -p '{{\"spec\":{{\"deletionPolicy\":\"Orphan\"}}}}', then run this again"
            );
        }
        // The finalizer dates from a time when the policy was Delete; the daemon removes it.
        let is_held = seen.resource.metadata.finalizers.as_ref().is_some_and(|all| !all.is_empty());
        if !asked && !is_held {
            match connection.delete_sync(&seen).await {
                Ok(()) => asked = true,
                // Another writer changed it meanwhile, such as the daemon with a new status: try
                // again.
                Err(OperatorError::Changed(_)) if Instant::now() < until => {}
                Err(error) => return Err(error.into()),
            }
        }
        if Instant::now() > until {
            bail!("the Sync {sync} is still there after {timeout} s; is a daemon running that serves it?");
        }
        tokio::time::sleep(POLL_INTERVAL).await;
    }
}

/// True unless it is certain that the objects stay.
fn takes_its_objects(sync: &SyncResource) -> bool {
    let policy = sync.resource.data.pointer("/spec/deletionPolicy").cloned().unwrap_or_default();
    !policy.is_null() && serde_json::from_value(policy).ok() != Some(DeletionPolicy::Orphan)
}
