//! `moorline approve`: approves a pending deletion.

use clap::Args;
use serde_json::json;

use super::super::Streams;
use super::super::exit::Exit;
use super::{SyncTarget, counted, on_cluster};
use crate::api::APPROVE_ANNOTATION;

/// Approve the pending deletions of a Sync
///
/// Covers exactly the objects in its status: if they change, a new approval is needed.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  moorline status shop     show pending deletions
  moorline approve shop")]
pub(in super::super) struct ApproveArgs {
    #[command(flatten)]
    target: SyncTarget,
}

pub(in super::super) fn run(arguments: &ApproveArgs, streams: &mut Streams<'_>) -> anyhow::Result<Exit> {
    on_cluster(async |connection| {
        let name = arguments.target.of(&connection);
        let sync = connection.sync(&name).await?;
        let Some(approval) = &sync.status.approval else {
            streams.say(&format!("{name} has no pending deletions"));
            return Ok(Exit::Done);
        };
        let patch = json!({"metadata": {"annotations": {APPROVE_ANNOTATION: approval.hash}}});
        connection.change_sync(&name, patch).await?;
        let objects = counted(approval.objects);
        streams.say(&format!("approved: {name} deletes {objects}"));
        Ok(Exit::Done)
    })
}
