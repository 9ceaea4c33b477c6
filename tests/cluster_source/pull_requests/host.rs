//! A loopback fake of GitHub, GitLab and Gitea: the part of their APIs that is about pull requests.

use std::sync::{Arc, Mutex};

use moorline_test_support::git_server::{Reply, Request};
use serde_json::{Value, json};

/// The account of the token.
pub(super) const BOT: &str = "moorline-bot";

/// The pull request whose files the host does not list.
pub(super) const BROKEN: u64 = 6;
/// Bytes of an answer that are too many.
const TOO_LONG: usize = 9 << 20;
/// The size of a page that is too long, on one host.
const TOO_LONG_PAGE: (&str, usize) = ("github", 32);

/// An open pull request.
#[derive(Clone)]
pub(super) struct Proposal {
    pub(super) number: u64,
    pub(super) head: String,
    pub(super) is_fork: bool,
    pub(super) labels: Vec<&'static str>,
    pub(super) files: Vec<&'static str>,
}

/// A comment, as its pull request, its author and its text; the index is its id.
type Comment = (u64, String, String);

#[derive(Default)]
pub(super) struct HostState {
    pub(super) open: Vec<Proposal>,
    pub(super) comments: Vec<Comment>,
    /// Statuses, as commit and body.
    pub(super) statuses: Vec<(String, Value)>,
    /// The time in seconds since 1970 until which requests are refused.
    pub(super) limited_until: u64,
    /// Method, path and answer of each request.
    pub(super) heard: Vec<(String, String, u16)>,
}

/// A host below a path of the Git server.
#[derive(Clone)]
pub(super) struct Host {
    /// Its name, which is the field of the Notifier and the path.
    pub(super) service: &'static str,
    pub(super) state: Arc<Mutex<HostState>>,
}

/// Returns the seconds since 1970.
pub(super) fn seconds() -> u64 {
    std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_secs()
}

impl Host {
    pub(super) fn new(service: &'static str) -> Self {
        Self { service, state: Arc::default() }
    }

