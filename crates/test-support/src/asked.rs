//! Requests and responses that pass through the fault proxy, as text.
//!
//! In: the bytes of a connection.
//! Out: each request as [`RecordedRequest`], and responses that a test injects.

use std::io::{self, BufRead};
use std::time::Instant;

/// A request of the daemon.
#[derive(Debug, Clone)]
pub struct RecordedRequest {
    pub method: String,
    pub path: String,
    pub query: String,
    pub at: Instant,
    pub body: Vec<u8>,
    pub head: String,
}

impl RecordedRequest {
    /// The body, for messages.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    pub fn is_watch(&self) -> bool {
        self.query.contains("watch=true")
    }

    /// True for a request that checks, after an interruption of the watch on Syncs, if the server
    /// is still the same: its version, or one item of a list.
    pub fn checks_server_identity(&self) -> bool {
        self.path == "/version" || self.lists() && self.query.contains("limit=1&fieldSelector=")
    }

    /// True for a read of the status of an object that is unhealthy or not done yet, or a list of
    /// its Pods or ReplicaSets.
    pub fn reads_health(&self) -> bool {
        let status = self.query.starts_with("resourceVersion=");
        let below = ["/pods", "/replicasets"].iter().any(|plural| self.path.ends_with(plural));
        self.method == "GET" && !self.is_watch() && (status || self.lists() && below)
    }

    /// True for a list, in pages or whole.
    pub fn lists(&self) -> bool {
        self.method == "GET" && self.query.contains("limit=") && !self.is_watch()
    }

    /// True for a list as a whole, or for its first page. On a shared control plane the objects of
    /// other scenes may fill further pages.
    pub fn begins_list(&self) -> bool {
        let token = self.query.split('&').find_map(|part| part.strip_prefix("continue="));
        self.lists() && token.is_none_or(str::is_empty)
    }

    /// True for any write.
    pub fn writes(&self) -> bool {
        self.method != "GET"
    }

    /// True for the Secret with the keys of the daemon. Objects of Syncs are created by patches.
    pub fn is_for_keys(&self) -> bool {
        let is_named = self.path.contains("/secrets/moorline") && self.path.ends_with("-key");
        is_named || self.method == "POST" && self.path.ends_with("/secrets")
    }

    /// True for a request about one object that a Sync manages, and not about a Sync, a Lease or
    /// the daemon's keys.
    pub fn is_on_object(&self) -> bool {
        let ours =
            self.path.contains("/syncs") || self.path.contains("/leases") || self.path.contains("/events");
        let of_collection =
            self.method == "GET" && (!self.query.is_empty() || !self.path.contains("/namespaces/"));
        !ours && !self.is_for_keys() && !of_collection && self.path.matches('/').count() > 3
    }

    /// True for a write of an object that a Sync manages.
    pub fn writes_object(&self) -> bool {
        self.writes() && self.is_on_object()
    }
}

/// Reads the next line, including its end.
pub fn line(from: &mut impl BufRead) -> io::Result<String> {
    let mut line = String::new();
    match from.read_line(&mut line)? {
        0 => Err(io::ErrorKind::UnexpectedEof.into()),
        _ => Ok(line),
    }
}

/// Reads the next request.
pub fn receive(from: &mut impl BufRead) -> io::Result<RecordedRequest> {
    let mut head = line(from)?;
    let mut words = head.split(' ');
    let (method, target) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    let (method, path, query) = (method.to_owned(), path.to_owned(), query.to_owned());
    let mut length = 0;
    loop {
        let line = line(from)?;
        head.push_str(&line);
        let header = line.trim_end().to_ascii_lowercase();
        if let Some(number) = header.strip_prefix("content-length: ") {
            length = number.parse().map_err(io::Error::other)?;
        }
        assert_ne!(header, "transfer-encoding: chunked", "the daemon's bodies have a length");
        if header.is_empty() {
            break;
        }
    }
    let mut body = vec![0; length];
    from.read_exact(&mut body)?;
    Ok(RecordedRequest { method, path, query, at: Instant::now(), body, head })
}

/// Formats an error response of an API server.
pub fn error_response(status: u16, retry: Option<u64>) -> String {
    let retry = retry.map(|seconds| format!("Retry-After: {seconds}\r\n")).unwrap_or_default();
    let body = serde_json::json!({
        "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "code": status,
        "reason": "Planted", "message": "planted by the test",
    })
    .to_string();
    http_response(&format!("{status} Planted"), &retry, &body)
}

/// Formats a response with its head, ready to send.
pub fn http_response(status: &str, headers: &str, body: &str) -> String {
    let length = body.len();
    format!(
        "HTTP/1.1 {status}\r\nContent-Type: application/json\r\n{headers}Content-Length: {length}\r\n\r\n{body}"
    )
}
