//! Decides whether a revision is accepted, where signatures are verified.
//!
//! In: a revision from a poll. Out: the same revision, or the reason why it is refused: no trusted
//! key has signed it, or it does not descend from the one that was accepted before. That one is
//! held meanwhile, if its signature is still trusted.

use std::cmp::Ordering;
use std::sync::Arc;
use std::time::Instant;

use sha2::{Digest, Sha256};

use super::Reconciler;
use crate::controller::spec::{ValidatedMount, ValidatedSource, ValidatedSpec};
use crate::controller::status::StatusRecorder;
use crate::source::{
    ArtifactReference, Error, History, Reference, Repository, Revision, SignaturePolicy, TrustedKeys,
};

/// Check that a revision has to pass.
pub(super) struct RevisionCheck {
    asked: Option<(SignaturePolicy, Arc<TrustedKeys>)>,
    reference: Reference,
    source: Box<str>,
    /// Revision that passed the check before, with these keys.
    good: Option<Revision>,
    /// Revision that this daemon accepted last, with any keys.
    last: Option<Revision>,
    /// Status recorder, which knows the last revision of the repository across restarts.
    recorder: Option<StatusRecorder>,
}

/// Returns the identifier of repository, ref, chart and mounts for the status: a revision of
/// another source is no measure for this one.
pub(super) fn source_id(valid_spec: &ValidatedSpec) -> Box<str> {
    // With a digest the chart is a part of the spec alone.
    let chart = valid_spec.chart.as_ref().filter(|chart| chart.pinned().is_none());
    let chart = chart.map(|chart| format!("\n{}", chart.place())).unwrap_or_default();
    let mount = |mount: &ValidatedMount| {
        let ValidatedSource { address, reference, submodules, .. } = &mount.source;
        format!("\n{} {address} {reference} {submodules}", mount.path)
    };
    let mounts: String = valid_spec.mounts.iter().map(mount).collect();
    let hash = Sha256::digest(format!("{}\n{}{chart}{mounts}", valid_spec.address, valid_spec.reference));
    hash.iter().take(8).map(|byte| format!("{byte:02x}")).collect()
}

/// Returns the check that the next revision has to pass.
pub(super) fn trust(worker: &Reconciler) -> RevisionCheck {
    let signed = worker.order.valid_spec.verify.as_ref().map(|verification| verification.signed);
    RevisionCheck {
        asked: signed.zip(worker.order.keys.clone()),
        reference: worker.order.valid_spec.reference.clone(),
        source: source_id(&worker.order.valid_spec),
        good: worker.revision.as_ref().map(Revision::of_repository),
        last: worker.last_accepted.clone(),
        recorder: Some(worker.recorder.clone()),
    }
}

impl RevisionCheck {
    /// Returns the check that the next revision of a mount has to pass: `good` has passed it with
    /// these keys, `last` was accepted last.
    pub(super) fn of_mount(
        asked: Option<(SignaturePolicy, Arc<TrustedKeys>)>,
        reference: &Reference,
        (good, last): (Option<Revision>, Option<Revision>),
    ) -> Self {
        let (reference, source) = (reference.clone(), Box::default());
        Self { asked, reference, source, good, last, recorder: None }
    }

    /// Returns the revision if it is accepted. If not, and no revision is in place yet, returns
    /// next to the error the revision that was accepted before and is still trusted.
    pub(super) async fn check(
        self,
        repository: &Repository,
        found: Revision,
        by: Instant,
    ) -> (Result<Revision, Error>, Option<Revision>) {
        let Some((signed, keys)) = &self.asked else { return (Ok(found), None) };
        if self.good.as_ref() == Some(&found) {
            return (Ok(found), None);
        }
        let refused = match repository.verify(&found, *signed, keys, by).await {
            Ok(()) => self.follows(repository, &found, by).await.err(),
            Err(error) => Some(error),
        };
        match refused {
            None => (Ok(found), None),
            Some(error) if error.is_distrust() && self.good.is_none() => {
                let held = self.held(repository, (*signed, keys), by).await;
                (Err(error), held)
            }
            Some(error) => (Err(error), None),
        }
    }

    /// Returns the revision that was accepted last, also by the previous daemon.
    fn before(&self) -> Option<Revision> {
        let recorded = || self.recorder.as_ref()?.last_seen(&self.source, &self.reference);
        self.last.clone().or_else(recorded)
    }

    /// Checks that a revision descends from the previous one. The check ignores the name of the
    /// ref: a server may call any branch its main branch. Two tags of a version range need not
    /// descend from each other, but the version may only increase, also of artifacts.
    async fn follows(&self, repository: &Repository, now: &Revision, by: Instant) -> Result<(), Error> {
        let before = self.before().filter(|before| before.commit != now.commit);
        let Some(before) = before.filter(|_| !matches!(self.reference, Reference::Commit(_))) else {
            return Ok(());
        };
        let is_artifact = matches!(self.reference, Reference::Artifact(_));
        let is_range = matches!(
            self.reference,
            Reference::Semver(_) | Reference::Artifact(ArtifactReference::Semver(..))
        );
        match now.compare_versions(&before).filter(|_| is_range) {
            Some(Ordering::Greater) => return Ok(()),
            Some(Ordering::Less) => {
                let (before, now) = (before.to_string().into(), now.to_string().into());
                return Err(Error::Lowered { before, now });
            }
            // Artifacts have no history: the signature alone decides about a moved tag.
            Some(Ordering::Equal) | None if is_artifact => return Ok(()),
            Some(Ordering::Equal) | None => {}
        }
        let (old, new) = (before.commit.to_string().into(), now.to_string().into());
        match repository.whole_history(before.commit, now.commit, by).await? {
            History::Forward => Ok(()),
            History::Rewritten => Err(Error::Rewritten { before: old, now: new }),
            History::Unknown => Err(Error::Unproven { before: old, now: new }),
        }
    }

    /// Returns the revision that was accepted before, if a key that is trusted now has signed it.
    async fn held(
        &self,
        repository: &Repository,
        (signed, keys): (SignaturePolicy, &Arc<TrustedKeys>),
        by: Instant,
    ) -> Option<Revision> {
        let before = self.before()?;
        repository.verify(&before, signed, keys, by).await.ok()?;
        Some(before)
    }
}
