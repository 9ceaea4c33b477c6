//! Looks up the revisions of the mounts of a Sync, with each poll.
//!
//! In: the sources of the mounts, and their revisions that were taken up before. Out: the revision
//! of the repository with those of the mounts, or the reason why one of them is not accepted. A
//! revision that another Sync of the same source has just found is not looked up again.

use std::sync::Arc;
use std::time::{Duration, Instant};

use futures::future::join_all;

use super::Reconciler;
use super::signature_check::{RevisionCheck, source_id};
use crate::api::SyncName;
use crate::clock;
use crate::cluster::Cluster;
use crate::controller::Context;
use crate::controller::peers::latest_revisions;
use crate::controller::peers::latest_revisions::RevisionChannel;
use crate::controller::reconcile::mounts::MountSource;
use crate::controller::reconcile::request::head_key;
use crate::controller::reconcile_errors::source_error;
use crate::controller::spec::ValidatedSpec;
use crate::metrics::GitOperation;
use crate::report::ReconcileError;
use crate::source::{Error, MountedRevision, Reference, Revision};

/// Lookup of the revision of one mount.
pub(super) struct MountPoll {
    source: MountSource,
    /// Channel on which the Syncs of the same source share its newest revision.
    head: Arc<RevisionChannel>,
    check: RevisionCheck,
}

impl MountPoll {
    /// Returns the lookups of all mounts.
    pub(super) fn all_of(worker: &Reconciler) -> Vec<Self> {
        let valid_spec = &worker.order.valid_spec;
        let recorded = || worker.recorder.last_seen(&source_id(valid_spec), &valid_spec.reference);
        let mounts = worker.order.mounts.iter();
        let poll = |source: &MountSource| {
            let good = worker.revision.as_ref().and_then(|revision| source.taken(revision));
            let accepted = worker.last_accepted.as_ref().and_then(|revision| source.taken(revision));
            let last = || accepted.or_else(|| source.taken(&recorded()?));
            let last = source.keys.is_some().then(last).flatten();
            let head = head_key(&worker.owner.namespace, valid_spec, &source.mount.source);
            let wanted = &source.mount.source;
            let signed = wanted.verify.as_ref().map(|verification| verification.signed);
            Self {
                check: RevisionCheck::of_mount(
                    signed.zip(source.keys.clone()),
                    &wanted.reference,
                    (good, last),
                ),
                head: worker.context.sources.heads.channel(head),
                source: source.clone(),
            }
        };
        mounts.map(poll).collect()
    }

    /// Returns the revision of the mount, if it is accepted.
    async fn look(
        self,
        (context, cluster, sync): (&Context, &Cluster, &SyncName),
        fresh: Duration,
        by: Instant,
    ) -> Result<MountedRevision, ReconcileError> {
        if let Some(permission) = &self.source.permission {
            permission.holds(cluster, sync).await.map_err(|error| self.source.named(error))?;
        }
        let source = &self.source;
        let found = self.resolve(context, fresh, by).await;
        let found = match found {
            Ok(found) => self.check.check(&source.repository, found, by).await.0,
            Err(error) => Err(error),
        };
        match found {
            Ok(found) => Ok(MountedRevision::new(&source.mount.path, &found)),
            Err(error) => Err(source.named(source_error(error))),
        }
    }

    async fn resolve(&self, context: &Context, fresh: Duration, by: Instant) -> Result<Revision, Error> {
        let reference = &self.source.mount.source.reference;
        let known = self.head.borrow().clone().filter(|seen| clock::since(seen.at) < fresh);
        if let Some(known) = known {
            return Ok(known.revision);
        }
        let begun = clock::now();
        let polled = self.source.repository.resolve(reference, by).await;
        if !matches!(reference, Reference::Commit(_)) {
            let reason = polled.as_ref().err().map(Error::reason);
            context.reporting.metrics.git_operation(GitOperation::Resolve, clock::since(begun), reason);
        }
        polled.iter().for_each(|revision| latest_revisions::publish(&self.head, revision, begun));
        polled
    }
}

/// Returns the revision of the repository with those of all mounts.
pub(super) async fn add_mounts(
    polls: Vec<MountPoll>,
    revision: Revision,
    of: (&Context, &Cluster, &SyncName),
    fresh: Duration,
    by: Instant,
) -> Result<Revision, ReconcileError> {
    let looks = join_all(polls.into_iter().map(|poll| poll.look(of, fresh, by))).await;
    let mounts = looks.into_iter().collect::<Result<Vec<_>, _>>()?;
    Ok(Revision { mounts, ..revision })
}

/// Removes the mounts from the revision whose source is another one in the newer spec: their
/// revisions are no measure for it.
pub(super) fn forget_other(revision: &mut Option<Revision>, old: &ValidatedSpec, new: &ValidatedSpec) {
    let source = |spec: &ValidatedSpec, path: &str| {
        let mount = spec.mounts.iter().find(|mount| *mount.path == *path)?;
        Some((mount.source.address.clone(), mount.source.reference.clone()))
    };
    if let Some(revision) = revision {
        revision.mounts.retain(|mounted| source(old, &mounted.path) == source(new, &mounted.path));
    }
}
