//! The ConversionReview: the request to a webhook and its response.
//!
//! In: an object and the version to convert it to; the response of the webhook.
//! Out: the review; the converted object, whose metadata is unchanged except for labels and
//! annotations; or the error in the wording of Kubernetes.

use serde_json::{Map, Value, json};

use crate::kinds;
use crate::managed_fields::go_type;
use moorline_yaml::{self as yaml, Dialect};

const GROUP: &str = "apiextensions.k8s.io";

/// Returns the request to the webhook.
pub(super) fn request(form: &str, uid: &str, object: &Value, version: &str) -> Value {
    json!({
        "kind": "ConversionReview", "apiVersion": format!("{GROUP}/{form}"),
        "request": {"uid": uid, "desiredAPIVersion": version, "objects": [object]},
        "response": {"uid": "", "convertedObjects": null, "result": {"metadata": {}}},
    })
}

/// Version and kind of an object as in error messages: `example.com/v1, Kind=Boat`.
pub(super) fn title(object: &Value) -> String {
    format!("{}, Kind={}", text(&object["apiVersion"]), text(&object["kind"]))
}

/// Returns the objects of a response.
pub(super) fn objects(form: &str, uid: &str, answer: &[u8]) -> Result<Vec<Value>, String> {
    let review = read(answer)?;
    let (own, found) = (format!("{GROUP}/{form}"), review["apiVersion"].as_str().unwrap_or_default());
    let (version, kind) = (if found.is_empty() { &own } else { found }, text(&review["kind"]));
    let is_known = version == "apiextensions.k8s.io/v1" || version == "apiextensions.k8s.io/v1beta1";
    if !is_known || !matches!(kind, "" | "ConversionReview") {
        return Err(format!(
            "no kind {kind:?} is registered for version {version:?} in scheme \"pkg/runtime/scheme.go:111\""
        ));
    }
    if *version != own {
        let given = version.rsplit_once('/').map_or("", |(_, version)| version);
        return Err(format!(
            "converting ({given}.ConversionReview) to ({form}.ConversionReview): unknown conversion"
        ));
    }
    if form == "v1" && (found.is_empty() || kind.is_empty()) {
        let found = if found.is_empty() { "/" } else { found };
        return Err(format!(
            "expected webhook response of {own}, Kind=ConversionReview, got {found}, Kind={kind}"
        ));
    }
    let response = &review["response"];
    if !response.is_object() {
        return Err("no response provided".to_owned());
    }
    if form == "v1" && text(&response["uid"]) != uid {
        return Err(format!("expected response.uid={uid:?}, got {:?}", text(&response["uid"])));
    }
    let (status, message) = (text(&response["result"]["status"]), text(&response["result"]["message"]));
    match (status, message) {
        ("Success", _) => Ok(response["convertedObjects"].as_array().cloned().unwrap_or_default()),
        (_, "") => Err(format!("response.result.status was '{status}', not 'Success'")),
        (_, message) => Err(message.to_owned()),
    }
}

/// Checks that the response contains exactly the requested object, and returns it.
pub(super) fn converted(object: &Value, version: &str, objects: Vec<Value>) -> Result<Value, String> {
    let of = |words: String| format!("conversion webhook for {} returned {words}", title(object));
    let [mut converted] = <[Value; 1]>::try_from(objects)
        .map_err(|objects| of(format!("{} objects, expected 1", objects.len())))?;
    if text(&converted["kind"]).is_empty() {
        return Err(format!("Object 'Kind' is missing in '{converted}'"));
    }
    let (found, kind) = (text(&converted["apiVersion"]), text(&converted["kind"]));
    if found != version {
        let words = format!("invalid groupVersion (expected {version}, received {found})");
        return Err(of(format!("invalid object at index 0: {words}")));
    }
    if converted["kind"] != object["kind"] {
        let words = format!("invalid kind (expected {}, received {kind})", text(&object["kind"]));
        return Err(of(format!("invalid object at index 0: {words}")));
    }
    for (field, word) in [("name", "name"), ("namespace", "namespace"), ("uid", "UID")] {
        let (before, after) = (text(&object["metadata"][field]), text(&converted["metadata"][field]));
        if before != after {
            return Err(of(format!("invalid object: must have the same {word}: {before} != {after}")));
        }
    }
    let metadata = metadata(object, &converted).map_err(|words| of(format!("invalid metadata: {words}")))?;
    converted["metadata"] = metadata;
    Ok(converted)
}

