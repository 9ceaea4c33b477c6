//! Parses a request into [`ApiRequest`].
//!
//! In: method, path, query, headers and body.
//! Out: [`ApiRequest`]; query parameters and headers are parsed where they are used. An unknown
//! path is no error here: it becomes [`Endpoint::Unknown`].

use http::{HeaderMap, Method, Uri, header};
use serde_json::Value;

use super::protobuf;
use crate::status_error::StatusError;
use moorline_yaml::{self as yaml, Dialect};

/// One request to the API server.
#[derive(Debug)]
pub(crate) struct ApiRequest {
    pub(crate) method: Method,
    pub(crate) endpoint: Endpoint,
    /// Path and query as the client sent them.
    pub(crate) uri: String,
    query: Vec<(String, String)>,
    headers: HeaderMap,
    body: Vec<u8>,
    /// True if the path is one of the deprecated watch paths, which allow nothing but a watch.
    pub(crate) only_watches: bool,
    /// True for a call from inside the process, by the owner of the server.
    is_from_owner: bool,
}

/// Endpoint that a path addresses.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Endpoint {
    /// `/healthz`, `/livez`, `/readyz`.
    Health,
    /// `/version`.
    Version,
    /// `/api` and `/apis`.
    Groups { core: bool },
    /// `/apis/GROUP`.
    Group { group: String },
    /// `/api/v1` and `/apis/GROUP/VERSION`.
    Resources { group: String, version: String },
    /// `/openapi/v3` and the documents below it; empty for the index.
    OpenApi { group_version: String },
    /// `/openapi/v2`, the older format.
    OldOpenApi,
    /// A resource collection, an object or a subresource.
    Objects(ObjectPath),
    /// Any other path.
    Unknown,
}

/// Path of a collection, of an object in it, or of a subresource of that object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ObjectPath {
    pub(crate) group: String,
    pub(crate) version: String,
    pub(crate) plural: String,
    pub(crate) namespace: Option<String>,
    pub(crate) name: Option<String>,
    pub(crate) subresource: Option<String>,
}

/// Representation in which the client wants the objects.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Representation {
    Whole,
    Metadata,
    Table,
}

/// Media types of request bodies that can be read.
const BODIES: &str = "application/json, application/yaml, application/vnd.kubernetes.protobuf";

/// Media types for kinds whose protobuf encoding cannot be read.
const PLAIN_BODIES: &str = "application/json, application/yaml";

impl ApiRequest {
    /// Parses a request.
    pub(crate) fn new(method: Method, uri: &Uri, headers: HeaderMap, body: Vec<u8>) -> Self {
        let query = uri.query().unwrap_or_default().split('&').filter(|pair| !pair.is_empty()).map(|pair| {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            (decoded(name), decoded(value))
        });
        let mut query: Vec<_> = query.collect();
        let watched = watched(uri.path(), &mut query);
        let only_watches = watched.is_some();
        let place = watched.unwrap_or_else(|| place(uri.path()));
        Self {
            method,
            endpoint: place,
            uri: uri.to_string(),
            query,
            headers,
            body,
            only_watches,
            is_from_owner: false,
        }
    }

    /// Marks the request as a call from inside the process, by the owner of the server.
    pub(crate) fn into_owner_request(self) -> Self {
        Self { is_from_owner: true, ..self }
    }

    /// True if the CEL rules of a definition are evaluated for the write.
    pub(crate) fn asks_rules(&self) -> bool {
        !self.is_from_owner
    }

    /// True if admission webhooks are called for the write; calls of the owner skip them.
    pub(crate) fn asks_admission(&self) -> bool {
        !self.is_from_owner
    }

    /// Returns a query parameter, if it is present and not empty.
    pub(crate) fn query(&self, name: &str) -> Option<&str> {
        self.query
            .iter()
            .find(|(known, _)| known == name)
            .map(|(_, value)| value.as_str())
            .filter(|it| !it.is_empty())
    }

    /// True if a boolean query parameter is set.
    pub(crate) fn is_set(&self, name: &str) -> bool {
        matches!(self.query(name), Some("true" | "1"))
    }

    /// True if nothing is persisted: `dryRun=All`.
    pub(crate) fn is_dry_run(&self) -> bool {
        self.query("dryRun") == Some("All")
    }

    /// Field manager of the write: `fieldManager`, else the client's name from `User-Agent`.
    pub(crate) fn manager(&self) -> String {
        let agent = || self.headers.get(header::USER_AGENT)?.to_str().ok()?.split('/').next();
        let manager = self.query("fieldManager").or_else(agent).unwrap_or("unknown");
        manager.chars().take(128).collect()
    }

