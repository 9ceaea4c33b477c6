//! Single writes of objects.
//!
//! In: a desired object.
//! Out: an [`ApplyResult`], or an [`ApiError`]. Every write is a server-side apply under the field
//! manager of the Sync, answered with metadata alone. Deletions carry uid and resourceVersion as
//! preconditions.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use serde_json::{Value, json};

use super::kinds::ServedKind;
use super::store::{WriteGuard, object};
use super::{Cluster, query};
use crate::api_client::{ApiRequest, ApiResponse, METADATA};
use crate::api_error::ApiError;
use crate::change_log::{Before, Target, WriteKind};
use crate::rewind_detection::number;
use moorline_api::{self as api, SyncName};
use moorline_core::object::{Object, ObjectId};
use moorline_engine::desired::DesiredObject;
use moorline_engine::observed::{Observed, existed_before_apply};
use moorline_journal::{Entry, Journal, Reason};
use moorline_managed_fields::remove_values;
use moorline_metrics::RequestClass;

/// Conflict policy of an apply.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Force {
    /// Takes over fields that other managers own.
    Yes,
    /// Fails with a conflict if another manager owns a field with another value.
    No,
}

/// Result of an apply.
#[derive(Debug, Clone)]
pub struct ApplyResult {
    /// True if the object did not exist before.
    pub created: bool,
    /// resourceVersion after the apply; unchanged if nothing changed.
    pub version: Box<str>,
    /// Warnings of the server.
    pub warnings: Vec<Box<str>>,
    /// Metadata of the object.
    pub object: Object,
}

impl Cluster {
    /// Applies an object for its Sync.
    ///
    /// # Guarantees
    ///
    /// One server-side apply under the Sync's field manager, with strict field validation. It
    /// carries the Sync's label, the identity, the spec hash and the proof.
    ///
    /// # Cancellation
    ///
    /// Dropping the future leaves open whether the server applied the object; it is verified again.
    ///
    /// # Errors
    ///
    /// Any [`ApiError`]: refused, unreachable, too late for the current term of the Lease.
    pub async fn apply(
        &self,
        wanted: &DesiredObject,
        owner: &SyncName,
        force: Force,
    ) -> Result<ApplyResult, ApiError> {
        self.apply_named(wanted, owner, force, (&[], None)).await
    }

    /// Applies an object without the values at some paths (JSON pointers); if a uid is given, only
    /// to the object that has it. See [`Cluster::apply`].
    pub async fn apply_named(
        &self,
        wanted: &DesiredObject,
        owner: &SyncName,
        force: Force,
        (less, uid): (&[Box<str>], Option<&str>),
    ) -> Result<ApplyResult, ApiError> {
        let mut body = self.body(wanted, owner, less);
        if let Some(uid) = uid {
            body["metadata"]["uid"] = uid.into();
        }
        self.apply_body(wanted, owner, force, &body).await
    }

    /// Creates an object by server-side apply.
    ///
    /// # Guarantees
    ///
    /// Writes nothing if the object exists: the call fails with a conflict.
    ///
    /// # Cancellation
    ///
    /// As [`Cluster::apply`].
    ///
    /// # Errors
    ///
    /// As [`Cluster::apply`]; 409 if the object exists.
    pub async fn create(&self, wanted: &DesiredObject, owner: &SyncName) -> Result<ApplyResult, ApiError> {
        let mut body = self.body(wanted, owner, &[]);
        // No existing object has this resourceVersion, so the apply conflicts if there is one.
        body["metadata"]["resourceVersion"] = "1".into();
        self.apply_body(wanted, owner, Force::No, &body).await
    }

