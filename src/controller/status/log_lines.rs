//! Log lines about conditions that last: one line at each transition, further ones are counted.
//!
//! In: a line about a Sync, with its subject. Out: the line in the log, or a count. Every line
//! names the Sync, and the object if it is about one.

use std::collections::{BTreeSet, HashMap};
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use tracing::field::display;

use crate::api::SyncName;
use crate::clock;
use crate::grammar;
use crate::log_repeats::{LogDecision, LogRepeats};
use crate::object::ObjectId;

/// Open subjects of all Syncs.
#[derive(Debug)]
pub(crate) struct Lines {
    began: Instant,
    open: Mutex<HashMap<SyncName, LogRepeats>>,
}

impl Lines {
    pub(crate) fn new() -> Self {
        Self { began: clock::now(), open: Mutex::default() }
    }

    fn of<T>(&self, sync: &SyncName, work: impl FnOnce(&mut LogRepeats) -> T) -> T {
        let mut syncs = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        work(syncs.entry(sync.clone()).or_default())
    }

    /// Removes a Sync.
    pub(crate) fn forget(&self, sync: &SyncName) {
        self.open.lock().unwrap_or_else(PoisonError::into_inner).remove(sync);
    }
}

/// Subject of a line.
#[derive(Debug, Clone, Copy)]
pub(crate) enum LogSubject<'a> {
    /// An object that failed.
    Object(&'a ObjectId),
    /// The spec of the Sync.
    Spec,
    /// The repository.
    Source,
    /// The reconcile as a whole.
    Pass,
    /// The newest commit, while another one is held.
    Refusal,
    /// The counts of a reconcile that changes nothing.
    Result,
    /// The permissions of the Sync.
    Rights,
    /// The health of the objects.
    Health,
    /// The namespace that the Sync creates.
    Namespace,
    /// The status of the Sync.
    Status,
    /// The deletion of the Sync.
    Deletion,
    /// The daemon that serves the Sync.
    Holder,
}

/// Prefix of subjects that are objects.
const OBJECT: &str = "object ";

impl<'a> LogSubject<'a> {
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

/// Level of a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Tone {
    /// A person has to act.
    Warning,
    /// The condition ends without a person.
    Normal,
}

/// Returns the text for attempts that were counted without a line.
fn tries(counted: u64) -> String {
    grammar::more(counted, "try")
}

impl Lines {
    /// Logs a condition if it is new, else counts it.
    pub(crate) fn log_condition(
        &self,
        sync: &SyncName,
        about: LogSubject<'_>,
        tone: Tone,
        reason: &str,
        text: &str,
    ) {
        let (subject, now) = (about.subject(), clock::since(self.began));
        let line = self.of(sync, |open| open.record(&subject, &format!("{reason} {text}"), now));
        let object = about.object().map(display);
        let text = match line {
            LogDecision::New(0) => text.to_owned(),
            LogDecision::New(counted) => format!("{text} (before that {}, not logged)", tries(counted)),
            LogDecision::Ongoing(counted) => format!("unchanged after {}: {text}", tries(counted)),
            LogDecision::Suppressed => {
                tracing::debug!(%sync, object, reason, "{text}");
                return;
            }
        };
        match tone {
            Tone::Warning => tracing::warn!(%sync, object, reason, "{text}"),
            Tone::Normal => tracing::info!(%sync, object, reason, "{text}"),
        }
    }

    /// Ends a condition.
    pub(crate) fn end_condition(&self, sync: &SyncName, about: LogSubject<'_>) {
        let counted = self.of(sync, |open| open.close(&about.subject()));
        if let Some(counted) = counted.filter(|counted| *counted > 0) {
            let (object, what) = (about.object().map(display), about.over());
            tracing::info!(%sync, object, "{what} after {}", tries(counted));
        }
    }

    /// Logs that another daemon serves the Sync, or no longer does.
    pub(crate) fn is_served_by(&self, sync: &SyncName, lease: &str, is_served: bool) {
        match is_served {
            true => {
                let text = format!("another daemon serves the Sync, with the Lease {lease}");
                self.log_condition(sync, LogSubject::Holder, Tone::Warning, "HeldByOther", &text);
            }
            false => self.end_condition(sync, LogSubject::Holder),
        }
    }

    /// Ends the failures of all other objects.
    pub(crate) fn only_these_fail(&self, sync: &SyncName, failing: &BTreeSet<&ObjectId>) {
        let failing: BTreeSet<String> = failing.iter().map(ToString::to_string).collect();
        let stays =
            |subject: &str| subject.strip_prefix(OBJECT).is_none_or(|object| failing.contains(object));
        for (subject, counted) in self.of(sync, |open| open.close_others(stays)) {
            let object = subject.trim_start_matches(OBJECT);
            tracing::info!(%sync, object, "no longer fails after {}", tries(counted));
        }
    }
}

impl LogSubject<'_> {
    /// Returns the end of the line that ends the condition.
    fn over(self) -> &'static str {
        match self {
            Self::Object(_) => "no longer fails",
            Self::Spec => "the spec is accepted",
            Self::Source => "the repository answers",
            Self::Pass => "the reconcile completes again",
            Self::Refusal => "no newer commit is refused",
            Self::Result => "a reconcile changes objects again",
            Self::Rights => "no permission is missing",
            Self::Health => "no object is degraded",
            Self::Namespace => "the namespace exists",
            Self::Status => "the status is written",
            Self::Deletion => "the deletion continues",
            Self::Holder => "the Sync is no longer served by another daemon",
        }
    }
}
