//! One object is applied, and whoever else has a claim on its fields is dealt with as the Sync asks.
//!
//! In: an object, and why it is applied. Out: what became of it. Before the apply, fields that are left to others
//! from now on are handed over with their values (`handover.rs`); after it, fields that Git does not say any more
//! are taken from where they outlived it (`removed.rs`).

use serde_json::Value;

use super::carry_out::Work;
use super::ledger::Yielded;
use crate::api::{self, Conflicts};
use crate::cluster::{Applied, Cause, Failure, Force, Refusal, answer};
use crate::desired::DesiredObject;
use crate::fields::{Entry, FieldSet, entries, meant, pointer_of, told, touches};
use crate::object::ObjectId;
use crate::plan::{Change, Hold, Outcome, may_fill_keys};

/// How often one object is applied anew because others' claims on it changed meanwhile.
const MAX_ROUNDS: usize = 3;

impl Work<'_> {
    /// Applies an object; `change` is none for one that was not seen or is not ours yet.
    pub(super) async fn apply(
        &self,
        id: &ObjectId,
        change: Option<&Change>,
        outcome: impl FnOnce(&Applied) -> Outcome,
    ) -> Result<Outcome, Failure> {
        let Some(wanted) = self.desired.get(id) else { return Ok(Outcome::Held(Hold::UnknownKind)) };
        if let Some(scaler) = self.new_scaler(wanted) {
            return Ok(Outcome::Held(Hold::Waits(scaler)));
        }
        let marks = match change.is_none() && self.is_there_for_once(wanted).await? {
            true => Some(wanted.marks_only()),
            false => None,
        };
        let wanted = marks.as_ref().unwrap_or(wanted);
        let force = self.force(change);
        match self.send(wanted, force, change).await {
            Ok(applied) => Ok(outcome(&applied)),
            Err(Failure::Refused(refusal)) if force == Force::No && refusal.code == 409 => {
                match self.conflict(wanted, refusal, change).await {
                    Ok((None, applied)) => Ok(outcome(&applied)),
                    Ok((Some(managers), _)) => Ok(Outcome::Adopted(managers)),
                    Err(Stuck::Held(hold)) => Ok(Outcome::Held(hold)),
                    Err(Stuck::Failed(failure)) => self.once_more(wanted, change, failure, outcome).await,
                }
            }
            Err(failure) => self.once_more(wanted, change, failure, outcome).await,
        }
    }

    /// Applies it once more if what stood in the way could be moved aside.
    async fn once_more(
        &self,
        wanted: &DesiredObject,
        change: Option<&Change>,
        failure: Failure,
        outcome: impl FnOnce(&Applied) -> Outcome,
    ) -> Result<Outcome, Failure> {
        if !self.make_way(wanted, &failure, change.is_some()).await? {
            return self.refused(wanted, failure).await;
        }
        Ok(outcome(&self.send(wanted, Force::Yes, change).await?))
    }

    /// Whether others' fields are taken at once. What is known to have been ours is; after a start nobody knows who
    /// changed what, and who is to yield does not find out by force.
    fn force(&self, change: Option<&Change>) -> Force {
        match (self.conflicts, change) {
            (_, None) => Force::No,
            (Conflicts::Force, Some(_)) => Force::Yes,
            (Conflicts::Yield, Some(Change::Committed | Change::Unverified | Change::Moved)) => Force::No,
            (Conflicts::Fail, Some(Change::Committed)) => Force::No,
            (Conflicts::Yield | Conflicts::Fail, Some(_)) => Force::Yes,
        }
    }

    /// True for an object that is only ever created, and that others have made: it gets our marks, and keeps what it says.
    async fn is_there_for_once(&self, wanted: &DesiredObject) -> Result<bool, Failure> {
        // What we hold of it would go with an apply that does not say it.
        Ok(wanted.switches.apply_once && self.entry(wanted).await?.is_some_and(|own| own.is_empty()))
    }

    /// Creates an object that must not be written again as it is created: with the number of replicas in Git, which is let
    /// go of then, or once for all. So is a Secret, which may be there with the keys of another daemon. None if it is there already.
    pub(super) async fn create_new(&self, wanted: &DesiredObject) -> Result<Option<Outcome>, Failure> {
        let first = match wanted.created_as.as_deref() {
            Some(first) => first,
            None if wanted.switches.apply_once || may_fill_keys(wanted) => wanted,
            None => return Ok(None),
        };
        match self.cluster.create(first, self.owner).await {
            Ok(applied) => self.ledger.warned(wanted, &applied.warnings),
            Err(failure) if failure.code() == Some(409) => return Ok(None),
            Err(failure) => return Err(failure),
        }
        if wanted.created_as.is_some() {
            self.send(wanted, Force::Yes, Some(&Change::Committed)).await?;
        }
        Ok(Some(Outcome::Created))
    }

    /// Applies what is ours of an object, and sees to what was.
    async fn send(
        &self,
        wanted: &DesiredObject,
        force: Force,
        change: Option<&Change>,
    ) -> Result<Applied, Failure> {
        let before = match change {
            Some(Change::Committed) => self.before(wanted).await?,
            // One that others scale may be ours although it was not seen, as without its label.
            None if wanted.created_as.is_some() => self.entry(wanted).await?.filter(|own| !own.is_empty()),
            _ => None,
        };
        let mut less = self.ledger.yielded(wanted);
        if let Some(before) = &before {
            self.hand_fields_over(wanted, before, &less).await?;
        }
        let contested = self.contested(wanted);
        let without = |less: &[Box<str>]| [less, &contested].concat();
        let mut applied = self.cluster.apply_less(wanted, self.owner, force, &without(&less)).await?;
        let free = self.unclaimed(wanted, &applied, &less);
        if !free.is_empty() {
            self.ledger.reclaim(wanted, &free);
            less.retain(|place| !free.contains(place));
            applied = self.cluster.apply_less(wanted, self.owner, Force::No, &without(&less)).await?;
        }
        self.ledger.warned(wanted, &applied.warnings);
        self.release_others(wanted, &applied).await;
        if let Some(before) = &before {
            self.clear(wanted, before, &applied, &without(&less)).await;
        }
        Ok(applied)
    }

    /// Ends what a Sync still holds that has let go of the object, as when it ended between the two requests of a move.
    async fn release_others(&self, wanted: &DesiredObject, applied: &Applied) {
        let own = self.owner.manager();
        let managers = applied.object.metadata("managedFields").and_then(Value::as_array);
        let managers = managers.into_iter().flatten().filter_map(|entry| entry["manager"].as_str());
        let others = managers.filter(|manager| **manager != *own);
        let syncs = others.filter_map(|manager| manager.strip_prefix(api::MANAGER_PREFIX));
        for sync in syncs.filter(|sync| self.context.registry.has_let_go(sync, &wanted.id)) {
            // It is tried again with the next apply.
            if let Err(failure) = self.cluster.release(&wanted.id, &wanted.version, sync).await {
                tracing::debug!(sync = %self.owner, object = %wanted.id, %failure, "another Sync still holds fields of it");
            }
        }
    }

    /// The places that others have taken and fight for. What is ours of them at the moment stays: not to name it would
    /// delete it.
    fn contested(&self, wanted: &DesiredObject) -> Vec<Box<str>> {
        let contest = self.contested.get(&wanted.id).filter(|contest| wanted.is_recorded_as(&contest.hash));
        let Some(contest) = contest.filter(|contest| !contest.fields.is_empty()) else { return Vec::new() };
        let taken: Vec<&String> = self.cluster.observed(self.owner, |set| {
            let seen = set.get(&wanted.id);
            contest.fields.iter().filter(|field| seen.is_some_and(|seen| seen.lacks(field))).collect()
        });
        let body = body(wanted);
        taken.into_iter().flat_map(|field| told(&body, field)).map(Box::from).collect()
    }

    /// What our entry owned until now; none where we have none.
    async fn before(&self, wanted: &DesiredObject) -> Result<Option<FieldSet>, Failure> {
        let known = self.cluster.observed(self.owner, |set| {
            // An entry that others wiped was ours all the same.
            let seen = set.get(&wanted.id).filter(|seen| seen.applied_by_us || seen.baseline.is_some())?;
            Some(seen.owned())
        });
        match known {
            None => Ok(None),
            Some(Some(own)) => Ok(Some(own)),
            // It was made anew, or forgotten, and after the apply it is too late.
            Some(None) => self.entry(wanted).await,
        }
    }

    /// Our entry as it is now; none if the object is not there.
    async fn entry(&self, wanted: &DesiredObject) -> Result<Option<FieldSet>, Failure> {
        let live = self.cluster.metadata(&wanted.id, &wanted.version).await?;
        let entries = live.map(|live| own_and_foreign(&live, &self.owner.manager()));
        Ok(entries.map(|(own, _)| own))
    }

    /// The places that were left to others of which nobody holds anything any more.
    fn unclaimed(&self, wanted: &DesiredObject, applied: &Applied, less: &[Box<str>]) -> Vec<Box<str>> {
        if less.is_empty() {
            return Vec::new();
        }
        let body = body(wanted);
        let (_, foreign) = own_and_foreign(&applied.object, &self.owner.manager());
        let held: Vec<String> = foreign
            .iter()
            .flat_map(|entry| entry.fields.members())
            .filter_map(|path| pointer_of(&path, &body))
            .collect();
        let is_held = |place: &str| held.iter().any(|held| touches(held, place));
        less.iter().filter(|place| !is_held(place)).cloned().collect()
    }

    /// Others own fields that Git sets. Gives those that the object was taken from, if it was.
    async fn conflict(
        &self,
        wanted: &DesiredObject,
        mut refusal: Box<Refusal>,
        change: Option<&Change>,
    ) -> Result<(Option<Vec<Box<str>>>, Applied), Stuck> {
        let mut force = Force::No;
        let adopted = |managers: Vec<Box<str>>| change.is_none().then_some(managers);
        for _ in 0..MAX_ROUNDS {
            let managers = refusal.managers();
            if let Some(other) = self.other_sync(&managers) {
                // What a Sync applied that is no more, or that it cannot see any more, is nobody's.
                if !self.is_gone(other).await? && !self.has_lost(other, wanted).await? {
                    return Err(Stuck::Held(Hold::OwnedBy(other.into())));
                }
                let applied = self.send(wanted, Force::Yes, change).await?;
                self.cluster.release(&wanted.id, &wanted.version, other).await?;
                return Ok((adopted(managers), applied));
            }
            let handed_over =
                !managers.is_empty() && managers.iter().all(|manager| &**manager == api::HANDOVER_MANAGER);
            match self.conflicts {
                Conflicts::Force => force = Force::Yes,
                Conflicts::Yield | Conflicts::Fail if handed_over => force = Force::Yes,
                Conflicts::Yield if self.yields(wanted, &refusal, &mut force) => {}
                Conflicts::Yield | Conflicts::Fail if managers.is_empty() => {
                    return Err(Stuck::Failed(Failure::Refused(refusal)));
                }
                Conflicts::Yield | Conflicts::Fail => return Err(Stuck::Held(held(&refusal))),
            }
            match self.send(wanted, force, change).await {
                Ok(applied) => return Ok((adopted(managers), applied)),
                Err(Failure::Refused(again)) if force == Force::No && again.code == 409 => refusal = again,
                Err(failure) => return Err(Stuck::Failed(failure)),
            }
        }
        Err(Stuck::Held(held(&refusal)))
    }

    fn other_sync<'a>(&self, managers: &'a [Box<str>]) -> Option<&'a str> {
        let own = self.owner.manager();
        let mut others = managers.iter().filter(|manager| ***manager != *own);
        others.find_map(|manager| manager.strip_prefix(api::MANAGER_PREFIX))
    }

    /// Leaves the fields of a conflict to those who own them; false if it is not clear which these are. Our marks
    /// are never left to others: without them the object is not ours.
    fn yields(&self, wanted: &DesiredObject, refusal: &Refusal, force: &mut Force) -> bool {
        let body = body(wanted);
        let mut fields = Vec::new();
        for (cause, manager) in conflicts(refusal) {
            if is_mark(&cause.field) {
                *force = Force::Yes;
                continue;
            }
            let places = meant(&body, &cause.field);
            if places.is_empty() {
                return false;
            }
            fields.extend(places.into_iter().map(|pointer| Yielded {
                pointer: pointer.into(),
                field: cause.field.trim_start_matches('.').into(),
                manager: manager.into(),
            }));
        }
        let clear = !fields.is_empty() || *force == Force::Yes;
        for it in &fields {
            tracing::info!(sync = %self.owner, object = %wanted.id, field = %wanted.shows(&it.field), manager = %it.manager, "left to another manager");
        }
        self.ledger.yield_to(wanted, fields);
        clear
    }

    /// What an apply that was refused comes to.
    pub(super) async fn refused(&self, wanted: &DesiredObject, failure: Failure) -> Result<Outcome, Failure> {
        let namespace = || wanted.id.namespace().unwrap_or_default().into();
        match answer(&failure, wanted.secret).reason {
            "NamespaceMissing" => Ok(Outcome::Held(Hold::NamespaceMissing(namespace()))),
            "NamespaceTerminating" => Ok(Outcome::Held(Hold::NamespaceTerminating(namespace()))),
            "Immutable" => self.recreate(wanted, failure).await,
            _ => Err(failure),
        }
    }
}

