//! Knows the change windows of the cluster, and wakes the Syncs that they hold.
//!
//! In: the watches on both kinds (`window_watch.rs`), and the time.
//! Out: the state of the windows for a Sync, and a call at each edge and after each change. The
//! decisions are in `moorline-windows`. Until the windows are listed, every Sync is closed. If the
//! kinds are not installed, there are no windows.

mod window_calls;
mod window_watch;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use jiff::Timestamp;
use tokio::sync::watch;

use super::Context;
use crate::api::SyncName;
use crate::cluster::Cluster;
use crate::object::ObjectId;
use crate::windows::{
    ClosedWindow, CompiledWindow, WindowState, WindowSubject, needs_namespace_labels, state_at,
};
use window_calls::{CallLog, Called, WindowCalls};
use window_watch::keep_windows;

/// Longest time for which a new revision waits for the first list.
const KNOWN_WITHIN: Duration = Duration::from_secs(10);
/// Longest sleep before the clock is read again: the time of the machine may be set.
const CLOCK_LOOK: Duration = Duration::from_secs(30);

/// The change windows of a cluster.
pub(crate) struct WindowCenter {
    known: watch::Sender<KnownWindows>,
    /// The edges and changes at which held Syncs ask again.
    calls: watch::Sender<CallLog>,
}

/// The windows, by kind, namespace and name.
#[derive(Default)]
struct KnownWindows {
    /// Knowledge about ChangeWindows and NamespaceChangeWindows.
    lists: [ListState; 2],
    windows: BTreeMap<WindowKey, Arc<CompiledWindow>>,
}

/// Namespace and name of a window; a ChangeWindow has no namespace.
type WindowKey = (Box<str>, Box<str>);

/// State of the list of one kind.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
enum ListState {
    /// All windows are known; also where nobody watches.
    #[default]
    Known,
    /// The first list has not come yet, with the failure if there was one.
    Unknown(Option<Box<str>>),
}

impl WindowCenter {
    /// Creates a center without windows.
    pub(crate) fn new() -> Self {
        Self {
            known: watch::Sender::new(KnownWindows::default()),
            calls: watch::Sender::new(CallLog::default()),
        }
    }

    /// Returns the calls to a Sync from now on.
    pub(crate) fn subscribe(&self) -> WindowCalls {
        WindowCalls::new(self.calls.subscribe())
    }

    /// Lets a Sync ask again, if it is held.
    pub(crate) fn call_sync(&self, sync: &SyncName) {
        self.call(Called::One(sync.clone()));
    }

    /// Lets held Syncs ask again.
    fn call(&self, called: Called) {
        self.calls.send_modify(|calls| calls.add(called));
    }

    /// Returns the state of the windows for a Sync. The labels of its namespace are read if the
    /// answer depends on them.
    pub(crate) async fn state_of(
        &self,
        cluster: &Cluster,
        sync: &SyncName,
        labels: &BTreeMap<String, String>,
    ) -> WindowState {
        let mut known = self.known.subscribe();
        let _ = tokio::time::timeout(KNOWN_WITHIN, known.wait_for(KnownWindows::is_answered)).await;
        let (windows, unknown) = {
            let known = self.known.borrow();
            (known.windows.values().cloned().collect::<Vec<_>>(), known.unknown())
        };
        let subject = |namespace_labels| WindowSubject {
            namespace: &sync.namespace,
            name: &sync.name,
            labels,
            namespace_labels,
        };
        let windows = || windows.iter().map(|window| &**window);
        let places = match needs_namespace_labels(windows(), &subject(None)) {
            true => read_labels(cluster, &sync.namespace).await,
            false => None,
        };
        match (state_at(windows(), &subject(places.as_ref()), wall_clock()), unknown) {
            (WindowState::Open, Some(unknown)) => WindowState::Closed(unknown),
            (state, _) => state,
        }
    }
}

impl KnownWindows {
    /// True if there is nothing to wait for: a list that has failed may fail for a long time.
    fn is_answered(&self) -> bool {
        !self.lists.contains(&ListState::Unknown(None))
    }

    fn is_complete(&self) -> bool {
        self.lists.iter().all(|list| *list == ListState::Known)
    }

    /// Returns the reason why not all windows are known.
    fn unknown(&self) -> Option<ClosedWindow> {
        let failure = self.lists.iter().find_map(|list| match list {
            ListState::Known => None,
            ListState::Unknown(failure) => Some(failure.clone()),
        })?;
        let why = match failure {
            Some(failure) => format!(", which cannot be listed: {failure}"),
            None => ", which are not known yet".to_owned(),
        };
        Some(ClosedWindow { by: "change windows".to_owned(), until: None, why })
    }
}

/// Returns the labels of a namespace; none if they cannot be read.
async fn read_labels(cluster: &Cluster, namespace: &str) -> Option<BTreeMap<String, String>> {
    cluster.discovery().ensure().await.ok()?;
    let id = ObjectId::new("", "Namespace", "", namespace).ok()?;
    let found = cluster.objects().read_metadata(&id, "v1").await.ok()??;
    let labels = found.body.get("metadata").and_then(|metadata| metadata.get("labels"));
    Some(labels.and_then(|labels| serde_json::from_value(labels.clone()).ok()).unwrap_or_default())
}

