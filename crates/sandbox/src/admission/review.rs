//! The AdmissionReview: the request to a webhook and its response.
//!
//! In: the operation to be admitted; the response of the webhook.
//! Out: the review; the response with its patch decoded, the patched object, or the error in the
//! wording of Kubernetes.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use super::Admission;
use crate::convert::read_review;
use crate::patch;
use crate::status_error::StatusError;

const GROUP: &str = "admission.k8s.io";

/// Returns the request about an object, in the version in which the webhook gets it.
pub(super) fn request(about: &Admission<'_>, version: usize, object: &Value, old: Option<&Value>) -> Value {
    let (target, part) = (about.target, &about.target.subresource);
    let resource = &target.resource;
    let kind = |at: usize| match part.as_str() {
        "scale" => json!({"group": "autoscaling", "version": "v1", "kind": "Scale"}),
        _ => {
            json!({"group": *resource.group, "version": *resource.versions[at].name, "kind": *resource.kind})
        }
    };
    let resource = |at: usize| json!({"group": *resource.group, "version": *resource.versions[at].name, "resource": *resource.plural});
    let name = match object["metadata"].is_object() {
        true => object["metadata"]["name"].as_str().unwrap_or_default(),
        false => about.name,
    };
    let mut request = json!({
        "kind": kind(version), "resource": resource(version),
        "requestKind": kind(target.version), "requestResource": resource(target.version),
        "operation": about.operation, "object": object, "oldObject": old, "dryRun": about.is_dry_run,
        "options": about.options,
        "userInfo": {"username": "sandbox", "groups": ["system:masters", "system:authenticated"]},
    });
    for (field, text) in [
        ("name", name),
        ("namespace", about.namespace()),
        ("subResource", part),
        ("requestSubResource", part),
    ] {
        if !text.is_empty() {
            request[field] = text.into();
        }
    }
    request
}

/// Returns the review as text.
pub(super) fn review(form: &str, uid: &str, mut request: Value) -> String {
    request["uid"] = uid.into();
    json!({"kind": "AdmissionReview", "apiVersion": format!("{GROUP}/{form}"), "request": request})
        .to_string()
}

/// Parses the response out of the body of an answer.
pub(super) fn response(form: &str, uid: &str, answer: &[u8]) -> Result<Value, String> {
    let mut review = read_review(answer).map_err(|words| format!("failed to call webhook: {words}"))?;
    let invalid = |words: String| Err(format!("received invalid webhook response: {words}"));
    let (own, found) = (format!("{GROUP}/{form}"), text(&review["apiVersion"]).to_owned());
    let kind = text(&review["kind"]).to_owned();
    let form_of = |version: &str| version.strip_prefix("admission.k8s.io/").map(str::to_owned);
    match form_of(&found) {
        Some(other) if other != form && matches!(&*other, "v1" | "v1beta1") => {
            let words = format!(
                "converting ({other}.AdmissionReview) to ({form}.AdmissionReview): unknown conversion"
            );
            return Err(format!("failed to call webhook: {words}"));
        }
        Some(other) if other == form && matches!(&*kind, "" | "AdmissionReview") => {}
        None if found.is_empty() && matches!(&*kind, "" | "AdmissionReview") => {}
        Some(_) | None => {
            let words = format!(
                "no kind {kind:?} is registered for version {found:?} in scheme \"pkg/runtime/scheme.go:111\""
            );
            return Err(format!("failed to call webhook: {words}"));
        }
    }
    let mut response = review["response"].take();
    if !response.is_object() {
        return invalid("webhook response was absent".to_owned());
    }
    if form == "v1" {
        if text(&response["uid"]) != uid {
            return invalid(format!("expected response.uid={uid:?}, got {:?}", text(&response["uid"])));
        }
        if found.is_empty() || kind.is_empty() {
            let found = if found.is_empty() { "/" } else { &found };
            return invalid(format!(
                "expected webhook response of {own}, Kind=AdmissionReview, got {found}, Kind={kind}"
            ));
        }
        let (has_patch, has_type) = (!text(&response["patch"]).is_empty(), !response["patchType"].is_null());
        match (has_patch, has_type) {
            (true, false) => {
                return invalid("webhook returned response.patch but not response.patchType".to_owned());
            }
            (false, true) => {
                return invalid("webhook returned response.patchType but not response.patch".to_owned());
            }
            (true, true) if text(&response["patchType"]).is_empty() => {
                return invalid("webhook returned invalid response.patchType of \"\"".to_owned());
            }
            (true, true) | (false, false) => {}
        }
    }
    if response["allowed"] == true && !text(&response["patch"]).is_empty() {
        response["patch"] = operations(&response)?;
    }
    Ok(response)
}

