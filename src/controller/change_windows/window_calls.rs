//! Calls of windows to the Syncs that they hold: an edge, or a change of a spec.
//!
//! In: a window that has changed. Out: the Syncs that it selects ask again, and no others.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use tokio::sync::watch;

use crate::api::SyncName;
use crate::windows::{CompiledWindow, WindowSubject};

/// Calls that are kept. A Sync that has missed an older one asks again.
const MAX_CALLS: usize = 1024;

/// The last calls.
#[derive(Default)]
pub(super) struct CallLog {
    count: u64,
    /// The newest last.
    last: VecDeque<Called>,
}

/// The Syncs that a call is for.
#[derive(Clone)]
pub(super) enum Called {
    All,
    /// Those that the window may select.
    Of(Arc<CompiledWindow>),
    One(SyncName),
}

/// The calls to one Sync.
pub(crate) struct WindowCalls {
    calls: watch::Receiver<CallLog>,
    seen: u64,
}

impl CallLog {
    /// Adds a call.
    pub(super) fn add(&mut self, called: Called) {
        self.count += 1;
        self.last.push_back(called);
        if self.last.len() > MAX_CALLS {
            self.last.pop_front();
        }
    }

    /// Returns the number of calls so far.
    #[cfg(test)]
    pub(super) fn count(&self) -> u64 {
        self.count
    }

    /// True if a call since this number may be about a Sync.
    fn calls_since(&self, seen: u64, sync: &WindowSubject<'_>) -> bool {
        let new = usize::try_from(self.count.saturating_sub(seen)).unwrap_or(usize::MAX);
        let is_about = |called: &Called| match called {
            Called::All => true,
            Called::Of(window) => window.may_select(sync),
            Called::One(name) => (&*name.namespace, &*name.name) == (sync.namespace, sync.name),
        };
        new > self.last.len() || self.last.iter().rev().take(new).any(is_about)
    }
}

impl WindowCalls {
    pub(super) fn new(calls: watch::Receiver<CallLog>) -> Self {
        let seen = calls.borrow().count;
        Self { calls, seen }
    }

    /// Returns once a window that may select the Sync has called. Without a center it never does.
    ///
    /// # Cancellation
    ///
    /// Dropping the future loses no call.
    pub(crate) async fn called(&mut self, sync: &SyncName, labels: impl Fn() -> BTreeMap<String, String>) {
        loop {
            if self.calls.changed().await.is_err() {
                return std::future::pending().await;
            }
            let labels = labels();
            let subject = WindowSubject {
                namespace: &sync.namespace,
                name: &sync.name,
                labels: &labels,
                namespace_labels: None,
            };
            let log = self.calls.borrow_and_update();
            if log.calls_since(std::mem::replace(&mut self.seen, log.count), &subject) {
                return;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_window_calls_the_syncs_that_it_selects() {
        let window = |names: &str| {
            let spec = json!({"effect": "Deny", "namespaceSelector": {"names": [names]}});
            let object = json!({"metadata": {"name": names}, "spec": spec});
            Called::Of(Arc::new(CompiledWindow::read(&object)))
        };
        let labels = BTreeMap::new();
        let sync = WindowSubject { namespace: "shop", name: "web", labels: &labels, namespace_labels: None };
        let mut log = CallLog::default();
        log.add(window("other"));
        assert!(!log.calls_since(0, &sync), "another namespace");
        log.add(window("shop"));
        assert!(log.calls_since(0, &sync) && log.calls_since(1, &sync) && !log.calls_since(2, &sync));
        log.add(Called::One(SyncName::new("shop", "api")));
        assert!(!log.calls_since(2, &sync), "another Sync");
        log.add(Called::All);
        assert!(log.calls_since(3, &sync), "all Syncs");
        (0..=MAX_CALLS).for_each(|_| log.add(window("other")));
        assert!(log.calls_since(4, &sync), "a call that is not kept may have been about it");
        assert!(!log.calls_since(5, &sync));
    }
}
