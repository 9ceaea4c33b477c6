//! What is refused because of what its manifest says, and for how long that has been so.
//!
//! In: what became of objects, and how long others may deny them. Out: when they are tried once more before their revision is
//! given up, and which of them is refused still after that. Nothing here counts outages, conflicts, rights or kinds that are
//! missing: these are for the cluster to mend.

use std::collections::BTreeSet;
use std::time::Duration;

use super::Memory;
use crate::api::SpecHash;
use crate::cluster::is_denial;
use crate::harmless::harmless;
use crate::object::ObjectId;
use crate::plan::{Failed, Outcome};
use crate::source::Revision;
use crate::sync::schedule::Time;

/// After this time it is tried once more what the server itself refuses: by then it knows the definition that came with it,
/// and the port is free that another object had.
const SURE: Duration = Duration::from_secs(3);

/// Objects as they were wanted when they were refused.
pub(crate) type Refused = BTreeSet<(ObjectId, SpecHash)>;

impl Memory {
    /// The revision that was held until now.
    pub(crate) fn held(&self) -> Option<&Revision> {
        self.revision.as_ref()
    }

    /// True if something was refused that only another manifest can mend.
    pub(crate) fn is_refused(&self) -> bool {
        self.failing.values().any(|failing| failing.refused.is_some())
    }

    /// What is refused now of what is wanted.
    pub(crate) fn refused(&self) -> Refused {
        let refused = self.failing.iter().filter(|(_, failing)| failing.refused.is_some());
        refused.filter_map(|(id, failing)| Some((id.clone(), failing.hash?))).collect()
    }

    /// The first object but these that was refused, and still is after all the time that it had; with what was said.
    pub(crate) fn refused_for_good(&self, but: &Refused) -> Option<String> {
        let patience = self.patience?;
        self.failing.iter().find_map(|(id, failing)| {
            let (Outcome::Failed(why), Some((since, last))) = (&failing.why, failing.refused) else {
                return None;
            };
            let had = last.saturating_sub(since);
            let counts = had >= span(why, patience) && !but.contains(&(id.clone(), failing.hash?));
            counts.then(|| format!("{id}: {}", harmless(&why.message)))
        })
    }

    /// Since when this was refused as it is wanted now, if only another manifest could help.
    pub(super) fn refused_since(
        &self,
        id: &ObjectId,
        hash: Option<SpecHash>,
        outcome: &Outcome,
        now: Time,
    ) -> Option<Time> {
        let Outcome::Failed(Failed { manifest: true, .. }) = outcome else { return None };
        let known = self.failing.get(id).filter(|known| known.hash == hash);
        Some(known.and_then(|known| known.refused).map_or(now, |(since, _)| since))
    }

    /// How much of its time is left to an object that is refused now; none where nobody counts it or it is over.
    pub(super) fn patience_left(
        &self,
        id: &ObjectId,
        hash: Option<SpecHash>,
        why: &Failed,
        now: Time,
    ) -> Option<Duration> {
        let since = self.refused_since(id, hash, &Outcome::Failed(why.clone()), now)?;
        let ends = since + span(why, self.patience.filter(|_| hash.is_some())?);
        ends.checked_sub(now).filter(|left| !left.is_zero())
    }
}

/// How long an object may be refused. Whoever denies it may change his mind; the server itself is only asked to make sure.
fn span(why: &Failed, patience: Duration) -> Duration {
    if is_denial(why.reason) { patience } else { SURE }
}
