//! Logs of a container.
//!
//! In: a Pod, a container and options.
//! Out: [`PodLog`], the bytes as they arrive. The caller bounds their number and their time.

use http_body_util::BodyExt as _;
use kube::client::Body;

use crate::Cluster;
use crate::api_client::ApiRequest;
use crate::api_error::ApiError;
use crate::kinds::escape;
use moorline_metrics::RequestClass;

/// Content type of logs.
const TEXT: &str = "text/plain, */*";

/// Options of a request for a log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogOptions {
    /// The container.
    pub container: String,
    /// True for the run before the current one.
    pub previous: bool,
    /// True to continue as the container writes.
    pub follow: bool,
    /// Only lines of the last seconds, if given.
    pub since_seconds: Option<u64>,
    /// Only the last lines.
    pub tail_lines: usize,
    /// The most bytes that the server sends, if given.
    pub limit_bytes: Option<usize>,
}

/// A log that is being read.
pub struct PodLog(Body);

/// Opens the log of a container.
///
/// # Cancellation
///
/// Dropping the [`PodLog`] ends the request.
///
/// # Errors
///
/// Any [`ApiError`].
pub async fn open_pod_log(
    cluster: &Cluster,
    namespace: &str,
    pod: &str,
    options: &LogOptions,
) -> Result<PodLog, ApiError> {
    let call = ApiRequest::new(RequestClass::Verify, "get", uri(namespace, pod, options)).accept(TEXT);
    cluster.0.wire.stream(call).await.map(PodLog)
}

fn uri(namespace: &str, pod: &str, options: &LogOptions) -> String {
    let mut uri = format!(
        "/api/v1/namespaces/{}/pods/{}/log?container={}&tailLines={}",
        escape(namespace),
        escape(pod),
        escape(&options.container),
        options.tail_lines,
    );
    for (parameter, is_set) in [("previous", options.previous), ("follow", options.follow)] {
        if is_set {
            uri.push_str(&format!("&{parameter}=true"));
        }
    }
    let numbers = [
        ("sinceSeconds", options.since_seconds),
        ("limitBytes", options.limit_bytes.and_then(|bytes| u64::try_from(bytes).ok())),
    ];
    for (parameter, value) in numbers {
        if let Some(value) = value {
            uri.push_str(&format!("&{parameter}={value}"));
        }
    }
    uri
}

impl PodLog {
    /// Returns the next bytes; `None` at the end.
    pub async fn next(&mut self) -> Option<Result<Vec<u8>, ApiError>> {
        loop {
            match self.0.frame().await? {
                Ok(frame) => {
                    if let Ok(data) = frame.into_data() {
                        return Some(Ok(data.to_vec()));
                    }
                }
                Err(error) => return Some(Err(ApiError::Unreachable(error.to_string().into()))),
            }
        }
    }
}

impl std::fmt::Debug for PodLog {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("PodLog")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_log_is_asked_for_with_its_options() {
        let mut options = LogOptions {
            container: "web&follow=true".to_owned(),
            previous: true,
            follow: false,
            since_seconds: Some(60),
            tail_lines: 5,
            limit_bytes: Some(9),
        };
        let base = "/api/v1/namespaces/shop/pods/web%2Fx/log?container=web%26follow%3Dtrue&tailLines=5";
        assert_eq!(
            uri("shop", "web/x", &options),
            format!("{base}&previous=true&sinceSeconds=60&limitBytes=9")
        );
        options =
            LogOptions { previous: false, follow: true, since_seconds: None, limit_bytes: None, ..options };
        assert_eq!(uri("shop", "web/x", &options), format!("{base}&follow=true"));
    }
}