/// Returns the metadata of the original with the labels and annotations of the converted object.
fn metadata(object: &Value, converted: &Value) -> Result<Value, String> {
    let given = converted.get("metadata").ok_or("missing metadata in converted object")?;
    let of_type = |value| format!("of type {} in converted object", go_type(value));
    let given = given.as_object().ok_or_else(|| format!("invalid metadata {}", of_type(given)))?;
    let mut metadata = object["metadata"].as_object().cloned().unwrap_or_default();
    for field in ["labels", "annotations"] {
        let Some(value) = given.get(field).filter(|value| !value.is_null()) else {
            metadata.remove(field);
            continue;
        };
        let texts =
            value.as_object().ok_or_else(|| format!("invalid metadata.{field} {}", of_type(value)))?;
        if let Some((name, value)) = texts.iter().find(|(_, value)| !value.is_string()) {
            let found = go_type(value);
            return Err(format!(
                "metadata.{field}[{name}] must be a string, but is {found} in converted object"
            ));
        }
        if metadata.get(field) != Some(value) {
            well_formed(field, texts)?;
        }
        metadata.insert(field.to_owned(), value.clone());
    }
    Ok(metadata.into())
}

fn well_formed(field: &str, texts: &Map<String, Value>) -> Result<(), String> {
    let causes = kinds::validate_custom(&json!({"metadata": {"name": "a", field: texts}}));
    let about = format!("metadata.{field}");
    let told: Vec<String> = causes
        .iter()
        .filter(|cause| cause.field.starts_with(&about))
        .map(|cause| format!("{}: {}", cause.field.replacen("annotations", "annotation", 1), cause.message))
        .collect();
    match &*told {
        [] => Ok(()),
        [one] => Err(one.clone()),
        several => Err(format!("[{}]", several.join(", "))),
    }
}

