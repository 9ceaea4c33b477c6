//! Reads the Syncs of contexts, several at a time.
//!
//! In: a kubeconfig and names of contexts. Out: a [`ContextView`] for each, in the same order.
//! Each context is read on a thread of its own, because a program that the kubeconfig names may
//! hang; after the deadline nothing waits for it.

use std::collections::BTreeSet;
use std::time::Duration;

use futures::StreamExt as _;
use tokio::sync::oneshot;
use tokio::time::timeout;

use super::super::heartbeats::describe_heartbeat;
use super::super::ready;
use crate::cluster::{ConnectError, Connection, Heartbeat, KubeconfigContexts, OperatorError, SyncResource};
use crate::report::board::ClusterState;

/// Contexts that are read at the same time.
const SIDE_BY_SIDE: usize = 8;
/// Time limit of one context.
const DEADLINE: Duration = Duration::from_secs(15);

/// The Syncs of one context, as they were read.
pub(super) struct ContextView {
    /// Its name; `None` for the only one.
    pub(super) context: Option<String>,
    /// Version of its API server.
    pub(super) release: Option<Box<str>>,
    /// Its Syncs, or why they could not be read.
    pub(super) syncs: Result<Vec<SyncResource>, ContextFailure>,
    /// Sentences about daemons that do not serve.
    pub(super) notes: Vec<String>,
    /// True unless a daemon is known to be gone.
    pub(super) is_served: bool,
}

/// State of the home cluster of a context that could not be read, and the reason.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ContextFailure(pub(super) ClusterState, pub(super) String);

impl ContextView {
    /// True if all was read, is served, and is ready.
    pub(super) fn is_well(&self) -> bool {
        let is_ready = |all: &Vec<SyncResource>| all.iter().all(|sync| ready(&sync.status).0 == "True");
        self.is_served && self.syncs.as_ref().is_ok_and(is_ready)
    }

    fn failed(context: Option<&str>, failure: ContextFailure) -> Self {
        let context = context.map(str::to_owned);
        Self { context, release: None, syncs: Err(failure), notes: Vec::new(), is_served: true }
    }
}

/// Reads these contexts.
pub(super) async fn look_at_all(
    known: &KubeconfigContexts,
    names: Vec<String>,
    namespace: Option<&str>,
) -> Vec<ContextView> {
    let looks = names.into_iter().map(|name| {
        let (known, namespace) = (known.clone(), namespace.map(str::to_owned));
        async move {
            let seen = on_thread(known, name.clone(), namespace);
            let late = || format!("no answer within {} s", DEADLINE.as_secs());
            let failure = |why: String| ContextFailure(ClusterState::Unreachable, why);
            match timeout(DEADLINE, seen).await {
                Ok(Some(view)) => view,
                Ok(None) => {
                    ContextView::failed(Some(&name), failure("its thread could not be started".to_owned()))
                }
                Err(_) => ContextView::failed(Some(&name), failure(late())),
            }
        }
    });
    futures::stream::iter(looks).buffered(SIDE_BY_SIDE).collect().await
}

/// Reads a context on a thread of its own; `None` if there is none.
async fn on_thread(
    known: KubeconfigContexts,
    name: String,
    namespace: Option<String>,
) -> Option<ContextView> {
    let (answer, answered) = oneshot::channel();
    let work = move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let Ok(runtime) = runtime else { return };
        let view = runtime.block_on(async {
            let connection = known.connect(&name).await;
            look_at(Some(&name), connection, namespace.as_deref()).await
        });
        // Nobody waits for it after the deadline.
        let _ = answer.send(view);
    };
    std::thread::Builder::new().name("context".to_owned()).spawn(work).ok()?;
    answered.await.ok()
}

/// Reads the Syncs behind a connection.
pub(super) async fn look_at(
    context: Option<&str>,
    connection: Result<Connection, ConnectError>,
    namespace: Option<&str>,
) -> ContextView {
    let connection = match connection {
        Ok(connection) => connection,
        Err(error) => {
            let failure = ContextFailure(ClusterState::Unreachable, error.to_string());
            return ContextView::failed(context, failure);
        }
    };
    let release = connection.server_info().await.ok().map(|server| server.version);
    let syncs = connection.syncs(namespace).await.map_err(|error| failure_of(&error));
    let leases: BTreeSet<String> =
        syncs.iter().flatten().filter_map(|sync| sync.status.held_by.clone()).collect();
    let (mut notes, mut is_served) = (Vec::new(), true);
    for lease in leases {
        let heartbeat = connection.heartbeat(&lease).await;
        is_served &= matches!(heartbeat, Heartbeat::Alive | Heartbeat::Unknown);
        let served = context.map_or_else(|| "this".to_owned(), |name| format!("the Syncs of {name}"));
        notes.extend(describe_heartbeat(heartbeat, &lease, &served));
    }
    ContextView { context: context.map(str::to_owned), release, syncs, notes, is_served }
}

fn failure_of(error: &OperatorError) -> ContextFailure {
    let state = match error {
        OperatorError::NoDefinition | OperatorError::NoSync { .. } | OperatorError::Changed(_) => {
            ClusterState::Reachable
        }
        OperatorError::Refused(_) => ClusterState::Refused,
        OperatorError::Unreachable(_) => ClusterState::Unreachable,
    };
    ContextFailure(state, error.to_string())
}
