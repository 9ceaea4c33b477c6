//! First part of a reconcile: from the commit to its desired objects.
//!
//! In: a revision, the aim of the reconcile, and the memory of the Sync.
//! Out: a [`PreparedRevision`].
//!
//! A commit that was to be applied and cannot be rendered is remembered as refused.

use super::super::chance;
use super::super::memory::SyncMemory;
use super::inventory_scope;
use super::prepare::{PreparedRevision, cluster_error, prepare};
use super::remote_bases::RemoteBaseContext;
use super::renderer::RenderContext;
use super::unrendered_commit::UnrenderedCommit;
use super::{Aim, ReconcileContext, ReconcileResult};
use crate::clock;
use crate::cluster::{ApiError, WatchRequirements};
use crate::controller::status::StatusRecorder;
use crate::desired::{DesiredObject, DesiredSet};
use crate::report::{ErrorCause, ReconcileError};

/// Most delete hooks that a status names; only their existence matters.
const MAX_NAMED: usize = 10;

impl ReconcileContext<'_> {
    /// Renders the commit, and loads the earlier inventory of this Sync.
    pub(super) async fn prepare(&self, memory: &mut SyncMemory) -> Result<PreparedRevision, ReconcileError> {
        if let Err(failure) = self.cluster.ensure_discovery().await {
            self.tell_tried(memory.prepared.as_ref()).await;
            return Err(cluster_error(&failure));
        }
        let last = memory.rendered_as(self.rendered_spec_revision).cloned();
        // A held revision is not rendered again: its sources may be gone.
        let kept = last.clone().filter(|last| self.keeps(last));
        // The cluster and the repository are queried concurrently.
        let (earlier, prepared) = tokio::join!(self.earlier(memory.inventory_loaded), async {
            match kept {
                Some(kept) => Ok(kept),
                None => self.rendered(last.as_ref()).await,
            }
        });
        let (earlier, is_blind) = earlier.map_err(|failure| cluster_error(&failure))?;
        memory.inventory_incomplete |= is_blind;
        memory.inventory_kinds.extend(earlier.kinds);
        memory.inventory_namespaces.extend(earlier.namespaces);
        if !memory.inventory_loaded {
            memory.completed.restore(&self.desk.map(StatusRecorder::finished).unwrap_or_default());
            self.desk.iter().for_each(|desk| memory.rolled_out.restore(&desk.status()));
            memory.inventory_loaded = true;
        }
        let mut prepared = self.or_refuse(memory, prepared).await?;
        // A missing kind may have been added since discovery.
        if !self.has_all_kinds(&prepared) && self.cluster.refresh_discovery().await.unwrap_or_default() {
            let again = self.rendered(None).await;
            prepared = self.or_refuse(memory, again).await?;
        }
        Ok(prepared.with_keys(self.cluster.notary().content_keys(), memory.rolled_out.recorded()))
    }

    /// Returns true if this is the held revision, and nothing about it is unknown.
    fn keeps(&self, last: &PreparedRevision) -> bool {
        self.aim != Aim::Apply && last.complete && last.revision.commit == self.revision.commit
    }

    async fn rendered(&self, last: Option<&PreparedRevision>) -> Result<PreparedRevision, ReconcileError> {
        let by = clock::now() + self.wish.timeout;
        let ground = &RemoteBaseContext::of_sync(
            self.context,
            self.owner,
            self.wish,
            self.followed,
            self.wish.interval,
        );
        let means = RenderContext { cluster: self.cluster, helm: &self.context.helm, ground };
        prepare(self.repository, self.revision, self.wish, means, last, by).await
    }

    /// Remembers that a commit which was to be applied cannot be rendered. An unreachable cluster
    /// says nothing about a commit, and neither does a render that was stopped for a newer one.
    async fn or_refuse(
        &self,
        memory: &mut SyncMemory,
        rendered: Result<PreparedRevision, ReconcileError>,
    ) -> Result<PreparedRevision, ReconcileError> {
        let says_nothing = |trouble: &ReconcileError| {
            matches!(
                trouble.cause,
                ErrorCause::ClusterUnreachable
                    | ErrorCause::RightsMissing
                    | ErrorCause::Stopped
                    | ErrorCause::Progressing
            ) || self.stop.is_cancelled()
        };
        match &rendered {
            Ok(_) if self.aim == Aim::Apply => memory.refusal = None,
            Err(trouble) if self.aim == Aim::Apply && !says_nothing(trouble) => {
                let moment = (self.context.now(), chance());
                let of = (self.revision, self.rendered_spec_revision);
                memory.refuse(of, trouble.clone(), moment, self.context.pauses());
                self.tell_tried(memory.prepared.as_ref()).await;
            }
            // The commit may be valid but was not rendered: its files show which objects it may
            // contain.
            Err(_) if self.aim == Aim::Apply && !self.stop.is_cancelled() => {
                self.tell_tried(memory.prepared.as_ref()).await;
            }
            Ok(_) | Err(_) => {}
        }
        rendered
    }

    async fn tell_tried(&self, last: Option<&PreparedRevision>) {
        if self.aim != Aim::Apply {
            return;
        }
        let unrendered = UnrenderedCommit {
            context: self.context,
            owner: self.owner,
            order: self.spec_revision,
            cluster: self.cluster,
            repository: self.repository,
            revision: self.revision,
            wish: self.wish,
        };
        unrendered.tell(last).await;
    }

    /// Loads the earlier inventory of this Sync, if it is not known: from its status or the Lease,
    /// or from the cluster if both are lost. The flag is true if some kinds could not be listed.
    async fn earlier(&self, known: bool) -> Result<(WatchRequirements, bool), ApiError> {
        if known {
            return Ok((WatchRequirements::default(), false));
        }
        match self.written_scope() {
            Some(scope) => Ok((inventory_scope::watches_of_scope(&scope), false)),
            None => {
                let (kinds, complete) = self.cluster.discover_labelled_kinds(self.owner).await?;
                Ok((WatchRequirements { kinds, ..WatchRequirements::default() }, !complete))
            }
        }
    }

    /// Returns true if the server serves the kind of every object. A CRD in the same commit gives
    /// the scope of its kind earlier than that.
    pub(super) fn has_all_kinds(&self, prepared: &PreparedRevision) -> bool {
        let kinds = self.cluster.kinds();
        let served = |object: &DesiredObject| kinds.get(&object.id.group_kind()).is_some();
        prepared.complete && prepared.desired.objects().iter().all(served)
    }
}

/// Records the commit of a reconcile and its desired set in the result.
pub(super) fn describe(report: &mut ReconcileResult, prepared: &PreparedRevision) {
    report.commits.clear();
    report.names(&prepared.revision, prepared.words.clone());
    report.set = Some(prepared.desired.clone());
    report.last_hooks = named_delete_hooks(&prepared.desired);
    report.desired = prepared.desired.len();
    report.digest = Some(prepared.digest.clone());
    report.tree = prepared.tree.map(|id| id.to_string());
    report.caution.clone_from(&prepared.caution);
}

/// Returns the delete hooks of a set, as the status names them.
fn named_delete_hooks(desired: &DesiredSet) -> Vec<String> {
    let runs_at_deletion =
        |object: &&DesiredObject| object.annotations.hook.is_some_and(|hook| hook.delete_phase.is_some());
    let hooks = desired.objects().iter().filter(runs_at_deletion);
    hooks.take(MAX_NAMED).map(|object| object.id.to_string()).collect()
}
