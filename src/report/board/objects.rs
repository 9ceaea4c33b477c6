//! The objects of one Sync, each with what became of it and how it is.
//!
//! In: what Git wants, what became of it, how the objects are. Out: [`Objects`], of which [`Row`]s are read. What is wanted
//! is shared with `sync`; an object about which nothing is to be said costs a byte here, and one in its health.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::desired::{DesiredObject, DesiredSet};
use crate::health::Health;
use crate::object::{ObjectId, Origin};
use crate::observed::Drift;
use crate::plan::{Change, Hold, Outcome};

/// The most objects of a Sync of whose health there is a sentence.
const MAX_SENTENCES: usize = 1000;
/// The most characters of a sentence about an object.
const MAX_SENTENCE: usize = 500;

/// How an object is to what Git says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum ObjectState {
    /// It could not be done.
    Failed,
    /// It is not in Git any more, and is deleted only by approval.
    Leaving,
    /// It is not as in Git, and is left so.
    Drifted,
    /// It is left alone although something would be to do.
    Held,
    /// It is as committed.
    Committed,
}

/// How an object is by its own status.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum HealthWord {
    /// It has no status that says so: that it is there is all there is to know.
    Silent,
    /// Its status is yet to be read.
    Unread,
    /// It is as it should be.
    Healthy,
    /// Somebody asked it to stop.
    Suspended,
    /// It is on its way.
    Progressing,
    /// Nobody can tell.
    Unknown,
    /// It failed.
    Degraded,
}

/// How the objects of a Sync are by their own statuses.
#[derive(Debug, Default)]
pub struct Healths {
    set: Option<Arc<DesiredSet>>,
    /// One for each object of the set.
    words: Box<[HealthWord]>,
    /// What is to be said of those that are not well.
    why: BTreeMap<ObjectId, Box<str>>,
}

/// The objects of a Sync.
#[derive(Debug, Default)]
pub struct Objects {
    set: Option<Arc<DesiredSet>>,
    /// What was done last to each object of the set since the daemon began: its place in [`DEEDS`].
    done: Box<[u8]>,
    /// The objects about which there is something to say, in the order of their ids; some are not in the set.
    told: Box<[(ObjectId, Told)]>,
    health: Arc<Healths>,
}

/// What there is to say of an object.
#[derive(Debug)]
struct Told {
    state: ObjectState,
    reason: &'static str,
    message: Arc<str>,
    drift: Option<Box<Drift>>,
}

/// What may have been done to an object that is as committed.
const DEEDS: [&str; 6] = ["kept", "created", "adopted", "updated", "recreated", "repaired"];

/// One object, as a page shows it.
#[derive(Debug, Clone, Copy)]
pub struct Row<'a> {
    /// The object.
    pub id: &'a ObjectId,
    /// How it is to what Git says.
    pub state: ObjectState,
    /// What was done to it last since the daemon began, in the past tense.
    pub done: &'static str,
    /// Why it is not as committed, in one word; empty where it is.
    pub reason: &'static str,
    /// The same as a sentence.
    pub message: &'a str,
    /// What was changed of it, and by whom.
    pub drift: Option<&'a Drift>,
    /// How it is by its own status.
    pub health: HealthWord,
    /// Why that is, where it is not well.
    pub why: &'a str,
    /// Where it is written; none where Git has it no more.
    pub origin: Option<&'a Origin>,
}

impl Objects {
    /// What became of what is wanted, where nothing was known before.
    pub fn new(
        set: Option<&Arc<DesiredSet>>,
        outcomes: &BTreeMap<ObjectId, Outcome>,
        health: &Arc<Healths>,
    ) -> Self {
        Self::after(&Self::default(), set, outcomes, health)
    }