    /// Returns the Syncs whose plans it gets, in the order of their names.
    pub(super) fn syncs(&self) -> &'static [&'static str] {
        match self.service {
            "github" => &["github"],
            "gitlab" => &["gitlab"],
            _ => &["both", "gitea"],
        }
    }

    pub(super) fn set_open(&self, open: &[Proposal]) {
        self.state.lock().unwrap().open = open.to_vec();
    }

    /// Returns the comments on a pull request.
    pub(super) fn comments(&self, number: u64) -> Vec<String> {
        let state = self.state.lock().unwrap();
        let of = state.comments.iter().filter(|(on, author, _)| *on == number && author == BOT);
        of.map(|(.., text)| text.clone()).collect()
    }

    /// Returns the requests since the last call.
    pub(super) fn heard(&self) -> Vec<(String, String, u16)> {
        std::mem::take(&mut self.state.lock().unwrap().heard)
    }

    /// Answers a request below its path.
    pub(super) fn answer(&self, request: &Request) -> Option<Reply> {
        let path = request.path.strip_prefix(&format!("/{}/", self.service))?;
        let is_lab = self.service == "gitlab";
        let (header, token) = match self.service {
            "gitlab" => ("private-token", "planted-token"),
            "gitea" => ("authorization", "token planted-token"),
            _ => ("authorization", "Bearer planted-token"),
        };
        assert_eq!(request.header(header), Some(token), "{request:?}");
        let base = if is_lab { "projects/team%2Frepository/" } else { "repos/team/repository/" };
        let words: Vec<&str> = path.strip_prefix(base).unwrap_or(path).split('/').collect();
        let body: Value = serde_json::from_slice(&request.body).unwrap_or_default();
        let mut state = self.state.lock().unwrap();
        if seconds() < state.limited_until {
            state.heard.push((request.method.clone(), path.to_owned(), 429));
            let headers = format!("RateLimit-Remaining: 0\r\nRateLimit-Reset: {}\r\n", state.limited_until);
            return Some(Reply::Raw(429, headers.leak(), b"Retry later".to_vec()));
        }
        let (status, etag, answer) = match (request.method.as_str(), words.as_slice()) {
            ("GET", ["user"]) => (200, None, json!({"login": BOT, "username": BOT})),
            ("GET", ["pulls" | "merge_requests"]) => self.list(&state, request),
            ("GET", ["pulls", number, "files"] | ["merge_requests", number, "diffs"]) => {
                let number: u64 = number.parse().unwrap();
                let open = state.open.iter().find(|open| open.number == number).unwrap();
                let key = if is_lab { "new_path" } else { "filename" };
                let status = if number == BROKEN { 422 } else { 200 };
                (status, None, open.files.iter().map(|file| json!({key: file})).collect())
            }
            ("GET", ["issues", number, "comments"] | ["merge_requests", number, "notes"]) => {
                let number: u64 = number.parse().unwrap();
                let all = state.comments.iter().enumerate().filter(|(_, (on, ..))| *on == number);
                let one = |(id, (_, author, text)): (usize, &Comment)| {
                    let author = json!({"login": author, "username": author});
                    json!({"id": id, "user": author, "author": author, "body": text})
                };
                (200, None, all.map(one).collect())
            }
            ("POST", ["issues", number, "comments"] | ["merge_requests", number, "notes"]) => {
                let text = body["body"].as_str().unwrap().to_owned();
                state.comments.push((number.parse().unwrap(), BOT.to_owned(), text));
                (201, None, json!({"id": state.comments.len() - 1}))
            }
            ("PATCH", ["issues", "comments", id]) | ("PUT", ["merge_requests", _, "notes", id]) => {
                let id: usize = id.parse().unwrap();
                state.comments[id].2 = body["body"].as_str().unwrap().to_owned();
                (200, None, json!({"id": id}))
            }
            ("POST", ["statuses", commit]) => {
                state.statuses.push(((*commit).to_owned(), body));
                (201, None, json!({}))
            }
            _ => (404, None, json!({})),
        };
        let path = match page_of(request) {
            Some((page, _)) if page > 1 && words.len() == 1 => format!("{path}?page={page}"),
            _ => path.to_owned(),
        };
        state.heard.push((request.method.clone(), path, status));
        let etag = etag.map(|etag: String| format!("ETag: {etag}\r\n")).unwrap_or_default();
        let headers = format!("Content-Type: application/json\r\n{etag}").leak();
        let body = if status == 304 { Vec::new() } else { answer.to_string().into_bytes() };
        Some(Reply::Raw(status, headers, body))
    }

    /// The list of open pull requests, with an ETag of its content.
    fn list(&self, state: &HostState, request: &Request) -> (u16, Option<String>, Value) {
        let one = |open: &Proposal| {
            let from = if open.is_fork { 2 } else { 1 };
            let labels: Value = match self.service {
                "gitlab" => json!(open.labels),
                _ => open.labels.iter().map(|name| json!({"name": name})).collect(),
            };
            match self.service {
                "gitlab" => json!({
                    "iid": open.number, "sha": open.head, "target_branch": "main", "labels": labels,
                    "source_project_id": from, "target_project_id": 1,
                }),
                _ => json!({
                    "number": open.number, "labels": labels,
                    "head": {"sha": open.head, "label": "b", "ref": "b", "repo": {"id": from}},
                    "base": {"ref": "main", "repo": {"id": 1}},
                }),
            }
        };
        let (page, size) = page_of(request).unwrap();
        if (self.service, size) == TOO_LONG_PAGE {
            return (200, None, json!([{"number": 1, "body": "x".repeat(TOO_LONG)}]));
        }
        let list: Value = state.open.iter().skip((page - 1) * size).take(size).map(one).collect();
        let text = list.to_string();
        let sum = text.bytes().fold(7_u64, |sum, byte| sum.wrapping_mul(31).wrapping_add(u64::from(byte)));
        let etag = format!("W/\"{sum:x}\"");
        match request.header("if-none-match") == Some(&etag) {
            true => (304, Some(etag), list),
            false => (200, Some(etag), list),
        }
    }
}

/// Returns the page that a request is for, and its size.
fn page_of(request: &Request) -> Option<(usize, usize)> {
    let of = |name: &str| {
        let value = request.query.split('&').find_map(|pair| pair.strip_prefix(name));
        value.and_then(|value| value.parse().ok())
    };
    Some((of("page=")?, of("per_page=").or_else(|| of("limit="))?))
}
