//! Tests: which listed objects are believed after a start, and the suspicion about the others.

use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use moorline_core::object::{ObjectId, Origin};

const OURS: &str = "moorline/ops/web";
const APP: &str = r#"k:{"name":"app"}"#;
/// Time of our entry.
const OUR_TIME: &str = "2026-01-01T10:00:00Z";
const LATER: &str = "2026-01-01T11:00:00Z";
const EARLIER: &str = "2026-01-01T09:00:00Z";

fn owner() -> SyncName {
    SyncName::new("ops", "web")
}

fn metadata() -> Value {
    json!({"name": "a", "namespace": "shop", "labels": {"app": "a", "moorline.dev/sync": "ops.web"},
        "annotations": {"moorline.dev/id": "ops/web|apps/Deployment|shop/a", "moorline.dev/proof": "p"}})
}

/// The object as it would be applied now.
fn applied() -> Value {
    json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata(), "spec": {
        "replicas": 2, "paused": false, "selector": {"matchLabels": {"app": "a"}},
        "template": {"spec": {"containers": [{"name": "app", "image": "a:1", "args": ["x"]}]}}}})
}

/// Its metadata, as the server shows them after our apply.
fn listed() -> Value {
    let mut live = metadata();
    let fields = json!({
        "f:metadata": {"f:labels": {"f:app": {}, "f:moorline.dev/sync": {}},
            "f:annotations": {"f:moorline.dev/id": {}, "f:moorline.dev/proof": {}}},
        "f:spec": {"f:replicas": {}, "f:paused": {}, "f:selector": {}, "f:template": {"f:spec": {"f:containers": {
            APP: {".": {}, "f:name": {}, "f:image": {}, "f:args": {}}}}}},
    });
    live["uid"] = "u1".into();
    live["resourceVersion"] = "100".into();
    live["generation"] = 4.into();
    live["labels"]["theirs"] = "1".into();
    live["managedFields"] = json!([
        entry(OURS, "Apply", "", OUR_TIME, fields),
        entry("kube-controller-manager", "Update", "status", LATER, json!({"f:status": {"f:replicas": {}}})),
        entry("kubectl", "Update", "", EARLIER, json!({"f:metadata": {"f:labels": {"f:theirs": {}}}})),
    ]);
    live
}

fn entry(manager: &str, operation: &str, subresource: &str, time: &str, fields: Value) -> Value {
    json!({"manager": manager, "operation": operation, "subresource": subresource, "apiVersion": "apps/v1",
        "time": time, "fieldsType": "FieldsV1", "fieldsV1": fields})
}

fn object(kind: (&str, &str), metadata: Value) -> Object {
    let Value::Object(body) = json!({"metadata": metadata}) else { unreachable!("a literal mapping") };
    let origin = Origin { file: "live".into(), document: 0, line: 1, item: None };
    Object { id: ObjectId::new(kind.0, kind.1, "shop", "a").unwrap(), version: "v1".into(), body, origin }
}

/// The entry of a listed object, judged.
fn judged(kind: (&str, &str), metadata: Value, applied: &Value) -> Observed {
    let object = object(kind, metadata);
    let mut seen = Observed::first_listed(&object, &owner());
    let suspicion = match &seen.evidence {
        Some(evidence) => evidence.suspicion(&object.id, applied.as_object().unwrap()),
        None => return seen,
    };
    seen.judge(suspicion);
    seen
}

/// The suspicion after a change of what is listed: `believed`, or its name.
fn suspicion(change: impl FnOnce(&mut Value)) -> String {
    let mut metadata = listed();
    change(&mut metadata);
    shown(&judged(("apps", "Deployment"), metadata, &applied()))
}

fn shown(seen: &Observed) -> String {
    match (&seen.verification, seen.suspicion()) {
        (Verification::Believed, None) => "believed".to_owned(),
        (Verification::Unverified, Some(suspicion)) => format!("{suspicion:?}"),
        (standing, _) => format!("{standing:?}"),
    }
}

fn own(metadata: &mut Value) -> &mut Value {
    &mut metadata["managedFields"][0]
}

fn push(metadata: &mut Value, manager: &str, operation: &str, subresource: &str, time: &str) {
    let entry = entry(manager, operation, subresource, time, json!({"f:spec": {"f:minReadySeconds": {}}}));
    metadata["managedFields"].as_array_mut().unwrap().push(entry);
}

fn remove(value: &mut Value, name: &str) {
    value.as_object_mut().unwrap().remove(name).unwrap();
}

#[test]
fn what_the_server_shows_after_our_apply_is_believed() {
    let check = |change: fn(&mut Value), expect: &str| assert_eq!(suspicion(change), expect);
    check(|_| {}, "believed");
    check(|it| it["generation"] = 9.into(), "believed");
    check(|it| it["labels"]["theirs"] = "2".into(), "believed");
    check(|it| push(it, "hpa", "Update", "status", LATER), "believed");
    check(|it| push(it, "kubectl", "Update", "", EARLIER), "believed");
}

