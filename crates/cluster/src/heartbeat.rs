//! Shows that a daemon is alive: the last renewal of its Lease, by the API server's clock.
//!
//! In: the Lease that a Sync names, and the `Date` header of the response.
//! Out: a [`Heartbeat`]. The clock of the caller's machine is not used.

use std::time::Duration;

use http::header;
use http_body_util::{BodyExt as _, Limited};
use jiff::Timestamp;
use jiff::fmt::rfc2822::DateTimeParser;
use k8s_openapi::api::coordination::v1::Lease;
use kube::client::Body;

use super::Connection;
use super::kinds::escape;

/// Maximum number of bytes of a Lease.
const MAX_LEASE: usize = 1 << 20;

/// Longest time that an upgrade leaves a Lease without a holder. A released Lease has a duration of
/// one second.
const HANDED_OVER: Duration = Duration::from_secs(15);

/// Timeout of the request.
const PATIENCE: Duration = Duration::from_secs(10);

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

impl Connection {
    /// Returns the state of the daemon that holds the Lease `namespace/name`.
    pub async fn heartbeat(&self, lease: &str) -> Heartbeat {
        let asked = tokio::time::timeout(PATIENCE, self.ask_for_heartbeat(lease)).await;
        asked.ok().flatten().unwrap_or(Heartbeat::Unknown)
    }

    async fn ask_for_heartbeat(&self, lease: &str) -> Option<Heartbeat> {
        let (namespace, name) = lease.split_once('/')?;
        let (namespace, name) = (escape(namespace), escape(name));
        let path = format!("/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases/{name}");
        let request = http::Request::get(path).body(Body::empty()).ok()?;
        let (head, body) = self.client.send(request).await.ok()?.into_parts();
        if head.status == http::StatusCode::NOT_FOUND {
            return Some(Heartbeat::Missing);
        }
        let date = head.headers.get(header::DATE)?.to_str().ok()?;
        let body = Limited::new(body, MAX_LEASE).collect().await.ok()?.to_bytes();
        let lease: Lease = serde_json::from_slice(&body).ok().filter(|_| head.status.is_success())?;
        judge(&lease, DateTimeParser::new().parse_timestamp(date).ok()?)
    }
}

/// Judges a Lease at a time of the server's clock.
fn judge(lease: &Lease, now: Timestamp) -> Option<Heartbeat> {
    let spec = lease.spec.as_ref()?;
    let renewed = spec.renew_time.as_ref()?.0;
    // The server's clock may be behind the daemon's.
    let age = Duration::try_from(now.duration_since(renewed)).unwrap_or_default();
    let lasts = u64::try_from(spec.lease_duration_seconds.unwrap_or_default()).unwrap_or_default();
    // A released Lease is taken within this time by the next daemon, as during an upgrade.
    let lasts = Duration::from_secs(lasts).max(HANDED_OVER);
    Some(match age <= lasts {
        true => Heartbeat::Alive,
        false => Heartbeat::Silent(age),
    })
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
        assert_eq!(judge(&lease("a"), second(1015)), Some(Heartbeat::Alive));
        assert_eq!(judge(&lease("a"), second(990)), Some(Heartbeat::Alive), "the server's clock is behind");
        assert_eq!(judge(&lease("a"), second(1240)), silent(240));
        assert_eq!(
            judge(&lease(""), second(1005)),
            Some(Heartbeat::Alive),
            "an upgrade takes it in a moment"
        );
        assert_eq!(judge(&lease(""), second(1020)), silent(20), "it was given back, and nobody took it");
        assert_eq!(judge(&Lease::default(), second(1005)), None);
    }

    #[test]
    fn the_date_of_an_answer_is_read() {
        let date = DateTimeParser::new().parse_timestamp("Tue, 24 Nov 2026 10:33:12 GMT").unwrap();
        assert_eq!(date.to_string(), "2026-11-24T10:33:12Z");
    }
}
