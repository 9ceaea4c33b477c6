//! Response of a webhook that converts objects between the versions of their kind.

use serde_json::{Value, json};

use super::git_server::Reply;

/// Answers a review: `change` adapts each object to the desired version, which is then set.
pub fn answer(body: &[u8], change: impl Fn(&mut Value, &str)) -> Reply {
    let review: Value = serde_json::from_slice(body).unwrap();
    let request = &review["request"];
    let version = request["desiredAPIVersion"].as_str().unwrap();
    let converted = request["objects"].as_array().unwrap().iter().cloned().map(|mut object| {
        change(&mut object, version);
        object["apiVersion"] = version.into();
        object
    });
    let response = json!({
        "uid": request["uid"], "result": {"status": "Success"},
        "convertedObjects": converted.collect::<Vec<_>>(),
    });
    let answer =
        json!({"apiVersion": review["apiVersion"], "kind": "ConversionReview", "response": response});
    Reply::Raw(200, "Content-Type: application/json\r\n", answer.to_string().into_bytes())
}