/// Follows the windows until `serving` ends. From the beginning no new revision is taken up before
/// they are known.
pub(crate) async fn run_beside<T>(context: Arc<Context>, serving: impl Future<Output = T>) {
    let center = &context.windows;
    center.known.send_modify(|known| known.lists = [ListState::Unknown(None), ListState::Unknown(None)]);
    let keeping = async {
        tokio::join!(keep_windows(&context), call_at_edges(center, wall_clock));
        // Neither ends by itself, and the daemon does not end with them.
        std::future::pending::<()>().await;
    };
    tokio::select! {
        _ = serving => {}
        () = keeping => {}
    }
}

/// Calls the Syncs of each window at its edges.
async fn call_at_edges(center: &WindowCenter, wall_clock: impl Fn() -> Timestamp) {
    let (mut known, mut now) = (center.known.subscribe(), wall_clock());
    loop {
        let next: Vec<_> = {
            let known = known.borrow_and_update();
            let edge = |window: &Arc<CompiledWindow>| Some((window.next_look(now)?, window.clone()));
            known.windows.values().filter_map(edge).collect()
        };
        let edge = next.iter().map(|(edge, _)| *edge).min();
        let left = edge.map(|edge| Duration::try_from(edge.duration_since(wall_clock())).unwrap_or_default());
        let sleep = async {
            match left {
                Some(left) => tokio::time::sleep(left.min(CLOCK_LOOK)).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            changed = known.changed() => match changed {
                Ok(()) => {}
                Err(_) => return,
            },
            () = sleep => {}
        }
        // A change may come at the very edge.
        let before = std::mem::replace(&mut now, wall_clock());
        if now < before {
            // The clock was set back: windows that were on may be off again, and the reverse.
            center.call(Called::All);
        }
        for (_, window) in next.into_iter().filter(|(edge, _)| *edge <= now) {
            center.call(Called::Of(window));
        }
    }
}

/// Returns the time of the machine.
fn wall_clock() -> Timestamp {
    Timestamp::try_from(SystemTime::now()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn held_syncs_are_called_at_each_edge_and_at_no_other_time() {
        let (start, begun) = (Timestamp::from_second(1_795_813_170).unwrap(), tokio::time::Instant::now());
        assert_eq!(start.to_string(), "2026-11-27T20:59:30Z");
        let clock = move || start + begun.elapsed();
        let spec = serde_json::json!({
            "effect": "Allow", "schedule": "0 22 * * *", "duration": "8h", "timeZone": "Europe/Berlin",
        });
        let window = CompiledWindow::compile(None, "nightly", serde_json::from_value(spec).unwrap());
        let center = WindowCenter::new();
        center.known.send_modify(|known| {
            known.windows.insert(("".into(), "nightly".into()), Arc::new(window));
        });
        let mut calls = center.subscribe();
        let sync = SyncName::new("shop", "web");
        let times = async {
            let mut times = Vec::new();
            while times.len() < 3 {
                calls.called(&sync, BTreeMap::new).await;
                times.push(clock().to_string());
            }
            times
        };
        let times = tokio::select! {
            times = times => times,
            () = call_at_edges(&center, clock) => Vec::new(),
        };
        let minutes: Vec<&str> = times.iter().map(|time| &time[..16]).collect();
        assert_eq!(minutes, ["2026-11-27T21:00", "2026-11-28T05:00", "2026-11-28T21:00"]);
    }

    #[tokio::test(start_paused = true)]
    async fn a_clock_that_is_set_back_calls_everybody() {
        let begun = tokio::time::Instant::now();
        let start: Timestamp = "2026-11-27T12:10:00Z".parse().unwrap();
        let clock = move || {
            let back = if begun.elapsed() < Duration::from_secs(600) { 0 } else { 3600 };
            start + begun.elapsed() - Duration::from_secs(back)
        };
        let spec = serde_json::json!({
            "effect": "Deny", "schedule": "0 12 * * *", "duration": "8h", "namespaceSelector": {"names": ["other"]},
        });
        let window = CompiledWindow::compile(None, "noon", serde_json::from_value(spec).unwrap());
        let center = WindowCenter::new();
        center.known.send_modify(|known| {
            known.windows.insert(("".into(), "noon".into()), Arc::new(window));
        });
        let mut calls = center.subscribe();
        let sync = SyncName::new("shop", "web");
        let called = async {
            calls.called(&sync, BTreeMap::new).await;
            begun.elapsed().as_secs()
        };
        let called = tokio::select! {
            at = called => at,
            () = call_at_edges(&center, clock) => 0,
        };
        assert!((600..=630).contains(&called), "{called}");
    }

    #[test]
    fn unknown_windows_close_and_say_so() {
        let said = |lists: [ListState; 2]| {
            let known = KnownWindows { lists, windows: BTreeMap::new() };
            known.unknown().map(|closed| closed.to_string())
        };
        assert_eq!(said([ListState::Known, ListState::Known]), None);
        let not_yet = said([ListState::Known, ListState::Unknown(None)]).unwrap();
        assert_eq!(not_yet, "held by change windows, which are not known yet");
        let failed = said([ListState::Unknown(Some("forbidden".into())), ListState::Known]).unwrap();
        assert_eq!(failed, "held by change windows, which cannot be listed: forbidden");
        // No repair waits for a list that has failed already.
        let is_answered =
            |state| KnownWindows { lists: [ListState::Known, state], windows: BTreeMap::new() }.is_answered();
        assert!(is_answered(ListState::Unknown(Some("forbidden".into()))) && is_answered(ListState::Known));
        assert!(!is_answered(ListState::Unknown(None)));
    }
}
