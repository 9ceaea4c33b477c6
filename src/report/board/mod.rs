//! State of all Syncs for the status page and its JSON.
//!
//! In: results of the controller, as they change. Out: [`StatusBoard`], one [`SyncCard`] per Sync.
//! Only the controller writes it, and readers need no other source. A card shares the desired
//! objects and the status with the controller; it adds a byte or two per object, and messages for
//! objects that have something to report.

mod clusters;
mod object_row;
mod objects;
mod redaction;
mod spec_words;
mod state;
mod viewer;

use std::collections::BTreeMap;
use std::sync::Arc;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

pub use clusters::{
    ClusterFacts, ClusterState, ClusterSummary, HOME_CLUSTER, cluster_name, named_cluster, summarize_clusters,
};
pub use object_row::{ObjectPlace, ObjectRow};
pub use objects::{HealthTable, ObjectHealth, ObjectList, ObjectState};
pub use redaction::{LiveDifference, LiveObject, NOT_SHOWN, ObjectWriter, RedactedBody, redact_live};
pub use spec_words::{SpecSentence, describe_spec};
pub use state::{SyncState, advice};
pub use viewer::BoardViewer;

use crate::api::{SyncName, SyncStatus};
use crate::object::ObjectId;
pub use crate::plan::HIDDEN;

/// The most repairs that a card keeps.
pub const MAX_REPAIRS: usize = 30;
/// The most activity entries that a card keeps.
pub const MAX_ACTIVITIES: usize = 40;

/// State of all Syncs.
#[derive(Debug, Clone, Default)]
pub struct StatusBoard {
    /// Number of changes since the daemon started.
    pub version: u64,
    /// Role of this daemon in the election.
    pub role: DaemonRole,
    /// One card per Sync.
    pub cards: BTreeMap<SyncName, Arc<SyncCard>>,
    /// Facts about the API servers of clusters, by name.
    pub clusters: BTreeMap<Box<str>, ClusterFacts>,
    /// The person whom a page is for; `None` without a sign-in.
    pub viewer: Option<Arc<BoardViewer>>,
    /// Time at which this daemon began to lead, in milliseconds since 1970.
    pub term_began: i64,
}

/// Role of a daemon in the election.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum DaemonRole {
    /// It has just started.
    #[default]
    Starting,
    /// Another daemon leads, with this name if it is known. Only that one knows the Syncs.
    Standby(Option<Box<str>>),
    /// It serves the Syncs.
    Serving,
}

/// State of one Sync.
#[derive(Debug, Clone)]
pub struct SyncCard {
    /// The Sync.
    pub name: SyncName,
    /// Version of the board at its last change.
    pub version: u64,
    /// Its source.
    pub source: Arc<SourceSummary>,
    /// Its status, or the one that is about to be written.
    pub status: Arc<SyncStatus>,
    /// Its objects.
    pub objects: Arc<ObjectList>,
    /// Repairs since the daemon started, newest first.
    pub repairs: Arc<[Repair]>,
    /// Repairs, prunes, approvals and errors since the daemon started, newest first.
    pub activities: Arc<[Activity]>,
}

/// Summary of the source of a Sync.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SourceSummary {
    /// The repository, without credentials.
    pub url: Box<str>,
    /// The folder in the repository; empty for the root.
    pub path: Box<str>,
    /// The branch, tag, range or commit, as text.
    pub reference: Box<str>,
    /// The poll interval.
    pub interval: Box<str>,
    /// The ServiceAccount that it acts as; `None` for the daemon's own.
    pub service_account: Option<Box<str>>,
    /// Its dependencies.
    pub depends_on: Vec<SyncName>,
    /// The cluster of its objects, as [`named_cluster`] names it; `None` for the home cluster.
    pub cluster: Option<Box<str>>,
    /// True for a resource of the cluster, false for `moorline run --url`.
    pub is_resource: bool,
    /// Labels of the resource, by which the overview groups.
    pub labels: BTreeMap<Box<str>, Box<str>>,
    /// The rest of the spec in words; empty if the spec is not valid.
    pub words: Box<[SpecSentence]>,
}

