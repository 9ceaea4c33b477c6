//! The revision that is held while nothing newer can be applied.
//!
//! In: the newest revision, the spec, and the held revision of the status. Out: the
//! [`ReconcileTarget`] of the next reconcile. The newest revision that rendered completely is held,
//! with the spec that rendered it, narrowed by the newer spec. A daemon that starts holds exactly
//! the revision that the status names, and none if that revision or its spec is not available.

use std::sync::Arc;

use super::Reconciler;
use super::chosen_revision::chosen_target;
use super::reconcile_task::select_revision;
use super::signature_check::source_id;
use crate::api::HeldRevision;
use crate::cluster::remote::is_same_cluster;
use crate::controller::reconcile::request::ReconcileRequest;
use crate::controller::schedule::ScheduleEvent;
use crate::controller::status::reconcile_result::RefusedUpdate;
use crate::report::{ErrorCause, ReconcileError};
use crate::source::{Reference, Revision};

/// A revision that rendered completely, and the request for which it did.
#[derive(Clone)]
pub(super) struct HeldRender {
    pub(super) revision: Revision,
    pub(super) order: Arc<ReconcileRequest>,
}

/// The held revision, as far as this daemon knows it.
#[derive(Default)]
pub(super) struct HeldState {
    held: Option<HeldRender>,
    /// The held revision of the status was read.
    is_restored: bool,
    /// Reason why the revision of the status is not held.
    lost: Option<String>,
    /// A poll failed before any revision was read, so the held revision was reconciled.
    begun: bool,
    /// A closed window holds the newest revision.
    pub(super) by_window: bool,
}

/// Target of the next reconcile.
pub(super) enum ReconcileTarget {
    /// Apply this revision; `rejected` is the newest one, if that was rolled back.
    Apply { revision: Revision, rejected: Option<Revision> },
    /// Apply the revision that a person chose, or keep the held one while that is not possible.
    Hold { revision: Revision, newest: Option<Revision> },
    /// Nothing newer can be applied; keep the held revision.
    Keep { held: Box<HeldRender>, refused: RefusedUpdate },
}

impl ReconcileTarget {
    /// Returns the revision to apply or to keep.
    pub(super) fn revision(&self) -> &Revision {
        match self {
            Self::Apply { revision, .. } | Self::Hold { revision, .. } => revision,
            Self::Keep { held, .. } => &held.revision,
        }
    }
}

impl HeldRender {
    /// Returns the request that the held revision is reconciled with: the one that rendered it,
    /// with those fields of the newest spec that do not change its objects, or that narrow what may
    /// be done.
    pub(super) fn order_now(&self, newest: &ReconcileRequest) -> ReconcileRequest {
        let before = &self.order.valid_spec;
        let valid_spec = match self.is_asked_for(newest) {
            // The fields that decide what is rendered are equal; values from Secrets may differ.
            true => before.rendered_as_before(&newest.valid_spec),
            false => before.narrowed_by(&newest.valid_spec),
        };
        ReconcileRequest {
            valid_spec: Arc::new(valid_spec),
            repository: self.order.repository.clone(),
            credentials: self.order.credentials.clone(),
            permission: self.order.permission.clone(),
            chart_login: self.order.chart_login.clone(),
            chart_permission: self.order.chart_permission.clone(),
            mounts: self.order.mounts.clone(),
            spec_revision: self.order.spec_revision,
            // The status names the spec that rendered the revision, not the refused one.
            render_spec: self.order.render_spec.clone(),
            ..newest.clone()
        }
    }

    /// True if the newest spec has the same source and the same render options.
    pub(super) fn is_asked_for(&self, newest: &ReconcileRequest) -> bool {
        source_id(&self.order.valid_spec) == source_id(&newest.valid_spec)
            && self.order.render_spec == newest.render_spec
    }

    /// True if only values from outside of the spec differ from those of the newest request.
    pub(super) fn has_older_values(&self, newest: &ReconcileRequest) -> bool {
        newest.refused.is_none()
            && self.order.spec_revision != newest.spec_revision
            && self.is_asked_for(newest)
            && (&self.order.valid_spec.options, &self.order.valid_spec.decryption)
                != (&newest.valid_spec.options, &newest.valid_spec.decryption)
    }
}

/// Returns the held revision and its spec as the status records them.
pub(super) fn record_of(order: &ReconcileRequest, revision: &Revision) -> HeldRevision {
    HeldRevision {
        revision: revision.to_string(),
        tag: revision.tag.map(|tag| tag.to_string()),
        source: source_id(&order.valid_spec).into(),
        spec: order.render_spec.to_string(),
        digest: None,
        bytes: None,
    }
}

/// Restores the revision that the previous daemon held.
pub(super) fn restore_held(worker: &mut Reconciler) {
    if std::mem::replace(&mut worker.held.is_restored, true) {
        return;
    }
    let noted = worker.context.reporting.notebook.as_ref().and_then(|notebook| notebook.held());
    let told = || worker.recorder.status().revision.and_then(|revision| revision.held);
    let Some(known) = noted.or_else(told) else { return };
    let order = &worker.order;
    let asked = (&*source_id(&order.valid_spec), &*order.render_spec);
    match to_hold(&known, asked, &order.valid_spec.reference) {
        Ok(revision) => worker.held.held = Some(HeldRender { revision, order: order.clone() }),
        Err(lost) => worker.held.lost = Some(format!("{} is not held: {lost}", known.revision)),
    }
}

