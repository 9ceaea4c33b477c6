//! Removes fields that Git no longer sets, but that other managers keep alive.
//!
//! In: the fields that we owned before an apply, and the reply to it.
//! Out: the fields are removed if they are owned only by tools with which people write manifests,
//! or by the tool from which the Sync was adopted. Otherwise they are recorded as leftovers, with
//! their managers.

use serde_json::{Value, json};

use super::ApplyContext;
use super::field_handover::paths_left_to_others;
use super::managers::own_and_foreign;
use crate::adopt::AdoptedFrom;
use crate::api::HANDOVER_MANAGER;
use crate::cluster::{ApiError, ApplyResult, classify_error};
use crate::controller::memory::field_conflicts::LeftoverField;
use crate::desired::DesiredObject;
use crate::fields::{
    Element, FieldPath, FieldSet, ManagedFieldsEntry, pointer_of, removal_order, retained_fields,
};

/// Tools whose fields belong to a person who now uses Git, and the manager that only holds
/// handed-over fields.
const TAKEN_FROM: [&str; 8] = [
    "kubectl",
    "kubectl-client-side-apply",
    "kubectl-create",
    "kubectl-edit",
    "kubectl-patch",
    "before-first-apply",
    "helm",
    HANDOVER_MANAGER,
];

/// Attempts to remove fields while the object keeps changing.
const MAX_ATTEMPTS: usize = 3;

/// Removes the fields that we owned before and that still exist.
pub(crate) async fn clear(
    work: &ApplyContext<'_>,
    wanted: &DesiredObject,
    before: &FieldSet,
    applied: &ApplyResult,
    less: &[Box<str>],
) {
    let (own, foreign) = own_and_foreign(&applied.object, &work.owner.manager());
    let left = FieldSet::from_paths(&paths_left_to_others(wanted, before, less));
    let is_left = |entry: &ManagedFieldsEntry| is_taken_from(entry, work.predecessor);
    let (take, mut remains) = survivors(&before.minus(&left), &own, &foreign, is_left);
    if !take.is_empty()
        && let Err(failure) = take_fields(work, wanted, &take).await
    {
        remains.extend(not_taken(wanted.contains_secret, &take, &failure));
    }
    for it in &remains {
        tracing::warn!(sync = %work.owner, object = %wanted.id, field = %wanted.display_path(&it.field), "no longer in Git but not removed: {}", it.why);
    }
    work.field_conflicts.remain(wanted, remains);
}

async fn take_fields(
    work: &ApplyContext<'_>,
    wanted: &DesiredObject,
    paths: &[FieldPath],
) -> Result<(), ApiError> {
    let mut failed = Ok(());
    for _ in 0..MAX_ATTEMPTS {
        let version = Some(&*wanted.version);
        let Some(live) = work.cluster.objects().read_whole(&wanted.id, version).await? else {
            return Ok(());
        };
        let live = Value::Object(live.body);
        let places = paths.iter().filter_map(|path| pointer_of(path, &live).map(Box::from)).collect();
        let places = removal_order(places);
        if places.is_empty() {
            return Ok(());
        }
        let seen = live.pointer("/metadata/resourceVersion").and_then(Value::as_str).unwrap_or_default();
        let mut steps = vec![json!({"op": "test", "path": "/metadata/resourceVersion", "value": seen})];
        steps.extend(places.iter().map(|place| json!({"op": "remove", "path": place})));
        let fields: Vec<String> =
            paths.iter().map(|path| wanted.display_path(&path.to_string()).into_owned()).collect();
        match work.cluster.objects().patch(&wanted.id, version, work.owner, &steps.into()).await {
            // The object changed meanwhile.
            Err(failure) if matches!(failure.code(), Some(409 | 422)) => failed = Err(failure),
            Err(failure) => return Err(failure),
            Ok(()) => {
                tracing::info!(sync = %work.owner, object = %wanted.id, fields = fields.join(", "), "removed fields that are no longer in Git");
                return Ok(());
            }
        }
    }
    failed
}

/// Returns the leftovers that the server refuses to remove. Its message may quote values.
fn not_taken(secret: bool, paths: &[FieldPath], failure: &ApiError) -> Vec<LeftoverField> {
    let why = format!("it could not be removed: {}", classify_error(failure, secret).message);
    paths.iter().map(|path| LeftoverField { field: path.to_string(), why: why.clone() }).collect()
}

