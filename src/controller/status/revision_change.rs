//! Relation of a new commit to the previous one: a successor, a force push, or unknown.
//!
//! In: two revisions of one ref. Out: true if the second has the first in its history. The request
//! to the server follows the reconcile of the new commit, so that no commit is delayed. A force
//! push is reported only where it is proven.

use std::time::Duration;

use crate::api::EventReason;
use crate::clock;
use crate::source::{History, Repository, Revision};

/// Time limit of the request; only further requests for history wait for it.
const HISTORY_TIMEOUT: Duration = Duration::from_secs(20);

/// Relation of one commit to the previous one.
#[derive(Debug)]
pub(crate) struct RevisionChange {
    pub(crate) before: Revision,
    pub(crate) now: Revision,
    history: History,
}

impl RevisionChange {
    /// Asks the server for the relation of `now` to `before`.
    pub(crate) async fn find(repository: Repository, before: Revision, now: Revision) -> Self {
        let history =
            match repository.history(before.commit, now.commit, clock::now() + HISTORY_TIMEOUT).await {
                Ok(history) => history,
                Err(error) => {
                    tracing::debug!(%before, %now, %error, "the history could not be fetched");
                    History::Unknown
                }
            };
        Self { before, now, history }
    }

    /// Returns the Event about it, if any: type, reason and note.
    pub(crate) fn news(&self) -> Option<(&'static str, EventReason, String)> {
        let Self { before, now, history } = self;
        match history {
            History::Forward => None,
            History::Rewritten => {
                let note = format!("force push: {now} does not have {} in its history", before.commit);
                Some(("Warning", EventReason::ForcePush, note))
            }
            History::Unknown => {
                let note =
                    format!("history unknown: it could not be proven that {now} follows {}", before.commit);
                Some(("Normal", EventReason::HistoryUnknown, note))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::ObjectHash;

    #[test]
    fn a_commit_that_follows_the_last_is_no_news() {
        let revision = |digit: &str| Revision {
            commit: ObjectHash::parse(&digit.repeat(40)).unwrap(),
            name: "refs/heads/main".into(),
            tag: None,
            chart: None,
            mounts: Vec::new(),
        };
        let news = |history| RevisionChange { before: revision("a"), now: revision("b"), history }.news();
        assert_eq!(news(History::Forward), None);
        let (type_, reason, note) = news(History::Rewritten).unwrap();
        assert_eq!((type_, reason), ("Warning", EventReason::ForcePush));
        let (old, new) = ("a".repeat(40), "b".repeat(40));
        assert_eq!(note, format!("force push: main@{new} does not have {old} in its history"));
        assert_eq!(news(History::Unknown).unwrap().1, EventReason::HistoryUnknown);
    }
}
