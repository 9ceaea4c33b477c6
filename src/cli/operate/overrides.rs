//! `moorline override`: applies a revision although a change window is closed.

use anyhow::bail;
use clap::Args;
use serde_json::json;

use super::super::Streams;
use super::super::exit::Exit;
use super::{SyncTarget, on_cluster};
use crate::api::{
    HeldByWindow, OVERRIDE_ANNOTATION, OVERRIDE_BY_ANNOTATION, OVERRIDE_REASON_ANNOTATION, SyncStatus,
    signed_by,
};
use crate::sanitize::sanitize;

/// Apply a revision now although a change window is closed
///
/// Covers exactly the plan in the status of the Sync: if that changes, a new override is needed.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  moorline status shop                                   show what is held, and until when
  moorline override shop --reason 'CVE-2026-1234'
  moorline override shop --reason 'fix' --hash 5c7d3a    only if this is still held")]
pub(in super::super) struct OverrideArgs {
    #[command(flatten)]
    target: SyncTarget,

    /// The reason of the override, which the Sync, its Event and the journal show
    #[arg(long)]
    reason: String,

    /// The hash of the plan that you have read, or its first digits: no other plan is applied
    #[arg(long, value_name = "HASH")]
    hash: Option<String>,
}

pub(in super::super) fn run(arguments: &OverrideArgs, streams: &mut Streams<'_>) -> anyhow::Result<Exit> {
    on_cluster(async |connection| {
        let name = arguments.target.of(&connection);
        if arguments.reason.trim().is_empty() {
            bail!("write a reason: --reason 'CVE-2026-1234'");
        }
        let sync = connection.sync(&name).await?;
        let Some(held) = &sync.status.held_by_window else {
            streams.say(&format!("{name} is held by no change window"));
            return Ok(Exit::Done);
        };
        check_hash(held, arguments.hash.as_deref())?;
        let Some(by) = connection.caller().await else {
            bail!("the API server does not say who you are, and an override needs a name");
        };
        let patch = json!({"metadata": {"annotations": {
            OVERRIDE_ANNOTATION: held.hash,
            OVERRIDE_BY_ANNOTATION: signed_by(&held.hash, &by),
            OVERRIDE_REASON_ANNOTATION: arguments.reason,
        }}});
        connection.change_sync(&name, patch).await?;
        streams.say(&sanitize(&format!("{name} applies {} although {} is closed", held.revision, held.by)));
        Ok(Exit::Done)
    })
}

/// Checks that the held plan is the one that the person has read.
fn check_hash(held: &HeldByWindow, hash: Option<&str>) -> anyhow::Result<()> {
    if hash.is_some_and(|hash| hash.is_empty() || !held.hash.starts_with(hash)) {
        bail!("another plan is held now: look at `moorline status`");
    }
    Ok(())
}

/// The rows of a status about windows, and the first lines of the plan that is held.
pub(super) fn describe_windows(status: &SyncStatus) -> (Vec<Vec<String>>, &[String]) {
    let held = status.held_by_window.as_ref();
    let row = held.map(|held| {
        let until = held.until.as_ref().map(|until| format!("until {until} ")).unwrap_or_default();
        let HeldByWindow { revision, by, created, changed, pruned, .. } = held;
        let plan = format!("{created} to create, {changed} to change, {pruned} to prune");
        vec!["Window".to_owned(), format!("{revision} is held {until}by {by}: {plan}")]
    });
    let forced = status.revision.as_ref().and_then(|revision| revision.overridden.as_ref());
    let forced = forced
        .map(|it| vec!["Overridden".to_owned(), format!("{} by {}: {}", it.revision, it.by, it.reason)]);
    (row.into_iter().chain(forced).collect(), held.map(|held| &*held.plan).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_plan_that_was_read_is_applied() {
        let held = HeldByWindow { hash: "5c7d3a".to_owned(), ..HeldByWindow::default() };
        for (hash, expect) in [(None, true), (Some("5c7"), true), (Some("5d"), false), (Some(""), false)] {
            assert_eq!(check_hash(&held, hash).is_ok(), expect, "{hash:?}");
        }
    }
}
