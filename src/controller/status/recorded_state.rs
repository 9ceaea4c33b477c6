//! State that the status carries across results and restarts: reads it from memory or from the
//! written status, merges the result of a reconcile into it, and records more of it.
//!
//! A failed reconcile says nothing about objects, and one that changes nothing does not hide the
//! changes of the one before it.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::oneshot;

use super::approvals::has_written_approvals;
use super::change_summary::{add_notes, approval_note, change, changes, notes, repair_note};
use super::event_queue::Note;
use super::events::transition;
use super::overrides::{has_written_override, override_note};
use super::reconcile_result::ReconcileResult;
use super::{MAX_DELAY, MAX_NEWS, Ordered, StatusRecorder, StatusState, now};
use crate::api::{EventReason, FinishedObject, HeldRevision, Scope, SyncName, SyncStatus};
use crate::clock;
use crate::cluster::LiveSync;
use crate::object::ObjectId;
use crate::plan::Outcome;
use crate::report::{ReconcileError, RolledBackRevision};
use crate::source::{Reference, Revision};

/// Most commits of which author and subject are kept.
const MAX_COMMITS: usize = 4;

impl StatusRecorder {
    /// Returns the name of the Sync.
    pub(crate) fn name(&self) -> &SyncName {
        &self.0.name
    }

    /// Returns the status that was last written.
    pub(crate) fn status(&self) -> SyncStatus {
        SyncStatus::clone(&self.lock().persisted_status)
    }

    /// True if the request is still the newest one, and belongs to the Sync in this state.
    pub(crate) fn is_order_of(&self, order: u64, standing: &LiveSync) -> bool {
        let state = self.lock();
        let asked = Ordered { order, generation: standing.generation, moves_to: standing.moves_to.clone() };
        state.uid == standing.uid && state.ordered.as_ref() == Some(&asked)
    }

    /// True for the value of the request annotation that was answered last.
    pub(crate) fn has_handled(&self, request: Option<&str>) -> bool {
        self.lock().persisted_status.last_handled_request.as_deref() == request
    }

    /// Records that a hook has run for the deletion of the Sync; false if the status does not have
    /// it in time.
    pub(crate) async fn has_run(&self, hook: FinishedObject, within: Duration) -> bool {
        let add_hook = |state: &mut StatusState| {
            state.ran.push(hook);
            state.has_written_last_hooks()
        };
        self.record_change(within, false, add_hook).await
    }

    /// Returns the scope in which the Sync may have owned objects before.
    pub(crate) fn scope(&self) -> Option<Scope> {
        self.lock().persisted_status.scope.clone()
    }

    /// Records the scope in which the Sync is about to own objects; false if the status does not
    /// have it in time.
    pub(crate) async fn record(&self, scope: Scope, within: Duration) -> bool {
        let set_scope = |state: &mut StatusState| {
            state.scope = Some(scope);
            state.persisted_status.scope == state.scope
        };
        self.record_change(within, false, set_scope).await
    }

    /// Changes the state, and waits until the written status has it; false if it has not in time.
    /// `change` returns true if the status that was written last has it already.
    pub(super) async fn record_change(
        &self,
        within: Duration,
        is_urgent: bool,
        change: impl FnOnce(&mut StatusState) -> bool,
    ) -> bool {
        let (done, wait) = oneshot::channel();
        {
            let mut state = self.lock();
            if change(&mut state) {
                return true;
            }
            state.waiting.push(done);
        }
        if is_urgent {
            self.0.urgent.notify_one();
        }
        self.0.changed.notify_one();
        is_written(within, wait).await
    }

    /// True if the Sync may own objects, or is about to write the first of them.
    pub(crate) fn has_scope(&self) -> bool {
        let state = self.lock();
        state.scope.is_some() || state.persisted_status.scope.is_some()
    }

    /// Returns the id of the other cluster with the objects, once recorded.
    pub(crate) fn target_uid(&self) -> Option<String> {
        let state = self.lock();
        state.target_uid.clone().or_else(|| state.persisted_status.target_uid.clone())
    }

    /// Records the id of the other cluster in which the Sync is about to own objects; false if the
    /// status does not have it in time.
    pub(crate) async fn record_target(&self, uid: &str, within: Duration) -> bool {
        let set_target = |state: &mut StatusState| {
            state.target_uid = Some(uid.to_owned());
            state.persisted_status.target_uid == state.target_uid
        };
        self.record_change(within, true, set_target).await
    }

    /// Records the revision that is about to be applied; false if the status does not have it in
    /// time.
    pub(crate) async fn record_revision(&self, held: HeldRevision, within: Duration) -> bool {
        let set_held = |state: &mut StatusState| {
            state.held = Some(held);
            state.has_written_held()
        };
        self.record_change(within, true, set_held).await
    }

