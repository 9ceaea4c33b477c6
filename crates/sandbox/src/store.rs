//! What is stored: objects by resource, in one line of revisions, and what changed last.
//!
//! In: whole objects. Out: the same, each with the revision of its last write; pages of lists that stay as they were;
//! the changes after a revision, or that they are forgotten. An object is kept as the text that most answers need:
//! a tree of it would take several times the memory.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::ops::{Bound, Range};
use std::sync::Arc;

use serde_json::{Map, Value};

/// The most changes of one resource that are remembered.
pub(crate) const MAX_CHANGES: usize = 4096;
/// The most lists of which further pages can be asked.
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

/// An object as of one revision.
#[derive(Debug)]
pub(crate) struct Stored {
    pub(crate) key: Key,
    pub(crate) revision: u64,
    pub(crate) uid: Box<str>,
    pub(crate) labels: Box<[(Box<str>, Box<str>)]>,
    /// The uids of its owners.
    pub(crate) owners: Box<[Box<str>]>,
    /// JSON with its keys in order.
    text: Box<[u8]>,
    metadata: Range<u32>,
    /// Where `apiVersion` and `kind` stand, with what parts them from the next.
    type_of: [Range<u32>; 2],
}

impl Stored {
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
                // The comma behind it is written next: nothing ends with either.
                "apiVersion" => type_of[0] = start..text.len() as u32 + 1,
                "kind" => type_of[1] = start..text.len() as u32 + 1,
                _ => {}
            }
        }
        text.push(b'}');
        Self { key, revision, uid, labels, owners, text: text.into(), metadata: place, type_of }
    }

    /// The same object in another form, at the same revision.
    pub(crate) fn again(&self, body: Value) -> Self {
        let mut fields = if let Value::Object(fields) = body { fields } else { Map::new() };
        Self::new(self.key.clone(), self.revision, &mut fields)
    }

    /// The version and group that it is kept in.
    pub(crate) fn api_version(&self) -> &str {
        let range = &self.type_of[0];
        let field = &self.text[range.start as usize..range.end as usize];
        let value = field.strip_prefix(b"\"apiVersion\":\"").and_then(|rest| rest.get(..rest.len() - 2));
        value.and_then(|value| std::str::from_utf8(value).ok()).unwrap_or_default()
    }

    /// The whole object as JSON.
    pub(crate) fn text(&self) -> &[u8] {
        &self.text
    }

    /// The whole object without its kind, as the items of a list stand whose kind says theirs.
    pub(crate) fn write_untyped(&self, out: &mut Vec<u8>) {
        let mut at = 0;
        for range in &self.type_of {
            out.extend(&self.text[at..(range.start as usize).max(at)]);
            at = at.max(range.end as usize);
        }
        out.extend(&self.text[at..]);
    }

    /// Its metadata as JSON.
    pub(crate) fn metadata(&self) -> &[u8] {
        &self.text[self.metadata.start as usize..self.metadata.end as usize]
    }

    /// The object as a tree.
    pub(crate) fn body(&self) -> Value {
        serde_json::from_slice(&self.text).unwrap_or_default()
    }

    /// The same at a later revision.
    pub(crate) fn at_revision(&self, revision: u64) -> Option<Self> {
        let Value::Object(mut body) = self.body() else { return None };
        Some(Self::new(self.key.clone(), revision, &mut body))
    }

    /// The value of a label.
    pub(crate) fn label(&self, name: &str) -> Option<&str> {
        self.labels.iter().find(|(known, _)| **known == *name).map(|(_, value)| &**value)
    }
}

/// One change of one object.
#[derive(Debug, Clone)]
pub(crate) struct Change {
    /// As it was; none if it is new.
    pub(crate) old: Option<Arc<Stored>>,
    /// As it is; for one that is gone, as it last was, at the revision of its end.
    pub(crate) new: Arc<Stored>,
    pub(crate) gone: bool,
}

/// What is asked for is not remembered any more.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Forgotten {
    /// The oldest revision that is.
    pub(crate) oldest: u64,
}

#[derive(Debug, Default)]
struct Collection {
    objects: BTreeMap<Key, Arc<Stored>>,
    changes: VecDeque<Change>,
    /// Changes up to this revision are forgotten.
    forgotten: u64,
}

