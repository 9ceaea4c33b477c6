//! What the controllers of a cluster do by themselves.
//!
//! In: the state, whenever something changed. Out: the writes that follow. Two are always there, because without them
//! nothing would ever be gone: namespaces are emptied, and dependents follow their owners. Workloads become ready only
//! where that was asked for.

mod collect;
mod namespaces;
mod workloads;

use std::sync::{Mutex, PoisonError, Weak};
use std::time::Duration;

use super::state::State;
pub(crate) use collect::target_of;

/// After how long workloads are ready; none: never.
pub(crate) type Readiness = Option<Duration>;

/// Works until the server is gone.
pub(crate) async fn work(state: Weak<Mutex<State>>, readiness: Readiness) {
    let Some(mut chores) = state.upgrade().map(|state| lock(&state).chores.subscribe()) else { return };
    let mut workloads = readiness.map(workloads::Workloads::new);
    loop {
        let next = {
            let Some(shared) = state.upgrade() else { return };
            let mut state = lock(&shared);
            chores.borrow_and_update();
            collect::collect(&mut state);
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

fn lock(state: &Mutex<State>) -> std::sync::MutexGuard<'_, State> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}
