//! Which requests were really made, from the API server's audit log.
//!
//! In: a mark, set before what is to be counted. Out: the requests that were answered since then, with who made
//! them. The log is written before an answer is sent, so that a test which awaited its answers finds them all;
//! a marker request at either end shows in the same log where to begin and where to stop.

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

/// The marker is there when its answer is; this is for a log that is not.
const MARKER_DEADLINE: Duration = Duration::from_secs(30);
/// Between two looks for the marker.
const LOOK_INTERVAL: Duration = Duration::from_millis(5);

/// A place in the audit log.
pub(crate) struct AuditMark {
    admin: Client,
    log: PathBuf,
    offset: u64,
}

impl AuditMark {
    /// Requests that are answered from now on are counted.
    pub(crate) async fn set(plane: &ControlPlane) -> Self {
        let mut mark = Self {
            admin: plane.client(ADMIN).await,
            log: plane.audit_log.clone(),
            offset: std::fs::metadata(&plane.audit_log).map_or(0, |log| log.len()),
        };
        let before = mark.until_marker().await;
        mark.offset += before.len() as u64;
        mark
    }

    /// All requests that were answered since the mark, the markers left out, and those for the key Secret of a daemon: each
    /// process makes them once, whatever it follows.
    pub(crate) async fn requests(&self) -> Requests {
        let Requests(all) = self.all_requests().await;
        Requests(all.into_iter().filter(|request| !request.is_for_keys()).collect())
    }

    /// The requests for the key Secrets of daemons.
    pub(crate) async fn requests_for_keys(&self) -> Requests {
        let Requests(all) = self.all_requests().await;
        Requests(all.into_iter().filter(Request::is_for_keys).collect())
    }

    /// All requests, those for key Secrets among them.
    pub(crate) async fn all_requests(&self) -> Requests {
        Requests(self.until_marker().await.lines().filter_map(request).collect())
    }

    /// The log from the mark up to and with a new marker request.
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

/// The request that a line of the log is about, if the line is the one by which it is counted.
pub(crate) fn request(line: &str) -> Option<Request> {
    let event =
        serde_json::from_str::<Event>(line).unwrap_or_else(|error| panic!("audit log: {error}: {line}"));
    event.counts().then(|| event.into())
}

/// Answered by every API server at next to no cost; the number after it is in no other request.
const MARKER: &str = "/version?moorline-mark=";

/// Requests, in the order in which they were answered.
#[derive(Debug, Clone)]
pub(crate) struct Requests(Vec<Request>);

impl From<Vec<Request>> for Requests {
    fn from(requests: Vec<Request>) -> Self {
        Self(requests)
    }
}

impl Requests {
    /// Those of a user.
    pub(crate) fn of(self, user: &str) -> Self {
        self.only(|request| request.user == user)
    }

    /// Those that name this namespace.
    pub(crate) fn within(self, namespace: &str) -> Self {
        self.only(|request| request.namespace == namespace)
    }

    /// Those of clients that the running test made.
    pub(crate) fn of_this_test(self) -> Self {
        let test = running_test();
        self.only(|request| request.user_agent == test)
    }

    /// Those for which `keep` holds.
    pub(crate) fn only(mut self, keep: impl FnMut(&Request) -> bool) -> Self {
        self.0.retain(keep);
        self
    }

    /// Them all.
    pub(crate) fn as_slice(&self) -> &[Request] {
        &self.0
    }

    /// How many there are of each verb and resource: `patch deployments.apps/status` as kubectl would write it.
    pub(crate) fn tally(&self) -> BTreeMap<String, usize> {
        let mut tally = BTreeMap::new();
        for request in self.0.iter().filter(|request| !request.reads_status()) {
            *tally.entry(request.what()).or_default() += 1;
        }
        tally
    }
}

/// One request; a part that it does not have is empty.
#[derive(Debug, Clone, Default)]
pub(crate) struct Request {
    /// Who sent it.
    pub(crate) user: String,
    /// In whose name, if it is not the sender's.
    pub(crate) impersonated: String,
    /// `get`, `list`, `watch`, `create`, `update`, `patch`, `delete`, `deletecollection`.
    pub(crate) verb: String,
    pub(crate) group: String,
    /// The plural, such as `deployments`.
    pub(crate) resource: String,
    pub(crate) subresource: String,
    pub(crate) namespace: String,
    pub(crate) name: String,
    /// Path and query.
    pub(crate) uri: String,
    /// Of a ServiceAccount, which of its tokens was used.
    pub(crate) credential: String,
    /// For the clients of a test, the name of the test.
    pub(crate) user_agent: String,
    /// The HTTP status of the answer.
    pub(crate) code: u16,
    /// When the server had it, in seconds since 1970, exact to the microsecond.
    pub(crate) received: f64,
    /// When it was answered; for a watch, when the answer began.
    pub(crate) answered: f64,
}

impl Request {
    /// For the Secret with the keys of a daemon: its Lease's name, `moorline` or `moorline-<name>`, and `-key`.
    fn is_for_keys(&self) -> bool {
        self.resource == "secrets" && self.name.starts_with("moorline") && self.name.ends_with("-key")
    }

    /// A look at how an object is, after somebody wrote to it; `tests/ready.rs` counts these.
    pub(crate) fn reads_status(&self) -> bool {
        self.verb == "get" && self.uri.contains("?resourceVersion=")
    }

    /// Its verb and resource, as in a tally.
    pub(crate) fn what(&self) -> String {
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

/// A line of the audit log, of which this is a part.
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
    /// A watch is logged when it begins and when it ends, and is one request, made when it began.
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
