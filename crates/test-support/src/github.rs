//! A GitHub Enterprise server on loopback: installation tokens of one App, and repositories that
//! demand them.
//!
//! In: a folder of bare repositories, and the key of the App.
//! Out: a [`Github`], which checks each signature and claim, and counts the exchanges.

use std::collections::HashMap;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use base64::Engine;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use jiff::Timestamp;
use ring::signature::{KeyPair, RSA_PKCS1_2048_8192_SHA256, RsaKeyPair, UnparsedPublicKey};
use serde_json::{Value, json};

use super::authority::Authority;
use super::git_server::{GitServer, Reply, Request};
use super::programs::{command, find, run};

/// The number of the App.
pub const APP: &str = "4711";
/// The number of its installation.
pub const INSTALLATION: &str = "815";
/// The organization that has it installed.
pub const OWNER: &str = "harbour";
/// Beginning of each token; no output of the program has it.
pub const TOKEN_MARK: &str = "ghs_plantedtoken";

/// The key of an App.
#[derive(Clone)]
pub struct AppKey {
    pub pem: String,
    public: Vec<u8>,
}

impl AppKey {
    /// Creates a key in a file of this name, in the format `PEM` (PKCS#1) or `PKCS8`; `None`
    /// without ssh-keygen.
    pub fn new(folder: &Path, name: &str, format: &str) -> Option<Self> {
        let (program, file) = (find("ssh-keygen")?, folder.join(name));
        let mut makes = command(&program);
        let options = ["-q", "-t", "rsa", "-b", "2048", "-N", "", "-m", format, "-f"];
        run(makes.args(options).arg(&file)).expect("a key");
        let pem = std::fs::read_to_string(file).unwrap();
        let lines: String = pem.lines().filter(|line| !line.starts_with('-')).collect();
        let der = STANDARD.decode(lines).unwrap();
        let pair = match format {
            "PKCS8" => RsaKeyPair::from_pkcs8(&der),
            _ => RsaKeyPair::from_der(&der),
        };
        Some(Self { pem, public: pair.unwrap().public_key().as_ref().to_vec() })
    }

    /// A line of the key, which no output of the program has.
    pub fn mark(&self) -> &str {
        self.pem.lines().nth(3).unwrap()
    }
}

/// The state that the server checks and counts.
pub struct GithubState {
    public: Vec<u8>,
    /// Lifetime of new tokens.
    pub lifetime: Duration,
    /// Time that an exchange takes.
    pub delay: Duration,
    /// Answer in place of a token: status, header lines and body.
    pub answer: Option<(u16, &'static str, String)>,
    /// Tokens by their text, until they expire.
    pub tokens: HashMap<String, Instant>,
    /// Exchanges so far, with a good signature or not.
    pub exchanges: usize,
    /// Requests for the installation of an owner.
    pub searches: usize,
    /// Faults of requests.
    pub problems: Vec<String>,
}

pub struct Github {
    pub server: GitServer,
    pub authority: Authority,
    state: Arc<Mutex<GithubState>>,
}

impl Github {
    /// Serves the bare repositories in `root` for the App with this key.
    pub fn start(root: &Path, key: &AppKey) -> Self {
        let authority = Authority::new();
        let server = GitServer::start_with(root, Some(authority.server(None)));
        let state = GithubState {
            public: key.public.clone(),
            lifetime: Duration::from_secs(3600),
            delay: Duration::ZERO,
            answer: None,
            tokens: HashMap::new(),
            exchanges: 0,
            searches: 0,
            problems: Vec::new(),
        };
        let state = Arc::new(Mutex::new(state));
        let of_rule = state.clone();
        server.rule(move |request| reply(&of_rule, request));
        Self { server, authority, state }
    }

    pub fn state(&self) -> MutexGuard<'_, GithubState> {
        self.state.lock().unwrap()
    }

    /// Accepts this key from now on, and no other; the tokens of the old one end.
    pub fn trust(&self, key: &AppKey) {
        let mut state = self.state();
        state.public = key.public.clone();
        state.tokens.clear();
    }

    pub fn url(&self) -> String {
        format!("https://localhost:{}/repository.git", self.server.port)
    }

    pub fn api(&self) -> String {
        format!("https://localhost:{}/api/v3", self.server.port)
    }

