//! `moorline delete`: deletes a Sync with or without its objects, and answers a deletion that
//! waits.

use std::time::{Duration, Instant};

use anyhow::bail;
use clap::Args;
use serde_json::json;

use super::super::Streams;
use super::super::exit::Exit;
use super::{SyncTarget, counted, on_cluster, ready};
use crate::api::{
    DELETION_ANNOTATION, DeletionPolicy, EventReason, FINALIZER, Reason, SyncName, format_deletion_answer,
};
use crate::cluster::{Connection, OperatorError, SyncResource};

/// Interval at which the Sync is polled.
const POLL_INTERVAL: Duration = Duration::from_millis(250);

/// Delete a Sync, and wait until it is gone
///
/// Its objects are deleted or stay by its spec.deletionPolicy, or by --delete or --orphan. The
/// deletion of a suspended Sync stops; either flag decides it. There is no confirmation prompt.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  moorline delete shop
  moorline delete shop --orphan     its objects stay
  moorline delete shop --delete     its objects are deleted, even if it is suspended
  moorline delete east --abandon-cluster
                                    another cluster is gone: what is in it stays

Exit codes: 0 the Sync is gone, 1 it is not.")]
pub(in super::super) struct DeleteArgs {
    #[command(flatten)]
    target: SyncTarget,

    /// Leave the objects in the cluster
    #[arg(long, conflicts_with = "delete")]
    orphan: bool,

    /// Delete the objects with the Sync
    #[arg(long)]
    delete: bool,

    /// Leave the objects in the cluster of spec.cluster, because it is gone for ever
    #[arg(long, conflicts_with_all = ["delete", "orphan"])]
    abandon_cluster: bool,

    /// Time to wait, in seconds
    #[arg(long, default_value_t = 300)]
    timeout: u64,

    /// Request the deletion and do not wait
    #[arg(long)]
    no_wait: bool,
}

impl DeleteArgs {
    fn wanted(&self) -> Option<DeletionPolicy> {
        match (self.orphan || self.abandon_cluster, self.delete) {
            (true, _) => Some(DeletionPolicy::Orphan),
            (_, true) => Some(DeletionPolicy::Delete),
            (false, false) => None,
        }
    }
}

pub(in super::super) fn run(arguments: &DeleteArgs, streams: &mut Streams<'_>) -> anyhow::Result<Exit> {
    on_cluster(async |connection| {
        let name = arguments.target.of(&connection);
        let until = Instant::now() + Duration::from_secs(arguments.timeout);
        let sync = connection.sync(&name).await?;
        if arguments.abandon_cluster && spec(&sync, "cluster").is_null() {
            bail!("the objects of {name} are in its own cluster: use --orphan to leave them");
        }
        let wanted = arguments.wanted();
        let left = match is_going(&sync) {
            true => {
                streams.say(&format!("{name} is being deleted already"));
                Some(sync)
            }
            false => delete_by_policy(&connection, sync, wanted, until, streams).await?,
        };
        let left = match (left, wanted) {
            (Some(sync), Some(wanted)) => answer_deletion(&connection, &sync, wanted, streams).await?,
            (left, _) => left,
        };
        match left {
            None => Ok(print_gone(&name, streams)),
            Some(_) if arguments.no_wait => Ok(Exit::Done),
            Some(sync) => wait(&connection, sync, wanted, until, streams).await,
        }
    })
}

/// Deletes a Sync by a policy and reports the fate of its objects. Returns the Sync unless it is
/// gone at once.
async fn delete_by_policy(
    connection: &Connection,
    sync: SyncResource,
    wanted: Option<DeletionPolicy>,
    until: Instant,
    streams: &mut Streams<'_>,
) -> anyhow::Result<Option<SyncResource>> {
    let name = sync.name.clone();
    let asked = spec(&sync, "deletionPolicy").as_str() == Some("Delete");
    let deletes = wanted.map_or(asked, |wanted| wanted == DeletionPolicy::Delete);
    let sync = match deletes == asked {
        true => sync,
        false => {
            let policy = if deletes { "Delete" } else { "Orphan" };
            connection.change_sync(&name, json!({"spec": {"deletionPolicy": policy}})).await?
        }
    };
    let sync = if deletes { with_finalizer(connection, sync, until).await? } else { sync };
    let left = delete_unchanged(connection, sync.clone(), until).await?;
    let objects = counted(sync.status.objects.unwrap_or_default().desired);
    streams.say(&match deletes {
        false => format!("{name} is deleted; its {objects} stay"),
        true if is_suspended(&sync) && wanted.is_none() => {
            format!(
                "{name} is suspended, so its deletion waits for a decision; its {objects} stay until then"
            )
        }
        true => format!("{name} is deleted with its {objects}"),
    });
    Ok(left)
}

