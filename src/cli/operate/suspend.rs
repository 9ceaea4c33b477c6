//! `moorline suspend` and `moorline resume`: set and clear `spec.suspend`.

use clap::Args;
use serde_json::json;

use super::super::Streams;
use super::super::exit::Exit;
use super::{SyncTarget, on_cluster};
use crate::api::DELETION_ANNOTATION;

/// Suspend a Sync: nothing is applied until it is resumed
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  moorline suspend shop")]
pub(in super::super) struct Suspend {
    #[command(flatten)]
    target: SyncTarget,
}

/// Resume a suspended Sync
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  moorline resume shop")]
pub(in super::super) struct Resume {
    #[command(flatten)]
    target: SyncTarget,
}

pub(in super::super) fn suspend(arguments: &Suspend, streams: &mut Streams<'_>) -> anyhow::Result<Exit> {
    set(&arguments.target, true, streams)
}

pub(in super::super) fn resume(arguments: &Resume, streams: &mut Streams<'_>) -> anyhow::Result<Exit> {
    set(&arguments.target, false, streams)
}

fn set(target: &SyncTarget, suspend: bool, streams: &mut Streams<'_>) -> anyhow::Result<Exit> {
    on_cluster(async |connection| {
        let name = target.of(&connection);
        let mut patch = json!({"spec": {"suspend": suspend}});
        if suspend {
            // An earlier answer to a deletion must not delete anything once the Sync is resumed.
            patch["metadata"] = json!({"annotations": {DELETION_ANNOTATION: null}});
        }
        let changed = connection.change_sync(&name, patch).await?;
        let resume = format!("moorline resume {} -n {}", name.name, name.namespace);
        // While it is being deleted, a suspended Sync only stops its deletion.
        let deletes = changed.resource.metadata.deletion_timestamp.is_some();
        streams.say(&match (suspend, deletes) {
            (true, false) => format!("{name} is suspended: nothing is applied until {resume}"),
            (true, true) => format!("{name} is suspended: nothing more of it is deleted until {resume}"),
            (false, false) => format!("{name} is resumed"),
            (false, true) => format!("{name} is resumed: its deletion continues"),
        });
        Ok(Exit::Done)
    })
}
