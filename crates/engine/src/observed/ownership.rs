//! Ownership of a live object.
//!
//! In: the metadata of a live object.
//! Out: the managers that applied it, the Sync that its annotations name, and the presence of a
//! controlling owner.

use serde_json::{Map, Value};

use super::Ownership;
use moorline_api::{self as api, SyncName};
use moorline_core::object::Object;

/// The managers that applied the object, according to `managedFields`.
pub(super) struct ApplyEntries {
    pub(super) ours: bool,
    other_sync: Option<Box<str>>,
    pub(super) others: Vec<Box<str>>,
}

impl ApplyEntries {
    pub(super) fn of(object: &Object, owner: &SyncName) -> Self {
        let own = owner.manager();
        let mut found = Self { ours: false, other_sync: None, others: Vec::new() };
        let fields = object.metadata("managedFields").and_then(Value::as_array);
        for entry in fields.into_iter().flatten().filter_map(Value::as_object) {
            let text = |field: &str| entry.get(field).and_then(Value::as_str).unwrap_or_default();
            let (manager, applied) = (text("manager"), text("operation") == "Apply");
            match manager.strip_prefix(api::MANAGER_PREFIX) {
                _ if !text("subresource").is_empty() => {}
                Some(_) if manager == own => found.ours |= applied,
                Some(sync) if applied => found.other_sync = Some(sync.into()),
                _ if found.others.iter().any(|known| **known == *manager) => {}
                _ => found.others.push(manager.into()),
            }
        }
        found
    }
}

pub(super) fn read_ownership(object: &Object, owner: &SyncName, entries: &ApplyEntries) -> Ownership {
    let Some(identity) = object.annotation(api::ID_ANNOTATION) else {
        return entries.other_sync.clone().map_or(Ownership::Unowned, Ownership::OtherSync);
    };
    match identity.split_once('|') {
        _ if identity == owner.identity(object.id.as_str()) => Ownership::Ours,
        Some((sync, id)) if id == object.id.as_str() => Ownership::OtherSync(sync.into()),
        _ => Ownership::Copy,
    }
}

pub(super) fn has_controller(object: &Object) -> bool {
    let owners = object.metadata("ownerReferences").and_then(Value::as_array);
    let controls = |owner: &Map<String, Value>| owner.get("controller") == Some(&Value::Bool(true));
    owners.into_iter().flatten().filter_map(Value::as_object).any(controls)
}

/// Role of an object in an installation of Moorline.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InstallationRole {
    /// None.
    None,
    /// A part of the installation.
    Installation,
    /// A Secret with the keys of a daemon or a run, this one or another.
    Keys,
}

impl InstallationRole {
    pub(super) fn of(object: &Object) -> Self {
        match object.label(api::PART_OF_LABEL.0) == Some(api::PART_OF_LABEL.1) {
            _ if holds_keys(object) => Self::Keys,
            true => Self::Installation,
            false => Self::None,
        }
    }
}

/// True for a Secret with the keys of a daemon or a run, this one or another.
pub fn holds_keys(object: &Object) -> bool {
    object.id.is_kind("", "Secret") && object.label(api::KEYS_LABEL).is_some()
}
