//! Reads the time until which a server wants no more requests.
//!
//! In: the status and the headers of an answer, and the time. Out: a pause. `Retry-After` comes
//! first. GitHub names the end of a limit in `x-ratelimit-reset`, GitLab in `RateLimit-Reset`, and
//! proxies in front of Gitea and Forgejo use either. A time counts from the clock of the server.

use std::time::Duration;

use jiff::Timestamp;
use moorline_identity::http_date;
use ureq::http::HeaderMap;

/// Statuses that a server answers when a limit is used up.
const LIMITED: [u16; 2] = [403, 429];
/// A smaller number is a duration in seconds, a larger one the time in seconds since 1970.
const FIRST_TIME: u64 = 1_000_000_000;
/// The least pause, also if the server names none, or a time that has passed already.
const LEAST: Duration = Duration::from_secs(1);

/// Headers about limits of requests.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct LimitHeaders {
    /// `Retry-After`: seconds, or a date.
    pub(super) retry_after: Option<String>,
    /// The number of requests that are left.
    pub(super) remaining: Option<String>,
    /// The time at which that number is full again.
    pub(super) reset: Option<String>,
}

impl LimitHeaders {
    /// Reads the headers of GitHub, or those of GitLab and of proxies.
    pub(super) fn of(headers: &HeaderMap) -> Self {
        let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok()).map(str::to_owned);
        Self {
            retry_after: text("retry-after"),
            remaining: text("x-ratelimit-remaining").or_else(|| text("ratelimit-remaining")),
            reset: text("x-ratelimit-reset").or_else(|| text("ratelimit-reset")),
        }
    }

    /// Returns the pause that the server asks for. `date` is the time of the server.
    pub(super) fn pause(&self, status: u16, date: Option<&str>, now: Timestamp) -> Option<Duration> {
        let server_time = date.and_then(http_date).unwrap_or(now);
        if let Some(asked) = &self.retry_after {
            let seconds = || asked.trim().parse().ok().map(|all| Duration::from_secs(all).max(LEAST));
            return seconds().or_else(|| Some(until(http_date(asked.trim())?, server_time)));
        }
        // Any other answer only counts the requests down.
        let is_used_up = self.remaining.as_deref().is_some_and(|left| left.trim() == "0");
        if !LIMITED.contains(&status) || !is_used_up {
            return None;
        }
        let reset: u64 = self.reset.as_deref()?.trim().parse().ok()?;
        match reset < FIRST_TIME {
            true => Some(Duration::from_secs(reset).max(LEAST)),
            false => {
                let end = Timestamp::from_second(i64::try_from(reset).ok()?).ok()?;
                Some(until(end, server_time))
            }
        }
    }
}

fn until(end: Timestamp, now: Timestamp) -> Duration {
    Duration::try_from(end.duration_since(now)).unwrap_or_default().max(LEAST)
}

#[cfg(test)]
mod tests {
    use super::*;
    use ureq::http::{HeaderName, HeaderValue};

    #[test]
    fn the_headers_of_each_host_are_read() {
        for [remaining, reset] in
            [["X-RateLimit-Remaining", "X-RateLimit-Reset"], ["RateLimit-Remaining", "RateLimit-Reset"]]
        {
            let pairs = [("Retry-After", "9"), (remaining, "0"), (reset, "7")];
            let pairs = pairs.map(|(name, value)| (name.parse().unwrap(), value.parse().unwrap()));
            let read = LimitHeaders::of(&HeaderMap::from_iter::<[(HeaderName, HeaderValue); 3]>(pairs));
            let expect = [Some("9"), Some("0"), Some("7")].map(|value| value.map(str::to_owned));
            assert_eq!([read.retry_after, read.remaining, read.reset], expect);
        }
        assert_eq!(LimitHeaders::of(&HeaderMap::new()), LimitHeaders::default());
    }

    #[test]
    fn a_host_names_the_end_of_a_limit_in_its_own_way() {
        let now = Timestamp::from_second(1_800_000_000).unwrap();
        let (date, soon, past) = ("Fri, 15 Jan 2027 08:00:00 GMT", "1800000600", "1799999000");
        // The clock of the server is ten minutes behind ours.
        let behind = "Fri, 15 Jan 2027 07:50:00 GMT";
        for (status, retry_after, remaining, reset, date, expect) in [
            // GitHub: the primary limit, and a secondary one.
            (403, None, Some("0"), Some(soon), Some(date), Some(600)),
            (429, None, Some("0"), Some(soon), Some(date), Some(600)),
            (403, Some("30"), Some("4000"), Some(soon), Some(date), Some(30)),
            // A right is missing.
            (403, None, Some("4999"), Some(soon), Some(date), None),
            (403, None, None, None, Some(date), None),
            (404, None, Some("0"), Some(soon), Some(date), None),
            // The last request that was left.
            (201, None, Some("0"), Some(soon), Some(date), None),
            // GitLab names both.
            (429, Some("42"), Some("0"), Some(soon), Some(date), Some(42)),
            // A proxy that follows the draft of the IETF.
            (429, None, Some("0"), Some("17"), None, Some(17)),
            (429, None, Some("0"), Some(soon), Some(behind), Some(1200)),
            (429, None, Some("0"), Some(soon), None, Some(600)),
            (429, None, Some("0"), Some(past), Some(date), Some(1)),
            (429, None, Some(" 0 "), Some("x"), Some(date), None),
            (429, None, Some("0"), None, Some(date), None),
            (429, None, Some("0"), Some("99999999999999999999"), Some(date), None),
            (429, None, Some("0"), Some("18446744073709551615"), Some(date), None),
            (503, Some("Fri, 15 Jan 2027 08:02:00 GMT"), None, None, Some(date), Some(120)),
            (503, Some("Fri, 15 Jan 2027 08:02:00 GMT"), None, None, Some(behind), Some(720)),
            (503, Some("Fri, 15 Jan 2027 07:59:00 GMT"), None, None, Some(date), Some(1)),
            // Without a pause, the next request would be the same one at once.
            (429, Some("0"), None, None, Some(date), Some(1)),
            (429, Some(" 30 "), None, None, Some(date), Some(30)),
            (429, None, Some("0"), Some("0"), Some(date), Some(1)),
            (429, None, Some("0"), Some(" 17 "), Some(date), Some(17)),
            (429, None, Some("0"), Some("999999999"), Some(date), Some(999_999_999)),
            (503, Some("soon"), None, None, Some(date), None),
            (503, None, None, None, None, None),
        ] {
            let text = |value: Option<&str>| value.map(str::to_owned);
            let headers = LimitHeaders {
                retry_after: text(retry_after),
                remaining: text(remaining),
                reset: text(reset),
            };
            let found = headers.pause(status, date, now);
            assert_eq!(found, expect.map(Duration::from_secs), "{status} {headers:?}");
        }
    }
}
