//! What webhooks have said about what one request writes, and what one is still to be asked.
//!
//! In: questions, one after the other, because each webhook sees what the last one left. Out: the answers, in the next
//! attempt.

use std::collections::HashMap;
use std::sync::Arc;

use serde_json::Value;

use super::Admitter;

/// The answers of webhooks to one request.
#[derive(Default)]
pub(crate) struct Admissions {
    known: HashMap<String, Result<Value, String>>,
    missing: Option<Question>,
}

struct Question {
    key: String,
    admitter: Arc<Admitter>,
    request: Value,
}

impl Admissions {
    /// True if something has to be asked first.
    pub(crate) fn awaits(&self) -> bool {
        self.missing.is_some()
    }

    /// Asks what is missing.
    pub(crate) async fn ask(&mut self) {
        if let Some(Question { key, admitter, request }) = self.missing.take() {
            self.known.insert(key, admitter.admit(request).await);
        }
    }

    /// What the webhook said; none if it is yet to be asked.
    pub(super) fn find(
        &mut self,
        key: String,
        admitter: &Arc<Admitter>,
        request: impl FnOnce() -> Value,
    ) -> Option<Result<Value, String>> {
        let known = self.known.get(&key).cloned();
        if known.is_none() {
            self.missing = Some(Question { key, admitter: admitter.clone(), request: request() });
        }
        known
    }
}
