//! JSON form of a plan, for programs: the same content as the text.
//!
//! Each field includes its complete unified diff, so that a consumer needs no diff of its own.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::difference::{Difference, HIDDEN};
use super::{Action, Change, Hold, Plan, Stage, Step};
use crate::desired::{Phase, PhaseWave};
use crate::diff::diff;
use moorline_core::object::ObjectId;

/// Formats a plan as JSON. Values of Secrets are left out.
pub fn plan_document(plan: &Plan, differences: &BTreeMap<ObjectId, Vec<Difference>>) -> Value {
    let fields = |id: &ObjectId| differences.get(id).map(Vec::as_slice).unwrap_or_default();
    let stages = plan.stages.iter().map(|(stage, steps)| {
        let (phase, wave) = match stage {
            Stage::Apply { turn: PhaseWave { phase: Phase::PreSync, wave }, .. } => ("before", *wave),
            Stage::Apply { turn: PhaseWave { phase: Phase::Sync, wave }, .. } => ("apply", *wave),
            Stage::Apply { turn: PhaseWave { phase: Phase::PostSync, wave }, .. } => ("after", *wave),
            Stage::Prune { wave, .. } => ("prune", wave.0),
        };
        let steps: Vec<Value> = steps.iter().map(|step| step_document(step, fields(&step.id))).collect();
        json!({"phase": phase, "wave": wave, "steps": steps})
    });
    let held = plan.held.iter().map(|(id, hold)| {
        let mut entry = object(id);
        entry["reason"] = hold.reason().into();
        entry["message"] = hold.to_string().into();
        if let Hold::DriftReported(drift) = hold {
            entry["manager"] = json!(drift.manager);
            entry["time"] = json!(drift.time);
            entry["fields"] = field_documents(id, fields(id), &drift.fields);
        }
        entry
    });
    json!({
        "stages": stages.collect::<Vec<_>>(),
        "held": held.collect::<Vec<_>>(),
        "kept": plan.kept.iter().map(object).collect::<Vec<_>>(),
        "approval": plan.approval,
    })
}

fn step_document(step: &Step, differences: &[Difference]) -> Value {
    let mut entry = object(&step.id);
    entry["action"] = step.action.verb().into();
    match &step.action {
        Action::Create => whole(&mut entry, &step.id, differences),
        Action::ReplaceHookRuns { runs } => {
            entry["follows"] = runs.iter().map(object).collect();
            whole(&mut entry, &step.id, differences);
        }
        Action::Adopt { managers } => {
            entry["managers"] = json!(managers);
            entry["fields"] = field_documents(&step.id, differences, &[]);
        }
        Action::Update(change) => {
            entry["reason"] = match change {
                Change::Committed => "Committed",
                Change::Drifted(_) => "Drifted",
                Change::EntryLost => "EntryLost",
                Change::Unverified => "Unverified",
                Change::MaybeDrifted => "Moved",
                Change::RerunHook => "Again",
            }
            .into();
            let known = match change {
                Change::Drifted(drift) => {
                    entry["manager"] = json!(drift.manager);
                    entry["time"] = json!(drift.time);
                    drift.fields.as_slice()
                }
                Change::Committed
                | Change::EntryLost
                | Change::Unverified
                | Change::MaybeDrifted
                | Change::RerunHook => &[],
            };
            entry["fields"] = field_documents(&step.id, differences, known);
        }
        Action::HandOver { to } => entry["to"] = to.as_ref().into(),
        Action::Prune { uid, .. } => entry["uid"] = uid.as_ref().into(),
    }
    entry
}

/// Adds the complete object that is created, if it is requested.
fn whole(entry: &mut Value, id: &ObjectId, differences: &[Difference]) {
    if let [whole] = differences {
        entry["object"] = field_document(id, whole);
    }
}

/// Formats the fields of an object: with values where bodies were compared and nothing is secret,
/// otherwise only the paths known from `managedFields`.
fn field_documents(id: &ObjectId, differences: &[Difference], known: &[String]) -> Value {
    match differences {
        [] => known.iter().map(|path| json!({"path": path})).collect(),
        found => found.iter().map(|found| field_document(id, found)).collect(),
    }
}

fn field_document(id: &ObjectId, found: &Difference) -> Value {
    let mut field = json!({"path": found.path});
    match found.values(id) {
        Some((live, wanted)) => {
            let lines: Vec<String> = diff(live, wanted).iter().map(ToString::to_string).collect();
            field["live"] = json!(live);
            field["wanted"] = json!(wanted);
            field["diff"] = json!(lines);
        }
        None => field["hidden"] = HIDDEN.into(),
    }
    field
}

fn object(id: &ObjectId) -> Value {
    json!({"group": id.group(), "kind": id.kind(), "namespace": id.namespace(), "name": id.name()})
}

#[cfg(test)]
mod tests {
    use super::super::{DriftMode, Policy, plan};
    use super::*;
    use crate::observed::{Drift, Observed, Ownership, Verification};
    use crate::plan::test_fixtures::{id, manifest, seen, there, wanted};

