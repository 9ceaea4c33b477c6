//! `moorline audit FILE...`: lists changes.

use std::time::Duration;

use clap::{Args, ValueEnum};
use jiff::Timestamp;

use super::super::Streams;
use super::super::exit::Exit;
use super::super::operate::table::table;
use super::super::operate::write;
use super::Files;
use crate::api::short_revision;
use crate::duration;
use crate::grammar;
use crate::journal::{Entry, Line, read_files};

#[derive(Debug, Args)]
pub(super) struct ListArgs {
    #[command(flatten)]
    files: Files,

    /// Only changes of this last time, such as 1h or 2d
    #[arg(long, value_parser = span)]
    since: Option<Duration>,

    /// Only changes of this Sync, as NAMESPACE/NAME
    #[arg(long, value_name = "SYNC")]
    sync: Option<String>,

    /// Output format; json: a line for each change
    #[arg(long, short, value_enum, default_value_t = AuditFormat::Text)]
    output: AuditFormat,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum AuditFormat {
    Text,
    Json,
}

fn span(text: &str) -> Result<Duration, &'static str> {
    let days = text.strip_suffix('d').and_then(|days| days.parse::<u32>().ok());
    let days = days.map(|days| Duration::from_secs(u64::from(days) * 86_400));
    days.or_else(|| duration::parse(text)).ok_or("a duration, such as 30m, 1h or 2d")
}

pub(super) fn run(arguments: &ListArgs, streams: &mut Streams<'_>) -> anyhow::Result<Exit> {
    let from = arguments.since.map(|since| Timestamp::now() - since);
    let (mut rows, mut failure) = (Vec::new(), None);
    let unreadable = read_files(&arguments.files.files, |_, line| {
        if !is_asked(arguments, from, &line.entry) {
            return;
        }
        match arguments.output {
            AuditFormat::Text => rows.push(row(&line)),
            AuditFormat::Json if failure.is_none() => {
                failure = writeln!(streams.data, "{}", line.to_json()).err();
            }
            AuditFormat::Json => {}
        }
    })?;
    failure.map_or(Ok(()), Err)?;
    write(&table(&rows), streams)?;
    if unreadable > 0 {
        let lines = grammar::counted(i64::try_from(unreadable).unwrap_or(i64::MAX), "line");
        streams.say(&format!("{lines} cannot be read; `moorline audit verify` names the first"));
    }
    Ok(Exit::Done)
}

/// True if the line is asked for. Lines about the journal itself belong to no Sync.
fn is_asked(arguments: &ListArgs, from: Option<Timestamp>, entry: &Entry) -> bool {
    let time = || entry.time.as_ref().and_then(|time| time.parse::<Timestamp>().ok());
    from.is_none_or(|from| time().is_none_or(|time| time >= from))
        && arguments.sync.as_ref().is_none_or(|sync| entry.sync.as_ref() == Some(sync))
}

fn row(line: &Line) -> Vec<String> {
    let entry = &line.entry;
    let time = entry.time.clone().unwrap_or_default();
    let what = match (entry.change, entry.unanswered, entry.lost) {
        (Some(change), Some(true), _) => format!("{change:?}?"),
        (Some(change), ..) => format!("{change:?}"),
        (None, _, Some(lost)) => format!("{lost} not written down"),
        (None, ..) => String::new(),
    };
    let revision = entry.revision.as_deref().map(short_revision).unwrap_or_default();
    vec![
        time,
        entry.sync.clone().unwrap_or_default(),
        format!("{:?}", entry.reason),
        what,
        entry.object.clone().or_else(|| entry.daemon.clone()).unwrap_or_default(),
        revision,
        remark(entry),
    ]
}

/// Returns who or what stands behind a change, beside the commit.
fn remark(entry: &Entry) -> String {
    let drift = entry.drift.as_ref().map(|drift| {
        let manager = drift.manager.as_deref().unwrap_or("an unknown manager");
        format!("undoes {} of {manager}", drift.fields.join(", "))
    });
    let other = entry.other.as_ref().map(|other| format!("to {other}"));
    let by = entry.approver.as_ref().map(|who| format!(" by {who}")).unwrap_or_default();
    let approval = entry.approval.as_ref().map(|approval| format!("approved {approval}{by}"));
    let person = entry.person.as_ref().map(|who| match &entry.action {
        Some(action) => format!("{who} {action}"),
        None => format!("held by {who}"),
    });
    let place = entry.cluster_secret.as_ref().map(|secret| format!("in the cluster of {secret}"));
    let actor = entry.actor.as_ref().map(|actor| format!("as {actor}"));
    [place, person, drift, other, approval, actor].into_iter().flatten().collect::<Vec<_>>().join("; ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_are_read() {
        assert_eq!(span("2d"), Ok(Duration::from_secs(172_800)));
        assert_eq!(span("1h30m"), Ok(Duration::from_secs(5400)));
        assert!(span("soon").is_err() && span("-1d").is_err());
    }
}