    /// What became of what is wanted. What was done before to an object to which nothing was done now is told on.
    pub fn after(
        before: &Self,
        set: Option<&Arc<DesiredSet>>,
        outcomes: &BTreeMap<ObjectId, Outcome>,
        health: &Arc<Healths>,
    ) -> Self {
        let mut told: Vec<(ObjectId, Told)> = Vec::new();
        for (id, outcome) in outcomes {
            let last = told.last().map(|(_, last)| &last.message);
            told.extend(tell(outcome, last).map(|said| (id.clone(), said)));
        }
        let same = before.set.as_ref().zip(set).is_some_and(|(one, other)| Arc::ptr_eq(one, other));
        let done = |(at, object): (usize, &DesiredObject)| {
            let place = || if same { Some(at) } else { before.place(&object.id) };
            let last = || place().and_then(|place| before.done.get(place)).copied().unwrap_or_default();
            outcomes.get(&object.id).map(deed).filter(|deed| *deed > 0).unwrap_or_else(last)
        };
        let done = set.map(|set| set.objects().iter().enumerate().map(done).collect());
        Self { set: set.cloned(), done: done.unwrap_or_default(), told: told.into(), health: health.clone() }
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        let extra = self.told.iter().filter(|(id, _)| self.place(id).is_none()).count();
        self.done.len() + extra
    }

    /// True if there are none.
    pub fn is_empty(&self) -> bool {
        self.done.is_empty() && self.told.is_empty()
    }

    /// All of them, in the order of their ids.
    pub fn rows(&self) -> impl Iterator<Item = Row<'_>> {
        let set = self.set.as_deref().map(DesiredSet::objects).unwrap_or_default();
        let (mut wanted, mut told) = (set.iter().enumerate().peekable(), self.told.iter().peekable());
        std::iter::from_fn(move || match (wanted.peek(), told.peek()) {
            (Some((_, object)), Some((id, _))) if *id < object.id => {
                told.next().map(|(id, said)| self.row_of(id, None, Some(said)))
            }
            (Some(_), _) => {
                let (place, object) = wanted.next()?;
                let said = told.next_if(|(id, _)| *id == object.id).map(|(_, said)| said);
                Some(self.row_of(&object.id, Some((place, object)), said))
            }
            (None, _) => told.next().map(|(id, said)| self.row_of(id, None, Some(said))),
        })
    }

    /// One of them.
    pub fn row(&self, id: &ObjectId) -> Option<Row<'_>> {
        let said = self.told.binary_search_by(|(known, _)| known.cmp(id)).ok().map(|at| &self.told[at]);
        match (self.place(id), said) {
            (Some(place), said) => {
                let object = self.set.as_ref()?.objects().get(place)?;
                Some(self.row_of(&object.id, Some((place, object)), said.map(|(_, said)| said)))
            }
            (None, Some((id, said))) => Some(self.row_of(id, None, Some(said))),
            (None, None) => None,
        }
    }

    /// What Git wants an object to be.
    pub fn wanted(&self, id: &ObjectId) -> Option<&DesiredObject> {
        self.set.as_ref()?.get(id)
    }

    fn place(&self, id: &ObjectId) -> Option<usize> {
        self.set.as_ref()?.place(id)
    }

    fn row_of<'a>(
        &'a self,
        id: &'a ObjectId,
        wanted: Option<(usize, &'a DesiredObject)>,
        said: Option<&'a Told>,
    ) -> Row<'a> {
        let deed = wanted.and_then(|(place, _)| self.done.get(place)).copied().unwrap_or_default();
        let same = self.set.as_ref().zip(self.health.set.as_ref());
        let same = same.is_some_and(|(one, other)| Arc::ptr_eq(one, other));
        let health = match wanted {
            Some((place, _)) if same => self.health.words.get(place).copied(),
            Some(_) => self.health.word(id),
            None => None,
        };
        Row {
            id,
            state: said.map_or(ObjectState::Committed, |said| said.state),
            done: DEEDS.get(usize::from(deed)).copied().unwrap_or_default(),
            reason: said.map_or("", |said| said.reason),
            message: said.map_or("", |said| &said.message),
            drift: said.and_then(|said| said.drift.as_deref()),
            health: health.unwrap_or(HealthWord::Silent),
            why: self.health.why.get(id).map_or("", |why| why),
            origin: wanted.map(|(_, object)| &object.origin),
        }
    }
}

impl Row<'_> {
    /// True where somebody should look. What is left alone because a person asks for it needs nobody.
    pub fn wants_somebody(&self) -> bool {
        let asked = ["Suspended", "ReconcileDisabled", "PruneDisabled", "Paused"].contains(&self.reason);
        self.state != ObjectState::Committed && !asked
            || matches!(self.health, HealthWord::Degraded | HealthWord::Unknown)
    }
}

