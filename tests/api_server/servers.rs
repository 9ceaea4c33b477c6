//! The two servers, as a scenario sees them.
//!
//! In: nothing. Out: a [`Server`] with clients, namespaces and a count of the requests that it got: of the real one by its
//! audit log, of the sandbox by its tap, in the same words. Each scenario has a sandbox of its own.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use http::Method;
use kube::Client;
use moorline::sandbox::{Heard, Options, Sandbox};
use serde_json::json;

use crate::support::audit::{AuditMark, Request, Requests};
use crate::support::control_plane::{Shared, running_test, shared};

/// After how long the sandbox's workloads are ready.
const READINESS: Duration = Duration::from_millis(50);

/// Makes two tests of each scenario, which is a function of a [`Server`].
macro_rules! on_both_servers {
    ($($scenario:ident)+) => {
        mod on_a_real_server {
            $(#[tokio::test]
            async fn $scenario() {
                if let Some(server) = super::Server::real() {
                    super::$scenario(&server).await;
                }
            })+
        }

        mod on_the_sandbox {
            $(#[tokio::test]
            async fn $scenario() {
                super::$scenario(&super::Server::sandbox()).await;
            })+
        }
    };
}
pub(crate) use on_both_servers;

/// What a scenario is played on.
pub(crate) enum Server {
    Real(Shared),
    Sandbox(Sandbox, Arc<Mutex<Vec<Request>>>),
}

/// A place in what a server was asked.
pub(crate) enum Mark {
    Real(AuditMark),
    Sandbox(Arc<Mutex<Vec<Request>>>, usize),
}

impl Server {
    /// A real API server with its controllers; none where there is none.
    pub(crate) fn real() -> Option<Self> {
        shared().map(Self::Real)
    }

    /// A new sandbox.
    pub(crate) fn sandbox() -> Self {
        let sandbox = Sandbox::new(&Options { readiness: Some(READINESS), ..Options::default() });
        let heard: Arc<Mutex<Vec<Request>>> = Arc::default();
        let list = heard.clone();
        sandbox.tap(move |heard| list.lock().unwrap_or_else(PoisonError::into_inner).push(request(heard)));
        Self::Sandbox(sandbox, heard)
    }

    /// A client of one of the users in `support::credentials`.
    pub(crate) async fn client(&self, user: &str) -> Client {
        match self {
            Self::Real(plane) => plane.client(user).await,
            Self::Sandbox(sandbox, _) => sandbox.client_of(user).0,
        }
    }

    /// A new namespace whose name begins with `purpose`.
    pub(crate) async fn namespace(&self, purpose: &str) -> String {
        static COUNT: AtomicU32 = AtomicU32::new(1);
        match self {
            Self::Real(plane) => plane.namespace(purpose).await,
            Self::Sandbox(sandbox, _) => {
                let name = format!("{purpose}-{}", COUNT.fetch_add(1, Ordering::Relaxed));
                let body = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}});
                sandbox.apply("/api/v1/namespaces", &body, "test").expect("a new namespace");
                name
            }
        }
    }

    /// Requests that are answered from now on are counted.
    pub(crate) async fn mark(&self) -> Mark {
        match self {
            Self::Real(plane) => Mark::Real(AuditMark::set(plane).await),
            Self::Sandbox(_, heard) => {
                let until_now = heard.lock().unwrap_or_else(PoisonError::into_inner).len();
                Mark::Sandbox(heard.clone(), until_now)
            }
        }
    }
}

impl Mark {
    /// All requests that were answered since the mark.
    pub(crate) async fn requests(&self) -> Requests {
        match self {
            Self::Real(mark) => mark.requests().await,
            Self::Sandbox(heard, from) => {
                heard.lock().unwrap_or_else(PoisonError::into_inner)[*from..].to_vec().into()
            }
        }
    }
}

/// A request to the sandbox as the audit log of a real server would tell it.
fn request(heard: &Heard<'_>) -> Request {
    let (path, query) = heard.place.split_once('?').unwrap_or((heard.place, ""));
    let parts: Vec<&str> = path.trim_matches('/').split('/').collect();
    let (group, rest) = match *parts.as_slice() {
        ["api", _, ref rest @ ..] => ("", rest),
        ["apis", group, _, ref rest @ ..] => (group, rest),
        _ => ("", &[][..]),
    };
    let (namespace, rest) = match *rest {
        ["namespaces", namespace, ref rest @ ..] if !rest.is_empty() => (namespace, rest),
        ref rest => ("", rest),
    };
    let part = |at: usize| rest.get(at).copied().unwrap_or_default().to_owned();
    let (resource, name, subresource) = (part(0), part(1), part(2));
    let is_watch = query.split('&').any(|it| matches!(it, "watch=true" | "watch=1"));
    let method = heard.method.as_str().to_ascii_lowercase();
    let verb = match (heard.method, resource.is_empty(), name.is_empty()) {
        (&Method::GET, false, true) if is_watch => "watch",
        (&Method::GET, false, true) => "list",
        (&Method::POST, false, _) => "create",
        (&Method::PUT, false, _) => "update",
        (&Method::DELETE, false, true) => "deletecollection",
        _ => &method,
    };
    Request {
        user: heard.who.to_owned(),
        verb: verb.to_owned(),
        group: group.to_owned(),
        resource,
        subresource,
        namespace: namespace.to_owned(),
        name,
        uri: heard.place.to_owned(),
        // A sandbox has the clients of one test only.
        user_agent: running_test(),
        code: heard.code,
        ..Request::default()
    }
}
