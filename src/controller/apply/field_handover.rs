//! Transfers fields to other managers without changing their values.
//!
//! In: the fields that we own, and the places that are left to other managers from now on.
//! Out: the same fields owned by a separate hand-over manager, together with those that it owns
//! already.
//!
//! Dropping a field from an apply deletes it, or resets it to its default, unless another manager
//! owns it.

use serde_json::{Value, json};

use super::ApplyContext;
use crate::api::HANDOVER_MANAGER;
use crate::cluster::ApiError;
use crate::desired::{DesiredObject, IgnoredFields};
use crate::fields::{
    Element, FieldPath, FieldSet, ManagedFieldsEntry, entries, excerpt, is_inside, pointer_of,
    pointer_of_fields,
};

/// Attempts to transfer fields while the live value keeps changing.
const MAX_ATTEMPTS: usize = 5;

/// Transfers those of our fields that are in places left to other managers.
pub(crate) async fn transfer_fields(
    work: &ApplyContext<'_>,
    wanted: &DesiredObject,
    own: &FieldSet,
    less: &[Box<str>],
) -> Result<(), ApiError> {
    let paths = paths_left_to_others(wanted, own, less);
    if paths.is_empty() {
        return Ok(());
    }
    let mut failed = Ok(());
    for _ in 0..MAX_ATTEMPTS {
        let live = work.cluster.objects().read_whole(&wanted.id, Some(&wanted.version)).await?;
        let Some(live) = live.map(|live| Value::Object(live.body)) else { return Ok(()) };
        let mut claim = excerpt(&live, &claimed(&live, &paths));
        if claim == json!({}) {
            return Ok(());
        }
        for field in ["apiVersion", "kind"] {
            claim[field] = live.get(field).cloned().unwrap_or_default();
        }
        claim["metadata"]["name"] = wanted.id.name().into();
        match work.cluster.objects().claim_fields(&wanted.id, &wanted.version, &claim, HANDOVER_MANAGER).await
        {
            // The value has changed since it was read.
            Err(failure) if failure.code() == Some(409) => failed = Err(failure),
            done => return done,
        }
    }
    failed
}

/// Returns the paths to claim on a live object: these, and all that were handed over before. The
/// hand-over manager would lose fields that it does not send again.
fn claimed(live: &Value, paths: &[FieldPath]) -> Vec<FieldPath> {
    let entries = live.get("metadata").and_then(Value::as_object).map(entries).unwrap_or_default();
    let held =
        entries.iter().filter(|entry| entry.is_applied_by(HANDOVER_MANAGER)).map(|entry| &entry.fields);
    let all = held.fold(FieldSet::from_paths(paths), |all, held| all.union(held));
    all.owned_paths().into_iter().filter(|path| !holds_others(path, &entries)).collect()
}

/// Returns true for a field that exists only because of its content: claiming it would claim all of
/// that content, including fields of other managers.
fn holds_others(path: &FieldPath, entries: &[ManagedFieldsEntry]) -> bool {
    let is_inside = |inner: &FieldPath| inner != path && inner.starts_with(path);
    matches!(path.elements().last(), Some(Element::Field(_)))
        && entries.iter().any(|entry| {
            entry.fields.contains_or_below(path) && entry.fields.owned_paths().iter().any(is_inside)
        })
}

/// Returns the paths of a field set that are in places left to other managers.
pub(crate) fn paths_left_to_others(
    wanted: &DesiredObject,
    own: &FieldSet,
    less: &[Box<str>],
) -> Vec<FieldPath> {
    let ignored = wanted.ignored.as_deref();
    if ignored.is_none() && less.is_empty() {
        return Vec::new();
    }
    let body = Value::Object(wanted.body());
    let rendered = Value::Object(ignored.map(IgnoredFields::body).unwrap_or_default());
    let places: &[Box<str>] = ignored.map_or(&[], |it| &it.paths);
    let within = |pointer: Option<String>, places: &[Box<str>]| {
        pointer.is_some_and(|pointer| places.iter().any(|place| is_inside(&pointer, place)))
    };
    let is_left = |path: &FieldPath| {
        within(pointer_of(path, &rendered), places)
            || within(pointer_of(path, &body), less)
            // A field that was dropped from Git while it was ignored exists only in the managed
            // fields.
            || within(pointer_of_fields(path), places)
    };
    own.owned_paths().into_iter().filter(is_left).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn claim(entries: &[(&str, Value)], live: Value, paths: Value) -> Value {
        let entry = |(manager, fields): &(&str, Value)| json!({"manager": manager, "operation": "Apply", "fieldsV1": fields});
        let mut live = live;
        live["metadata"] = json!({"managedFields": entries.iter().map(entry).collect::<Vec<_>>()});
        excerpt(&live, &claimed(&live, &FieldSet::parse(&paths).owned_paths()))
    }

    #[test]
    fn what_was_handed_over_before_is_claimed_again() {
        let live = json!({"spec": {"replicas": 5, "minReadySeconds": 7, "paused": true, "containers": [
            {"name": "side", "image": "b"}, {"name": "app", "image": "a", "tty": true},
        ]}});
        let before = json!({"f:spec": {"f:replicas": {}, "f:gone": {}, "f:containers": {
            "k:{\"name\":\"app\"}": {".": {}, "f:name": {}, "f:image": {}},
            "k:{\"name\":\"gone\"}": {".": {}, "f:name": {}},
        }}});
        let now = json!({"f:spec": {"f:minReadySeconds": {}}});
        let others = json!({"f:spec": {"f:paused": {}}});
        let spec =
            json!({"replicas": 5, "minReadySeconds": 7, "containers": [{"name": "app", "image": "a"}]});
        let entries = [(HANDOVER_MANAGER, before), ("robot", others)];
        assert_eq!(claim(&entries, live.clone(), now.clone()), json!({"spec": spec}));
        assert_eq!(claim(&[], live, now), json!({"spec": {"minReadySeconds": 7}}));
    }

    #[test]
    fn what_others_have_put_into_a_field_is_not_claimed_with_it() {
        let live = json!({"data": {"theirs": "1"}, "more": {"a": {"x": 1, "theirs": 1}}, "args": ["-v"]});
        let before = json!({"f:data": {}, "f:more": {"f:a": {".": {}, "f:x": {}}}, "f:args": {}});
        let theirs = json!({"f:data": {"f:theirs": {}}, "f:more": {"f:a": {"f:theirs": {}}}});
        let claim = claim(&[(HANDOVER_MANAGER, before), ("robot", theirs)], live, json!({}));
        assert_eq!(claim, json!({"more": {"a": {"x": 1}}, "args": ["-v"]}));
    }
}
