//! Tracks objects that are rejected because of their manifest.
//!
//! In: outcomes of objects, and the time for which admission may deny them.
//! Out: the time of the next attempt, and the objects that are still rejected after the time is
//! over. If rollback is enabled, these make the revision count as failed.
//!
//! Outages, conflicts, missing permissions and missing kinds do not count: another manifest does
//! not resolve them.

use std::collections::BTreeSet;
use std::time::Duration;

use super::SyncMemory;
use crate::api::SpecHash;
use crate::controller::schedule::Uptime;
use crate::object::ObjectId;
use crate::plan::{Failure, Outcome};
use crate::sanitize::sanitize;
use crate::source::Revision;

/// Delay before an object that the server itself rejects is retried once: by then the server knows
/// a CRD of the same commit, and a port that another object had is free.
const SURE: Duration = Duration::from_secs(3);

/// Rejected objects, with the hashes of their manifests.
pub(crate) type RejectedManifests = BTreeSet<(ObjectId, SpecHash)>;

impl SyncMemory {
    /// Returns the revision that was held until now.
    pub(crate) fn held(&self) -> Option<&Revision> {
        self.revision.as_ref()
    }

    /// Returns true if an object was rejected that only another manifest can fix.
    pub(crate) fn is_refused(&self) -> bool {
        self.retries.values().any(|failing| failing.refused.is_some())
    }

    /// Returns the desired objects that are rejected now.
    pub(crate) fn refused(&self) -> RejectedManifests {
        let refused = self.retries.iter().filter(|(_, failing)| failing.refused.is_some());
        refused.filter_map(|(id, failing)| Some((id.clone(), failing.hash?))).collect()
    }

    /// Returns the first object, other than `but`, that was rejected for longer than its time
    /// allows, with the reason.
    pub(crate) fn finally_rejected(&self, but: &RejectedManifests) -> Option<String> {
        let limit = self.rejection_limit?;
        self.retries.iter().find_map(|(id, failing)| {
            let (Outcome::Failed(why), Some((since, last))) = (&failing.why, failing.refused) else {
                return None;
            };
            let had = last.saturating_sub(since);
            let counts = had >= rejection_time(why, limit) && !but.contains(&(id.clone(), failing.hash?));
            counts.then(|| format!("{id}: {}", sanitize(&why.message)))
        })
    }

    /// Returns the time since which the current manifest is rejected, if only another one can help.
    pub(super) fn refused_since(
        &self,
        id: &ObjectId,
        hash: Option<SpecHash>,
        outcome: &Outcome,
        now: Uptime,
    ) -> Option<Uptime> {
        let Outcome::Failed(Failure { manifest: true, .. }) = outcome else { return None };
        let known = self.retries.get(id).filter(|known| known.hash == hash);
        Some(known.and_then(|known| known.refused).map_or(now, |(since, _)| since))
    }

    /// Returns the time left to a rejected object; `None` if there is no limit or it is over.
    pub(super) fn rejection_time_left(
        &self,
        id: &ObjectId,
        hash: Option<SpecHash>,
        why: &Failure,
        now: Uptime,
    ) -> Option<Duration> {
        let since = self.refused_since(id, hash, &Outcome::Failed(why.clone()), now)?;
        let ends = since + rejection_time(why, self.rejection_limit.filter(|_| hash.is_some())?);
        ends.checked_sub(now).filter(|left| !left.is_zero())
    }
}

/// Returns the time for which an object may be rejected. An admission policy may change; the server
/// itself is only retried to make sure.
fn rejection_time(why: &Failure, limit: Duration) -> Duration {
    if why.reason.is_admission_denial() { limit } else { SURE }
}
