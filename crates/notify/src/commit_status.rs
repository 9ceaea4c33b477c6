//! A commit status, as every host of repositories has it.
//!
//! In: a Sync, a record, and the text of the notification.
//! Out: [`CommitStatus`]; `pull_requests/host_requests.rs` builds its request. A later status with
//! the same context replaces the earlier one, so a repeated request shows nothing twice.

use moorline_api::{NotificationRecord, Transition, TransitionDetails, split_chart};

use crate::pull_requests::CheckState;
use crate::selection::CompiledNotifier;
use crate::subject::Subject;
use crate::text::sentence;
use crate::transitions::Occurrence;

/// Number of hex digits of a commit: SHA-1 or SHA-256.
const COMMIT_DIGITS: [usize; 2] = [40, 64];

/// A status of a commit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CommitStatus {
    /// The repository on its host, such as `group/name`.
    pub(crate) repository: Box<str>,
    /// The commit, in hex digits.
    pub(crate) commit: Box<str>,
    /// The state.
    pub(crate) state: CheckState,
    /// The name of the status: one for each Sync of each cluster.
    pub(crate) context: String,
    /// Text for people.
    pub(crate) description: String,
}

impl CommitStatus {
    /// Returns the status of a record; none if it is about no commit of a hosted repository.
    pub(crate) fn of_record(
        notifier: &CompiledNotifier,
        subject: &Subject,
        record: &NotificationRecord,
    ) -> Option<Self> {
        let details = record.details.clone().unwrap_or_default();
        let repository = subject.repository.as_ref()?.path.clone();
        let text = match notifier.has_message() {
            true => notifier.text(subject, record).replace('\n', " "),
            false => sentence(record.transition, &details),
        };
        Some(Self {
            repository,
            commit: commit(&details)?.into(),
            state: state(notifier, record.transition)?,
            context: subject.context(),
            description: text,
        })
    }
}

/// True if an occurrence sets the status of a commit.
pub(crate) fn sets_status(notifier: &CompiledNotifier, occurrence: &Occurrence) -> bool {
    state(notifier, occurrence.transition).is_some() && commit(&occurrence.details).is_some()
}

/// Returns the state that a transition sets; none if it says nothing about the commit.
fn state(notifier: &CompiledNotifier, transition: Transition) -> Option<CheckState> {
    match transition {
        // An applied revision waits for its health, if that is sent, too.
        Transition::Applied if notifier.is_on(Transition::Healthy) => Some(CheckState::Pending),
        Transition::Applied | Transition::Healthy | Transition::Recovered => Some(CheckState::Success),
        Transition::PruneHeld | Transition::ApprovalRequired => Some(CheckState::Pending),
        Transition::Degraded | Transition::Failed | Transition::RolledBack => Some(CheckState::Failure),
        // The commit is as good as before.
        Transition::DriftRepaired => None,
    }
}

/// Returns the commit of a revision such as `main@1f0c...+shop:1.2.3@sha256:...`.
fn commit(details: &TransitionDetails) -> Option<&str> {
    let is_commit = |text: &&str| {
        COMMIT_DIGITS.contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_hexdigit())
    };
    // A pinned commit has no name.
    split_chart(&details.revision).0.rsplit('@').next().filter(is_commit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_commit_is_that_of_the_repository() {
        let (one, other, artifact) = ("1f".repeat(20), "2e".repeat(20), "3d".repeat(32));
        let chart = format!("+shop:1.2.3+b@sha256:{artifact}");
        let mount = format!("+vendor/base/:main@{other}");
        for (revision, expect) in [
            (format!("main@{one}"), Some(&one)),
            (one.clone(), Some(&one)),
            (format!("a+b@{one}"), Some(&one)),
            (format!("{other}+b@{one}"), Some(&one)),
            (format!("main@{one}{chart}"), Some(&one)),
            (format!("{one}{chart}{mount}"), Some(&one)),
            (format!("a+b@{one}{mount}"), Some(&one)),
            (format!("v1@sha256:{artifact}"), None),
            (format!("v1@sha256:{artifact}{mount}"), None),
            (String::new(), None),
        ] {
            let details = TransitionDetails { revision: revision.clone(), ..TransitionDetails::default() };
            assert_eq!(commit(&details), expect.map(String::as_str), "{revision}");
        }
    }
}
