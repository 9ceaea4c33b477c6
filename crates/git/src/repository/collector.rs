//! Posts batches to the collector that the operator names, by the same network as the
//! repositories.
//!
//! In: the URL of a setting, and bodies. Out: the status and the first bytes of each answer. The
//! host passes the rules of the operator, and no redirect is followed.

use std::io::Read as _;
use std::time::Instant;

use ureq::http;

use super::super::credentials::Credentials;
use super::super::error::Error;
use super::super::http::HttpClient;
use super::Repositories;
use crate::resolver::host_and_port;

/// Maximum number of bytes of an answer that are read.
const MAX_ANSWER_BYTES: u64 = 4096;
/// Media type of a batch.
const MEDIA_TYPE: &str = "application/json";

/// Client of one collector, which keeps its connection.
#[derive(Debug)]
pub struct Collector {
    client: HttpClient,
    url: Box<str>,
    server: Box<str>,
}

impl Collector {
    /// Creates a client for an `https` or `http` URL.
    pub fn new(url: &str, repositories: &Repositories) -> Result<Self, Error> {
        let bad = || Error::InvalidResponse { server: url.into(), what: "it is no URL" };
        let uri: http::Uri = url.parse().map_err(|_| bad())?;
        let (host, port) = host_and_port(&uri).ok_or_else(bad)?;
        let client = HttpClient::new(host, &Credentials::default(), &repositories.0.network)?;
        Ok(Self { client, url: url.into(), server: format!("{host}:{port}").into() })
    }

    /// Posts a body, on this thread, until `by`.
    ///
    /// # Errors
    ///
    /// An [`Error`] if there is no answer; any answer is a success.
    pub fn post(&self, body: &[u8], by: Instant) -> Result<(u16, Vec<u8>), Error> {
        let request = (http::Method::POST, &*self.url, &*self.server);
        let answer = self.client.upload(request, (MEDIA_TYPE, body), None, by)?;
        let mut first = Vec::new();
        // The status says the most, so a body that breaks off is as good as none.
        let _ = answer.body.take(MAX_ANSWER_BYTES).read_to_end(&mut first);
        Ok((answer.status, first))
    }
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead as _, BufReader, Write as _};
    use std::net::TcpListener;
    use std::time::Duration;

    use super::*;
    use crate::hosts::HostPolicy;

    /// Serves one request; returns its head and body.
    fn serve_once(listener: &TcpListener, answer: &str) -> (Vec<String>, Vec<u8>) {
        let (stream, _) = listener.accept().unwrap();
        let mut input = BufReader::new(stream.try_clone().unwrap());
        let (mut head, mut length) = (Vec::new(), 0);
        loop {
            let mut line = String::new();
            input.read_line(&mut line).unwrap();
            let line = line.trim_end().to_ascii_lowercase();
            if line.is_empty() {
                break;
            }
            if let Some(count) = line.strip_prefix("content-length: ") {
                length = count.parse().unwrap();
            }
            head.push(line);
        }
        let mut body = vec![0; length];
        input.read_exact(&mut body).unwrap();
        (&stream).write_all(answer.as_bytes()).unwrap();
        (head, body)
    }

    #[test]
    fn a_batch_is_posted_under_the_rules_for_hosts() {
        let folder = tempfile::tempdir().unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/v1/logs", listener.local_addr().unwrap());
        let by = || Instant::now() + Duration::from_secs(20);
        let open = |policy| Repositories::new(folder.path(), None, policy).unwrap();
        let strict = HostPolicy::new("allowedHosts", []).unwrap();
        let refused = Collector::new(&url, &open(strict.clone())).unwrap().post(b"{}", by());
        assert!(matches!(refused, Err(Error::NotAllowed { .. })), "{refused:?}");

        let collector = Collector::new(&url, &open(strict.with_loopback())).unwrap();
        let server = std::thread::spawn(move || {
            let redirect = "HTTP/1.1 302 Found\r\nlocation: http://127.0.0.1:1/\r\ncontent-length: 0\r\nconnection: close\r\n\r\n";
            let first = serve_once(&listener, redirect);
            let taken = "HTTP/1.1 200 OK\r\ncontent-length: 2\r\nconnection: close\r\n\r\n{}";
            drop(serve_once(&listener, taken));
            // The last one is read and never answered.
            (first, listener.accept().unwrap())
        });
        assert_eq!(collector.post(b"{\"a\":1}", by()).unwrap(), (302, Vec::new()), "no redirect is followed");
        assert_eq!(collector.post(b"{}", by()).unwrap(), (200, b"{}".to_vec()));
        let hangs = collector.post(b"{}", Instant::now() + Duration::from_millis(200));
        assert!(matches!(hangs, Err(Error::Timeout { .. })), "{hangs:?}");
        let ((head, body), _) = server.join().unwrap();
        assert_eq!(body, b"{\"a\":1}");
        assert_eq!(head[0], "post /v1/logs http/1.1");
        assert!(head.contains(&"content-type: application/json".to_owned()), "{head:?}");
    }
}
