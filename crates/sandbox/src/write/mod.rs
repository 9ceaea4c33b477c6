//! Writes.
//!
//! In: the target and the new object.
//! Out: the stored object, or an error. All writes go through [`State::write_object`]: the object
//! is normalized, its `managedFields` are updated, webhooks admit it, and an unchanged object is
//! not stored.

mod admit;
mod controller_writes;
mod create;
mod delete;
mod field_owners;
mod patch;
mod scale;
mod update;

use std::sync::Arc;

use serde_json::{Map, Value, json};

use super::convert;
use super::kinds;
use super::state::ServerState;
use super::store::{Key, StoredObject};
use crate::object_validation;
use crate::request::{ApiRequest, ObjectPath};
use crate::resource_registry::{Resource, Version};
use crate::response::ApiResponse;
use crate::status_error::{ErrorSubject, StatusError};
pub(crate) use delete::{CLEANUP, DeleteOptions, FOREGROUND, ORPHAN};

/// Object or collection that a request addresses.
pub(crate) struct RequestTarget {
    pub(crate) resource: Arc<Resource>,
    pub(crate) version: usize,
    pub(crate) key: Key,
    /// Empty for the object itself.
    pub(crate) subresource: String,
}

/// An object before and after a write.
pub(crate) struct Draft<'a> {
    pub(crate) old: Option<&'a Value>,
    pub(crate) new: Value,
    /// True if `managedFields` are up to date already.
    pub(crate) applied: bool,
}

/// An object as it is stored, and the response to the writer if that has another version.
struct ConvertedWrite {
    stored: Value,
    told: Option<Value>,
}

impl ConvertedWrite {
    fn told(self) -> Value {
        self.told.unwrap_or(self.stored)
    }
}

/// Result of a write.
pub(crate) struct WriteResult {
    pub(crate) body: Value,
    pub(crate) created: bool,
    pub(crate) warnings: Vec<String>,
}

impl RequestTarget {
    /// Returns the target of a path.
    pub(crate) fn new(resource: Arc<Resource>, version: usize, objects: &ObjectPath) -> Self {
        let namespace = objects.namespace.as_deref().filter(|_| resource.namespaced).unwrap_or_default();
        let key = Key::new(namespace, objects.name.as_deref().unwrap_or_default());
        Self { resource, version, key, subresource: objects.subresource.clone().unwrap_or_default() }
    }

    pub(crate) fn about(&self) -> ErrorSubject<'_> {
        self.resource.about(&self.key.name)
    }

    pub(crate) fn served(&self) -> &Version {
        &self.resource.versions[self.version]
    }

    pub(crate) fn api_version(&self) -> String {
        self.resource.api_version(self.version)
    }
}

impl WriteResult {
    /// Returns the response to the writer.
    pub(crate) fn answer(self) -> ApiResponse {
        ApiResponse::json(if self.created { 201 } else { 200 }, &self.body).warning(self.warnings)
    }
}

impl ServerState {
    /// Returns the live object in the version of the target.
    pub(crate) fn live(
        &self,
        target: &RequestTarget,
    ) -> Result<Option<(Arc<StoredObject>, Value)>, StatusError> {
        let Some(stored) = self.store.get(&target.resource.storage_key, &target.key) else { return Ok(None) };
        let body = convert::read_stored(&self.conversions, &target.resource, target.version, stored)?;
        Ok(Some((stored.clone(), body)))
    }

    /// Returns the live object, or the error that it does not exist.
    pub(crate) fn require_live(
        &self,
        target: &RequestTarget,
    ) -> Result<(Arc<StoredObject>, Value), StatusError> {
        self.live(target)?.ok_or_else(|| StatusError::not_found(target.about()))
    }

    /// Validates and stores an object.
    pub(crate) fn write_object(
        &mut self,
        target: &RequestTarget,
        ask: &ApiRequest,
        draft: Draft<'_>,
    ) -> Result<WriteResult, StatusError> {
        let Draft { old, mut new, applied } = draft;
        let strict = ask.query("fieldValidation").unwrap_or("Warn");
        same_kind(target, &new)?;
        let mut warnings = match applied {
            true => Vec::new(),
            false => object_validation::check_decoding(target, &mut new, strict)?,
        };
        self.identify(target, old, &mut new);
        let emptied = if applied { Vec::new() } else { empty_lists(&new) };
        match target.resource.builtin() {
            Some(kind) => {
                kinds::normalize(&target.served().schema, kind.kind, &mut new);
                kinds::set_defaults(kind.group, kind.kind, &mut new);
            }
            None => {
                let schema = &target.served().schema;
                schema.prune(&mut new);
                if !applied {
                    schema.without_nulls(&mut new);
                }
                // An apply that changes nothing sets no defaults either.
                if !(applied && old.is_some_and(|old| is_same_but_metadata(old, &new))) {
                    schema.with_defaults(&mut new);
                }
            }
        }
        if !applied {
            // A writer of an empty list owns it, although it is stored as null.
            let emptied: Vec<String> =
                emptied.into_iter().filter(|name| new.get(name) == Some(&Value::Null)).collect();
            emptied.iter().for_each(|name| new[name] = json!([]));
            crate::write::field_owners::record_managers(self, target, ask, old, &mut new);
            emptied.iter().for_each(|name| new[name] = Value::Null);
        }
        warnings.extend(self.admit_object(target, ask, old, &mut new)?);
        match target.resource.builtin() {
            Some(kind) => kinds::prepare(kind, &target.subresource, old, &mut new, self),
            None => kinds::prepare_custom(target.served().has_status, &target.subresource, old, &mut new),
        }
        warnings.extend(object_validation::validate_object(target, old, &new, ask.asks_rules())?);
        if let Some(kind) = target.resource.builtin() {
            warnings.extend(kinds::warnings(kind.kind, &new));
        }
        self.commit(target, ask, old, new, warnings)
    }

