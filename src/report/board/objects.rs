//! The objects of one Sync, each with its outcome and its health.
//!
//! In: the desired objects, their outcomes and their health. Out: [`ObjectList`], which is read as
//! [`ObjectRow`]s. The desired set is shared with the controller; an object with nothing to report
//! costs one byte here, and one in the health.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::object_row::{ObjectPlace, ObjectRow};
use crate::desired::{DesiredObject, DesiredSet};
use crate::health::Health;
use crate::object::ObjectId;
use crate::observed::Drift;
use crate::plan::{Change, Hold, Outcome};

/// The most health messages that are kept for a Sync.
const MAX_SENTENCES: usize = 1000;
/// The most characters of a message about an object.
const MAX_SENTENCE: usize = 500;

/// State of an object compared with Git.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum ObjectState {
    /// Its apply or deletion failed.
    Failed,
    /// It is no longer in Git, and its deletion waits for approval.
    PendingPrune,
    /// It differs from Git, and is not repaired.
    Drifted,
    /// It is held although it has pending work.
    Held,
    /// It is as committed.
    Committed,
}

/// Health of an object by its own status.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum ObjectHealth {
    /// It has no status to judge; its existence is all that is known.
    NoStatus,
    /// Its status was not read yet.
    NotRead,
    /// It is healthy.
    Healthy,
    /// It was suspended by a person.
    Suspended,
    /// It is progressing.
    Progressing,
    /// Its status cannot be judged.
    Unknown,
    /// It failed.
    Degraded,
}

/// Health of all objects of a Sync.
#[derive(Debug, Default)]
pub struct HealthTable {
    set: Option<Arc<DesiredSet>>,
    /// One for each object of the set.
    states: Box<[ObjectHealth]>,
    /// Messages about the unhealthy ones.
    messages: BTreeMap<ObjectId, Box<str>>,
}

/// The objects of a Sync.
#[derive(Debug, Clone, Default)]
pub struct ObjectList {
    set: Option<Arc<DesiredSet>>,
    /// For each object of the set, the index in [`DONE_LABELS`] of the last action since the daemon
    /// started.
    done: Box<[u8]>,
    /// The objects with something to report, sorted by id; some are not in the set.
    notes: Arc<[(ObjectId, ObjectNote)]>,
    health: Arc<HealthTable>,
    /// Places of which names and states are shown alone.
    hidden: BTreeSet<ObjectPlace>,
}

/// The report about an object.
#[derive(Debug)]
struct ObjectNote {
    state: ObjectState,
    /// True if a person asked for the hold.
    requested: bool,
    reason: &'static str,
    message: Arc<str>,
    drift: Option<Box<Drift>>,
}

/// Actions after which an object is as committed.
const DONE_LABELS: [&str; 6] = ["kept", "created", "adopted", "updated", "recreated", "repaired"];

impl ObjectList {
    /// Builds the list without an earlier one.
    pub fn new(
        set: Option<&Arc<DesiredSet>>,
        outcomes: &BTreeMap<ObjectId, Outcome>,
        health: &Arc<HealthTable>,
    ) -> Self {
        Self::update(&Self::default(), set, outcomes, health)
    }

    /// Builds the list from new outcomes. Objects without a new action keep their last one.
    pub fn update(
        before: &Self,
        set: Option<&Arc<DesiredSet>>,
        outcomes: &BTreeMap<ObjectId, Outcome>,
        health: &Arc<HealthTable>,
    ) -> Self {
        let mut notes: Vec<(ObjectId, ObjectNote)> = Vec::new();
        for (id, outcome) in outcomes {
            let last = notes.last().map(|(_, last)| &last.message);
            notes.extend(note_outcome(outcome, last).map(|said| (id.clone(), said)));
        }
        let same = before.set.as_ref().zip(set).is_some_and(|(one, other)| Arc::ptr_eq(one, other));
        let done = |(at, object): (usize, &DesiredObject)| {
            let place = || if same { Some(at) } else { before.place(&object.id) };
            let last = || place().and_then(|place| before.done.get(place)).copied().unwrap_or_default();
            outcomes.get(&object.id).map(done_index).filter(|deed| *deed > 0).unwrap_or_else(last)
        };
        let done = set.map(|set| set.objects().iter().enumerate().map(done).collect());
        Self {
            set: set.cloned(),
            done: done.unwrap_or_default(),
            notes: notes.into(),
            health: health.clone(),
            hidden: BTreeSet::new(),
        }
    }

