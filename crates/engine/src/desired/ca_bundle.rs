//! CA bundles that an injector writes into webhooks, definitions and APIServices.
//!
//! In: a rendered object.
//! Out: the positions of bundles that the object asks an injector to fill and that Git leaves
//! empty. An empty bundle has no meaning: it is there because a tool requires the field, and
//! enforcing it would undo the injection that the object itself asks for.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;

use moorline_core::object::ObjectId;

/// Annotations by which an object asks for a bundle.
const ASKS: [&str; 4] = [
    "cert-manager.io/inject-apiserver-ca",
    "cert-manager.io/inject-ca-from",
    "cert-manager.io/inject-ca-from-secret",
    "service.beta.openshift.io/inject-cabundle",
];

/// Returns JSON pointers to the bundles that Git mentions but leaves empty for an injector.
pub(super) fn find_empty_bundles(id: &ObjectId, canonical: &[u8]) -> Vec<Box<str>> {
    let kind = (id.group(), id.kind());
    let place = match kind {
        (
            "admissionregistration.k8s.io",
            "MutatingWebhookConfiguration" | "ValidatingWebhookConfiguration",
        ) => "/clientConfig/caBundle",
        ("apiextensions.k8s.io", "CustomResourceDefinition") => {
            "/spec/conversion/webhook/clientConfig/caBundle"
        }
        ("apiregistration.k8s.io", "APIService") => "/spec/caBundle",
        _ => return Vec::new(),
    };
    let body = Value::Object(super::canonical::parse_canonical(canonical));
    if !asks(&body) {
        return Vec::new();
    }
    let places = match body.get("webhooks").and_then(Value::as_array) {
        Some(webhooks) => (0..webhooks.len()).map(|at| format!("/webhooks/{at}{place}")).collect(),
        None => vec![place.to_owned()],
    };
    let is_empty = |place: &String| body.pointer(place).is_some_and(is_empty);
    places.into_iter().filter(is_empty).map(Into::into).collect()
}

fn asks(body: &Value) -> bool {
    let annotations = body.pointer("/metadata/annotations").and_then(Value::as_object);
    annotations.is_some_and(|all| ASKS.iter().any(|key| all.contains_key(*key)))
}

/// True for null, and for white space in base64: API servers once rejected an empty bundle.
fn is_empty(bundle: &Value) -> bool {
    match bundle {
        Value::Null => true,
        Value::String(text) => STANDARD.decode(text).is_ok_and(|bytes| bytes.trim_ascii().is_empty()),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn check(id: &str, mut body: Value, expect: &[&str]) {
        let id = ObjectId::parse(id).unwrap();
        let found = |body: &Value| find_empty_bundles(&id, body.to_string().as_bytes());
        assert!(found(&body).is_empty(), "nobody asks for a bundle");
        body["metadata"] = json!({"annotations": {"cert-manager.io/inject-ca-from": "shop/serving"}});
        let places = found(&body);
        assert_eq!(places.iter().map(|place| &**place).collect::<Vec<_>>(), expect);
    }

    #[test]
    fn only_empty_bundles_are_left() {
        let webhook = |bundle: Value| json!({"clientConfig": {"caBundle": bundle}});
        let configuration = json!({"webhooks": [
            webhook(json!("")), webhook(json!("Cg==")), webhook(json!("Y2VydGlmaWNhdGU=")), webhook(Value::Null),
            {"clientConfig": {}}, webhook(json!(7)), webhook(json!("no base64")),
        ]});
        let empty = [
            "/webhooks/0/clientConfig/caBundle",
            "/webhooks/1/clientConfig/caBundle",
            "/webhooks/3/clientConfig/caBundle",
        ];
        for kind in ["MutatingWebhookConfiguration", "ValidatingWebhookConfiguration"] {
            check(&format!("admissionregistration.k8s.io/{kind}|/a"), configuration.clone(), &empty);
        }
        let definition = json!({"spec": {"conversion": {"webhook": webhook(json!("Cg=="))}}});
        let place = "/spec/conversion/webhook/clientConfig/caBundle";
        check("apiextensions.k8s.io/CustomResourceDefinition|/a.b", definition, &[place]);
        check("apiregistration.k8s.io/APIService|/a", json!({"spec": {"caBundle": ""}}), &["/spec/caBundle"]);
        check("/ConfigMap|shop/a", json!({"spec": {"caBundle": ""}}), &[]);
    }
}
