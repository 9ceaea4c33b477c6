//! What becomes of a write.
//!
//! In: where to, and what. Out: the object as it is kept, or why it is not. All writes come together in [`State::keep`]:
//! whatever asked for it, an object is brought to its normal form, its owners are noted, and nothing is written that
//! changes nothing.

mod by_controller;
mod create;
mod delete;
mod owned;
mod patch;
mod scale;
mod update;

use std::sync::Arc;

use serde_json::{Map, Value, json};

use super::answer::Answer;
use super::ask::{Ask, Objects};
use super::check;
use super::kinds;
use super::refusal::{About, Refusal};
use super::served::{Resource, Version};
use super::state::State;
use super::store::{Key, Stored};
pub(crate) use delete::{CLEANUP, FOREGROUND, ORPHAN, Wish};

/// Where a request writes to.
pub(crate) struct Target {
    pub(crate) resource: Arc<Resource>,
    pub(crate) version: usize,
    pub(crate) key: Key,
    /// Empty for the object itself.
    pub(crate) subresource: String,
}

/// An object as it was, and as it is to be.
pub(crate) struct Draft<'a> {
    pub(crate) old: Option<&'a Value>,
    pub(crate) new: Value,
    /// Who owns what is noted already.
    pub(crate) applied: bool,
}

/// What was written.
pub(crate) struct Written {
    pub(crate) body: Value,
    pub(crate) created: bool,
    pub(crate) warnings: Vec<String>,
}

impl Target {
    /// The target of a path.
    pub(crate) fn new(resource: Arc<Resource>, version: usize, objects: &Objects) -> Self {
        let namespace = objects.namespace.as_deref().filter(|_| resource.namespaced).unwrap_or_default();
        let key = Key::new(namespace, objects.name.as_deref().unwrap_or_default());
        Self { resource, version, key, subresource: objects.subresource.clone().unwrap_or_default() }
    }

    pub(crate) fn about(&self) -> About<'_> {
        self.resource.about(&self.key.name)
    }

    pub(crate) fn served(&self) -> &Version {
        &self.resource.versions[self.version]
    }

    pub(crate) fn api_version(&self) -> String {
        self.resource.api_version(self.version)
    }
}

impl Written {
    /// The answer to the writer.
    pub(crate) fn answer(self) -> Answer {
        Answer::json(if self.created { 201 } else { 200 }, &self.body).warning(self.warnings)
    }
}

impl State {
    /// The live object in the version of the target.
    pub(crate) fn live(&self, target: &Target) -> Result<Option<(Arc<Stored>, Value)>, Refusal> {
        let Some(stored) = self.store.get(&target.resource.home, &target.key) else { return Ok(None) };
        let body = super::convert::read(&target.resource, target.version, stored)?;
        Ok(Some((stored.clone(), body)))
    }

    /// The live object, or that there is none.
    pub(crate) fn must_live(&self, target: &Target) -> Result<(Arc<Stored>, Value), Refusal> {
        self.live(target)?.ok_or_else(|| Refusal::not_found(target.about()))
    }

    /// Keeps an object as a writer wants it.
    pub(crate) fn keep(&mut self, target: &Target, ask: &Ask, draft: Draft<'_>) -> Result<Written, Refusal> {
        let Draft { old, mut new, applied } = draft;
        let strict = ask.query("fieldValidation").unwrap_or("Warn");
        same_kind(target, &new)?;
        let mut warnings = match applied {
            true => Vec::new(),
            false => check::decode(target, &mut new, strict)?,
        };
        self.identify(target, old, &mut new);
        match target.resource.builtin() {
            Some(kind) => {
                kinds::normalize(&target.served().schema, kind.kind, &mut new);
                kinds::default(kind.group, kind.kind, &mut new);
            }
            None => {
                let schema = &target.served().schema;
                schema.pruned(&mut new);
                if !applied {
                    schema.without_nulls(&mut new);
                }
                schema.with_defaults(&mut new);
            }
        }
        if !applied {
            owned::note(self, target, ask, old, &mut new);
        }
        match target.resource.builtin() {
            Some(kind) => kinds::prepare(kind, &target.subresource, old, &mut new, self),
            None => kinds::prepare_custom(target.served().has_status, &target.subresource, old, &mut new),
        }
        check::refuse(target, old, &new)?;
        if let Some(kind) = target.resource.builtin() {
            warnings.extend(kinds::warnings(kind.kind, &new));
        }
        self.commit(target, ask, old, new, warnings)
    }

