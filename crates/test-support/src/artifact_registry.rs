//! A loopback registry of artifacts for tests, over TLS, with faults on demand.
//!
//! In: files, or manifests and blobs as a test wants them.
//! Out: an `oci://` URL, and a log of all requests. It takes pushes as well. Its packages are
//! written here, not by the program under test.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, Mutex};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

pub use super::archives::{gzip, tar};
use super::authority::Authority;
use super::clouds::exchange_registry;
use super::git_server::{GitServer, Reply, Request};
pub use super::registry_login::RegistryLogin;

/// Media types of artifacts as Flux makes them.
pub const CONFIG: &str = "application/vnd.cncf.flux.config.v1+json";
pub const CONTENT: &str = "application/vnd.cncf.flux.content.v1.tar+gzip";
pub const MANIFEST: &str = "application/vnd.oci.image.manifest.v1+json";
pub const INDEX: &str = "application/vnd.oci.image.index.v1+json";

/// User name and password of a registry that asks for a login.
pub const LOGIN: (&str, &str) = ("me", "planted");

/// Misbehaviour of the registry.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum RegistryFault {
    #[default]
    None,
    /// It serves another manifest for a digest.
    OtherManifest,
    /// It serves a layer with other bytes of the same length.
    OtherLayer,
    /// It serves a byte more of each layer than the manifest says.
    LongLayer,
    /// It serves a byte less.
    ShortLayer,
    /// It refuses each token that it gave, with another challenge.
    ChallengeLoop,
    /// It redirects layers to this URL.
    RedirectLayers(String),
    /// It redirects everything to itself.
    RedirectLoop,
    /// It announces no digest.
    NoDigest,
    /// It answers no HEAD.
    NoHead,
    /// It announces a digest of another kind.
    StrangeDigest,
    /// The next page of tags is the same page.
    EndlessTags,
    /// It answers with something else than a list of tags.
    NoTagList,
    /// It names this URL as the server of its tokens.
    Realm(String),
}

#[derive(Default)]
pub(crate) struct Content {
    blobs: BTreeMap<String, Vec<u8>>,
    /// Media type and bytes, by repository and digest.
    manifests: BTreeMap<(String, String), (String, Vec<u8>)>,
    /// Digests, by repository and tag.
    pub(crate) tags: BTreeMap<(String, String), String>,
    /// Referrers of digests, by repository and digest; none if the registry has no such lists.
    pub(crate) referrers: Option<BTreeMap<(String, String), Vec<Value>>>,
    fault: RegistryFault,
    login: RegistryLogin,
    /// Number of tags in a page.
    page: usize,
}

/// A registry that ends with the test.
pub struct ArtifactRegistry {
    pub server: GitServer,
    pub authority: Arc<Authority>,
    pub(crate) content: Arc<Mutex<Content>>,
}

impl ArtifactRegistry {
    /// Starts an empty registry; `root` is a folder that it may use.
    pub fn start(root: &Path) -> Self {
        Self::start_with(root, Arc::new(Authority::new()), false)
    }

    /// Starts an empty registry with a certificate of this authority; `is_closed` if it asks for
    /// one of its clients, too.
    pub fn start_with(root: &Path, authority: Arc<Authority>, is_closed: bool) -> Self {
        let clients = is_closed.then_some(&*authority);
        let server = GitServer::start_with(root, Some(authority.server(clients)));
        let content = Arc::new(Mutex::new(Content { page: 1000, ..Content::default() }));
        let (shared, port) = (content.clone(), server.port);
        server.rule(move |request| match answer(&mut shared.lock().unwrap(), request, port) {
            // The answer to a HEAD has no body.
            Reply::Raw(status, headers, _) if request.method == "HEAD" => {
                Reply::Raw(status, headers, Vec::new())
            }
            reply => reply,
        });
        Self { server, authority, content }
    }

    /// Host and port.
    pub fn host(&self) -> String {
        format!("localhost:{}", self.server.port)
    }

    /// URL of a repository.
    pub fn url(&self, repository: &str) -> String {
        format!("oci://{}/{repository}", self.host())
    }

