//! Decides if a person may act, and hands the action to the task that writes.
//!
//! In: a POST. Out: what was done, as a sentence, or an [`ActionError`]. The order of the checks is
//! that of their cost: viewer, session, form, rights.

use std::time::Duration;

use tokio::sync::oneshot;
use tokio::time::timeout;

use super::{Action, ActionError, ActionKind, ActionRequest, parse_form};
use crate::api::SyncName;
use crate::serve::login::{Session, verify_csrf};
use crate::serve::page::path_segments;
use crate::serve::rights::ConsoleAccess;
use crate::serve::viewer::{AccessQuestion, Viewer};

/// The longest wait for the writes of an action.
const ACTION_TIMEOUT: Duration = Duration::from_secs(20);

/// The Sync and the kind of action in a path; the kind is `None` if there is none of that name.
pub(in crate::serve) fn action_path(path: &str) -> Option<(SyncName, Option<ActionKind>)> {
    let parts = path_segments(path)?;
    let words: Vec<&str> = parts.iter().map(String::as_str).collect();
    match words.as_slice() {
        ["syncs", namespace, name, "actions", kind] => {
            Some((SyncName::new(namespace, name), ActionKind::parse(kind)))
        }
        _ => None,
    }
}

/// Does an action for a viewer.
pub(in crate::serve) async fn decide(
    access: &ConsoleAccess,
    (viewer, session): (&Viewer, &Session),
    (sync, kind): (SyncName, ActionKind),
    form: &str,
) -> Result<String, ActionError> {
    let Viewer::Person(person) = viewer else {
        return Err(ActionError::Forbidden("nobody is signed in: this page is read-only".to_owned()));
    };
    let (action, token) = parse_form(kind, form)?;
    if !verify_csrf(session, &token) {
        let text = "the form is of another session: load the page again";
        return Err(ActionError::Forbidden(text.to_owned()));
    }
    for question in questions(&sync, kind, &action) {
        let may = access.reviews.is_allowed(viewer, question.clone()).await;
        if !may.map_err(ActionError::Forbidden)? {
            let (person, verb, resource) = (&person.user, &question.verb, &question.resource);
            let place = question.namespace.unwrap_or_default();
            return Err(ActionError::Forbidden(format!("{person} may not {verb} {resource} in {place}")));
        }
    }
    let (answer, answered) = oneshot::channel();
    let request = ActionRequest { person: person.clone(), sync, action, answer };
    let busy = || ActionError::Failed("too many actions at a time: try again in a moment".to_owned());
    access.actions.try_send(request).map_err(|_| busy())?;
    let late = || ActionError::Failed("the API server did not answer in time: look again".to_owned());
    timeout(ACTION_TIMEOUT, answered).await.map_err(|_| late())?.map_err(|_| late())?
}

/// The rights that an action takes. A person who may not read the Sync learns nothing of it.
fn questions(sync: &SyncName, kind: ActionKind, action: &Action) -> Vec<AccessQuestion> {
    let reads = AccessQuestion::sync("get", &sync.namespace);
    match (kind.verb(), action) {
        (Some(verb), _) => vec![reads, AccessQuestion::sync(verb, &sync.namespace)],
        (None, Action::Restart(id)) => vec![reads, AccessQuestion::of_kind("patch", id)],
        (None, _) => vec![reads],
    }
}
