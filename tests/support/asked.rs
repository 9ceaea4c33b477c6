//! What passes through the fault proxy, as text.
//!
//! In: the bytes of a connection. Out: each request as [`Asked`], and answers that a test plants.

use std::io::{self, BufRead};
use std::time::Instant;

/// A request of the daemon.
#[derive(Debug, Clone)]
pub(crate) struct Asked {
    pub(crate) method: String,
    pub(crate) path: String,
    pub(crate) query: String,
    pub(crate) at: Instant,
    pub(crate) body: Vec<u8>,
    pub(crate) head: String,
}

impl Asked {
    /// The body, for messages.
    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    pub(crate) fn is_watch(&self) -> bool {
        self.query.contains("watch=true")
    }

    /// A look at what was seen or written last and at who answers, before the watch on Syncs goes on after an
    /// interruption.
    pub(crate) fn looks_back(&self) -> bool {
        self.path == "/version" || self.lists() && self.query.contains("limit=1&fieldSelector=")
    }

    /// A look at how an object is that is not well or not done yet, or at the Pods beneath it.
    pub(crate) fn looks_beneath(&self) -> bool {
        let status = self.query.starts_with("resourceVersion=");
        self.method == "GET" && !self.is_watch() && (status || self.lists() && self.path.ends_with("/pods"))
    }

    /// A list, in pages or whole.
    pub(crate) fn lists(&self) -> bool {
        self.method == "GET" && self.query.contains("limit=") && !self.is_watch()
    }

    /// A write, of whatever.
    pub(crate) fn writes(&self) -> bool {
        self.method != "GET"
    }

    /// For the Secret with the keys of the daemon. Objects of Syncs are created by patches.
    pub(crate) fn is_for_keys(&self) -> bool {
        let is_named = self.path.contains("/secrets/moorline") && self.path.ends_with("-key");
        is_named || self.method == "POST" && self.path.ends_with("/secrets")
    }

    /// A request about one object that a Sync manages, neither about a Sync nor about a Lease nor the daemon's keys.
    pub(crate) fn is_on_object(&self) -> bool {
        let ours =
            self.path.contains("/syncs") || self.path.contains("/leases") || self.path.contains("/events");
        let of_collection =
            self.method == "GET" && (!self.query.is_empty() || !self.path.contains("/namespaces/"));
        !ours && !self.is_for_keys() && !of_collection && self.path.matches('/').count() > 3
    }

    /// A write of an object that a Sync manages.
    pub(crate) fn writes_object(&self) -> bool {
        self.writes() && self.is_on_object()
    }
}

/// The next line with its end.
pub(crate) fn line(from: &mut impl BufRead) -> io::Result<String> {
    let mut line = String::new();
    match from.read_line(&mut line)? {
        0 => Err(io::ErrorKind::UnexpectedEof.into()),
        _ => Ok(line),
    }
}

/// Reads the next request.
pub(crate) fn receive(from: &mut impl BufRead) -> io::Result<Asked> {
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
    Ok(Asked { method, path, query, at: Instant::now(), body, head })
}

/// An answer as an API server gives it that cannot do what it should.
pub(crate) fn answer(status: u16, retry: Option<u64>) -> String {
    let retry = retry.map(|seconds| format!("Retry-After: {seconds}\r\n")).unwrap_or_default();
    let body = serde_json::json!({
        "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "code": status,
        "reason": "Planted", "message": "planted by the test",
    })
    .to_string();
    said(&format!("{status} Planted"), &retry, &body)
}

/// An answer as it goes over the connection.
pub(crate) fn said(status: &str, headers: &str, body: &str) -> String {
    let length = body.len();
    format!(
        "HTTP/1.1 {status}\r\nContent-Type: application/json\r\n{headers}Content-Length: {length}\r\n\r\n{body}"
    )
}
