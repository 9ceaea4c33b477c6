//! Log lines of states that last: one at each transition, the rest counted.
//!
//! In: a line about a Sync, with its subject. Out: the line in the log, or a count. Every line names the Sync, and the object
//! where it is about one.

use std::collections::{BTreeSet, HashMap};
use std::sync::{Mutex, PoisonError};

use tracing::field::display;

use super::Context;
use crate::api::SyncName;
use crate::grammar;
use crate::object::ObjectId;
use crate::repeats::{Line, Repeats};

/// The open subjects of all Syncs.
#[derive(Debug, Default)]
pub(crate) struct Lines(Mutex<HashMap<SyncName, Repeats>>);

impl Lines {
    fn of<T>(&self, sync: &SyncName, work: impl FnOnce(&mut Repeats) -> T) -> T {
        let mut syncs = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        work(syncs.entry(sync.clone()).or_default())
    }

    /// Forgets a Sync that is gone.
    pub(crate) fn forget(&self, sync: &SyncName) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(sync);
    }
}

/// The subject of a line.
#[derive(Debug, Clone, Copy)]
pub(crate) enum About<'a> {
    /// An object that failed.
    Object(&'a ObjectId),
    /// The spec of the Sync.
    Spec,
    /// The repository.
    Source,
    /// The pass as a whole.
    Pass,
    /// The newest commit, while another one is kept.
    Refusal,
    /// The counts of a pass that changes nothing.
    Result,
    /// The rights of the Sync.
    Rights,
    /// The health of the objects.
    Health,
    /// The namespace that the Sync creates.
    Namespace,
    /// The status of the Sync.
    Status,
    /// The end of the Sync.
    Deletion,
    /// The daemon that serves the Sync.
    Holder,
}

/// Begins the name of an object among the subjects.
const OBJECT: &str = "object ";

impl<'a> About<'a> {
    fn subject(self) -> String {
        match self {
            Self::Object(id) => format!("{OBJECT}{id}"),
            other => format!("{other:?}"),
        }
    }

    fn object(self) -> Option<&'a ObjectId> {
        match self {
            Self::Object(id) => Some(id),
            _ => None,
        }
    }
}

/// How bad it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Tone {
    /// Somebody has to do something.
    Warning,
    /// It goes on by itself.
    Normal,
}

/// So many tries of which there is no line.
fn tries(counted: u64) -> String {
    grammar::more(counted, "try")
}

impl Context {
    /// Logs a line about a state, if that is news.
    pub(crate) fn says(&self, sync: &SyncName, about: About<'_>, tone: Tone, reason: &str, text: &str) {
        let (subject, now) = (about.subject(), self.now());
        let line = self.lines.of(sync, |open| open.note(&subject, &format!("{reason} {text}"), now));
        let object = about.object().map(display);
        let text = match line {
            Line::News(0) => text.to_owned(),
            Line::News(counted) => format!("{text} (before that {}, not logged)", tries(counted)),
            Line::Still(counted) => format!("still so after {}: {text}", tries(counted)),
            Line::Counted => {
                tracing::debug!(%sync, object, reason, "{text}");
                return;
            }
        };
        match tone {
            Tone::Warning => tracing::warn!(%sync, object, reason, "{text}"),
            Tone::Normal => tracing::info!(%sync, object, reason, "{text}"),
        }
    }

    /// A state is over.
    pub(crate) fn is_over(&self, sync: &SyncName, about: About<'_>) {
        let counted = self.lines.of(sync, |open| open.close(&about.subject()));
        if let Some(counted) = counted.filter(|counted| *counted > 0) {
            let (object, what) = (about.object().map(display), about.over());
            tracing::info!(%sync, object, "{what} after {}", tries(counted));
        }
    }

    /// Another daemon serves the Sync, or not any more.
    pub(crate) fn is_served_by(&self, sync: &SyncName, lease: &str, is_served: bool) {
        match is_served {
            true => {
                let text = format!("another daemon serves the Sync, with the Lease {lease}");
                self.says(sync, About::Holder, Tone::Warning, "HeldByOther", &text);
            }
            false => self.is_over(sync, About::Holder),
        }
    }

    /// No other object than these fails any more.
    pub(crate) fn only_these_fail(&self, sync: &SyncName, failing: &BTreeSet<&ObjectId>) {
        let failing: BTreeSet<String> = failing.iter().map(ToString::to_string).collect();
        let stays =
            |subject: &str| subject.strip_prefix(OBJECT).is_none_or(|object| failing.contains(object));
        for (subject, counted) in self.lines.of(sync, |open| open.close_others(stays)) {
            let object = subject.trim_start_matches(OBJECT);
            tracing::info!(%sync, object, "does not fail any more after {}", tries(counted));
        }
    }
}

impl About<'_> {
    /// The end of a line that says that the state is over.
    fn over(self) -> &'static str {
        match self {
            Self::Object(_) => "does not fail any more",
            Self::Spec => "the spec is taken up",
            Self::Source => "the repository answers",
            Self::Pass => "the pass comes to its end",
            Self::Refusal => "no newer commit is refused",
            Self::Result => "a pass changes something again",
            Self::Rights => "no right is missing",
            Self::Health => "no object is degraded",
            Self::Namespace => "the namespace is there",
            Self::Status => "the status is written",
            Self::Deletion => "the deletion goes on",
            Self::Holder => "no other daemon serves the Sync",
        }
    }
}
