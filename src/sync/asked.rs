//! Whether a Sync still asks for that by which deletions were decided.
//!
//! In: the order that a pass goes by. Out: yes, as the API server has the Sync now, or why nothing is deleted. The watch of Syncs
//! may be late, and a commit may overtake it: who has said `prune: false` does not lose what the next commit leaves out.

use tokio::sync::OnceCell;

use super::Context;
use super::carry_out::failed;
use super::desk::Desk;
use crate::plan::{Failed, Outcome};

/// What is known of that. It is asked once, before the first deletion of a pass.
pub(crate) struct Asked<'a> {
    desk: Option<&'a Desk>,
    order: u64,
    answer: OnceCell<Result<(), Outcome>>,
}

impl<'a> Asked<'a> {
    /// By this order, which was made from a Sync if there is a desk for one.
    pub(crate) fn by(order: u64, desk: Option<&'a Desk>) -> Self {
        Self { desk, order, answer: OnceCell::new() }
    }

    /// By what does not change any more.
    pub(crate) fn finally() -> Self {
        Self::by(0, None)
    }

    /// An error is what the deletions come to instead; they are tried again as whatever fails.
    pub(crate) async fn still(&self, context: &Context) -> Result<(), Outcome> {
        self.answer.get_or_init(|| self.ask(context)).await.clone()
    }

    async fn ask(&self, context: &Context) -> Result<(), Outcome> {
        let Some(desk) = self.desk else { return Ok(()) };
        let standing = context.cluster.standing(desk.name()).await;
        match standing.map(|standing| standing.is_some_and(|it| desk.is_order_of(self.order, &it))) {
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
