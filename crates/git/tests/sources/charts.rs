//! Charts from repositories and registries: what is asked of servers, what is believed, and what
//! a hostile one can do.

use std::io::Write as _;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use flate2::Compression;
use flate2::write::GzEncoder;
use moorline_git::{Chart, ChartError, ChartRef, Credentials, Digest, Repositories};
use moorline_test_support::authority::Authority;
use moorline_test_support::git_bench::soon;
use moorline_test_support::git_server::{GitServer, Reply, Request};
use moorline_test_support::under_load::under_load;
use serde_json::json;

/// A chart with one template.
fn chart(value: &str) -> Vec<u8> {
    let mut gzip = GzEncoder::new(Vec::new(), Compression::default());
    for (path, text) in [("web/Chart.yaml", "name: web\n"), ("web/templates/map.yaml", value)] {
        let mut head = [0; 512];
        head[..path.len()].copy_from_slice(path.as_bytes());
        head[124..135].copy_from_slice(format!("{:011o}", text.len()).as_bytes());
        head[156] = b'0';
        head[148..156].fill(b' ');
        let sum: u32 = head.iter().map(|byte| u32::from(*byte)).sum();
        head[148..154].copy_from_slice(format!("{sum:06o}").as_bytes());
        gzip.write_all(&head).unwrap();
        let mut content = text.as_bytes().to_vec();
        content.resize(512, 0);
        gzip.write_all(&content).unwrap();
    }
    gzip.write_all(&[0; 1024]).unwrap();
    gzip.finish().unwrap()
}

fn index(url: &str, bytes: &[u8]) -> Vec<u8> {
    let digest = &Digest::hash(bytes).to_string()["sha256:".len()..];
    format!(
        "apiVersion: v1\nentries:\n  web:\n  - version: 1.0.0\n    digest: {digest}\n    urls: [\"{url}\"]\n"
    )
    .into_bytes()
}

fn ok(body: Vec<u8>) -> Reply {
    Reply::Raw(200, "", body)
}

/// An answer with headers that are made for it.
fn headed(status: u16, headers: String, body: &[u8]) -> Reply {
    Reply::Raw(status, Box::leak(headers.into_boxed_str()), body.to_vec())
}

fn to(location: &str) -> Reply {
    headed(302, format!("Location: {location}\r\n"), b"")
}

struct Ground {
    root: tempfile::TempDir,
    server: GitServer,
    charts: Repositories,
    authority: Option<Authority>,
}

impl Ground {
    fn plain() -> Self {
        let root = tempfile::tempdir().unwrap();
        let charts =
            Repositories::new(&root.path().join("data"), None, moorline_git::HostPolicy::allow_all())
                .unwrap();
        Self { server: GitServer::start(root.path()), charts, root, authority: None }
    }

    fn tls() -> Self {
        let root = tempfile::tempdir().unwrap();
        let charts =
            Repositories::new(&root.path().join("data"), None, moorline_git::HostPolicy::allow_all())
                .unwrap();
        let authority = Authority::new();
        let server = GitServer::start_with(root.path(), Some(authority.server(None)));
        Self { server, charts, root, authority: Some(authority) }
    }

    fn credentials(&self, keys: &[(&str, &str)]) -> Credentials {
        if keys.is_empty() && self.authority.is_none() {
            return Credentials::default();
        }
        let authority = self.authority.iter().map(|authority| ("ca.crt", authority.pem.as_str()));
        Credentials::from_secret(keys.iter().copied().chain(authority)).unwrap()
    }

    async fn fetch(&self, url: &str, name: Option<&str>, digest: Digest) -> Result<Chart, ChartError> {
        let login: &[(&str, &str)] = &[("username", "me"), ("password", "planted")];
        let credentials = self.credentials(if self.authority.is_some() { login } else { &[] });
        self.fetch_as(url, name, digest, &credentials, Duration::from_secs(120)).await
    }

    async fn fetch_as(
        &self,
        url: &str,
        name: Option<&str>,
        digest: Digest,
        credentials: &Credentials,
        patience: Duration,
    ) -> Result<Chart, ChartError> {
        let wanted = ChartRef::new(url, name, "1.0.0", &digest.to_string()).unwrap();
        self.charts.chart(&wanted, ("", "team"), credentials, Instant::now() + patience).await
    }

    /// Returns the reason that a repository on this server gives no chart.
    async fn refused(
        &self,
        rule: impl Fn(&Request) -> Reply + Send + Sync + 'static,
        part: &str,
    ) -> ChartError {
        self.server.rule(rule);
        let error =
            self.fetch(&self.server.url("charts"), Some("web"), Digest::hash(&chart("x"))).await.unwrap_err();
        let shown = error.to_string();
        assert!(shown.contains(part) && !shown.contains("planted"), "{part}: {shown}");
        error
    }