    /// Bearer token of the client; empty if there is none.
    pub(crate) fn token(&self) -> &str {
        let value = self.headers.get(header::AUTHORIZATION).and_then(|value| value.to_str().ok());
        value.and_then(|value| value.strip_prefix("Bearer ")).unwrap_or_default()
    }

    /// Media type of the body, without parameters.
    pub(crate) fn content_type(&self) -> &str {
        let value = self.headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok());
        value.unwrap_or("application/json").split(';').next().unwrap_or_default().trim()
    }

    /// Command of kubectl that sent the request, such as `kubectl logs`.
    pub(crate) fn command(&self) -> Option<&str> {
        self.headers.get("kubectl-command")?.to_str().ok()
    }

    fn accept(&self) -> &str {
        self.headers.get(header::ACCEPT).and_then(|value| value.to_str().ok()).unwrap_or_default()
    }

    /// Returns the first representation in `Accept` that this server supports.
    pub(crate) fn form(&self) -> Representation {
        for media in self.accept().split(',') {
            if media.contains("as=Table") {
                return Representation::Table;
            }
            if media.contains("as=PartialObjectMetadata") {
                return Representation::Metadata;
            }
            if media.trim().starts_with("application/json") || media.trim() == "*/*" {
                break;
            }
        }
        Representation::Whole
    }

    /// True if the client accepts aggregated discovery: all groups in one response.
    pub(crate) fn wants_aggregated(&self) -> bool {
        self.accept()
            .split(',')
            .any(|media| media.contains("as=APIGroupDiscoveryList") && media.contains("v=v2;"))
            || self.accept().contains("v=v2;as=APIGroupDiscoveryList")
            || self.accept().contains("as=APIGroupDiscoveryList;v=v2;")
    }

    /// True if the request opens a watch.
    pub(crate) fn is_watch(&self) -> bool {
        self.is_set("watch")
    }

    /// Body as the client sent it.
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.body
    }

    /// Body as JSON; `None` if the body is empty.
    pub(crate) fn body(&self) -> Result<Option<Value>, StatusError> {
        if self.body.is_empty() {
            return Ok(None);
        }
        let content = self.content_type();
        if content.ends_with("protobuf") {
            let read =
                protobuf::read(&self.body).ok_or_else(|| StatusError::unsupported_media_type(PLAIN_BODIES));
            return read.map(Some);
        }
        if content.ends_with("yaml") && !self.body.starts_with(b"{") {
            let documents = yaml::read("body", &self.body, Dialect::Kubectl)
                .map_err(|error| StatusError::bad_request(format!("error decoding YAML: {error}")))?;
            return Ok(documents.into_iter().next().map(|document| document.value));
        }
        if !content.ends_with("json") && !content.ends_with("yaml") {
            return Err(StatusError::unsupported_media_type(BODIES));
        }
        serde_json::from_slice(&self.body)
            .map(Some)
            .map_err(|error| StatusError::bad_request(format!("error decoding JSON: {error}")))
    }
}

/// Parses the deprecated watch paths, such as `/api/v1/watch/pods`, which mean `?watch=true`.
fn watched(path: &str, query: &mut Vec<(String, String)>) -> Option<Endpoint> {
    let own = if path.starts_with("/api/") { 2 } else { 3 };
    let mut parts: Vec<&str> = path.trim_matches('/').split('/').collect();
    if parts.len() <= own + 1 || parts[own] != "watch" {
        return None;
    }
    parts.remove(own);
    let mut place = place(&parts.join("/"));
    query.push(("watch".to_owned(), "true".to_owned()));
    if let Endpoint::Objects(objects) = &mut place
        && let Some(name) = objects.name.take()
    {
        query.push(("fieldSelector".to_owned(), format!("metadata.name={name}")));
    }
    Some(place)
}

fn place(path: &str) -> Endpoint {
    let parts: Vec<String> = path.trim_matches('/').split('/').map(decoded).collect();
    let parts: Vec<&str> = parts.iter().map(String::as_str).collect();
    match *parts.as_slice() {
        ["healthz" | "livez" | "readyz", ..] => Endpoint::Health,
        ["version"] => Endpoint::Version,
        ["api"] => Endpoint::Groups { core: true },
        ["apis"] => Endpoint::Groups { core: false },
        ["apis", group] => Endpoint::Group { group: group.to_owned() },
        ["api", version] => Endpoint::Resources { group: String::new(), version: version.to_owned() },
        ["apis", group, version] => {
            Endpoint::Resources { group: group.to_owned(), version: version.to_owned() }
        }
        ["openapi", "v2"] => Endpoint::OldOpenApi,
        ["openapi", "v3", ref rest @ ..] => Endpoint::OpenApi { group_version: rest.join("/") },
        ["api", version, ref rest @ ..] => objects("", version, rest),
        ["apis", group, version, ref rest @ ..] => objects(group, version, rest),
        _ => Endpoint::Unknown,
    }
}

