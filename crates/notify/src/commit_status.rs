//! A commit status, as every host of repositories has it.
//!
//! In: a Sync, a record, and the text of the notification.
//! Out: [`CommitStatus`]; the module of each host builds its request. A later status with the same
//! context replaces the earlier one, so a repeated request shows nothing twice.

use moorline_api::{NotificationRecord, Transition, TransitionDetails};

use crate::selection::CompiledNotifier;
use crate::subject::Subject;
use crate::text::{cut, sentence};

/// Maximum number of characters of a description: GitHub refuses a longer one.
const MAX_DESCRIPTION: usize = 140;
/// Number of hex digits of a commit: SHA-1 or SHA-256.
const COMMIT_DIGITS: [usize; 2] = [40, 64];

/// State of a commit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CommitState {
    /// More follows.
    Pending,
    /// It is done.
    Success,
    /// It failed.
    Failure,
}

/// A status of a commit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommitStatus {
    /// The repository on its host, such as `group/name`.
    pub repository: Box<str>,
    /// The commit, in hex digits.
    pub commit: Box<str>,
    /// The state.
    pub state: CommitState,
    /// The name of the status: one for each Sync of each cluster.
    pub context: String,
    /// Text for people, at most 140 characters.
    pub description: String,
}

impl CommitStatus {
    /// Returns the status of a record; none if it is about no commit of a hosted repository.
    pub fn of_record(
        notifier: &CompiledNotifier,
        subject: &Subject,
        record: &NotificationRecord,
    ) -> Option<Self> {
        let details = record.details.clone().unwrap_or_default();
        let repository = subject.repository.as_ref()?.path.clone();
        let state = match record.transition {
            // An applied revision waits for its health, if that is sent, too.
            Transition::Applied if notifier.is_on(Transition::Healthy) => CommitState::Pending,
            Transition::Applied | Transition::Healthy | Transition::DriftRepaired | Transition::Recovered => {
                CommitState::Success
            }
            Transition::PruneHeld => CommitState::Pending,
            Transition::Degraded | Transition::Failed | Transition::RolledBack => CommitState::Failure,
        };
        let text = match notifier.has_message() {
            true => notifier.text(subject, record).replace('\n', " "),
            false => sentence(record.transition, &details),
        };
        Some(Self {
            repository,
            commit: commit(&details)?.into(),
            state,
            context: subject.context(),
            description: cut(&text, MAX_DESCRIPTION),
        })
    }
}

/// Returns the commit of a revision such as `main@1f0c...+shop:1.2.3@sha256:...`.
pub(crate) fn commit(details: &TransitionDetails) -> Option<&str> {
    let is_commit = |text: &&str| {
        COMMIT_DIGITS.contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_hexdigit())
    };
    // A branch or tag may have a plus, and a pinned commit has no name.
    details.revision.split('+').filter_map(|part| part.rsplit('@').next()).find(is_commit)
}