/// Returns the recorded revision, if source and spec are those that rendered it: no older spec is
/// recorded, so that nothing could be repaired.
fn to_hold(
    known: &HeldRevision,
    asked: (&str, &str),
    reference: &Reference,
) -> Result<Revision, &'static str> {
    match (&*known.source == asked.0, &*known.spec == asked.1) {
        (false, _) => Err("it comes from another source, so drift is not repaired"),
        (_, false) => Err("the spec has changed since, so drift is not repaired"),
        _ => Revision::parse(&known.revision, known.tag.as_deref(), reference)
            .ok_or("the recorded revision is invalid"),
    }
}

/// Returns the held revision, if any.
pub(super) fn held(worker: &Reconciler) -> Option<&HeldRender> {
    worker.held.held.as_ref()
}

/// Holds a revision that has rendered completely.
pub(super) fn holds(worker: &mut Reconciler, revision: &Revision, order: &Arc<ReconcileRequest>) {
    let is_known = held(worker)
        .is_some_and(|held| held.revision == *revision && held.order.spec_revision == order.spec_revision);
    if !is_known {
        // A reconcile has a copy for its term of the Lease. Nothing here depends on the term.
        let newest = &worker.order;
        let is_newest = newest.spec_revision == order.spec_revision
            && Arc::ptr_eq(&newest.valid_spec, &order.valid_spec)
            && is_same_cluster(&newest.cluster, &order.cluster);
        let order = if is_newest { newest.clone() } else { order.clone() };
        worker.held.held = Some(HeldRender { revision: revision.clone(), order });
    }
    worker.held.lost = None;
}

/// True once, if no revision was read from the repository and one from the status is to be
/// held.
pub(super) fn begins_to_hold(worker: &mut Reconciler) -> bool {
    restore_held(worker);
    let is_known = worker.held.held.is_some() || worker.order.hold.is_some();
    let begins = worker.revision.is_none() && is_known;
    begins && !std::mem::replace(&mut worker.held.begun, true)
}

/// Lets [`Self::begins_to_hold`] be true once more, for a new request.
pub(super) fn reset_hold(worker: &mut Reconciler) {
    worker.held.begun = false;
}

/// Lets the next reconcile ask again if a window holds the revision.
pub(super) fn retry_held(worker: &mut Reconciler) -> ScheduleEvent {
    worker.retry_refused = true;
    ScheduleEvent::ObjectsChanged
}

/// Decides the target of the next reconcile; an error if there is no revision to apply or to hold.
pub(super) fn target(worker: &mut Reconciler) -> Result<ReconcileTarget, ReconcileError> {
    restore_held(worker);
    let held = held(worker).cloned().map(Box::new);
    if let Some(reconcile_error) = worker.order.refused.clone() {
        let newer = Some("the spec".into());
        let refused = RefusedUpdate {
            revision: None,
            newer,
            was_tried: false,
            reconcile_error: Some(reconcile_error.clone()),
        };
        return held.map(|held| ReconcileTarget::Keep { held, refused }).ok_or(reconcile_error);
    }
    if let Some(hold) = &worker.order.hold {
        return chosen_target(worker, hold, held);
    }
    let Some(newest) = worker.revision.clone() else {
        // The error of the poll is reported separately.
        let newer = held.as_ref().and_then(|held| newer_than(worker, held));
        let refused = RefusedUpdate { revision: None, newer, was_tried: false, reconcile_error: None };
        return held.map(|held| ReconcileTarget::Keep { held, refused }).ok_or_else(unread);
    };
    match select_revision(worker, newest) {
        Ok((revision, rejected)) => Ok(ReconcileTarget::Apply { revision, rejected }),
        Err(waits) => {
            let refused =
                RefusedUpdate { revision: None, newer: None, was_tried: false, reconcile_error: None };
            held.map(|held| ReconcileTarget::Keep { held, refused }).ok_or(waits)
        }
    }
}

/// Returns the newer commit or spec that is known while the repository cannot be read, if there
/// is one.
fn newer_than(worker: &Reconciler, held: &HeldRender) -> Option<Box<str>> {
    if !held.is_asked_for(&worker.order) {
        return Some("the spec".into());
    }
    let valid_spec = &worker.order.valid_spec;
    let seen = worker.recorder.last_seen(&source_id(valid_spec), &valid_spec.reference)?;
    (!seen.has_same_files(&held.revision)).then(|| seen.to_string().into())
}

/// Adds the reason why nothing is held, where the status names a held revision.
pub(super) fn says_lost(worker: &Reconciler, reconcile_error: &mut ReconcileError) {
    if let Some(lost) = &worker.held.lost {
        reconcile_error.message = format!("{}; {lost}", reconcile_error.message);
    }
}

/// Error while no revision was read yet and none is held.
fn unread() -> ReconcileError {
    let message = "the repository has not been read yet".to_owned();
    ReconcileError { cause: ErrorCause::Progressing, message, problems: Vec::new(), permanent: false }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_daemon_that_starts_holds_only_what_the_spec_of_now_rendered() {
        let text = format!("main@{}", "1f0c".repeat(10));
        let known = |revision: &str| HeldRevision {
            revision: revision.to_owned(),
            source: "source".to_owned(),
            spec: "spec".to_owned(),
            ..HeldRevision::default()
        };
        let main = Reference::branch("main").unwrap();
        let held = to_hold(&known(&text), ("source", "spec"), &main);
        assert_eq!(held.map(|revision| revision.to_string()), Ok(text.clone()));
        for (revision, asked, expect) in [
            (&*text, ("other", "spec"), "another source, so drift is not repaired"),
            (&*text, ("source", "other"), "the spec has changed since, so drift is not repaired"),
            ("main", ("source", "spec"), "invalid"),
        ] {
            assert!(to_hold(&known(revision), asked, &main).unwrap_err().contains(expect), "{asked:?}");
        }
    }
}