/// Parses a review, which may be JSON or YAML.
pub(crate) fn read(answer: &[u8]) -> Result<Value, String> {
    let unreadable = |words: &str| format!("couldn't get version/kind; json parse error: {words}");
    let read = serde_json::from_slice(answer).ok().or_else(|| {
        let documents = yaml::read("the answer", answer, Dialect::Kubectl).ok()?;
        Some(documents.into_iter().next()?.value)
    });
    let what = match read {
        Some(Value::Object(review)) => return Ok(review.into()),
        Some(Value::String(_)) => "string",
        Some(Value::Array(_)) => "array",
        Some(Value::Number(_)) => "number",
        Some(Value::Bool(_)) => "bool",
        Some(Value::Null) | None => return Err(unreadable("the response is neither JSON nor YAML")),
    };
    let fields = r#"struct { APIVersion string "json:\"apiVersion,omitempty\""; Kind string "json:\"kind,omitempty\"" }"#;
    Err(unreadable(&format!("json: cannot unmarshal {what} into Go value of type {fields}")))
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn boat() -> Value {
        json!({"apiVersion": "example.com/v1", "kind": "Boat", "metadata": {
            "name": "a", "uid": "u", "generation": 3, "labels": {"a": "b"}, "annotations": {"c": "d"}}})
    }

    /// Returns the result of a response in which the object is changed by `change`.
    fn answered(change: impl Fn(&mut Value)) -> Result<Value, String> {
        let mut object = boat();
        object["apiVersion"] = "example.com/v2".into();
        change(&mut object);
        converted(&boat(), "example.com/v2", vec![object])
    }

    #[test]
    fn only_labels_and_annotations_of_the_metadata_change() {
        let found = answered(|object| {
            object["metadata"]["generation"] = 9.into();
            object["metadata"]["finalizers"] = json!(["example.com/own"]);
            object["metadata"]["labels"]["x"] = "y".into();
            object["metadata"]["annotations"] = Value::Null;
            object["spec"] = json!({"sails": 1});
        });
        let metadata = json!({"name": "a", "uid": "u", "generation": 3, "labels": {"a": "b", "x": "y"}});
        let wanted = json!({"apiVersion": "example.com/v2", "kind": "Boat", "metadata": metadata, "spec": {"sails": 1}});
        assert_eq!(found, Ok(wanted));
    }

    #[test]
    fn another_object_than_was_asked_for_is_refused() {
        let check = |change: &dyn Fn(&mut Value), words: &str| {
            let told = answered(|object| change(object)).unwrap_err();
            assert_eq!(told, format!("conversion webhook for example.com/v1, Kind=Boat returned {words}"));
        };
        check(
            &|object| object["apiVersion"] = "example.com/v3".into(),
            "invalid object at index 0: invalid groupVersion (expected example.com/v2, received example.com/v3)",
        );
        check(
            &|object| object["kind"] = "Raft".into(),
            "invalid object at index 0: invalid kind (expected Boat, received Raft)",
        );
        check(
            &|object| object["metadata"]["name"] = "b".into(),
            "invalid object: must have the same name: a != b",
        );
        check(
            &|object| object["metadata"]["labels"]["n"] = 1.into(),
            "invalid metadata: metadata.labels[n] must be a string, but is int64 in converted object",
        );
        check(
            &|object| object["metadata"]["annotations"] = json!([]),
            "invalid metadata: invalid metadata.annotations of type []interface {} in converted object",
        );
        let none = converted(&boat(), "example.com/v2", Vec::new()).unwrap_err();
        assert_eq!(none, "conversion webhook for example.com/v1, Kind=Boat returned 0 objects, expected 1");
    }

    #[test]
    fn an_answer_is_of_the_form_and_for_the_question_that_was_asked() {
        let check = |form: &str, answer: Value, found: Result<usize, &str>| {
            let told = objects(form, "u", answer.to_string().as_bytes());
            assert_eq!(told.map(|objects| objects.len()), found.map_err(str::to_owned), "{answer}");
        };
        let review = |form: &str, response: Value| json!({"apiVersion": format!("{GROUP}/{form}"), "kind": "ConversionReview", "response": response});
        let good = json!({"uid": "u", "result": {"status": "Success"}, "convertedObjects": [{}]});
        check("v1", review("v1", good.clone()), Ok(1));
        check(
            "v1beta1",
            review("v1beta1", json!({"result": {"status": "Success"}, "convertedObjects": [{}]})),
            Ok(1),
        );
        check(
            "v1",
            json!({"response": good}),
            Err("expected webhook response of apiextensions.k8s.io/v1, Kind=ConversionReview, got /, Kind="),
        );
        let other = json!({"uid": "x", "result": {"status": "Success"}});
        check("v1", review("v1", other), Err("expected response.uid=\"u\", got \"x\""));
        let failure = |result: Value| review("v1", json!({"uid": "u", "result": result}));
        check("v1", failure(json!({"status": "Failure", "message": "it sinks"})), Err("it sinks"));
        check("v1", failure(json!({})), Err("response.result.status was '', not 'Success'"));
        check("v1", review("v1", Value::Null), Err("no response provided"));
        let yaml = b"apiVersion: apiextensions.k8s.io/v1\nkind: ConversionReview\nresponse: {uid: u, result: {status: Success}}\n";
        assert_eq!(objects("v1", "u", yaml), Ok(Vec::new()));
    }
}
