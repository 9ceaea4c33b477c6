//! Deletion of namespaces and of CustomResourceDefinitions.
//!
//! In: a namespace or a definition in deletion.
//! Out: its objects are deleted; when none is left, its finalizer is removed.

use std::sync::Arc;

use serde_json::{Value, json};

use super::garbage_collector::stored_target;
use crate::resource_registry::storage_key;
use crate::state::ServerState;
use crate::store::Key;
use crate::write::{CLEANUP, DeleteOptions};

/// Continues every deletion that has begun.
pub(super) fn end(state: &mut ServerState) {
    let ending = std::mem::take(&mut state.deleting_containers);
    for (home, key) in ending {
        let Some(body) = state.store.get(&home, &key).map(|stored| stored.body()) else { continue };
        let is_over = match &*home {
            "/namespaces" => empty_namespace(state, &key.name),
            _ => empty_definition(state, &key.name),
        };
        let Some(target) = stored_target(state, &home, key.clone()) else { continue };
        if !is_over {
            state.deleting_containers.push((home, key));
            continue;
        }
        let _ = state.store_or_remove(&target, released(&home, body));
    }
}

fn released(home: &str, mut body: Value) -> Value {
    match home {
        "/namespaces" => body["spec"]["finalizers"] = json!([]),
        _ => {
            if let Some(finalizers) = body["metadata"]["finalizers"].as_array_mut() {
                finalizers.retain(|one| one != CLEANUP);
            }
        }
    }
    body
}

/// Deletes the objects of a namespace; true if none is left.
fn empty_namespace(state: &mut ServerState, namespace: &str) -> bool {
    let mut left = false;
    for home in state.store.resources() {
        let keys: Vec<Key> =
            state.store.all(&home, Some(namespace)).map(|stored| stored.key.clone()).collect();
        left |= empty(state, &home, keys);
    }
    !left
}

/// Deletes the objects of a definition; true if none is left.
fn empty_definition(state: &mut ServerState, name: &str) -> bool {
    let Some((plural, group)) = name.split_once('.') else { return true };
    let home = storage_key(group, plural);
    let keys: Vec<Key> = state.store.all(&home, None).map(|stored| stored.key.clone()).collect();
    !empty(state, &home, keys)
}

fn empty(state: &mut ServerState, home: &Arc<str>, keys: Vec<Key>) -> bool {
    let mut left = false;
    for key in keys {
        let Some(target) = stored_target(state, home, key) else { continue };
        let is_held = state
            .store
            .get(home, &target.key)
            .is_some_and(|stored| !stored.body()["metadata"]["deletionTimestamp"].is_null());
        if !is_held {
            let _ = state.delete(&target, &DeleteOptions::background());
        }
        left |= state.store.get(home, &target.key).is_some();
    }
    left
}
