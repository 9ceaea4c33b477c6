//! A Sync of the cluster, as a set sees it.
//!
//! In: the Sync as the API server has it, and the set.
//! Out: [`ExistingSync`]: the evidence that it belongs to the set. An annotation names the set, its
//! uid and the Sync itself, so a copy of a Sync belongs to no set. A removal also needs the entry
//! of the set's own field manager.

use moorline_api::{INSTANCE_LABEL, PRUNE_ANNOTATION, SYNC_SET_ANNOTATION, SYNC_SET_HASH_ANNOTATION};
use serde_json::{Value, json};

use crate::child_condition::ChildCondition;
use crate::hash;

/// Number of bytes of the hash of a Sync's own fields.
const HASH_BYTES: usize = 16;

/// A SyncSet that owns Syncs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SetOwner {
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// Its uid.
    pub uid: String,
    /// The instance of the daemon that serves it, from its label.
    pub instance: Option<String>,
}

impl SetOwner {
    /// Returns the owner that a SyncSet is.
    pub fn of(set: &Value) -> Self {
        let text = |field: &str| {
            set.pointer(&format!("/metadata/{field}")).and_then(Value::as_str).unwrap_or_default().to_owned()
        };
        let labels = set.pointer("/metadata/labels");
        let instance = labels.and_then(|labels| labels.get(INSTANCE_LABEL)?.as_str()).map(str::to_owned);
        Self { namespace: text("namespace"), name: text("name"), uid: text("uid"), instance }
    }

    /// Returns the field manager that writes the Syncs of this set.
    pub fn manager(&self) -> String {
        format!("moorline-set/{}/{}", self.namespace, self.name)
    }

    /// Returns the mark on a Sync of this set.
    pub(crate) fn mark(&self, child: &str) -> String {
        format!("{}/{}/{child}", self.name, self.uid)
    }
}

/// Relation of a Sync to a set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ownership {
    /// A Sync of this set.
    Own,
    /// A Sync that a set of the same name, which is gone, has left. It may be taken up, and is
    /// never removed.
    Left,
    /// Any other Sync.
    Foreign,
}

/// A Sync of the cluster.
#[derive(Debug, Clone)]
pub struct ExistingSync {
    /// Its name.
    pub name: String,
    /// Its uid.
    pub uid: String,
    /// Its resourceVersion.
    pub version: String,
    /// True while it is being deleted.
    pub is_deleting: bool,
    /// True if its newest spec is applied and ready.
    pub is_ready: bool,
    /// True if the daemon knows the objects of its newest spec, and so what it claims.
    pub(crate) has_rendered: bool,
    pub(crate) ownership: Ownership,
    pub(crate) condition: ChildCondition,
    pub(crate) hash: Option<String>,
    pub(crate) is_kept: bool,
    pub(crate) has_own_entry: bool,
    /// True if the set itself has suspended it, so that a template without that resumes it.
    pub(crate) is_suspended_by_set: bool,
    pub(crate) body: Value,
}

impl ExistingSync {
    /// Reads a Sync for a set.
    pub fn of(sync: &Value, owner: &SetOwner) -> Self {
        let text =
            |pointer: &str| sync.pointer(pointer).and_then(Value::as_str).unwrap_or_default().to_owned();
        let annotation = |key: &str| sync.pointer("/metadata/annotations")?.get(key)?.as_str();
        let name = text("/metadata/name");
        let mark = annotation(SYNC_SET_ANNOTATION).unwrap_or_default();
        let ownership = match mark.split('/').collect::<Vec<_>>().as_slice() {
            _ if text("/metadata/namespace") != owner.namespace => Ownership::Foreign,
            [set, uid, child] if (*set, *child) == (&*owner.name, &*name) => match **uid == *owner.uid {
                true => Ownership::Own,
                false => Ownership::Left,
            },
            _ => Ownership::Foreign,
        };
        let entries = sync.pointer("/metadata/managedFields").and_then(Value::as_array);
        let manager = owner.manager();
        let own_entry = entries.into_iter().flatten().find(|entry| {
            entry["manager"].as_str() == Some(&manager) && entry["operation"].as_str() == Some("Apply")
        });
        Self {
            is_deleting: sync.pointer("/metadata/deletionTimestamp").is_some(),
            is_ready: is_ready(sync),
            has_rendered: has_rendered(sync),
            ownership,
            condition: ChildCondition::of(sync, &manager),
            hash: annotation(SYNC_SET_HASH_ANNOTATION).map(str::to_owned),
            is_kept: annotation(PRUNE_ANNOTATION) == Some("disabled"),
            has_own_entry: own_entry.is_some(),
            is_suspended_by_set: own_entry
                .is_some_and(|entry| entry.pointer("/fieldsV1/f:spec/f:suspend").is_some()),
            uid: text("/metadata/uid"),
            version: text("/metadata/resourceVersion"),
            body: json!({
                "metadata": {
                    "labels": sync.pointer("/metadata/labels"),
                    "annotations": sync.pointer("/metadata/annotations"),
                },
                "spec": sync.get("spec"),
            }),
            name,
        }
    }

    /// Returns a hash of everything that a set may write.
    pub fn digest(&self) -> String {
        hash(&self.body.to_string(), HASH_BYTES)
    }

    /// True if a removal may delete it: it is the set's own by all evidence, and nobody keeps it.
    pub fn is_removable(&self) -> bool {
        self.is_own() && self.has_own_entry && !self.is_kept
    }

    /// True if it belongs to the set.
    pub fn is_own(&self) -> bool {
        self.ownership == Ownership::Own
    }
}

fn is_ready(sync: &Value) -> bool {
    let conditions = sync.pointer("/status/conditions").and_then(Value::as_array);
    let ready = conditions.into_iter().flatten().find(|condition| condition["type"] == "Ready");
    ready.is_some_and(|ready| ready["status"] == "True" && is_observed(sync))
}

fn has_rendered(sync: &Value) -> bool {
    let has = |field: &str| sync.pointer(field).is_some_and(Value::is_string);
    is_observed(sync) && (has("/status/renderDigest") || has("/status/revision/applied"))
}

fn is_observed(sync: &Value) -> bool {
    let observed = sync.pointer("/status/observedGeneration");
    observed.is_some() && observed == sync.pointer("/metadata/generation")
}
