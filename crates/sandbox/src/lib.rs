//! A Kubernetes API server in the process, as far as daemons, demonstrations and tests need it.
//!
//! In: requests to a Kubernetes API server.
//! Out: the responses of a real server. A difference from a real server is a bug here: the same
//! tests run against both.
//!
//! Path of a request: `connect` -> `request` -> `router` -> `get_list`, `watch` or `write` ->
//! `store` -> `response`.
#![doc = include_str!("../README.md")]
#![warn(unreachable_pub)]
// The server must not panic on any input; tests may.
#![cfg_attr(not(test), deny(clippy::unwrap_used, clippy::expect_used, clippy::panic))]
#![cfg_attr(not(test), deny(clippy::print_stdout, clippy::print_stderr))]

mod access_review;
mod admission;
mod cel_rules;
mod clock;
mod connect;
mod controllers;
mod convert;
mod definitions;
mod discovery;
mod faults;
mod get_list;
mod kinds;
mod managed_fields;
pub mod manifest_check;
mod object_validation;
mod observer;
mod openapi;
mod pagination;
mod patch;
mod protobuf;
mod request;
mod request_options;
mod resource_registry;
mod response;
mod router;
mod seeded_random;
mod status_error;
mod watch;

mod schema;
mod select;
mod state;
mod store;
mod table;
mod write;

use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use futures::FutureExt as _;
use http::header::CONTENT_TYPE;
use http::{HeaderMap, HeaderValue, Method};
use jiff::Timestamp;
use serde_json::{Value, json};
use tokio::net::TcpListener;

use crate::observer::RequestObserver;
pub use crate::observer::{ClientLink, ObservedRequest};
use crate::request::ApiRequest;
use crate::response::Body;
use clock::Clock;
pub use connect::{ResponseBody, Service};
pub use faults::{FaultRates, Faults};
use state::ServerState;
use store::Key;

/// Handle to an API server; cheap to clone. The server ends when the last clone is dropped.
#[derive(Clone)]
pub struct Sandbox(Arc<Inner>);

struct Inner {
    state: Arc<Mutex<ServerState>>,
    clock: Arc<Clock>,
    faults: Faults,
    asked: Mutex<Vec<RecordedRequest>>,
    counts: bool,
    tap: OnceLock<RequestObserver>,
    controllers: tokio::task::AbortHandle,
}

/// Configuration of a server.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// Seed of names, uids and faults.
    pub seed: u64,
    /// Initial time of the clock; the machine's time if `None`.
    pub time: Option<Timestamp>,
    /// Time after which workloads become ready; never if `None`.
    pub readiness: Option<Duration>,
    /// True to record requests for [`Sandbox::take_requests`].
    pub record_requests: bool,
}

/// A recorded request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecordedRequest {
    /// HTTP method.
    pub method: String,
    /// Path and query.
    pub uri: String,
}

/// Error with the message of the server.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct SandboxError(pub String);

impl Sandbox {
    /// Starts a server with the namespaces that every cluster has. Must be called within a tokio
    /// runtime, which runs its controllers.
    pub fn new(options: &Options) -> Self {
        let clock = Arc::new(Clock::new(options.time));
        let mut state = ServerState::new(options.seed, clock.clone());
        for name in ["default", "kube-node-lease", "kube-public", "kube-system"] {
            create_namespace(&mut state, name);
        }
        let state = Arc::new(Mutex::new(state));
        let work = controllers::run(Arc::downgrade(&state), options.readiness);
        Self(Arc::new(Inner {
            state,
            clock,
            faults: Faults::new(options.seed),
            asked: Mutex::default(),
            counts: options.record_requests,
            tap: OnceLock::new(),
            controllers: tokio::spawn(work).abort_handle(),
        }))
    }

    /// Returns a client that reaches this server without a socket.
    pub fn client(&self) -> kube::Client {
        kube::Client::new(Service(self.clone()), "default")
    }

    /// Returns one object by its path; `None` if it does not exist.
    pub fn get(&self, path: &str) -> Option<Value> {
        self.call_local(Method::GET, path, "", Vec::new()).ok()
    }

    /// Applies an object to a collection with force. The caller owns the server, so the CEL rules
    /// of a definition are not evaluated: a demonstration may let a Sync follow a folder, which the
    /// rules forbid on a cluster.
    pub fn apply(&self, collection: &str, object: &Value, manager: &str) -> Result<Value, SandboxError> {
        let name = object["metadata"]["name"].as_str().unwrap_or_default();
        let path = format!("{collection}/{name}?fieldManager={manager}&force=true");
        self.call_local(Method::PATCH, &path, "application/apply-patch+yaml", object.to_string().into_bytes())
    }

    /// Creates or updates a CustomResourceDefinition.
    pub fn define(&self, definition: &Value) -> Result<Value, SandboxError> {
        self.apply("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", definition, "sandbox")
    }

