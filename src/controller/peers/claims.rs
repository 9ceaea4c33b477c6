//! Claims of other Syncs on objects that a Sync is about to delete.
//!
//! In: the objects, and the state of the other Syncs.
//! Out: [`Claims`], or the patch rights that have to be queried first.
//!
//! A claim that lasts for too long is put up for approval by a person.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use super::claim_evidence::{Claimant, strongest};
use super::render_attempts::LaggingPeer;
use super::{Arrival, Peers};
use crate::api::{SyncName, parse_moves_to};
use crate::cluster::Cluster;
use crate::controller::schedule::Uptime;
use crate::desired::DesiredSet;
use crate::object::ObjectId;
use crate::plan::{Claim, ClaimState};
use crate::source::ObjectHash;

/// Claims of other Syncs.
#[derive(Debug, Default)]
pub(crate) struct Claims {
    pub(crate) by_object: BTreeMap<ObjectId, Claim>,
    /// Time at which the first wait for another Sync ends.
    pub(crate) due: Option<Instant>,
}

/// A patch right that has to be queried before a claim can be weighed.
pub(crate) struct UnknownRight {
    pub(super) sync: SyncName,
    pub(super) cluster: Cluster,
    pub(super) object: ObjectId,
}

/// A Sync whose objects other Syncs may claim.
pub(crate) struct LeftObjects<'a> {
    /// Commits that last contained objects which are no longer desired.
    pub(crate) left: &'a BTreeMap<ObjectId, ObjectHash>,
    /// Time at which the deletion of the Sync began, if it is being deleted.
    pub(crate) begun: Option<Instant>,
    /// The Sync to which it moves its objects, as written in the resource.
    pub(crate) moves_to: Option<&'a str>,
    /// Time at which the term of this daemon began.
    pub(crate) term: Instant,
}

/// The Sync that takes over the objects of another one and has not polled since; the raw text if it
/// is not a valid name.
struct NamedSuccessor {
    sync: Result<SyncName, Box<str>>,
    /// Time at which it is triggered to poll.
    due: Option<Instant>,
}

/// Most characters that are shown of a value from a resource.
const MAX_SHOWN: usize = 40;

impl Peers {
    /// Returns the claims of other Syncs on these objects.
    pub(crate) fn claims<'a>(
        &self,
        own: &SyncName,
        objects: impl Iterator<Item = &'a ObjectId>,
        LeftObjects { left, begun, moves_to, term }: LeftObjects<'_>,
    ) -> Result<Claims, Vec<UnknownRight>> {
        let mut objects = objects.peekable();
        if objects.peek().is_none() {
            return Ok(Claims::default());
        }
        // Read before the claims: a Sync that is up to date has registered its claims.
        let behind = self.lagging_peers(own, begun, Some(term));
        let named = moves_to.and_then(|text| self.named(own, text, (begun, term)));
        let (mut claims, mut open) = (Claims::default(), Vec::new());
        for id in objects {
            let wanted = self.wanted_by_others(own, id, &mut open).into_iter();
            let mut all: Vec<_> = wanted.map(|(sync, standing)| (Ok(sync), standing)).collect();
            let mut waits = None;
            for other in &behind {
                let standing = match other {
                    LaggingPeer::Untried(_, until) => {
                        waits = waits.max(Some(*until));
                        Some(ClaimState::Possible)
                    }
                    LaggingPeer::Failed(sync, tried) if tried.may_hold(id, left.get(id)) => {
                        let cluster = tried.cluster.as_ref();
                        let claimant = cluster.and_then(|it| self.claimant(sync, it, id, &mut open));
                        claimant.and_then(Claimant::may_hold)
                    }
                    LaggingPeer::Failed(..) => None,
                };
                all.extend(standing.map(|standing| (Ok(other.sync().clone()), standing)));
            }
            if let Some(NamedSuccessor { sync, due }) = &named {
                waits = waits.into_iter().chain(*due).min();
                all.push((sync.clone(), ClaimState::MoveTarget));
            }
            let Some((sync, standing)) = strongest(all) else { continue };
            sync.iter().for_each(|sync| self.lock().registry.holds(sync, own));
            claims.due = [claims.due, waits].into_iter().flatten().min();
            let sync = sync.map_or_else(|written| written, |sync| sync.to_string().into());
            claims.by_object.insert(id.clone(), Claim { sync, state: standing });
        }
        if open.is_empty() { Ok(claims) } else { Err(open) }
    }

    /// Returns the Sync to which this one moves, if that Sync has not polled since.
    fn named(
        &self,
        own: &SyncName,
        text: &str,
        (begun, term): (Option<Instant>, Instant),
    ) -> Option<NamedSuccessor> {
        let sync = parse_moves_to(text, own);
        let Arrival::Awaited(due) = self.arrival((own, sync.as_ref()), begun, term) else {
            return None;
        };
        let written = || format!("{:?}", text.chars().take(MAX_SHOWN).collect::<String>()).into();
        Some(NamedSuccessor { sync: sync.ok_or_else(written), due })
    }

    /// Returns the Syncs that desire an object by a complete render, as far as their claim counts.
    fn wanted_by_others(
        &self,
        own: &SyncName,
        id: &ObjectId,
        open: &mut Vec<UnknownRight>,
    ) -> Vec<(SyncName, ClaimState)> {
        let all = self.lock().registry.wanting(own, id).into_iter();
        all.filter_map(|other| {
            let claimant = self.claimant(&other.sync, &other.cluster, id, open)?;
            Some((other.sync, claimant.wants(other.ready)?))
        })
        .collect()
    }

    /// Returns a Sync with its right to patch an object; `None` if the right has to be queried
    /// first.
    fn claimant(
        &self,
        sync: &SyncName,
        cluster: &Cluster,
        id: &ObjectId,
        open: &mut Vec<UnknownRight>,
    ) -> Option<Claimant> {
        let is_at_home = id.namespace() == Some(&*sync.namespace);
        let Some(may_patch) = self.lock().claim_rights.known(sync, id) else {
            open.push(UnknownRight { sync: sync.clone(), cluster: cluster.clone(), object: id.clone() });
            return None;
        };
        Some(Claimant { may_patch, is_at_home })
    }

    /// Returns a Sync whose complete render claims the object, for the last check before a
    /// deletion.
    pub(crate) fn claimed(&self, own: &SyncName, id: &ObjectId) -> Option<Box<str>> {
        let mut open = Vec::new();
        let wanted = self.wanted_by_others(own, id, &mut open).into_iter().next().map(|(sync, _)| sync);
        let asked = open.into_iter().next().map(|open| open.sync);
        let sync = wanted.or(asked)?;
        self.lock().registry.holds(&sync, own);
        Some(sync.to_string().into())
    }
}

