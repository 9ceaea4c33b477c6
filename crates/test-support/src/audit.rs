//! Counts the requests that were really sent, from the API server's audit log.
//!
//! In: a mark, set before the requests to count.
//! Out: the requests that were answered since then, with their users. The server writes the log
//! before it sends a response, so a test that has its responses finds all of its requests. A marker
//! request at either end shows the start and the end in the same log.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{Read as _, Seek as _, SeekFrom};
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;
use kube::Client;
use serde::Deserialize;

use super::control_plane::{ControlPlane, running_test};
use super::credentials::ADMIN;

/// The marker is in the log when its response arrives; this deadline is for a log without it.
const MARKER_DEADLINE: Duration = Duration::from_secs(120);
/// Interval between two searches for the marker.
const LOOK_INTERVAL: Duration = Duration::from_millis(5);

/// A position in the audit log.
pub struct AuditMark {
    admin: Client,
    log: PathBuf,
    offset: u64,
}

impl AuditMark {
    /// Sets the mark: requests that are answered from now on are counted.
    pub async fn set(plane: &ControlPlane) -> Self {
        let mut mark = Self {
            admin: plane.client(ADMIN).await,
            log: plane.audit_log.clone(),
            offset: std::fs::metadata(&plane.audit_log).map_or(0, |log| log.len()),
        };
        let before = mark.until_marker().await;
        mark.offset += before.len() as u64;
        mark
    }

    /// All requests that were answered since the mark, except the markers and those for the key
    /// Secret of a daemon: each process sends these once, with any number of Syncs.
    pub async fn requests(&self) -> Requests {
        let Requests(all) = self.all_requests().await;
        Requests(all.into_iter().filter(|request| !request.is_for_keys()).collect())
    }

    /// Requests for the key Secrets of daemons.
    pub async fn requests_for_keys(&self) -> Requests {
        let Requests(all) = self.all_requests().await;
        Requests(all.into_iter().filter(Request::is_for_keys).collect())
    }

    /// All requests, including those for key Secrets.
    pub async fn all_requests(&self) -> Requests {
        Requests(self.until_marker().await.lines().filter_map(parse_request).collect())
    }

    /// The log from the mark up to and including a new marker request.
    async fn until_marker(&self) -> String {
        static COUNT: AtomicU64 = AtomicU64::new(1);
        let uri = format!("{MARKER}{}", COUNT.fetch_add(1, Ordering::Relaxed));
        let request = http::Request::get(&uri).body(Vec::new()).expect("a literal request");
        self.admin.request_text(request).await.expect("an answer to the marker request");
        let deadline = Instant::now() + MARKER_DEADLINE;
        let marker = format!("\"requestURI\":\"{uri}\"");
        loop {
            let mut text = self.whole_lines();
            if let Some(found) = text.find(&marker) {
                let end = text[found..].find('\n').map_or(text.len(), |line| found + line + 1);
                text.truncate(end);
                return text;
            }
            assert!(Instant::now() < deadline, "no {marker} in the audit log after {MARKER_DEADLINE:?}");
            tokio::time::sleep(LOOK_INTERVAL).await;
        }
    }

    fn whole_lines(&self) -> String {
        let mut text = Vec::new();
        File::open(&self.log)
            .and_then(|mut log| {
                log.seek(SeekFrom::Start(self.offset))?;
                log.read_to_end(&mut text)
            })
            .expect("the audit log can be read");
        text.truncate(text.iter().rposition(|byte| *byte == b'\n').map_or(0, |newline| newline + 1));
        String::from_utf8(text).expect("the audit log is UTF-8")
    }
}

/// Parses the request of a log line, if this line is the one by which the request is counted.
pub fn parse_request(line: &str) -> Option<Request> {
    let event =
        serde_json::from_str::<Event>(line).unwrap_or_else(|error| panic!("audit log: {error}: {line}"));
    event.counts().then(|| event.into())
}

/// Path that every API server answers at next to no cost; the number after it is in no other
/// request.
const MARKER: &str = "/version?moorline-mark=";

/// Requests, in the order in which they were answered.
#[derive(Debug, Clone)]
pub struct Requests(Vec<Request>);

impl From<Vec<Request>> for Requests {
    fn from(requests: Vec<Request>) -> Self {
        Self(requests)
    }
}

impl Requests {
    /// Keeps the requests of a user.
    pub fn by_user(self, user: &str) -> Self {
        self.filter(|request| request.user == user)
    }

    /// Keeps the requests for this namespace.
    pub fn in_namespace(self, namespace: &str) -> Self {
        self.filter(|request| request.namespace == namespace)
    }

    /// Keeps the requests of clients that the running test created.
    pub fn of_this_test(self) -> Self {
        let test = running_test();
        self.filter(|request| request.user_agent == test)
    }

