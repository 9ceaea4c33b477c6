//! A watch on one kind, for the lifetime of the daemon.
//!
//! In: the collection to watch.
//! Out: [`WatchEvent`]s for a sink, in the server's order. Existing objects come first, streamed if
//! the server supports it and otherwise in pages; then the watch continues from the last bookmark.
//! Everything is listed again only after the server has compacted our version.

pub(crate) mod kind_watch;

use std::time::Duration;

use http_body_util::BodyExt as _;
use kube::client::Body;
use serde::Deserialize;
use serde_json::{Map, Value};

use super::jitter::{between, jitter};
use super::query;
use crate::api_client::{ApiClient, ApiRequest, METADATA, WHOLE, unreadable};
use crate::api_error::ApiError;
use crate::pagination::Pages;
use crate::rewind_detection::{VersionProbe, number, version_of};
use moorline_core::object::GroupKind;
use moorline_metrics::RequestClass;
use moorline_runtime::clock;

/// Time after the server's own timeout until an open request counts as broken.
const GRACE: Duration = Duration::from_secs(15);
/// Maximum number of bytes of one event.
const MAX_LINE: usize = 8 << 20;
/// Delays after failures: the first, and the longest.
const PAUSES: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(30));
/// Longest delay while the API server cannot be reached, so that its return is noticed soon.
const AWAY: Duration = Duration::from_secs(5);
/// Delay between attempts at a forbidden watch: new rights are noticed soon, unless nothing waits
/// for them. If the whole cluster is forbidden, each namespace in use is watched instead, so that
/// nothing waits for more.
const FORBIDDEN: (Duration, Duration) = (Duration::from_secs(4), Duration::from_secs(120));
/// Interval between two lists of a kind that cannot be watched.
pub const POLL: Duration = Duration::from_secs(60);
/// A request that ended sooner counts as a failure.
const SHORT: Duration = Duration::from_secs(1);

/// Collection to watch.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct WatchTarget {
    pub(super) kind: GroupKind,
    /// Only objects of this namespace; none for all.
    pub(super) namespace: Option<Box<str>>,
    /// True if nothing waits for the right to watch it.
    pub(super) patient: bool,
    /// Path of the collection.
    pub(super) path: String,
    /// Query parameter that selects objects, such as `labelSelector=a`.
    pub(super) selector: String,
    /// True for whole objects, false for metadata.
    pub(super) whole: bool,
    /// False for kinds that can only be listed: they are listed periodically.
    pub(super) watchable: bool,
}

impl WatchTarget {
    /// Returns the target for the metadata of one object, by name.
    pub(super) fn one(kind: &str, namespace: Option<&str>, path: String, name: &str) -> Self {
        Self {
            kind: GroupKind::new("", kind),
            namespace: namespace.map(Into::into),
            patient: false,
            path,
            selector: format!("fieldSelector={}", query(&format!("metadata.name={name}"))),
            whole: false,
            watchable: true,
        }
    }
}

/// Event of a watch.
#[derive(Debug)]
pub(super) enum WatchEvent {
    /// A new list of all objects begins.
    Begins,
    /// The current state of an object; only its metadata, unless whole objects were requested.
    Seen(Map<String, Value>),
    /// The last state of an object that was deleted, or is not selected any more.
    Gone(Map<String, Value>),
    /// The list is complete, at this version.
    Listed(u64),
    /// The server was set back to an earlier state, as by a restored backup; only for whole
    /// objects.
    Rewound,
    /// The server was upgraded or downgraded; only for whole objects.
    Upgraded,
    /// The watch does not work now; its objects may be outdated.
    Broken(ApiError),
}

/// End of a watch request.
enum WatchEnd {
    /// The server closed the request regularly.
    Closed,
    /// The server has compacted our version.
    Expired,
    /// The server was set back to before a state that we have seen.
    Rewound,
    /// The server cannot stream the initial list.
    CannotStream,
    Failed(ApiError),
}

struct Watch<'a, S> {
    wire: &'a ApiClient,
    target: &'a WatchTarget,
    sink: S,
    /// Version to continue from; none before the list is complete.
    version: Option<Box<str>>,
    streams: bool,
    /// The newest whole object reported; a server of the same history has it in this version or a
    /// later one.
    newest: Option<VersionProbe>,
    /// The watch was interrupted, so the server may have another history.
    doubtful: bool,
    /// The server's release, as last read.
    release: Option<Box<str>>,
}