    /// Sets the metadata that only the server sets.
    fn identify(&mut self, target: &RequestTarget, old: Option<&Value>, new: &mut Value) {
        let Some(body) = new.as_object_mut() else { return };
        body.insert("apiVersion".to_owned(), target.api_version().into());
        body.insert("kind".to_owned(), (&*target.resource.kind).into());
        let metadata = body.entry("metadata").or_insert_with(|| json!({}));
        if !metadata.is_object() {
            *metadata = json!({});
        }
        let Some(metadata) = metadata.as_object_mut() else { return };
        metadata.remove("selfLink");
        metadata.insert("name".to_owned(), (&*target.key.name).into());
        if target.resource.namespaced {
            metadata.insert("namespace".to_owned(), (&*target.key.namespace).into());
        } else {
            metadata.remove("namespace");
        }
        for empty in ["labels", "annotations", "finalizers", "ownerReferences"] {
            if metadata.get(empty).is_some_and(is_empty) {
                metadata.remove(empty);
            }
        }
        match old {
            Some(old) => copy_server_metadata(old, metadata),
            None => {
                for field in ["resourceVersion", "deletionTimestamp", "deletionGracePeriodSeconds"] {
                    metadata.remove(field);
                }
                metadata.insert("uid".to_owned(), self.chance.uid().into());
                metadata.insert("creationTimestamp".to_owned(), self.clock.text().into());
                metadata.remove("generation");
            }
        }
    }

    fn commit(
        &mut self,
        target: &RequestTarget,
        ask: &ApiRequest,
        old: Option<&Value>,
        mut new: Value,
        warnings: Vec<String>,
    ) -> Result<WriteResult, StatusError> {
        if let Some(old) = old {
            crate::managed_fields::keep_times(old, &mut new);
            if *old == new && !self.is_converted(target) {
                return Ok(WriteResult { body: new, created: false, warnings });
            }
        }
        let created = old.is_none();
        // Other problems of a new object are reported first.
        if created && self.store.get(&target.resource.storage_key, &target.key).is_some() {
            return Err(StatusError::already_exists(target.about()));
        }
        if !self.admitters.is_empty() && target.resource.builtin().is_none() {
            target.served().schema.prune(&mut new);
        }
        let kept = self.kept(target, new)?;
        if let Some(old) = old.filter(|_| self.is_stored(target, &kept.stored)) {
            return Ok(WriteResult { body: old.clone(), created, warnings });
        }
        let body = if ask.is_dry_run() { kept.told() } else { self.store_converted(target, kept)? };
        Ok(WriteResult { body, created, warnings })
    }

    /// Stores an object, or removes it if no finalizer is left; returns it in the version of the
    /// target.
    pub(crate) fn store_or_remove(
        &mut self,
        target: &RequestTarget,
        new: Value,
    ) -> Result<Value, StatusError> {
        let kept = self.kept(target, new)?;
        self.store_converted(target, kept)
    }

    /// True if the stored object is not, or will not be, in the version of the target, or was
    /// written under an older definition. Only the stored form shows then if the write changes
    /// anything.
    fn is_converted(&self, target: &RequestTarget) -> bool {
        let stored = self.store.get(&target.resource.storage_key, &target.key);
        let is_other = |stored: &Arc<StoredObject>| {
            target.resource.is_older(stored.revision) || stored.api_version() != target.api_version()
        };
        target.resource.builtin().is_none()
            && (target.version != target.resource.stored_version() || stored.is_some_and(is_other))
    }

    /// True if the converted object equals the stored one.
    fn is_stored(&self, target: &RequestTarget, object: &Value) -> bool {
        let stored = || self.store.get(&target.resource.storage_key, &target.key);
        self.is_converted(target) && stored().is_some_and(|stored| stored.body() == *object)
    }

    /// Converts an object to its stored form and to the response.
    fn kept(&self, target: &RequestTarget, mut new: Value) -> Result<ConvertedWrite, StatusError> {
        let (resource, conversions) = (&target.resource, &self.conversions);
        if conversions.calls_webhooks() && self.is_converted(target) {
            let revision = self.store.get(&resource.storage_key, &target.key).map(|stored| stored.revision);
            new = conversions.draft(&target.key, revision, new);
        }
        let stored = convert::to_stored(conversions, resource, new)?;
        let told = (stored["apiVersion"] != target.api_version())
            .then(|| convert::convert_to_version(conversions, resource, target.version, stored.clone()));
        Ok(ConvertedWrite { stored, told: told.transpose()? })
    }

