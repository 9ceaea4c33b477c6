//! Evidence that a listed object is as we applied it, although no request has asked.
//!
//! In: the metadata of an object in the first list after a start, and the object as it would be
//! applied now.
//! Out: [`Suspicion`], or none: then the object is believed, and its metadata are the baseline of
//! later events. Not shown by metadata: values that admission changed in a write of another
//! manager, writes of others under our name, and forged entries. The periodic verification finds
//! these.

use jiff::{SignedDuration, Timestamp};
use serde_json::{Map, Value};

use super::baseline::{Baseline, EventMetadata, ManagedEntry, raw_entries, short_hash};
use super::generation::maps_are_declared;
use moorline_core::object::{Object, ObjectId};
use moorline_managed_fields::{Agreement, BareMap, Element, FieldSet, compare_with_applied};

/// Evidence about one object.
#[derive(Debug, Clone, PartialEq)]
pub struct Evidence {
    /// The metadata as listed.
    baseline: Baseline,
    /// Hash of the labels and annotations that we own.
    metadata_values: u64,
    /// Suspicion that needs no comparison with the object in Git.
    doubt: Option<Suspicion>,
    /// The suspicion, once it was judged.
    judged: Option<Suspicion>,
}

/// Reason for which an object is verified by a request after a start, the strongest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Suspicion {
    /// Another manager wrote later, and our entry or a value differs.
    NewerWriterAndDifference,
    /// Our entry lacks a field of the object in Git, or has one that Git does not have.
    FieldsDiffer,
    /// A label or annotation has another value.
    MetadataDiffers,
    /// Another manager wrote to the object after our last change, or in the same seconds.
    NewerWriter,
    /// Our entry is missing, or is not the only one under our name.
    EntryUnusual,
    /// The entries do not decide it.
    Unclear,
}

/// Longest difference between the clocks of two API servers of one cluster. A writer counts as
/// newer if its entry is at most that much older than ours.
const CLOCK_SKEW: SignedDuration = SignedDuration::from_secs(5);
/// Manager under which the API server merges the oldest entries of a long list.
const MERGED_ENTRIES: &str = "ancient-changes";

impl Evidence {
    /// Reads the metadata of a listed object; none if our entry is missing.
    pub(super) fn of(object: &Object, manager: &str) -> Option<Self> {
        let seen = EventMetadata::from_object(object, manager);
        let own = seen.own_entry.as_ref()?;
        let version = object.metadata("resourceVersion").and_then(Value::as_str).unwrap_or_default();
        Some(Self {
            metadata_values: owned_values(object, &own.fields),
            doubt: doubt(object, manager, &own.time),
            baseline: seen.baseline(version),
            judged: None,
        })
    }

    /// Judges the evidence; none if the object is believed.
    pub fn suspicion(&self, id: &ObjectId, applied: &Map<String, Value>) -> Option<Suspicion> {
        let difference = self.difference(id, applied);
        match (self.doubt, difference) {
            (Some(Suspicion::NewerWriter), Some(Suspicion::FieldsDiffer | Suspicion::MetadataDiffers)) => {
                Some(Suspicion::NewerWriterAndDifference)
            }
            (doubt, difference) => doubt.into_iter().chain(difference).min(),
        }
    }

    /// Compares our entry with the object in Git.
    fn difference(&self, id: &ObjectId, applied: &Map<String, Value>) -> Option<Suspicion> {
        let own = self.baseline.own_entry.as_ref().map(|own| (own, own.fields()));
        let Some((own, fields)) = own else { return Some(Suspicion::EntryUnusual) };
        // The same field may have another path in another API version.
        if applied.get("apiVersion").and_then(Value::as_str) != Some(&own.api_version) {
            return Some(Suspicion::EntryUnusual);
        }
        let bare = match maps_are_declared(id.group(), id.kind()) {
            true => BareMap::Atomic,
            false => BareMap::Unknown,
        };
        match compare_with_applied(&fields, applied, bare) {
            Agreement::Differs => Some(Suspicion::FieldsDiffer),
            _ if applied_values(applied) != self.metadata_values => Some(Suspicion::MetadataDiffers),
            Agreement::Unclear => Some(Suspicion::Unclear),
            Agreement::Exact => None,
        }
    }

    /// Returns the same evidence, judged.
    pub(super) fn suspected(&self, suspicion: Suspicion) -> Self {
        Self { judged: Some(suspicion), ..self.clone() }
    }

    /// Returns the suspicion if it was judged.
    pub fn judged(&self) -> Option<Suspicion> {
        self.judged
    }

    /// Returns the baseline that later events are compared with.
    pub(super) fn baseline(&self) -> Baseline {
        self.baseline.clone()
    }

    /// Returns our entry.
    pub(super) fn own_entry(&self) -> Option<&ManagedEntry> {
        self.baseline.own_entry.as_ref()
    }
}

/// Returns the suspicion that the entries of `managedFields` raise on their own.
fn doubt(object: &Object, manager: &str, own_time: &str) -> Option<Suspicion> {
    let Ok(own_time) = own_time.parse::<Timestamp>() else { return Some(Suspicion::EntryUnusual) };
    let mut own_entries = 0;
    let found = raw_entries(object).filter_map(|entry| {
        let text = |field: &str| entry.get(field).and_then(Value::as_str).unwrap_or_default();
        if text("subresource") == "status" {
            return None;
        }
        if text("manager") == manager {
            own_entries += 1;
            return None;
        }
        match text("time").parse::<Timestamp>() {
            Ok(time) if own_time.duration_since(time) <= CLOCK_SKEW => Some(Suspicion::NewerWriter),
            Ok(_) if text("manager") != MERGED_ENTRIES && !is_of_another_sync(text("manager")) => None,
            Ok(_) | Err(_) => Some(Suspicion::EntryUnusual),
        }
    });
    let strongest = found.min();
    strongest.or((own_entries != 1).then_some(Suspicion::EntryUnusual))
}

/// True for the manager of a Sync. Its entry is released if the Sync is gone.
fn is_of_another_sync(manager: &str) -> bool {
    manager.starts_with(moorline_api::MANAGER_PREFIX)
}

/// Hashes the live labels and annotations that we own.
fn owned_values(object: &Object, own: &FieldSet) -> u64 {
    let metadata = own.root.children.get(&Element::Field("metadata".into()));
    hash_of_values(|field| {
        let owned = &metadata?.children.get(&Element::Field(field.into()))?.children;
        let values = object.metadata(field)?.as_object()?;
        let is_owned = |name: &str| owned.contains_key(&Element::Field(name.into()));
        Some(
            values
                .iter()
                .filter(|(name, _)| is_owned(name))
                .map(|(name, value)| (name.clone(), value.clone()))
                .collect(),
        )
    })
}

/// Hashes the labels and annotations of an object to apply.
fn applied_values(applied: &Map<String, Value>) -> u64 {
    hash_of_values(|field| {
        let values = applied.get("metadata")?.get(field)?.as_object()?;
        // A null removes the value.
        Some(
            values
                .iter()
                .filter(|(_, value)| !value.is_null())
                .map(|(name, value)| (name.clone(), value.clone()))
                .collect(),
        )
    })
}

fn hash_of_values(values: impl Fn(&str) -> Option<Map<String, Value>>) -> u64 {
    let both = ["labels", "annotations"].map(|field| Value::Object(values(field).unwrap_or_default()));
    short_hash(Value::from(both.to_vec()).to_string().as_bytes())
}
