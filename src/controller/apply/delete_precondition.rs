//! Checks right before the first deletion that the Sync still asks for what the plan was made from.
//!
//! In: the spec revision that this reconcile uses.
//! Out: permission to delete, or the outcome that replaces the deletion.
//!
//! The watch of Syncs may lag, and a commit may arrive before the watch event. Without this check,
//! a user who has just set `prune: false` would lose the objects that the next commit leaves out.

use tokio::sync::OnceCell;

use super::failed;
use crate::api::SyncName;
use crate::cluster::LiveSync;
use crate::controller::Context;
use crate::controller::status::StatusRecorder;
use crate::plan::{Failure, FailureReason, Outcome};

/// Reads the Sync once, before the first deletion of a reconcile, and caches the answer.
pub(crate) struct DeletePrecondition<'a> {
    by: DecidedBy<'a>,
    answer: OnceCell<Result<(), Outcome>>,
}

/// Input on which the deletions were decided.
enum DecidedBy<'a> {
    /// An input that cannot change any more.
    Nothing,
    /// A spec revision, by its number.
    Order(&'a StatusRecorder, u64),
    /// A Sync that is being deleted.
    Deletion(&'a SyncName, &'a LiveSync),
}

impl<'a> DeletePrecondition<'a> {
    /// Checks against this spec revision; without a status handle there is no Sync to check.
    pub(crate) fn for_spec_revision(order: u64, resource_recorder: Option<&'a StatusRecorder>) -> Self {
        Self::of(
            resource_recorder
                .map_or(DecidedBy::Nothing, |resource_recorder| DecidedBy::Order(resource_recorder, order)),
        )
    }

    /// Skips the check: the input cannot change any more.
    pub(crate) fn unconditional() -> Self {
        Self::of(DecidedBy::Nothing)
    }

    /// Checks that the Sync that is being deleted asks for the same as `standing` did.
    pub(crate) fn for_deleted_sync(name: &'a SyncName, standing: &'a LiveSync) -> Self {
        Self::of(DecidedBy::Deletion(name, standing))
    }

    fn of(by: DecidedBy<'a>) -> Self {
        Self { by, answer: OnceCell::new() }
    }

    /// Returns the outcome to report instead of the deletion as an error; it is retried like a
    /// failure.
    pub(crate) async fn check(&self, context: &Context) -> Result<(), Outcome> {
        self.answer.get_or_init(|| self.ask(context)).await.clone()
    }

    async fn ask(&self, context: &Context) -> Result<(), Outcome> {
        let name = match self.by {
            DecidedBy::Nothing => return Ok(()),
            DecidedBy::Order(resource_recorder, _) => resource_recorder.name(),
            DecidedBy::Deletion(name, _) => name,
        };
        let is_meant = |now: &LiveSync| match self.by {
            DecidedBy::Nothing => true,
            DecidedBy::Order(resource_recorder, order) => resource_recorder.is_order_of(order, now),
            DecidedBy::Deletion(_, then) => now.asks_the_same(then),
        };
        let standing = context.cluster.syncs().read_live(name).await;
        match standing.map(|standing| standing.as_ref().is_some_and(is_meant)) {
            Ok(true) => Ok(()),
            Ok(false) => Err(Outcome::Failed(Failure {
                reason: FailureReason::SyncChanged,
                message: "the Sync has changed since this deletion was planned; it is planned again"
                    .to_owned(),
                manifest: false,
            })),
            Err(failure) => Err(failed(&failure, false)),
        }
    }
}