    fn paths(&self) -> Vec<String> {
        self.server.requests().into_iter().map(|request| request.path).collect()
    }
}

/// A repository with one chart.
fn repository(request: &Request) -> Reply {
    match request.path.as_str() {
        "/charts/index.yaml" => ok(index("web-1.0.0.tgz", &chart("x"))),
        "/charts/web-1.0.0.tgz" => ok(chart("x")),
        _ => Reply::Raw(404, "", b"planted".to_vec()),
    }
}

#[tokio::test]
async fn a_chart_of_a_repository_is_fetched_once() {
    let ground = Ground::plain();
    ground.server.rule(repository);
    let (url, bytes) = (ground.server.url("charts/"), chart("x"));
    let digest = Digest::hash(&bytes);
    let (one, other) =
        tokio::join!(ground.fetch(&url, Some("web"), digest), ground.fetch(&url, Some("web"), digest));
    let (one, other) = (one.unwrap(), other.unwrap());
    assert_eq!((one.archive.as_slice(), other.archive.as_slice()), (&*bytes, &*bytes));
    assert_eq!(&*one.files.read("templates/map.yaml").unwrap(), b"x");
    assert!(one.was_cached != other.was_cached, "the second one waits for the first");
    assert_eq!(ground.paths(), ["/charts/index.yaml", "/charts/web-1.0.0.tgz"]);

    // It stays when mirrors that nobody holds are removed, and is fetched again when it is damaged.
    ground.charts.remove_unused();
    assert!(ground.fetch(&url, Some("web"), digest).await.unwrap().was_cached);
    assert!(ground.paths().is_empty());
    let kept = ground.root.path().join("data/charts").join(&digest.to_string()["sha256:".len()..]);
    std::fs::write(&kept, b"damaged").unwrap();
    assert!(!ground.fetch(&url, Some("web"), digest).await.unwrap().was_cached);
    assert_eq!(std::fs::read(&kept).unwrap(), bytes);

    // A chart that was fetched with a login is not for those who only know its digest.
    ground.server.requests();
    let wanted = ChartRef::new(&url, Some("web"), "1.0.0", &digest.to_string()).unwrap();
    let by = soon();
    let of_a_team =
        ground.charts.chart(&wanted, ("team/login", "team"), &Credentials::default(), by).await.unwrap();
    assert!(!of_a_team.was_cached);
}

#[tokio::test]
async fn nothing_is_believed_that_has_another_digest() {
    let ground = Ground::plain();
    let other = |request: &Request| match request.path.as_str() {
        "/charts/index.yaml" => ok(index("web.tgz", &chart("other"))),
        _ => ok(chart("other")),
    };
    let error = ground.refused(other, "what the index announces has the digest sha256:").await;
    assert_eq!(error.reason(), "ChartDigestDiffers");
    assert_eq!(ground.paths(), ["/charts/index.yaml"], "what is announced as something else is not fetched");
    // One that announces what is wanted, and sends something else.
    let lying = |request: &Request| match request.path.as_str() {
        "/charts/index.yaml" => ok(index("web.tgz", &chart("x"))),
        _ => ok(chart("other")),
    };
    ground.refused(lying, "the chart has the digest sha256:").await;
    assert!(!ground.root.path().join("data/charts").exists(), "and nothing is kept");
}

#[tokio::test]
async fn a_hostile_repository_costs_no_more_than_the_bounds() {
    let ground = Ground::plain();
    let base = ground.server.url("");
    ground.refused(|_| Reply::Raw(404, "", b"planted".to_vec()), "has nothing at /charts/index.yaml").await;
    ground.refused(|_| Reply::Raw(500, "", b"planted".to_vec()), "status 500").await;
    ground.refused(|_| ok(b"<html>planted</html>".to_vec()), "has no entries").await;
    ground.refused(|_| ok(vec![b'x'; 51 << 20]), "sends more than 52428800 bytes of its index").await;
    ground.refused(|_| to("/charts/index.yaml"), "redirects again and again").await;
    assert_eq!(ground.paths().iter().rev().take_while(|path| *path == "/charts/index.yaml").count(), 9);
    ground.refused(|_| to("file:///etc/passwd"), "to an invalid URL").await;
    let away = |url: &'static str| {
        move |request: &Request| match request.path.as_str() {
            "/charts/index.yaml" => ok(index(url, &chart("x"))),
            _ => Reply::Raw(404, "", Vec::new()),
        }
    };
    ground.refused(away("oci://host/web"), "is not supported").await;
    ground.refused(away("../../../etc/passwd"), "is not supported").await;
    // A name that stands for a neighbour of the daemon's: another host than the one that was named.
    let neighbour: &'static str = format!("http://localhost:{}/web.tgz", ground.server.port).leak();
    ground.paths();
    ground.refused(away(neighbour), "its name cannot be resolved").await;
    assert_eq!(ground.paths(), ["/charts/index.yaml"], "nobody is asked there");
    let large = |request: &Request| match request.path.as_str() {
        "/charts/index.yaml" => ok(index("web.tgz", &chart("x"))),
        _ => ok(vec![0; 33 << 20]),
    };
    ground.refused(large, "sends more than 33554432 bytes of a chart").await;
    ground.server.rule(|_| Reply::Silence);
    let (begun, digest) = (Instant::now(), Digest::hash(&chart("x")));
    let patience = Duration::from_secs(2);
    let silent = ground.fetch_as(&base, Some("web"), digest, &Credentials::default(), patience).await;
    assert!(silent.unwrap_err().to_string().contains("did not answer in time"));
    assert!(begun.elapsed() < under_load(Duration::from_secs(10)));
    let login = ground.credentials(&[("username", "me"), ("password", "planted")]);
    let plain = ground.fetch_as(&base, Some("web"), digest, &login, patience).await.unwrap_err();
    assert!(plain.to_string().contains("write https://"), "{plain}");
}