    /// Returns the Jobs, Pods and hooks that have completed before.
    pub(crate) fn finished(&self) -> Vec<FinishedObject> {
        self.lock().persisted_status.finished.clone()
    }

    /// Returns the revision that was last observed in `source`, parsed for the ref `asked`.
    pub(crate) fn last_seen(&self, source: &str, asked: &Reference) -> Option<Revision> {
        let state = self.lock();
        // The revision may not be in the written status yet.
        if let Some(seen) = state.seen.as_ref().filter(|seen| *seen.source == *source) {
            return Revision::parse(&seen.revision, seen.tag.as_deref(), asked);
        }
        let known = state.persisted_status.revision.as_ref()?;
        let is_same = match &known.source {
            Some(of) => **of == *source,
            // A server with an older CustomResourceDefinition has pruned the field.
            None => state.persisted_status.observed_generation == state.generation,
        };
        let seen = known.seen.as_ref().filter(|_| is_same)?;
        Revision::parse(seen, known.tag.as_deref(), asked)
    }
}

/// The error of a Sync that its status reports, beside those of its objects.
pub(super) struct Wrong<'a> {
    /// The error that takes precedence.
    pub(super) reconcile_error: Option<Cow<'a, ReconcileError>>,
    /// The error concerns the newest commit.
    pub(super) of_revision: bool,
    /// The refused commit, if the error concerns one.
    pub(super) refused: Option<String>,
}

