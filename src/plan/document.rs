//! A plan as a document for programs: the same content as the text, as JSON.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::difference::Difference;
use super::{Action, Change, Hold, Plan, Stage, Step};
use crate::object::ObjectId;

/// The document of a plan. Values of Secrets are left out.
pub fn document(plan: &Plan, differences: &BTreeMap<ObjectId, Vec<Difference>>) -> Value {
    let fields = |id: &ObjectId| differences.get(id).map(Vec::as_slice).unwrap_or_default();
    let stages = plan.stages.iter().map(|(stage, steps)| {
        let (phase, wave) = match stage {
            Stage::Apply { wave, .. } => ("apply", *wave),
            Stage::Prune { wave, .. } => ("prune", wave.0),
        };
        let steps: Vec<Value> = steps.iter().map(|step| step_document(step, fields(&step.id))).collect();
        json!({"phase": phase, "wave": wave, "steps": steps})
    });
    let held = plan.held.iter().map(|(id, hold)| {
        let mut entry = object(id);
        entry["reason"] = hold.reason().into();
        entry["message"] = hold.to_string().into();
        if let Hold::DriftReported(_) = hold {
            entry["fields"] = field_documents(id, fields(id));
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
        Action::Create => {}
        Action::Adopt { managers } => entry["managers"] = json!(managers),
        Action::Update(change) => {
            entry["reason"] = match change {
                Change::Committed => "Committed",
                Change::Drifted(_) => "Drifted",
                Change::EntryLost => "EntryLost",
                Change::Unverified => "Unverified",
            }
            .into();
            entry["fields"] = field_documents(&step.id, differences);
        }
        Action::HandOver { to } => entry["to"] = to.as_ref().into(),
        Action::Prune { uid, .. } => entry["uid"] = uid.as_ref().into(),
    }
    entry
}

fn field_documents(id: &ObjectId, differences: &[Difference]) -> Value {
    let secret = id.is("", "Secret");
    let field = |found: &Difference| match secret {
        true => json!({"path": found.path}),
        false => json!({"path": found.path, "live": found.live, "wanted": found.wanted}),
    };
    differences.iter().map(field).collect()
}

fn object(id: &ObjectId) -> Value {
    json!({"group": id.group(), "kind": id.kind(), "namespace": id.namespace(), "name": id.name()})
}
