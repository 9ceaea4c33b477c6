//! How the commit that a Sync is held to follows from the one before.
//!
//! In: two revisions of one ref. Out: whether the second has the first in its history, asked once the cluster is held
//! to it, so that no commit is late for it. A force push is told only where it is proven.

use std::time::Duration;

use crate::api::EventReason;
use crate::clock;
use crate::source::{History, Repository, Revision};

/// So long a server may take to tell of the past; nothing waits for it but those who ask it for more.
const PATIENCE: Duration = Duration::from_secs(20);

/// How one commit came after another.
#[derive(Debug)]
pub(crate) struct Lineage {
    pub(crate) before: Revision,
    pub(crate) now: Revision,
    history: History,
}

impl Lineage {
    /// Asks how `now` came after `before`.
    pub(crate) async fn find(repository: Repository, before: Revision, now: Revision) -> Self {
        let history = match repository.history(before.commit, now.commit, clock::now() + PATIENCE).await {
            Ok(history) => history,
            Err(error) => {
                tracing::debug!(%before, %now, %error, "the history could not be asked for");
                History::Unknown
            }
        };
        Self { before, now, history }
    }

    /// What there is to say of it: a type, a reason and a note, as an Event has them.
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
        };
        let news = |history| Lineage { before: revision("a"), now: revision("b"), history }.news();
        assert_eq!(news(History::Forward), None);
        let (type_, reason, note) = news(History::Rewritten).unwrap();
        assert_eq!((type_, reason), ("Warning", EventReason::ForcePush));
        let (old, new) = ("a".repeat(40), "b".repeat(40));
        assert_eq!(note, format!("force push: main@{new} does not have {old} in its history"));
        assert_eq!(news(History::Unknown).unwrap().1, EventReason::HistoryUnknown);
    }
}
