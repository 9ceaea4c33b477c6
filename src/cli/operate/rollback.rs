//! `moorline rollback` and `moorline release`: hold a Sync at a revision, and end that.

use anyhow::bail;
use clap::Args;
use serde_json::json;

use super::super::Streams;
use super::super::exit::Exit;
use super::{SyncTarget, on_cluster};
use crate::api::{
    ChosenRevision, HOLD_BY_ANNOTATION, HOLD_REASON_ANNOTATION, HOLD_REVISION_ANNOTATION, HistoryEntry,
    Reason, RevisionHold, SyncStatus, short_revision as short,
};

/// The fewest hex digits of a commit that select a revision of the history.
const SHORTEST: usize = 7;

/// Digits of a whole commit.
const COMMIT: usize = 40;

/// Roll a Sync back: hold it at an earlier revision until it is released
///
/// Newer commits are not applied meanwhile, and drift from the held revision is repaired.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  moorline rollback shop --reason 'checkout fails'          the revision that was applied before
  moorline rollback shop --to 1f0c9a77 --reason 'too slow'  a revision of its history
  moorline release shop                                     follow the repository again")]
pub(in super::super) struct RollbackArgs {
    #[command(flatten)]
    target: SyncTarget,

    /// A revision of its history, the first digits of one, or a commit [default: the one that was
    /// applied before]
    #[arg(long)]
    to: Option<String>,

    /// The reason, which the status and the page show
    #[arg(long)]
    reason: String,
}

/// Release a Sync that is held at a revision: the newest commit is applied
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  moorline release shop")]
pub(in super::super) struct ReleaseArgs {
    #[command(flatten)]
    target: SyncTarget,
}

pub(in super::super) fn run(arguments: &RollbackArgs, streams: &mut Streams<'_>) -> anyhow::Result<Exit> {
    on_cluster(async |connection| {
        let name = arguments.target.of(&connection);
        let sync = connection.sync(&name).await?;
        let revision = match select_revision(&sync.status, arguments.to.as_deref()) {
            Ok(revision) => revision,
            Err(message) => bail!("{name} {message}"),
        };
        let by = connection.caller().await;
        let patch = json!({"metadata": {"annotations": {
            HOLD_REVISION_ANNOTATION: revision,
            HOLD_BY_ANNOTATION: by,
            HOLD_REASON_ANNOTATION: arguments.reason,
        }}});
        connection.change_sync(&name, patch).await?;
        streams.say(&format!(
            "{name} goes back to {}, and no newer commit is applied until moorline release {} -n {}",
            short(&revision),
            name.name,
            name.namespace
        ));
        Ok(Exit::Done)
    })
}

pub(in super::super) fn release(arguments: &ReleaseArgs, streams: &mut Streams<'_>) -> anyhow::Result<Exit> {
    on_cluster(async |connection| {
        let name = arguments.target.of(&connection);
        let sync = connection.sync(&name).await?;
        let annotations = sync.resource.metadata.annotations.as_ref();
        let hold = RevisionHold::of_annotations(|key| Some(annotations?.get(key)?.as_str()));
        let Some(hold) = hold else {
            streams.say(&format!("{name} is not held at a revision"));
            return Ok(Exit::Done);
        };
        let patch = json!({"metadata": {"annotations": {
            HOLD_REVISION_ANNOTATION: null, HOLD_BY_ANNOTATION: null, HOLD_REASON_ANNOTATION: null,
        }}});
        connection.change_sync(&name, patch).await?;
        streams.say(&format!(
            "{name} is no longer held at {}: the newest commit is applied",
            short(&hold.revision)
        ));
        Ok(Exit::Done)
    })
}

/// The revision of a hold, with the person and the reason.
pub(super) fn describe_hold(chosen: &ChosenRevision) -> String {
    let ChosenRevision { revision, by, reason } = chosen.clone();
    let hold = RevisionHold { revision, by, reason };
    format!("{}{}", hold.revision, hold.who_and_why())
}

/// Selects the revision to hold, or says why there is none.
fn select_revision(status: &SyncStatus, asked: Option<&str>) -> Result<String, String> {
    let applied = status.revision.as_ref().and_then(|revision| revision.applied.as_deref());
    let Some(asked) = asked else {
        let earlier = |entry: &&HistoryEntry| Some(&*entry.revision) != applied && was_applied(entry);
        let found = status.history.iter().find(earlier);
        let missing =
            || "has no earlier revision in its history that was applied: name a commit with --to".to_owned();
        return found.map(|entry| entry.revision.clone()).ok_or_else(missing);
    };
    let mut found: Vec<&str> = Vec::new();
    for entry in status.history.iter().filter(|entry| names(&entry.revision, asked)) {
        if !found.contains(&&*entry.revision) {
            found.push(&entry.revision);
        }
    }
    let is_whole = asked.len() == COMMIT && asked.bytes().all(|it| it.is_ascii_hexdigit());
    match found.as_slice() {
        [one] => Ok((*one).to_owned()),
        [] if is_whole || asked.contains('@') => Ok(asked.to_owned()),
        [] => Err(format!(
            "has no revision {asked:?} in its history; name a whole commit, or see moorline status"
        )),
        [..] => Err(format!("has several revisions {asked:?} in its history: {}", found.join(", "))),
    }
}

/// True if the text names a revision: all of it, its ref, or the first digits of its commit.
fn names(revision: &str, asked: &str) -> bool {
    let (name, commit) = revision.split_once('@').unwrap_or(("", revision));
    let commit = commit.strip_prefix("sha256:").unwrap_or(commit);
    revision == asked || name == asked || asked.len() >= SHORTEST && commit.starts_with(asked)
}

/// True if all objects of the revision were applied.
fn was_applied(entry: &HistoryEntry) -> bool {
    let result = Reason::parse(&entry.result);
    matches!(result, Some(Reason::Applied | Reason::PruneHeld | Reason::Contested))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_revision_of_the_history_is_named_by_any_part_of_it() {
        let revision = |digit: &str| format!("main@{}", digit.repeat(COMMIT));
        let entry = |digit: &str, result: &str| {
            let whole =
                json!({"revision": revision(digit), "time": "2026-01-02T03:04:05Z", "result": result});
            serde_json::from_value::<HistoryEntry>(whole).unwrap()
        };
        let mut status = SyncStatus {
            history: vec![
                entry("4", "YamlInvalid"),
                entry("3", "Applied"),
                entry("2", "Degraded"),
                entry("2", "RolledBack"),
                entry("1", "Applied"),
            ],
            ..SyncStatus::default()
        };
        status.revision.get_or_insert_default().applied = Some(revision("3"));
        let other = "ab".repeat(COMMIT / 2);
        for (asked, expect) in [
            (None, Ok(revision("1"))),
            (Some("2222222"), Ok(revision("2"))),
            (Some(&*revision("3")), Ok(revision("3"))),
            (Some(&*other), Ok(other.clone())),
            (Some("222222"), Err("no revision")),
            (Some("v1.0.0"), Err("no revision")),
            (Some("main"), Err("several revisions")),
        ] {
            let found = select_revision(&status, asked);
            match expect {
                Ok(expect) => assert_eq!(found, Ok(expect), "{asked:?}"),
                Err(part) => {
                    assert!(found.clone().is_err_and(|it| it.contains(part)), "{asked:?}: {found:?}")
                }
            }
        }
        assert!(select_revision(&SyncStatus::default(), None).is_err_and(|it| it.contains("--to")));
    }
}