fn objects(group: &str, version: &str, parts: &[&str]) -> Endpoint {
    let of = |namespace: Option<&str>, plural: &str, name: Option<&str>, subresource: Option<&str>| {
        Endpoint::Objects(ObjectPath {
            group: group.to_owned(),
            version: version.to_owned(),
            plural: plural.to_owned(),
            namespace: namespace.map(str::to_owned),
            name: name.map(str::to_owned),
            subresource: subresource.map(str::to_owned),
        })
    };
    match *parts {
        // A Namespace has subresources of its own.
        ["namespaces", name, part @ ("status" | "finalize")] if group.is_empty() => {
            of(None, "namespaces", Some(name), Some(part))
        }
        ["namespaces", namespace, plural] => of(Some(namespace), plural, None, None),
        ["namespaces", namespace, plural, name] => of(Some(namespace), plural, Some(name), None),
        ["namespaces", namespace, plural, name, part] => of(Some(namespace), plural, Some(name), Some(part)),
        [plural] => of(None, plural, None, None),
        [plural, name] => of(None, plural, Some(name), None),
        [plural, name, part] => of(None, plural, Some(name), Some(part)),
        _ => Endpoint::Unknown,
    }
}

/// Decodes URL-encoded text: `%2F` is a slash, and `+` a space.
fn decoded(text: &str) -> String {
    if !text.contains(['%', '+']) {
        return text.to_owned();
    }
    let (bytes, mut read, mut at) = (text.as_bytes(), Vec::with_capacity(text.len()), 0);
    while at < bytes.len() {
        let hex = || u8::from_str_radix(text.get(at + 1..at + 3)?, 16).ok();
        match (bytes[at], hex()) {
            (b'%', Some(byte)) => {
                read.push(byte);
                at += 2;
            }
            (b'+', _) => read.push(b' '),
            (byte, _) => read.push(byte),
        }
        at += 1;
    }
    String::from_utf8_lossy(&read).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn objects(path: &str) -> (String, Option<String>, Option<String>, Option<String>) {
        match place(path) {
            Endpoint::Objects(it) => {
                (format!("{}/{}/{}", it.group, it.version, it.plural), it.namespace, it.name, it.subresource)
            }
            other => panic!("{path}: {other:?}"),
        }
    }

    #[test]
    fn paths_lead_to_objects() {
        let check =
            |path: &str, what: &str, namespace: Option<&str>, name: Option<&str>, part: Option<&str>| {
                let own = |text: Option<&str>| text.map(str::to_owned);
                assert_eq!(objects(path), (what.to_owned(), own(namespace), own(name), own(part)), "{path}");
            };
        check("/api/v1/pods", "/v1/pods", None, None, None);
        check("/api/v1/namespaces/a", "/v1/namespaces", None, Some("a"), None);
        check("/api/v1/namespaces/a/status", "/v1/namespaces", None, Some("a"), Some("status"));
        check("/api/v1/namespaces/a/pods/b/log", "/v1/pods", Some("a"), Some("b"), Some("log"));
        check("/apis/apps/v1/namespaces/a/deployments", "apps/v1/deployments", Some("a"), None, None);
        check(
            "/apis/rbac.authorization.k8s.io/v1/clusterroles/system%3Aa",
            "rbac.authorization.k8s.io/v1/clusterroles",
            None,
            Some("system:a"),
            None,
        );
        assert_eq!(place("/apis/apps/v1/a/b/c/d"), Endpoint::Unknown);
        assert_eq!(place("/metrics"), Endpoint::Unknown);
    }

    #[test]
    fn queries_are_decoded() {
        let uri: Uri = "/api/v1/pods?labelSelector=a%3Db%2Cc+in+(d)&watch=1&limit=".parse().unwrap();
        let ask = ApiRequest::new(Method::GET, &uri, HeaderMap::new(), Vec::new());
        assert_eq!(ask.query("labelSelector"), Some("a=b,c in (d)"));
        assert!(ask.is_watch());
        assert_eq!(ask.query("limit"), None);
    }
}
