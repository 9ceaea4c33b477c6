//! A Sync that takes nothing any more, for now or for good.
//!
//! In: the keeper of the Sync. Out: nothing is applied for it, and other Syncs know that it takes nothing from them. One that is
//! refused for good, or that another daemon serves, claims nothing either, and those whose objects it has held look again.

use super::Keeper;

impl Keeper {
    /// It is not known what the Sync wants of the newest commit, and it takes nothing from others.
    pub(super) async fn takes_nothing(&mut self) {
        self.is_incomplete();
        self.desk.is_left();
        self.stop().await;
        // Once more, because the pass that has come to its end may have rendered something still.
        self.is_incomplete();
    }

    /// What the Sync wanted last counts no more: it is refused for good, or another daemon serves it.
    pub(super) async fn claims_nothing(&self) {
        let held = self.context.registry.claims_nothing(&self.name).await;
        self.context.neighbours.wake(&held);
    }

    fn is_incomplete(&self) {
        self.context.dependencies.applied(&self.name, None);
        self.context.registry.unready(&self.name);
        self.context.neighbours.anew(&self.name);
    }
}
