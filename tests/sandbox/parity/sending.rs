//! Requests of a scene as they are sent.
//!
//! In: a verb, a path and a body. Out: the status and the answer, or a watch that stays open.

use std::time::Duration;

use http::{Request, Response, StatusCode};
use http_body_util::BodyExt as _;
use kube::Client;
use kube::client::Body;
use serde_json::{Value, json};
use tokio::sync::mpsc;

const METADATA: &str = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1";
const METADATA_LIST: &str = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1";
const TABLE: &str = "application/json;as=Table;g=meta.k8s.io;v=v1";
/// A watch that was silent for so long has reported everything.
const QUIET: Duration = Duration::from_millis(400);
/// For how long a server may refuse to answer yet: it does while it opens the storage of a kind whose definition changed.
const NOT_YET: Duration = Duration::from_secs(15);
/// More than a server reads.
const LONG: usize = 4 << 20;

/// Sends a request.
pub async fn send(client: &Client, verb: &str, path: &str, body: Option<&Value>) -> (u16, Value) {
    let (method, content) = match verb {
        "MERGE" => ("PATCH", "application/merge-patch+json"),
        "JSON" => ("PATCH", "application/json-patch+json"),
        "STRATEGIC" => ("PATCH", "application/strategic-merge-patch+json"),
        "APPLY" => ("PATCH", "application/apply-patch+yaml"),
        "METADATA" | "LISTED" | "TABLE" | "EVENTUALLY" => ("GET", "application/json"),
        "TEXT" => ("POST", "text/plain"),
        "LONG" => ("POST", "application/json"),
        verb => (verb, "application/json"),
    };
    let mut text = body.map_or_else(Vec::new, |body| body.to_string().into_bytes());
    if verb == "LONG" {
        text.resize(LONG, b' ');
    }
    let response = request(client, method, path, content, accepted(verb), text).await;
    let code = response.status().as_u16();
    let warnings: Vec<_> = response.headers().get_all("warning").iter().cloned().collect();
    let bytes = response.into_body().collect().await.unwrap().to_bytes();
    let answer =
        serde_json::from_slice(&bytes).unwrap_or_else(|_| Value::from(String::from_utf8_lossy(&bytes)));
    if warnings.is_empty() {
        return (code, answer);
    }
    // A server that reads an object twice because its first copy was old warns of both; the last one counts.
    let warning = warnings.last().and_then(|warning| warning.to_str().ok());
    (code, json!({"warning": warning, "body": answer}))
}

/// A definition is served a moment after it was written.
pub async fn until_served(client: &Client, path: &str) {
    for _ in 0..200 {
        if send(client, "GET", path, None).await.0 == 200 {
            return;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    panic!("{path} is not served");
}

/// A webhook admits a moment after it was named.
pub async fn until_refused(client: &Client, path: &str, body: Option<&Value>) {
    for _ in 0..200 {
        if send(client, "POST", path, body).await.0 >= 400 {
            return;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    panic!("nobody refuses what is posted to {path}");
}

/// A watch that is open.
pub struct Watch(mpsc::UnboundedReceiver<Value>);

impl Watch {
    /// Opens a watch, or tells why the server does not.
    pub async fn open(client: &Client, verb: &str, path: &str) -> Result<Self, Value> {
        let response = request(client, "GET", path, "application/json", accepted(verb), Vec::new()).await;
        let code = response.status().as_u16();
        let mut body = response.into_body();
        if code != 200 {
            let bytes = body.collect().await.unwrap().to_bytes();
            let answer: Value = serde_json::from_slice(&bytes).unwrap_or_default();
            return Err(json!({"code": code, "answer": answer}));
        }
        let (sender, receiver) = mpsc::unbounded_channel();
        tokio::spawn(async move {
            let mut text = Vec::new();
            while let Some(Ok(frame)) = body.frame().await {
                text.extend(frame.into_data().unwrap_or_default());
                while let Some(end) = text.iter().position(|byte| *byte == b'\n') {
                    let line: Vec<u8> = text.drain(..=end).collect();
                    if sender.send(serde_json::from_slice(&line).unwrap()).is_err() {
                        return;
                    }
                }
            }
            let _ = sender.send("the end".into());
        });
        Ok(Self(receiver))
    }

    /// Returns its events since the last call.
    pub async fn told(&mut self) -> Value {
        let mut told = Vec::new();
        while let Ok(Some(event)) = tokio::time::timeout(QUIET, self.0.recv()).await {
            // A server ends the watch of a kind that is gone when it likes; one that breaks off says why.
            if event == "the end" && told.last().is_none_or(|last: &Value| last["type"] != "ERROR") {
                continue;
            }
            // Bookmarks in between come when a server likes.
            if event["type"] != "BOOKMARK" || !event["object"]["metadata"]["annotations"].is_null() {
                told.push(event);
            }
        }
        told.into()
    }
}

fn accepted(verb: &str) -> &'static str {
    match verb {
        "METADATA" | "WATCHED" => METADATA,
        "LISTED" => METADATA_LIST,
        "TABLE" => TABLE,
        _ => "application/json",
    }
}

/// Sends a request, and sends it again while the server answers that it is too early.
async fn request(
    client: &Client,
    method: &str,
    path: &str,
    content: &str,
    accept: &str,
    body: Vec<u8>,
) -> Response<Body> {
    let until = tokio::time::Instant::now() + NOT_YET;
    loop {
        let request = Request::builder()
            .method(method)
            .uri(path)
            .header("Accept", accept)
            .header("User-Agent", "parity")
            .header("Content-Type", content)
            .body(Body::from(body.clone()))
            .unwrap();
        let answer = client.send(request).await.unwrap_or_else(|error| panic!("{method} {path}: {error}"));
        if answer.status() != StatusCode::TOO_MANY_REQUESTS || tokio::time::Instant::now() > until {
            return answer;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}
