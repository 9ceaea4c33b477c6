//! Versions of charts: what a version or a range means now, what asking for it costs, and what a
//! hostile server can do.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use moorline_git::{
    ChartError, ChartRequest, ChartVersion, Credentials, Digest, HostPolicy, LoginTarget, Repositories,
};
use moorline_test_support::authority::Authority;
use moorline_test_support::git_bench::soon;
use moorline_test_support::git_server::{GitServer, Reply, Request};

/// An index with these versions, each with the digest of its own name.
fn index(versions: &[&str]) -> Vec<u8> {
    let entry = |version: &&str| {
        let digest = Digest::hash(version.as_bytes());
        format!("  - {{version: {version}, digest: \"{digest}\", urls: [web-{version}.tgz]}}\n")
    };
    let entries: String = versions.iter().map(entry).collect();
    format!("apiVersion: v1\nentries:\n  web:\n{entries}").into_bytes()
}

fn ok(body: Vec<u8>) -> Reply {
    Reply::Raw(200, "", body)
}

fn headed(status: u16, headers: String, body: &[u8]) -> Reply {
    Reply::Raw(status, Box::leak(headers.into_boxed_str()), body.to_vec())
}

struct Ground {
    #[expect(dead_code, reason = "the folder is removed when it is dropped")]
    root: tempfile::TempDir,
    server: GitServer,
    charts: Repositories,
    authority: Option<Authority>,
}

impl Ground {
    fn new(authority: Option<Authority>) -> Self {
        let root = tempfile::tempdir().unwrap();
        let charts = Repositories::new(&root.path().join("data"), None, HostPolicy::allow_all()).unwrap();
        let tls = authority.as_ref().map(|authority| authority.server(None));
        Self { server: GitServer::start_with(root.path(), tls), charts, root, authority }
    }

    fn credentials(&self, keys: &[(&str, &str)]) -> Credentials {
        let Some(authority) = &self.authority else { return Credentials::default() };
        let keys = keys.iter().copied().chain([("ca.crt", authority.pem.as_str())]);
        let server = format!("localhost:{}", self.server.port);
        Credentials::for_registry(keys, &LoginTarget::new(&server, "team/web")).unwrap()
    }

    async fn look(
        &self,
        version: &str,
        known: Option<&ChartVersion>,
        fresh: Duration,
    ) -> Result<ChartVersion, ChartError> {
        let (url, name) = match &self.authority {
            None => (self.server.url("charts"), Some("web")),
            Some(_) => (format!("oci://localhost:{}/team/web", self.server.port), None),
        };
        let request = ChartRequest::new(&url, name, version, None).unwrap();
        let credentials = self.credentials(&[("username", "me"), ("password", "planted")]);
        let by = soon();
        self.charts.chart_version(&request, ("", "team"), &credentials, (known, fresh), by).await
    }

    async fn refused(&self, version: &str, known: Option<&ChartVersion>, part: &str) -> ChartError {
        let error = self.look(version, known, Duration::ZERO).await.unwrap_err();
        let shown = error.to_string();
        assert!(shown.contains(part) && !shown.contains("planted"), "{part}: {shown}");
        error
    }

    fn asked(&self) -> Vec<String> {
        self.server.requests().into_iter().map(|asked| format!("{} {}", asked.method, asked.path)).collect()
    }
}

/// Answers with this index, and with 304 to those who have it.
fn serve_index(server: &GitServer, body: Vec<u8>, etag: &'static str) {
    server.rule(move |request| match request.path.as_str() {
        "/charts/index.yaml" if request.header("if-none-match") == Some(etag) => {
            headed(304, String::new(), b"")
        }
        "/charts/index.yaml" => headed(200, format!("ETag: {etag}\r\n"), &body),
        _ => Reply::Raw(404, "", Vec::new()),
    });
}

