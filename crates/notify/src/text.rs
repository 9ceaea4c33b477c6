//! Texts of notifications for people.
//!
//! In: a Sync, a transition and its details.
//! Out: one line, and the short form of a revision.

use moorline_api::{Transition, TransitionDetails, short_revision};

use crate::subject::Subject;

/// Returns the usual text.
pub(crate) fn usual_text(subject: &Subject, transition: Transition, details: &TransitionDetails) -> String {
    let name = format!("{}/{} in {}", subject.namespace, subject.name, subject.cluster);
    format!("{name}: {}", sentence(transition, details))
}

/// Returns the sentence about a transition, without the Sync.
pub(crate) fn sentence(transition: Transition, details: &TransitionDetails) -> String {
    let revision = short_revision(&details.revision);
    let more = |text: &str| if text.is_empty() { String::new() } else { format!(": {text}") };
    match transition {
        Transition::Applied => {
            format!("{revision} is applied ({}){}", details.changes, more(&details.message))
        }
        Transition::Healthy => format!("{revision} is healthy{}", more(&details.message)),
        Transition::Degraded => format!("{revision} is degraded{}", more(&details.message)),
        Transition::Failed => {
            let what = if revision.is_empty() { "it".to_owned() } else { revision };
            format!("{what} cannot be applied ({}){}", details.reason, more(&details.message))
        }
        Transition::ApprovalRequired => format!("{revision} waits for approval{}", more(&details.message)),
        Transition::DriftRepaired | Transition::PruneHeld => details.message.clone(),
        Transition::RolledBack => {
            let before = short_revision(&details.previous_revision);
            format!("{revision} is rolled back to {before}{}", more(&details.message))
        }
        Transition::Recovered => format!("recovered at {revision}"),
    }
}

/// Cuts a text after a number of characters.
pub(crate) fn cut(text: &str, most: usize) -> String {
    match text.chars().count() > most {
        true => text.chars().take(most.saturating_sub(1)).chain(['…']).collect(),
        false => text.to_owned(),
    }
}