    #[test]
    fn the_document_says_what_the_text_says() {
        let desired = wanted(&[manifest("/ConfigMap|a/new", 1), manifest("/Secret|a/b", 0)]);
        let (secret, old) = (id("/Secret|a/b"), id("/ConfigMap|a/old"));
        let mut observed = there([secret.as_str(), old.as_str()]);
        let other = Ownership::OtherSync("ops/other".into());
        observed.insert(old.clone(), Observed { uid: "u".into(), ..seen(&old) });
        let plan_now = plan(&desired, &observed, &Policy::default());
        let found = Difference {
            path: "data.a".into(),
            live: Some(json!("old")),
            desired: Some(json!("new")),
            secret: false,
        };
        let differences = BTreeMap::from([(secret.clone(), vec![found])]);
        let object =
            |kind: &str, name: &str| json!({"group": "", "kind": kind, "namespace": "a", "name": name});
        let with = |mut object: Value, more: Value| {
            let Value::Object(more) = more else { unreachable!("a literal mapping") };
            more.into_iter().for_each(|(key, value)| object[key] = value);
            object
        };
        let hidden = json!({"path": "data.a", "hidden": "hidden: may contain Secret values"});
        let update = json!({"action": "update", "reason": "Committed", "fields": [hidden]});
        assert_eq!(
            plan_document(&plan_now, &differences),
            json!({
                "stages": [
                    {"phase": "apply", "wave": 0, "steps": [with(object("Secret", "b"), update)]},
                    {"phase": "apply", "wave": 1, "steps": [with(object("ConfigMap", "new"), json!({"action": "create"}))]},
                    {"phase": "prune", "wave": 0, "steps": [with(object("ConfigMap", "old"), json!({"action": "prune", "uid": "u"}))]},
                ],
                "held": [], "kept": [], "approval": null,
            })
        );
        observed.insert(secret.clone(), Observed { ownership: other, proven: false, ..seen(&secret) });
        let held =
            plan_document(&plan(&desired, &observed, &Policy::default()), &differences)["held"].clone();
        let reason = json!({"reason": "OwnedBy", "message": "the Sync ops/other owns it"});
        // A higher wave waits for a lower one, and prunes wait for all applies.
        let waits = json!({"reason": "WaitingForObject", "message": "it waits for Secret a/b"});
        assert_eq!(
            held,
            json!([
                with(object("ConfigMap", "new"), waits.clone()),
                with(object("ConfigMap", "old"), waits),
                with(object("Secret", "b"), reason)
            ])
        );
    }

    #[test]
    fn a_field_comes_with_its_unified_diff() {
        let config = id("/ConfigMap|a/a");
        let text = |wanted: &str| json!(format!("1\n2\n3\n4\n{wanted}\n"));
        let found = Difference {
            path: "data.f".into(),
            live: Some(text("old")),
            desired: Some(text("new")),
            secret: false,
        };
        let lines = ["@@ -2,4 +2,4 @@", " 2", " 3", " 4", "-old", "+new"];
        let expect = json!({"path": "data.f", "live": text("old"), "wanted": text("new"), "diff": lines});
        assert_eq!(field_document(&config, &found), expect);
        let removed = Difference { desired: None, live: Some(json!(5)), ..found };
        let expect = json!({"path": "data.f", "live": 5, "wanted": null, "diff": ["@@ -1 +0,0 @@", "-5"]});
        assert_eq!(field_document(&config, &removed), expect);
        for hidden in [
            field_document(&id("/Secret|a/a"), &removed),
            field_document(&config, &Difference { secret: true, ..removed }),
        ] {
            assert_eq!(hidden, json!({"path": "data.f", "hidden": "hidden: may contain Secret values"}));
        }
    }

    #[test]
    fn drift_that_is_known_from_managed_fields_alone_is_named() {
        let desired = wanted(&[manifest("/ConfigMap|a/a", 0)]);
        let object = &desired.objects()[0];
        let time = "2026-01-02T03:04:05Z";
        let (manager, time) = (Some("kubectl".into()), Some(time.to_owned()));
        let drift = Drift { fields: vec!["data.a".into()], manager, time };
        let (standing, recorded) = (Verification::Drifted(Box::new(drift)), Some(object.hash));
        let mut observed = there([]);
        observed.insert(
            object.id.clone(),
            Observed { verification: standing, recorded_hash: recorded, ..seen(&object.id) },
        );
        let shown = |drift, at: &str| {
            let policy = Policy { drift, ..Policy::default() };
            plan_document(&plan(&desired, &observed, &policy), &BTreeMap::new()).pointer(at).cloned().unwrap()
        };
        for (drift, at) in [(DriftMode::Repair, "/stages/0/steps/0"), (DriftMode::Report, "/held/0")] {
            assert_eq!(shown(drift, at)["fields"], json!([{"path": "data.a"}]));
            assert_eq!(shown(drift, at)["manager"], "kubectl");
            assert_eq!(shown(drift, at)["time"], "2026-01-02T03:04:05Z");
        }
    }
}