    /// Makes the registry misbehave.
    pub fn fault(&self, fault: RegistryFault) {
        self.content.lock().unwrap().fault = fault;
    }

    /// Makes the registry ask for a login.
    pub fn login(&self, login: RegistryLogin) {
        self.content.lock().unwrap().login = login;
    }

    /// Sets the number of tags in a page.
    pub fn page(&self, tags: usize) {
        self.content.lock().unwrap().page = tags;
    }

    /// Stores a blob and returns its digest.
    pub fn blob(&self, bytes: &[u8]) -> String {
        let digest = digest(bytes);
        self.content.lock().unwrap().blobs.insert(digest.clone(), bytes.to_vec());
        digest
    }

    /// Stores a manifest, and moves a tag to it; returns its digest.
    pub fn manifest(&self, repository: &str, tag: &str, media: &str, manifest: &Value) -> String {
        let bytes = manifest.to_string().into_bytes();
        let (digest, mut content) = (digest(&bytes), self.content.lock().unwrap());
        content.manifests.insert((repository.to_owned(), digest.clone()), (media.to_owned(), bytes));
        content.tags.insert((repository.to_owned(), tag.to_owned()), digest.clone());
        digest
    }

    /// Moves a tag to a digest that is there.
    pub fn tag(&self, repository: &str, tag: &str, digest: &str) {
        let mut content = self.content.lock().unwrap();
        content.tags.insert((repository.to_owned(), tag.to_owned()), digest.to_owned());
    }

    /// Removes a tag.
    pub fn untag(&self, repository: &str, tag: &str) {
        self.content.lock().unwrap().tags.remove(&(repository.to_owned(), tag.to_owned()));
    }

    /// Stores an artifact with one layer; returns its digest.
    pub fn layer(&self, repository: &str, tag: &str, media: &str, bytes: &[u8]) -> String {
        self.blob(b"{}");
        self.blob(bytes);
        self.manifest(repository, tag, MANIFEST, &one_layer(media, bytes))
    }

    /// Stores an artifact with these files, as Flux does; returns its digest.
    pub fn push(&self, repository: &str, tag: &str, files: &[(String, String)]) -> String {
        let files: Vec<_> = files.iter().map(|(path, text)| (path.as_str(), b'0', text.as_bytes())).collect();
        self.layer(repository, tag, CONTENT, &gzip(&tar(&files)))
    }

    /// Requests since the last call, as `METHOD path`; the repository is left out.
    pub fn requests(&self) -> Vec<String> {
        let shown = |one: Request| format!("{} {}", one.method, one.path.trim_start_matches("/v2/"));
        self.server.requests().into_iter().map(shown).collect()
    }

    /// Secret of the type kubernetes.io/dockerconfigjson with the login and the authority.
    pub fn docker_secret(&self, name: &str) -> Value {
        let auth = STANDARD.encode(format!("{}:{}", LOGIN.0, LOGIN.1));
        let logins = json!({"auths": {self.host(): {"auth": auth}}}).to_string();
        json!({
            "apiVersion": "v1", "kind": "Secret", "metadata": {"name": name},
            "type": "kubernetes.io/dockerconfigjson",
            "stringData": {".dockerconfigjson": logins, "ca.crt": self.authority.pem},
        })
    }

    /// Secret with the authority alone.
    pub fn authority_secret(&self, name: &str) -> Value {
        json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name},
            "stringData": {"ca.crt": self.authority.pem}})
    }
}

/// Manifest of an artifact with one layer.
pub fn one_layer(media: &str, bytes: &[u8]) -> Value {
    json!({
        "schemaVersion": 2, "mediaType": MANIFEST,
        "config": {"mediaType": CONFIG, "digest": digest(b"{}"), "size": 2},
        "layers": [{"mediaType": media, "digest": digest(bytes), "size": bytes.len()}],
        "annotations": {"org.opencontainers.image.source": "https://git.example.com/shop.git",
            "org.opencontainers.image.revision": "main@sha1:0123456789"},
    })
}

