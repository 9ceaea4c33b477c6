//! Rights and writes of the user of a local console, as the user.
//!
//! In: questions and actions of the page. Out: answers of the API server about the user's own
//! rights, and patches of Syncs with the user's kubeconfig. The admission policy of the chart
//! decides about them as about those of kubectl.

use serde_json::json;
use tokio::sync::mpsc;

use crate::api::SyncName;
use crate::cluster::{Connection, OperatorError};
use crate::controller::console::reviews::Asked;
use crate::serve::LiveRequest;
use crate::serve::actions::{Action, ActionError, ActionRequest, change_of};

/// Attempts while the Sync keeps changing.
const MAX_ATTEMPTS: usize = 5;

/// Asks what the user may do.
pub(super) async fn review(connection: Connection, (_, question): Asked) -> Result<bool, String> {
    if question.kind().is_some() {
        return Ok(false);
    }
    let namespace = question.namespace.as_deref().unwrap_or_default();
    let attributes = json!({
        "verb": question.verb, "group": question.group, "resource": question.resource,
        "subresource": question.subresource, "namespace": namespace,
    });
    let may = connection.may_caller(&attributes).await;
    may.ok_or_else(|| "the API server does not say what you may do".to_owned())
}

/// Objects are not listed here, so none is read.
pub(super) async fn refuse_looks(mut looks: mpsc::Receiver<LiveRequest>) {
    let why = || "objects are on the console of the daemon".to_owned();
    while let Some(look) = looks.recv().await {
        // The user may have left the page.
        match look {
            LiveRequest::Object(wanted) => drop(wanted.answer.send(Err(why()))),
            LiveRequest::Tree { answer, .. } => drop(answer.send(Err(why()))),
            LiveRequest::Events { answer, .. } => drop(answer.send(Err(why()))),
            LiveRequest::NextPlan { answer, .. } => drop(answer.send(Err(why()))),
            LiveRequest::Log(wanted) => drop(wanted.answer.send(Err(why()))),
        }
    }
}

/// Does actions until the channel is closed.
pub(super) async fn serve_actions(connection: Connection, mut actions: mpsc::Receiver<ActionRequest>) {
    while let Some(ActionRequest { person, sync, action, answer }) = actions.recv().await {
        // The user may have left the page.
        let _ = answer.send(act(&connection, &sync, &action, &person.user).await);
    }
}

async fn act(
    connection: &Connection,
    name: &SyncName,
    action: &Action,
    by: &str,
) -> Result<String, ActionError> {
    if let Action::Restart(id) = action {
        let (kind, object, namespace) =
            (id.kind().to_lowercase(), id.name(), id.namespace().unwrap_or_default());
        let command = format!("kubectl rollout restart {kind} {object} -n {namespace}");
        return Err(ActionError::Invalid(format!("this console restarts nothing: run {command}")));
    }
    let request = format!("moorline-console-{}", jiff::Timestamp::now());
    for _ in 0..MAX_ATTEMPTS {
        let sync = connection.sync(name).await.map_err(failed)?;
        let live = serde_json::to_value(&sync.resource).unwrap_or_default();
        let change = change_of(action, &live, by, &request)?;
        match connection.change_sync(name, change.patch).await {
            Ok(_) => return Ok(change.deed),
            Err(OperatorError::Changed(_)) => {}
            Err(error) => return Err(failed(error)),
        }
    }
    Err(ActionError::Changed("it was changed meanwhile".to_owned()))
}

fn failed(error: OperatorError) -> ActionError {
    match error {
        OperatorError::NoSync { .. } => ActionError::Unknown,
        OperatorError::Refused(message) => ActionError::Forbidden(message.into()),
        OperatorError::NoDefinition | OperatorError::Changed(_) | OperatorError::Unreachable(_) => {
            ActionError::Failed(error.to_string())
        }
    }
}
