//! What is asked of one live object beside applying and deleting it.
//!
//! In: an id. Out: the object as it is, or a small write: a claim on some of its fields under another manager, the
//! removal of fields, a namespace that is missing.

use serde_json::{Value, json};

use super::apply::{APPLY, read, unknown};
use super::syncs::Following;
use super::watch::{Event, Target, follow};
use super::wire::{Call, Failure, METADATA};
use super::{Cluster, query};
use moorline_core::object::{GroupKind, Object, ObjectId};
use moorline_metrics::Class;

/// What is known of a namespace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NamespaceState {
    /// It is not there.
    Missing,
    /// It is being deleted.
    Terminating,
    /// Objects can be created in it.
    Active,
}

/// Under which name a namespace is created that a Sync asks for and owns no part of.
const CREATOR: &str = "moorline";

impl Cluster {
    /// The metadata of an object; none if it is not there.
    pub async fn metadata(&self, id: &ObjectId, version: &str) -> Result<Option<Object>, Failure> {
        let call = Call::new(Class::Verify, "get", self.path_in(id, version)?).accept(METADATA);
        match self.0.wire.send(call).await {
            Ok(reply) => read(id, &reply.body).map(Some),
            Err(failure) if failure.code() == Some(404) => Ok(None),
            Err(failure) => Err(failure),
        }
    }

    /// Claims fields, at the values that they have, for a manager of another name.
    pub async fn claim(
        &self,
        id: &ObjectId,
        version: &str,
        body: &Value,
        manager: &str,
    ) -> Result<(), Failure> {
        let uri = format!("{}?fieldManager={}", self.path_in(id, version)?, query(manager));
        let call = Call::new(Class::Object, "patch", uri)
            .accept(METADATA)
            .content(APPLY, body.to_string().into_bytes());
        self.send(call).await.map(drop)
    }

    /// Creates a namespace that nobody owns; false if it is there already.
    pub async fn create_namespace(&self, name: &str) -> Result<bool, Failure> {
        let body = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}});
        let call = Call::new(Class::Object, "create", format!("/api/v1/namespaces?fieldManager={CREATOR}"))
            .accept(METADATA)
            .content("application/json", body.to_string().into_bytes());
        match self.send(call).await {
            Ok(_) => Ok(true),
            Err(failure) if failure.code() == Some(409) => Ok(false),
            Err(failure) => Err(failure),
        }
    }

    /// Tells the state of a namespace whenever it changes, until the guard is dropped.
    pub fn follow_namespace(
        &self,
        name: &str,
        tell: impl FnMut(NamespaceState) + Send + 'static,
    ) -> Following {
        self.follow_one(Target::one("Namespace", None, "/api/v1/namespaces".to_owned(), name), tell)
    }

    /// Tells the same of the definition of Syncs.
    pub fn follow_definition_of_syncs(&self, tell: impl FnMut(NamespaceState) + Send + 'static) -> Following {
        let path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions".to_owned();
        let kind = GroupKind::new("apiextensions.k8s.io", "CustomResourceDefinition");
        self.follow_one(Target { kind, ..Target::one("", None, path, "syncs.moorline.dev") }, tell)
    }

    fn follow_one(&self, target: Target, mut tell: impl FnMut(NamespaceState) + Send + 'static) -> Following {
        let (mut listing, mut seen) = (true, None);
        let sink = move |event| match event {
            Event::Begins => (listing, seen) = (true, None),
            Event::Seen(object) => {
                let deleting =
                    object.get("metadata").and_then(|metadata| metadata.get("deletionTimestamp")).is_some();
                let state = if deleting { NamespaceState::Terminating } else { NamespaceState::Active };
                seen = Some(state);
                if !listing {
                    tell(state);
                }
            }
            Event::Gone(_) => tell(NamespaceState::Missing),
            Event::Listed(_) => {
                listing = false;
                tell(seen.take().unwrap_or(NamespaceState::Missing));
            }
            // Without the right to see it, its objects are tried again from time to time.
            Event::Rewound | Event::Upgraded | Event::Broken(_) => {}
        };
        Following(tokio::spawn(follow(self.0.wire.clone(), target, sink)).abort_handle())
    }

    fn path_in(&self, id: &ObjectId, version: &str) -> Result<String, Failure> {
        self.kinds().path(id, version).ok_or_else(|| unknown(id))
    }
}
