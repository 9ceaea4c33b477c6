//! Whether a Sync still asks for that by which deletions were decided.
//!
//! In: the order that a pass goes by. Out: yes, as the API server has the Sync now, or why nothing is deleted. The watch of Syncs
//! may be late, and a commit may overtake it: who has said `prune: false` does not lose what the next commit leaves out.

use tokio::sync::OnceCell;

use super::Context;
use super::carry_out::failed;
use super::desk::Desk;
use crate::api::SyncName;
use crate::cluster::Standing;
use crate::plan::{Failed, Outcome};

/// What is known of that. It is asked once, before the first deletion of a pass.
pub(crate) struct Asked<'a> {
    by: By<'a>,
    answer: OnceCell<Result<(), Outcome>>,
}

/// By which the deletions were decided.
enum By<'a> {
    /// By what does not change any more.
    Nothing,
    /// By an order, by its number.
    Order(&'a Desk, u64),
    /// By a Sync that is being deleted.
    Deletion(&'a SyncName, &'a Standing),
}

impl<'a> Asked<'a> {
    /// By this order, which was made from a Sync if there is a desk for one.
    pub(crate) fn by(order: u64, desk: Option<&'a Desk>) -> Self {
        Self::of(desk.map_or(By::Nothing, |desk| By::Order(desk, order)))
    }

    /// By what does not change any more.
    pub(crate) fn finally() -> Self {
        Self::of(By::Nothing)
    }

    /// By a Sync that is being deleted, as long as it stands as it was then.
    pub(crate) fn while_it_stands(name: &'a SyncName, standing: &'a Standing) -> Self {
        Self::of(By::Deletion(name, standing))
    }

    fn of(by: By<'a>) -> Self {
        Self { by, answer: OnceCell::new() }
    }

    /// An error is what the deletions come to instead; they are tried again as whatever fails.
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