/// An event of a Sync besides the revisions in its history.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Activity {
    /// Time of the event.
    pub time: Time,
    /// Reason of the corresponding Event.
    pub reason: String,
    /// A sentence for people.
    pub text: String,
}

/// A repair of an edit or deletion by another manager.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Repair {
    /// Time of the repair.
    pub repaired_at: Time,
    /// The object.
    pub id: ObjectId,
    /// True if the object was deleted, and is created again.
    pub was_deleted: bool,
    /// The repaired fields, if they are known.
    pub fields: Vec<String>,
    /// The manager that changed them, if it is known.
    pub manager: Option<String>,
    /// Time of that manager's write.
    pub changed_at: Option<String>,
}

impl StatusBoard {
    /// Inserts or replaces a card.
    pub fn update_card(&mut self, card: SyncCard) {
        self.version += 1;
        let card = SyncCard { version: self.version, ..card };
        self.cards.insert(card.name.clone(), Arc::new(card));
    }

    /// Removes the card of a Sync that is gone.
    pub fn remove(&mut self, name: &SyncName) {
        if self.cards.remove(name).is_some() {
            self.version += 1;
        }
    }

    /// Sets what is known of the API server of a cluster.
    pub fn set_cluster(&mut self, name: &str, facts: ClusterFacts) {
        let known = self.clusters.get(name);
        if known.is_some_and(|known| *known == ClusterFacts { version: known.version, ..facts.clone() }) {
            return;
        }
        self.version += 1;
        self.clusters.insert(name.into(), ClusterFacts { version: self.version, ..facts });
    }

    /// Forgets the API server of a cluster that no Sync uses any more.
    pub fn remove_cluster(&mut self, name: &str) {
        if self.clusters.remove(name).is_some() {
            self.version += 1;
        }
    }

    /// Summarizes the clusters of the Syncs on this board.
    pub fn summarize_clusters(&self) -> Vec<ClusterSummary> {
        let syncs = self.cards.values().map(|card| (card.cluster(), &*card.status));
        summarize_clusters(syncs, |name| self.clusters.get(name).cloned())
    }

    /// Sets the role of this daemon.
    pub fn set_role(&mut self, stance: DaemonRole) {
        if self.role != stance {
            (self.role, self.version) = (stance, self.version + 1);
        }
    }

    /// The Sync of this name.
    pub fn card(&self, namespace: &str, name: &str) -> Option<&Arc<SyncCard>> {
        self.cards.get(&SyncName::new(namespace, name))
    }

    /// The Syncs that depend on this one.
    pub fn dependents(&self, name: &SyncName) -> impl Iterator<Item = &Arc<SyncCard>> {
        self.cards.values().filter(move |card| card.source.depends_on.contains(name))
    }
}

impl SyncCard {
    /// Creates the card of a Sync of which only the resource is known.
    pub fn of_resource(name: SyncName, source: Arc<SourceSummary>, status: SyncStatus) -> Self {
        Self {
            name,
            version: 0,
            source,
            status: Arc::new(status),
            objects: Arc::default(),
            repairs: Arc::from([]),
            activities: Arc::from([]),
        }
    }

    /// The state of the Sync.
    pub fn state(&self) -> SyncState {
        SyncState::from_status(&self.status)
    }

    /// The name of the cluster of its objects.
    pub fn cluster(&self) -> &str {
        self.source.cluster.as_deref().unwrap_or(HOME_CLUSTER)
    }

    /// Reason and message of the Ready condition.
    pub fn ready_reason(&self) -> (&str, &str) {
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

    /// Time of the last change on the cluster.
    pub fn last_change(&self) -> Option<&Time> {
        self.status.last_applied_time.as_ref()
    }
}