/// Deletes a Sync unless its spec has changed since it was read. Returns it unless it is gone at
/// once.
async fn delete_unchanged(
    connection: &Connection,
    mut sync: SyncResource,
    until: Instant,
) -> anyhow::Result<Option<SyncResource>> {
    let generation = sync.resource.metadata.generation;
    loop {
        let refused = connection.delete_sync(&sync).await.err();
        let Some(now) = connection.current_sync(&sync).await? else { return Ok(None) };
        match refused {
            None => return Ok(Some(now)),
            // Only the status has changed meanwhile: try again with the new version.
            Some(OperatorError::Changed(_))
                if now.resource.metadata.generation == generation && Instant::now() < until =>
            {
                sync = now;
            }
            Some(error) => return Err(error.into()),
        }
    }
}

/// Waits for the finalizer: a Sync that is deleted before it has one leaves its objects.
async fn with_finalizer(
    connection: &Connection,
    mut sync: SyncResource,
    until: Instant,
) -> anyhow::Result<SyncResource> {
    loop {
        if sync.resource.metadata.finalizers.iter().flatten().any(|one| one == FINALIZER) {
            return Ok(sync);
        }
        if Instant::now() > until {
            bail!(
                "nothing is deleted: no daemon has added the finalizer {FINALIZER} to {}, without which its objects \
                 would stay; is a daemon running that serves it?",
                sync.name
            );
        }
        tokio::time::sleep(POLL_INTERVAL).await;
        sync = connection.sync(&sync.name).await?;
    }
}

/// Answers the deletion. Returns the Sync unless it is gone by now.
async fn answer_deletion(
    connection: &Connection,
    sync: &SyncResource,
    wanted: DeletionPolicy,
    streams: &mut Streams<'_>,
) -> anyhow::Result<Option<SyncResource>> {
    // The answer is valid for this generation only: a change by another person makes it void.
    let generation = sync.resource.metadata.generation.unwrap_or_default();
    let patch = json!({
        "metadata": {
            "uid": sync.resource.metadata.uid,
            "annotations": {DELETION_ANNOTATION: format_deletion_answer(wanted, generation)},
        },
    });
    let answered = match connection.change_sync(&sync.name, patch).await {
        Ok(sync) => sync,
        // The Sync may be gone, and another one may have its name.
        Err(error) => match connection.current_sync(sync).await? {
            None => return Ok(None),
            Some(_) => return Err(error.into()),
        },
    };
    streams.say(match wanted {
        DeletionPolicy::Orphan => "decided: the remaining objects stay in the cluster",
        DeletionPolicy::Delete => "decided: the remaining objects are deleted",
    });
    Ok(Some(answered))
}

/// Waits until the Sync is gone, and prints the progress.
async fn wait(
    connection: &Connection,
    mut sync: SyncResource,
    wanted: Option<DeletionPolicy>,
    until: Instant,
    streams: &mut Streams<'_>,
) -> anyhow::Result<Exit> {
    let (name, generation) = (sync.name.clone(), sync.resource.metadata.generation);
    let mut shown = String::new();
    loop {
        let (_, reason, message) = ready(&sync.status);
        let reason = Reason::parse(reason);
        let is_held = reason == Some(Reason::DeletionHeld);
        let is_current = sync.status.observed_generation == sync.resource.metadata.generation;
        let is_told = is_current && (is_held || reason == Some(Reason::Deleting));
        if is_told && shown != message {
            shown = message.to_owned();
            // Until the daemon has read the answer, the status is from before it, and would
            // mislead.
            if !is_held || wanted.is_none() || sync.resource.metadata.generation != generation {
                streams.say(message);
            }
        }
        // An answer is valid for one generation only.
        if is_told && is_held && (wanted.is_none() || sync.resource.metadata.generation != generation) {
            return Ok(Exit::Failure);
        }
        if Instant::now() > until {
            bail!("{name} is not gone: {message}; is a daemon running that serves it?");
        }
        tokio::time::sleep(POLL_INTERVAL).await;
        sync = match connection.current_sync(&sync).await? {
            Some(now) => now,
            None => {
                said_to_stay(connection, &sync, streams).await;
                return Ok(print_gone(&name, streams));
            }
        };
    }
}

/// Prints the objects that stay, from the Event about them. Needs the right to read Events; prints
/// nothing without it.
async fn said_to_stay(connection: &Connection, sync: &SyncResource, streams: &mut Streams<'_>) {
    let events = connection.sync_events(sync).await.unwrap_or_default();
    let reason = EventReason::ObjectsOrphaned.to_string();
    for event in events.iter().filter(|event| event["reason"] == reason) {
        streams.say(event["note"].as_str().unwrap_or_default());
    }
}

fn print_gone(name: &SyncName, streams: &mut Streams<'_>) -> Exit {
    streams.say(&format!("{name} is gone"));
    Exit::Done
}

fn is_going(sync: &SyncResource) -> bool {
    sync.resource.metadata.deletion_timestamp.is_some()
}

fn is_suspended(sync: &SyncResource) -> bool {
    spec(sync, "suspend").as_bool().unwrap_or_default()
}

fn spec<'a>(sync: &'a SyncResource, field: &str) -> &'a serde_json::Value {
    &sync.resource.data["spec"][field]
}