    /// The same list, with names and states alone of the objects in some places: messages and
    /// fields may quote the object.
    #[must_use]
    pub fn without_content_of(&self, hidden: BTreeSet<ObjectPlace>) -> Self {
        Self { hidden, ..self.clone() }
    }

    /// The number of objects.
    pub fn len(&self) -> usize {
        let extra = self.notes.iter().filter(|(id, _)| self.place(id).is_none()).count();
        self.done.len() + extra
    }

    /// True if there are none.
    pub fn is_empty(&self) -> bool {
        self.done.is_empty() && self.notes.is_empty()
    }

    /// All rows, sorted by id.
    pub fn rows(&self) -> impl Iterator<Item = ObjectRow<'_>> {
        let set = self.set.as_deref().map(DesiredSet::objects).unwrap_or_default();
        let (mut wanted, mut notes) = (set.iter().enumerate().peekable(), self.notes.iter().peekable());
        std::iter::from_fn(move || match (wanted.peek(), notes.peek()) {
            (Some((_, object)), Some((id, _))) if *id < object.id => {
                notes.next().map(|(id, said)| self.row_of(id, None, Some(said)))
            }
            (Some(_), _) => {
                let (place, object) = wanted.next()?;
                let said = notes.next_if(|(id, _)| *id == object.id).map(|(_, said)| said);
                Some(self.row_of(&object.id, Some((place, object)), said))
            }
            (None, _) => notes.next().map(|(id, said)| self.row_of(id, None, Some(said))),
        })
    }

    /// The row of one object.
    pub fn row(&self, id: &ObjectId) -> Option<ObjectRow<'_>> {
        let said = self.notes.binary_search_by(|(known, _)| known.cmp(id)).ok().map(|at| &self.notes[at]);
        match (self.place(id), said) {
            (Some(place), said) => {
                let object = self.set.as_ref()?.objects().get(place)?;
                Some(self.row_of(&object.id, Some((place, object)), said.map(|(_, said)| said)))
            }
            (None, Some((id, said))) => Some(self.row_of(id, None, Some(said))),
            (None, None) => None,
        }
    }

    /// The desired object.
    pub fn wanted(&self, id: &ObjectId) -> Option<&DesiredObject> {
        self.set.as_ref()?.get(id).filter(|_| !self.is_hidden(id))
    }

    fn is_hidden(&self, id: &ObjectId) -> bool {
        !self.hidden.is_empty() && self.hidden.contains(&(id.group_kind(), id.namespace().map(Box::from)))
    }

    fn place(&self, id: &ObjectId) -> Option<usize> {
        self.set.as_ref()?.index_of(id)
    }

    fn row_of<'a>(
        &'a self,
        id: &'a ObjectId,
        wanted: Option<(usize, &'a DesiredObject)>,
        said: Option<&'a ObjectNote>,
    ) -> ObjectRow<'a> {
        let deed = wanted.and_then(|(place, _)| self.done.get(place)).copied().unwrap_or_default();
        let same = self.set.as_ref().zip(self.health.set.as_ref());
        let same = same.is_some_and(|(one, other)| Arc::ptr_eq(one, other));
        let health = match wanted {
            Some((place, _)) if same => self.health.states.get(place).copied(),
            Some(_) => self.health.health_of(id),
            None => None,
        };
        let row = ObjectRow {
            id,
            state: said.map_or(ObjectState::Committed, |said| said.state),
            requested: said.is_some_and(|said| said.requested),
            done: DONE_LABELS.get(usize::from(deed)).copied().unwrap_or_default(),
            reason: said.map_or("", |said| said.reason),
            message: said.map_or("", |said| &said.message),
            drift: said.and_then(|said| said.drift.as_deref()),
            health: health.unwrap_or(ObjectHealth::NoStatus),
            health_message: self.health.messages.get(id).map_or("", |why| why),
            origin: wanted.map(|(_, object)| &object.origin),
        };
        match self.is_hidden(id) {
            true => ObjectRow { message: "", health_message: "", drift: None, ..row },
            false => row,
        }
    }
}

