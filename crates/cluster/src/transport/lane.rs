//! The HTTP/2 connections of one class of requests.
//!
//! In: requests for a stream.
//! Out: a [`StreamSlot`] on the first connection that has room; a further connection is opened
//! only if none has. Callers that need one at the same time share it, and its error.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures::FutureExt as _;
use futures::future::{BoxFuture, Shared};

use super::connection_state::ConnectionState;
use super::dialer::Dialer;
use super::http2_connection::{Http2Connection, StreamSlot};
use super::transport_error::TransportError;

type Dialing = Shared<BoxFuture<'static, Result<(), TransportError>>>;

/// Connections of one class of requests.
pub(super) struct Lane {
    dialer: Arc<Dialer>,
    state: Mutex<LaneState>,
}

#[derive(Default)]
struct LaneState {
    connections: Vec<Arc<Http2Connection>>,
    /// The connection that is being opened.
    dialing: Option<Dialing>,
}

impl Lane {
    pub(super) fn new(dialer: Arc<Dialer>) -> Self {
        Self { dialer, state: Mutex::default() }
    }

    /// Waits for room for one stream.
    pub(super) async fn slot(self: &Arc<Self>) -> Result<StreamSlot, TransportError> {
        loop {
            let dialing = match self.slot_or_dialing() {
                Ok(slot) => return Ok(slot),
                Err(dialing) => dialing,
            };
            dialing.await?;
        }
    }

    fn slot_or_dialing(self: &Arc<Self>) -> Result<StreamSlot, Dialing> {
        let mut state = self.lock();
        state.connections.retain(|connection| !connection.is_closed());
        if let Some(slot) = state.connections.iter().find_map(Http2Connection::slot) {
            return Ok(slot);
        }
        match &state.dialing {
            Some(dialing) if dialing.peek().is_none() => Err(dialing.clone()),
            Some(_) | None => Err(state.dialing.insert(self.dial()).clone()),
        }
    }

    /// Begins to open a connection, in a task: a caller that gives up does not end it for others.
    fn dial(self: &Arc<Self>) -> Dialing {
        let lane = self.clone();
        let task = tokio::spawn(async move {
            let dialed = lane.dialer.dial(Arc::downgrade(&lane)).await;
            let mut state = lane.lock();
            state.dialing = None;
            state.connections.push(dialed?);
            Ok(())
        });
        let ended = |_| Err(TransportError::NotConnected("the daemon is ending".into()));
        async move { task.await.unwrap_or_else(ended) }.boxed().shared()
    }

    /// Removes a connection that no stream uses. False if one does.
    pub(super) fn retire(&self, connection: &Arc<ConnectionState>) -> bool {
        let mut state = self.lock();
        // Streams begin only under this lock.
        if connection.idle_time().is_none() {
            return false;
        }
        state.connections.retain(|other| !other.has_state(connection));
        true
    }

    fn lock(&self) -> MutexGuard<'_, LaneState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
