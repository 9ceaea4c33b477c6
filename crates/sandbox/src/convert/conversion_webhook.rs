//! The conversion webhook of a CustomResourceDefinition.
//!
//! In: the `conversion` of a definition, and an object.
//! Out: the object in another version, or the error in the wording of Kubernetes.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use serde_json::Value;

use super::review;
use super::webhook_client::WebhookClient;
use crate::seeded_random::SeededRandom;

/// Timeout of a webhook in seconds.
const TIMEOUT_SECONDS: u64 = 30;

/// A conversion webhook.
pub(crate) struct ConversionWebhook {
    caller: WebhookClient,
    /// Version of ConversionReview that both sides support.
    form: Option<&'static str>,
    asked: AtomicU64,
}

impl std::fmt::Debug for ConversionWebhook {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str("Hook")
    }
}

impl ConversionWebhook {
    /// Returns the webhook of a definition; `None` for the strategy `None`.
    pub(crate) fn of_definition(spec: &Value) -> Option<Arc<Self>> {
        let conversion = &spec["conversion"];
        if conversion["strategy"] != "Webhook" {
            return None;
        }
        let webhook = &conversion["webhook"];
        let forms = webhook["conversionReviewVersions"].as_array().into_iter().flatten();
        let form = forms.filter_map(Value::as_str).find_map(|form| match form {
            "v1" => Some("v1"),
            "v1beta1" => Some("v1beta1"),
            _ => None,
        });
        let caller = WebhookClient::new(&webhook["clientConfig"], TIMEOUT_SECONDS);
        Some(Arc::new(Self { caller, form, asked: AtomicU64::new(0) }))
    }

    /// Converts the object to another version.
    pub(super) async fn convert(&self, object: &Value, version: &str) -> Result<Value, String> {
        let Some(form) = self.form else { return Err("no supported conversion review versions".to_owned()) };
        let uid = SeededRandom::new(self.asked.fetch_add(1, Ordering::Relaxed)).uid();
        let request = review::request(form, &uid, object, version);
        let failed = |words| format!("conversion webhook for {} failed: {words}", review::title(object));
        let answer = self.caller.post(request.to_string()).await.map_err(failed)?;
        let objects = review::objects(form, &uid, &answer).map_err(failed)?;
        review::converted(object, version, objects)
    }
}
