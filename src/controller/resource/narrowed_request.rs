//! Continues the previous request while the newest spec cannot be applied.
//!
//! In: the Sync as the API server has it, and why its spec is refused. Out: the last request,
//! narrowed by each field of the newest spec that stops or narrows something. Its objects are kept;
//! it adopts nothing and prunes nothing.

use std::sync::Arc;

use serde_json::Value;

use super::SyncWorker;
use crate::api::{
    APPROVE_ANNOTATION, APPROVED_BY_ANNOTATION, MOVES_TO_ANNOTATION, REQUEST_ANNOTATION, RevisionHold,
    WindowOverride, signer_of,
};
use crate::controller::reconcile::request::ReconcileRequest;
use crate::report::ReconcileError;

/// Keeps the objects of the last request; false if there is none, or if nothing may be written
/// with its identity. Without a new error a refused spec stays refused. An approval or a
/// request of a person takes effect at once.
pub(super) fn keep_narrowed(worker: &mut SyncWorker, sync: &Value, refused: Option<ReconcileError>) -> bool {
    let Some(last) = worker.requests.as_ref().map(|requests| requests.borrow().clone()) else { return false };
    let spec = sync.get("spec").unwrap_or(&Value::Null);
    let Some(valid_spec) = last.valid_spec.narrowed_by_unsound(spec) else { return false };
    let refused = refused.or_else(|| last.refused.clone());
    let annotation = |key: &str| -> Option<String> {
        Some(sync.pointer("/metadata/annotations")?.get(key)?.as_str()?.to_owned())
    };
    let (approved, request) = (annotation(APPROVE_ANNOTATION), annotation(REQUEST_ANNOTATION));
    let signed = annotation(APPROVED_BY_ANNOTATION).unwrap_or_default();
    let approver = signer_of(&signed, approved.as_deref().unwrap_or_default());
    let moves_to = annotation(MOVES_TO_ANNOTATION).map(Box::from);
    let hold = RevisionHold::of_annotations(|key| sync.pointer("/metadata/annotations")?.get(key)?.as_str());
    let window_override =
        WindowOverride::of_annotations(|key| sync.pointer("/metadata/annotations")?.get(key)?.as_str());
    let is_same = (&valid_spec, &refused) == (&*last.valid_spec, &last.refused)
        && (&approved, &moves_to, &hold, &window_override)
            == (&last.approved, &last.moves_to, &last.hold, &last.window_override);
    if is_same && refused.is_none() {
        return true;
    }
    if !is_same {
        worker.generation += 1;
        worker.context.peers.set_request(&worker.name, worker.generation);
    }
    let (valid_spec, generation) = (Arc::new(valid_spec), worker.generation);
    worker.send_request(ReconcileRequest {
        valid_spec,
        spec_revision: generation,
        refused,
        approved,
        approver,
        hold,
        window_override,
        moves_to,
        request,
        ..ReconcileRequest::clone(&last)
    });
    true
}
