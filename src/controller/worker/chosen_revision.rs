//! Holds a Sync at the revision that a person chose, with annotations of the Sync.
//!
//! In: the annotations, the newest revision, and the revision that is held so far. Out: the target
//! of the next reconcile, and its result. The chosen revision is verified with the keys of today,
//! and need not descend from any other. While it cannot be fetched, trusted or rendered, the
//! revision before it stays.

use super::super::chance;
use super::super::memory::SyncMemory;
use super::Reconciler;
use super::depends_on::waits_for_nothing;
use super::held_revision::{HeldRender, ReconcileTarget};
use crate::api::{HOLD_REVISION_ANNOTATION, RevisionHold};
use crate::clock;
use crate::controller::reconcile::ReconcileContext;
use crate::controller::reconcile::refused_commit::refuse;
use crate::controller::reconcile::request::ReconcileRequest;
use crate::controller::spec::ValidatedSpec;
use crate::controller::status::reconcile_result::{ReconcileResult, RefusedUpdate};
use crate::report::{ErrorCause, ReconcileError};
use crate::source::{ObjectHash, Reference, Revision};

/// Returns the target of the next reconcile, while a person holds the Sync at a revision; the error
/// if there is none.
pub(super) fn chosen_target(
    worker: &Reconciler,
    hold: &RevisionHold,
    held: Option<Box<HeldRender>>,
) -> Result<ReconcileTarget, ReconcileError> {
    waits_for_nothing(worker);
    let newest = worker.revision.clone();
    let known = held.as_ref().map(|held| &held.revision).into_iter().chain(&newest);
    if let Some(revision) = chosen_revision(hold, &worker.order.valid_spec, known) {
        return Ok(ReconcileTarget::Hold { revision, newest });
    }
    let message = format!(
        "{HOLD_REVISION_ANNOTATION} is {:?}, which is neither a revision nor a commit: write one of status.history",
        hold.revision
    );
    let (cause, problems) = (ErrorCause::Input("HoldInvalid"), Vec::new());
    let reconcile_error = ReconcileError { cause, message, problems, permanent: true };
    let Some(held) = held else { return Err(reconcile_error) };
    let (newer, reconcile_error) = (Some("the chosen revision".into()), Some(reconcile_error));
    let refused = RefusedUpdate { revision: None, newer, was_tried: false, reconcile_error };
    Ok(ReconcileTarget::Keep { held, refused })
}

/// True if a person holds the Sync at a revision with other files than the newest one.
pub(super) fn is_behind_newest(target: &ReconcileTarget) -> bool {
    matches!(target, ReconcileTarget::Hold { revision, newest: Some(newest) } if !newest.has_same_files(revision))
}

/// Returns the revision that the annotation names. A commit alone gets the name of the branch or
/// tag of the spec, and chart and mounts of the held revision, or else of the newest one: `known`
/// has both, in this order.
fn chosen_revision<'a>(
    hold: &RevisionHold,
    valid_spec: &ValidatedSpec,
    known: impl Iterator<Item = &'a Revision> + Clone,
) -> Option<Revision> {
    let reference = &valid_spec.reference;
    let text = match (ObjectHash::parse(&hold.revision), reference) {
        (Some(commit), Reference::Branch(name) | Reference::Tag(name)) => format!("{name}@{commit}"),
        _ => hold.revision.clone(),
    };
    let chosen = Revision::parse(&text, None, reference)?;
    let is_asked = valid_spec.chart.as_ref().is_some_and(|chart| chart.pinned().is_none());
    let chart = chosen.chart.filter(|_| is_asked);
    let mut charts = known.clone().filter(|_| is_asked).filter_map(|known| known.chart.clone());
    let chart = chart.or_else(|| charts.next());
    let mut mounts = chosen.mounts;
    if mounts.is_empty() && !valid_spec.mounts.is_empty() {
        mounts = known.clone().next().map(|known| known.mounts.clone()).unwrap_or_default();
    }
    // A tag that is known is verified as the newest one is.
    let is_this = |known: &&Revision| (known.commit, &known.name) == (chosen.commit, &chosen.name);
    let tag = known.filter(is_this).find_map(|known| known.tag);
    Some(Revision { chart, mounts, tag, ..chosen })
}

/// Applies the chosen revision; if that is not possible, keeps the held one.
pub(super) async fn apply_chosen(
    inputs: &ReconcileContext,
    memory: &mut SyncMemory,
    (revision, newest): (Revision, Option<Revision>),
    held: Option<HeldRender>,
) -> (ReconcileResult, Option<HeldRender>) {
    let revision = with_tag_object(&inputs.order, revision).await;
    let target = (revision.clone(), Some(newest.unwrap_or_else(|| revision.clone())));
    let (report, kept) = inputs.apply(memory, target.clone(), held.clone()).await;
    let is_rendered = report.held.is_some() || report.refused.is_some();
    let reconcile_error = report.reconcile_error.clone().filter(|_| !report.stopped && !is_rendered);
    let is_other = held.as_ref().is_some_and(|held| held.revision != revision);
    let (Some(reconcile_error), true) = (reconcile_error, is_other) else { return (report, kept) };
    // It was not fetched, or is not trusted: until the next attempt the other one is kept.
    let (moment, pauses) = ((inputs.context.now(), chance()), inputs.context.pauses());
    refuse(memory, (&revision, inputs.order.spec_revision), reconcile_error, moment, pauses);
    inputs.apply(memory, target, held).await
}

/// Adds the tag object, where the tag has to be signed and still names this commit.
async fn with_tag_object(order: &ReconcileRequest, revision: Revision) -> Revision {
    let is_verified = order.keys.is_some() && revision.tag.is_none();
    let name = revision.name.strip_prefix("refs/tags/").filter(|_| is_verified);
    let Some(tag) = name.and_then(|name| Reference::tag(name).ok()) else { return revision };
    let by = clock::now() + order.valid_spec.timeout;
    match order.repository.resolve(&tag, by).await {
        Ok(found) if found.commit == revision.commit => Revision { tag: found.tag, ..revision },
        Ok(_) | Err(_) => revision,
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::source::Address;

    #[test]
    fn a_revision_or_a_commit_is_chosen() {
        let commit = "1f0c".repeat(10);
        let chosen = |reference: Reference, text: &str| {
            let address = Address::remote("https://host/path").unwrap();
            let valid_spec = ValidatedSpec::plain(address, reference, "", "shop", Duration::from_secs(30));
            let hold = RevisionHold { revision: text.to_owned(), ..RevisionHold::default() };
            chosen_revision(&hold, &valid_spec, std::iter::empty()).map(|revision| revision.to_string())
        };
        let branch = || Reference::branch("main").unwrap();
        let (main, tag) = (format!("main@{commit}"), format!("v1.0.0@{commit}"));
        assert_eq!(chosen(branch(), &main), Some(main.clone()));
        assert_eq!(chosen(branch(), &commit), Some(main));
        assert_eq!(chosen(Reference::tag("v1.0.0").unwrap(), &commit), Some(tag.clone()));
        assert_eq!(chosen(Reference::Semver(">=1.0".parse().unwrap()), &tag), Some(tag));
        assert_eq!(chosen(Reference::Head, &commit), Some(commit.clone()));
        for wrong in ["main", "1f0c1f0c", "main@1f0c1f0c", "../x", ""] {
            assert_eq!(chosen(branch(), wrong), None, "{wrong}");
        }
    }
}
