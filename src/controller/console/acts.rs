//! Writes the actions of people, with the daemon's rights and the person's name.
//!
//! In: actions that Kubernetes has granted to a person. Out: one patch of the Sync that is valid
//! for one resourceVersion only, an Event on the Sync, and a line of the journal. Only Syncs that
//! this daemon serves are changed.

use std::sync::Arc;

use serde_json::Value;
use tokio::sync::{Semaphore, mpsc, oneshot};

use super::{ConsoleWork, restart};
use crate::api::{EventReason, SyncName};
use crate::cluster::ApiError;
use crate::controller::status::events::event;
use crate::journal::{Change, Entry, Reason};
use crate::serve::actions::{Action, ActionError, ActionRequest, SyncChange, change_of};

/// Actions at the same time.
const SIDE_BY_SIDE: usize = 4;
/// Attempts while others change the Sync, such as the daemon its status.
const MAX_ATTEMPTS: usize = 5;

/// Reason of a change that came too late.
const CHANGED: &str = "it was changed meanwhile";

/// Receives the result of an action; closed once nobody waits for it.
type Answer = oneshot::Sender<Result<String, ActionError>>;

/// Serves actions until the channel is closed.
pub(super) async fn serve_actions(work: ConsoleWork, mut actions: mpsc::Receiver<ActionRequest>) {
    let turns = Arc::new(Semaphore::new(SIDE_BY_SIDE));
    while let Some(request) = actions.recv().await {
        let Ok(turn) = turns.clone().acquire_owned().await else { return };
        let work = work.clone();
        tokio::spawn(async move {
            let ActionRequest { person, sync, action, answer } = request;
            // Nobody waits for an action that came too late: the right may have ended meanwhile.
            let done = match answer.is_closed() {
                true => Err(late()),
                false => act(&work, &sync, &action, &person.user, &answer).await,
            };
            match &done {
                Ok(deed) => tracing::info!(%sync, person = person.user, "console: {deed}"),
                Err(refused) => tracing::info!(%sync, person = person.user, "console: not done: {refused}"),
            }
            // The person may have left the page.
            let _ = answer.send(done);
            drop(turn);
        });
    }
}

/// The error of a request of the daemon.
pub(super) fn failed(failure: &ApiError) -> ActionError {
    match failure.code() {
        Some(404) => ActionError::Unknown,
        Some(409) => ActionError::Changed(CHANGED.to_owned()),
        _ => ActionError::Failed(failure.to_string()),
    }
}

fn late() -> ActionError {
    ActionError::Failed("it was too late: decide again".to_owned())
}

/// Does one action, and returns the sentence about it.
async fn act(
    work: &ConsoleWork,
    sync: &SyncName,
    action: &Action,
    by: &str,
    answer: &Answer,
) -> Result<String, ActionError> {
    if !work.board.borrow().cards.contains_key(sync) {
        return Err(ActionError::Unknown);
    }
    let (deed, uid) = match action {
        Action::Restart(id) => {
            let live = read(work, sync).await?;
            (restart::restart(work, sync, id, by).await?, uid(&live))
        }
        Action::Sync
        | Action::Retry
        | Action::Suspend
        | Action::Resume
        | Action::Approve(_)
        | Action::Rollback { .. }
        | Action::Release(_) => {
            let (live, change, version) = write(work, sync, action, by, answer).await?;
            record(work, sync, &change, (&uid(&live), version), by);
            (change.deed, uid(&live))
        }
    };
    let text = format!("{by} {deed}, on the console");
    let note = event(sync, &uid, "Normal", &EventReason::ConsoleAction.to_string(), &text);
    if let Err(failure) = work.cluster.syncs().write_event(note, &sync.namespace).await {
        tracing::warn!(%sync, %failure, "there is no Event about: {text}");
    }
    Ok(text)
}

/// Changes the Sync if what the action is about is still as it was shown. Other changes are no
/// obstacle: the Sync is read again.
async fn write(
    work: &ConsoleWork,
    sync: &SyncName,
    action: &Action,
    by: &str,
    answer: &Answer,
) -> Result<(Value, SyncChange, u64), ActionError> {
    let request = format!("moorline-console-{}", jiff::Timestamp::now());
    for _ in 0..MAX_ATTEMPTS {
        let live = read(work, sync).await?;
        let change = change_of(action, &live, by, &request)?;
        if answer.is_closed() {
            return Err(late());
        }
        match work.cluster.syncs().change(sync, &change.patch).await {
            Ok(version) => return Ok((live, change, version)),
            Err(failure) if failure.code() == Some(409) => {}
            Err(failure) => return Err(failed(&failure)),
        }
    }
    Err(ActionError::Changed(CHANGED.to_owned()))
}

async fn read(work: &ConsoleWork, sync: &SyncName) -> Result<Value, ActionError> {
    let live = work.cluster.syncs().read_whole(sync).await.map_err(|failure| failed(&failure))?;
    live.ok_or(ActionError::Unknown)
}

fn uid(sync: &Value) -> String {
    sync.pointer("/metadata/uid").and_then(Value::as_str).unwrap_or_default().to_owned()
}

/// Adds a line to the journal. It is about the Sync, not about an object of one.
fn record(work: &ConsoleWork, sync: &SyncName, change: &SyncChange, (uid, version): (&str, u64), by: &str) {
    work.cluster.journal().record(Entry {
        reason: Reason::Console,
        sync: Some(sync.to_string()),
        change: Some(Change::Updated),
        uid: Some(uid.to_owned()),
        version: Some(version.to_string()),
        person: Some(by.to_owned()),
        action: Some(change.deed.clone()),
        approval: change.approval.clone(),
        ..Entry::default()
    });
}