    /// What of the metadata is the server's own.
    fn identify(&mut self, target: &Target, old: Option<&Value>, new: &mut Value) {
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
            Some(old) => carry(old, metadata),
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
        target: &Target,
        ask: &Ask,
        old: Option<&Value>,
        mut new: Value,
        warnings: Vec<String>,
    ) -> Result<Written, Refusal> {
        if let Some(old) = old {
            super::ownership::keep_times(old, &mut new);
            if *old == new {
                return Ok(Written { body: new, created: false, warnings });
            }
        }
        let created = old.is_none();
        if ask.is_dry_run() {
            return Ok(Written { body: new, created, warnings });
        }
        let body = self.store_as_kept(target, new)?;
        Ok(Written { body, created, warnings })
    }

    /// Stores an object, or takes it away if nothing holds it any more; the answer is in the version of the target.
    pub(crate) fn store_as_kept(&mut self, target: &Target, new: Value) -> Result<Value, Refusal> {
        let stored = super::convert::to_stored(&target.resource, target.version, new)?;
        let Value::Object(mut body) = stored else { return Err(Refusal::bad_request("no object")) };
        let is_over = is_over(&target.resource, &body);
        let home = &target.resource.home;
        if is_over && self.store.get(home, &target.key).is_some() {
            // The writer is shown what it wrote; those who watch, how it last was.
            self.remove(home, &target.key);
        } else {
            self.put(home, target.key.clone(), &mut body);
        }
        let kept = Value::Object(body);
        self.definition_changed(&target.resource, &target.key, is_over);
        super::convert::in_version(&target.resource, target.version, kept)
    }
}

/// True if an object was to be deleted, and nobody holds it any more.
fn is_over(resource: &Resource, body: &Map<String, Value>) -> bool {
    let metadata = body.get("metadata");
    let has = |value: Option<&Value>| value.and_then(Value::as_array).is_some_and(|items| !items.is_empty());
    let deleted = metadata.and_then(|it| it.get("deletionTimestamp")).is_some_and(|at| !at.is_null());
    let held = has(metadata.and_then(|it| it.get("finalizers")));
    let is_namespace = resource.group.is_empty() && &*resource.kind == "Namespace";
    let in_use = is_namespace && has(body.get("spec").and_then(|spec| spec.get("finalizers")));
    deleted && !held && !in_use
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Object(fields) => fields.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
    }
}

/// What no writer changes.
fn carry(old: &Value, metadata: &mut Map<String, Value>) {
    const KEPT: [&str; 6] = [
        "uid",
        "creationTimestamp",
        "resourceVersion",
        "generation",
        "deletionTimestamp",
        "deletionGracePeriodSeconds",
    ];
    let old = &old["metadata"];
    for field in KEPT {
        match old.get(field) {
            Some(value) => metadata.insert(field.to_owned(), value.clone()),
            None => metadata.remove(field),
        };
    }
}

/// A body has to be of the kind that its path is about.
fn same_kind(target: &Target, body: &Value) -> Result<(), Refusal> {
    if !body.is_object() {
        return Err(Refusal::bad_request("the body of the request is no object"));
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
        return Err(Refusal::bad_request(
            match super::kinds::named(if group == "core" { "" } else { group }, kind) {
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
        return Err(Refusal::bad_request(format!(
            "{kind} in version {version:?} cannot be handled as a {kind}: no kind {kind:?} is registered for version \
             {version:?} in scheme \"pkg/runtime/scheme.go:111\""
        )));
    }
    if version != expected || *kind != *target.resource.kind {
        return Err(Refusal::bad_request(format!(
            "the API version in the data ({}) does not match the expected API version ({expected})",
            version,
        )));
    }
    Ok(())
}
