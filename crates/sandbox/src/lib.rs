//! An API server in this process: Kubernetes as far as a daemon, a demonstration and a test can see it.
//!
//! In: requests as they are sent to a Kubernetes API server. Out: what that server would answer. Where a real server
//! answers otherwise, this one is wrong: the tests of the one are run against the other.
//!
//! The way of a request: `connect` -> `ask` -> `handle` -> `look`, `follow` or `write` -> `store` -> `answer`.
#![doc = include_str!("../README.md")]
#![warn(unreachable_pub)]
// Nothing panics on input; tests may.
#![cfg_attr(not(test), deny(clippy::unwrap_used, clippy::expect_used, clippy::panic))]
#![cfg_attr(not(test), deny(clippy::print_stdout, clippy::print_stderr))]

mod admission;
mod answer;
mod ask;
mod chance;
mod check;
mod clock;
mod connect;
mod controllers;
mod convert;
mod definitions;
mod discovery;
mod faults;
mod follow;
mod handle;
mod kinds;
mod look;
mod openapi;
mod options;
mod ownership;
mod pages;
mod patch;
mod protobuf;
mod refusal;

mod reviews;
mod rules;
mod schema;
mod select;
mod served;
pub mod soundness;
mod state;
mod store;
mod table;
mod tap;
mod write;

use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use futures::FutureExt as _;
use http::header::CONTENT_TYPE;
use http::{HeaderMap, HeaderValue, Method};
use jiff::Timestamp;
use serde_json::{Value, json};

use answer::Body;
use ask::Ask;
use clock::Clock;
pub use connect::{Sent, Service};
pub use faults::{Faults, Rates};
use state::State;
use store::Key;
use tap::Tap;
pub use tap::{Heard, Line};

/// An API server; cheap to clone. It ends with its last clone.
#[derive(Clone)]
pub struct Sandbox(Arc<Inner>);

struct Inner {
    state: Arc<Mutex<State>>,
    clock: Arc<Clock>,
    faults: Faults,
    asked: Mutex<Vec<Asked>>,
    counts: bool,
    tap: OnceLock<Tap>,
    controllers: tokio::task::AbortHandle,
}

/// How a server is to be.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// Of names, uids and faults.
    pub seed: u64,
    /// The time that it begins with; the machine's if none is given.
    pub time: Option<Timestamp>,
    /// After how long workloads are ready; never if none is given.
    pub readiness: Option<Duration>,
    /// Whether requests are kept for [`Sandbox::asked`].
    pub counts: bool,
}

/// A request that was made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Asked {
    /// Its method.
    pub method: String,
    /// Its path and query.
    pub place: String,
}

/// The server says no, in these words.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Refused(pub String);

impl Sandbox {
    /// A server with the namespaces that every cluster has. It has to be made within a runtime, where its controllers
    /// run.
    pub fn new(options: &Options) -> Self {
        let clock = Arc::new(Clock::new(options.time));
        let mut state = State::new(options.seed, clock.clone());
        for name in ["default", "kube-node-lease", "kube-public", "kube-system"] {
            found(&mut state, name);
        }
        let state = Arc::new(Mutex::new(state));
        let work = controllers::work(Arc::downgrade(&state), options.readiness);
        Self(Arc::new(Inner {
            state,
            clock,
            faults: Faults::new(options.seed),
            asked: Mutex::default(),
            counts: options.counts,
            tap: OnceLock::new(),
            controllers: tokio::spawn(work).abort_handle(),
        }))
    }

    /// A client of this server that needs no socket.
    pub fn client(&self) -> kube::Client {
        kube::Client::new(Service(self.clone()), "default")
    }

    /// One object, by its path; none if it is not there.
    pub fn get(&self, path: &str) -> Option<Value> {
        self.say(Method::GET, path, "", Vec::new()).ok()
    }

    /// Applies an object to a collection, by force. Who does this holds the server itself, and is not asked for what the rules of a
    /// definition say: a demonstration may follow a folder, which nobody on a cluster may.
    pub fn apply(&self, collection: &str, object: &Value, manager: &str) -> Result<Value, Refused> {
        let name = object["metadata"]["name"].as_str().unwrap_or_default();
        let path = format!("{collection}/{name}?fieldManager={manager}&force=true");
        self.say(Method::PATCH, &path, "application/apply-patch+yaml", object.to_string().into_bytes())
    }

    /// Brings a definition of custom resources.
    pub fn define(&self, definition: &Value) -> Result<Value, Refused> {
        self.apply("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", definition, "sandbox")
    }

    /// Changes an object by a merge patch.
    pub fn merge(&self, path: &str, patch: &Value, manager: &str) -> Result<Value, Refused> {
        let path = format!("{path}?fieldManager={manager}");
        self.say(Method::PATCH, &path, "application/merge-patch+json", patch.to_string().into_bytes())
    }

    /// Deletes an object, by its path.
    pub fn delete(&self, path: &str) -> Result<Value, Refused> {
        self.say(Method::DELETE, path, "", Vec::new())
    }

    /// Answers a request that is made here, without faults. Nobody waits for webhooks here: what they convert is
    /// refused, and none admits.
    fn say(&self, method: Method, path: &str, content: &str, body: Vec<u8>) -> Result<Value, Refused> {
        let mut headers = HeaderMap::new();
        headers.extend(HeaderValue::from_str(content).ok().map(|value| (CONTENT_TYPE, value)));
        let uri = path.parse().map_err(|_| Refused("no path".to_owned()))?;
        let ask = Ask::new(method, &uri, headers, body).of_owner();
        let answer = self.handle(&ask).now_or_never();
        let answer = answer.ok_or_else(|| Refused("a webhook has to convert the object first".to_owned()))?;
        let Body::Whole(text) = answer.body else { return Err(Refused("a watch".to_owned())) };
        let value: Value = serde_json::from_slice(&text).unwrap_or_default();
        match answer.code {
            200..300 => Ok(value),
            _ => Err(Refused(value["message"].as_str().unwrap_or_default().to_owned())),
        }
    }

    /// The faults that it makes.
    pub fn faults(&self) -> &Faults {
        &self.0.faults
    }

    /// From now on its clock goes ahead by so many seconds, or behind.
    pub fn skew(&self, seconds: i64) {
        self.0.clock.skew(seconds);
    }

    /// Forgets what changed, so that watches which have not seen it have to begin anew.
    pub fn forget_changes(&self) {
        self.state().store.forget();
    }

    /// The requests since the last call, if they are kept.
    pub fn asked(&self) -> Vec<Asked> {
        std::mem::take(&mut *self.0.asked.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn note(&self, ask: &Ask) {
        if self.0.counts {
            let asked = Asked { method: ask.method.to_string(), place: ask.uri.clone() };
            self.0.asked.lock().unwrap_or_else(PoisonError::into_inner).push(asked);
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn shared(&self) -> &Arc<Mutex<State>> {
        &self.0.state
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        self.controllers.abort();
    }
}

/// What tells clients where the server is; JSON is YAML, too.
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

/// Founds a namespace.
fn found(state: &mut State, name: &str) {
    let body = json!({
        "apiVersion": "v1", "kind": "Namespace",
        "metadata": {
            "name": name, "uid": state.chance.uid(), "creationTimestamp": state.clock.text(),
            "labels": {"kubernetes.io/metadata.name": name},
        },
        "spec": {"finalizers": ["kubernetes"]}, "status": {"phase": "Active"},
    });
    if let Value::Object(mut body) = body {
        state.put(&served::stored_as("", "namespaces"), Key::new("", name), &mut body);
    }
}