/// A list of which only the beginning was given.
struct Open {
    scope: String,
    revision: u64,
    start: String,
    rest: Arc<[Arc<Stored>]>,
}

/// All objects.
#[derive(Default)]
pub(crate) struct Store {
    revision: u64,
    collections: HashMap<Arc<str>, Collection>,
    lists: VecDeque<Open>,
}

impl Store {
    /// The newest revision.
    pub(crate) fn revision(&self) -> u64 {
        self.revision
    }

    /// Which resources hold anything.
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

    /// One object.
    pub(crate) fn get(&self, resource: &str, key: &Key) -> Option<&Arc<Stored>> {
        self.collections.get(resource)?.objects.get(key)
    }

    /// All objects of a resource, or those in a namespace, in the order of their names.
    pub(crate) fn all(&self, resource: &str, namespace: Option<&str>) -> impl Iterator<Item = &Arc<Stored>> {
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

    /// Writes an object; its `metadata.resourceVersion` becomes the new revision.
    pub(crate) fn put(
        &mut self,
        resource: &Arc<str>,
        key: Key,
        body: &mut Map<String, Value>,
    ) -> Arc<Stored> {
        self.revision += 1;
        let new = Arc::new(Stored::new(key.clone(), self.revision, body));
        let collection = self.collections.entry(resource.clone()).or_default();
        let old = collection.objects.insert(key, new.clone());
        collection.remember(Change { old, new: new.clone(), gone: false });
        new
    }

    /// Takes an object away; the answer is how it last was, at the revision of its end.
    pub(crate) fn remove(&mut self, resource: &str, key: &Key) -> Option<Arc<Stored>> {
        let collection = self.collections.get_mut(resource)?;
        let old = collection.objects.remove(key)?;
        self.revision += 1;
        let new = Arc::new(old.at_revision(self.revision)?);
        collection.remember(Change { old: Some(old), new: new.clone(), gone: true });
        Some(new)
    }

    /// The changes of a resource after a revision, the oldest first.
    pub(crate) fn changes(
        &self,
        resource: &str,
        after: u64,
    ) -> Result<impl Iterator<Item = &Change>, Forgotten> {
        let collection = self.collections.get(resource);
        let forgotten = collection.map_or(0, |collection| collection.forgotten);
        if after < forgotten {
            return Err(Forgotten { oldest: forgotten });
        }
        let changes = collection.map(|collection| {
            let start = collection.changes.partition_point(|change| change.new.revision <= after);
            collection.changes.range(start..)
        });
        Ok(changes.into_iter().flatten())
    }

    /// Forgets all changes, as a server does that compacts what it keeps.
    pub(crate) fn forget(&mut self) {
        let revision = self.revision;
        for collection in self.collections.values_mut() {
            collection.changes.clear();
            collection.forgotten = revision;
        }
        self.lists.clear();
    }

    /// Forgets the objects of a resource that is served no more. Whoever watches it still hears how they went.
    pub(crate) fn drop_resource(&mut self, resource: &str) {
        if let Some(collection) = self.collections.get_mut(resource) {
            collection.objects.clear();
        }
    }

    /// Keeps the rest of a list as it is now: that of a scope after a key.
    pub(crate) fn open(&mut self, scope: String, revision: u64, start: String, rest: Vec<Arc<Stored>>) {
        if self.lists.len() == MAX_LISTS {
            self.lists.pop_front();
        }
        self.lists.push_back(Open { scope, revision, start, rest: rest.into() });
    }

    /// The rest of a list, if it is kept.
    pub(crate) fn rest(&self, scope: &str, revision: u64, start: &str) -> Option<Arc<[Arc<Stored>]>> {
        let is_meant = |open: &&Open| open.revision == revision && open.scope == scope && open.start == start;
        self.lists.iter().find(is_meant).map(|open| open.rest.clone())
    }

    /// All objects of a resource, or those in a namespace, as they were at a revision.
    pub(crate) fn as_of(
        &self,
        resource: &str,
        namespace: Option<&str>,
        revision: u64,
    ) -> Result<Vec<Arc<Stored>>, Forgotten> {
        let since: Vec<&Change> = self.changes(resource, revision)?.collect();
        let mut found: BTreeMap<&Key, &Arc<Stored>> =
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

    /// From now on a resource is known, and nothing of before.
    pub(crate) fn begin(&mut self, resource: &Arc<str>) {
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
