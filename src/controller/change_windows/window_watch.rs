//! Keeps the change windows of the cluster compiled.
//!
//! In: the watches on both kinds. Out: the windows, and a status for each whose spec has changed. A
//! window that cannot be read is kept, too: it is closed.

use std::collections::BTreeSet;
use std::sync::Arc;

use serde_json::{Map, Value};
use tokio::sync::mpsc;

use super::super::Context;
use super::super::definition_update::update_definition;
use super::super::status::now;
use super::window_calls::Called;
use super::{ListState, WindowCenter, WindowKey};
use crate::api::{change_window_definition, namespace_change_window_definition};
use crate::cluster::change_windows::{WindowKind, WindowRequests, WindowWatchEvent};
use crate::controller::status::ready_status::{ReadyCondition, ready_status};
use crate::windows::CompiledWindow;

/// Follows the windows of both kinds without end.
pub(super) async fn keep_windows(context: &Arc<Context>) {
    tokio::join!(keep_kind(context, WindowKind::Cluster), keep_kind(context, WindowKind::Namespace));
}

async fn keep_kind(context: &Arc<Context>, kind: WindowKind) {
    let (send, mut events) = mpsc::unbounded_channel();
    let _watching = WindowRequests::new(&context.cluster).watch(kind, move |event| {
        // The receiver is dropped only with this function.
        let _ = send.send(event);
    });
    let (mut is_defined, mut is_refused) = (false, false);
    // The keys of the current list; none outside of a list.
    let mut listing: Option<BTreeSet<WindowKey>> = Some(BTreeSet::new());
    // Statuses that are not written yet: no list waits for one.
    let mut owed: Vec<OwedStatus> = Vec::new();
    while let Some(event) = events.recv().await {
        match event {
            WindowWatchEvent::Begins => listing = Some(BTreeSet::new()),
            WindowWatchEvent::Seen(object) => {
                let key = key(&object);
                if let Some(listing) = &mut listing {
                    listing.insert(key.clone());
                }
                owed.extend(take_up(context, key, *object));
            }
            WindowWatchEvent::Gone(object) => {
                let key = key(&object);
                context.windows.replace(key, None);
            }
            WindowWatchEvent::Listed => {
                is_refused = false;
                settle(context, kind, listing.take());
                if !std::mem::replace(&mut is_defined, true) {
                    update_definition(&context.cluster, definition(kind)).await;
                }
            }
            WindowWatchEvent::Absent => settle(context, kind, Some(BTreeSet::new())),
            WindowWatchEvent::Broken(failure) => {
                tracing::debug!(%failure, kind = kind.name(), "change windows cannot be watched");
                note_failure(context, kind, &failure.to_string());
                if failure.code() == Some(403) && !std::mem::replace(&mut is_refused, true) {
                    tracing::warn!(
                        %failure,
                        "list and watch on {}.moorline.dev is missing: where the kind is served, no new revision is applied",
                        kind.plural()
                    );
                }
            }
        }
        if listing.is_none() && events.is_empty() {
            for owed in owed.drain(..) {
                write_status(context, kind, owed).await;
            }
        }
    }
}

/// Records that all windows of a kind are known; `there` has their keys.
fn settle(context: &Context, kind: WindowKind, there: Option<BTreeSet<WindowKey>>) {
    let mut is_complete = false;
    let is_new = context.windows.known.send_if_modified(|known| {
        let is_there = |key: &WindowKey| there.as_ref().is_none_or(|there| there.contains(key));
        let count = known.windows.len();
        known.windows.retain(|key, _| !is_of(kind, key) || is_there(key));
        let before = std::mem::replace(&mut known.lists[place(kind)], ListState::Known);
        is_complete = known.is_complete();
        before != ListState::Known || known.windows.len() != count
    });
    if is_new && is_complete {
        context.windows.call(Called::All);
    }
}

impl WindowCenter {
    /// Records a window, or removes it. The Syncs of the window before and of the one after ask
    /// again, if the spec differs.
    pub(super) fn replace(&self, key: WindowKey, window: Option<Arc<CompiledWindow>>) {
        let mut before = None;
        let is_new = self.known.send_if_modified(|known| {
            before = match window.clone() {
                Some(window) => known.windows.insert(key, window),
                None => known.windows.remove(&key),
            };
            match (&before, &window) {
                (Some(before), Some(window)) => !before.is_same(window),
                (before, window) => before.is_some() || window.is_some(),
            }
        });
        // Before all windows are known, the end of the list calls everybody.
        if is_new && self.known.borrow().is_complete() {
            before.into_iter().chain(window).for_each(|window| self.call(Called::Of(window)));
        }
    }
}