#[tokio::test]
async fn an_archive_that_means_harm_is_refused_though_its_digest_is_right() {
    let ground = Ground::plain();
    let mut gzip = GzEncoder::new(Vec::new(), Compression::best());
    (0..64).for_each(|_| gzip.write_all(&vec![0; 1 << 20]).unwrap());
    let bomb = gzip.finish().unwrap();
    let served = bomb.clone();
    ground.server.rule(move |request| match request.path.as_str() {
        "/index.yaml" => ok(index("web.tgz", &served)),
        _ => ok(served.clone()),
    });
    // An archive ends at its first empty head, so that what follows is never unpacked.
    let error = ground.fetch(&ground.server.url(""), Some("web"), Digest::hash(&bomb)).await.unwrap_err();
    assert_eq!((error.reason(), error.needs_new_input()), ("ChartArchiveInvalid", true));
    assert!(!ground.root.path().join("data/charts").exists(), "it is not kept");
}

#[tokio::test]
async fn a_login_is_sent_to_the_named_server_only() {
    let ground = Ground::tls();
    let other =
        GitServer::start_with(ground.root.path(), ground.authority.as_ref().map(|it| it.server(None)));
    other.rule(|_| ok(chart("x")));
    let elsewhere = format!("https://localhost:{}/web.tgz", other.port);
    ground.server.rule(move |request| match (request.path.as_str(), request.header("authorization")) {
        (_, None) => Reply::Raw(401, "", Vec::new()),
        ("/charts/index.yaml", _) => ok(index("web.tgz", &chart("x"))),
        _ => to(&elsewhere),
    });
    let url = format!("https://localhost:{}/charts", ground.server.port);
    let digest = Digest::hash(&chart("x"));
    assert!(ground.fetch(&url, Some("web"), digest).await.is_ok());
    let asked = other.requests();
    assert_eq!(asked.len(), 1);
    assert!(asked[0].header("authorization").is_none(), "another port is another server");
    // From https nothing leads to http.
    let plain = format!("http://localhost:{}/web.tgz", other.port);
    ground.server.rule(move |_| to(&plain));
    let error = ground.fetch(&url, Some("web"), Digest::hash(b"other")).await.unwrap_err();
    assert!(error.to_string().contains("redirects from https to http"), "{error}");
}

/// Returns the content of a registry: a manifest, and the digests of that and of the archive.
fn manifest(bytes: &[u8]) -> Vec<u8> {
    let layer = json!({
        "mediaType": "application/vnd.cncf.helm.chart.content.v1.tar+gzip",
        "digest": Digest::hash(bytes).to_string(), "size": bytes.len(),
    });
    let config =
        json!({"mediaType": "application/vnd.cncf.helm.config.v1+json", "digest": "sha256:0", "size": 2});
    json!({"schemaVersion": 2, "config": config, "layers": [layer]}).to_string().into_bytes()
}

