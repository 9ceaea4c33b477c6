//! What is known of the last commits, for who has only just begun: of this daemon's time, or as the status says.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::oneshot;

use super::{Desk, MAX_NEWS, Ordered, PATIENCE, State};
use crate::api::{EventReason, Finished, HeldRevision, Scope, SyncName, SyncStatus};
use crate::clock;
use crate::cluster::Standing;
use crate::report::{Rejected, Trouble};
use crate::source::{Reference, Revision};
use crate::sync::event::transition;
use crate::sync::event_queue::Note;
use crate::sync::pass::Report;

impl Desk {
    /// The Sync.
    pub(crate) fn name(&self) -> &SyncName {
        &self.0.name
    }

    /// The status that stands.
    pub(crate) fn status(&self) -> SyncStatus {
        SyncStatus::clone(&self.lock().written)
    }

    /// True if this is still the Sync that asks for that.
    pub(crate) fn is_order_of(&self, order: u64, standing: &Standing) -> bool {
        let state = self.lock();
        let asked = Ordered { order, generation: standing.generation, moves_to: standing.moves_to.clone() };
        state.uid == standing.uid && state.ordered.as_ref() == Some(&asked)
    }

    /// True for the value of the annotation that was answered last.
    pub(crate) fn has_handled(&self, request: Option<&str>) -> bool {
        self.lock().written.last_handled_request.as_deref() == request
    }

    /// Writes down that a hook has run for the end of the Sync; false if that does not stand in time.
    pub(crate) async fn has_run(&self, hook: Finished, within: Duration) -> bool {
        let (done, wait) = oneshot::channel();
        {
            let mut state = self.lock();
            state.ran.push(hook);
            if state.has_written_last_hooks() {
                return true;
            }
            state.waiting.push(done);
        }
        self.0.changed.notify_one();
        tokio::time::timeout(within, wait).await.is_ok()
    }

    /// Where the Sync may have owned objects before.
    pub(crate) fn scope(&self) -> Option<Scope> {
        self.lock().written.scope.clone()
    }

    /// Writes down where the Sync is about to own objects; false if that does not stand in time.
    pub(crate) async fn record(&self, scope: Scope, within: Duration) -> bool {
        let (done, wait) = oneshot::channel();
        {
            let mut state = self.lock();
            state.scope = Some(scope);
            if state.written.scope == state.scope {
                return true;
            }
            state.waiting.push(done);
        }
        self.0.changed.notify_one();
        // Whoever would write it is gone only when the Sync is.
        tokio::time::timeout(within, wait).await.is_ok()
    }

    /// Names the revision that is about to be applied; false if that does not stand in time.
    pub(crate) async fn record_revision(&self, held: HeldRevision, within: Duration) -> bool {
        let (done, wait) = oneshot::channel();
        {
            let mut state = self.lock();
            state.held = Some(held);
            if state.has_written_held() {
                return true;
            }
            state.waiting.push(done);
        }
        self.0.urgent.notify_one();
        self.0.changed.notify_one();
        tokio::time::timeout(within, wait).await.is_ok()
    }

    /// Jobs, Pods and hooks that had come to their end before.
    pub(crate) fn finished(&self) -> Vec<Finished> {
        self.lock().written.finished.clone()
    }

    /// The revision that was seen last, if it was of this `source`, where `asked` was asked for.
    pub(crate) fn last_seen(&self, source: &str, asked: &Reference) -> Option<Revision> {
        let state = self.lock();
        // What was seen may not stand in the status yet.
        if let Some(seen) = state.seen.as_ref().filter(|seen| *seen.source == *source) {
            return Revision::read(&seen.revision, seen.tag.as_deref(), asked);
        }
        let known = state.written.revision.as_ref()?;
        let is_same = match &known.source {
            Some(of) => **of == *source,
            // A server whose definition of Syncs is older has left it out.
            None => state.written.observed_generation == state.generation,
        };
        let seen = known.seen.as_ref().filter(|_| is_same)?;
        Revision::read(seen, known.tag.as_deref(), asked)
    }
}

/// Everything that is wrong with a Sync, beside its objects.
pub(super) struct Wrong<'a> {
    /// The first of it.
    pub(super) trouble: Option<Cow<'a, Trouble>>,
    /// It is about the newest commit.
    pub(super) of_revision: bool,
    /// The commit that is refused, where it is about that.
    pub(super) refused: Option<String>,
}

