//! One object on the real API server: we apply it and read its metadata, others do to it what they like.

use http::Method;
use kube::Client;
use moorline::api::SyncName;
use moorline::object::{Object, ObjectId, Origin};
use moorline::observed::{Observed, Verification};
use serde_json::{Value, json};

const METADATA: &str = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1";
pub(crate) const APPLY: &str = "application/apply-patch+yaml";
pub(crate) const MERGE: &str = "application/merge-patch+json";
pub(crate) const STEPS: &str = "application/json-patch+json";
const JSON: &str = "application/json";

pub(crate) fn owner() -> SyncName {
    SyncName::new("ops", "web")
}

/// An object, where it is served, and how it is written in Git.
pub(crate) struct Place {
    client: Client,
    id: ObjectId,
    /// The path of its kind, in its namespace where it has one.
    pub(crate) collection: String,
    pub(crate) body: Value,
}

impl Place {
    /// `resource` is the kind as paths have it; `body` lacks what every object of a Sync has. What belongs to the whole
    /// cluster has the namespace "".
    pub(crate) fn new(client: Client, namespace: &str, resource: &str, name: &str, mut body: Value) -> Self {
        let api_version = body["apiVersion"].as_str().expect("apiVersion").to_owned();
        let (group, prefix) = match api_version.split_once('/') {
            Some((group, _)) => (group, "apis"),
            None => ("", "api"),
        };
        let id = ObjectId::new(group, body["kind"].as_str().expect("kind"), namespace, name).expect("an id");
        body["metadata"] = json!({
            "name": name,
            "labels": {"moorline.dev/sync": owner().label()},
            "annotations": {
                "moorline.dev/id": owner().identity(id.as_str()),
                "moorline.dev/spec-hash": format!("v1:{}", "a5".repeat(32)),
            },
        });
        let place = match namespace {
            "" => String::new(),
            namespace => {
                body["metadata"]["namespace"] = namespace.into();
                format!("/namespaces/{namespace}")
            }
        };
        let collection = format!("/{prefix}/{api_version}{place}/{resource}");
        Self { client, id, collection, body }
    }

    pub(crate) fn path(&self) -> String {
        format!("{}/{}", self.collection, self.id.name())
    }

    async fn request(
        &self,
        method: Method,
        uri: String,
        content: &str,
        accept: &str,
        body: Vec<u8>,
    ) -> Result<Value, kube::Error> {
        let request = http::Request::builder().method(method).uri(uri);
        let request = request.header("Content-Type", content).header("Accept", accept).body(body);
        self.client.request(request.expect("a literal request")).await
    }

    fn object(&self, metadata: Value) -> Object {
        assert_eq!(metadata["kind"], "PartialObjectMetadata");
        let Value::Object(body) = metadata else { panic!("an object") };
        let origin = Origin { file: "live".into(), document: 0, line: 1, item: None };
        Object { id: self.id.clone(), version: "v1".into(), body, origin }
    }

    /// Our forced apply, answered with the metadata alone.
    pub(crate) async fn apply(&self) -> Observed {
        let uri =
            format!("{}?force=true&fieldManager={}", self.path(), owner().manager().replace('/', "%2F"));
        let body = self.body.to_string().into_bytes();
        let reply = self.request(Method::PATCH, uri, APPLY, METADATA, body).await.expect("our apply");
        Observed::from_apply(&self.object(reply), &owner())
    }

    /// The metadata as a watch would bring it.
    pub(crate) async fn seen(&self) -> Object {
        let reply = self.request(Method::GET, self.path(), JSON, METADATA, Vec::new()).await;
        self.object(reply.expect("its metadata"))
    }

    pub(crate) async fn again(&self, known: &Observed) -> Observed {
        known.update_from_event(&self.seen().await, &owner())
    }

    /// The whole object.
    pub(crate) async fn get(&self) -> Value {
        self.request(Method::GET, self.path(), JSON, JSON, Vec::new()).await.expect("the object")
    }

    /// A write by somebody else; `suffix` is a subresource or parameters.
    pub(crate) async fn try_send(
        &self,
        method: Method,
        path: &str,
        content: &str,
        manager: &str,
        body: &Value,
    ) -> Result<Value, kube::Error> {
        let joint = if path.contains('?') { '&' } else { '?' };
        let uri = format!("{path}{joint}fieldManager={}", manager.replace('/', "%2F"));
        self.request(method, uri, content, JSON, body.to_string().into_bytes()).await
    }

    /// A patch by somebody else.
    pub(crate) async fn patch(&self, manager: &str, content: &str, body: Value) {
        self.patch_at("", manager, content, body).await;
    }

    pub(crate) async fn patch_at(&self, suffix: &str, manager: &str, content: &str, body: Value) {
        let path = self.path() + suffix;
        self.try_send(Method::PATCH, &path, content, manager, &body).await.expect("a patch");
    }

    /// Replaces the object by a changed copy of it.
    pub(crate) async fn put(&self, manager: &str, change: impl FnOnce(&mut Value)) {
        let mut body = self.get().await;
        change(&mut body);
        self.try_send(Method::PUT, &self.path(), JSON, manager, &body).await.expect("a PUT");
    }

    /// Deletes it, and creates it from a copy as backups do.
    pub(crate) async fn recreate(&self, manager: &str) {
        let mut body = self.get().await;
        self.try_send(Method::DELETE, &self.path(), JSON, manager, &json!({})).await.expect("a DELETE");
        for field in ["uid", "resourceVersion", "creationTimestamp", "generation"] {
            body["metadata"].as_object_mut().expect("metadata").remove(field);
        }
        self.try_send(Method::POST, &self.collection, JSON, manager, &body).await.expect("a POST");
    }

    /// Applies only these fields, beside what names the object.
    pub(crate) fn part(&self, mut fields: Value) -> Value {
        for field in ["apiVersion", "kind"] {
            fields[field] = self.body[field].clone();
        }
        fields["metadata"]["name"] = self.body["metadata"]["name"].clone();
        fields
    }
}

/// A standing in few words: `verified`, `moved`, `kubectl-edit: data.a`.
pub(crate) fn shown(standing: &Verification) -> String {
    match standing {
        Verification::Verified => "verified".to_owned(),
        Verification::Believed => "believed".to_owned(),
        Verification::Unverified => "unverified".to_owned(),
        Verification::MaybeDrifted => "moved".to_owned(),
        Verification::Drifted(drift) => {
            format!("{}: {}", drift.manager.as_deref().unwrap_or("?"), drift.fields.join(", "))
        }
    }
}