#[tokio::test]
async fn an_unchanged_index_costs_one_request_without_a_body() {
    let ground = Ground::new(None);
    serve_index(&ground.server, index(&["1.1.0", "1.2.0", "1.3.0-rc.1", "2.0.0"]), "\"one\"");
    let found = ground.look("1.x", None, Duration::ZERO).await.unwrap();
    assert_eq!((&*found.version, found.digest), ("1.2.0", Digest::hash(b"1.2.0")));
    for (version, expect) in
        [("1.x", "1.2.0"), ("*", "2.0.0"), (">=1.3.0-0 <2", "1.3.0-rc.1"), ("1.1.0", "1.1.0")]
    {
        assert_eq!(&*ground.look(version, None, Duration::ZERO).await.unwrap().version, expect);
    }
    let requests = ground.server.requests();
    let conditions: Vec<_> = requests.iter().map(|asked| asked.header("if-none-match")).collect();
    assert_eq!(conditions, [None, Some("\"one\""), Some("\"one\""), Some("\"one\""), Some("\"one\"")]);
    // A recent answer is shared, also by another range.
    assert_eq!(&*ground.look("2.x", None, Duration::from_secs(60)).await.unwrap().version, "2.0.0");
    assert!(ground.asked().is_empty());
    // A new version is another index.
    serve_index(&ground.server, index(&["1.2.0", "1.4.0"]), "\"two\"");
    assert_eq!(&*ground.look("1.x", Some(&found), Duration::ZERO).await.unwrap().version, "1.4.0");
    assert_eq!(ground.asked(), ["GET /charts/index.yaml"]);
}

#[tokio::test]
async fn a_range_that_matches_nothing_is_named_with_the_newest_version() {
    let ground = Ground::new(None);
    serve_index(&ground.server, index(&["1.1.0", "1.2.0"]), "\"one\"");
    let error = ground
        .refused(">=2", None, "has no version in the range >=2 of the chart web (the newest is 1.2.0)")
        .await;
    assert_eq!((error.reason(), error.is_answer(), error.needs_new_input()), ("ChartNotFound", true, false));
    ground.refused("1.2.1", None, "has no version 1.2.1 of the chart web").await;
    serve_index(&ground.server, index(&["1.0.0-rc.1"]), "\"two\"");
    ground.refused("1.x", None, "a range has pre-releases if it names one").await;
    serve_index(&ground.server, b"entries:\n  other: []\n".to_vec(), "\"three\"");
    ground.refused("1.x", None, "has no chart web").await;
    ground.server.rule(|_| Reply::Raw(503, "", b"planted".to_vec()));
    let error = ground.refused("1.x", None, "status 503").await;
    assert!(!error.is_answer(), "the previous version still is the newest that is known");
}

#[tokio::test]
async fn other_content_under_the_same_version_is_refused() {
    let ground = Ground::new(None);
    serve_index(&ground.server, index(&["1.2.0"]), "\"one\"");
    let taken = ground.look("1.x", None, Duration::ZERO).await.unwrap();
    let moved = String::from_utf8(index(&["1.2.0"])).unwrap();
    let other = Digest::hash(b"other");
    let moved = moved.replace(&taken.digest.to_string(), &other.to_string());
    serve_index(&ground.server, moved.into_bytes(), "\"two\"");
    let error = ground.refused("1.x", Some(&taken), "the chart web:1.2.0 was published again").await;
    assert_eq!((error.reason(), error.is_answer()), ("ChartMoved", true));
    let shown = error.to_string();
    assert!(shown.contains(&taken.digest.to_string()) && shown.contains(&other.to_string()), "{shown}");
    // Without a version that was taken up before, what is there is taken.
    assert_eq!(ground.look("1.x", None, Duration::ZERO).await.unwrap().digest, other);
}