/// Watches without end.
pub(super) async fn follow(wire: ApiClient, target: WatchTarget, sink: impl FnMut(WatchEvent)) {
    let mut watch = Watch {
        wire: &wire,
        target: &target,
        sink,
        version: None,
        streams: true,
        newest: None,
        doubtful: false,
        release: None,
    };
    let (mut pause, mut forbidden) = (PAUSES.0, FORBIDDEN.0);
    loop {
        let begun = clock::now();
        let looked = watch.doubtful;
        let end = watch.run_once().await;
        match end {
            WatchEnd::Closed if clock::since(begun) >= SHORT => {
                (pause, forbidden) = (PAUSES.0, FORBIDDEN.0);
                continue;
            }
            WatchEnd::Closed => {}
            WatchEnd::CannotStream => {
                watch.streams = false;
                continue;
            }
            WatchEnd::Rewound => {
                wire.metrics.watch_relisted(&target.kind.to_string(), "rewound");
                tracing::warn!("the API server was restored to an earlier state: everything is listed again");
                (watch.version, watch.newest) = (None, None);
                wire.write_history.forget();
                (watch.sink)(WatchEvent::Rewound);
            }
            WatchEnd::Expired => {
                watch.doubtful = !looked;
                wire.metrics.watch_relisted(&target.kind.to_string(), "expired");
                watch.version = None;
                (watch.sink)(WatchEvent::Begins);
            }
            WatchEnd::Failed(failure) if failure.code() == Some(403) => {
                tracing::debug!(kind = %target.kind, %failure, "a watch is forbidden");
                (watch.sink)(WatchEvent::Broken(failure));
                // A server that has only just started forbids requests that it will allow in a
                // moment.
                let never_seen = target.patient && watch.version.is_none();
                tokio::time::sleep(jitter(if never_seen { FORBIDDEN.1 } else { forbidden })).await;
                if target.patient {
                    forbidden = (forbidden * 2).min(FORBIDDEN.1);
                }
                watch.doubtful = true;
                continue;
            }
            WatchEnd::Failed(failure) => {
                tracing::debug!(kind = %target.kind, %failure, "a watch broke");
                wire.metrics.watch_relisted(&target.kind.to_string(), "broken");
                watch.doubtful = true;
                if failure.is_away() {
                    pause = pause.min(AWAY);
                }
                (watch.sink)(WatchEvent::Broken(failure));
            }
        }
        if clock::since(begun) >= SHORT {
            pause = PAUSES.0;
        }
        tokio::time::sleep(jitter(pause)).await;
        pause = (pause * 2).min(PAUSES.1);
    }
}

