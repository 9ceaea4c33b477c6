//! Controllers of the cluster.
//!
//! In: the state, at every change.
//! Out: the writes that follow. Two controllers always run, because without them no deletion would
//! complete: one empties namespaces, the other collects garbage. Workloads become ready only if
//! that is configured.

mod garbage_collector;
mod namespaces;
mod workloads;

use std::sync::{Mutex, PoisonError, Weak};
use std::time::Duration;

use super::state::ServerState;
pub(crate) use garbage_collector::stored_target;

/// Time after which workloads become ready; never if `None`.
pub(crate) type Readiness = Option<Duration>;

/// Runs the controllers until the server is gone.
pub(crate) async fn run(state: Weak<Mutex<ServerState>>, readiness: Readiness) {
    let Some(mut chores) = state.upgrade().map(|state| lock(&state).pending_work.subscribe()) else { return };
    let mut workloads = readiness.map(workloads::Workloads::new);
    loop {
        let next = {
            let Some(shared) = state.upgrade() else { return };
            let mut state = lock(&shared);
            chores.borrow_and_update();
            crate::controllers::garbage_collector::collect(&mut state);
            namespaces::end(&mut state);
            workloads.as_mut().and_then(|workloads| workloads.work(&mut state))
        };
        let due = async {
            match next {
                Some(at) => tokio::time::sleep_until(at).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            changed = chores.changed() => if changed.is_err() { return },
            () = due => {}
        }
    }
}

fn lock(state: &Mutex<ServerState>) -> std::sync::MutexGuard<'_, ServerState> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}
