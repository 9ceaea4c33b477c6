//! Checks right before the first deletion that the Sync still asks for what the plan was made from.
//!
//! In: the spec revision that this reconcile uses.
//! Out: permission to delete, or the outcome that replaces the deletion.
//!
//! The watch of Syncs may lag, and a commit may arrive before the watch event. Without this check,
//! a user who has just set `prune: false` would lose the objects that the next commit leaves out.

use tokio::sync::OnceCell;

use super::Context;
use super::carry_out::failed;
use super::desk::Desk;
use crate::api::SyncName;
use crate::cluster::Standing;
use crate::plan::{Failed, Outcome};

/// Reads the Sync once, before the first deletion of a reconcile, and caches the answer.
pub(crate) struct Asked<'a> {
    by: By<'a>,
    answer: OnceCell<Result<(), Outcome>>,
}

/// Input on which the deletions were decided.
enum By<'a> {
    /// An input that cannot change any more.
    Nothing,
    /// A spec revision, by its number.
    Order(&'a Desk, u64),
    /// A Sync that is being deleted.
    Deletion(&'a SyncName, &'a Standing),
}

impl<'a> Asked<'a> {
    /// Checks against this spec revision; without a status handle there is no Sync to check.
    pub(crate) fn by(order: u64, desk: Option<&'a Desk>) -> Self {
        Self::of(desk.map_or(By::Nothing, |desk| By::Order(desk, order)))
    }

    /// Skips the check: the input cannot change any more.
    pub(crate) fn finally() -> Self {
        Self::of(By::Nothing)
    }

    /// Checks that the Sync that is being deleted asks for the same as `standing` did.
    pub(crate) fn while_it_stands(name: &'a SyncName, standing: &'a Standing) -> Self {
        Self::of(By::Deletion(name, standing))
    }

    fn of(by: By<'a>) -> Self {
        Self { by, answer: OnceCell::new() }
    }

    /// Returns the outcome to report instead of the deletion as an error; it is retried like a
    /// failure.
    pub(crate) async fn still(&self, context: &Context) -> Result<(), Outcome> {
        self.answer.get_or_init(|| self.ask(context)).await.clone()
    }

    async fn ask(&self, context: &Context) -> Result<(), Outcome> {
        let name = match self.by {
            By::Nothing => return Ok(()),
            By::Order(desk, _) => desk.name(),
            By::Deletion(name, _) => name,
        };
        let is_meant = |now: &Standing| match self.by {
            By::Nothing => true,
            By::Order(desk, order) => desk.is_order_of(order, now),
            By::Deletion(_, then) => now.asks_the_same(then),
        };
        let standing = context.cluster.standing(name).await;
        match standing.map(|standing| standing.as_ref().is_some_and(is_meant)) {
            Ok(true) => Ok(()),
            Ok(false) => Err(Outcome::Failed(Failed {
                reason: "SyncChanged",
                message: "the Sync has changed since this deletion was decided, so it is decided anew"
                    .to_owned(),
                manifest: false,
            })),
            Err(failure) => Err(failed(&failure, false)),
        }
    }
}
