//! Garbage collection of dependents.
//!
//! In: owners that are deleted, or that are being deleted with `Foreground` or `Orphan`
//! propagation.
//! Out: dependents without any owner are deleted; those of an owner with `Orphan` lose the owner
//! reference.

use serde_json::Value;

use crate::state::ServerState;
use crate::store::Key;
use crate::write::{DeleteOptions, FOREGROUND, ORPHAN, RequestTarget};

/// Deletes dependents whose owners no longer exist.
pub(super) fn collect(state: &mut ServerState) {
    while let Some(uid) = state.collectable_owners.pop() {
        for (home, key) in state.dependents(&uid) {
            if let Some(target) = stored_target(state, &home, key)
                && is_ownerless(state, &target)
            {
                // An error means that it is deleted already or kept by a finalizer; both are fine.
                let _ = state.delete(&target, &DeleteOptions::background());
            }
        }
    }
    for (home, key) in std::mem::take(&mut state.deleting_owners) {
        let Some(target) = stored_target(state, &home, key) else { continue };
        leave(state, &target);
    }
}

/// True if none of its owners exists.
fn is_ownerless(state: &ServerState, target: &RequestTarget) -> bool {
    let Some(stored) = state.store.get(&target.resource.storage_key, &target.key) else { return false };
    let body = stored.body();
    let owners = body["metadata"]["ownerReferences"].as_array().cloned().unwrap_or_default();
    owners.iter().all(|owner| {
        let text = |field: &str| owner[field].as_str().unwrap_or_default();
        let group = text("apiVersion").split_once('/').map_or("", |(group, _)| group);
        let Some(resource) = state.registry.of_kind(group, text("kind")) else { return true };
        let namespace = if resource.namespaced { &*target.key.namespace } else { "" };
        let found = state.store.get(&resource.storage_key, &Key::new(namespace, text("name")));
        found.is_none_or(|found| *found.uid != *text("uid"))
    })
}

/// Continues the deletion of an owner whose dependents must be deleted or orphaned first.
fn leave(state: &mut ServerState, target: &RequestTarget) {
    let Some(stored) = state.store.get(&target.resource.storage_key, &target.key).cloned() else { return };
    let body = stored.body();
    let held: Vec<&str> =
        body["metadata"]["finalizers"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    let dependents = state.dependents(&stored.uid);
    if held.contains(&ORPHAN) {
        for (home, key) in dependents {
            if let Some(dependent) = stored_target(state, &home, key) {
                disown(state, &dependent, &stored.uid);
            }
        }
        return release(state, target, body.clone(), ORPHAN);
    }
    if !held.contains(&FOREGROUND) {
        return;
    }
    let mut blocked = false;
    for (home, key) in dependents {
        let Some(dependent) = stored_target(state, &home, key) else { continue };
        let _ = state.delete(&dependent, &DeleteOptions::background());
        blocked |= state.store.get(&home, &dependent.key).is_some();
    }
    match blocked {
        // Checked again at the next change.
        true => state.deleting_owners.push((target.resource.storage_key.clone(), target.key.clone())),
        false => release(state, target, body.clone(), FOREGROUND),
    }
}

fn disown(state: &mut ServerState, target: &RequestTarget, owner: &str) {
    let Some(before) = state.store.get(&target.resource.storage_key, &target.key).map(|stored| stored.body())
    else {
        return;
    };
    let mut body = before.clone();
    if let Some(owners) = body["metadata"]["ownerReferences"].as_array_mut() {
        owners.retain(|one| one["uid"] != owner);
        if owners.is_empty()
            && let Some(metadata) = body["metadata"].as_object_mut()
        {
            metadata.remove("ownerReferences");
        }
    }
    let _ = state.write_as("kube-controller-manager", target, &before, body);
}

fn release(state: &mut ServerState, target: &RequestTarget, mut body: Value, finalizer: &str) {
    if let Some(finalizers) = body["metadata"]["finalizers"].as_array_mut() {
        finalizers.retain(|one| one != finalizer);
    }
    let _ = state.store_or_remove(target, body);
}

/// Returns a stored object as a target, in the version in which it is stored.
pub(crate) fn stored_target(state: &ServerState, home: &str, key: Key) -> Option<RequestTarget> {
    let resource = state.registry.iter().find(|resource| &*resource.storage_key == home)?.clone();
    let own = state.store.get(home, &key).and_then(|stored| {
        (0..resource.versions.len()).find(|at| resource.api_version(*at) == stored.api_version())
    });
    let version = own.unwrap_or_else(|| resource.stored_version());
    Some(RequestTarget { resource, version, key, subresource: String::new() })
}
