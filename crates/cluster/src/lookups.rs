//! Reads of single objects for a diagnosis, and questions about rights.
//!
//! In: a path, or a user and a right.
//! Out: a [`Lookup`], which tells a missing object from one that may not be read. Nothing is
//! written: reviews of rights are not stored.

use std::time::Duration;

use http::header;
use http_body_util::{BodyExt as _, Limited};
use jiff::Timestamp;
use jiff::fmt::rfc2822::DateTimeParser;
use kube::client::Body;
use serde_json::{Value, json};

use super::Connection;
use super::api_client::{METADATA, WHOLE};

/// Timeout of a request.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(10);

/// Maximum number of bytes of a response.
const MAX_ANSWER: usize = 8 << 20;

/// Result of a read.
#[derive(Debug, Clone, PartialEq)]
pub enum Lookup {
    /// The object.
    Found(Value),
    /// The server does not have it, or does not serve its kind.
    Missing,
    /// The caller may not read it.
    Forbidden,
    /// There was no usable response, with the cause.
    Failed(Box<str>),
}

impl Lookup {
    /// Returns the object, if it was found.
    pub fn found(&self) -> Option<&Value> {
        match self {
            Self::Found(value) => Some(value),
            Self::Missing | Self::Forbidden | Self::Failed(_) => None,
        }
    }
}

/// Version and clock of the API server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerInfo {
    /// Version, such as `v1.33.4`.
    pub version: Box<str>,
    /// Time of the server's clock at its response, in whole seconds.
    pub time: Option<Timestamp>,
}

impl Connection {
    /// Reads the version and the clock of the server; the error says why that is not possible.
    pub async fn server_info(&self) -> Result<ServerInfo, Box<str>> {
        let (answer, time) = self.request("GET", "/version", WHOLE, None).await;
        match answer {
            Lookup::Found(about) => {
                Ok(ServerInfo { version: about["gitVersion"].as_str().unwrap_or("unknown").into(), time })
            }
            Lookup::Missing => Err("the server has no /version".into()),
            Lookup::Forbidden => Err("the server does not let you read its version".into()),
            Lookup::Failed(cause) => Err(cause),
        }
    }

    /// Reads an object or a list by its path.
    pub async fn look_up(&self, path: &str) -> Lookup {
        self.request("GET", path, WHOLE, None).await.0
    }

    /// Reads the metadata of an object alone, so that no content of a Secret leaves the server.
    pub async fn look_up_metadata(&self, path: &str) -> Lookup {
        self.request("GET", path, METADATA, None).await.0
    }

    /// Reads a text of at most `limit` bytes by its path, such as the log of a Pod.
    ///
    /// # Errors
    ///
    /// The reason why it cannot be read, without a text of the server.
    pub async fn look_up_text(&self, path: &str, limit: usize) -> Result<String, Box<str>> {
        let work = async {
            let request = http::Request::get(path).body(Body::empty()).map_err(|error| error.to_string())?;
            let reply = self.client.send(request).await.map_err(|error| innermost(&error))?;
            let (head, body) = reply.into_parts();
            let body = Limited::new(body, limit).collect().await.map_err(|error| error.to_string())?;
            match head.status.as_u16() {
                200..=299 => Ok(String::from_utf8_lossy(&body.to_bytes()).into_owned()),
                403 => Err("you may not read it".into()),
                404 => Err("there is no such object".into()),
                code => Err(format!("the server answered {code}").into()),
            }
        };
        let late = |_| Err(format!("no response within {} s", REQUEST_TIMEOUT.as_secs()).into());
        tokio::time::timeout(REQUEST_TIMEOUT, work).await.unwrap_or_else(late)
    }

    /// True if the caller has a right, by the attributes of an access review; none if the server
    /// does not say.
    pub async fn may_caller(&self, attributes: &Value) -> Option<bool> {
        self.review("SelfSubjectAccessReview", json!({"resourceAttributes": attributes})).await
    }

    /// True if a ServiceAccount has a right; none if the caller may not ask that.
    pub async fn may_account(&self, namespace: &str, account: &str, attributes: &Value) -> Option<bool> {
        let groups = [
            "system:serviceaccounts",
            &format!("system:serviceaccounts:{namespace}"),
            "system:authenticated",
        ];
        let spec = json!({
            "user": format!("system:serviceaccount:{namespace}:{account}"), "groups": groups,
            "resourceAttributes": attributes,
        });
        self.review("SubjectAccessReview", spec).await
    }

    /// Returns the name that the server knows the caller by, if it says so.
    pub async fn caller(&self) -> Option<String> {
        let body = json!({"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"});
        let path = "/apis/authentication.k8s.io/v1/selfsubjectreviews";
        let (answer, _) = self.request("POST", path, WHOLE, Some(&body)).await;
        Some(answer.found()?.pointer("/status/userInfo/username")?.as_str()?.to_owned())
    }

    async fn review(&self, kind: &str, spec: Value) -> Option<bool> {
        let path = format!("/apis/authorization.k8s.io/v1/{}s", kind.to_ascii_lowercase());
        let body = json!({"apiVersion": "authorization.k8s.io/v1", "kind": kind, "spec": spec});
        let (answer, _) = self.request("POST", &path, WHOLE, Some(&body)).await;
        answer.found()?.pointer("/status/allowed")?.as_bool()
    }

    async fn request(
        &self,
        method: &str,
        path: &str,
        accept: &str,
        body: Option<&Value>,
    ) -> (Lookup, Option<Timestamp>) {
        let work = self.send(method, path, accept, body);
        let done = tokio::time::timeout(REQUEST_TIMEOUT, work).await;
        let late = || Err(format!("no response within {} s", REQUEST_TIMEOUT.as_secs()).into());
        done.unwrap_or_else(|_| late()).unwrap_or_else(|cause| (Lookup::Failed(cause), None))
    }

    async fn send(
        &self,
        method: &str,
        path: &str,
        accept: &str,
        body: Option<&Value>,
    ) -> Result<(Lookup, Option<Timestamp>), Box<str>> {
        let content = body.map_or_else(Body::empty, |body| Body::from(body.to_string().into_bytes()));
        let request = http::Request::builder()
            .method(method)
            .uri(path)
            .header(header::ACCEPT, accept)
            .header(header::CONTENT_TYPE, WHOLE)
            .body(content)
            .map_err(|error| error.to_string())?;
        let reply = self.client.send(request).await.map_err(|error| innermost(&error))?;
        let (head, body) = reply.into_parts();
        let date = head.headers.get(header::DATE).and_then(|date| date.to_str().ok());
        let time = date.and_then(|date| DateTimeParser::new().parse_timestamp(date).ok());
        let body = Limited::new(body, MAX_ANSWER).collect().await.map_err(|error| error.to_string())?;
        let value: Option<Value> = serde_json::from_slice(&body.to_bytes()).ok();
        let answer = match (head.status.as_u16(), value) {
            (200..=299, Some(value)) => Lookup::Found(value),
            (404, _) => Lookup::Missing,
            (401, _) => Lookup::Failed("the server does not accept your credentials".into()),
            (403, _) => Lookup::Forbidden,
            (code, value) => {
                let message = value.and_then(|value| value["message"].as_str().map(str::to_owned));
                Lookup::Failed(message.unwrap_or_else(|| format!("the server answered {code}")).into())
            }
        };
        Ok((answer, time))
    }
}

/// The innermost cause names the problem; the outer ones only say that there is one.
fn innermost(error: &dyn std::error::Error) -> Box<str> {
    let mut cause = error;
    while let Some(inner) = cause.source() {
        cause = inner;
    }
    cause.to_string().into()
}