/// Start times of objects that wait for other Syncs.
#[derive(Debug, Default)]
pub(crate) struct ClaimWaits {
    since: BTreeMap<ObjectId, Uptime>,
    /// Time at which the claims are evaluated again.
    due: Option<Uptime>,
    /// Commits that last contained objects which are no longer desired.
    left: BTreeMap<ObjectId, ObjectHash>,
}

impl ClaimWaits {
    /// Records the objects that a newly accepted commit no longer contains.
    pub(crate) fn takes_up(&mut self, before: Option<(&DesiredSet, ObjectHash)>, now: &DesiredSet) {
        self.left.retain(|id, _| now.get(id).is_none());
        let Some((before, commit)) = before else { return };
        let gone = before.objects().iter().map(|object| &object.id).filter(|id| now.get(id).is_none());
        self.left.extend(gone.map(|id| (id.clone(), commit)));
    }

    /// Returns the commits that last contained objects which are no longer desired.
    pub(crate) fn left(&self) -> &BTreeMap<ObjectId, ObjectHash> {
        &self.left
    }

    /// Marks claims that have lasted for longer than `limit` as overdue, so that a person decides.
    /// `due` is the time at which one of them ends without a decision.
    pub(crate) fn judge(
        &mut self,
        claims: &mut BTreeMap<ObjectId, Claim>,
        due: Option<Uptime>,
        now: Uptime,
        limit: Duration,
    ) {
        let waits = |claim: &Claim| {
            matches!(claim.state, ClaimState::CannotAdopt | ClaimState::Possible | ClaimState::MoveTarget)
        };
        let mut known = std::mem::take(&mut self.since);
        self.due = due;
        for (id, claim) in claims.iter_mut().filter(|(_, claim)| waits(claim)) {
            let since = known.remove(id).unwrap_or(now);
            self.since.insert(id.clone(), since);
            match since + limit <= now {
                true => claim.state = ClaimState::Overdue,
                false => self.due = Some(self.due.map_or(since + limit, |due| due.min(since + limit))),
            }
        }
    }

    /// Returns the next time at which the claims are evaluated again.
    pub(crate) fn next(&self, now: Uptime) -> Option<Uptime> {
        self.due.filter(|due| *due > now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_claim_that_stands_for_too_long_is_put_before_a_person() {
        let at = Duration::from_secs;
        let id = |name: &str| ObjectId::parse(&format!("/ConfigMap|a/{name}")).unwrap();
        let all = || {
            [
                ("a", ClaimState::CannotAdopt),
                ("b", ClaimState::Possible),
                ("c", ClaimState::WillAdopt),
                ("d", ClaimState::MoveTarget),
            ]
            .map(|(name, standing)| (id(name), Claim { sync: "ops/other".into(), state: standing }))
        };
        let mut waits = ClaimWaits::default();
        let mut judge = |now: u64| {
            let mut claims = BTreeMap::from(all());
            waits.judge(&mut claims, None, at(now), at(60));
            let standings: Vec<ClaimState> = claims.values().map(|claim| claim.state).collect();
            (standings, waits.next(at(now)))
        };
        let (cannot, may, takes) = (ClaimState::CannotAdopt, ClaimState::Possible, ClaimState::WillAdopt);
        let named = ClaimState::MoveTarget;
        assert_eq!(judge(5), (vec![cannot, may, takes, named], Some(at(65))));
        assert_eq!(judge(64), (vec![cannot, may, takes, named], Some(at(65))));
        let overdue = ClaimState::Overdue;
        assert_eq!(judge(65), (vec![overdue, overdue, takes, overdue], None));
        // Without a claim in between, the time starts again.
        waits.judge(&mut BTreeMap::new(), Some(at(70)), at(66), at(60));
        assert_eq!((waits.next(at(66)), waits.next(at(70))), (Some(at(70)), None));
        let mut claims = BTreeMap::from(all());
        waits.judge(&mut claims, None, at(67), at(60));
        assert_eq!(waits.next(at(67)), Some(at(127)));
    }
}