impl HealthTable {
    /// Builds the health of a set. `known` are the objects whose statuses are read, sorted by id;
    /// `None` for one that was not read yet.
    pub fn new<'a>(
        set: &Arc<DesiredSet>,
        known: impl Iterator<Item = (&'a ObjectId, Option<Health>)>,
    ) -> Self {
        let mut why = BTreeMap::new();
        let mut words = vec![ObjectHealth::NoStatus; set.len()];
        let mut places = set.objects().iter().zip(words.iter_mut()).peekable();
        for (id, health) in known {
            while places.next_if(|(object, _)| object.id < *id).is_some() {}
            let Some((object, word)) = places.next_if(|(object, _)| object.id == *id) else { continue };
            let said;
            (*word, said) = match health {
                None => (ObjectHealth::NotRead, None),
                Some(Health::Healthy) => (ObjectHealth::Healthy, None),
                Some(Health::Suspended) => (ObjectHealth::Suspended, None),
                Some(Health::Progressing { why }) => (ObjectHealth::Progressing, Some(why)),
                Some(Health::Degraded { why }) => (ObjectHealth::Degraded, Some(why)),
                Some(Health::Unknown { why }) => (ObjectHealth::Unknown, Some(why)),
            };
            if why.len() < MAX_SENTENCES {
                why.extend(said.map(|said| (object.id.clone(), bounded(said).into())));
            }
        }
        drop(places);
        Self { set: Some(set.clone()), states: words.into(), messages: why }
    }

    fn health_of(&self, id: &ObjectId) -> Option<ObjectHealth> {
        self.states.get(self.set.as_ref()?.index_of(id)?).copied()
    }
}

impl ObjectState {
    /// All states, those that need attention first.
    pub const ALL: [Self; 5] = [Self::Failed, Self::PendingPrune, Self::Drifted, Self::Held, Self::Committed];

    /// The label on the page.
    pub fn label(self) -> &'static str {
        match self {
            Self::Failed => "Failed",
            Self::PendingPrune => "PendingPrune",
            Self::Drifted => "OutOfSync",
            Self::Held => "Held",
            Self::Committed => "Synced",
        }
    }
}

impl ObjectHealth {
    /// The label on the page.
    pub fn label(self) -> &'static str {
        match self {
            Self::NoStatus => "Silent",
            Self::NotRead => "Unread",
            Self::Healthy => "Healthy",
            Self::Suspended => "Suspended",
            Self::Progressing => "Progressing",
            Self::Unknown => "Unknown",
            Self::Degraded => "Degraded",
        }
    }
}

