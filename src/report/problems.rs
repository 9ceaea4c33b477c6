//! The problem list of a status: each problem with its object, its place in Git and its reason.
//!
//! In: an error, or the outcomes of a reconcile. Out: entries for the status, limited in number and
//! length.

use super::health_condition;
use super::{MAX_MESSAGE, MAX_PROBLEMS, ReconcileError, ReconcileInputs, sentence};
use crate::api::{ContestedField, StatusProblem, SyncStatus};
use crate::health::HealthSummary;
use crate::object::ObjectId;
use crate::plan::{Hold, Outcome};

/// Contested fields, one entry per field.
pub(super) fn contested(pass: &ReconcileInputs<'_>) -> Vec<ContestedField> {
    let of_object = |(id, outcome): (&ObjectId, &Outcome)| match outcome {
        Outcome::Held(Hold::Contested(contest)) => {
            let manager = contest.manager.as_deref().map(str::to_owned);
            let line = |path| ContestedField { object: id.to_string(), path, manager: manager.clone() };
            let paths = contest.fields.iter().take(MAX_PROBLEMS).cloned().map(Some);
            let whole = contest.fields.is_empty().then_some(None);
            paths.chain(whole).map(line).collect()
        }
        _ => Vec::new(),
    };
    pass.outcomes.iter().flat_map(of_object).take(MAX_PROBLEMS).collect()
}

pub(super) fn problems(reconcile_error: &ReconcileError) -> Vec<StatusProblem> {
    let one = |message: &String| StatusProblem {
        object: None,
        file: None,
        reason: reconcile_error.reason().to_owned(),
        message: bounded(message),
    };
    match reconcile_error.problems.is_empty() {
        true => vec![one(&reconcile_error.message)],
        false => reconcile_error.problems.iter().take(MAX_PROBLEMS).map(one).collect(),
    }
}

/// Problems of objects: failures first, then holds.
pub(super) fn object_problems(
    pass: &ReconcileInputs<'_>,
    health: Option<&HealthSummary>,
) -> Vec<StatusProblem> {
    let one = |id: &ObjectId, reason: &str, message: String| StatusProblem {
        object: Some(id.to_string()),
        file: (pass.files)(id),
        reason: reason.to_owned(),
        message: bounded(&message),
    };
    let failed = pass.outcomes.iter().filter_map(|(id, outcome)| match outcome {
        Outcome::Failed(why) => Some(one(id, why.reason.as_str(), why.message.clone())),
        _ => None,
    });
    let held = pass.outcomes.iter().filter_map(|(id, outcome)| match outcome {
        Outcome::Held(hold) => Some(one(id, hold.reason(), sentence(hold))),
        _ => None,
    });
    let added = pass.extra_fields.iter().map(|(id, text)| one(id, "FieldsAdded", text.to_string()));
    let remarks = pass.remarks.iter().map(|it| one(&it.id, it.reason, it.message.clone()));
    let unwell = health.into_iter().flat_map(health_condition::unhealthy_objects);
    let unwell = unwell.map(|(id, reason, why)| one(id, reason, why.to_owned()));
    failed.chain(held).chain(unwell).chain(added).chain(remarks).take(MAX_PROBLEMS).collect()
}

/// The number of objects with a problem that the status does not list.
pub fn count_unlisted(status: &SyncStatus) -> usize {
    let counts = status.objects.unwrap_or_default();
    usize::try_from(counts.held + counts.failed).unwrap_or_default().saturating_sub(status.problems.len())
}

pub(super) fn bounded(text: &str) -> String {
    match text.char_indices().nth(MAX_MESSAGE) {
        None => text.to_owned(),
        Some((end, _)) => format!("{}…", &text[..end]),
    }
}