impl Healths {
    /// How the objects of a set are. `known` are those whose statuses are read, in the order of their ids; none for one that
    /// was not yet.
    pub fn new<'a>(
        set: &Arc<DesiredSet>,
        known: impl Iterator<Item = (&'a ObjectId, Option<Health>)>,
    ) -> Self {
        let mut why = BTreeMap::new();
        let mut words = vec![HealthWord::Silent; set.len()];
        let mut places = set.objects().iter().zip(words.iter_mut()).peekable();
        for (id, health) in known {
            while places.next_if(|(object, _)| object.id < *id).is_some() {}
            let Some((object, word)) = places.next_if(|(object, _)| object.id == *id) else { continue };
            let said;
            (*word, said) = match health {
                None => (HealthWord::Unread, None),
                Some(Health::Healthy) => (HealthWord::Healthy, None),
                Some(Health::Suspended) => (HealthWord::Suspended, None),
                Some(Health::Progressing { why }) => (HealthWord::Progressing, Some(why)),
                Some(Health::Degraded { why }) => (HealthWord::Degraded, Some(why)),
                Some(Health::Unknown { why }) => (HealthWord::Unknown, Some(why)),
            };
            if why.len() < MAX_SENTENCES {
                why.extend(said.map(|said| (object.id.clone(), bounded(said).into())));
            }
        }
        drop(places);
        Self { set: Some(set.clone()), words: words.into(), why }
    }

    fn word(&self, id: &ObjectId) -> Option<HealthWord> {
        self.words.get(self.set.as_ref()?.place(id)?).copied()
    }
}

impl ObjectState {
    /// All of them, those that want somebody first.
    pub const ALL: [Self; 5] = [Self::Failed, Self::Leaving, Self::Drifted, Self::Held, Self::Committed];

    /// The word.
    pub fn word(self) -> &'static str {
        match self {
            Self::Failed => "Failed",
            Self::Leaving => "Leaving",
            Self::Drifted => "Drifted",
            Self::Held => "Held",
            Self::Committed => "Committed",
        }
    }
}

impl HealthWord {
    /// The word.
    pub fn word(self) -> &'static str {
        match self {
            Self::Silent => "Silent",
            Self::Unread => "Unread",
            Self::Healthy => "Healthy",
            Self::Suspended => "Suspended",
            Self::Progressing => "Progressing",
            Self::Unknown => "Unknown",
            Self::Degraded => "Degraded",
        }
    }
}

