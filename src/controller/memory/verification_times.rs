//! Times at which the objects of a Sync are verified again, although nothing indicates a change.
//!
//! In: replies of the server, and objects that are believed without one.
//! Out: the objects that are due.

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

/// Part of the interval after a start in which believed objects cause no request.
const QUIET_PART: f32 = 0.25;
/// Its multiples are spread evenly between two whole numbers, however many there are.
const GOLDEN_RATIO: f64 = 0.618_033_988_749_894_9;

impl VerificationTimes {
    /// Takes the objects that are due. Each has its own time: between three quarters and five
    /// quarters of `every` after a reply, and within `every` after a start without one. An object
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

    /// Records objects that are believed without a request. Their times are spread evenly over the
    /// rest of the interval. `chance` moves these times, so that a daemon which starts twice a day
    /// verifies other objects each time.
    pub(super) fn believed(&mut self, ids: Vec<ObjectId>, now: Uptime, chance: f64) {
        let even = (0_u32..).map(|at| (chance + f64::from(at) * GOLDEN_RATIO).fract() as f32);
        let parts = even.map(|even| QUIET_PART + (1.0 - QUIET_PART) * even);
        let last = parts.map(|parts| LastVerification { at: now, parts });
        self.0.extend(ids.into_iter().zip(last));
    }
}

/// Returns a hash that is the same in every process, so that a restart does not move the schedule
/// of an object.
pub(super) fn hash(id: &ObjectId) -> u16 {
    let step = |hash: u32, byte: u8| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193);
    (id.as_str().bytes().fold(0x811c_9dc5, step) >> 16) as u16
}
