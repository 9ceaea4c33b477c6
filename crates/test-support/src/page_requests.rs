//! HTTP as a browser speaks it, as far as the tests of the page need it.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::time::Duration;

/// Longest wait for a response.
const TIMEOUT: Duration = Duration::from_secs(20);

/// A response.
pub struct Answer {
    pub status: u16,
    pub head: String,
    pub body: String,
}

impl Answer {
    /// The value of a header, by its name in lower case.
    pub fn header(&self, name: &str) -> Option<&str> {
        let lines = self.head.lines().filter_map(|line| line.split_once(": "));
        lines.into_iter().find(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, value)| value)
    }
}

pub fn get(address: &str, path: &str) -> Answer {
    ask(address, "GET", path, &[])
}

/// Sends a request, and reads the response until the server closes the connection. Without a header
/// `Host`, the address is the host.
pub fn ask(address: &str, method: &str, path: &str, headers: &[(&str, &str)]) -> Answer {
    send(address, (method, path), headers, "")
}

/// Sends a form.
pub fn post(address: &str, path: &str, headers: &[(&str, &str)], form: &str) -> Answer {
    let length = form.len().to_string();
    let of_form = [("Content-Type", "application/x-www-form-urlencoded"), ("Content-Length", &length)];
    send(address, ("POST", path), &[headers, &of_form].concat(), form)
}

fn send(address: &str, (method, path): (&str, &str), headers: &[(&str, &str)], body: &str) -> Answer {
    let mut stream = connect(address);
    let host = headers.iter().find(|(name, _)| *name == "Host").map_or(address, |(_, host)| host);
    let others: String = headers
        .iter()
        .filter(|(name, _)| *name != "Host")
        .map(|(name, value)| format!("{name}: {value}\r\n"))
        .collect();
    write!(stream, "{method} {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n{others}\r\n{body}")
        .unwrap();
    let mut bytes = Vec::new();
    stream.read_to_end(&mut bytes).unwrap();
    let text = String::from_utf8(bytes).unwrap();
    let (head, body) = text.split_once("\r\n\r\n").expect("a head and a body");
    let status = head.split(' ').nth(1).and_then(|status| status.parse().ok()).expect("a status");
    Answer { status, head: head.to_owned(), body: body.to_owned() }
}

fn connect(address: &str) -> TcpStream {
    let stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(TIMEOUT)).unwrap();
    stream
}

/// A client of an event stream.
pub struct Events(BufReader<TcpStream>);

impl Events {
    pub fn of(address: &str, path: &str) -> Self {
        let mut stream = connect(address);
        write!(stream, "GET {path} HTTP/1.1\r\nHost: {address}\r\n\r\n").unwrap();
        Self(BufReader::new(stream))
    }

    /// Waits for the next reported version.
    pub fn next(&mut self) -> u64 {
        let mut line = String::new();
        while self.0.read_line(&mut line).expect("something is told") > 0 {
            if let Some(version) = line.trim().strip_prefix("data: ") {
                return version.parse().unwrap();
            }
            line.clear();
        }
        panic!("the other side has closed")
    }
}
