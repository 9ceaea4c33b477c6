//! Keeps the change windows of the cluster compiled.
//!
//! In: the watches on both kinds. Out: the windows, and a status for each whose spec has changed. A
//! window that cannot be read is kept, too: it is closed.

use std::collections::BTreeSet;
use std::sync::Arc;

use serde_json::{Map, Value, json};
use tokio::sync::mpsc;

use super::super::Context;
use super::{ListState, WindowKey, wall_clock};
use crate::api::{change_window_definition, namespace_change_window_definition};
use crate::cluster::change_windows::{WindowKind, WindowRequests, WindowWatchEvent};
use crate::cluster::{CrdInstallResult, install_crd};
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
                context.windows.known.send_modify(|known| drop(known.windows.remove(&key)));
            }
            WindowWatchEvent::Listed => {
                is_refused = false;
                settle(context, kind, listing.take());
                if !std::mem::replace(&mut is_defined, true) {
                    update_definition(context, kind).await;
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
    context.windows.known.send_modify(|known| {
        let is_there = |key: &WindowKey| there.as_ref().is_none_or(|there| there.contains(key));
        known.windows.retain(|key, _| !is_of(kind, key) || is_there(key));
        known.lists[place(kind)] = ListState::Known;
    });
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
    context.windows.known.send_modify(|known| drop(known.windows.insert(key.clone(), Arc::new(window))));
    let number = |pointer: &str| object.pointer(pointer).and_then(Value::as_i64);
    let generation = number("/metadata/generation");
    let is_said = if problem.is_none() { "True" } else { "False" };
    let said = object.pointer("/status/conditions/0/status").and_then(Value::as_str);
    if generation.is_some() && number("/status/observedGeneration") == generation && said == Some(is_said) {
        return None;
    }
    let uid = object.pointer("/metadata/uid").and_then(Value::as_str).unwrap_or_default().into();
    Some(OwedStatus { key, uid, status: status(generation, problem.as_deref()) })
}

async fn write_status(context: &Context, kind: WindowKind, OwedStatus { key, uid, status }: OwedStatus) {
    let namespace = Some(&*key.0).filter(|namespace| !namespace.is_empty());
    let place = (namespace, &*key.1, &*uid);
    if let Err(failure) = WindowRequests::new(&context.cluster).write_status(kind, place, &status).await {
        tracing::debug!(window = &*key.1, %failure, "a status could not be written");
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
    let now = wall_clock();
    let now = jiff::Timestamp::from_second(now.as_second()).unwrap_or(now);
    json!({
        "observedGeneration": generation,
        "conditions": [{
            "type": "Ready", "status": status, "reason": reason, "message": message,
            "lastTransitionTime": now.to_string(), "observedGeneration": generation,
        }],
    })
}

/// Updates the definition of the kind, which exists, if that is permitted.
async fn update_definition(context: &Context, kind: WindowKind) {
    let own = match kind {
        WindowKind::Cluster => change_window_definition(),
        WindowKind::Namespace => namespace_change_window_definition(),
    };
    let Ok(own) = own else { return };
    match install_crd(&context.cluster, &own).await {
        CrdInstallResult::Applied => {
            tracing::info!("the CustomResourceDefinition of {} was updated", kind.name())
        }
        CrdInstallResult::NotUpdated(failure) => {
            let by_hand = format!(
                "moorline crd {} | kubectl apply --server-side --force-conflicts -f -",
                kind.plural()
            );
            tracing::warn!(%failure, "the CustomResourceDefinition of {} differs and cannot be updated; to update it: {by_hand}", kind.name());
        }
        other => tracing::debug!(?other, "the CustomResourceDefinition of {} is left as it is", kind.name()),
    }
}

fn key(object: &Map<String, Value>) -> WindowKey {
    let metadata = object.get("metadata").unwrap_or(&Value::Null);
    let text = |field: &str| metadata.get(field).and_then(Value::as_str).unwrap_or_default();
    (text("namespace").into(), text("name").into())
}
