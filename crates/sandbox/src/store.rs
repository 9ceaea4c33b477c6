//! Storage of objects by resource, with one sequence of revisions and the latest changes.
//!
//! In: complete objects.
//! Out: the same, each with the revision of its last write; the remainders of paginated lists; the
//! changes after a revision, or the error that they have been dropped. An object is stored as the
//! JSON text that most responses need: a tree would take several times the memory.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::ops::{Bound, Range};
use std::sync::Arc;

use serde_json::{Map, Value};

/// Maximum number of changes that are kept for one resource.
pub(crate) const MAX_CHANGES: usize = 4096;
/// Maximum number of paginated lists whose rest is kept.
const MAX_LISTS: usize = 64;

/// Namespace (empty for none) and name.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Key {
    pub(crate) namespace: Box<str>,
    pub(crate) name: Box<str>,
}

impl Key {
    pub(crate) fn new(namespace: &str, name: &str) -> Self {
        Self { namespace: namespace.into(), name: name.into() }
    }
}

/// An object at one revision.
#[derive(Debug)]
pub(crate) struct StoredObject {
    pub(crate) key: Key,
    pub(crate) revision: u64,
    pub(crate) uid: Box<str>,
    pub(crate) labels: Box<[(Box<str>, Box<str>)]>,
    /// Uids of its owners.
    pub(crate) owners: Box<[Box<str>]>,
    /// JSON with sorted keys.
    text: Box<[u8]>,
    metadata: Range<u32>,
    /// Byte ranges of the fields `apiVersion` and `kind`, including the comma after them.
    type_of: [Range<u32>; 2],
}

impl StoredObject {
    fn new(key: Key, revision: u64, body: &mut Map<String, Value>) -> Self {
        let metadata = body.entry("metadata").or_insert_with(|| Value::Object(Map::new()));
        metadata["resourceVersion"] = Value::String(revision.to_string());
        let metadata = &*metadata;
        let uid = metadata["uid"].as_str().unwrap_or_default().into();
        let labels = metadata["labels"].as_object();
        let labels = labels
            .into_iter()
            .flatten()
            .map(|(name, value)| (name.as_str().into(), value.as_str().unwrap_or_default().into()));
        let labels = labels.collect();
        let owners = metadata["ownerReferences"].as_array().into_iter().flatten();
        let owners = owners.filter_map(|owner| Some(owner.get("uid")?.as_str()?.into())).collect();
        let (mut text, mut place, mut type_of) = (Vec::with_capacity(1024), 0..0, [0..0, 0..0]);
        for (name, value) in &*body {
            text.push(if text.is_empty() { b'{' } else { b',' });
            let start = text.len() as u32;
            // Writing into memory cannot fail.
            let _ = serde_json::to_writer(&mut text, name);
            text.push(b':');
            let begin = text.len();
            let _ = serde_json::to_writer(&mut text, value);
            match name.as_str() {
                "metadata" => place = begin as u32..text.len() as u32,
                // The comma after the field is written next: neither field is the last of an
                // object.
                "apiVersion" => type_of[0] = start..text.len() as u32 + 1,
                "kind" => type_of[1] = start..text.len() as u32 + 1,
                _ => {}
            }
        }
        text.push(b'}');
        Self { key, revision, uid, labels, owners, text: text.into(), metadata: place, type_of }
    }

    /// Returns the object with another body, at the same revision.
    pub(crate) fn with_body(&self, body: Value) -> Self {
        let mut fields = if let Value::Object(fields) = body { fields } else { Map::new() };
        Self::new(self.key.clone(), self.revision, &mut fields)
    }

    /// Returns the `apiVersion` in which the object is stored.
    pub(crate) fn api_version(&self) -> &str {
        let range = &self.type_of[0];
        let field = &self.text[range.start as usize..range.end as usize];
        let value = field.strip_prefix(b"\"apiVersion\":\"").and_then(|rest| rest.get(..rest.len() - 2));
        value.and_then(|value| std::str::from_utf8(value).ok()).unwrap_or_default()
    }

    /// Returns the object as JSON.
    pub(crate) fn text(&self) -> &[u8] {
        &self.text
    }

