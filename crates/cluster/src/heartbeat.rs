//! Shows that a daemon is alive: the last renewal of its Lease, by the API server's clock.
//!
//! In: the Lease that a Sync names, and the `Date` header of the response.
//! Out: a [`Heartbeat`], with the holder of the Lease in a [`LeaseState`]. The clock of the
//! caller's machine is not used.

use std::time::Duration;

use http::header;
use http_body_util::{BodyExt as _, Limited};
use jiff::Timestamp;
use jiff::fmt::rfc2822::DateTimeParser;
use k8s_openapi::api::coordination::v1::Lease;
use kube::client::Body;

use super::Connection;
use super::kinds::escape;
use moorline_api::VERSION_ANNOTATION;

/// Maximum number of bytes of a Lease.
const MAX_LEASE: usize = 1 << 20;

/// Longest time that an upgrade leaves a Lease without a holder. A released Lease has a duration of
/// one second.
const HANDED_OVER: Duration = Duration::from_secs(15);

/// Timeout of the request.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(10);

/// The state of the daemon that holds a Lease.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Heartbeat {
    /// The Lease is held and renewed.
    Alive,
    /// The Lease was not renewed for this long, and its term has ended.
    Silent(Duration),
    /// The Lease does not exist.
    Missing,
    /// The Lease cannot be read.
    Unknown,
}

/// A Lease, and the state of the daemon that holds it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeaseState {
    /// The state of the daemon.
    pub heartbeat: Heartbeat,
    /// Identity of the holder; none while nobody holds the Lease.
    pub holder: Option<Box<str>>,
    /// Time since the last renewal.
    pub age: Option<Duration>,
    /// Version of the program that wrote the Lease last.
    pub version: Option<Box<str>>,
}

impl LeaseState {
    fn without_lease(heartbeat: Heartbeat) -> Self {
        Self { heartbeat, holder: None, age: None, version: None }
    }
}

impl Connection {
    /// Returns the state of the daemon that holds the Lease `namespace/name`.
    pub async fn heartbeat(&self, lease: &str) -> Heartbeat {
        self.lease_state(lease).await.heartbeat
    }

    /// Returns the state of the Lease `namespace/name`, with its holder.
    pub async fn lease_state(&self, lease: &str) -> LeaseState {
        let asked = tokio::time::timeout(REQUEST_TIMEOUT, self.read_lease(lease)).await;
        asked.ok().flatten().unwrap_or_else(|| LeaseState::without_lease(Heartbeat::Unknown))
    }

    /// Returns the value of an annotation of the Lease `namespace/name`; none if the Lease has no
    /// such annotation or cannot be read.
    pub async fn lease_annotation(&self, lease: &str, key: &str) -> Option<String> {
        let asked = async {
            let (_, body) = self.request_lease(lease).await?;
            let body = Limited::new(body, MAX_LEASE).collect().await.ok()?.to_bytes();
            let lease: Lease = serde_json::from_slice(&body).ok()?;
            lease.metadata.annotations?.remove(key)
        };
        tokio::time::timeout(REQUEST_TIMEOUT, asked).await.ok().flatten()
    }

    async fn request_lease(&self, lease: &str) -> Option<(http::response::Parts, Body)> {
        let (namespace, name) = lease.split_once('/')?;
        let (namespace, name) = (escape(namespace), escape(name));
        let path = format!("/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases/{name}");
        let request = http::Request::get(path).body(Body::empty()).ok()?;
        Some(self.client.send(request).await.ok()?.into_parts())
    }

    async fn read_lease(&self, lease: &str) -> Option<LeaseState> {
        let (head, body) = self.request_lease(lease).await?;
        if head.status == http::StatusCode::NOT_FOUND {
            return Some(LeaseState::without_lease(Heartbeat::Missing));
        }
        let date = head.headers.get(header::DATE)?.to_str().ok()?;
        let body = Limited::new(body, MAX_LEASE).collect().await.ok()?.to_bytes();
        let lease: Lease = serde_json::from_slice(&body).ok().filter(|_| head.status.is_success())?;
        judge(&lease, DateTimeParser::new().parse_timestamp(date).ok()?)
    }
}

/// Judges a Lease at a time of the server's clock.
fn judge(lease: &Lease, now: Timestamp) -> Option<LeaseState> {
    let spec = lease.spec.as_ref()?;
    let renewed = spec.renew_time.as_ref()?.0;
    // The server's clock may be behind the daemon's.
    let age = Duration::try_from(now.duration_since(renewed)).unwrap_or_default();
    let lasts = u64::try_from(spec.lease_duration_seconds.unwrap_or_default()).unwrap_or_default();
    // A released Lease is taken within this time by the next daemon, as during an upgrade.
    let lasts = Duration::from_secs(lasts).max(HANDED_OVER);
    let heartbeat = match age <= lasts {
        true => Heartbeat::Alive,
        false => Heartbeat::Silent(age),
    };
    let holder = spec.holder_identity.as_deref().filter(|holder| !holder.is_empty()).map(Box::from);
    let annotations = lease.metadata.annotations.as_ref();
    let version =
        annotations.and_then(|all| all.get(VERSION_ANNOTATION)).map(|version| version.as_str().into());
    Some(LeaseState { heartbeat, holder, age: Some(age), version })
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::coordination::v1::LeaseSpec;
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;

    use super::*;

    #[test]
    fn a_daemon_lives_while_its_lease_is_renewed() {
        let second = |second| Timestamp::from_second(second).unwrap();
        let lease = |holder: &str| Lease {
            spec: Some(LeaseSpec {
                holder_identity: Some(holder.into()),
                lease_duration_seconds: Some(15),
                renew_time: Some(MicroTime(second(1000))),
                ..LeaseSpec::default()
            }),
            ..Lease::default()
        };
        let silent = |seconds| Some(Heartbeat::Silent(Duration::from_secs(seconds)));
        let heartbeat = |lease: &Lease, at: i64| judge(lease, second(at)).map(|state| state.heartbeat);
        assert_eq!(heartbeat(&lease("a"), 1015), Some(Heartbeat::Alive));
        assert_eq!(heartbeat(&lease("a"), 990), Some(Heartbeat::Alive), "the server's clock is behind");
        assert_eq!(heartbeat(&lease("a"), 1240), silent(240));
        assert_eq!(heartbeat(&lease(""), 1005), Some(Heartbeat::Alive), "an upgrade takes it in a moment");
        assert_eq!(heartbeat(&lease(""), 1020), silent(20), "it was given back, and nobody took it");
        assert_eq!(heartbeat(&Lease::default(), 1005), None);

        let held = judge(&lease("a"), second(1007)).unwrap();
        assert_eq!((held.holder.as_deref(), held.age), (Some("a"), Some(Duration::from_secs(7))));
        assert_eq!(judge(&lease(""), second(1007)).unwrap().holder, None);
    }

    #[test]
    fn the_date_of_an_answer_is_read() {
        let date = DateTimeParser::new().parse_timestamp("Tue, 24 Nov 2026 10:33:12 GMT").unwrap();
        assert_eq!(date.to_string(), "2026-11-24T10:33:12Z");
    }
}
