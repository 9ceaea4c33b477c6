//! A webhook that admits what is written, well or badly.
//!
//! In: reviews; what the label `answer` of an object says is what becomes of it. Out: answers. What the webhook was asked is
//! reported in the refusal of an object that wants an `echo`.

use std::time::Duration;

use base64::Engine as _;
use serde_json::{Value, json};

use moorline_test_support::git_server::Reply;

/// More than a webhook of one second has.
const LONG: Duration = Duration::from_millis(1500);

/// The answer of the webhook at a path.
pub fn admitted(path: &str, body: &[u8]) -> Reply {
    let review: Value = serde_json::from_slice(body).unwrap();
    let request = &review["request"];
    let object = if request["object"].is_null() { &request["oldObject"] } else { &request["object"] };
    let wish = object["metadata"]["labels"]["answer"].as_str().unwrap_or_default();
    match wish {
        "500" => return Reply::Raw(500, "Content-Type: text/plain\r\n", b"broken\n".to_vec()),
        "garbage" => return Reply::Raw(200, "Content-Type: application/json\r\n", b"garbage".to_vec()),
        "empty" => return Reply::Raw(200, "Content-Type: application/json\r\n", Vec::new()),
        "slow" => std::thread::sleep(LONG),
        _ => {}
    }
    let mut review = json!({
        "apiVersion": review["apiVersion"], "kind": "AdmissionReview",
        "response": {"uid": request["uid"], "allowed": true},
    });
    let response = &mut review["response"];
    if let Some(patch) = patch(wish, path, object) {
        response["patchType"] = "JSONPatch".into();
        response["patch"] = base64::engine::general_purpose::STANDARD.encode(patch).into();
    }
    spoil(response, wish, request);
    match wish {
        "absent" => drop(review.as_object_mut().unwrap().remove("response")),
        "no-form" => drop(review.as_object_mut().unwrap().remove("apiVersion")),
        "form" => review["apiVersion"] = "admission.k8s.io/v1beta1".into(),
        _ => {}
    }
    Reply::Raw(200, "Content-Type: application/json\r\n", review.to_string().into_bytes())
}

/// Returns the webhook's changes.
fn patch(wish: &str, path: &str, object: &Value) -> Option<String> {
    let is_map = object["kind"] == "ConfigMap";
    let leaf = if is_map { "/data/k" } else { "/spec/minReadySeconds" };
    let value = if is_map { json!("admitted") } else { json!(9) };
    let operations = match wish {
        "changes" => json!([{"op": "replace", "path": leaf, "value": value}]),
        "removes" => json!([{"op": "remove", "path": leaf}]),
        "adds" if is_map => json!([{"op": "add", "path": "/data/more", "value": "admitted"}]),
        "adds" => json!([{"op": "add", "path": "/spec/paused", "value": true},
            {"op": "add", "path": "/spec/template/spec/containers/-", "value": {"name": "side", "image": "s"}}]),
        "scales" => json!([{"op": "replace", "path": "/spec/replicas", "value": 7}]),
        "fault" => json!([{"op": "replace", "path": "/spec/minReadySeconds", "value": "nine"}]),
        "sinks" => {
            json!([{"op": "remove", "path": "/spec/colour"}, {"op": "add", "path": "/spec/sails", "value": 99}])
        }
        "same" => json!([{"op": "add", "path": "/metadata/labels/answer", "value": "same"}]),
        "none" => json!([]),
        "own" => {
            json!([{"op": "add", "path": "/metadata/creationTimestamp", "value": "2020-01-01T00:00:00Z"},
            {"op": "add", "path": "/nonsense", "value": 1}])
        }
        "order" => {
            let order = object["metadata"]["annotations"]["order"].as_str().unwrap_or_default();
            let last = path.rsplit('/').next().unwrap();
            json!([{"op": "add", "path": "/metadata/annotations", "value": {"order": format!("{order} {last}")}}])
        }
        "gone" => json!([{"op": "remove", "path": "/data/none"}]),
        "nowhere" => json!([{"op": "add", "path": "/none/none", "value": 1}]),
        "test" => json!([{"op": "test", "path": "/data/k", "value": "other"}]),
        "type" => json!([{"op": "replace", "path": "/data", "value": 5}]),
        "invalid" => json!([{"op": "add", "path": "/data/a b", "value": "c"}]),
        "object" => json!({"op": "remove"}),
        "strange" | "untyped" => json!([{"op": "remove", "path": leaf}]),
        _ => return None,
    };
    Some(operations.to_string())
}

/// The response as it should not be, or as it refuses.
fn spoil(response: &mut Value, wish: &str, request: &Value) {
    let mut refuse = |status: Value| {
        response["allowed"] = false.into();
        response["status"] = status;
    };
    match wish {
        "echo" => refuse(json!({"message": told(request).to_string()})),
        "denies" => refuse(json!({"message": "not here"})),
        "silent" => refuse(Value::Null),
        "reason" => refuse(json!({"reason": "TooLate", "code": 200})),
        "forbids" => refuse(json!({
            "message": "never", "reason": "Forbidden", "code": 403, "details": {"name": "x", "causes": [{"message": "c"}]},
        })),
        "warns" => response["warnings"] = json!(["mind the step"]),
        "uid" => response["uid"] = "another".into(),
        "strange" => response["patchType"] = "Merge".into(),
        "untyped" => drop(response.as_object_mut().unwrap().remove("patchType")),
        "typed" => response["patchType"] = "JSONPatch".into(),
        _ => {}
    }
}

/// Returns the part of a review that both servers must send alike.
fn told(request: &Value) -> Value {
    let mut told = request.clone();
    for name in ["uid", "userInfo"] {
        told.as_object_mut().unwrap().remove(name);
    }
    for object in ["object", "oldObject"] {
        if !told[object].is_object() {
            continue;
        }
        let metadata = told[object]["metadata"].as_object_mut().unwrap();
        for name in ["uid", "creationTimestamp", "resourceVersion"] {
            if let Some(value) = metadata.get_mut(name) {
                *value = value.is_string().into();
            }
        }
        // The sandbox does not say of a scale who owns it.
        if request["kind"]["kind"] == "Scale" {
            metadata.remove("managedFields");
        }
        for entry in metadata.get_mut("managedFields").and_then(Value::as_array_mut).into_iter().flatten() {
            entry["time"] = "T".into();
        }
    }
    told
}
