//! Syncs on the API server: installing their definition, and asking for more of them.

use std::time::{Duration, Instant};

use http::{Request, StatusCode, header};
use kube::Client;
use kube::api::{Api, ApiResource, DynamicObject, PostParams};
use kube::client::Body;
use moorline::api::{self, Sync, SyncName};
use moorline::controller::spec;
use moorline::controller::spec::{SpecError, ValidatedSpec};
use serde_json::{Value, json};

use crate::api_server::servers::Server;
use moorline_test_support::credentials::ADMIN;

/// For the API server to serve a kind that it has just received.
pub(crate) const DEADLINE: Duration = Duration::from_secs(60);

pub(crate) const DEFINITION: &str =
    "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/syncs.moorline.dev?fieldValidation=Strict";

/// A good Sync with something written over its spec.
pub(crate) fn sync(name: &str, over: &Value) -> Value {
    let mut spec = json!({"source": {"git": {"url": "https://host/a.git"}}});
    merge(&mut spec, over);
    json!({
        "apiVersion": "moorline.dev/v1alpha1",
        "kind": "Sync",
        "metadata": {"name": name},
        "spec": spec,
    })
}

pub(crate) fn merge(under: &mut Value, over: &Value) {
    match (under, over) {
        (Value::Object(under), Value::Object(over)) => {
            over.iter().for_each(|(key, value)| merge(under.entry(key).or_insert(Value::Null), value));
        }
        (under, over) => *under = over.clone(),
    }
}

/// Returns the daemon's validation of a Sync that the API server let through.
pub(crate) fn wished(namespace: &str, mut sync: Value) -> Result<ValidatedSpec, SpecError> {
    // The server leaves out what is null.
    sync["spec"].as_object_mut().expect("a spec").retain(|_, value| !value.is_null());
    let read: Sync = spec::read(sync)?;
    let name = SyncName::new(namespace, read.metadata.name.as_deref().unwrap_or_default());
    spec::validate(&name, &read.spec)
}

/// The Syncs of a namespace.
pub(crate) struct Syncs {
    pub(crate) api: Api<DynamicObject>,
    pub(crate) client: Client,
}

/// The answer of the server if it takes the Sync, else its words. Nothing stays.
pub(crate) async fn create(syncs: &Syncs, sync: &Value) -> Result<Value, String> {
    let body: DynamicObject = serde_json::from_value(sync.clone()).expect("an object");
    let parameters = PostParams { dry_run: true, ..PostParams::default() };
    match syncs.api.create(&parameters, &body).await {
        Ok(taken) => Ok(serde_json::to_value(taken).expect("an object")),
        Err(kube::Error::Api(status)) => Err(status.message.clone()),
        Err(error) => panic!("{sync}: {error}"),
    }
}

/// The definition on the API server, and the Syncs of a namespace.
pub(crate) async fn installed(server: &Server, namespace: &str) -> Syncs {
    let client = server.client(ADMIN).await;
    install(&client).await;
    let api = Api::namespaced_with(client.clone(), namespace, &ApiResource::erase::<Sync>(&()));
    let deadline = Instant::now() + DEADLINE;
    while let Err(error) = api.list_metadata(&Default::default()).await {
        assert!(Instant::now() < deadline, "not served after {DEADLINE:?}: {error}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    Syncs { api, client }
}

/// Applies the definition as `kubectl apply --server-side` does, without a warning.
pub(crate) async fn install(client: &Client) {
    let path = format!("{DEFINITION}&fieldManager=kubectl&force=true");
    let definition = api::definition().expect("JSON");
    let (status, warnings, answer) =
        send(client, "PATCH", &path, "application/apply-patch+yaml", definition).await;
    assert!(status.is_success() && warnings.is_empty(), "{status} {warnings:?} {answer}");
    let told = answer["status"]["conditions"].as_array().into_iter().flatten();
    let unsound: Vec<_> = told.filter(|condition| condition["type"] == "NonStructuralSchema").collect();
    assert!(unsound.is_empty(), "{unsound:?}");
}

/// The answer to a request, with the warnings that kubectl would print.
pub(crate) async fn send(
    client: &Client,
    method: &str,
    path: &str,
    content: &str,
    body: Value,
) -> (StatusCode, Vec<String>, Value) {
    let request = Request::builder()
        .method(method)
        .uri(path)
        .header(header::CONTENT_TYPE, content)
        .body(Body::from(body.to_string().into_bytes()))
        .expect("a literal request");
    let answer = client.send(request).await.expect("an answer");
    let text = |value: &header::HeaderValue| String::from_utf8_lossy(value.as_bytes()).into_owned();
    let warnings = answer.headers().get_all(header::WARNING).iter().map(text).collect();
    let status = answer.status();
    let bytes = answer.into_body().collect_bytes().await.expect("a whole answer");
    (status, warnings, serde_json::from_slice(&bytes).unwrap_or_default())
}
