//! Tests: the observed state of an object after a write of ours and later writes of others.

use serde_json::{Map, Value, json};

use super::*;
use moorline_core::object::{ObjectId, Origin};

const OURS: &str = "moorline/ops/web";

/// The metadata of an object in one version after another.
#[derive(Clone)]
struct Live {
    kind: (&'static str, &'static str),
    metadata: Value,
}

impl Live {
    /// The metadata in the response to our apply.
    fn applied(group: &'static str, kind: &'static str) -> Self {
        let id = format!("ops/web|{group}/{kind}|shop/a");
        let fields = json!({
            "f:metadata": {"f:labels": {"f:moorline.dev/sync": {}}, "f:annotations": {"f:moorline.dev/id": {}, "f:moorline.dev/spec-hash": {}}},
            "f:spec": {"f:replicas": {}, "f:containers": {"k:{\"name\":\"app\"}": {".": {}, "f:image": {}, "f:name": {}}}},
        });
        let metadata = json!({
            "name": "a", "namespace": "shop", "uid": "u1", "resourceVersion": "100", "generation": 1,
            "labels": {"moorline.dev/sync": "ops.web"},
            "annotations": {"moorline.dev/id": id, "moorline.dev/spec-hash": format!("v1:{}", "a5".repeat(32))},
            "managedFields": [{"manager": OURS, "operation": "Apply", "apiVersion": "v1", "time": "2026-01-01T00:00:00Z", "fieldsType": "FieldsV1", "fieldsV1": fields}],
        });
        Self { kind: (group, kind), metadata }
    }

    /// A later version, after a change.
    fn then(mut self, change: impl FnOnce(&mut Value)) -> Self {
        let version: u64 = self.metadata["resourceVersion"].as_str().unwrap().parse().unwrap();
        self.metadata["resourceVersion"] = (version + 1).to_string().into();
        change(&mut self.metadata);
        self
    }

    fn object(&self) -> Object {
        let (group, kind) = self.kind;
        let Value::Object(body) = json!({"metadata": self.metadata}) else {
            unreachable!("a literal mapping")
        };
        let origin = Origin { file: "live".into(), document: 0, line: 1, item: None };
        Object { id: ObjectId::new(group, kind, "shop", "a").unwrap(), version: "v1".into(), body, origin }
    }
}

fn owner() -> SyncName {
    SyncName::new("ops", "web")
}

fn again(known: &Observed, live: &Live) -> Observed {
    known.update_from_event(&live.object(), &owner())
}

fn applied(live: &Live) -> Observed {
    Observed::from_apply(&live.object(), &owner())
}

fn entry(manager: &str, subresource: &str, time: &str, fields: Value) -> Value {
    json!({"manager": manager, "operation": "Update", "subresource": subresource, "apiVersion": "v1", "time": time, "fieldsType": "FieldsV1", "fieldsV1": fields})
}

fn push(metadata: &mut Value, entry: Value) {
    metadata["managedFields"].as_array_mut().unwrap().push(entry);
}

fn own(metadata: &mut Value) -> &mut Map<String, Value> {
    metadata["managedFields"][0].as_object_mut().unwrap()
}

/// A short text for a verification state: `verified`, `moved`, `kubectl-edit: spec.replicas`.
fn shown(standing: &Verification) -> String {
    match standing {
        Verification::Verified => "verified".to_owned(),
        Verification::Believed => "believed".to_owned(),
        Verification::Unverified => "unverified".to_owned(),
        Verification::MaybeDrifted => "moved".to_owned(),
        Verification::Drifted(drift) => {
            format!("{}: {}", drift.manager.as_deref().unwrap_or("?"), drift.fields.join(", "))
        }
    }
}

/// The state after one event, for a kind with a trusted generation and for one without.
fn check(change: fn(&mut Value), deployment: &str, config_map: &str) {
    for (kind, expect) in [(("apps", "Deployment"), deployment), (("", "ConfigMap"), config_map)] {
        let before = Live::applied(kind.0, kind.1);
        let seen = again(&applied(&before), &before.clone().then(change));
        assert_eq!(shown(&seen.verification), expect, "{kind:?}");
    }
}

fn both(change: fn(&mut Value), expect: &str) {
    check(change, expect, expect);
}