#[tokio::test]
async fn a_large_index_is_read_within_the_bounds() {
    let ground = Ground::new(None);
    let mut large = b"entries:\n".to_vec();
    for at in 0..120_000 {
        let words = "x".repeat(300);
        large.extend(
            format!("  chart-{at}:\n  - version: 1.0.0\n    description: {words}\n    urls: [c.tgz]\n")
                .bytes(),
        );
    }
    large.extend_from_slice(&index(&["1.0.0"])["apiVersion: v1\nentries:\n".len()..]);
    assert!(large.len() > 40 << 20 && large.len() < 50 << 20, "{}", large.len());
    serve_index(&ground.server, large, "\"one\"");
    assert_eq!(&*ground.look("1.x", None, Duration::ZERO).await.unwrap().version, "1.0.0");
    assert_eq!(&*ground.look("*", None, Duration::ZERO).await.unwrap().version, "1.0.0");
    let down: Vec<usize> = ground.server.requests().iter().map(|asked| asked.down).collect();
    assert!(down[1] < 1024, "an unchanged one is not sent again: {down:?}");
    ground.server.rule(|_| ok(vec![b'x'; 51 << 20]));
    ground.refused("1.x", None, "sends more than 52428800 bytes of its index").await;
}

#[tokio::test]
async fn a_version_without_an_announced_digest_is_downloaded_once() {
    let ground = Ground::new(None);
    ground.server.rule(|request| match request.path.as_str() {
        "/charts/index.yaml" => ok(b"entries:\n  web:\n  - {version: 1.0.0, urls: [web.tgz]}\n".to_vec()),
        _ => ok(b"archive".to_vec()),
    });
    for _ in 0..2 {
        let found = ground.look("1.x", None, Duration::ZERO).await.unwrap();
        assert_eq!(found.digest, Digest::hash(b"archive"));
    }
    assert_eq!(ground.asked(), ["GET /charts/index.yaml", "GET /charts/web.tgz", "GET /charts/index.yaml"]);
}

