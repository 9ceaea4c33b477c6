//! A write in flight, and its end.
//!
//! In: the response, or its absence.
//! Out: the entry of the object. The deferred event is applied after that.

use super::{Observed, Store, Verification, View};
use moorline_core::object::{Object, ObjectId};

/// Guard of a write in flight.
#[derive(Debug)]
pub(in super::super) struct WriteGuard {
    pub(super) store: Store,
    pub(super) label: String,
    pub(super) id: ObjectId,
    pub(super) finished: bool,
}

impl WriteGuard {
    /// Ends an apply with the object of the response.
    pub(in super::super) fn finish_applied(mut self, reply: &Object) {
        let check = Some(self.store.checks(|checks| checks.begun)).filter(|check| *check > 0);
        self.finish(|view, id| {
            let mut applied = Observed::from_apply(reply, &view.owner);
            view.notary.check_proof(&view.owner, id, &mut applied);
            let before = view.set.get(id);
            let known = before.filter(|before| before.uid == applied.uid);
            applied.written_after = known.and_then(|known| known.written_after).or(check);
            if before.is_none_or(|before| before.resource_version != applied.resource_version) {
                view.record_written(id);
            }
            view.set.insert(id.clone(), applied);
        });
    }

    /// Ends a deletion: the object is gone, or is being deleted.
    pub(in super::super) fn finish_deleted(mut self, gone: bool) {
        self.finish(|view, id| match gone {
            true => drop(view.set.remove(id)),
            false => view.set.update(id, |observed| observed.deleting = true),
        });
    }

    /// Ends a refused write: nothing has changed.
    pub(in super::super) fn finish_refused(mut self) {
        self.finish(|_, _| {});
    }

    fn finish(&mut self, change: impl FnOnce(&mut View, &ObjectId)) {
        self.finished = true;
        let mut inner = self.store.lock();
        if let Some(view) = inner.views.get_mut(&*self.label) {
            change(view, &self.id);
            view.apply_deferred(&self.id);
        }
    }
}

impl Drop for WriteGuard {
    /// A write whose response was lost may have happened or not.
    fn drop(&mut self) {
        if !self.finished {
            self.finish(|view, id| {
                view.set.update(id, |observed| {
                    observed.unverify();
                    observed.verification = Verification::Unverified;
                });
                view.wake.notify_one();
            });
        }
    }
}
