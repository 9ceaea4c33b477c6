//! A webhook that converts boats between the versions of their definitions, well or badly; elsewhere it admits.
//!
//! In: reviews; what an object says in `spec.answer` is what goes wrong when it is converted, if anything. Out: answers, and
//! where the webhook is. Of boats, `v1` has `spec.sails` and `v2` has `spec.rig.sails`.

use base64::Engine as _;
use serde_json::{Map, Value, json};

use crate::parity::admitting::admitted;
use moorline_test_support::authority::Authority;
use moorline_test_support::git_server::{GitServer, Reply};

/// A webhook on the loopback; both servers call it.
pub struct Webhook {
    _server: GitServer,
    _folder: tempfile::TempDir,
    /// Its name in scenes, and its certificate authority.
    pub told: Vec<(&'static str, String)>,
}

impl Webhook {
    pub fn start() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let (authority, other) = (Authority::new(), Authority::new());
        let server = GitServer::start_with(folder.path(), Some(authority.server(None)));
        server.rule(|request| match request.path.starts_with("/admit") {
            true => admitted(&request.path, &request.body),
            false => answer(&request.body),
        });
        let bundle = |authority: &Authority| base64::engine::general_purpose::STANDARD.encode(&authority.pem);
        let told = vec![
            ("webhook", format!("https://localhost:{}/convert", server.port)),
            ("admission", format!("https://localhost:{}/admit", server.port)),
            ("bundle", bundle(&authority)),
            ("strange", bundle(&other)),
        ];
        Self { _server: server, _folder: folder, told }
    }
}

fn answer(body: &[u8]) -> Reply {
    let review: Value = serde_json::from_slice(body).unwrap();
    let request = &review["request"];
    let version = request["desiredAPIVersion"].as_str().unwrap();
    let objects = request["objects"].as_array().unwrap();
    let wish = objects.iter().find_map(|object| object["spec"]["answer"].as_str()).unwrap_or_default();
    match wish {
        "500" => return Reply::Raw(500, "Content-Type: text/plain\r\n", b"broken\n".to_vec()),
        "404" => return Reply::Raw(404, "Content-Type: text/plain\r\n", b"not here\n".to_vec()),
        "503" => return Reply::Raw(503, "Content-Type: text/plain\r\n", b"later\n".to_vec()),
        "garbage" => return Reply::Raw(200, "Content-Type: application/json\r\n", b"garbage".to_vec()),
        "empty" => return Reply::Raw(200, "Content-Type: application/json\r\n", Vec::new()),
        _ => {}
    }
    let mut converted: Vec<Value> = objects.iter().map(|object| converted(object, version)).collect();
    match wish {
        "none" => converted.clear(),
        "twice" => converted.push(converted[0].clone()),
        _ => converted.iter_mut().for_each(|object| spoil(object, wish)),
    }
    let mut review = json!({
        "apiVersion": review["apiVersion"], "kind": "ConversionReview",
        "response": {"uid": request["uid"], "result": {"status": "Success"}, "convertedObjects": converted},
    });
    let response = &mut review["response"];
    match wish {
        "uid" => response["uid"] = "another".into(),
        "failure" => {
            response["result"] = json!({"status": "Failure", "message": "such a boat does not float"})
        }
        "silent" => response["result"] = json!({"status": "Failure"}),
        "unsaid" => response["result"] = json!({}),
        "response" => drop(review.as_object_mut().unwrap().remove("response")),
        "form" => review["apiVersion"] = "apiextensions.k8s.io/v1beta1".into(),
        "other" => review["apiVersion"] = "example.com/v7".into(),
        "no-form" => drop(review.as_object_mut().unwrap().remove("apiVersion")),
        _ => {}
    }
    Reply::Raw(200, "Content-Type: application/json\r\n", review.to_string().into_bytes())
}

/// The object as it should be.
fn converted(object: &Value, version: &str) -> Value {
    let mut object = object.clone();
    object["apiVersion"] = version.into();
    let Some(spec) = object["spec"].as_object_mut() else { return object };
    if version.ends_with("v2") {
        if let Some(sails) = spec.remove("sails") {
            spec.insert("rig".to_owned(), json!({"sails": sails}));
        }
        let annotations = object["metadata"].as_object_mut().unwrap().entry("annotations");
        annotations.or_insert_with(|| json!({}))["example.com/rigged"] = "yes".into();
        return object;
    }
    if let Some(sails) = spec.remove("rig").and_then(|mut rig| rig.as_object_mut()?.remove("sails")) {
        spec.insert("sails".to_owned(), sails);
    }
    if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut)
        && let Some(Value::Object(annotations)) = metadata.get_mut("annotations")
    {
        annotations.remove("example.com/rigged");
        // An empty mapping would be stored as one until the next write.
        if annotations.is_empty() {
            metadata.remove("annotations");
        }
    }
    object
}

/// The object as it should not be.
fn spoil(object: &mut Value, wish: &str) {
    let fields: &mut Map<String, Value> = object.as_object_mut().unwrap();
    match wish {
        "version" => fields["apiVersion"] = "example.com/v9".into(),
        "kind" => fields["kind"] = "Raft".into(),
        "no-kind" => drop(fields.remove("kind")),
        "no-metadata" => drop(fields.remove("metadata")),
        "name" => object["metadata"]["name"] = "another".into(),
        "namespace" => object["metadata"]["namespace"] = "another".into(),
        "object-uid" => object["metadata"]["uid"] = "another".into(),
        "labels" => object["metadata"]["labels"] = json!({"a b": "c d"}),
        "label-number" => object["metadata"]["labels"] = json!({"a": 1}),
        "label-list" => object["metadata"]["labels"] = json!(["a"]),
        "annotations" => object["metadata"]["annotations"] = json!({"a b": "c d"}),
        "metadata" => {
            object["metadata"]["finalizers"] = json!(["example.com/own"]);
            object["metadata"]["generation"] = 77.into();
            object["metadata"]["labels"] = json!({"a": "b"});
        }
        "extra" => object["spec"]["barnacles"] = 1.into(),
        "null" => object["spec"]["colour"] = Value::Null,
        _ => {}
    }
}