    async fn apply_body(
        &self,
        wanted: &DesiredObject,
        owner: &SyncName,
        force: Force,
        body: &Value,
    ) -> Result<ApplyResult, ApiError> {
        let kinds = self.kinds();
        let path = kinds.path(&wanted.id, &wanted.version).ok_or_else(|| unknown(&wanted.id))?;
        let forced = if force == Force::Yes { "&force=true" } else { "" };
        let uri = format!("{path}?fieldManager={}&fieldValidation=Strict{forced}", query(&owner.manager()));
        let writing = self.0.store.writing(owner, &wanted.id);
        let call = ApiRequest::new(RequestClass::Object, "patch", uri)
            .applies()
            .accept(METADATA)
            .content(APPLY, body.to_string().into_bytes());
        let target = Target { id: &wanted.id, owner: Some(owner), kind: WriteKind::Apply };
        let reply = self.write((call, target), writing, |reply, writing| {
            let object = read(&wanted.id, &reply.body)?;
            writing.finish_applied(&object);
            Ok(object)
        });
        let reply = reply.await.map_err(|failure| kinds.explain(&wanted.id, &wanted.version, failure));
        let (reply, object) = reply?;
        if object.metadata("managedFields").is_none() && !self.0.is_hidden.swap(true, Ordering::Relaxed) {
            tracing::warn!(
                "a proxy removes managedFields from the responses of the API server: every change of an object costs a request, its author cannot be named, and nothing can be pruned"
            );
        }
        let version = version(&object);
        self.0.wire.write_history.note(&self.0.wire.client, &path, wanted.id.name(), number(Some(&version)));
        Ok(ApplyResult { created: reply.created, version, warnings: reply.warnings, object })
    }

    /// Deletes an object in the background. Returns true if it is gone at once.
    ///
    /// # Guarantees
    ///
    /// Deletes only this uid in this resourceVersion.
    ///
    /// # Cancellation
    ///
    /// Dropping the future leaves open whether the object was deleted; it is verified again.
    ///
    /// # Errors
    ///
    /// 409 if the object has changed; otherwise any [`ApiError`].
    pub async fn delete(
        &self,
        id: &ObjectId,
        owner: &SyncName,
        uid: &str,
        version: &str,
    ) -> Result<bool, ApiError> {
        let path = self.live_path(id)?;
        let options = json!({
            "apiVersion": "v1", "kind": "DeleteOptions", "propagationPolicy": "Background",
            "preconditions": {"uid": uid, "resourceVersion": version},
        });
        let writing = self.0.store.writing(owner, id);
        let call = ApiRequest::new(RequestClass::Object, "delete", path)
            .accept(METADATA)
            .content("application/json", options.to_string().into_bytes());
        let target = Target { id, owner: Some(owner), kind: WriteKind::Delete };
        let reply = self.write((call, target), writing, |reply, writing| {
            // The server answers with the object if finalizers keep it, and with a success status
            // if it is gone.
            let gone = read(id, &reply.body).is_ok_and(|left| left.metadata("deletionTimestamp").is_none());
            writing.finish_deleted(gone);
            Ok(gone)
        });
        reply.await.map(|(_, gone)| gone)
    }

    /// Releases an object for a Sync by an empty apply.
    ///
    /// # Guarantees
    ///
    /// The Sync's manager owns no field afterwards. Fields that another manager applies keep their
    /// values.
    ///
    /// # Cancellation
    ///
    /// Dropping the future leaves open whether the object was released.
    ///
    /// # Errors
    ///
    /// Any [`ApiError`].
    pub async fn release_object(&self, id: &ObjectId, version: &str, sync: &str) -> Result<(), ApiError> {
        let path = self.kinds().path(id, version).ok_or_else(|| unknown(id))?;
        let manager = format!("{}{sync}", api::MANAGER_PREFIX);
        let uri = format!("{path}?fieldManager={}", query(&manager));
        let api_version = match id.group() {
            "" => version.to_owned(),
            group => format!("{group}/{version}"),
        };
        let mut body = json!({
            "apiVersion": api_version, "kind": id.kind(), "metadata": {"name": id.name()},
        });
        if let Some(namespace) = id.namespace() {
            body["metadata"]["namespace"] = namespace.into();
        }
        let call = ApiRequest::new(RequestClass::Object, "patch", uri)
            .accept(METADATA)
            .content(APPLY, body.to_string().into_bytes());
        self.send(call, Target { id, owner: None, kind: WriteKind::Release }).await.map(drop)
    }