impl StatusState {
    /// Selects the error to report: those of the spec, the repository or a dependency come before
    /// that of the newest commit.
    pub(super) fn reconcile_error(&self) -> Wrong<'_> {
        let report = self.report.as_deref();
        let reconcile_error = self.trouble_beside();
        let of_revision = reconcile_error.is_none();
        let refused = report.and_then(|report| report.refused.as_ref()).filter(|_| of_revision);
        let of_report = report.and_then(|report| report.reconcile_error.as_ref());
        Wrong {
            reconcile_error: self.not_kept().map(Cow::Owned).or_else(|| {
                let of_pass = refused.and_then(|refused| refused.reconcile_error.as_ref()).or(of_report);
                reconcile_error.or(of_pass).map(Cow::Borrowed)
            }),
            of_revision,
            refused: refused.and_then(|refused| Some(refused.revision.as_ref()?.to_string())),
        }
    }

    /// Returns the error of the spec, the repository or a dependency, with the revision that is not
    /// held because of it. This is the case if the Sync is not reconciled any more, or if the last
    /// reconcile failed.
    fn not_kept(&self) -> Option<ReconcileError> {
        let is_lost = self.refused.is_some() && !self.is_followed
            || self.report.as_deref().is_some_and(|report| report.reconcile_error.is_some());
        let reconcile_error = self.trouble_beside().filter(|_| is_lost)?;
        let held = self.persisted_status.revision.as_ref()?.held.as_ref()?;
        let message = format!("{}; {} is not held", reconcile_error.message, held.revision);
        Some(ReconcileError { message, ..reconcile_error.clone() })
    }

    /// Returns the error of the spec, the repository or a dependency.
    fn trouble_beside(&self) -> Option<&ReconcileError> {
        self.refused.as_ref().or(self.source.as_ref()).or(self.waits.as_ref())
    }

    /// True if the last result was for this newest revision, whether it was applied or another one
    /// was kept.
    pub(super) fn has_passed(&self, revision: &Revision) -> bool {
        let report = self.report.as_deref();
        let refused = report.and_then(|it| it.refused.as_ref()).and_then(|it| it.revision.as_ref());
        // While the repository was unreachable, the revision was kept with the previous spec.
        let is_of_older_spec = |report: &ReconcileResult| {
            report.refused.as_ref().is_some_and(|it| it.newer.is_some() && it.reconcile_error.is_none())
        };
        let rejected = self.rejected.as_ref().map(|rejected| rejected.revision.clone());
        // While a person holds the Sync at a revision, a newer one changes nothing.
        report.is_some_and(|report| report.hold.is_some())
            || rejected == Some(revision.to_string())
            || refused == Some(revision)
            || report.filter(|it| !is_of_older_spec(it)).and_then(|it| it.revision.as_ref()) == Some(revision)
    }

    /// Returns the written status with only those fields updated that must be recorded before a
    /// write to the cluster; the other fields are not known yet.
    pub(super) fn first_lines(&self) -> Option<(Box<str>, Arc<SyncStatus>)> {
        if self.waiting.is_empty() {
            return None;
        }
        let mut next = SyncStatus::clone(&self.persisted_status);
        next.scope = self.scope.clone().or(next.scope);
        next.target_uid = self.target_uid.clone().or(next.target_uid);
        self.adds_held(&mut next);
        self.adds_last_hooks(&mut next.finished);
        (next != *self.persisted_status).then(|| (self.uid.clone(), Arc::new(next)))
    }

    /// Returns the command that grants all permissions that the Sync needs; empty if its objects
    /// are in another cluster.
    pub(super) fn grant(&self, name: &SyncName) -> String {
        match (self.uid.is_empty(), name.target()) {
            // Nothing that is granted at home counts in another cluster.
            (_, Some(_)) => String::new(),
            (true, _) => "moorline rbac PATH | kubectl apply -f -".to_owned(),
            (false, _) => {
                format!("moorline rbac --sync {} -n {} | kubectl apply -f -", name.name, name.namespace)
            }
        }
    }

    /// True while the written status says more than this daemon, which has just started, knows
    /// itself.
    pub(super) fn waits_for_words(&self) -> bool {
        !self.persisted_status.conditions.is_empty()
            || self.since.is_none_or(|since| clock::since(since) < MAX_DELAY)
    }

    /// Completes a status with the recorded state that does not come from the result of a
    /// reconcile.
    pub(super) fn completed(&mut self, mut next: SyncStatus) -> SyncStatus {
        next.scope = self.scope.clone().or(next.scope);
        next.target_uid = self.target_uid.clone().or(next.target_uid);
        self.adds_held(&mut next);
        self.adds_last_hooks(&mut next.finished);
        // Counts alone are no reason to write a status.
        if next != *self.persisted_status {
            self.uncounted.fold(&mut next);
            let news = transition(&self.persisted_status, &next).filter(|(type_, ..)| *type_ == "Warning");
            // The history reports a refused revision.
            let is_told = |reason: &str| next.history.first().is_some_and(|entry| entry.result == reason);
            if let Some((_, reason, text)) = news.filter(|(_, reason, _)| !is_told(reason)) {
                self.posting.happened(&Note { reason, text });
            }
        }
        next
    }

    /// Sets the held revision in a status.
    pub(super) fn adds_held(&self, next: &mut SyncStatus) {
        if let Some(held) = &self.held {
            let revision = next.revision.get_or_insert_default();
            if revision.applied.as_ref() != Some(&held.revision) {
                revision.applied_digest = None;
            }
            revision.held = Some(held.clone());
        }
        if let Some(approved) = &self.approved {
            next.revision.get_or_insert_default().approved.clone_from(approved);
        }
        if let Some(overridden) = &self.overridden {
            next.revision.get_or_insert_default().overridden = Some(overridden.clone());
        }
    }

    /// True if the written status names the revision that is about to be applied, and its approval.
    pub(super) fn has_written_held(&self) -> bool {
        let written = self.persisted_status.revision.as_ref().and_then(|revision| revision.held.as_ref());
        (self.held.is_none() || self.held.as_ref() == written)
            && has_written_approvals(self)
            && has_written_override(self)
    }

    pub(super) fn has_written_last_hooks(&self) -> bool {
        self.ran.iter().all(|hook| self.persisted_status.finished.contains(hook))
    }

    /// Adds the hooks that have run for the deletion of the Sync to the completed objects.
    pub(super) fn adds_last_hooks(&self, finished: &mut Vec<FinishedObject>) {
        finished.retain(|known| !self.ran.iter().any(|hook| hook.object == known.object));
        finished.extend(self.ran.iter().cloned());
    }

    /// Records that the newest revision was rolled back, or is accepted again; true if that is new.
    pub(super) fn reject(&mut self, rejected: Option<RolledBackRevision>) -> bool {
        if self.rejected == rejected {
            return false;
        }
        if let Some(RolledBackRevision { revision, held: instead, why }) =
            rejected.as_ref().filter(|_| self.news.len() < MAX_NEWS)
        {
            let note = format!("{revision} is rolled back to {instead}: {why}");
            self.news.push(("Warning", EventReason::RolledBack, note));
        }
        self.rejected = rejected;
        true
    }
}

/// True if the status is written in time. A dropped sender is no success: when the Sync is created
/// again, all senders are dropped, and nothing was written.
async fn is_written(within: Duration, wait: oneshot::Receiver<()>) -> bool {
    matches!(tokio::time::timeout(within, wait).await, Ok(Ok(())))
}

/// Records the result of a reconcile.
pub(super) fn merge_result(state: &mut StatusState, mut report: Box<ReconcileResult>) {
    state.request = report.request.clone().or(state.request.take());
    state.scope = report.scope.clone().or_else(|| state.scope.take());
    state.held = report.held.clone().or_else(|| state.held.take());
    merge_changes(state, &report);
    // A failed reconcile says nothing about objects.
    if let (Some(_), Some(last)) = (&report.reconcile_error, &mut state.report) {
        report.outcomes = std::mem::take(&mut last.outcomes);
        report.set = last.set.take();
        report.last_hooks = std::mem::take(&mut last.last_hooks);
        report.desired = last.desired;
        report.finished = std::mem::take(&mut last.finished);
    }
    if state.order == Some(report.spec_revision) {
        state.asked = None;
    }
    state.posting.passed(&report);
    state.current = Some(now());
    (state.report, state.pending) = (Some(report), None);
}