    /// Writes the object without `apiVersion` and `kind`, as items of built-in lists are sent.
    pub(crate) fn write_untyped(&self, out: &mut Vec<u8>) {
        let mut at = 0;
        for range in &self.type_of {
            out.extend(&self.text[at..(range.start as usize).max(at)]);
            at = at.max(range.end as usize);
        }
        out.extend(&self.text[at..]);
    }

    /// Returns the metadata as JSON.
    pub(crate) fn metadata(&self) -> &[u8] {
        &self.text[self.metadata.start as usize..self.metadata.end as usize]
    }

    /// Parses the object.
    pub(crate) fn body(&self) -> Value {
        serde_json::from_slice(&self.text).unwrap_or_default()
    }

    /// Returns the same object at a later revision.
    pub(crate) fn at_revision(&self, revision: u64) -> Option<Self> {
        let Value::Object(mut body) = self.body() else { return None };
        Some(Self::new(self.key.clone(), revision, &mut body))
    }

    /// Returns the value of a label.
    pub(crate) fn label(&self, name: &str) -> Option<&str> {
        self.labels.iter().find(|(known, _)| **known == *name).map(|(_, value)| &**value)
    }
}

/// Change of one object.
#[derive(Debug, Clone)]
pub(crate) struct Change {
    /// State before the change; `None` if the object is new.
    pub(crate) old: Option<Arc<StoredObject>>,
    /// State after the change; for a deleted object its last state, at the revision of the
    /// deletion.
    pub(crate) new: Arc<StoredObject>,
    pub(crate) deleted: bool,
}

/// Error: the changes after the requested revision have been dropped.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct CompactedError {
    /// Oldest revision that is still available.
    pub(crate) oldest: u64,
}

#[derive(Debug, Default)]
struct Collection {
    objects: BTreeMap<Key, Arc<StoredObject>>,
    changes: VecDeque<Change>,
    /// Changes up to this revision have been dropped.
    forgotten: u64,
}

/// Rest of a paginated list.
struct SavedListRest {
    scope: String,
    revision: u64,
    start: String,
    rest: Arc<[Arc<StoredObject>]>,
}

/// Storage of all objects.
#[derive(Default)]
pub(crate) struct Store {
    revision: u64,
    collections: HashMap<Arc<str>, Collection>,
    lists: VecDeque<SavedListRest>,
}

impl Store {
    /// Returns the newest revision.
    pub(crate) fn revision(&self) -> u64 {
        self.revision
    }

    /// Returns the resources that have objects.
    pub(crate) fn resources(&self) -> Vec<Arc<str>> {
        let mut found: Vec<_> = self
            .collections
            .iter()
            .filter(|(_, it)| !it.objects.is_empty())
            .map(|(name, _)| name.clone())
            .collect();
        found.sort_unstable();
        found
    }

    /// Returns one object.
    pub(crate) fn get(&self, resource: &str, key: &Key) -> Option<&Arc<StoredObject>> {
        self.collections.get(resource)?.objects.get(key)
    }

    /// Returns all objects of a resource, or those of one namespace, ordered by key.
    pub(crate) fn all(
        &self,
        resource: &str,
        namespace: Option<&str>,
    ) -> impl Iterator<Item = &Arc<StoredObject>> {
        let first = match namespace {
            Some(namespace) => Bound::Included(Key::new(namespace, "")),
            None => Bound::Unbounded,
        };
        let objects = self.collections.get(resource).map(|collection| &collection.objects);
        let found =
            objects.into_iter().flat_map(move |objects| objects.range((first.clone(), Bound::Unbounded)));
        let within = move |key: &Key| namespace.is_none_or(|namespace| *key.namespace == *namespace);
        found.take_while(move |(key, _)| within(key)).map(|(_, stored)| stored)
    }

