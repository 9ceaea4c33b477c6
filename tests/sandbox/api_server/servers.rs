//! The two servers, as a scenario sees them.
//!
//! In: nothing. Out: a [`Server`] with clients, namespaces and a count of the requests that it got: of the real one by its
//! audit log, of the sandbox by its tap, in the same words. Each scenario has a sandbox of its own.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use kube::Client;
use moorline::sandbox::{Options, Sandbox};
use serde_json::json;

use moorline_test_support::audit::{AuditMark, Request, Requests};
use moorline_test_support::control_plane::{PlaneGuard, running_test, shared};
use moorline_test_support::sandbox_plane::request;

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

/// The server that a scenario runs on.
pub(crate) enum Server {
    Real(PlaneGuard),
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
        sandbox.tap(move |heard| {
            // A sandbox has the clients of one test only.
            let request = Request { user_agent: running_test(), ..request(heard) };
            list.lock().unwrap_or_else(PoisonError::into_inner).push(request);
        });
        Self::Sandbox(sandbox, heard)
    }

    /// A client of one of the users in `moorline_test_support::credentials`.
    pub(crate) async fn client(&self, user: &str) -> Client {
        match self {
            Self::Real(plane) => plane.client(user).await,
            Self::Sandbox(sandbox, _) => sandbox.named_client(user).0,
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
