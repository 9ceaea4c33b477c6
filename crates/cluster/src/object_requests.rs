//! Requests about one live object other than applying and deleting it.
//!
//! In: an id.
//! Out: the object as it is, or a small write: a claim on fields under another field manager, a
//! missing namespace.

use serde_json::{Value, json};

use super::apply::{APPLY, read, unknown};
use super::syncs::WatchGuard;
use super::watch::{WatchEvent, WatchTarget, follow};
use super::{Cluster, query};
use crate::api_client::{ApiRequest, METADATA};
use crate::api_error::ApiError;
use crate::change_log::{Target, WriteKind};
use moorline_core::object::{GroupKind, Object, ObjectId};
use moorline_metrics::RequestClass;

/// State of a namespace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NamespaceState {
    /// It does not exist.
    Missing,
    /// It is being deleted.
    Terminating,
    /// Objects can be created in it.
    Active,
}

/// Field manager for namespaces that a Sync needs and does not own.
const CREATOR: &str = "moorline";

/// Requests about single objects.
#[derive(Clone, Copy)]
pub struct ObjectRequests<'a>(pub(super) &'a Cluster);

impl ObjectRequests<'_> {
    /// Reads the metadata of an object; none if it does not exist.
    pub async fn read_metadata(&self, id: &ObjectId, version: &str) -> Result<Option<Object>, ApiError> {
        let call = ApiRequest::new(RequestClass::Verify, "get", self.path_in(id, version)?).accept(METADATA);
        match self.0.0.wire.send(call).await {
            Ok(reply) => read(id, &reply.body).map(Some),
            Err(failure) if failure.code() == Some(404) => Ok(None),
            Err(failure) => Err(failure),
        }
    }

    /// Applies fields at their current values under another field manager.
    ///
    /// # Guarantees
    ///
    /// A server-side apply without force: it changes no field that another manager owns with
    /// another value.
    ///
    /// # Cancellation
    ///
    /// Dropping the future leaves open whether the fields were claimed.
    ///
    /// # Errors
    ///
    /// 409 on a conflict; otherwise any [`ApiError`].
    pub async fn claim_fields(
        &self,
        id: &ObjectId,
        version: &str,
        body: &Value,
        manager: &str,
    ) -> Result<(), ApiError> {
        let uri = format!("{}?fieldManager={}", self.path_in(id, version)?, query(manager));
        let call = ApiRequest::new(RequestClass::Object, "patch", uri)
            .accept(METADATA)
            .content(APPLY, body.to_string().into_bytes());
        self.0.send(call, Target { id, owner: None, kind: WriteKind::Patch }).await.map(drop)
    }

    /// Creates a namespace without an owner; false if it exists already.
    ///
    /// # Guarantees
    ///
    /// An existing namespace is not changed.
    ///
    /// # Cancellation
    ///
    /// Dropping the future leaves open whether the namespace was created.
    ///
    /// # Errors
    ///
    /// Any [`ApiError`] but 409.
    pub async fn create_namespace(&self, name: &str) -> Result<bool, ApiError> {
        let body = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}});
        let call = ApiRequest::new(
            RequestClass::Object,
            "create",
            format!("/api/v1/namespaces?fieldManager={CREATOR}"),
        )
        .accept(METADATA)
        .content("application/json", body.to_string().into_bytes());
        let id = ObjectId::new("", "Namespace", "", name);
        let id = id.map_err(|_| ApiError::UnknownKind("Namespace".into()))?;
        match self.0.send(call, Target { id: &id, owner: None, kind: WriteKind::Apply }).await {
            Ok(_) => Ok(true),
            Err(failure) if failure.code() == Some(409) => Ok(false),
            Err(failure) => Err(failure),
        }
    }

    /// Reports the state of a namespace on every change, until the guard is dropped.
    pub fn watch_namespace(
        &self,
        name: &str,
        tell: impl FnMut(NamespaceState) + Send + 'static,
    ) -> WatchGuard {
        self.follow_one(WatchTarget::one("Namespace", None, "/api/v1/namespaces".to_owned(), name), tell)
    }

    /// Reports the same for the CustomResourceDefinition of Syncs.
    pub fn watch_sync_crd(&self, tell: impl FnMut(NamespaceState) + Send + 'static) -> WatchGuard {
        let path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions".to_owned();
        let kind = GroupKind::new("apiextensions.k8s.io", "CustomResourceDefinition");
        self.follow_one(WatchTarget { kind, ..WatchTarget::one("", None, path, "syncs.moorline.dev") }, tell)
    }

    fn follow_one(
        &self,
        target: WatchTarget,
        mut tell: impl FnMut(NamespaceState) + Send + 'static,
    ) -> WatchGuard {
        let (mut listing, mut seen) = (true, None);
        let sink = move |event| match event {
            WatchEvent::Begins => (listing, seen) = (true, None),
            WatchEvent::Seen(object) => {
                let deleting =
                    object.get("metadata").and_then(|metadata| metadata.get("deletionTimestamp")).is_some();
                let state = if deleting { NamespaceState::Terminating } else { NamespaceState::Active };
                seen = Some(state);
                if !listing {
                    tell(state);
                }
            }
            WatchEvent::Gone(_) => tell(NamespaceState::Missing),
            WatchEvent::Listed(_) => {
                listing = false;
                tell(seen.take().unwrap_or(NamespaceState::Missing));
            }
            // Without the right to see it, its objects are retried from time to time.
            WatchEvent::Rewound | WatchEvent::Upgraded | WatchEvent::Broken(_) => {}
        };
        WatchGuard(tokio::spawn(follow(self.0.0.wire.clone(), target, sink)).abort_handle())
    }

    fn path_in(&self, id: &ObjectId, version: &str) -> Result<String, ApiError> {
        self.0.kinds().path(id, version).ok_or_else(|| unknown(id))
    }
}
