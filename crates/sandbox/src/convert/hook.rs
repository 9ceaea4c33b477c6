//! The webhook that converts the objects of a definition.
//!
//! In: what a definition says of it, and an object. Out: the object in another version, or why not, in the words of
//! Kubernetes.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use serde_json::Value;

use super::call::Caller;
use super::review;
use crate::chance::Chance;

/// For how many seconds a webhook may think.
const PATIENCE: u64 = 30;

/// A webhook that converts.
pub(crate) struct Hook {
    caller: Caller,
    /// The form of reviews that both sides know.
    form: Option<&'static str>,
    asked: AtomicU64,
}

impl std::fmt::Debug for Hook {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str("Hook")
    }
}

impl Hook {
    /// The webhook of a definition; none if its versions differ by name alone.
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
        let caller = Caller::new(&webhook["clientConfig"], PATIENCE);
        Some(Arc::new(Self { caller, form, asked: AtomicU64::new(0) }))
    }

    /// The object in another version.
    pub(super) async fn convert(&self, object: &Value, version: &str) -> Result<Value, String> {
        let Some(form) = self.form else { return Err("no supported conversion review versions".to_owned()) };
        let uid = Chance::new(self.asked.fetch_add(1, Ordering::Relaxed)).uid();
        let request = review::request(form, &uid, object, version);
        let failed = |words| format!("conversion webhook for {} failed: {words}", review::title(object));
        let answer = self.caller.post(request.to_string()).await.map_err(failed)?;
        let objects = review::objects(form, &uid, &answer).map_err(failed)?;
        review::converted(object, version, objects)
    }
}
