//! Steps of a deletion that all of its paths share.
//!
//! In: a Sync that is being deleted.
//! Out: its remaining objects, one round of writes, a status, and the removal of the finalizer.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use serde_json::Value;

use super::orphans::Orphans;
use super::{DeletionContext, DeletionRequest, look};
use crate::api::FINALIZER;
use crate::cluster::{ApiError, Cluster, LiveSync};
use crate::controller::apply::delete_precondition::DeletePrecondition;
use crate::controller::apply::{ApplyContext, execute};
use crate::controller::status::log_lines::{LogSubject, Tone};
use crate::object::ObjectId;
use crate::plan::{AwaitedKinds, Outcome, Plan};
use crate::report::ReconcileError;

/// Time to look for the objects that stay: they are only reported.
const LOOK: Duration = Duration::from_secs(3);

/// Attempts to remove the finalizer of a Sync that other clients write to at the same time.
const MAX_ATTEMPTS: usize = 5;

impl DeletionContext<'_> {
    /// Returns the cluster with all objects of the Sync cached; `None` if that fails or takes too
    /// long.
    pub(super) async fn known(&self, leaving: &DeletionRequest) -> Option<Cluster> {
        let (name, valid_spec) = (self.resource_recorder.name(), leaving.as_ref().ok()?);
        let cluster = self.context.target_of(self.resource_recorder, valid_spec).await.ok()?;
        let seen = tokio::time::timeout(LOOK, look(&cluster, name, self.sync, valid_spec)).await;
        matches!(seen, Ok(Ok(()))).then_some(cluster)
    }

    /// Keeps all objects, and returns those that are known.
    pub(super) async fn all_stay(&self, leaving: &DeletionRequest, why: &'static str) -> Orphans {
        let cluster = self.known(leaving).await;
        Orphans::all(cluster.as_ref(), self.resource_recorder.name(), why)
    }

    /// Returns the objects that the Sync has now.
    pub(super) fn left(&self, cluster: &Cluster) -> Vec<ObjectId> {
        Orphans::all(Some(cluster), self.resource_recorder.name(), "")
            .objects
            .into_iter()
            .map(|(id, _)| id)
            .collect()
    }

    /// Returns true if hooks run at the deletion of the Sync.
    pub(super) fn has_last_hooks(&self) -> bool {
        let hooks = self.sync.pointer("/status/hooksAtDeletion").and_then(Value::as_array);
        hooks.is_some_and(|hooks| !hooks.is_empty())
    }

    /// Reports the progress of the deletion in the status.
    pub(super) fn report_status(&self, reconcile_error: ReconcileError) {
        self.resource_recorder.stop_reconciling();
        self.resource_recorder.refuse(Some(reconcile_error));
    }

    /// Executes one round. The Sync is read before the first object is deleted, because its watch
    /// may lag.
    pub(super) async fn write(&self, work: &ApplyContext<'_>, plan: Plan) -> BTreeMap<ObjectId, Outcome> {
        let _writing = self.brake.writes().await;
        let asked =
            DeletePrecondition::for_deleted_sync(self.resource_recorder.name(), &self.brake.decided_by);
        let (contested, numbers) = (work.contested.clone(), work.numbers.clone());
        let deletions = work.deletions.clone();
        let work = ApplyContext { asked: &asked, contested, numbers, deletions, ..*work };
        let mut kinds = AwaitedKinds::new(work.desired, BTreeSet::new());
        execute(&work, &plan, &[], None, &mut kinds).await
    }

    /// Removes the finalizer, so that the API server removes the Sync; returns true if that has to
    /// be retried.
    pub(super) async fn release(&self) -> bool {
        let (cluster, name) = (&self.context.cluster, self.resource_recorder.name());
        let mut standing = self.brake.decided_by.clone();
        for _ in 0..MAX_ATTEMPTS {
            let others: Vec<String> =
                standing.finalizers.iter().filter(|one| *one != FINALIZER).cloned().collect();
            let failure = match cluster.syncs().write_finalizers(name, &standing.version, &others).await {
                Ok(()) => return false,
                Err(failure) => failure,
            };
            match failure.code() {
                Some(404) => return false,
                // Our own status update is a write, too. If the Sync asks for something else now,
                // the deletion is decided again.
                Some(409) => match self.now().await {
                    Ok(Some(now)) if now.asks_the_same(&standing) => standing = now,
                    Ok(Some(_)) => return true,
                    Ok(None) => return false,
                    Err(failure) => return self.is_kept_by(&failure),
                },
                _ => return self.is_kept_by(&failure),
            }
        }
        true
    }

    async fn now(&self) -> Result<Option<LiveSync>, ApiError> {
        let now = self.context.cluster.syncs().read_live(self.resource_recorder.name()).await?;
        Ok(now.filter(|now| now.uid == self.brake.decided_by.uid))
    }

    fn is_kept_by(&self, failure: &ApiError) -> bool {
        let text = format!("the finalizer could not be removed yet: {failure}");
        self.context.reporting.lines.log_condition(
            self.resource_recorder.name(),
            LogSubject::Deletion,
            Tone::Warning,
            "FinalizerStays",
            &text,
        );
        true
    }
}