/// Why a conflict was not resolved.
enum Stuck {
    Held(Hold),
    Failed(Failure),
}

impl From<Failure> for Stuck {
    fn from(failure: Failure) -> Self {
        Self::Failed(failure)
    }
}

fn held(refusal: &Refusal) -> Hold {
    let mut fields: Vec<Box<str>> =
        conflicts(refusal).map(|(cause, _)| cause.field.trim_start_matches('.').into()).collect();
    fields.sort();
    fields.dedup();
    Hold::Conflict { managers: refusal.managers(), fields }
}

/// The fields of a conflict, each with its manager, which stands between quotation marks.
fn conflicts(refusal: &Refusal) -> impl Iterator<Item = (&Cause, &str)> {
    let of_fields = refusal.causes.iter().filter(|cause| &*cause.reason == "FieldManagerConflict");
    of_fields.map(|cause| (cause, cause.message.split('"').nth(1).unwrap_or_default()))
}

fn is_mark(field: &str) -> bool {
    let marks = [
        (".metadata.labels.", api::SYNC_LABEL),
        (".metadata.annotations.", api::ID_ANNOTATION),
        (".metadata.annotations.", api::SPEC_HASH_ANNOTATION),
        (".metadata.annotations.", api::PROOF_ANNOTATION),
    ];
    marks.iter().any(|(place, key)| field.strip_prefix(place) == Some(key))
}

pub(super) fn body(wanted: &DesiredObject) -> Value {
    Value::Object(wanted.body())
}

/// Our entry among the managed fields, and those of others.
pub(super) fn own_and_foreign(object: &crate::object::Object, manager: &str) -> (FieldSet, Vec<Entry>) {
    let metadata = object.body.get("metadata").and_then(Value::as_object);
    let all = metadata.map(entries).unwrap_or_default();
    let (own, foreign): (Vec<_>, Vec<_>) = all.into_iter().partition(|entry| entry.is_applied_by(manager));
    (own.into_iter().next().map(|entry| entry.fields).unwrap_or_default(), foreign)
}
