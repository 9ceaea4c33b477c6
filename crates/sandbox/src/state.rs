//! The state of the server, behind one lock.
//!
//! In: a seed.
//! Out: [`State`], on which the handlers work, and a change signal for each resource.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use serde_json::{Map, Value};
use tokio::sync::watch;

use super::admission::{self, AdmissionWebhook};
use super::clock::Clock;
use super::convert::ConversionCache;
use super::kinds::Allocator;
use super::store::{Key, Store, StoredObject};
use crate::resource_registry::ResourceRegistry;
use crate::seeded_random::SeededRandom;

/// State of the server.
pub(crate) struct ServerState {
    pub(crate) store: Store,
    pub(crate) registry: ResourceRegistry,
    pub(crate) chance: SeededRandom,
    pub(crate) clock: Arc<Clock>,
    /// Conversions that the current request has received from webhooks.
    pub(crate) conversions: ConversionCache,
    /// Admission webhooks, in the order of their calls.
    pub(crate) admitters: Arc<[Arc<AdmissionWebhook>]>,
    /// By storage name of a resource: the revision of its last change.
    signs: HashMap<Arc<str>, watch::Sender<u64>>,
    /// Objects by the uid of each of their owners.
    dependents: HashMap<Box<str>, BTreeSet<(Arc<str>, Key)>>,
    /// Notifies the controllers of changes that they have not handled yet.
    pub(crate) pending_work: watch::Sender<u64>,
    /// Uids of deleted owners whose dependents are to be garbage-collected.
    pub(crate) collectable_owners: Vec<Box<str>>,
    /// Owners in deletion whose dependents must be deleted or orphaned first.
    pub(crate) deleting_owners: Vec<(Arc<str>, Key)>,
    /// Namespaces and definitions that are deleted once they contain no objects.
    pub(crate) deleting_containers: Vec<(Arc<str>, Key)>,
    addresses: u32,
    ports: u16,
}

impl ServerState {
    /// Returns the state of a new server.
    pub(crate) fn new(seed: u64, clock: Arc<Clock>) -> Self {
        Self {
            store: Store::default(),
            registry: ResourceRegistry::builtin(),
            chance: SeededRandom::new(seed),
            clock,
            conversions: ConversionCache::default(),
            admitters: Arc::default(),
            signs: HashMap::new(),
            dependents: HashMap::new(),
            pending_work: watch::channel(0).0,
            collectable_owners: Vec::new(),
            deleting_owners: Vec::new(),
            deleting_containers: Vec::new(),
            addresses: 0,
            ports: 0,
        }
    }

    /// Returns the change signal of a resource.
    pub(crate) fn subscribe(&mut self, home: &Arc<str>) -> watch::Receiver<u64> {
        self.signs.entry(home.clone()).or_insert_with(|| watch::channel(0).0).subscribe()
    }

    /// Stores an object without any check.
    pub(crate) fn put(
        &mut self,
        home: &Arc<str>,
        key: Key,
        body: &mut Map<String, Value>,
    ) -> Arc<StoredObject> {
        let old = self.store.get(home, &key).cloned();
        let stored = self.store.put(home, key, body);
        if old.as_ref().is_none_or(|old| old.owners != stored.owners) {
            old.iter().for_each(|old| self.disown(home, old));
            for uid in &stored.owners {
                self.dependents.entry(uid.clone()).or_default().insert((home.clone(), stored.key.clone()));
            }
        }
        self.notify_change(home, stored.revision);
        stored
    }

    /// Removes an object.
    pub(crate) fn remove(&mut self, home: &Arc<str>, key: &Key) -> Option<Arc<StoredObject>> {
        let stored = self.store.remove(home, key)?;
        self.disown(home, &stored);
        if self.dependents.contains_key(&stored.uid) {
            self.collectable_owners.push(stored.uid.clone());
        }
        self.notify_change(home, stored.revision);
        Some(stored)
    }

    /// Returns the objects that name this uid as an owner.
    pub(crate) fn dependents(&self, uid: &str) -> Vec<(Arc<str>, Key)> {
        self.dependents.get(uid).into_iter().flatten().cloned().collect()
    }

    fn disown(&mut self, home: &Arc<str>, stored: &StoredObject) {
        for uid in &stored.owners {
            if let Some(known) = self.dependents.get_mut(uid) {
                known.remove(&(home.clone(), stored.key.clone()));
                if known.is_empty() {
                    self.dependents.remove(uid);
                }
            }
        }
    }

    fn notify_change(&mut self, home: &Arc<str>, revision: u64) {
        if **home == *admission::CONFIGURATIONS {
            self.admitters = admission::admitters(&self.store);
        }
        if let Some(sign) = self.signs.get(home) {
            sign.send_replace(revision);
        }
        self.pending_work.send_replace(revision);
    }
}

impl Allocator for ServerState {
    fn address(&mut self) -> String {
        self.addresses = (self.addresses + 1) % 0x000f_ffff;
        let number = self.addresses + 10;
        format!("10.{}.{}.{}", number >> 16 & 0x0f, number >> 8 & 0xff, number & 0xff)
    }

    fn node_port(&mut self) -> u16 {
        self.ports = (self.ports + 1) % 2768;
        30_000 + self.ports
    }

    fn suffix(&mut self) -> String {
        self.chance.suffix()
    }

    fn now(&self) -> String {
        self.clock.text()
    }
}
