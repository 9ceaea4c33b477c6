//! `moorline sync`: requests a poll of the repository and reports the result.

use std::io::IsTerminal as _;
use std::time::{Duration, Instant};

use anyhow::bail;
use clap::Args;
use serde_json::json;

use super::super::exit::Exit;
use super::super::{Streams, sanitize};
use super::status::describe_sync;
use super::{SyncTarget, on_cluster, ready, write};
use crate::api::{ObjectCounts, REQUEST_ANNOTATION, Reason, SyncName, short_revision as short};
use crate::cluster::{Connection, SyncResource};

/// Interval at which the status is polled.
const POLL_INTERVAL: Duration = Duration::from_millis(250);

/// Poll the repository of a Sync now, and wait until it is applied
///
/// Ends when the newest commit is applied or has failed, and prints it with its changes. Waits for
/// running hooks and waves.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  moorline sync shop
  moorline sync shop --timeout 30 && ./smoke-test.sh

Exit codes: 0 the newest commit is applied, 1 it is not.")]
pub(in super::super) struct SyncArgs {
    #[command(flatten)]
    target: SyncTarget,

    /// Time to wait, in seconds
    #[arg(long, default_value_t = 300)]
    timeout: u64,

    /// Request the poll and do not wait
    #[arg(long)]
    no_wait: bool,
}

pub(in super::super) fn run(arguments: &SyncArgs, streams: &mut Streams<'_>) -> anyhow::Result<Exit> {
    on_cluster(async |connection| {
        let name = arguments.target.of(&connection);
        let (request, before) = request_poll(&connection, &name).await?;
        if arguments.no_wait {
            streams.say(&format!("{name}: poll requested"));
            return Ok(Exit::Done);
        }
        wait_until_settled(&connection, &request, &before, arguments.timeout, streams).await
    })
}

/// Requests a poll. Returns the request, and the Sync with it.
pub(in super::super) async fn request_poll(
    connection: &Connection,
    name: &SyncName,
) -> anyhow::Result<(String, SyncResource)> {
    let request = format!("moorline-cli-{}", jiff::Timestamp::now());
    let patch = json!({"metadata": {"annotations": {REQUEST_ANNOTATION: request}}});
    let before = connection.change_sync(name, patch).await?;
    Ok((request, before))
}

/// Waits until a request is handled or the timeout in seconds is over, and prints the result.
pub(in super::super) async fn wait_until_settled(
    connection: &Connection,
    request: &str,
    before: &SyncResource,
    timeout: u64,
    streams: &mut Streams<'_>,
) -> anyhow::Result<Exit> {
    let (name, until) = (&before.name, Instant::now() + Duration::from_secs(timeout));
    let mut progress = Progress { shown: String::new(), terminal: std::io::stderr().is_terminal() };
    loop {
        let sync = connection.sync(name).await?;
        progress.show(&sync, streams);
        if is_settled(&sync, request) {
            progress.end(streams);
            write(&outcome(before, &sync), streams)?;
            let done = ready(&sync.status).0 == "True";
            return Ok(if done { Exit::Done } else { Exit::Failure });
        }
        if Instant::now() > until {
            progress.end(streams);
            write(&describe_sync(&sync), streams)?;
            match is_answered(&sync, request) {
                true => bail!("{name} is still progressing after {timeout} s"),
                false => {
                    bail!(
                        "{name} has not handled the request after {timeout} s; is a daemon running that serves it?"
                    )
                }
            }
        }
        tokio::time::sleep(POLL_INTERVAL).await;
    }
}

/// True once the request was handled and nothing is in progress.
fn is_settled(sync: &SyncResource, request: &str) -> bool {
    let status = &sync.status;
    let current = status.observed_generation == sync.resource.metadata.generation;
    let moving = status.conditions.iter().any(|it| it.type_ == "Reconciling" && it.status == "True");
    let (is_ready, reason, _) = ready(status);
    // A reason other than Progressing is retried for ever, so it is reported instead of waited for.
    let is_progressing = Reason::parse(reason) == Some(Reason::Progressing);
    is_answered(sync, request) && current && (is_ready == "True" || !moving || !is_progressing)
}

/// True if the daemon has handled the request.
fn is_answered(sync: &SyncResource, request: &str) -> bool {
    sync.status.last_handled_request.as_deref() == Some(request)
}