impl<S: FnMut(WatchEvent)> Watch<'_, S> {
    async fn run_once(&mut self) -> WatchEnd {
        if !self.target.watchable {
            return match self.pages().await {
                Ok(()) => {
                    tokio::time::sleep(jitter(POLL)).await;
                    WatchEnd::Closed
                }
                Err(failure) => WatchEnd::Failed(failure),
            };
        }
        match self.is_rewound().await {
            Ok(false) => {}
            Ok(true) => return WatchEnd::Rewound,
            Err(failure) => return WatchEnd::Failed(failure),
        }
        let listed = match (&self.version, self.streams) {
            (Some(_), _) | (None, true) => Ok(()),
            (None, false) => self.pages().await,
        };
        if let Err(failure) = listed {
            return WatchEnd::Failed(failure);
        }
        if self.version.is_none() {
            (self.sink)(WatchEvent::Begins);
        }
        let open = between(&self.wire.open);
        let uri = self.uri(open);
        let accept = if self.target.whole { WHOLE } else { METADATA };
        let call = ApiRequest::new(RequestClass::Watch, "watch", uri).accept(accept);
        match self.wire.stream(call).await {
            Ok(body) => self.read(body, open + GRACE).await,
            Err(failure) => match failure.code() {
                Some(410) => WatchEnd::Expired,
                // A server that is behind our version, as after a restored backup, answers forever
                // that the version is too large.
                _ if failure.is_behind() && self.version.is_some() => WatchEnd::Expired,
                Some(400 | 422) if self.streams && self.version.is_none() => WatchEnd::CannotStream,
                _ => WatchEnd::Failed(failure),
            },
        }
    }

    /// True if the server has lost the newest object seen or written.
    async fn is_rewound(&mut self) -> Result<bool, ApiError> {
        let doubtful = self.doubtful || self.wire.write_history.is_doubtful();
        if self.target.whole && (doubtful || self.release.is_none()) {
            self.compare_release().await?;
        }
        if !self.target.whole || !doubtful {
            return Ok(false);
        }
        let rewound = match &self.newest {
            Some(newest) => newest.is_lost(self.wire).await?,
            None => false,
        };
        let newest = self.newest.as_ref().map_or(0, |newest| newest.version);
        let rewound = rewound || self.wire.write_history.is_lost(self.wire, newest).await?;
        self.doubtful = false;
        Ok(rewound)
    }

    /// Reports a change of the server's release: an apply may have another effect now.
    async fn compare_release(&mut self) -> Result<(), ApiError> {
        let Some(release) = self.wire.release().await? else { return Ok(()) };
        let before = self.release.replace(release.clone());
        if let Some(before) = before.filter(|before| *before != release) {
            tracing::info!(%before, now = %release, "the release of the API server changed: every object is verified again");
            (self.sink)(WatchEvent::Upgraded);
        }
        Ok(())
    }

    /// Remembers the newest object.
    fn note(&mut self, object: &Map<String, Value>) {
        let version = number(version_of(object).as_deref());
        if self.target.whole
            && let Some(place) = place(object)
            && self.newest.as_ref().is_none_or(|newest| newest.version < version)
        {
            self.newest = Some(VersionProbe { path: self.target.path.as_str().into(), place, version });
        }
    }

    /// Forgets an object if it is the newest.
    fn forget(&mut self, object: &Map<String, Value>) {
        self.newest.take_if(|newest| place(object).is_some_and(|place| place == newest.place));
    }

    fn uri(&self, open: Duration) -> String {
        let (path, selector) = (&self.target.path, &self.target.selector);
        let seconds = open.as_secs();
        let from = match &self.version {
            Some(version) => format!("resourceVersion={version}"),
            None => "sendInitialEvents=true&resourceVersionMatch=NotOlderThan".to_owned(),
        };
        format!("{path}?watch=true&allowWatchBookmarks=true&timeoutSeconds={seconds}&{selector}&{from}")
    }

    /// Lists everything in pages.
    async fn pages(&mut self) -> Result<(), ApiError> {
        (self.sink)(WatchEvent::Begins);
        let pages = Pages::new(self.wire, RequestClass::Watch, &self.target.path, &self.target.selector);
        let mut pages = if self.target.whole { pages.of_whole_objects() } else { pages };
        let mut version = Box::default();
        while let Some(page) = pages.next().await? {
            page.items.into_iter().for_each(|item| (self.sink)(WatchEvent::Seen(item)));
            version = page.version;
        }
        (self.sink)(WatchEvent::Listed(number(Some(&version))));
        self.version = Some(version);
        Ok(())
    }

    async fn read(&mut self, mut body: Body, open: Duration) -> WatchEnd {
        let until = tokio::time::Instant::now() + open;
        let mut line = Vec::new();
        loop {
            let frame = match tokio::time::timeout_at(until, body.frame()).await {
                Ok(Some(Ok(frame))) => frame,
                Ok(Some(Err(error))) => {
                    self.wire.write_history.interrupted();
                    return WatchEnd::Failed(ApiError::Unreachable(error.to_string().into()));
                }
                Ok(None) => return WatchEnd::Closed,
                Err(_) => return WatchEnd::Failed(ApiError::Timeout(open)),
            };
            let Ok(data) = frame.into_data() else { continue };
            let mut rest: &[u8] = &data;
            while let Some(end) = rest.iter().position(|byte| *byte == b'\n') {
                line.extend_from_slice(&rest[..end]);
                if let Some(end) = self.line(&line) {
                    return end;
                }
                line.clear();
                rest = &rest[end + 1..];
            }
            line.extend_from_slice(rest);
            if line.len() > MAX_LINE {
                return WatchEnd::Failed(ApiError::InvalidResponse("an event is too large".into()));
            }
        }
    }

    /// Reports one event; returns the end if the line is one.
    fn line(&mut self, line: &[u8]) -> Option<WatchEnd> {
        let event: RawWatchEvent = match serde_json::from_slice(line) {
            Ok(event) => event,
            Err(error) => return Some(WatchEnd::Failed(unreadable(&error))),
        };
        let object = event.object;
        let version = version_of(&object);
        match &*event.what {
            "ADDED" | "MODIFIED" => {
                self.note(&object);
                (self.sink)(WatchEvent::Seen(object));
            }
            "DELETED" => {
                self.forget(&object);
                (self.sink)(WatchEvent::Gone(object));
            }
            "BOOKMARK" => {
                let metadata = object.get("metadata");
                let end = metadata.and_then(|it| it.get("annotations")?.get("k8s.io/initial-events-end"));
                if self.version.is_none() && end.is_some() {
                    self.version.clone_from(&version);
                    (self.sink)(WatchEvent::Listed(number(version.as_deref())));
                }
            }
            "ERROR" if object.get("code").and_then(Value::as_u64) == Some(410) => {
                return Some(WatchEnd::Expired);
            }
            _ => {
                let message = object.get("message").and_then(Value::as_str).unwrap_or("an unknown event");
                return Some(WatchEnd::Failed(ApiError::InvalidResponse(message.into())));
            }
        }
        // Before the list is complete there is no version to continue from.
        if self.version.is_some() && version.is_some() {
            self.version = version;
        }
        None
    }
}

/// Field selector of an object in a collection of all namespaces.
fn place(object: &Map<String, Value>) -> Option<Box<str>> {
    let text = |field: &str| object.get("metadata")?.get(field)?.as_str();
    let name = text("name")?;
    Some(match text("namespace") {
        Some(namespace) => format!("metadata.namespace={namespace},metadata.name={name}").into(),
        None => format!("metadata.name={name}").into(),
    })
}

#[derive(Deserialize)]
struct RawWatchEvent {
    #[serde(rename = "type")]
    what: Box<str>,
    object: Map<String, Value>,
}
