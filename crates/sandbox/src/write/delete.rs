//! DELETE: one object or a whole collection.
//!
//! In: the target and the delete options.
//! Out: the object if it still exists, else a `Status`. A finalizer is removed by a write, so the
//! deletion of an object with finalizers completes in `write/mod.rs`.

use serde_json::{Value, json};

use super::RequestTarget;
use crate::admission::Admission;
use crate::request::{ApiRequest, Endpoint};
use crate::response::ApiResponse;
use crate::state::ServerState;
use crate::status_error::{ErrorSubject, StatusError};

/// Options of a deletion.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct DeleteOptions {
    uid: Option<String>,
    version: Option<String>,
    propagation: Option<String>,
    grace: Option<i64>,
    dry_run: bool,
    /// Options as webhooks receive them; no webhook is called if `None`.
    webhook_options: Option<Value>,
    /// True if a whole collection is deleted.
    is_of_all: bool,
}

/// Finalizer of an owner whose dependents are deleted first.
pub(crate) const FOREGROUND: &str = "foregroundDeletion";
/// Finalizer of an owner whose dependents are orphaned.
pub(crate) const ORPHAN: &str = "orphan";
/// Finalizer of a definition whose objects are deleted first.
pub(crate) const CLEANUP: &str = "customresourcecleanup.apiextensions.k8s.io";

impl DeleteOptions {
    /// Reads the options from the body and the query.
    pub(crate) fn from_request(ask: &ApiRequest) -> Result<Self, StatusError> {
        let body = ask.body()?.unwrap_or_default();
        let text = |value: &Value| value.as_str().map(str::to_owned);
        let orphans = body["orphanDependents"].as_bool().map(|orphans| match orphans {
            true => "Orphan".to_owned(),
            false => "Background".to_owned(),
        });
        let propagation = text(&body["propagationPolicy"]);
        Ok(Self {
            uid: text(&body["preconditions"]["uid"]),
            version: text(&body["preconditions"]["resourceVersion"]),
            propagation: propagation
                .or(orphans)
                .or_else(|| ask.query("propagationPolicy").map(str::to_owned)),
            grace: body["gracePeriodSeconds"]
                .as_i64()
                .or_else(|| ask.query("gracePeriodSeconds").and_then(|text| text.parse().ok())),
            dry_run: ask.is_dry_run() || body["dryRun"][0] == "All",
            is_of_all: matches!(&ask.endpoint, Endpoint::Objects(objects) if objects.name.is_none()),
            webhook_options: ask.asks_admission().then(|| told(ask, body)),
        })
    }

    /// Returns options for a background deletion without preconditions, as controllers use it.
    pub(crate) fn background() -> Self {
        Self { propagation: Some("Background".to_owned()), ..Self::default() }
    }
}

impl ServerState {
    /// Deletes an object, or marks it for deletion if finalizers keep it.
    pub(crate) fn delete(
        &mut self,
        target: &RequestTarget,
        wish: &DeleteOptions,
    ) -> Result<ApiResponse, StatusError> {
        let (stored, mut live) = self.require_live(target)?;
        check(target, &live, wish)?;
        let warnings = self.admit_deletion(target, &live, wish)?;
        let uid = stored.uid.clone();
        let finalizers = finalizers(target, &live, wish);
        let is_namespace = &*target.resource.kind == "Namespace" && target.resource.group.is_empty();
        if finalizers.is_empty() && !is_namespace {
            if !wish.dry_run {
                let deleted = self.remove(&target.resource.storage_key, &target.key);
                self.definition_changed(&target.resource, &target.key, true);
                live = deleted.map(|deleted| deleted.body()).unwrap_or(live);
            }
            return Ok(ApiResponse::json(200, &gone(target, &uid, live)).warning(warnings));
        }
        let metadata = &mut live["metadata"];
        let first = metadata["deletionTimestamp"].is_null();
        let held = json!(finalizers);
        if first || metadata["finalizers"] != held && !finalizers.is_empty() {
            if first {
                metadata["deletionTimestamp"] = self.clock.text().into();
                let is_definition = finalizers.iter().any(|one| one == CLEANUP);
                if !is_namespace && !is_definition {
                    metadata["deletionGracePeriodSeconds"] = 0.into();
                }
                if let Some(generation) = metadata["generation"].as_i64().filter(|_| !is_definition) {
                    metadata["generation"] = (generation + 1).into();
                }
            }
            if !finalizers.is_empty() {
                metadata["finalizers"] = held;
            }
            if is_namespace {
                live["status"]["phase"] = "Terminating".into();
            }
            if first && finalizers.iter().any(|one| one == CLEANUP) {
                terminating(&mut live, &self.clock.text());
            }
            if !wish.dry_run {
                live = self.store_or_remove(target, live)?;
                self.begin_end(target, &finalizers);
            }
        }
        Ok(ApiResponse::json(200, &live).warning(warnings))
    }

