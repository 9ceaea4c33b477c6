//! The server that is asked, and the cases that it is asked about.
//!
//! In: a file of cases. Out: the server's answer to each, refusals included. Its controllers are ended first, so that what is
//! written stays as it was written.

use http::Request;
use kube::Client;
use moorline::yaml::{Dialect, read};
use serde_json::{Value, json};

use moorline_test_support::control_plane::{PlaneGuard, shared};
use moorline_test_support::credentials::ADMIN;
use moorline_test_support::daemon::until;

use super::discovery::KINDS;

/// A namespace of its own, and who asks.
pub(crate) struct Ground {
    pub(crate) namespace: String,
    admin: Client,
    _plane: PlaneGuard,
}

/// The request that is sent, and the form of the answer.
#[derive(Clone, Copy)]
pub(crate) enum Media {
    Object,
    MergePatch,
    JsonPatch,
    Table,
    Discovery,
}

/// Distance by which the stand-in for "five hours and a half ago" is far from its borders.
const AGO_SECONDS: i64 = 5 * 3600 + 30 * 60 + 30;

/// The documents of a file of cases.
pub(crate) fn cases(file: &str, namespace: &str) -> Vec<Value> {
    let path = format!("{}/{file}.yaml", crate::sandbox_kinds::ROOT);
    let ago = jiff::Timestamp::from_second(jiff::Timestamp::now().as_second() - AGO_SECONDS).expect("a time");
    let text = std::fs::read_to_string(&path).expect("the cases can be read");
    let text =
        text.replace("$NAMESPACE", namespace).replace("$AGO", &ago.strftime("%Y-%m-%dT%H:%M:%S").to_string());
    let documents = read(&path, text.as_bytes(), Dialect::Kubectl).expect("the cases are YAML");
    documents.into_iter().map(|it| it.value).collect()
}

impl Ground {
    pub(crate) async fn new() -> Option<Self> {
        let plane = shared()?;
        plane.remove_definition().await;
        plane.end_controllers();
        let (namespace, admin) = (plane.namespace("recorded").await, plane.client(ADMIN).await);
        let ground = Self { namespace, admin, _plane: plane };
        let account = json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "default"}});
        ground.ask("POST", &ground.collection(&account), &account, Media::Object).await;
        Some(ground)
    }

    /// Returns the path of the objects of this one's kind.
    pub(crate) fn collection(&self, object: &Value) -> String {
        let version = object["apiVersion"].as_str().expect("an apiVersion");
        let root = if version.contains('/') { "apis" } else { "api" };
        let group = version.split_once('/').map_or("", |(group, _)| group);
        let (plural, namespaced) = KINDS
            .iter()
            .find(|(of, kind, ..)| *of == group && object["kind"] == *kind)
            .map(|(.., plural, namespaced)| (plural, *namespaced))
            .expect("a kind of the table");
        match namespaced {
            true => format!("/{root}/{version}/namespaces/{}/{plural}", self.namespace),
            false => format!("/{root}/{version}/{plural}"),
        }
    }

    pub(crate) fn place(&self, object: &Value) -> String {
        format!("{}/{}", self.collection(object), object["metadata"]["name"].as_str().expect("a name"))
    }

    /// Makes an object; as it is when the server has done what it does by itself.
    pub(crate) async fn made(&self, object: &Value) -> Value {
        let (code, answer) = self.ask("POST", &self.collection(object), object, Media::Object).await;
        assert_eq!(code, 201, "{object}: {answer}");
        let place = self.place(object);
        if object["kind"] == "CustomResourceDefinition" {
            until("the definition is established", async || {
                let live = self.ask("GET", &place, &Value::Null, Media::Object).await.1;
                let conditions = live["status"]["conditions"].as_array().cloned().unwrap_or_default();
                conditions
                    .iter()
                    .any(|it| it["type"] == "Established" && it["status"] == "True")
                    .then_some(())
            })
            .await;
        }
        self.ask("GET", &place, &Value::Null, Media::Object).await.1
    }

    /// Deletes an object, for it would be in the way of others.
    pub(crate) async fn removed(&self, object: &Value) {
        let options = json!({"propagationPolicy": "Background", "gracePeriodSeconds": 0});
        self.ask("DELETE", &self.place(object), &options, Media::Object).await;
    }

    /// A line as if the namespace had always the same name.
    pub(crate) fn neutral(&self, line: Value) -> Value {
        let text = line.to_string().replace(&format!("\"{}\"", self.namespace), "\"recorded\"");
        serde_json::from_str(&text).expect("it was JSON before")
    }

    /// The code and the body of an answer.
    pub(crate) async fn ask(&self, method: &str, path: &str, body: &Value, media: Media) -> (u16, Value) {
        let sent = match media {
            Media::MergePatch => "application/merge-patch+json",
            Media::JsonPatch => "application/json-patch+json",
            Media::Object | Media::Table | Media::Discovery => "application/json",
        };
        let wanted = match media {
            Media::Table => "application/json;as=Table;v=v1;g=meta.k8s.io",
            Media::Discovery => "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList",
            Media::Object | Media::MergePatch | Media::JsonPatch => "application/json",
        };
        let body = if body.is_null() { Vec::new() } else { body.to_string().into_bytes() };
        let request =
            Request::builder().method(method).uri(path).header("Content-Type", sent).header("Accept", wanted);
        let answer = self.admin.send(request.body(body.into()).expect("a request")).await.expect("an answer");
        let code = answer.status().as_u16();
        let bytes = http_body_util::BodyExt::collect(answer.into_body()).await.expect("a body").to_bytes();
        (code, serde_json::from_slice(&bytes).unwrap_or_default())
    }
}