#[test]
fn fields_that_we_lost_are_drift_and_their_new_owner_is_named() {
    both(
        |metadata| {
            drop(own(metadata)["fieldsV1"]["f:spec"].as_object_mut().unwrap().remove("f:replicas"));
            push(metadata, entry("old", "", "2026-01-01T00:00:01Z", json!({"f:spec": {"f:replicas": {}}})));
            push(
                metadata,
                entry("kubectl-edit", "", "2026-01-01T00:00:09Z", json!({"f:spec": {"f:replicas": {}}})),
            );
            push(metadata, entry("later", "", "2026-01-01T00:00:10Z", json!({"f:spec": {"f:paused": {}}})));
        },
        "kubectl-edit: spec.replicas",
    );
    both(
        |metadata| {
            drop(own(metadata)["fieldsV1"]["f:spec"].as_object_mut().unwrap().remove("f:replicas"));
            push(
                metadata,
                entry("hpa", "scale", "2026-01-01T00:00:09Z", json!({"f:spec": {"f:replicas": {}}})),
            );
        },
        "hpa (scale): spec.replicas",
    );
    // A manager that removes an item owns nothing.
    both(
        |metadata| drop(own(metadata)["fieldsV1"]["f:spec"].as_object_mut().unwrap().remove("f:containers")),
        "?: spec.containers[name=app]",
    );
}

#[test]
fn our_marks_are_compared_by_value() {
    both(
        |metadata| metadata["labels"]["moorline.dev/sync"] = "other".into(),
        "?: metadata.labels[\"moorline.dev/sync\"]",
    );
    both(
        |metadata| drop(metadata.as_object_mut().unwrap().remove("labels")),
        "?: metadata.labels[\"moorline.dev/sync\"]",
    );
    both(
        |metadata| {
            metadata["annotations"]["moorline.dev/spec-hash"] = "".into();
            push(
                metadata,
                entry(
                    "k9s",
                    "",
                    "",
                    json!({"f:metadata": {"f:annotations": {"f:moorline.dev/spec-hash": {}}}}),
                ),
            );
        },
        "k9s: metadata.annotations[\"moorline.dev/spec-hash\"]",
    );
}

#[test]
fn an_entry_that_is_gone_names_only_what_others_took() {
    both(|metadata| metadata["managedFields"] = json!([]), "?: ");
    both(
        |metadata| {
            metadata["managedFields"] =
                json!([entry("velero", "", "", json!({"f:spec": {"f:replicas": {}}}))])
        },
        "velero: spec.replicas",
    );
    both(
        |metadata| metadata["deletionTimestamp"] = "2026-01-01T00:00:09Z".into(),
        "?: metadata.deletionTimestamp",
    );
    both(|metadata| metadata["uid"] = "u2".into(), "?: metadata.uid");
}

#[test]
fn a_write_that_took_nothing_is_judged_by_the_generation_or_verified() {
    check(|_| {}, "verified", "moved");
    check(
        |metadata| push(metadata, entry("x", "", "", json!({"f:spec": {"f:paused": {}}}))),
        "verified",
        "moved",
    );
    check(|metadata| push(metadata, entry("x", "status", "", json!({}))), "verified", "verified");
    check(
        |metadata| {
            push(metadata, entry("x", "status", "", json!({})));
            push(metadata, entry("x", "", "", json!({"f:spec": {"f:paused": {}}})));
        },
        "verified",
        "moved",
    );
    check(|metadata| metadata["generation"] = 2.into(), "moved", "moved");
    check(
        |metadata| {
            metadata["generation"] = 2.into();
            push(metadata, entry("x", "status", "", json!({})));
        },
        "moved",
        "verified",
    );
    // A missing generation proves nothing.
    check(|metadata| drop(metadata.as_object_mut().unwrap().remove("generation")), "moved", "moved");
    // The same manager applied other values; the same fields are named in another API version.
    both(|metadata| own(metadata)["time"] = "2026-01-01T00:00:01Z".into(), "moved");
    both(|metadata| own(metadata)["apiVersion"] = "v2".into(), "moved");
    both(|metadata| own(metadata)["fieldsV1"]["f:more"] = json!({}), "moved");
}

#[test]
fn a_status_is_followed_and_the_state_stays_known() {
    let before = Live::applied("", "Service");
    let mut known = applied(&before);
    let mut live = before;
    for second in 1..5 {
        live = live.then(|metadata| {
            let entries = metadata["managedFields"].as_array_mut().unwrap();
            entries.truncate(1);
            entries.push(entry("x", "status", &format!("2026-01-01T00:00:0{second}Z"), json!({})));
        });
        known = again(&known, &live);
        assert_eq!(known.verification, Verification::Verified);
    }
    // Two writes in one second change no entry.
    live = live.then(|_| {});
    known = again(&known, &live);
    assert_eq!(known.verification, Verification::MaybeDrifted);
    live = live.then(|metadata| push(metadata, entry("y", "status", "", json!({}))));
    assert_eq!(again(&known, &live).verification, Verification::MaybeDrifted, "nobody has looked");
    assert_eq!(applied(&live).verification, Verification::Verified);
}