/// Digest of some bytes.
pub fn digest(bytes: &[u8]) -> String {
    let hash = ring::digest::digest(&ring::digest::SHA256, bytes);
    let digits: String = hash.as_ref().iter().map(|byte| format!("{byte:02x}")).collect();
    format!("sha256:{digits}")
}

fn answer(content: &mut Content, request: &Request, port: u16) -> Reply {
    let own = format!("https://localhost:{port}");
    if request.path == "/token" {
        return give_token(content, request);
    }
    if request.path == "/oauth2/exchange" {
        return exchange_registry(request);
    }
    if let Some(refused) = refuse(content, request, &own) {
        return refused;
    }
    if content.fault == RegistryFault::RedirectLoop {
        return headed(307, &format!("Location: {own}{}\r\n", request.path), b"");
    }
    let path = request.path.trim_start_matches("/v2/");
    if let Some((repository, reference)) = path.split_once("/manifests/") {
        return match request.method.as_str() {
            "PUT" => put_manifest(content, repository, reference, request),
            _ => manifest(content, repository, reference, request),
        };
    }
    if let (Some((repository, of)), Some(all)) = (path.split_once("/referrers/"), &content.referrers) {
        let manifests = all.get(&(repository.to_owned(), of.to_owned())).cloned().unwrap_or_default();
        let list = json!({"schemaVersion": 2, "mediaType": INDEX, "manifests": manifests});
        return headed(200, &format!("Content-Type: {INDEX}\r\n"), list.to_string().as_bytes());
    }
    if let Some((repository, _)) = path.split_once("/tags/list") {
        return tags(content, repository, request);
    }
    match path.split_once("/blobs/") {
        Some((repository, rest)) if rest.starts_with("uploads/") => upload(content, repository, request),
        Some((_, digest)) => blob(content, digest, request),
        None => Reply::Raw(404, "", b"planted".to_vec()),
    }
}

/// Answers a request without the login that the registry asks for.
fn refuse(content: &Content, request: &Request, own: &str) -> Option<Reply> {
    let basic = format!("Basic {}", STANDARD.encode(format!("{}:{}", LOGIN.0, LOGIN.1)));
    let given = request.header("authorization").unwrap_or_default();
    let fits = match content.login {
        RegistryLogin::Nobody => true,
        RegistryLogin::Basic => given == basic,
        RegistryLogin::Pair(user, password) => {
            given == format!("Basic {}", STANDARD.encode(format!("{user}:{password}")))
        }
        RegistryLogin::Bearer | RegistryLogin::Anonymous => given == "Bearer token-of-a-test",
    };
    if fits && content.fault != RegistryFault::ChallengeLoop {
        return None;
    }
    let realm = match &content.fault {
        RegistryFault::Realm(realm) => realm.clone(),
        _ => format!("{own}/token"),
    };
    let challenge = match content.login {
        RegistryLogin::Basic | RegistryLogin::Pair(..) => "Basic realm=\"test\"".to_owned(),
        _ => format!("Bearer realm=\"{realm}\",service=\"test\",scope=\"repository:x:pull\""),
    };
    Some(headed(401, &format!("WWW-Authenticate: {challenge}\r\n"), b"planted"))
}

