//! Responses of admission webhooks to one request, and the call that is still missing.
//!
//! In: calls, one after the other, because each webhook sees the object as the previous one left
//! it.
//! Out: the responses, available to the next attempt of the request.

use std::collections::HashMap;
use std::sync::Arc;

use serde_json::Value;

use super::AdmissionWebhook;

/// Responses of admission webhooks to one request.
#[derive(Default)]
pub(crate) struct AdmissionResponses {
    known: HashMap<String, Result<Value, String>>,
    missing: Option<PendingReview>,
}

struct PendingReview {
    key: String,
    admitter: Arc<AdmissionWebhook>,
    request: Value,
}

impl AdmissionResponses {
    /// True if a webhook must be called first.
    pub(crate) fn has_pending(&self) -> bool {
        self.missing.is_some()
    }

    /// Calls the webhook that is missing.
    pub(crate) async fn ask(&mut self) {
        if let Some(PendingReview { key, admitter, request }) = self.missing.take() {
            self.known.insert(key, admitter.admit(request).await);
        }
    }

    /// Returns the response of the webhook; `None` if it must be called first.
    pub(super) fn find(
        &mut self,
        key: String,
        admitter: &Arc<AdmissionWebhook>,
        request: impl FnOnce() -> Value,
    ) -> Option<Result<Value, String>> {
        let known = self.known.get(&key).cloned();
        if known.is_none() {
            self.missing = Some(PendingReview { key, admitter: admitter.clone(), request: request() });
        }
        known
    }
}