#[test]
fn an_older_event_undoes_nothing() {
    let first = Live::applied("apps", "Deployment");
    let edited = first.clone().then(|metadata| {
        drop(own(metadata)["fieldsV1"]["f:spec"].as_object_mut().unwrap().remove("f:replicas"));
    });
    let healed = Live { metadata: first.metadata.clone(), ..first }.then(|metadata| {
        metadata["resourceVersion"] = "102".into();
        own(metadata)["time"] = "2026-01-01T00:00:05Z".into();
    });
    let known = applied(&healed);
    assert_eq!(again(&known, &edited), known, "the edit that was healed already");
    let drifted = again(&applied(&first), &edited);
    assert_eq!(shown(&drifted.verification), "?: spec.replicas");
    assert_eq!(again(&drifted, &first), drifted, "a version before the edit");
    assert_eq!(again(&drifted, &edited), drifted, "the same once more");
    // Versions without an order: our own is recognized, others are judged.
    let named = |live: &Live, version: &str| {
        let mut live = live.clone();
        live.metadata["resourceVersion"] = version.into();
        live
    };
    let drifted = again(&applied(&named(&first, "x")), &named(&edited, "a"));
    assert_eq!(shown(&drifted.verification), "?: spec.replicas");
    assert_eq!(again(&drifted, &named(&first, "x")), drifted);
}

#[test]
fn versions_are_compared_as_numbers_of_any_length() {
    assert_eq!(age("9", "10"), Some(Ordering::Less));
    assert_eq!(age("10", "10"), Some(Ordering::Equal));
    assert_eq!(age("18446744073709551617", "18446744073709551616"), Some(Ordering::Greater));
    assert_eq!(age("010", "9"), Some(Ordering::Greater));
    assert_eq!(age("", "9"), None);
    assert_eq!(age("a", "9"), None);
}

fn before_edit() -> Live {
    Live::applied("apps", "Deployment")
}

fn edited_by_hand() -> Live {
    before_edit().then(|metadata| {
        drop(own(metadata)["fieldsV1"]["f:spec"].as_object_mut().unwrap().remove("f:replicas"));
        push(
            metadata,
            entry("kubectl-edit", "", "2026-01-01T00:00:09Z", json!({"f:spec": {"f:replicas": {}}})),
        );
    })
}

#[test]
fn what_is_known_gets_worse_until_an_apply() {
    let (before, edited) = (before_edit(), edited_by_hand());
    let known = again(&applied(&before), &edited);
    let Verification::Drifted(drift) = &known.verification else { panic!("{known:?}") };
    assert_eq!(drift.time.as_deref(), Some("2026-01-01T00:00:09Z"));
    // The entries are reset: the author is remembered.
    let reset = edited.then(|metadata| metadata["managedFields"].as_array_mut().unwrap().truncate(1));
    assert_eq!(shown(&again(&known, &reset).verification), "kubectl-edit: spec.replicas");
    // An event never verifies an object that was not verified before.
    let unverified = Observed::from_object(&before.object(), &owner());
    let moved = before.then(|metadata| metadata["generation"] = 2.into());
    assert_eq!(again(&unverified, &moved).verification, Verification::Unverified);
    // But a loss meanwhile is detected.
    let listed = Observed::first_seen(&before_edit().object(), &owner());
    assert_eq!(shown(&again(&listed, &edited_by_hand()).verification), "kubectl-edit: spec.replicas");
    assert_eq!(again(&listed, &before_edit().then(|_| {})).verification, Verification::Unverified);
    // Without our entry nothing can be compared, and any write leads to a check.
    let hidden = Live::applied("apps", "Deployment").then(|metadata| metadata["managedFields"] = json!([]));
    let known = applied(&hidden);
    assert_eq!(shown(&again(&known, &hidden.then(|_| {})).verification), "moved");
}

#[test]
fn ten_thousand_objects_cost_less_than_twenty_megabytes() {
    let known = applied(&Live::applied("apps", "Deployment"));
    let baseline = known.baseline.as_ref().unwrap();
    let own = baseline.own_entry.as_ref().unwrap();
    // Every allocation costs some bytes more than its content.
    let texts = 40 + 10 + 10 + own.heap();
    let heap = texts + size_of::<Baseline>() + 6 * 16;
    let one = size_of::<Observed>() + heap;
    assert!(size_of::<Observed>() <= 280, "{}", size_of::<Observed>());
    assert!(size_of::<Baseline>() <= 192, "{}", size_of::<Baseline>());
    assert!(one * 10_000 < 10 << 20, "{one} bytes for one object");
}