    /// Forgets an object of this Sync that was handed over to another one. A later event adds it
    /// again.
    pub fn forget_object(&self, owner: &SyncName, id: &ObjectId) {
        self.0.store.writing(owner, id).finish_deleted(true);
    }

    /// Reads the metadata of an object from the server; none if it does not exist.
    pub async fn observe_object(
        &self,
        id: &ObjectId,
        owner: &SyncName,
    ) -> Result<Option<Observed>, ApiError> {
        let call = ApiRequest::new(RequestClass::Object, "get", self.live_path(id)?).accept(METADATA);
        match self.0.wire.send(call).await {
            Ok(reply) => {
                let mut seen = Observed::from_object(&read(id, &reply.body)?, owner);
                self.0.notary.check_proof(owner, id, &mut seen);
                Ok(Some(seen))
            }
            Err(failure) if failure.code() == Some(404) => Ok(None),
            Err(failure) => Err(failure),
        }
    }

    /// True if the object may have existed before the Sync applied it; none if it is gone.
    pub async fn may_predate_apply(&self, id: &ObjectId, owner: &SyncName) -> Result<Option<bool>, ApiError> {
        let call = ApiRequest::new(RequestClass::Verify, "get", self.live_path(id)?).accept(METADATA);
        match self.0.wire.send(call).await {
            Ok(reply) => Ok(Some(existed_before_apply(&read(id, &reply.body)?, owner))),
            Err(failure) if failure.code() == Some(404) => Ok(None),
            Err(failure) => Err(failure),
        }
    }

    /// Returns the same cluster for writes with this cause, which the journal repeats.
    pub fn caused_by(&self, cause: Entry) -> Self {
        Self(self.0.clone(), self.1.clone(), self.2.clone(), Some(Arc::new(cause)))
    }

    /// Returns the same cluster for writes with the same cause and another reason, which no
    /// approval asked for.
    pub fn for_reason(&self, reason: Reason) -> Self {
        self.caused_by(Entry { reason, approval: None, approver: None, ..self.cause() })
    }

    /// Returns the cause of the writes.
    pub fn cause(&self) -> Entry {
        self.3.as_deref().cloned().unwrap_or_default()
    }

    /// Sets the journal of the writes of all identities.
    pub fn set_journal(&self, journal: Journal) {
        self.0.changes.set_journal(journal);
    }

    /// Returns the journal.
    pub fn journal(&self) -> Journal {
        self.0.changes.journal().unwrap_or_default()
    }

    /// Marks these objects as unverified, although no change was seen, so that they are verified
    /// again.
    pub fn mark_unverified(&self, owner: &SyncName, ids: &[ObjectId]) {
        self.0.store.mark_unverified(owner, ids);
    }

    /// Marks objects whose daily verification is due.
    pub fn mark_overdue(&self, owner: &SyncName, ids: &[ObjectId]) {
        self.0.store.mark_overdue(owner, ids);
    }

    /// Marks all objects as unverified, so that they are verified again.
    pub fn mark_all_unverified(&self) {
        self.0.discovery.forget_server_version();
        self.0.store.mark_all_unverified();
    }

    /// Builds the apply body: the canonical object with our label and annotations.
    pub(super) fn body(&self, wanted: &DesiredObject, owner: &SyncName, less: &[Box<str>]) -> Value {
        let mut body = self.applied_object(wanted, owner);
        remove_values(&mut body, less);
        body
    }

    /// Returns the canonical object with our label and annotations.
    pub(super) fn applied_object(&self, wanted: &DesiredObject, owner: &SyncName) -> Value {
        let mut body = Value::Object(wanted.body());
        // Rendering guarantees that these are mappings or absent; absent ones become mappings here.
        let metadata = &mut body["metadata"];
        metadata["labels"][api::SYNC_LABEL] = owner.label().into();
        let annotations = &mut metadata["annotations"];
        annotations[api::ID_ANNOTATION] = owner.identity(wanted.id.as_str()).into();
        if let Some(hash) = wanted.recorded_hash() {
            annotations[api::SPEC_HASH_ANNOTATION] = hash.to_string().into();
        }
        if let Some(proof) = self.0.notary.prove(owner, &wanted.id) {
            annotations[api::PROOF_ANNOTATION] = proof.to_string().into();
        }
        body
    }

