//! `moorline approve`: approves pending deletions, or a revision that waits.

use anyhow::{Context as _, bail};
use clap::{Args, ValueEnum};
use serde_json::json;

use super::super::Streams;
use super::super::exit::Exit;
use super::{SyncTarget, counted, on_cluster};
use crate::api::{APPROVE_ANNOTATION, ApprovalSubject, PendingApproval};
use crate::report::waiting;
use crate::sanitize::sanitize;

/// Approve what a Sync waits for: deletions, or a revision
///
/// Covers exactly the plan in its status: if that changes, a new approval is needed.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  moorline status shop                   show what waits
  moorline approve shop
  moorline approve shop --of revision    if deletions wait as well
  moorline approve shop --hash 5c7d3a    only if this is still asked")]
pub(in super::super) struct ApproveArgs {
    #[command(flatten)]
    target: SyncTarget,

    /// The subject, if both wait
    #[arg(long, value_enum)]
    of: Option<Subject>,

    /// The hash that was read, or its first digits: another one is not approved
    #[arg(long, value_name = "HASH")]
    hash: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Subject {
    Prune,
    Revision,
}

pub(in super::super) fn run(arguments: &ApproveArgs, streams: &mut Streams<'_>) -> anyhow::Result<Exit> {
    on_cluster(async |connection| {
        let name = arguments.target.of(&connection);
        let sync = connection.sync(&name).await?;
        let waiting = waiting(&sync.status);
        if waiting.is_empty() {
            streams.say(&format!("{name} waits for no approval"));
            return Ok(Exit::Done);
        }
        let asked = choose(&waiting, arguments.of, arguments.hash.as_deref())?;
        let patch = json!({"metadata": {"annotations": {APPROVE_ANNOTATION: asked.hash}}});
        connection.change_sync(&name, patch).await?;
        streams.say(&sanitize(&format!("approved: {name} {}", describe(asked))));
        Ok(Exit::Done)
    })
}

/// Says what an approval does.
pub(super) fn describe(asked: &PendingApproval) -> String {
    match asked.of {
        ApprovalSubject::Prune => format!("deletes {}", counted(asked.pruned)),
        ApprovalSubject::Revision => format!(
            "applies {}: {} to create, {} to change, {} to prune",
            asked.revision.as_deref().unwrap_or_default(),
            asked.created,
            asked.changed,
            asked.pruned
        ),
    }
}

/// Returns the approval that is given.
fn choose<'a>(
    waiting: &'a [PendingApproval],
    of: Option<Subject>,
    hash: Option<&str>,
) -> anyhow::Result<&'a PendingApproval> {
    let is_of = |asked: &PendingApproval| match of {
        None => true,
        Some(Subject::Prune) => asked.of == ApprovalSubject::Prune,
        Some(Subject::Revision) => asked.of == ApprovalSubject::Revision,
    };
    let is_it = |asked: &&PendingApproval| {
        is_of(asked) && hash.is_none_or(|hash| !hash.is_empty() && asked.hash.starts_with(hash))
    };
    let mut fitting = waiting.iter().filter(is_it);
    let first = fitting.next().context("this is not what waits now: look at `moorline status`")?;
    if fitting.next().is_some() {
        bail!("deletions and a revision wait: add --of prune or --of revision");
    }
    Ok(first)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::SyncStatus;

    #[test]
    fn only_what_was_meant_is_approved() {
        let asked =
            |of, hash: &str| PendingApproval { of, hash: hash.to_owned(), ..PendingApproval::default() };
        let prune = asked(ApprovalSubject::Prune, "aa11");
        let both = [prune, asked(ApprovalSubject::Revision, "ab22")];
        let chosen = |waiting: &[PendingApproval], of, hash: Option<&str>| {
            choose(waiting, of, hash).map(|asked| asked.hash.clone()).map_err(|error| error.to_string())
        };
        assert_eq!(chosen(&both[..1], None, None).unwrap(), "aa11");
        assert!(chosen(&both, None, None).unwrap_err().contains("--of revision"));
        assert_eq!(chosen(&both, Some(Subject::Revision), None).unwrap(), "ab22");
        assert_eq!(chosen(&both, None, Some("aa")).unwrap(), "aa11");
        for (of, hash) in [(None, Some("ac")), (None, Some("")), (Some(Subject::Revision), Some("aa11"))] {
            assert!(chosen(&both, of, hash).is_err(), "{of:?} {hash:?}");
        }
        assert!(chosen(&both, None, Some("a")).is_err(), "the first digit of both");
        let older = SyncStatus {
            approval: Some(crate::api::Approval { hash: "cc".to_owned(), objects: 3 }),
            ..SyncStatus::default()
        };
        assert_eq!(describe(&waiting(&older)[0]), "deletes 3 objects");
    }
}