    /// Stores an object; its `metadata.resourceVersion` becomes the new revision.
    pub(crate) fn put(
        &mut self,
        resource: &Arc<str>,
        key: Key,
        body: &mut Map<String, Value>,
    ) -> Arc<StoredObject> {
        self.revision += 1;
        let new = Arc::new(StoredObject::new(key.clone(), self.revision, body));
        let collection = self.collections.entry(resource.clone()).or_default();
        let old = collection.objects.insert(key, new.clone());
        collection.remember(Change { old, new: new.clone(), deleted: false });
        new
    }

    /// Removes an object; returns its last state, at the revision of the deletion.
    pub(crate) fn remove(&mut self, resource: &str, key: &Key) -> Option<Arc<StoredObject>> {
        let collection = self.collections.get_mut(resource)?;
        let old = collection.objects.remove(key)?;
        self.revision += 1;
        let new = Arc::new(old.at_revision(self.revision)?);
        collection.remember(Change { old: Some(old), new: new.clone(), deleted: true });
        Some(new)
    }

    /// Returns the changes of a resource after a revision, oldest first.
    pub(crate) fn changes(
        &self,
        resource: &str,
        after: u64,
    ) -> Result<impl Iterator<Item = &Change>, CompactedError> {
        let collection = self.collections.get(resource);
        let forgotten = collection.map_or(0, |collection| collection.forgotten);
        if after < forgotten {
            return Err(CompactedError { oldest: forgotten });
        }
        let changes = collection.map(|collection| {
            let start = collection.changes.partition_point(|change| change.new.revision <= after);
            collection.changes.range(start..)
        });
        Ok(changes.into_iter().flatten())
    }

    /// Drops all changes, as a server does that compacts its storage.
    pub(crate) fn forget(&mut self) {
        let revision = self.revision;
        for collection in self.collections.values_mut() {
            collection.changes.clear();
            collection.forgotten = revision;
        }
        self.lists.clear();
    }

    /// Removes the objects of a resource that is no longer served. Open watches still receive their
    /// deletions.
    pub(crate) fn drop_resource(&mut self, resource: &str) {
        if let Some(collection) = self.collections.get_mut(resource) {
            collection.objects.clear();
        }
    }

    /// Saves the rest of a list at a revision, keyed by scope and start key.
    pub(crate) fn open(&mut self, scope: String, revision: u64, start: String, rest: Vec<Arc<StoredObject>>) {
        if self.lists.len() == MAX_LISTS {
            self.lists.pop_front();
        }
        self.lists.push_back(SavedListRest { scope, revision, start, rest: rest.into() });
    }

    /// Returns the saved rest of a list.
    pub(crate) fn rest(&self, scope: &str, revision: u64, start: &str) -> Option<Arc<[Arc<StoredObject>]>> {
        let is_meant =
            |open: &&SavedListRest| open.revision == revision && open.scope == scope && open.start == start;
        self.lists.iter().find(is_meant).map(|open| open.rest.clone())
    }

    /// Returns all objects of a resource, or those of one namespace, as of a revision.
    pub(crate) fn objects_at(
        &self,
        resource: &str,
        namespace: Option<&str>,
        revision: u64,
    ) -> Result<Vec<Arc<StoredObject>>, CompactedError> {
        let since: Vec<&Change> = self.changes(resource, revision)?.collect();
        let mut found: BTreeMap<&Key, &Arc<StoredObject>> =
            self.all(resource, namespace).map(|stored| (&stored.key, stored)).collect();
        let is_within = |change: &&&Change| namespace.is_none_or(|it| *change.new.key.namespace == *it);
        for change in since.iter().rev().filter(is_within) {
            match &change.old {
                Some(old) => found.insert(&old.key, old),
                None => found.remove(&change.new.key),
            };
        }
        Ok(found.into_values().cloned().collect())
    }

    /// Registers a resource without any history.
    pub(crate) fn register_resource(&mut self, resource: &Arc<str>) {
        let empty = Collection { forgotten: self.revision, ..Collection::default() };
        self.collections.insert(resource.clone(), empty);
    }
}

impl Collection {
    fn remember(&mut self, change: Change) {
        if self.changes.len() == MAX_CHANGES
            && let Some(oldest) = self.changes.pop_front()
        {
            self.forgotten = oldest.new.revision;
        }
        self.changes.push_back(change);
    }
}