    /// The data of a Secret for the App.
    pub fn secret(&self, key: &AppKey) -> Value {
        json!({
            "githubAppID": APP,
            "githubAppInstallationID": INSTALLATION,
            "githubAppPrivateKey": key.pem,
            "githubAppBaseURL": self.api(),
            "ca.crt": self.authority.pem,
        })
    }
}

fn reply(state: &Mutex<GithubState>, request: &Request) -> Reply {
    let Some(endpoint) = request.path.strip_prefix("/api/v3") else { return git(state, request) };
    let mut state = state.lock().unwrap();
    let checked = check_proof(&state.public, request);
    let refused = match &checked {
        Ok(()) => None,
        Err(problem) => {
            state.problems.push(problem.clone());
            Some(answer(401, &json!({"message": "planted refusal"})))
        }
    };
    if endpoint == format!("/users/{OWNER}/installation") {
        state.searches += 1;
        let id: u64 = INSTALLATION.parse().unwrap();
        return refused.unwrap_or_else(|| answer(200, &json!({"id": id})));
    }
    if endpoint != format!("/app/installations/{INSTALLATION}/access_tokens") {
        state.searches += usize::from(endpoint.starts_with("/orgs/"));
        return answer(404, &json!({}));
    }
    state.exchanges += 1;
    if let Some(refused) = refused {
        return refused;
    }
    if let Some((status, headers, body)) = state.answer.clone() {
        return Reply::Raw(status, headers, body.into_bytes());
    }
    if request.method != "POST" || request.body != br#"{"permissions":{"contents":"read"}}"# {
        state.problems.push(format!("{} {:?}", request.method, String::from_utf8_lossy(&request.body)));
    }
    let (lifetime, delay) = (state.lifetime, state.delay);
    let token = format!("{TOKEN_MARK}{}", state.exchanges);
    state.tokens.insert(token.clone(), Instant::now() + lifetime);
    drop(state);
    std::thread::sleep(delay);
    let expires = Timestamp::now() + lifetime;
    answer(201, &json!({"token": token, "expires_at": expires.to_string()}))
}

fn answer(status: u16, body: &Value) -> Reply {
    Reply::Raw(status, "", body.to_string().into_bytes())
}

/// Serves a repository to a valid token only.
fn git(state: &Mutex<GithubState>, request: &Request) -> Reply {
    let login = request.header("authorization").and_then(|value| value.strip_prefix("Basic "));
    let pair = login.and_then(|login| STANDARD.decode(login).ok()).unwrap_or_default();
    let pair = String::from_utf8(pair).unwrap_or_default();
    let token = pair.strip_prefix("x-access-token:").unwrap_or_default();
    let is_valid = state.lock().unwrap().tokens.get(token).is_some_and(|until| Instant::now() < *until);
    match is_valid {
        true => Reply::Git,
        false => Reply::Raw(401, "", Vec::new()),
    }
}

/// Checks the App's web token: its signature and each claim.
fn check_proof(public: &[u8], request: &Request) -> Result<(), String> {
    let header = request.header("authorization").unwrap_or_default();
    let proof = header.strip_prefix("Bearer ").ok_or("no bearer token")?;
    let (signed, signature) = proof.rsplit_once('.').ok_or("no signature")?;
    let (head, claims) = signed.split_once('.').ok_or("no claims")?;
    let json =
        |part: &str| -> Option<Value> { serde_json::from_slice(&URL_SAFE_NO_PAD.decode(part).ok()?).ok() };
    let (head, claims) = (json(head).ok_or("no header")?, json(claims).ok_or("no claims")?);
    if head != json!({"alg": "RS256", "typ": "JWT"}) {
        return Err(format!("header {head}"));
    }
    let key = UnparsedPublicKey::new(&RSA_PKCS1_2048_8192_SHA256, public);
    let signature = URL_SAFE_NO_PAD.decode(signature).map_err(|_| "signature of other characters")?;
    key.verify(signed.as_bytes(), &signature).map_err(|_| "signature of another key")?;
    let number = |name: &str| claims[name].as_i64().unwrap_or_default();
    let (now, issued, expires) = (Timestamp::now().as_second(), number("iat"), number("exp"));
    let is_fresh = (now - 70..=now - 50).contains(&issued) && expires > now && expires - issued <= 600;
    match is_fresh && claims["iss"] == APP && claims.as_object().is_some_and(|all| all.len() == 3) {
        true => Ok(()),
        false => Err(format!("claims {claims} at {now}")),
    }
}