    fn admit_deletion(
        &mut self,
        target: &RequestTarget,
        live: &Value,
        wish: &DeleteOptions,
    ) -> Result<Vec<String>, StatusError> {
        let (Some(options), false) = (&wish.webhook_options, self.admitters.is_empty()) else {
            return Ok(Vec::new());
        };
        let (options, is_dry_run) = (options.clone(), wish.dry_run);
        let name = if wish.is_of_all { "" } else { &*target.key.name };
        let about = Admission { target, name, operation: "DELETE", old: Some(live), options, is_dry_run };
        self.call_admission_webhooks(&about, &mut Value::Null)
    }

    /// Queues the object for the controllers that delete or release its content first.
    fn begin_end(&mut self, target: &RequestTarget, finalizers: &[String]) {
        let place = (target.resource.storage_key.clone(), target.key.clone());
        if matches!(&*target.resource.kind, "Namespace" | "CustomResourceDefinition")
            && !self.deleting_containers.contains(&place)
        {
            self.deleting_containers.push(place.clone());
        }
        if finalizers.iter().any(|one| one == FOREGROUND || one == ORPHAN)
            && !self.deleting_owners.contains(&place)
        {
            self.deleting_owners.push(place);
        }
    }
}

/// Merges the options of body and query.
fn told(ask: &ApiRequest, mut options: Value) -> Value {
    if !options.is_object() {
        options = json!({});
        for field in ["propagationPolicy", "gracePeriodSeconds"] {
            if let Some(value) = ask.query(field) {
                options[field] = value.parse().map_or_else(|_| value.into(), |number: i64| number.into());
            }
        }
        if ask.is_dry_run() {
            options["dryRun"] = json!(["All"]);
        }
    }
    options["kind"] = "DeleteOptions".into();
    options["apiVersion"] = "meta.k8s.io/v1".into();
    options
}

/// Adds the `Terminating` condition to a definition.
fn terminating(definition: &mut Value, now: &str) {
    let condition = json!({
        "type": "Terminating", "status": "True", "reason": "InstanceDeletionPending", "lastTransitionTime": now,
        "message": "CustomResourceDefinition marked for deletion; CustomResource deletion will begin soon",
    });
    if let Some(conditions) = definition["status"]["conditions"].as_array_mut() {
        conditions.push(condition);
    }
}

/// Checks the preconditions, so that no other object of the same name is deleted.
fn check(target: &RequestTarget, live: &Value, wish: &DeleteOptions) -> Result<(), StatusError> {
    let metadata = &live["metadata"];
    const AGAIN: &str = "The object might have been deleted and then recreated";
    const CHANGED: &str = "The object might have been modified";
    for (word, wanted, field, why) in
        [("UID", &wish.uid, "uid", AGAIN), ("ResourceVersion", &wish.version, "resourceVersion", CHANGED)]
    {
        let known = metadata[field].as_str().unwrap_or_default();
        if let Some(wanted) = wanted
            && wanted != known
        {
            let why = format!(
                "the {word} in the precondition ({wanted}) does not match the {word} in record ({known}). {why}"
            );
            // Here the server prints the kind in place of the resource.
            return Err(StatusError::conflict(
                ErrorSubject { plural: &target.resource.kind, ..target.about() },
                &why,
            ));
        }
    }
    Ok(())
}

/// Returns the finalizers that keep the object, given the propagation policy.
fn finalizers(target: &RequestTarget, live: &Value, wish: &DeleteOptions) -> Vec<String> {
    let held = live["metadata"]["finalizers"].as_array().into_iter().flatten();
    let mut held: Vec<String> = held.filter_map(|one| one.as_str().map(str::to_owned)).collect();
    let wanted = match wish.propagation.as_deref() {
        Some("Foreground") => Some(FOREGROUND),
        Some("Orphan") => Some(ORPHAN),
        _ => None,
    };
    if wish.propagation.is_some() {
        held.retain(|one| (one != FOREGROUND && one != ORPHAN) || wanted == Some(one));
    }
    if let Some(wanted) = wanted
        && !held.iter().any(|one| one == wanted)
    {
        held.push(wanted.to_owned());
    }
    if &*target.resource.kind == "CustomResourceDefinition" && !held.iter().any(|one| one == CLEANUP) {
        held.push(CLEANUP.to_owned());
    }
    held
}

/// Returns the response for a deleted object: a `Status`, or for some kinds the object itself.
fn gone(target: &RequestTarget, uid: &str, live: Value) -> Value {
    // The server returns the deleted object of these kinds.
    const TOLD: [&str; 6] =
        ["Pod", "Service", "ServiceAccount", "PersistentVolume", "PersistentVolumeClaim", "ResourceQuota"];
    if target.resource.builtin().is_some() && TOLD.contains(&&*target.resource.kind) {
        return live;
    }
    let mut details = json!({"name": &*target.key.name, "kind": &*target.resource.plural, "uid": uid});
    if !target.resource.group.is_empty() {
        details["group"] = (&*target.resource.group).into();
    }
    json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "details": details})
}