#[test]
fn each_trace_of_another_writer_is_a_suspicion() {
    let check = |change: fn(&mut Value), expect: &str| assert_eq!(suspicion(change), expect);
    check(|it| push(it, "kubectl-edit", "Update", "", LATER), "NewerWriter");
    check(|it| push(it, "kubectl-edit", "Update", "", OUR_TIME), "NewerWriter");
    check(|it| push(it, "kubectl-edit", "Update", "", "2026-01-01T09:59:57Z"), "NewerWriter");
    check(|it| push(it, "hpa", "Update", "scale", LATER), "NewerWriter");
    check(|it| push(it, "robot", "Apply", "", LATER), "NewerWriter");
    check(|it| push(it, "robot", "Apply", "", "yesterday"), "EntryUnusual");
    check(|it| push(it, "ancient-changes", "Update", "", EARLIER), "EntryUnusual");
    check(|it| push(it, "moorline/ops/gone", "Apply", "", EARLIER), "EntryUnusual");
    check(|it| push(it, OURS, "Update", "", EARLIER), "EntryUnusual");
    check(|it| own(it)["time"] = "soon".into(), "EntryUnusual");
    check(|it| own(it)["apiVersion"] = "apps/v1beta1".into(), "EntryUnusual");
    check(|it| remove(&mut own(it)["fieldsV1"]["f:spec"], "f:replicas"), "FieldsDiffer");
    check(|it| own(it)["fieldsV1"]["f:spec"]["f:more"] = json!({}), "FieldsDiffer");
    check(|it| it["labels"]["app"] = "b".into(), "MetadataDiffers");
    check(|it| remove(&mut it["labels"], "app"), "MetadataDiffers");
    check(|it| it["annotations"]["moorline.dev/proof"] = "q".into(), "MetadataDiffers");
    check(|it| it["managedFields"] = json!([]), "Unverified");
    check(|it| own(it)["manager"] = "kubectl".into(), "Unverified");
    // A newer writer does not hide what it changed, and no weaker sign hides a stronger one.
    check(
        |it| {
            push(it, "kubectl-edit", "Update", "", LATER);
            remove(&mut own(it)["fieldsV1"]["f:spec"], "f:replicas");
        },
        "NewerWriterAndDifference",
    );
    check(
        |it| {
            push(it, "kubectl-edit", "Update", "", LATER);
            it["labels"]["app"] = "b".into();
        },
        "NewerWriterAndDifference",
    );
    check(
        |it| {
            push(it, OURS, "Update", "", EARLIER);
            remove(&mut own(it)["fieldsV1"]["f:spec"], "f:replicas");
        },
        "FieldsDiffer",
    );
    let order = [
        Suspicion::NewerWriterAndDifference,
        Suspicion::FieldsDiffer,
        Suspicion::MetadataDiffers,
        Suspicion::NewerWriter,
        Suspicion::EntryUnusual,
        Suspicion::Unclear,
    ];
    assert!(order.is_sorted());
}

/// A custom resource may declare maps of objects: one that is owned as a whole may be emptied.
#[test]
fn where_the_schema_is_not_known_a_request_decides() {
    assert_eq!(shown(&judged(("example.com", "Widget"), listed(), &applied())), "Unclear");
    let (mut live, mut wanted) = (listed(), applied());
    remove(&mut own(&mut live)["fieldsV1"]["f:spec"], "f:selector");
    remove(&mut wanted["spec"], "selector");
    assert_eq!(shown(&judged(("example.com", "Widget"), live, &wanted)), "believed");
}

#[test]
fn an_event_never_makes_an_object_believed_and_ends_the_belief() {
    let first = object(("apps", "Deployment"), listed());
    let then = |version: &str, change: fn(&mut Value)| {
        let mut metadata = listed();
        metadata["resourceVersion"] = version.into();
        change(&mut metadata);
        object(("apps", "Deployment"), metadata)
    };
    let believed = judged(("apps", "Deployment"), listed(), &applied());
    let after = |seen: &Observed, event: &Object| seen.update_from_event(event, &owner()).verification;
    assert_eq!(after(&believed, &then("101", |_| {})), Verification::Believed, "the generation is the same");
    assert_eq!(after(&believed, &then("101", |it| it["generation"] = 5.into())), Verification::MaybeDrifted);
    let taken = then("101", |it| remove(&mut own(it)["fieldsV1"]["f:spec"], "f:replicas"));
    assert!(matches!(after(&believed, &taken), Verification::Drifted(_)));
    // Evidence counts only until the first event, and only once.
    let unjudged = Observed::first_listed(&first, &owner());
    assert!(unjudged.evidence.is_some() && Observed::first_seen(&first, &owner()).evidence.is_none());
    assert!(unjudged.update_from_event(&then("101", |_| {}), &owner()).evidence.is_none());
    assert!(!unjudged.update_from_event(&then("101", |_| {}), &owner()).overdue);
    for change in [Observed::unverify, Observed::mark_unverified, Observed::mark_overdue] {
        let (mut doubted, mut open) = (believed.clone(), unjudged.clone());
        change(&mut doubted);
        change(&mut open);
        open.judge(None);
        assert_eq!(
            [doubted.verification, open.verification],
            [Verification::Unverified, Verification::Unverified]
        );
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    /// The API server takes the path of each field that another manager changes or removes.
    #[test]
    fn a_change_of_any_field_that_we_own_is_suspected(at: prop::sample::Index, gains: bool, seconds in -5_i64..100_000) {
        let mut metadata = listed();
        let fields = FieldSet::parse(&own(&mut metadata)["fieldsV1"]);
        let paths = fields.owned_paths();
        let mut left = fields;
        let lost = FieldSet::from_paths([&paths[at.index(paths.len())]]);
        left.subtract_with_children(&lost);
        own(&mut metadata)["fieldsV1"] = left.to_fields_v1();
        if gains {
            let time = OUR_TIME.parse::<jiff::Timestamp>().unwrap() + jiff::SignedDuration::from_secs(seconds);
            let theirs = entry("kubectl-edit", "Update", "", &time.to_string(), lost.to_fields_v1());
            metadata["managedFields"].as_array_mut().unwrap().push(theirs);
        }
        let expect = if gains { Suspicion::NewerWriterAndDifference } else { Suspicion::FieldsDiffer };
        let seen = judged(("apps", "Deployment"), metadata, &applied());
        prop_assert_eq!((&seen.verification, seen.suspicion()), (&Verification::Unverified, Some(expect)));
    }
}