    /// Updates an object by a JSON merge patch.
    pub fn merge(&self, path: &str, patch: &Value, manager: &str) -> Result<Value, SandboxError> {
        let path = format!("{path}?fieldManager={manager}");
        self.call_local(Method::PATCH, &path, "application/merge-patch+json", patch.to_string().into_bytes())
    }

    /// Deletes an object by its path.
    pub fn delete(&self, path: &str) -> Result<Value, SandboxError> {
        self.call_local(Method::DELETE, path, "", Vec::new())
    }

    /// Answers a call from inside the process, without faults. Webhooks cannot be awaited here:
    /// admission webhooks are skipped, and an object that a webhook must convert is refused.
    fn call_local(
        &self,
        method: Method,
        path: &str,
        content: &str,
        body: Vec<u8>,
    ) -> Result<Value, SandboxError> {
        let mut headers = HeaderMap::new();
        headers.extend(HeaderValue::from_str(content).ok().map(|value| (CONTENT_TYPE, value)));
        let uri = path.parse().map_err(|_| SandboxError("invalid path".to_owned()))?;
        let ask = ApiRequest::new(method, &uri, headers, body).into_owner_request();
        let answer = self.handle(&ask).now_or_never();
        let answer = answer.ok_or_else(|| {
            SandboxError("the object needs a conversion webhook, which this call cannot wait for".to_owned())
        })?;
        let Body::Complete(text) = answer.body else {
            return Err(SandboxError("watches are not supported here".to_owned()));
        };
        let value: Value = serde_json::from_slice(&text).unwrap_or_default();
        match answer.code {
            200..300 => Ok(value),
            _ => Err(SandboxError(value["message"].as_str().unwrap_or_default().to_owned())),
        }
    }

    /// Returns the fault injector of this server.
    pub fn faults(&self) -> &Faults {
        &self.0.faults
    }

    /// Sets the clock ahead by so many seconds; a negative number sets it back.
    pub fn skew(&self, seconds: i64) {
        self.0.clock.skew(seconds);
    }

    /// Drops all recorded changes, so that watches that have not read them must start again.
    pub fn forget_changes(&self) {
        self.state().store.forget();
    }

    /// Returns the requests since the last call, if they are recorded.
    pub fn take_requests(&self) -> Vec<RecordedRequest> {
        std::mem::take(&mut *self.0.asked.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn note(&self, ask: &ApiRequest) {
        if self.0.counts {
            let asked = RecordedRequest { method: ask.method.to_string(), uri: ask.uri.clone() };
            self.0.asked.lock().unwrap_or_else(PoisonError::into_inner).push(asked);
        }
    }

    fn state(&self) -> MutexGuard<'_, ServerState> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn shared(&self) -> &Arc<Mutex<ServerState>> {
        &self.0.state
    }

    /// Returns a client with a name that the observer sees.
    pub fn named_client(&self, name: &str) -> (kube::Client, ClientLink) {
        observer::named_client(self, name)
    }

    /// Registers the observer: it is called for every request, in the order in which they are
    /// carried out. It must not call the server.
    pub fn tap(&self, told: impl Fn(&ObservedRequest<'_>) + Send + Sync + 'static) {
        // Only the first registration counts.
        let _ = self.0.tap.set(Box::new(told));
    }

    /// Serves HTTP on a socket until the future is dropped. Returns an error only if no more
    /// connections can be accepted.
    pub async fn serve(self, listener: TcpListener) -> std::io::Result<()> {
        connect::serve(self, listener).await
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        self.controllers.abort();
    }
}

/// Returns a kubeconfig for the server, as JSON, which is valid YAML.
pub fn kubeconfig(address: SocketAddr) -> String {
    let named = |name: &str, value: Value| json!([{"name": "sandbox", name: value}]);
    let config = json!({
        "apiVersion": "v1", "kind": "Config", "current-context": "sandbox",
        "clusters": named("cluster", json!({"server": format!("http://{address}")})),
        "contexts": named("context", json!({"cluster": "sandbox", "user": "sandbox", "namespace": "default"})),
        "users": named("user", json!({})),
    });
    format!("{config:#}\n")
}

/// Creates one of the initial namespaces.
fn create_namespace(state: &mut ServerState, name: &str) {
    let body = json!({
        "apiVersion": "v1", "kind": "Namespace",
        "metadata": {
            "name": name, "uid": state.chance.uid(), "creationTimestamp": state.clock.text(),
            "labels": {"kubernetes.io/metadata.name": name},
        },
        "spec": {"finalizers": ["kubernetes"]}, "status": {"phase": "Active"},
    });
    if let Value::Object(mut body) = body {
        state.put(&crate::resource_registry::storage_key("", "namespaces"), Key::new("", name), &mut body);
    }
}