/// Describes the changes since the request.
fn outcome(before: &SyncResource, after: &SyncResource) -> String {
    let applied =
        |sync: &SyncResource| sync.status.revision.clone().unwrap_or_default().applied.unwrap_or_default();
    let (old, new) = (applied(before), applied(after));
    let mut text = match (&*old, old == new) {
        ("", _) => format!("{} is applied\n", short(&new)),
        (_, true) => format!("{} is already applied\n", short(&new)),
        (_, false) => format!("{} -> {}\n", short(&old), short(&new)),
    };
    let is_ready = ready(&after.status).0 == "True";
    if !is_ready {
        text.clear();
    }
    let counts = |sync: &SyncResource| sync.status.objects.unwrap_or_default();
    text.push_str(&changes(counts(before), counts(after)));
    if is_ready && before.status.last_applied_time == after.status.last_applied_time {
        text.push_str("no changes in the cluster\n");
    }
    text + &describe_sync(after)
}

/// A line about the changed object counts; empty if none has changed. The pruned count is that of
/// the last reconcile that pruned anything: an equal number may be from long ago, and is left out.
fn changes(before: ObjectCounts, after: ObjectCounts) -> String {
    let than = |new: i64, old: i64| if new > old { "more" } else { "fewer" };
    let mut changes = Vec::new();
    let in_git = after.desired.abs_diff(before.desired);
    if in_git > 0 {
        let objects = if in_git == 1 { "object" } else { "objects" };
        changes.push(format!("{in_git} {objects} {} in Git", than(after.desired, before.desired)));
    }
    for (new, old, what) in [
        (after.applied, before.applied, "applied"),
        (after.held, before.held, "held"),
        (after.failed, before.failed, "failed"),
    ] {
        if new != old {
            changes.push(format!("{} {} {what}", new.abs_diff(old), than(new, old)));
        }
    }
    if after.pruned != before.pruned {
        changes.push(format!("{} pruned", after.pruned));
    }
    if changes.is_empty() { String::new() } else { changes.join(", ") + "\n" }
}

/// Width of the bar in characters, and of a line that fits a narrow terminal.
const BAR: i64 = 20;
const WIDTH: usize = 79;

/// Draws a progress bar.
fn bar(done: i64, all: i64) -> String {
    let full = match all {
        1.. => (done.clamp(0, all) * BAR / all).clamp(0, BAR),
        _ => 0,
    };
    let part = |mark: &str, count: i64| mark.repeat(usize::try_from(count).unwrap_or_default());
    format!("[{}{}]", part("#", full), part("-", BAR - full))
}

/// Prints the progress: as a bar in one line on a terminal, else as a line for each change.
struct Progress {
    shown: String,
    terminal: bool,
}

impl Progress {
    fn show(&mut self, sync: &SyncResource, streams: &mut Streams<'_>) {
        let counts = sync.status.objects.unwrap_or_default();
        let (_, reason, message) = ready(&sync.status);
        let why = if reason.is_empty() { message.to_owned() } else { format!("{reason}: {message}") };
        let line = format!("{}/{} objects, {why}", counts.applied, counts.desired);
        if line == self.shown {
            return;
        }
        if self.terminal {
            let whole = format!("{} {}", bar(counts.applied, counts.desired), sanitize(&line));
            let short: String = whole.chars().take(WIDTH).collect();
            let _ = write!(streams.messages, "\r\u{1b}[K{short}");
            let _ = streams.messages.flush();
        } else {
            streams.say(&line);
        }
        self.shown = line;
    }

    fn end(&self, streams: &mut Streams<'_>) {
        if self.terminal {
            let _ = write!(streams.messages, "\r\u{1b}[K");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_changed_numbers_are_printed() {
        let counts = |desired, applied, held, failed, pruned| ObjectCounts {
            desired,
            applied,
            held,
            failed,
            pruned,
            drifted: 0,
        };
        let before = counts(4, 4, 0, 0, 12);
        for (after, expect) in [
            (before, ""),
            (ObjectCounts { drifted: 3, ..before }, ""),
            (counts(6, 6, 0, 0, 1), "2 objects more in Git, 2 more applied, 1 pruned\n"),
            (counts(3, 3, 1, 0, 12), "1 object fewer in Git, 1 fewer applied, 1 more held\n"),
            (counts(4, 2, 0, 2, 12), "2 fewer applied, 2 more failed\n"),
            (counts(5, 4, 0, 1, 12), "1 object more in Git, 1 more failed\n"),
        ] {
            assert_eq!(changes(before, after), expect);
        }
        // The API server accepts any number.
        let far = changes(counts(i64::MIN, 0, 0, 0, 0), counts(i64::MAX, 0, 0, 0, 0));
        assert_eq!(far, format!("{} objects more in Git\n", u64::MAX));
    }

    #[test]
    fn a_bar_is_as_long_as_it_says() {
        assert_eq!(bar(0, 0), "[--------------------]");
        assert_eq!(bar(0, 3), "[--------------------]");
        assert_eq!(bar(2, 3), "[#############-------]");
        assert_eq!(bar(3, 3), "[####################]");
        assert_eq!(bar(9, 3), bar(3, 3));
        assert_eq!(bar(-1, -3), bar(0, 3));
    }
}
