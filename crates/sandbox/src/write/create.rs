//! POST: creates an object.
//!
//! In: a collection and the object.
//! Out: the stored object, under its own or a generated name.

use serde_json::{Value, json};

use super::{Draft, RequestTarget, WriteResult};
use crate::request::ApiRequest;
use crate::resource_registry::storage_key;
use crate::state::ServerState;
use crate::status_error::StatusError;
use crate::store::Key;

impl ServerState {
    /// Creates an object.
    pub(crate) fn create(
        &mut self,
        mut target: RequestTarget,
        ask: &ApiRequest,
        mut body: Value,
    ) -> Result<WriteResult, StatusError> {
        super::same_kind(&target, &body)?;
        let given = |field: &str| body["metadata"][field].as_str().unwrap_or_default().to_owned();
        if !given("resourceVersion").is_empty() {
            return Err(StatusError::failed(
                "resourceVersion should not be set on objects to be created".to_owned(),
            ));
        }
        let namespace = given("namespace");
        if target.resource.namespaced && !namespace.is_empty() && *namespace != *target.key.namespace {
            return Err(StatusError::bad_request(
                "the namespace of the provided object does not match the namespace sent on the request",
            ));
        }
        let mut name = given("name");
        let prefix = given("generateName");
        if name.is_empty() && !prefix.is_empty() {
            let chance = &mut self.chance;
            name = self.conversions.name(|| format!("{prefix}{}", chance.suffix()));
        }
        if let Some(metadata) = body["metadata"].as_object_mut() {
            metadata.remove("managedFields");
        }
        target.key.name = name.into();
        self.create_as(&target, ask, Draft { old: None, new: body, applied: false })
    }

    /// Creates an object with a known name.
    pub(crate) fn create_as(
        &mut self,
        target: &RequestTarget,
        ask: &ApiRequest,
        draft: Draft<'_>,
    ) -> Result<WriteResult, StatusError> {
        self.admit(target)?;
        self.write_object(target, ask, draft)
    }

    /// Refuses a new object if its namespace does not exist or is being deleted.
    fn admit(&self, target: &RequestTarget) -> Result<(), StatusError> {
        let namespace = &*target.key.namespace;
        if namespace.is_empty() {
            return Ok(());
        }
        let home = storage_key("", "namespaces");
        let Some(found) = self.store.get(&home, &Key::new("", namespace)) else {
            let namespaces = crate::status_error::ErrorSubject {
                group: "",
                plural: "namespaces",
                kind: "Namespace",
                name: namespace,
            };
            return Err(StatusError::not_found(namespaces));
        };
        if found.body()["metadata"]["deletionTimestamp"].is_null() {
            return Ok(());
        }
        let message = format!("namespace {namespace} is being terminated");
        let causes =
            json!([{"reason": "NamespaceTerminating", "message": message, "field": "metadata.namespace"}]);
        let why =
            format!("unable to create new content in namespace {namespace} because it is being terminated");
        Err(StatusError::forbidden(target.about(), &why, Some(causes)))
    }
}