/// Splits the lost fields into those to remove and the leftovers with their managers.
fn survivors(
    before: &FieldSet,
    own: &FieldSet,
    foreign: &[ManagedFieldsEntry],
    is_left: impl Fn(&ManagedFieldsEntry) -> bool,
) -> (Vec<FieldPath>, Vec<LeftoverField>) {
    let holders =
        |path: &FieldPath| foreign.iter().filter(|entry| entry.fields.contains_or_below(path)).collect();
    let lost = before.minus(own);
    let (mut take, mut remains) = (Vec::new(), Vec::new());
    let innermost = retained_fields(before, own, foreign);
    for path in lost.outermost() {
        let holders: Vec<&ManagedFieldsEntry> = holders(&path);
        if holders.is_empty() {
            continue;
        }
        // A list item is removed as a whole; of a map, only our former fields are removed.
        let is_item = matches!(path.elements().last(), Some(Element::Key(_) | Element::Value(_)));
        let inside = |entry: &&ManagedFieldsEntry| {
            entry.fields.owned_paths().iter().all(|held| !held.starts_with(&path) || before.contains(held))
        };
        let whole = is_item || holders.iter().all(inside);
        if whole && holders.iter().all(|entry| is_left(entry)) {
            take.push(path);
            continue;
        }
        for survivor in innermost.iter().filter(|survivor| survivor.path.starts_with(&path)) {
            let mut others = foreign.iter().filter(|entry| entry.fields.contains_or_below(&survivor.path));
            if !is_item && others.all(&is_left) {
                take.push(survivor.path.clone());
            } else {
                let why = format!("owned by {}", survivor.managers.join(", "));
                remains.push(LeftoverField { field: survivor.path.to_string(), why });
            }
        }
    }
    (take, remains)
}

fn is_taken_from(entry: &ManagedFieldsEntry, predecessor: Option<&AdoptedFrom>) -> bool {
    TAKEN_FROM.contains(&&*entry.manager) || predecessor.is_some_and(|it| it.has_left_behind(entry))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cluster::ApiStatus;

    fn entry(manager: &str, fields: Value) -> ManagedFieldsEntry {
        let entry = json!({"manager": manager, "operation": "Update", "fieldsV1": fields});
        ManagedFieldsEntry::parse(entry.as_object().unwrap())
    }

    #[test]
    fn what_only_people_s_tools_hold_is_removed() {
        let set = |fields: Value| FieldSet::parse(&fields);
        let item = |fields: Value| json!({"f:c": {"k:{\"name\":\"x\"}": fields}});
        let check =
            |before: Value, own: Value, foreign: &[ManagedFieldsEntry], take: &[&str], remains: &[&str]| {
                let predecessor = AdoptedFrom::from_annotation(
                    "argoproj.io/Application|argocd/shop",
                    "2026-01-02T03:04:05Z",
                );
                let is_left = |entry: &ManagedFieldsEntry| is_taken_from(entry, predecessor.as_ref());
                let (taken, stay) = survivors(&set(before), &set(own), foreign, is_left);
                let taken: Vec<String> = taken.iter().map(ToString::to_string).collect();
                let stay: Vec<String> = stay.iter().map(|it| format!("{}: {}", it.field, it.why)).collect();
                assert_eq!((taken, stay), (owned(take), owned(remains)));
            };
        let data = || json!({"f:data": {"f:a": {}, "f:b": {}}});
        let less = || json!({"f:data": {"f:a": {}}});
        let (kubectl, robot) = (entry("kubectl-create", data()), entry("robot", data()));
        check(data(), less(), &[], &[], &[]);
        check(data(), less(), std::slice::from_ref(&kubectl), &["data.b"], &[]);
        check(data(), less(), &[kubectl, robot], &[], &["data.b: owned by kubectl-create, robot"]);
        // The same holds for fields that the adopted tool has left behind, and not for those that
        // it has written since then.
        let at = |time: &str| ManagedFieldsEntry { time: time.into(), ..entry("argocd-controller", data()) };
        check(data(), less(), &[at("2026-01-02T03:04:05Z")], &["data.b"], &[]);
        check(data(), less(), &[at("2026-01-02T03:04:06Z")], &[], &["data.b: owned by argocd-controller"]);
        check(
            data(),
            less(),
            &[entry("kustomize-controller", data())],
            &[],
            &["data.b: owned by kustomize-controller"],
        );
        // An item is removed with all fields that kubectl wrote into it.
        let ours = item(json!({".": {}, "f:name": {}, "f:image": {}}));
        let theirs = item(json!({".": {}, "f:name": {}, "f:image": {}, "f:env": {}}));
        check(ours, json!({}), &[entry("helm", theirs)], &["c[name=x]"], &[]);
        // Of a map, only our former fields are removed.
        let ours = json!({"f:m": {".": {}, "f:a": {}}});
        let theirs = json!({"f:m": {".": {}, "f:a": {}, "f:more": {}}});
        check(ours, json!({}), &[entry("helm", theirs)], &["m.a"], &[]);
    }

    #[test]
    fn nothing_of_a_secret_is_quoted_when_its_field_stays() {
        let refusal = ApiStatus {
            code: 422,
            reason: "Invalid".into(),
            message: "Invalid value: \"hunter2\"".into(),
            causes: Vec::new(),
            retry_after: None,
        };
        let failure = ApiError::Refused(Box::new(refusal));
        let why = |kind: &str| {
            not_taken(kind == "Secret", &[FieldPath::of_fields(&["data", "b"])], &failure).remove(0).why
        };
        assert_eq!(why("ConfigMap"), "it could not be removed: Invalid value: \"hunter2\"");
        assert!(
            why("Secret").contains("422 Invalid") && !why("Secret").contains("hunter2"),
            "{}",
            why("Secret")
        );
    }

    fn owned(texts: &[&str]) -> Vec<String> {
        texts.iter().map(|text| (*text).to_owned()).collect()
    }
}