/// What there is to say of an outcome. The same sentence as the last one is kept once.
fn tell(outcome: &Outcome, last: Option<&Arc<str>>) -> Option<Told> {
    let share = |text: String| match last {
        Some(last) if **last == *text => last.clone(),
        Some(_) | None => text.into(),
    };
    match outcome {
        Outcome::Failed(why) => Some(Told {
            state: ObjectState::Failed,
            reason: why.reason,
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
                hold if hold.is_prune_to_approve() => ObjectState::Leaving,
                Hold::DriftReported(_) | Hold::Deleted | Hold::Contested(_) => ObjectState::Drifted,
                _ => ObjectState::Held,
            };
            let message = share(bounded(hold.to_string()));
            Some(Told { state, reason: hold.reason(), message, drift })
        }
        Outcome::Pruned { gone: false } => Some(Told {
            state: ObjectState::Held,
            reason: "BeingDeleted",
            message: share("no longer in Git, and being deleted: its finalizers keep it".to_owned()),
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

/// The place in [`DEEDS`] of what was done.
fn deed(outcome: &Outcome) -> u8 {
    match outcome {
        Outcome::Created => 1,
        Outcome::Adopted(_) => 2,
        Outcome::Updated(Change::Committed | Change::Again) => 3,
        Outcome::Recreated => 4,
        Outcome::Updated(Change::Drifted(_) | Change::EntryLost | Change::Unverified | Change::Moved) => 5,
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
    use crate::desired::{Scopes, desired};
    use crate::plan::Failed;
    use crate::render::{Options, Rendered, render};
    use crate::tree::FileTree;

    fn set(names: &[&str]) -> Arc<DesiredSet> {
        let map = |name: &str| {
            format!(r#"{{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {{"name": "{name}"}}}}"#)
        };
        let files: Vec<_> = names.iter().map(|name| (format!("{name}.json"), map(name))).collect();
        let tree = FileTree::from_texts(files.iter().map(|(path, text)| (path.as_str(), text.as_str())));
        let Rendered::Complete(complete) = render(&tree, &Options::default()) else { panic!("sound") };
        Arc::new(desired(complete, "shop", &Scopes::builtin()).unwrap())
    }

    fn id(name: &str) -> ObjectId {
        ObjectId::new("", "ConfigMap", "shop", name).unwrap()
    }

    #[test]
    fn every_object_is_told_once_and_in_order() {
        let set = set(&["b", "d", "f"]);
        let failed = Failed { reason: "Denied", message: "no".into(), manifest: true };
        let over = Hold::OverBudget { prunes: 3, owned: 9 };
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
        let healths = Arc::new(Healths::new(&set, known));
        let objects = Objects::new(Some(&set), &outcomes, &healths);
        let shown: Vec<String> = objects
            .rows()
            .map(|row| {
                let parts =
                    [row.id.name(), row.state.word(), row.done, row.reason, row.health.word(), row.why];
                parts.join(" ").trim().to_owned()
            })
            .collect();
        let expect = [
            "a Leaving kept OverBudget Silent",
            "b Committed created  Healthy",
            "d Failed kept Denied Degraded it crashes",
            "e Leaving kept OverBudget Silent",
            "f Committed kept  Unread",
            "g Leaving kept OverBudget Silent",
        ];
        assert_eq!(shown, expect);
        assert_eq!(objects.len(), expect.len());
        for row in objects.rows() {
            let alone = objects.row(row.id).unwrap();
            assert_eq!((alone.state, alone.health, alone.why), (row.state, row.health, row.why));
        }
        assert!(objects.row(&id("c")).is_none());
        assert_eq!(objects.row(&id("d")).unwrap().origin.unwrap().to_string(), "d.json:1");
    }

    #[test]
    fn what_was_read_of_another_set_counts_for_the_same_objects() {
        let (old, new) = (set(&["a", "b"]), set(&["b", "c"]));
        let known = [id("a"), id("b")];
        let known = known.iter().map(|id| (id, Some(Health::Healthy)));
        let healths = Arc::new(Healths::new(&old, known));
        let objects = Objects::new(Some(&new), &BTreeMap::new(), &healths);
        let words: Vec<_> = objects.rows().map(|row| (row.id.name().to_owned(), row.health)).collect();
        assert_eq!(words, [("b".into(), HealthWord::Healthy), ("c".into(), HealthWord::Silent)]);
    }

    #[test]
    fn what_was_done_is_told_until_something_else_is() {
        let (old, new) = (set(&["a", "b"]), set(&["b", "c"]));
        let created = [id("a"), id("b")].map(|id| (id, Outcome::Created));
        let first = Objects::new(Some(&old), &BTreeMap::from(created), &Arc::default());
        let done = |objects: &Objects| objects.rows().map(|row| row.done).collect::<Vec<_>>();
        let quiet = Objects::after(&first, Some(&old), &BTreeMap::new(), &Arc::default());
        assert_eq!(done(&quiet), ["created", "created"]);
        let outcomes = BTreeMap::from([(id("c"), Outcome::Adopted(Vec::new())), (id("b"), Outcome::Kept)]);
        let next = Objects::after(&quiet, Some(&new), &outcomes, &Arc::default());
        assert_eq!(done(&next), ["created", "adopted"]);
    }

    #[test]
    fn the_same_sentence_is_kept_once() {
        let held = |name: &str| (id(name), Outcome::Held(Hold::Suspended));
        let outcomes = BTreeMap::from([held("a"), held("b")]);
        let objects = Objects::new(None, &outcomes, &Arc::default());
        let [(_, first), (_, second)] = &*objects.told else { panic!("two") };
        assert!(Arc::ptr_eq(&first.message, &second.message));
    }
}
