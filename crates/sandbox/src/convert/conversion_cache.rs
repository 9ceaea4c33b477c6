//! Responses of conversion webhooks to one request, and the calls that are still missing.
//!
//! In: objects and the versions to convert them to.
//! Out: the converted objects, as soon as the webhooks were called. Decisions of the first attempt
//! are kept, because the next attempt must need the same conversions: the generated name, and the
//! object that is about to be stored.

use std::cell::RefCell;
use std::collections::HashMap;
use std::sync::Arc;

use serde_json::Value;

use super::conversion_webhook::ConversionWebhook;
use crate::admission::AdmissionResponses;
use crate::store::Key;

/// Conversions that one request needs. The default value belongs to no request and calls no
/// webhook.
#[derive(Default)]
pub(crate) struct ConversionCache {
    asks: bool,
    known: RefCell<HashMap<String, Result<Value, String>>>,
    missing: RefCell<Vec<PendingConversion>>,
    /// Name that the request has generated for its object.
    name: Option<String>,
    draft: RefCell<Option<Draft>>,
    /// Responses of admission webhooks.
    pub(crate) admissions: AdmissionResponses,
}

struct PendingConversion {
    hook: Arc<ConversionWebhook>,
    key: String,
    object: Value,
    version: String,
}

/// Object that is about to be stored, and the revision that it replaces.
struct Draft {
    key: Key,
    revision: Option<u64>,
    object: Value,
}

impl ConversionCache {
    /// Returns an empty cache for a request.
    pub(crate) fn of_request() -> Self {
        Self { asks: true, ..Self::default() }
    }

    /// True if webhooks are called at all.
    pub(crate) fn calls_webhooks(&self) -> bool {
        self.asks
    }

    /// True if a webhook must be called first: the result of this attempt is discarded then.
    pub(crate) fn has_pending(&self) -> bool {
        !self.missing.borrow().is_empty() || self.admissions.has_pending()
    }

    /// Calls the missing webhooks, one object after the other, as an API server does. After the
    /// first failure all others fail with the same message, because the request fails anyway.
    pub(crate) async fn call_pending(&mut self) {
        let mut failure: Option<String> = None;
        for PendingConversion { hook, key, object, version } in std::mem::take(self.missing.get_mut()) {
            let answer = match &failure {
                Some(words) => Err(words.clone()),
                None => hook.convert(&object, &version).await,
            };
            if let Err(words) = &answer {
                failure = Some(words.clone());
            }
            self.known.get_mut().insert(key, answer);
        }
        self.admissions.ask().await;
    }

    /// Returns the object in another version, if the webhook was called for it; else records the
    /// call.
    pub(super) fn find(
        &self,
        hook: &Arc<ConversionWebhook>,
        object: &Value,
        version: &str,
    ) -> Result<Value, String> {
        let key = format!("{version} {object}");
        if let Some(known) = self.known.borrow().get(&key) {
            return known.clone();
        }
        let mut missing = self.missing.borrow_mut();
        if self.asks && missing.iter().all(|question| question.key != key) {
            let (object, version) = (object.clone(), version.to_owned());
            missing.push(PendingConversion { hook: hook.clone(), key, object, version });
        }
        Err("the conversion webhook was not called".to_owned())
    }

    /// Returns the generated name of an object; the same in every attempt.
    pub(crate) fn name(&mut self, make: impl FnOnce() -> String) -> String {
        if self.asks { self.name.get_or_insert_with(make).clone() } else { make() }
    }

    /// True if the request has generated the name of its object.
    pub(crate) fn has_named(&self) -> bool {
        self.name.is_some()
    }

    /// Returns the object that this request stores under a key in place of a revision: the one of
    /// its first attempt. A later attempt would only have another uid and time.
    pub(crate) fn draft(&self, key: &Key, revision: Option<u64>, object: Value) -> Value {
        // An attempt with missing conversions decides nothing.
        if self.has_pending() {
            return object;
        }
        let mut draft = self.draft.borrow_mut();
        match &*draft {
            Some(known) if known.key == *key && known.revision == revision => known.object.clone(),
            _ => {
                *draft = Some(Draft { key: key.clone(), revision, object: object.clone() });
                object
            }
        }
    }
}