/// Builds the report of an outcome. Shares the message with `last` if they are equal.
fn note_outcome(outcome: &Outcome, last: Option<&Arc<str>>) -> Option<ObjectNote> {
    let share = |text: String| match last {
        Some(last) if **last == *text => last.clone(),
        Some(_) | None => text.into(),
    };
    match outcome {
        Outcome::Failed(why) => Some(ObjectNote {
            state: ObjectState::Failed,
            requested: false,
            reason: why.reason.as_str(),
            message: share(bounded(why.message.clone())),
            drift: None,
        }),
        Outcome::Held(hold) => {
            let drift = match hold {
                Hold::DriftReported(drift) => Some(drift.clone()),
                Hold::Contested(contest) => Some(Box::new(Drift {
                    fields: contest.fields.clone(),
                    manager: contest.manager.as_deref().map(str::to_owned),
                    time: None,
                })),
                _ => None,
            };
            let state = match hold {
                hold if hold.is_prune_to_approve() => ObjectState::PendingPrune,
                Hold::DriftReported(_) | Hold::Deleted | Hold::Contested(_) => ObjectState::Drifted,
                _ => ObjectState::Held,
            };
            let message = share(bounded(hold.to_string()));
            let (requested, reason) = (hold.is_requested(), hold.reason());
            Some(ObjectNote { state, requested, reason, message, drift })
        }
        Outcome::Pruned { gone: false } => Some(ObjectNote {
            state: ObjectState::Held,
            requested: false,
            reason: "BeingDeleted",
            message: share("removed from Git and being deleted: waiting for its finalizers".to_owned()),
            drift: None,
        }),
        Outcome::Created
        | Outcome::Adopted(_)
        | Outcome::Updated(_)
        | Outcome::Recreated
        | Outcome::Kept
        | Outcome::HandedOver(_)
        | Outcome::Pruned { gone: true } => None,
    }
}

/// The index in [`DONE_LABELS`] of an outcome.
fn done_index(outcome: &Outcome) -> u8 {
    match outcome {
        Outcome::Created => 1,
        Outcome::Adopted(_) => 2,
        Outcome::Updated(Change::Committed | Change::RerunHook) => 3,
        Outcome::Recreated => 4,
        Outcome::Updated(
            Change::Drifted(_) | Change::EntryLost | Change::Unverified | Change::MaybeDrifted,
        ) => 5,
        Outcome::Kept
        | Outcome::HandedOver(_)
        | Outcome::Pruned { .. }
        | Outcome::Held(_)
        | Outcome::Failed(_) => 0,
    }
}