/// Records the changes of a reconcile, also of one that was stopped for a newer commit.
pub(super) fn merge_changes(state: &mut StatusState, report: &ReconcileResult) {
    if report.outcomes.values().any(Outcome::changes_cluster) {
        state.done = Some(now());
    }
    let newer = report.commits.iter().rev().cloned();
    let known = std::mem::take(&mut state.commits).into_iter();
    let known = known.filter(|known| report.commits.iter().all(|it| it.revision != known.revision));
    state.commits = newer.chain(known).take(MAX_COMMITS).collect();
    if let Some(revision) = &report.revision {
        state.uncounted.add(&revision.to_string(), changes(report));
        state.took = report.took.map(|took| (revision.clone(), took)).or(state.took.take());
    }
    let approval = find_approval(state, report).filter(|_| !report.stopped);
    let forced = override_note(report).filter(|_| !report.stopped);
    add_notes(state, approval.into_iter().chain(forced).chain(notes(report)).collect());
}

/// Records the outcome of an object that was verified outside of a reconcile; false if the
/// object was as desired.
pub(super) fn merge_verified(state: &mut StatusState, id: ObjectId, outcome: Outcome) -> bool {
    // A known object that an apply has created was deleted in between.
    let is_restored = outcome == Outcome::Created;
    let Some(note) = repair_note(&id, &outcome, is_restored) else { return false };
    add_notes(state, vec![note]);
    state.done = Some(now());
    state.posting.verified(&id, &outcome, is_restored);
    if let Some(report) = &mut state.report {
        if let Some(revision) = &report.revision {
            state.uncounted.add(&revision.to_string(), change(&outcome, is_restored));
        }
        report.outcomes.insert(id, outcome);
    }
    true
}

/// Returns the note about an approval, if this result is the first one with it.
fn find_approval(state: &StatusState, report: &ReconcileResult) -> Option<Note> {
    let given = report.approved.as_ref()?;
    let asked = &state.persisted_status.approvals;
    let asked = asked.iter().find(|asked| asked.hash == *given)?;
    let is_known = state.report.as_ref().is_some_and(|last| last.approved.as_ref() == Some(given));
    (!is_known).then(|| approval_note(asked))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::controller::status::reconcile_result::RefusedUpdate;
    use crate::source::ObjectHash;

    #[test]
    fn a_pass_that_changes_nothing_does_not_hide_the_one_before() {
        let mut state = StatusState::default();
        let report = |outcome| {
            let id = ObjectId::parse("/ConfigMap|shop/a").unwrap();
            Box::new(ReconcileResult {
                outcomes: BTreeMap::from([(id, outcome)]),
                ..ReconcileResult::default()
            })
        };
        merge_result(&mut state, report(Outcome::Kept));
        assert_eq!(state.done, None);
        merge_result(&mut state, report(Outcome::Created));
        let done = state.done.clone();
        assert!(done.is_some());
        merge_result(&mut state, report(Outcome::Kept));
        assert_eq!(state.done, done);
    }

    #[test]
    fn a_revision_that_was_kept_with_an_older_spec_was_not_applied() {
        let revision = Revision {
            commit: ObjectHash::parse(&"1".repeat(40)).unwrap(),
            name: "HEAD".into(),
            tag: None,
            chart: None,
            mounts: Vec::new(),
        };
        let passed = |newer: Option<&str>| {
            let refused = RefusedUpdate {
                revision: None,
                newer: newer.map(Box::from),
                was_tried: false,
                reconcile_error: None,
            };
            let (revision, refused) = (Some(revision.clone()), Some(refused));
            let report = ReconcileResult { revision, refused, ..ReconcileResult::default() };
            StatusState { report: Some(Box::new(report)), ..StatusState::default() }.has_passed(&Revision {
                commit: ObjectHash::parse(&"1".repeat(40)).unwrap(),
                name: "HEAD".into(),
                tag: None,
                chart: None,
                mounts: Vec::new(),
            })
        };
        assert!(passed(None), "the spec is the same");
        assert!(!passed(Some("the spec")), "Ready would be True of a spec that nobody has applied");
    }

    #[tokio::test(start_paused = true)]
    async fn only_a_write_counts_as_written() {
        let within = Duration::from_secs(1);
        let (done, wait) = oneshot::channel();
        done.send(()).unwrap();
        assert!(is_written(within, wait).await);
        let (done, wait) = oneshot::channel::<()>();
        drop(done);
        assert!(!is_written(within, wait).await, "the Sync was created again");
        let (_done, wait) = oneshot::channel();
        assert!(!is_written(within, wait).await, "the writer takes too long");
    }
}