    fn store_converted(
        &mut self,
        target: &RequestTarget,
        kept: ConvertedWrite,
    ) -> Result<Value, StatusError> {
        // A discarded attempt writes nothing: see `convert/mod.rs`.
        if self.conversions.has_pending() {
            return Err(StatusError::busy());
        }
        let ConvertedWrite { stored, told } = kept;
        let Value::Object(mut body) = stored else { return Err(StatusError::bad_request("not an object")) };
        let is_over = is_over(&target.resource, &body);
        let home = &target.resource.storage_key;
        if is_over && self.store.get(home, &target.key).is_some() {
            // The writer gets the object that it wrote; watches get its last state.
            self.remove(home, &target.key);
        } else {
            self.put(home, target.key.clone(), &mut body);
        }
        self.definition_changed(&target.resource, &target.key, is_over);
        let Some(mut told) = told else { return Ok(Value::Object(body)) };
        told["metadata"]["resourceVersion"] = body["metadata"]["resourceVersion"].clone();
        Ok(told)
    }
}

/// True if an object was marked for deletion and has no finalizers left.
fn is_over(resource: &Resource, body: &Map<String, Value>) -> bool {
    let metadata = body.get("metadata");
    let has = |value: Option<&Value>| value.and_then(Value::as_array).is_some_and(|items| !items.is_empty());
    let deleted = metadata.and_then(|it| it.get("deletionTimestamp")).is_some_and(|at| !at.is_null());
    let held = has(metadata.and_then(|it| it.get("finalizers")));
    let is_namespace = resource.group.is_empty() && &*resource.kind == "Namespace";
    let in_use = is_namespace && has(body.get("spec").and_then(|spec| spec.get("finalizers")));
    deleted && !held && !in_use
}

/// Returns the top-level fields that are empty lists.
fn empty_lists(object: &Value) -> Vec<String> {
    let is_empty = |value: &Value| value.as_array().is_some_and(Vec::is_empty);
    let fields = object.as_object().into_iter().flatten();
    fields.filter(|(_, value)| is_empty(value)).map(|(name, _)| name.clone()).collect()
}

fn is_same_but_metadata(old: &Value, new: &Value) -> bool {
    let (Some(old), Some(new)) = (old.as_object(), new.as_object()) else { return old == new };
    old.len() == new.len()
        && old.iter().all(|(name, value)| name == "metadata" || new.get(name) == Some(value))
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Object(fields) => fields.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
    }
}

/// Metadata that clients cannot change.
const SERVER_METADATA: [&str; 6] = [
    "uid",
    "creationTimestamp",
    "resourceVersion",
    "generation",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
];

/// Copies the metadata that clients cannot change.
fn copy_server_metadata(old: &Value, metadata: &mut Map<String, Value>) {
    let old = &old["metadata"];
    for field in SERVER_METADATA {
        match old.get(field) {
            Some(value) => metadata.insert(field.to_owned(), value.clone()),
            None => metadata.remove(field),
        };
    }
}

/// Refuses a body of another kind or version than the path.
fn same_kind(target: &RequestTarget, body: &Value) -> Result<(), StatusError> {
    if !body.is_object() {
        return Err(StatusError::bad_request("the body of the request is not an object"));
    }
    let (version, kind) = (&body["apiVersion"], &body["kind"]);
    let expected = target.api_version();
    let (version, kind) =
        (version.as_str().unwrap_or(&expected), kind.as_str().unwrap_or(&target.resource.kind));
    if let Some(own) = target.resource.builtin()
        && *kind != *target.resource.kind
    {
        let (group, name) = version.split_once('/').unwrap_or(("core", version));
        let home =
            if own.group.is_empty() { "core" } else { own.group.split('.').next().unwrap_or_default() };
        let own = &own.kind;
        return Err(StatusError::bad_request(
            match super::kinds::find_kind(if group == "core" { "" } else { group }, kind) {
                Some(_) => format!(
                    "{kind} in version {name:?} cannot be handled as a {own}: converting ({name}.{kind}) to ({home}.{own}): unknown conversion"
                ),
                None => format!(
                    "no kind {kind:?} is registered for version {version:?} in scheme \"pkg/api/legacyscheme/scheme.go:30\""
                ),
            },
        ));
    }
    let is_known =
        target.resource.versions.iter().enumerate().any(|(at, _)| target.resource.api_version(at) == version);
    if target.resource.builtin().is_some() && !is_known {
        return Err(StatusError::bad_request(format!(
            "{kind} in version {version:?} cannot be handled as a {kind}: no kind {kind:?} is registered for version \
             {version:?} in scheme \"pkg/runtime/scheme.go:111\""
        )));
    }
    if version != expected || *kind != *target.resource.kind {
        return Err(StatusError::bad_request(format!(
            "the API version in the data ({}) does not match the expected API version ({expected})",
            version,
        )));
    }
    Ok(())
}
