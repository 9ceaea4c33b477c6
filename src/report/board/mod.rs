//! What the daemon knows of all its Syncs, for who looks: the status page and its JSON.
//!
//! In: what `sync` found and did, as it changes. Out: [`StatusBoard`], one [`Card`] a Sync. `sync` is the only one that
//! writes it; who reads it asks nobody else. A card shares with `sync` what that holds anyway (the objects as Git has
//! them, the status), and adds a byte or two for each object and some words for those about which there is something
//! to say.

mod body;
mod objects;
mod state;

use std::collections::BTreeMap;
use std::sync::Arc;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

pub use body::{Differs, NOT_SHOWN, Seen, Shown, Writer, shown_live};
pub use objects::{HealthWord, Healths, ObjectState, Objects, Row};
pub use state::{State, advice};

use crate::api::{SyncName, SyncStatus};
use crate::object::ObjectId;
pub use crate::plan::HIDDEN;

/// The most repairs that a card remembers.
pub const MAX_REPAIRS: usize = 30;
/// The most happenings that a card remembers.
pub const MAX_HAPPENINGS: usize = 40;

/// What is known of all Syncs.
#[derive(Debug, Clone, Default)]
pub struct StatusBoard {
    /// Counts what changed since the daemon began.
    pub version: u64,
    /// Whether this daemon is the one that writes.
    pub stance: Stance,
    /// One for each Sync.
    pub cards: BTreeMap<SyncName, Arc<Card>>,
}

/// Whether a daemon writes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Stance {
    /// It has only just begun.
    #[default]
    Starts,
    /// Another one leads, by this name where it is known: all else is known to that one only.
    StandsBy(Option<Box<str>>),
    /// It serves the Syncs.
    Serves,
}

/// What is known of one Sync.
#[derive(Debug, Clone)]
pub struct Card {
    /// The Sync.
    pub name: SyncName,
    /// The version of the board in which it last changed.
    pub version: u64,
    /// What it follows.
    pub subject: Arc<Subject>,
    /// What its status says, or is about to.
    pub status: Arc<SyncStatus>,
    /// Its objects.
    pub objects: Arc<Objects>,
    /// What was repaired since the daemon began, the newest first.
    pub repairs: Arc<[Repair]>,
    /// Repairs, prunes, approvals and trouble since the daemon began, the newest first.
    pub happened: Arc<[Happening]>,
}

/// What a Sync follows.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Subject {
    /// The repository, without any login.
    pub url: Box<str>,
    /// The folder in it; empty for all of it.
    pub path: Box<str>,
    /// The branch, tag, range or commit, in words.
    pub reference: Box<str>,
    /// How often the repository is asked.
    pub interval: Box<str>,
    /// As whom it acts; none for the daemon itself.
    pub service_account: Option<Box<str>>,
    /// The Syncs that have to come first.
    pub depends_on: Vec<SyncName>,
    /// It is a resource of the cluster, and not what `moorline run --url` follows.
    pub is_resource: bool,
}

/// Something that happened to a Sync, beside the revisions in its history.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Happening {
    /// When it happened.
    pub at: Time,
    /// The reason of the Event that tells of it.
    pub reason: String,
    /// A sentence for people.
    pub text: String,
}

/// An edit or a deletion by others that was repaired.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Repair {
    /// When it was repaired.
    pub at: Time,
    /// The object.
    pub id: ObjectId,
    /// It was deleted, and created again.
    pub was_deleted: bool,
    /// Which fields, where that is known.
    pub fields: Vec<String>,
    /// The tool that had changed them, where that is known.
    pub manager: Option<String>,
    /// When that tool wrote.
    pub changed: Option<String>,
}

impl StatusBoard {
    /// Takes in what is known of a Sync now.
    pub fn put(&mut self, card: Card) {
        self.version += 1;
        let card = Card { version: self.version, ..card };
        self.cards.insert(card.name.clone(), Arc::new(card));
    }

    /// A Sync is gone.
    pub fn remove(&mut self, name: &SyncName) {
        if self.cards.remove(name).is_some() {
            self.version += 1;
        }
    }

    /// This is what the daemon does from now on.
    pub fn stand(&mut self, stance: Stance) {
        if self.stance != stance {
            (self.stance, self.version) = (stance, self.version + 1);
        }
    }

    /// The Sync of this name.
    pub fn card(&self, namespace: &str, name: &str) -> Option<&Arc<Card>> {
        self.cards.get(&SyncName::new(namespace, name))
    }

    /// The Syncs that say that they come after this one.
    pub fn dependents(&self, name: &SyncName) -> impl Iterator<Item = &Arc<Card>> {
        self.cards.values().filter(move |card| card.subject.depends_on.contains(name))
    }
}

impl Card {
    /// How the Sync is, in one word.
    pub fn state(&self) -> State {
        State::of(&self.status)
    }

    /// The reason and the sentence of whether it is ready.
    pub fn why(&self) -> (&str, &str) {
        let ready = self.condition("Ready");
        ready.map_or(("", ""), |ready| (&ready.reason, &ready.message))
    }

    /// A condition of the status.
    pub fn condition(
        &self,
        type_: &str,
    ) -> Option<&k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition> {
        self.status.conditions.iter().find(|known| known.type_ == type_)
    }

    /// When something was last changed on the cluster.
    pub fn last_change(&self) -> Option<&Time> {
        self.status.last_applied_time.as_ref()
    }
}
