//! Times at which the objects of a Sync are verified again, although nothing indicates a change.
//!
//! In: replies of the server, and objects that are sound without one.
//! Out: the objects that are due. After a start, the time of day decides. So each object is due
//! once in the interval, also if the daemon starts often.

use std::collections::HashMap;
use std::time::Duration;

use super::super::schedule::Uptime;
use crate::object::ObjectId;

/// The last verification of each object.
#[derive(Debug, Default)]
pub(super) struct VerificationTimes(HashMap<ObjectId, LastVerification>);

/// The last verification of an object.
#[derive(Debug, Clone, Copy)]
struct LastVerification {
    at: Uptime,
    /// Time until the next one, in parts of the interval.
    parts: f32,
}

impl VerificationTimes {
    /// Takes the objects that are due. Each has its own time: between three quarters and five
    /// quarters of `every` after a reply, and at its turn after a start. An object
    /// that is no longer desired is forgotten when it is due.
    pub(super) fn take_due(&mut self, now: Uptime, every: Duration) -> Vec<ObjectId> {
        let is_due =
            |last: &LastVerification| now.saturating_sub(last.at) >= every.mul_f64(last.parts.into());
        let found: Vec<ObjectId> =
            self.0.iter().filter(|(_, last)| is_due(last)).map(|(id, _)| id.clone()).collect();
        for id in &found {
            self.0.remove(id);
        }
        found
    }

    /// Records replies of the server.
    pub(super) fn replied(&mut self, ids: impl Iterator<Item = ObjectId>, now: Uptime) {
        self.0.extend(ids.map(|id| {
            let parts = 0.75 + f32::from(hash(&id) % 1024) / 2048.0;
            (id, LastVerification { at: now, parts })
        }));
    }

    /// Gives a time to sound objects that have none: the next turn of each. `wall` counts from
    /// 1970.
    pub(super) fn schedule(
        &mut self,
        ids: impl Iterator<Item = ObjectId>,
        now: Uptime,
        wall: Duration,
        every: Duration,
    ) {
        for id in ids {
            let parts = until_turn(&id, wall, every).div_duration_f32(every);
            self.0.entry(id).or_insert(LastVerification { at: now, parts });
        }
    }

    /// True if the object has a time.
    pub(super) fn has(&self, id: &ObjectId) -> bool {
        self.0.contains_key(id)
    }
}

/// Returns the time until an object is due. Its turn is the same part of each interval since 1970,
/// so that a restart does not move it.
pub fn until_turn(id: &ObjectId, wall: Duration, every: Duration) -> Duration {
    let turn = every.mul_f64(f64::from(mixed(full_hash(id))) / (f64::from(u32::MAX) + 1.0));
    let passed = passed_of(wall, every);
    if turn >= passed { turn - passed } else { turn + every - passed }
}

/// Returns a hash that is the same in every process, so that a restart does not move the schedule
/// of an object.
pub(super) fn hash(id: &ObjectId) -> u16 {
    (full_hash(id) >> 16) as u16
}

/// Returns the time that has passed of the current interval.
fn passed_of(wall: Duration, every: Duration) -> Duration {
    let nanos = wall.as_nanos() % every.as_nanos().max(1);
    Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
}

fn full_hash(id: &ObjectId) -> u32 {
    let step = |hash: u32, byte: u8| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193);
    id.as_str().bytes().fold(0x811c_9dc5, step)
}

/// Mixes the bits, so that names that differ only in their last letters get turns far apart.
fn mixed(hash: u32) -> u32 {
    let hash = (hash ^ hash >> 16).wrapping_mul(0x85eb_ca6b);
    let hash = (hash ^ hash >> 13).wrapping_mul(0xc2b2_ae35);
    hash ^ hash >> 16
}