impl State {
    /// The first thing that is wrong: the spec, the repository or a dependency before the newest commit.
    pub(super) fn trouble(&self) -> Wrong<'_> {
        let report = self.report.as_deref();
        let trouble = self.trouble_beside();
        let of_revision = trouble.is_none();
        let refused = report.and_then(|report| report.refused.as_ref()).filter(|_| of_revision);
        let of_report = report.and_then(|report| report.trouble.as_ref());
        Wrong {
            trouble: self.not_kept().map(Cow::Owned).or_else(|| {
                let of_pass = refused.and_then(|refused| refused.trouble.as_ref()).or(of_report);
                trouble.or(of_pass).map(Cow::Borrowed)
            }),
            of_revision,
            refused: refused.and_then(|refused| Some(refused.revision.as_ref()?.to_string())),
        }
    }

    /// The trouble beside that of the last pass, with the revision that is not kept because of it: nothing of the Sync is
    /// followed any more, or the pass could not keep it.
    fn not_kept(&self) -> Option<Trouble> {
        let is_lost = self.refused.is_some() && !self.is_followed
            || self.report.as_deref().is_some_and(|report| report.trouble.is_some());
        let trouble = self.trouble_beside().filter(|_| is_lost)?;
        let held = self.written.revision.as_ref()?.held.as_ref()?;
        let message = format!("{}; {} is not kept", trouble.message, held.revision);
        Some(Trouble { message, ..trouble.clone() })
    }

    /// The trouble with the spec, the repository or a dependency.
    fn trouble_beside(&self) -> Option<&Trouble> {
        self.refused.as_ref().or(self.source.as_ref()).or(self.waits.as_ref())
    }

    /// True if the last pass was about this newest revision, whether it was applied or another one was kept.
    pub(super) fn has_passed(&self, revision: &Revision) -> bool {
        let report = self.report.as_deref();
        let refused = report.and_then(|it| it.refused.as_ref()).and_then(|it| it.revision.as_ref());
        // While the repository was away, the revision was kept with the spec of before.
        let is_of_older_spec = |report: &Report| {
            report.refused.as_ref().is_some_and(|it| it.newer.is_some() && it.trouble.is_none())
        };
        let rejected = self.rejected.as_ref().map(|rejected| rejected.revision.clone());
        rejected == Some(revision.to_string())
            || refused == Some(revision)
            || report.filter(|it| !is_of_older_spec(it)).and_then(|it| it.revision.as_ref()) == Some(revision)
    }

    /// The lines of a status that have to stand before something is written, while the rest is about to be known.
    pub(super) fn first_lines(&self) -> Option<(Box<str>, Arc<SyncStatus>)> {
        if self.waiting.is_empty() {
            return None;
        }
        let mut next = SyncStatus::clone(&self.written);
        next.scope = self.scope.clone().or(next.scope);
        self.adds_held(&mut next);
        self.adds_last_hooks(&mut next.finished);
        (next != *self.written).then(|| (self.uid.clone(), Arc::new(next)))
    }

    /// The command that gives all rights that the Sync needs.
    pub(super) fn grant(&self, name: &SyncName) -> String {
        match self.uid.is_empty() {
            true => "moorline rbac PATH | kubectl apply -f -".to_owned(),
            false => format!("moorline rbac --sync {} -n {} | kubectl apply -f -", name.name, name.namespace),
        }
    }

    /// True while the status that stands says more than a daemon that has only just begun.
    pub(super) fn waits_for_words(&self) -> bool {
        !self.written.conditions.is_empty() || self.since.is_none_or(|since| clock::since(since) < PATIENCE)
    }

    /// A status with all that stands in it beside what a pass came to.
    pub(super) fn completed(&mut self, mut next: SyncStatus) -> SyncStatus {
        next.scope = self.scope.clone().or(next.scope);
        self.adds_held(&mut next);
        self.adds_last_hooks(&mut next.finished);
        // Counts alone are no reason to write a status.
        if next != *self.written {
            self.uncounted.fold(&mut next);
            let news = transition(&self.written, &next).filter(|(type_, ..)| *type_ == "Warning");
            // The history tells of a revision that is refused.
            let is_told = |reason: &str| next.history.first().is_some_and(|entry| entry.result == reason);
            if let Some((_, reason, text)) = news.filter(|(_, reason, _)| !is_told(reason)) {
                self.posting.happened(&Note { reason, text });
            }
        }
        next
    }

    /// Adds the revision that is kept.
    pub(super) fn adds_held(&self, next: &mut SyncStatus) {
        if let Some(held) = &self.held {
            let revision = next.revision.get_or_insert_default();
            if revision.applied.as_ref() != Some(&held.revision) {
                revision.applied_digest = None;
            }
            revision.held = Some(held.clone());
        }
    }

    /// True if the status names the revision that is about to be applied.
    pub(super) fn has_written_held(&self) -> bool {
        let written = self.written.revision.as_ref().and_then(|revision| revision.held.as_ref());
        self.held.is_none() || self.held.as_ref() == written
    }

    pub(super) fn has_written_last_hooks(&self) -> bool {
        self.ran.iter().all(|hook| self.written.finished.contains(hook))
    }

    /// Adds what has run for the end of the Sync to what has come to its end.
    pub(super) fn adds_last_hooks(&self, finished: &mut Vec<Finished>) {
        finished.retain(|known| !self.ran.iter().any(|hook| hook.object == known.object));
        finished.extend(self.ran.iter().cloned());
    }

    /// Takes in that the newest revision was given up, or not any more; true if that is news.
    pub(super) fn reject(&mut self, rejected: Option<Rejected>) -> bool {
        if self.rejected == rejected {
            return false;
        }
        if let Some(Rejected { revision, instead, why }) =
            rejected.as_ref().filter(|_| self.news.len() < MAX_NEWS)
        {
            let note = format!("{revision} is given up for {instead}: {why}");
            self.news.push(("Warning", EventReason::RolledBack, note));
        }
        self.rejected = rejected;
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::ObjectHash;
    use crate::sync::pass::Refused;

    #[test]
    fn a_revision_that_was_kept_with_an_older_spec_was_not_applied() {
        let revision =
            Revision { commit: ObjectHash::parse(&"1".repeat(40)).unwrap(), name: "HEAD".into(), tag: None };
        let passed = |newer: Option<&str>| {
            let refused =
                Refused { revision: None, newer: newer.map(Box::from), was_tried: false, trouble: None };
            let (revision, refused) = (Some(revision.clone()), Some(refused));
            let report = Report { revision, refused, ..Report::default() };
            State { report: Some(Box::new(report)), ..State::default() }.has_passed(&Revision {
                commit: ObjectHash::parse(&"1".repeat(40)).unwrap(),
                name: "HEAD".into(),
                tag: None,
            })
        };
        assert!(passed(None), "the spec is the same");
        assert!(!passed(Some("the spec")), "Ready would be True of a spec that nobody has applied");
    }
}