#[tokio::test]
async fn a_chart_of_a_registry_is_known_by_either_digest() {
    let ground = Ground::tls();
    let port = ground.server.port;
    let realm = format!("https://localhost:{port}/token?x=y");
    let tokens: Arc<Mutex<Vec<String>>> = Arc::default();
    let seen = tokens.clone();
    ground.server.rule(move |request| {
        let bearer = request.header("authorization") == Some("Bearer t-o.k_en");
        let blob = format!("/v2/team/web/blobs/{}", Digest::hash(&chart("x")));
        match request.path.as_str() {
            "/token" => {
                seen.lock().unwrap().push(format!("{} {:?}", request.query, request.header("authorization")));
                ok(br#"{"token": "t-o.k_en"}"#.to_vec())
            }
            _ if !bearer => {
                let parameters = "service=\"a registry\",scope=\"repository:team/web:pull\"";
                headed(401, format!("WWW-Authenticate: Bearer realm=\"{realm}\",{parameters}\r\n"), b"")
            }
            "/v2/team/web/manifests/1.0.0" => ok(manifest(&chart("x"))),
            path if path == blob => ok(chart("x")),
            _ => Reply::Raw(404, "", Vec::new()),
        }
    });
    let url = format!("oci://localhost:{port}/team/web");
    let bytes = chart("x");
    let found = ground.fetch(&url, None, Digest::hash(&manifest(&bytes))).await.unwrap();
    assert_eq!((found.archive.as_slice(), found.was_cached), (bytes.as_slice(), false));
    assert_eq!(&*found.files.read("Chart.yaml").unwrap(), b"name: web\n");
    let login = "Some(\"Basic bWU6cGxhbnRlZA==\")";
    assert_eq!(
        *tokens.lock().unwrap(),
        [format!("x=y&service=a%20registry&scope=repository:team/web:pull {login}")]
    );
    ground.paths();
    for digest in [Digest::hash(&bytes), Digest::hash(&manifest(&bytes))] {
        assert!(ground.fetch(&url, None, digest).await.unwrap().was_cached);
    }
    assert!(ground.paths().is_empty(), "what is here costs no request");
    let error = ground.fetch(&url, None, Digest::hash(b"other")).await.unwrap_err();
    assert!(error.to_string().contains("the chart in the registry has the digest"), "{error}");

    // A registry that says something else.
    for (body, part) in [
        (&b"planted"[..], "sends no manifest"),
        (br#"{"manifests": []}"#, "without layers"),
        (br#"{"layers": [{"mediaType": "application/x"}]}"#, "not a chart"),
    ] {
        ground.server.rule(move |_| ok(body.to_vec()));
        let error = ground.fetch(&url, None, Digest::hash(b"other")).await.unwrap_err().to_string();
        assert!(error.contains(part) && !error.contains("planted"), "{error}");
    }
    ground.server.rule(|request| match request.path.contains("/blobs/") {
        true => ok(chart("other")),
        false => ok(manifest(&chart("y"))),
    });
    let error = ground.fetch(&url, None, Digest::hash(&manifest(&chart("y")))).await.unwrap_err();
    assert!(error.to_string().contains("what the registry sends has the digest"), "{error}");
}

#[tokio::test]
async fn the_server_of_tokens_that_a_registry_names_gets_the_login_and_nobody_else() {
    let ground = Ground::tls();
    let other =
        GitServer::start_with(ground.root.path(), ground.authority.as_ref().map(|it| it.server(None)));
    other.rule(|_| ok(br#"{"access_token": "free"}"#.to_vec()));
    let realm = format!("https://localhost:{}/token", other.port);
    ground.server.rule(move |request| match request.header("authorization") {
        None => headed(401, format!("WWW-Authenticate: Bearer realm=\"{realm}\"\r\n"), b""),
        Some("Bearer free") if request.path.contains("manifests") => ok(manifest(&chart("x"))),
        Some("Bearer free") => ok(chart("x")),
        Some(_) => Reply::Raw(403, "", Vec::new()),
    });
    let url = format!("oci://localhost:{}/web", ground.server.port);
    assert!(ground.fetch(&url, None, Digest::hash(&chart("x"))).await.is_ok());
    let asked = other.requests();
    assert_eq!(asked.len(), 1);
    assert_eq!(asked[0].header("authorization"), Some("Basic bWU6cGxhbnRlZA=="));
    // A redirect could lead the login elsewhere, and is not followed.
    let target = format!("https://localhost:{}/elsewhere", ground.server.port);
    other.rule(move |_| headed(302, format!("Location: {target}\r\n"), b""));
    let error = ground.fetch(&url, None, Digest::hash(b"other")).await.unwrap_err();
    assert!(
        error.to_string().contains("redirects the request for a token, which is not followed"),
        "{error}"
    );
    // One that asks for the login itself gets it, and one that refuses it gets an error that says
    // so.
    ground.server.rule(|request| match request.header("authorization") {
        Some("Basic bWU6cGxhbnRlZA==") => Reply::Raw(403, "", b"planted".to_vec()),
        _ => headed(401, "WWW-Authenticate: Basic realm=\"x\"\r\n".to_owned(), b""),
    });
    let error = ground.fetch(&url, None, Digest::hash(b"other")).await.unwrap_err();
    assert_eq!(error.reason(), "RepositoryAccessDenied", "{error}");
}
