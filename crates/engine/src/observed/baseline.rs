//! Baseline of an object: its metadata as our own apply, or a believed list, showed it.
//!
//! In: the response to an apply of ours, or an object of the first list.
//! Out: [`Baseline`], which later watch events are compared with. It holds digests instead of texts
//! where only a difference matters, because there is one for each object of a Sync.

use std::sync::Arc;

use serde_json::{Map, Value};
use sha2::{Digest as _, Sha256};

use moorline_api as api;
use moorline_core::object::Object;
use moorline_managed_fields::{Digest, FieldPath, FieldSet, ManagedFieldsEntry};

/// The last state of an object that is known to match Git.
#[derive(Debug, Clone, PartialEq)]
pub struct Baseline {
    /// Its resourceVersion: that of our write, or a later one that changed no field of ours.
    pub resource_version: Box<str>,
    /// Its generation, if the kind has one.
    pub generation: Option<i64>,
    /// Our own entry in `managedFields`, if the server shows it.
    pub own_entry: Option<ManagedEntry>,
    /// A hash of our label and each of our annotations, in the order of [`OWNERSHIP_KEYS`].
    pub(super) ownership_hashes: [u64; 4],
    /// Hash of all entries of other managers, except those of the subresource `status`.
    pub(super) foreign_hash: u64,
    /// Hash of the entries of the subresource `status`.
    pub(super) status_hash: u64,
}

/// Our own entry in `managedFields`.
#[derive(Debug, Clone, PartialEq)]
pub struct ManagedEntry {
    /// Digest of its field set.
    pub digest: Digest,
    /// Time of the write.
    pub time: Box<str>,
    /// API version of the paths.
    pub api_version: Box<str>,
    /// The compressed field set.
    bytes: Arc<[u8]>,
}

/// Positions of our label and annotations.
pub(super) const OWNERSHIP_KEYS: [(&str, &str); 4] = [
    ("labels", api::SYNC_LABEL),
    ("annotations", api::ID_ANNOTATION),
    ("annotations", api::SPEC_HASH_ANNOTATION),
    ("annotations", api::PROOF_ANNOTATION),
];

impl ManagedEntry {
    fn from_entry(entry: &ManagedFieldsEntry) -> Self {
        Self {
            digest: entry.fields.digest(),
            time: entry.time.clone(),
            api_version: entry.api_version.clone(),
            bytes: entry.fields.to_bytes().into(),
        }
    }

    /// Returns the fields that we owned.
    pub fn fields(&self) -> FieldSet {
        FieldSet::from_bytes(&self.bytes).unwrap_or_default()
    }

    /// Returns the fields, compressed.
    pub(super) fn packed(&self) -> Arc<[u8]> {
        self.bytes.clone()
    }

    /// True if the entry is unchanged.
    pub(super) fn is_unchanged(&self, entry: &ManagedFieldsEntry) -> bool {
        self.time == entry.time
            && self.api_version == entry.api_version
            && self.digest == entry.fields.digest()
    }

    #[cfg(test)]
    pub(super) fn heap(&self) -> usize {
        self.time.len() + self.api_version.len() + self.bytes.len()
    }
}

/// The parts of an event's metadata that are compared.
pub(super) struct EventMetadata {
    pub(super) generation: Option<i64>,
    pub(super) own_entry: Option<ManagedFieldsEntry>,
    pub(super) marks: [u64; 4],
    pub(super) foreign: u64,
    pub(super) status: u64,
}

impl EventMetadata {
    pub(super) fn from_object(object: &Object, manager: &str) -> Self {
        let marks = OWNERSHIP_KEYS.map(|(field, key)| {
            let value = object.metadata(field).and_then(|values| values.get(key));
            value.map_or(0, |value| short_hash(value.to_string().as_bytes()))
        });
        let mut trace = Self {
            generation: object.metadata("generation").and_then(Value::as_i64),
            own_entry: None,
            marks,
            foreign: 0,
            status: 0,
        };
        for entry in raw_entries(object) {
            let is = |field: &str, value: &str| {
                entry.get(field).and_then(Value::as_str).unwrap_or_default() == value
            };
            if is("manager", manager) && is("operation", "Apply") && is("subresource", "") {
                trace.own_entry = Some(ManagedFieldsEntry::parse(entry));
                continue;
            }
            let text = serde_json::to_vec(entry).unwrap_or_default();
            let sum = if is("subresource", "status") { &mut trace.status } else { &mut trace.foreign };
            // A sum, because the order of the entries has no meaning.
            *sum = sum.wrapping_add(short_hash(&text));
        }
        trace
    }

    pub(super) fn baseline(&self, resource_version: &str) -> Baseline {
        Baseline {
            resource_version: resource_version.into(),
            generation: self.generation,
            own_entry: self.own_entry.as_ref().map(ManagedEntry::from_entry),
            ownership_hashes: self.marks,
            foreign_hash: self.foreign,
            status_hash: self.status,
        }
    }
}

impl Baseline {
    /// Returns the same state at a later resourceVersion.
    pub(super) fn at_version(&self, trace: &EventMetadata, resource_version: &str) -> Self {
        Self {
            resource_version: resource_version.into(),
            generation: trace.generation,
            foreign_hash: trace.foreign,
            status_hash: trace.status,
            ..self.clone()
        }
    }
}

/// Returns our own entry, compressed.
pub(super) fn packed_own_entry(object: &Object, manager: &str) -> Option<Arc<[u8]>> {
    EventMetadata::from_object(object, manager).own_entry.map(|entry| entry.fields.to_bytes().into())
}

/// Returns the path of each label or annotation of ours that differs.
pub(super) fn changed_ownership_keys(old: &[u64; 4], new: &[u64; 4]) -> Vec<FieldPath> {
    let differs = OWNERSHIP_KEYS.iter().zip(old.iter().zip(new)).filter(|(_, (old, new))| old != new);
    differs.map(|((field, key), _)| FieldPath::of_fields(&["metadata", field, key])).collect()
}

pub(super) fn raw_entries(object: &Object) -> impl Iterator<Item = &Map<String, Value>> {
    let entries = object.metadata("managedFields").and_then(Value::as_array);
    entries.into_iter().flatten().filter_map(Value::as_object)
}

/// Short hash of bytes. Never 0, which means absent.
pub(super) fn short_hash(bytes: &[u8]) -> u64 {
    let digest = Sha256::digest(bytes);
    digest[..8].iter().fold(0, |hash, byte| hash << 8 | u64::from(*byte)).max(1)
}