fn give_token(content: &Content, request: &Request) -> Reply {
    let basic = format!("Basic {}", STANDARD.encode(format!("{}:{}", LOGIN.0, LOGIN.1)));
    let fits = content.login != RegistryLogin::Bearer || request.header("authorization") == Some(&basic);
    match fits {
        true => Reply::Raw(200, "", br#"{"token": "token-of-a-test"}"#.to_vec()),
        false => Reply::Raw(401, "", b"planted".to_vec()),
    }
}

fn manifest(content: &Content, repository: &str, reference: &str, request: &Request) -> Reply {
    if request.method == "HEAD" && content.fault == RegistryFault::NoHead {
        return Reply::Raw(405, "", Vec::new());
    }
    let key = |text: &str| (repository.to_owned(), text.to_owned());
    let digest = content.tags.get(&key(reference)).map_or(reference, String::as_str);
    let Some((media, bytes)) = content.manifests.get(&key(digest)) else {
        return Reply::Raw(404, "", b"planted".to_vec());
    };
    let announced = match content.fault {
        RegistryFault::NoDigest => String::new(),
        RegistryFault::StrangeDigest => "Docker-Content-Digest: md5:planted\r\n".to_owned(),
        _ => format!("Docker-Content-Digest: {digest}\r\n"),
    };
    let bytes = match (&content.fault, request.method.as_str()) {
        (_, "HEAD") => Vec::new(),
        (RegistryFault::OtherManifest, _) => [bytes.as_slice(), b" "].concat(),
        _ => bytes.clone(),
    };
    headed(200, &format!("Content-Type: {media}\r\n{announced}"), &bytes)
}

fn blob(content: &Content, digest: &str, request: &Request) -> Reply {
    let Some(bytes) = content.blobs.get(digest) else { return Reply::Raw(404, "", b"planted".to_vec()) };
    let mut bytes = bytes.clone();
    if request.method == "HEAD" {
        return Reply::Raw(200, "", Vec::new());
    }
    match &content.fault {
        RegistryFault::OtherLayer => bytes.iter_mut().for_each(|byte| *byte ^= 1),
        RegistryFault::LongLayer => bytes.push(0),
        RegistryFault::ShortLayer => bytes.truncate(bytes.len() - 1),
        RegistryFault::RedirectLayers(url) => return headed(307, &format!("Location: {url}\r\n"), b""),
        _ => {}
    }
    Reply::Raw(200, "", bytes)
}

fn tags(content: &Content, repository: &str, request: &Request) -> Reply {
    if content.fault == RegistryFault::NoTagList {
        return headed(200, "", b"{\"errors\": []}");
    }
    let after = request.query.split('&').find_map(|part| part.strip_prefix("last=")).unwrap_or_default();
    let all = content.tags.keys().filter(|(of, _)| of == repository).map(|(_, tag)| tag.as_str());
    let rest: Vec<&str> = all.filter(|tag| *tag > after).collect();
    let page = &rest[..rest.len().min(content.page)];
    let next = match page.last() {
        Some(_) if content.fault == RegistryFault::EndlessTags => Some(""),
        Some(last) if page.len() < rest.len() => Some(*last),
        _ => None,
    };
    let link = next.map_or_else(String::new, |last| {
        format!("Link: </v2/{repository}/tags/list?n=1000&last={last}>; rel=\"next\"\r\n")
    });
    headed(200, &link, json!({"name": repository, "tags": page}).to_string().as_bytes())
}

fn upload(content: &mut Content, repository: &str, request: &Request) -> Reply {
    if request.method == "POST" {
        return headed(202, &format!("Location: /v2/{repository}/blobs/uploads/1?state=x\r\n"), b"");
    }
    let wanted = request.query.split('&').find_map(|part| part.strip_prefix("digest="));
    let found = digest(&request.body);
    match wanted == Some(&*found) {
        true => {
            content.blobs.insert(found, request.body.clone());
            Reply::Raw(201, "", Vec::new())
        }
        false => Reply::Raw(400, "", b"planted".to_vec()),
    }
}

fn put_manifest(content: &mut Content, repository: &str, tag: &str, request: &Request) -> Reply {
    let manifest: Value = serde_json::from_slice(&request.body).unwrap_or_default();
    let named = manifest["layers"].as_array().into_iter().flatten().chain([&manifest["config"]]);
    let mut named = named.filter_map(|entry| entry["digest"].as_str());
    if !named.all(|digest| content.blobs.contains_key(digest)) {
        return Reply::Raw(400, "", b"planted".to_vec());
    }
    let (digest, media) = (digest(&request.body), request.header("content-type").unwrap_or_default());
    let stored = (media.to_owned(), request.body.clone());
    content.manifests.insert((repository.to_owned(), digest.clone()), stored);
    content.tags.insert((repository.to_owned(), tag.to_owned()), digest);
    Reply::Raw(201, "", Vec::new())
}

/// An answer with headers that are made for it.
fn headed(status: u16, headers: &str, body: &[u8]) -> Reply {
    Reply::Raw(status, Box::leak(headers.to_owned().into_boxed_str()), body.to_vec())
}