    /// Keeps the requests for which `keep` returns true.
    pub fn filter(mut self, keep: impl FnMut(&Request) -> bool) -> Self {
        self.0.retain(keep);
        self
    }

    /// Returns all requests.
    pub fn as_slice(&self) -> &[Request] {
        &self.0
    }

    /// Counts the requests by verb and resource, such as `patch deployments.apps/status`.
    pub fn tally(&self) -> BTreeMap<String, usize> {
        let mut tally = BTreeMap::new();
        for request in self.0.iter().filter(|request| !request.reads_status()) {
            *tally.entry(request.verb_and_resource()).or_default() += 1;
        }
        tally
    }
}

/// One request; missing parts are empty.
#[derive(Debug, Clone, Default)]
pub struct Request {
    /// User that sent it.
    pub user: String,
    /// Impersonated user, if there is one.
    pub impersonated: String,
    /// `get`, `list`, `watch`, `create`, `update`, `patch`, `delete` or `deletecollection`.
    pub verb: String,
    pub group: String,
    /// The plural, such as `deployments`.
    pub resource: String,
    pub subresource: String,
    pub namespace: String,
    pub name: String,
    /// Path and query.
    pub uri: String,
    /// Credential id of the token, for a ServiceAccount.
    pub credential: String,
    /// User agent, which for clients of a test is the name of the test.
    pub user_agent: String,
    /// HTTP status of the response.
    pub code: u16,
    /// Time of its receipt by the server, in seconds since 1970, with microseconds.
    pub received: f64,
    /// Time of the response; for a watch, of its beginning.
    pub answered: f64,
}

impl Request {
    /// True for the Secret with the keys of a daemon: the name of its Lease, `moorline` or
    /// `moorline-<name>`, and `-key`.
    fn is_for_keys(&self) -> bool {
        self.resource == "secrets" && self.name.starts_with("moorline") && self.name.ends_with("-key")
    }

    /// True for a read of an object's status after a change; `tests/cluster_rollout/ready.rs`
    /// counts these.
    pub fn reads_status(&self) -> bool {
        self.verb == "get" && self.uri.contains("?resourceVersion=")
    }

    /// Verb and resource, as in [`Requests::tally`].
    pub fn verb_and_resource(&self) -> String {
        let mut what = match self.resource.as_str() {
            "" => format!("{} {}", self.verb, self.uri.split('?').next().unwrap_or_default()),
            resource => format!("{} {resource}", self.verb),
        };
        for (mark, part) in [('.', &self.group), ('/', &self.subresource)] {
            if !part.is_empty() {
                what.push(mark);
                what.push_str(part);
            }
        }
        what
    }
}

impl From<Event> for Request {
    fn from(event: Event) -> Self {
        let credential = event.user.extra.credential.into_iter().next();
        Self {
            credential: credential.unwrap_or_default(),
            user: event.user.username,
            impersonated: event.impersonated_user.username,
            verb: event.verb,
            group: event.object_ref.api_group,
            resource: event.object_ref.resource,
            subresource: event.object_ref.subresource,
            namespace: event.object_ref.namespace,
            name: event.object_ref.name,
            uri: event.request_uri,
            user_agent: event.user_agent,
            code: event.response_status.code,
            received: seconds(&event.request_received_timestamp),
            answered: seconds(&event.stage_timestamp),
        }
    }
}

/// The used part of a line of the audit log.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Event {
    stage: String,
    verb: String,
    #[serde(rename = "requestURI")]
    request_uri: String,
    user: User,
    #[serde(default)]
    impersonated_user: User,
    #[serde(default)]
    user_agent: String,
    #[serde(default)]
    object_ref: ObjectReference,
    #[serde(default)]
    response_status: ResponseStatus,
    request_received_timestamp: MicroTime,
    stage_timestamp: MicroTime,
}

fn seconds(time: &MicroTime) -> f64 {
    time.0.as_microsecond() as f64 / 1e6
}

impl Event {
    /// True for the line that counts. A watch is logged at its beginning and at its end, but is one
    /// request, made at its beginning.
    fn counts(&self) -> bool {
        let stage = match self.verb.as_str() {
            "watch" => "ResponseStarted",
            _ => "ResponseComplete",
        };
        self.stage == stage && !self.request_uri.starts_with(MARKER)
    }
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct User {
    username: String,
    extra: Extra,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Extra {
    #[serde(rename = "authentication.kubernetes.io/credential-id")]
    credential: Vec<String>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct ObjectReference {
    api_group: String,
    resource: String,
    subresource: String,
    namespace: String,
    name: String,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct ResponseStatus {
    code: u16,
}