/// Answers of a registry with a login, to those who have the token.
fn registry(server: &GitServer, tags: &'static [&'static str], digest: Digest) {
    let port = server.port;
    server.rule(move |request: &Request| {
        let has_login = request.header("authorization") == Some("Basic bWU6cGxhbnRlZA==");
        let path = request.path.as_str();
        match request.header("authorization") {
            _ if path == "/token" && has_login => ok(br#"{"token": "abc"}"#.to_vec()),
            Some("Bearer abc") if path == "/v2/team/web/tags/list" => {
                let page = usize::from(request.query.contains("last"));
                let listed = tags.chunks(tags.len().div_ceil(2).max(1)).nth(page).unwrap_or_default();
                let next = match page {
                    0 => "Link: </v2/team/web/tags/list?n=2&last=x>; rel=\"next\"\r\n",
                    _ => "",
                };
                headed(
                    200,
                    next.to_owned(),
                    serde_json::json!({"name": "web", "tags": listed}).to_string().as_bytes(),
                )
            }
            Some("Bearer abc") if path.starts_with("/v2/team/web/manifests/") && request.method == "HEAD" => {
                headed(200, format!("Docker-Content-Digest: {digest}\r\n"), b"")
            }
            _ => {
                let realm = format!("https://localhost:{port}/token");
                headed(401, format!("WWW-Authenticate: Bearer realm=\"{realm}\"\r\n"), b"")
            }
        }
    });
}

#[tokio::test]
async fn a_version_of_a_registry_costs_one_head_and_a_range_the_tags_too() {
    let ground = Ground::new(Some(Authority::new()));
    let (one, other) = (Digest::hash(b"one"), Digest::hash(b"other"));
    registry(&ground.server, &["1.0.0", "latest", "1.2.0_build", "2.0.0"], one);
    let found = ground.look("1.x", None, Duration::ZERO).await.unwrap();
    assert_eq!((&*found.name, &*found.version, found.digest), ("web", "1.2.0+build", one));
    let told: Vec<_> = ground.asked().into_iter().filter(|asked| !asked.contains("token")).collect();
    assert!(told.contains(&"HEAD /v2/team/web/manifests/1.2.0_build".to_owned()), "{told:?}");
    let found = ground.look("1.0.0", None, Duration::ZERO).await.unwrap();
    assert_eq!((&*found.version, found.digest), ("1.0.0", one));
    assert_eq!(
        ground.asked(),
        ["HEAD /v2/team/web/manifests/1.0.0", "GET /token", "HEAD /v2/team/web/manifests/1.0.0"]
    );
    assert_eq!(ground.look("1.0.0", None, Duration::from_secs(60)).await.unwrap(), found);
    assert!(ground.asked().is_empty(), "a recent answer is shared");

    // A tag that moves: one with a version is refused, one without is followed.
    let latest = ground.look("latest", None, Duration::ZERO).await.unwrap();
    registry(&ground.server, &["1.0.0"], other);
    assert_eq!(ground.refused("1.0.0", Some(&found), "was published again").await.reason(), "ChartMoved");
    assert_eq!(ground.refused("1.x", Some(&found), "was published again").await.reason(), "ChartMoved");
    assert_eq!(ground.look("latest", Some(&latest), Duration::ZERO).await.unwrap().digest, other);
    ground.refused(">=3", None, "has no version in the range >=3 of the chart web").await;
}

#[tokio::test]
async fn a_hostile_registry_costs_no_more_than_the_bounds() {
    let ground = Ground::new(Some(Authority::new()));
    let pages = Arc::new(AtomicUsize::new(0));
    let count = pages.clone();
    ground.server.rule(move |_| {
        let page = count.fetch_add(1, Ordering::Relaxed);
        let next = format!("Link: </v2/team/web/tags/list?last={page}>; rel=\"next\"\r\n");
        headed(200, next, br#"{"tags": ["planted"]}"#)
    });
    ground.refused("1.x", None, "has too many pages of tags").await;
    assert_eq!(pages.load(Ordering::Relaxed), 50);
    let away = "Link: <https://elsewhere.example/tags>; rel=\"next\"\r\n".to_owned();
    ground.server.rule(move |_| headed(200, away.clone(), br#"{"tags": []}"#));
    ground.refused("1.x", None, "a next page of its tags that is not followed").await;
    let itself = "Link: </v2/team/web/tags/list>; rel=\"next\"\r\n".to_owned();
    ground.server.rule(move |_| headed(200, itself.clone(), br#"{"tags": []}"#));
    ground.refused("1.x", None, "a next page of its tags that is not followed").await;
    ground.server.rule(|_| ok(b"planted".to_vec()));
    ground.refused("1.x", None, "sends no list of tags").await;
    ground.server.rule(|_| ok(vec![b' '; 5 << 20]));
    ground.refused("1.x", None, "sends more than 4194304 bytes of its tags").await;
    // A challenge after each token.
    let port = ground.server.port;
    let seen: Arc<Mutex<usize>> = Arc::default();
    let told = seen.clone();
    ground.server.rule(move |request| {
        *told.lock().unwrap() += 1;
        match request.path.as_str() {
            "/token" => ok(br#"{"token": "abc"}"#.to_vec()),
            _ => {
                let realm = format!("https://localhost:{port}/token");
                headed(401, format!("WWW-Authenticate: Bearer realm=\"{realm}\"\r\n"), b"planted")
            }
        }
    });
    ground.refused("1.0.0", None, "401").await;
    assert_eq!(*seen.lock().unwrap(), 3);
}

#[tokio::test]
async fn a_login_in_the_form_of_docker_is_sent_to_its_server() {
    let ground = Ground::new(Some(Authority::new()));
    registry(&ground.server, &["1.0.0"], Digest::hash(b"one"));
    let port = ground.server.port;
    let config =
        format!(r#"{{"auths": {{"https://localhost:{port}/v1/": {{"auth": "bWU6cGxhbnRlZA=="}}}}}}"#);
    let credentials = ground.credentials(&[(".dockerconfigjson", &config)]);
    let request = ChartRequest::new(&format!("oci://localhost:{port}/team/web"), None, "1.x", None).unwrap();
    let by = soon();
    let look = ground.charts.chart_version(&request, ("", "team"), &credentials, (None, Duration::ZERO), by);
    assert_eq!(&*look.await.unwrap().version, "1.0.0");
}