/// Decodes the operations of a patch.
fn operations(response: &Value) -> Result<Value, String> {
    let bytes = STANDARD
        .decode(text(&response["patch"]))
        .map_err(|error| format!("failed to call webhook: illegal base64 data: {error}"))?;
    let undecodable = |words: &str| Err(format!("received undecodable patch in webhook response: {words}"));
    let of_type = |kind: &str| {
        undecodable(&format!("json: cannot unmarshal {kind} into Go value of type jsonpatch.Patch"))
    };
    let operations = match serde_json::from_slice(&bytes) {
        Ok(Value::Array(operations)) => Value::Array(operations),
        Ok(Value::Null) => json!([]),
        Ok(Value::Object(_)) => return of_type("object"),
        Ok(Value::String(_)) => return of_type("string"),
        Ok(Value::Number(_)) => return of_type("number"),
        Ok(Value::Bool(_)) => return of_type("bool"),
        Err(error) => return undecodable(&error.to_string()),
    };
    match text(&response["patchType"]) {
        "" | "JSONPatch" => Ok(operations),
        other => Err(format!("unsupported patch type {other:?}")),
    }
}

/// Applies the operations of a patch to an object.
pub(super) fn patched(mut object: Value, operations: &Value) -> Result<Value, StatusError> {
    for operation in operations.as_array().into_iter().flatten() {
        let why = why_not(&object, operation);
        object =
            patch::apply_json_patch(object, &json!([operation])).map_err(|_| StatusError::internal(&why))?;
    }
    Ok(object)
}

/// Returns the error message of an operation that cannot be applied.
fn why_not(object: &Value, operation: &Value) -> String {
    let (op, path) = (text(&operation["op"]), text(&operation["path"]));
    let (holder, key) = path.rsplit_once('/').unwrap_or_default();
    match (op, object.pointer(holder)) {
        ("test", _) => format!("testing value {path} failed: test failed"),
        ("add" | "remove", None) => {
            format!("{op} operation does not apply: doc is missing path: {path:?}: missing value")
        }
        ("remove", Some(Value::Object(_))) => {
            format!(
                "error in remove for path: '{path}': Unable to remove nonexistent key: {key}: missing value"
            )
        }
        ("replace", None) => {
            format!("replace operation does not apply: doc is missing path: {path}: missing value")
        }
        ("replace", Some(_)) => {
            format!("replace operation does not apply: doc is missing key: {path}: missing value")
        }
        ("add" | "remove", Some(_)) => {
            format!(
                "error in {op} for path: '{path}': Unable to access invalid index: {key}: invalid index referenced"
            )
        }
        ("move" | "copy", _) => {
            format!(
                "{op} operation does not apply: doc is missing from path: {}: missing value",
                text(&operation["from"])
            )
        }
        _ => format!("Unexpected kind: {op}"),
    }
}

/// Returns the error for a write that a webhook denied.
pub(super) fn denied(name: &str, status: &Value) -> StatusError {
    let by = format!("admission webhook {name:?} denied the request");
    let (message, reason) = (text(&status["message"]), text(&status["reason"]));
    let message = match (message, reason) {
        ("", "") => format!("{by} without explanation"),
        ("", said) | (said, _) => format!("{by}: {said}"),
    };
    let code = status["code"].as_u64().and_then(|code| u16::try_from(code).ok()).unwrap_or(0).max(400);
    let details = status["details"].is_object().then(|| Box::new(status["details"].clone()));
    StatusError { reason: reason.to_owned().into(), details, ..StatusError::new(code, "", message) }
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_counts_if_it_is_one() {
        let check = |response: Value, found: Result<&Value, &str>| {
            let answer =
                json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": response});
            let told = super::response("v1", "u", answer.to_string().as_bytes());
            let told = told.as_ref().map(|told| &told["patch"]).map_err(String::as_str);
            assert_eq!(told, found, "{answer}");
        };
        let patch = |text: &str| json!({"uid": "u", "allowed": true, "patchType": "JSONPatch", "patch": STANDARD.encode(text)});
        let operations = json!([{"op": "remove", "path": "/a"}]);
        check(patch(&operations.to_string()), Ok(&operations));
        check(json!({"uid": "u", "allowed": true}), Ok(&Value::Null));
        check(
            patch("5"),
            Err(
                "received undecodable patch in webhook response: json: cannot unmarshal number into Go value of type jsonpatch.Patch",
            ),
        );
        check(
            json!({"allowed": true}),
            Err("received invalid webhook response: expected response.uid=\"u\", got \"\""),
        );
        check(Value::Null, Err("received invalid webhook response: webhook response was absent"));
        let mut other = patch("[]");
        other["patchType"] = "Merge".into();
        check(other, Err("unsupported patch type \"Merge\""));
    }

    #[test]
    fn a_patch_that_cannot_be_applied_is_reported() {
        let check = |op: &str, path: &str, words: &str| {
            let refused =
                patched(json!({"a": {"b": []}}), &json!([{"op": op, "path": path, "value": 1}])).unwrap_err();
            assert_eq!(refused.message, format!("Internal error occurred: {words}"));
        };
        check("test", "/a", "testing value /a failed: test failed");
        check("add", "/x/y", "add operation does not apply: doc is missing path: \"/x/y\": missing value");
        check(
            "replace",
            "/x/y",
            "replace operation does not apply: doc is missing path: /x/y: missing value",
        );
        check(
            "remove",
            "/a/x",
            "error in remove for path: '/a/x': Unable to remove nonexistent key: x: missing value",
        );
        check(
            "remove",
            "/a/b/3",
            "error in remove for path: '/a/b/3': Unable to access invalid index: 3: invalid index referenced",
        );
    }
}
