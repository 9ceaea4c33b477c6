//! Applies an event to the objects of one label: it is deferred, dropped, or recorded and notified.

use super::{InFlight, MAX_LOST, Parked, View, is_foreign, number, version};
use moorline_core::object::{Object, ObjectId};
use moorline_engine::observed::{Observed, Ownership};

impl View {
    pub(super) fn on_seen(&mut self, object: Object, is_listed: bool) -> Option<Object> {
        if let Some(InFlight { parked, .. }) = self.writes.get_mut(&object.id) {
            if parked.as_ref().is_some_and(|parked| parked.version() > version(&object)) {
                return Some(object);
            }
            *parked = Some(Parked::Seen(Box::new(object)));
            return None;
        }
        let before = self.set.get(&object.id);
        if before.is_some_and(|before| before.is_newer_than(&object)) {
            return Some(object);
        }
        let mut now = match before {
            Some(before) => before.update_from_event(&object, &self.owner),
            None if is_listed => Observed::first_listed(&object, &self.owner),
            None => Observed::first_seen(&object, &self.owner),
        };
        self.notary.check_proof(&self.owner, &object.id, &mut now);
        let matters = match before {
            Some(before) => !before.is_equivalent_to(&now),
            // Controllers copy our label to the objects that they create, such as the
            // EndpointSlices of a Service, by the thousand.
            None => !is_foreign(&now),
        };
        let stirs =
            before.is_none_or(|before| before.resource_version != now.resource_version) && !is_foreign(&now);
        if stirs {
            self.record_written(&object.id);
        }
        self.set.insert(object.id, now);
        if matters {
            self.wake.notify_one();
        }
        None
    }

    /// Checks all proofs again after a change of the keys or of the Sync's uid. Objects that lost
    /// their proof are verified, which gives them a new one where they are desired.
    pub(super) fn check_anew(&mut self) {
        let now = self.notary.checked(&self.owner);
        if self.checked == now {
            return;
        }
        self.checked = now;
        let ids: Vec<ObjectId> = self.set.iter().map(|(id, _)| id.clone()).collect();
        for id in ids {
            let (notary, owner) = (&self.notary, &self.owner);
            self.set.update(&id, |seen| {
                notary.check_proof(owner, &id, seen);
                if !seen.proven && seen.ownership == Ownership::Ours {
                    seen.unverify();
                }
            });
        }
    }

    /// Replaces the entry and the deferred event; a write in flight detects the rewind on its own.
    pub(super) fn on_rewind(&mut self, object: Object) {
        match self.writes.get_mut(&object.id) {
            Some(in_flight) => in_flight.parked = Some(Parked::Seen(Box::new(object))),
            None => {
                let mut seen = Observed::first_seen(&object, &self.owner);
                self.notary.check_proof(&self.owner, &object.id, &mut seen);
                self.record_written(&object.id);
                self.set.insert(object.id, seen);
                self.wake.notify_one();
            }
        }
    }

    /// Records that the object was written or deleted.
    pub(super) fn record_written(&mut self, id: &ObjectId) {
        self.stirred.insert(id.clone());
        self.stir.notify_one();
    }

    pub(super) fn knows_later(&self, id: &ObjectId, version: u64) -> bool {
        self.set.get(id).is_some_and(|seen| number(&seen.resource_version) > version)
    }

    pub(super) fn on_deleted(&mut self, id: &ObjectId, version: u64) {
        match self.writes.get_mut(id) {
            Some(InFlight { parked: Some(parked), .. }) if parked.version() > version => {}
            Some(in_flight) => in_flight.parked = Some(Parked::Gone(version)),
            None => {
                if let Some(observed) = self.set.remove(id) {
                    if !is_foreign(&observed) {
                        self.record_written(id);
                    }
                    if self.lost.len() < MAX_LOST {
                        self.lost.push((id.clone(), observed));
                    }
                    self.wake.notify_one();
                }
            }
        }
    }

    pub(super) fn apply_deferred(&mut self, id: &ObjectId) {
        let Some(in_flight) = self.writes.get_mut(id) else { return };
        in_flight.writes -= 1;
        if in_flight.writes > 0 {
            return;
        }
        match self.writes.remove(id).and_then(|in_flight| in_flight.parked) {
            Some(Parked::Seen(object)) => drop(self.on_seen(*object, false)),
            Some(Parked::Gone(version)) if !self.knows_later(id, version) => self.on_deleted(id, version),
            Some(Parked::Gone(_)) | None => {}
        }
    }
}
