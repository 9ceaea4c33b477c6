//! Admission webhooks as their configurations define them.
//!
//! In: MutatingWebhookConfigurations.
//! Out: [`AdmissionWebhook`]s in the order of their calls; which of them match a write, and their
//! responses.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use serde_json::Value;

use super::{Admission, CONFIGURATIONS, is_namespace, review};
use crate::convert::WebhookClient;
use crate::seeded_random::SeededRandom;
use crate::store::Store;

/// Timeout of a webhook without `timeoutSeconds`, in seconds.
const DEFAULT_TIMEOUT_SECONDS: u64 = 10;

/// An admission webhook.
pub(crate) struct AdmissionWebhook {
    pub(super) name: String,
    /// Unique id: configuration name and webhook name.
    pub(super) id: String,
    webhook: Value,
    caller: WebhookClient,
    asked: AtomicU64,
}

/// Returns all webhooks, ordered by the name of their configuration and their position in it.
pub(crate) fn admitters(store: &Store) -> Arc<[Arc<AdmissionWebhook>]> {
    let mut admitters = Vec::new();
    for stored in store.all(CONFIGURATIONS, None) {
        let mut body = stored.body();
        for webhook in body["webhooks"].as_array_mut().into_iter().flatten() {
            let name = webhook["name"].as_str().unwrap_or_default().to_owned();
            let timeout = webhook["timeoutSeconds"].as_u64().unwrap_or(DEFAULT_TIMEOUT_SECONDS);
            let caller = WebhookClient::new(&webhook["clientConfig"], timeout);
            let id = format!("{}/{name}", stored.key.name);
            let webhook = webhook.take();
            admitters.push(Arc::new(AdmissionWebhook {
                name,
                id,
                webhook,
                caller,
                asked: AtomicU64::new(0),
            }));
        }
    }
    admitters.into()
}

impl AdmissionWebhook {
    /// True if a failed call admits the write: `failurePolicy: Ignore`.
    pub(super) fn fails_open(&self) -> bool {
        self.webhook["failurePolicy"] == "Ignore"
    }

    /// True if the webhook is called again after later webhooks changed the object.
    pub(super) fn is_asked_again(&self) -> bool {
        self.webhook["reinvocationPolicy"] == "IfNeeded"
    }

    /// Returns the version in which the webhook receives the object; `None` if none of its rules
    /// matches.
    pub(super) fn version(&self, about: &Admission<'_>) -> Option<usize> {
        let (own, versions) = (about.target.version, &about.target.resource.versions);
        let rules = || self.webhook["rules"].as_array().into_iter().flatten();
        if rules().any(|rule| is_about(rule, about, own)) {
            return Some(own);
        }
        if self.webhook["matchPolicy"] == "Exact" {
            return None;
        }
        let others = |rule: &Value| {
            (0..versions.len()).find(|at| versions[*at].is_served && is_about(rule, about, *at))
        };
        rules().find_map(others)
    }

    /// True if the namespace selector matches the labels of a namespace.
    pub(super) fn selects_namespace<'a>(&self, label: &dyn Fn(&str) -> Option<&'a str>) -> bool {
        fits(&self.webhook["namespaceSelector"], label)
    }

    /// True if the object selector matches the labels of an object.
    pub(super) fn selects(&self, object: &Value) -> bool {
        let selector = &self.webhook["objectSelector"];
        let is_empty = |selector: &Value| {
            ["matchLabels", "matchExpressions"]
                .iter()
                .all(|part| selector.get(part).is_none_or(Value::is_null))
        };
        is_empty(selector)
            || object.is_object() && fits(selector, &|name| object["metadata"]["labels"][name].as_str())
    }

    /// Calls the webhook and returns its response, with the patch decoded to a list of operations.
    pub(super) async fn admit(&self, request: Value) -> Result<Value, String> {
        let mut forms = self.webhook["admissionReviewVersions"].as_array().into_iter().flatten();
        let form = forms.find_map(|form| match form.as_str()? {
            "v1" => Some("v1"),
            "v1beta1" => Some("v1beta1"),
            _ => None,
        });
        let Some(form) = form else {
            let words = "webhook does not accept known AdmissionReview versions (v1, v1beta1)";
            return Err(format!("could not create admission objects: {words}"));
        };
        let uid = SeededRandom::new(self.asked.fetch_add(1, Ordering::Relaxed)).uid();
        let failed = |words| format!("failed to call webhook: {words}");
        let answer = self.caller.post(review::review(form, &uid, request)).await.map_err(failed)?;
        review::response(form, &uid, &answer)
    }
}

/// True if a rule would match the write in the given version.
fn is_about(rule: &Value, about: &Admission<'_>, version: usize) -> bool {
    let resource = &about.target.resource;
    let texts = |field: &str| rule[field].as_array().into_iter().flatten().filter_map(Value::as_str);
    let names = |field: &str, wanted: &str| texts(field).any(|one| one == "*" || one == wanted);
    let is_own = |found: &str, wanted: &str| found == "*" || found == wanted;
    let is_resource = |one: &str| {
        let (plural, part) = one.split_once('/').unwrap_or((one, ""));
        is_own(plural, &resource.plural) && is_own(part, &about.target.subresource)
    };
    let is_in_namespace = !is_namespace(resource) && !about.namespace().is_empty();
    let is_in_scope = match rule["scope"].as_str() {
        Some("Namespaced") => is_in_namespace,
        Some("Cluster") => !is_in_namespace,
        _ => true,
    };
    is_in_scope
        && names("operations", about.operation)
        && names("apiGroups", &resource.group)
        && names("apiVersions", &resource.versions[version].name)
        && texts("resources").any(is_resource)
}

/// True if the labels match a selector.
fn fits<'a>(selector: &Value, label: &dyn Fn(&str) -> Option<&'a str>) -> bool {
    let mut equal = selector["matchLabels"].as_object().into_iter().flatten();
    let mut expressions = selector["matchExpressions"].as_array().into_iter().flatten();
    equal.all(|(name, value)| label(name) == value.as_str())
        && expressions.all(|one| {
            let found = label(one["key"].as_str().unwrap_or_default());
            let mut values = one["values"].as_array().into_iter().flatten();
            match one["operator"].as_str() {
                Some("In") => found.is_some_and(|found| values.any(|value| *value == *found)),
                Some("NotIn") => !found.is_some_and(|found| values.any(|value| *value == *found)),
                Some("Exists") => found.is_some(),
                Some("DoesNotExist") => found.is_none(),
                _ => false,
            }
        })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn labels_are_as_a_selector_wants_them() {
        let labels = json!({"app": "shop", "tier": "web"});
        let check = |selector: Value, expect: bool| {
            assert_eq!(fits(&selector, &|name| labels[name].as_str()), expect, "{selector}");
        };
        let expression = |key: &str, operator: &str, values: &[&str]| json!({"matchExpressions": [{"key": key, "operator": operator, "values": values}]});
        check(json!({}), true);
        check(json!({"matchLabels": {"app": "shop", "tier": "web"}}), true);
        check(json!({"matchLabels": {"app": "shop", "tier": "db"}}), false);
        check(expression("app", "In", &["cart", "shop"]), true);
        check(expression("zone", "In", &["shop"]), false);
        check(expression("app", "NotIn", &["shop"]), false);
        check(expression("zone", "NotIn", &["shop"]), true);
        check(expression("app", "Exists", &[]), true);
        check(expression("app", "DoesNotExist", &[]), false);
        check(expression("app", "Else", &[]), false);
    }
}