fn bounded(text: String) -> String {
    match text.char_indices().nth(MAX_SENTENCE) {
        None => text,
        Some((end, _)) => format!("{}…", &text[..end]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::desired::{Scopes, build_desired_set};
    use crate::plan::{Failure, FailureReason};
    use crate::render::{RenderOptions, Rendered, render};
    use crate::tree::FileTree;

    fn set(names: &[&str]) -> Arc<DesiredSet> {
        let map = |name: &str| {
            format!(r#"{{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {{"name": "{name}"}}}}"#)
        };
        let files: Vec<_> = names.iter().map(|name| (format!("{name}.json"), map(name))).collect();
        let tree = FileTree::from_texts(files.iter().map(|(path, text)| (path.as_str(), text.as_str())));
        let Rendered::Complete(complete) = render(&tree, &RenderOptions::default()) else { panic!("sound") };
        Arc::new(build_desired_set(complete, "shop", &Scopes::builtin()).unwrap())
    }

    fn id(name: &str) -> ObjectId {
        ObjectId::new("", "ConfigMap", "shop", name).unwrap()
    }

    #[test]
    fn a_hold_that_a_person_asked_for_needs_no_attention() {
        let set = set(&["a"]);
        let needs_attention = |hold: Hold| {
            let outcomes = BTreeMap::from([(id("a"), Outcome::Held(hold))]);
            let healths = Arc::new(HealthTable::new(&set, std::iter::empty()));
            let objects = ObjectList::new(Some(&set), &outcomes, &healths);
            objects.rows().any(|row| row.needs_attention())
        };
        for hold in [Hold::Suspended, Hold::ReconcileDisabled, Hold::PruneDisabled, Hold::Paused(3)] {
            assert!(!needs_attention(hold.clone()), "{hold}");
        }
        for hold in [Hold::UnknownKind, Hold::Protected, Hold::OwnedBy("x/y".into()), Hold::EmptyRender] {
            assert!(needs_attention(hold.clone()), "{hold}");
        }
    }

    #[test]
    fn every_object_is_listed_once_and_in_order() {
        let set = set(&["b", "d", "f"]);
        let failed = Failure { reason: FailureReason::WebhookDenied, message: "no".into(), manifest: true };
        let over = Hold::PruneBudgetExceeded { prunes: 3, owned: 9 };
        let outcomes = BTreeMap::from([
            (id("a"), Outcome::Held(over.clone())),
            (id("b"), Outcome::Created),
            (id("c"), Outcome::Pruned { gone: true }),
            (id("d"), Outcome::Failed(failed)),
            (id("e"), Outcome::Held(over.clone())),
            (id("g"), Outcome::Held(over)),
        ]);
        let known = [
            (id("b"), Some(Health::Healthy)),
            (id("c"), Some(Health::Healthy)),
            (id("d"), Some(Health::Degraded { why: "it crashes".into() })),
            (id("f"), None),
        ];
        let known = known.iter().map(|(id, health)| (id, health.clone()));
        let healths = Arc::new(HealthTable::new(&set, known));
        let objects = ObjectList::new(Some(&set), &outcomes, &healths);
        let shown: Vec<String> = objects
            .rows()
            .map(|row| {
                let parts = [
                    row.id.name(),
                    row.state.label(),
                    row.done,
                    row.reason,
                    row.health.label(),
                    row.health_message,
                ];
                parts.join(" ").trim().to_owned()
            })
            .collect();
        let expect = [
            "a PendingPrune kept PruneBudgetExceeded Silent",
            "b Synced created  Healthy",
            "d Failed kept WebhookDenied Degraded it crashes",
            "e PendingPrune kept PruneBudgetExceeded Silent",
            "f Synced kept  Unread",
            "g PendingPrune kept PruneBudgetExceeded Silent",
        ];
        assert_eq!(shown, expect);
        assert_eq!(objects.len(), expect.len());
        for row in objects.rows() {
            let alone = objects.row(row.id).unwrap();
            assert_eq!(
                (alone.state, alone.health, alone.health_message),
                (row.state, row.health, row.health_message)
            );
        }
        assert!(objects.row(&id("c")).is_none());
        assert_eq!(objects.row(&id("d")).unwrap().origin.unwrap().to_string(), "d.json:1");
    }

    #[test]
    fn what_was_read_of_another_set_counts_for_the_same_objects() {
        let (old, new) = (set(&["a", "b"]), set(&["b", "c"]));
        let known = [id("a"), id("b")];
        let known = known.iter().map(|id| (id, Some(Health::Healthy)));
        let healths = Arc::new(HealthTable::new(&old, known));
        let objects = ObjectList::new(Some(&new), &BTreeMap::new(), &healths);
        let words: Vec<_> = objects.rows().map(|row| (row.id.name().to_owned(), row.health)).collect();
        assert_eq!(words, [("b".into(), ObjectHealth::Healthy), ("c".into(), ObjectHealth::NoStatus)]);
    }

    #[test]
    fn the_last_change_is_shown_until_the_next_one() {
        let (old, new) = (set(&["a", "b"]), set(&["b", "c"]));
        let created = [id("a"), id("b")].map(|id| (id, Outcome::Created));
        let first = ObjectList::new(Some(&old), &BTreeMap::from(created), &Arc::default());
        let done = |objects: &ObjectList| objects.rows().map(|row| row.done).collect::<Vec<_>>();
        let quiet = ObjectList::update(&first, Some(&old), &BTreeMap::new(), &Arc::default());
        assert_eq!(done(&quiet), ["created", "created"]);
        let outcomes = BTreeMap::from([(id("c"), Outcome::Adopted(Vec::new())), (id("b"), Outcome::Kept)]);
        let next = ObjectList::update(&quiet, Some(&new), &outcomes, &Arc::default());
        assert_eq!(done(&next), ["created", "adopted"]);
    }

    #[test]
    fn the_same_sentence_is_kept_once() {
        let held = |name: &str| (id(name), Outcome::Held(Hold::Suspended));
        let outcomes = BTreeMap::from([held("a"), held("b")]);
        let objects = ObjectList::new(None, &outcomes, &Arc::default());
        let [(_, first), (_, second)] = &*objects.notes else { panic!("two") };
        assert!(Arc::ptr_eq(&first.message, &second.message));
    }
}