/// Records a failure, if the windows of the kind were never listed.
fn note_failure(context: &Context, kind: WindowKind, failure: &str) {
    context.windows.known.send_if_modified(|known| {
        let list = &mut known.lists[place(kind)];
        let next = ListState::Unknown(Some(failure.into()));
        let is_new = *list != ListState::Known && *list != next;
        if is_new {
            *list = next;
        }
        is_new
    });
}

const fn place(kind: WindowKind) -> usize {
    match kind {
        WindowKind::Cluster => 0,
        WindowKind::Namespace => 1,
    }
}

/// True if a key is one of this kind.
fn is_of(kind: WindowKind, (namespace, _): &WindowKey) -> bool {
    namespace.is_empty() == (kind == WindowKind::Cluster)
}

/// A status that is to be written.
struct OwedStatus {
    key: WindowKey,
    uid: Box<str>,
    status: Value,
}

/// Records a window; returns its status, if the spec has changed since that was written.
fn take_up(context: &Context, key: WindowKey, object: Map<String, Value>) -> Option<OwedStatus> {
    let object = Value::Object(object);
    let window = CompiledWindow::read(&object);
    let problem = window.problem().map(str::to_owned);
    context.windows.replace(key.clone(), Some(Arc::new(window)));
    let number = |pointer: &str| object.pointer(pointer).and_then(Value::as_i64);
    let generation = number("/metadata/generation");
    let is_observed = generation.is_some() && number("/status/observedGeneration") == generation;
    let said = object.pointer("/status/conditions/0/status").and_then(Value::as_str);
    if !is_owed(said.filter(|_| is_observed), problem.is_none()) {
        return None;
    }
    let uid = object.pointer("/metadata/uid").and_then(Value::as_str).unwrap_or_default().into();
    Some(OwedStatus { key, uid, status: status(generation, problem.as_deref()) })
}

/// True if a status is to be written; `said` is that of this generation. Of two daemons that read a
/// window differently, the one that can read it has the last word.
fn is_owed(said: Option<&str>, is_readable: bool) -> bool {
    match said {
        Some("True") => false,
        Some("False") => is_readable,
        _ => true,
    }
}

async fn write_status(context: &Context, kind: WindowKind, OwedStatus { key, uid, status }: OwedStatus) {
    let namespace = Some(&*key.0).filter(|namespace| !namespace.is_empty());
    let place = (namespace, &*key.1, &*uid);
    if let Err(failure) = WindowRequests::new(&context.cluster).write_status(kind, place, &status).await {
        tracing::debug!(window = &*key.1, %failure, "a status could not be written");
    }
}

/// Returns the definition of the kind.
fn definition(kind: WindowKind) -> Result<Value, serde_json::Error> {
    match kind {
        WindowKind::Cluster => change_window_definition(),
        WindowKind::Namespace => namespace_change_window_definition(),
    }
}

/// Builds the status of a window.
fn status(generation: Option<i64>, problem: Option<&str>) -> Value {
    let (status, reason, message) = match problem {
        None => ("True", "Ready", String::new()),
        Some(problem) => {
            ("False", "SpecInvalid", format!("{problem}; the window is closed until it can be read"))
        }
    };
    let since = &now().0.to_string();
    ready_status(generation, &ReadyCondition { status, reason, message: &message, since })
}

fn key(object: &Map<String, Value>) -> WindowKey {
    let metadata = object.get("metadata").unwrap_or(&Value::Null);
    let text = |field: &str| metadata.get(field).and_then(Value::as_str).unwrap_or_default();
    (text("namespace").into(), text("name").into())
}

#[cfg(test)]
mod scene_tests;
#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_status_is_written_once_for_a_generation_and_only_becomes_true_after_that() {
        for (said, is_readable, expect) in [
            (None, true, true),
            (None, false, true),
            (Some("Unknown"), false, true),
            (Some("False"), false, false),
            (Some("False"), true, true),
            (Some("True"), true, false),
            (Some("True"), false, false),
        ] {
            assert_eq!(is_owed(said, is_readable), expect, "{said:?} {is_readable}");
        }
    }

    #[test]
    fn only_another_spec_calls() {
        let center = WindowCenter::new();
        let key = || ("".into(), "a".into());
        let read = |spec: Value| {
            Some(Arc::new(CompiledWindow::read(&json!({"metadata": {"name": "a"}, "spec": spec}))))
        };
        let mut calls = Vec::new();
        let freeze = || json!({"effect": "Deny"});
        for window in
            [read(freeze()), read(freeze()), read(json!({"effect": "Deny", "reason": "b"})), None, None]
        {
            center.replace(key(), window);
            calls.push(center.calls.borrow().count());
        }
        assert_eq!(calls, [1, 1, 3, 4, 4]);
    }
}