    fn live_path(&self, id: &ObjectId) -> Result<String, ApiError> {
        let kinds = self.kinds();
        let version = kinds.get(&id.group_kind()).map_or("v1", ServedKind::preferred);
        kinds.path(id, version).ok_or_else(|| unknown(id))
    }

    /// Sends a write when the limiter admits it, and records its result in the journal.
    pub(super) async fn send(&self, call: ApiRequest, target: Target<'_>) -> Result<ApiResponse, ApiError> {
        let journal = self.0.changes.journal();
        let owner = journal.as_ref().and_then(|_| target.owner.cloned().or_else(|| self.writing_sync()));
        let before = owner.and_then(|owner| self.0.store.known(&owner, target.id));
        let answer = self.send_unlisted(call).await;
        if let Some(journal) = &journal {
            let before = before.as_ref().map(Before::of).unwrap_or_default();
            self.0.changes.record(journal, (target, self.3.as_deref()), &before, &answer);
        }
        answer
    }

    /// Sends a write that changes no object of a Sync: a dry run, or one of the key Secret.
    pub(super) async fn send_unlisted(&self, call: ApiRequest) -> Result<ApiResponse, ApiError> {
        let call = ApiRequest { permit: self.2.clone(), ..call };
        self.0.gate.send(&self.0.wire, call, self.1.as_deref()).await
    }

    /// Returns the Sync of the cause.
    fn writing_sync(&self) -> Option<SyncName> {
        let (namespace, name) = self.3.as_ref()?.sync.as_ref()?.split_once('/')?;
        Some(SyncName::new(namespace, name))
    }

    /// Sends a write and records the result in the store.
    pub(super) async fn write<T>(
        &self,
        (call, target): (ApiRequest, Target<'_>),
        writing: WriteGuard,
        take: impl FnOnce(&ApiResponse, WriteGuard) -> Result<T, ApiError>,
    ) -> Result<(ApiResponse, T), ApiError> {
        match self.send(call, target).await {
            Ok(reply) => {
                let taken = take(&reply, writing)?;
                Ok((reply, taken))
            }
            Err(failure) => {
                match &failure {
                    // The server did not carry it out. From status 500 on that is unknown.
                    ApiError::Refused(refusal) if refusal.code < 500 => writing.finish_refused(),
                    ApiError::NotLeader | ApiError::Superseded => writing.finish_refused(),
                    ApiError::Refused(_)
                    | ApiError::Unreachable(_)
                    | ApiError::InvalidResponse(_)
                    | ApiError::UnknownKind(_)
                    | ApiError::Timeout(_) => drop(writing),
                }
                Err(failure)
            }
        }
    }
}

pub(super) const APPLY: &str = "application/apply-patch+yaml";

/// Parses the metadata of a response.
pub(super) fn read(id: &ObjectId, body: &[u8]) -> Result<Object, ApiError> {
    let bad = |what: &str| ApiError::InvalidResponse(what.into());
    let Ok(Value::Object(mut body)) = serde_json::from_slice(body) else { return Err(bad("no object")) };
    // A completed deletion is answered with a success status without the object's metadata.
    if let Some(metadata) = body.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.entry("name").or_insert_with(|| id.name().into());
    }
    body.retain(|field, _| field == "metadata");
    object(&id.group_kind(), "", body).ok_or_else(|| bad("no metadata"))
}

fn version(object: &Object) -> Box<str> {
    object.metadata("resourceVersion").and_then(Value::as_str).unwrap_or_default().into()
}

pub(super) fn unknown(id: &ObjectId) -> ApiError {
    ApiError::UnknownKind(id.group_kind().to_string().into())
}
