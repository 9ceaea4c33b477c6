//! A loopback server of Git LFS: files beside the repositories of a Git server, with faults on
//! demand.
//!
//! In: a Git server, and the login that it wants. Out: pointers to files, and the requests for
//! them; the Git server answers all others as before.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard};

use moorline_git::Digest;
use serde_json::{Value, json};

use super::git_server::{GitServer, Reply, Request};

/// Value of the header that a download must have.
const TICKET: &str = "planted-ticket";

/// Behaviour of the server.
#[derive(Clone, Debug, Default)]
pub enum LfsFault {
    #[default]
    None,
    /// The batch has this status, with headers.
    Batch(u16, &'static str),
    /// The batch has no object.
    Empty,
    /// The batch has this error for each object.
    Object(u64),
    /// The batch says that files are at this URL.
    Href(String),
    /// Downloads have this status, with headers.
    Download(u16, &'static str),
    /// Downloads have other bytes of the same length.
    OtherBytes,
    /// Downloads have so many more bytes.
    MoreBytes(usize),
}

#[derive(Default)]
struct LfsServerState {
    objects: BTreeMap<String, Vec<u8>>,
    fault: LfsFault,
    /// Only the batch has the login.
    has_tickets_only: bool,
    /// Paths of the requests.
    requests: Vec<String>,
    /// Rules that a request broke.
    problems: Vec<String>,
}

/// Files in Git LFS on a server.
#[derive(Clone, Default)]
pub struct LfsServer(Arc<Mutex<LfsServerState>>);

impl LfsServer {
    /// Serves files beside the repositories of a server, at `url` without a slash at its end, to
    /// those with this `Authorization` header.
    pub fn serve(server: &GitServer, url: String, login: Option<&'static str>) -> Self {
        let lfs = Self::default();
        let answers = lfs.clone();
        server.rule(move |request| match request.path.as_str() {
            path if path.ends_with("/info/lfs/objects/batch") => answers.batch(request, &url, login),
            path if path.starts_with("/lfs-files/") => answers.file(request, login),
            _ if login.is_some() && request.header("authorization") != login => {
                Reply::Raw(401, "", Vec::new())
            }
            _ => Reply::Git,
        });
        lfs
    }

    /// Adds a file, and returns its pointer.
    pub fn add(&self, bytes: &[u8]) -> String {
        let oid = Digest::hash(bytes).to_string().trim_start_matches("sha256:").to_owned();
        let pointer = pointer(&oid, bytes.len());
        self.state().objects.insert(oid, bytes.to_vec());
        pointer
    }

    pub fn set_fault(&self, fault: LfsFault) {
        self.state().fault = fault;
    }

    /// Wants the login for the batch, and the ticket alone for downloads.
    pub fn only_first_login(&self) {
        self.state().has_tickets_only = true;
    }

    /// Returns the paths of the requests since the last call.
    pub fn requests(&self) -> Vec<String> {
        std::mem::take(&mut self.state().requests)
    }

    /// Returns the number of batches and of downloads since the last call.
    pub fn counts(&self) -> (usize, usize) {
        let requests = self.requests();
        let batches = requests.iter().filter(|path| path.ends_with("/batch")).count();
        (batches, requests.len() - batches)
    }

    /// Fails if a request was not as it has to be.
    pub fn assert_fine(&self) {
        assert_eq!(self.state().problems, Vec::<String>::new());
    }

    fn state(&self) -> MutexGuard<'_, LfsServerState> {
        self.0.lock().unwrap()
    }

    fn batch(&self, request: &Request, url: &str, login: Option<&str>) -> Reply {
        let mut state = self.state();
        state.requests.push(request.path.clone());
        let media = Some("application/vnd.git-lfs+json");
        let asked: Value = serde_json::from_slice(&request.body).unwrap_or_default();
        let is_sound = request.method == "POST"
            && request.header("accept") == media
            && request.header("content-type") == media
            && request.header("authorization") == login
            && asked["operation"] == "download";
        if !is_sound {
            state.problems.push(format!("{request:?}"));
        }
        let action = |oid: &str| match &state.fault {
            LfsFault::Href(href) => json!({"download": {"href": href}}),
            _ => {
                json!({"download": {"href": format!("{url}/lfs-files/{oid}"), "header": {"X-Ticket": TICKET}}})
            }
        };
        let one = |object: &Value| {
            let oid = object["oid"].as_str().unwrap_or_default();
            match (&state.fault, state.objects.get(oid)) {
                (LfsFault::Object(code), _) => json!({"oid": oid, "error": {"code": code, "message": "no"}}),
                (_, None) => json!({"oid": oid, "error": {"code": 404, "message": "no"}}),
                (_, Some(bytes)) => json!({"oid": oid, "size": bytes.len(), "actions": action(oid)}),
            }
        };
        let objects: Vec<Value> = match state.fault {
            LfsFault::Batch(status, headers) => return Reply::Raw(status, headers, Vec::new()),
            LfsFault::Empty => Vec::new(),
            _ => asked["objects"].as_array().into_iter().flatten().map(one).collect(),
        };
        let body = json!({"transfer": "basic", "objects": objects}).to_string();
        Reply::Raw(200, "Content-Type: application/vnd.git-lfs+json\r\n", body.into_bytes())
    }

    fn file(&self, request: &Request, login: Option<&str>) -> Reply {
        let mut state = self.state();
        state.requests.push(request.path.clone());
        let (is_first, oid) = match request.path.strip_prefix("/lfs-files/moved/") {
            Some(oid) => (false, oid),
            None => (true, request.path.trim_start_matches("/lfs-files/")),
        };
        // A redirected request has neither login nor ticket.
        let has_login = is_first && !state.has_tickets_only;
        let expect = (login.filter(|_| has_login), Some(TICKET).filter(|_| is_first));
        if (request.header("authorization"), request.header("x-ticket")) != expect {
            state.problems.push(format!("{request:?}"));
        }
        let Some(mut bytes) = state.objects.get(oid).cloned() else { return Reply::Raw(404, "", Vec::new()) };
        match state.fault {
            LfsFault::Download(status, headers) if is_first => Reply::Raw(status, headers, Vec::new()),
            LfsFault::OtherBytes => Reply::Raw(200, "", bytes.iter().map(|byte| byte ^ 1).collect()),
            LfsFault::MoreBytes(more) => {
                bytes.resize(bytes.len() + more, 0);
                Reply::Raw(200, "", bytes)
            }
            _ => Reply::Raw(200, "", bytes),
        }
    }
}

/// Returns a pointer as `git lfs` writes it.
pub fn pointer(oid: &str, size: usize) -> String {
    format!("version https://git-lfs.github.com/spec/v1\noid sha256:{oid}\nsize {size}\n")
}
