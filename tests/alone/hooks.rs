//! Webhooks: strangers get nothing done, and anyone who knows the secret has a Sync look at once.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use moorline::metrics::Metrics;
use moorline::serve::webhooks::{MAX_BODY_BYTES, RATE, WebhookEndpoint};
use moorline::serve::{DaemonHealth, serve};
use moorline::source::webhook_call::RepositoryNames;
use moorline_test_support::artifact_registry::ArtifactRegistry;
use moorline_test_support::daemon::{Daemon, until};
use moorline_test_support::fault_proxy::FaultProxy;
use moorline_test_support::rest::send_request;
use moorline_test_support::scene::{Scene, many};
use ring::hmac;
use serde_json::json;
use tokio::net::TcpListener;
use tokio::sync::mpsc;

const SECRET: &str = "a secret of some length";

fn signed(body: &[u8]) -> String {
    let key = hmac::Key::new(hmac::HMAC_SHA256, SECRET.as_bytes());
    let tag = hmac::sign(&key, body);
    "sha256=".to_owned() + &tag.as_ref().iter().map(|byte| format!("{byte:02x}")).collect::<String>()
}

/// Posts no more of a body than this, and gives the status and what was said.
fn announce(address: &str, path: &str, header: &str, begun: &[u8]) -> (u16, String) {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    let head = format!("POST {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n{header}\r\n\r\n");
    stream.write_all(&[head.as_bytes(), begun].concat()).unwrap();
    answer(stream)
}

fn answer(mut stream: TcpStream) -> (u16, String) {
    let mut answer = Vec::new();
    drop(stream.read_to_end(&mut answer));
    let answer = String::from_utf8_lossy(&answer);
    let (head, said) = answer.split_once("\r\n\r\n").unwrap_or((&answer, ""));
    let status = head.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or_default();
    (status, said.trim_end().to_owned())
}

/// Posts a body, and gives the status and what was said.
fn post(address: &str, path: &str, headers: &[(&str, &str)], body: &[u8]) -> (u16, String) {
    let mut stream = TcpStream::connect(address).unwrap();
    let mut head =
        format!("POST {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: {}\r\n", body.len());
    headers.iter().for_each(|(name, value)| head.push_str(&format!("{name}: {value}\r\n")));
    stream.write_all(format!("{head}\r\n").as_bytes()).unwrap();
    // The client hangs up.
    drop(stream.write_all(body));
    answer(stream)
}

/// A server with webhooks, and where their calls arrive.
struct Hooked {
    address: String,
    called: mpsc::Receiver<RepositoryNames>,
    folder: tempfile::TempDir,
}

impl Hooked {
    async fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let secret = folder.path().join("secret");
        std::fs::write(&secret, format!("{SECRET}\n")).unwrap();
        let (call, called) = mpsc::channel(100);
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let hooks = Some(WebhookEndpoint::new(secret, call));
        tokio::spawn(serve(
            listener,
            DaemonHealth::new(),
            Metrics::new().unwrap(),
            hooks,
            std::future::pending(),
        ));
        Self { address, called, folder }
    }

    async fn announce(&self, path: &str, header: &str, begun: &[u8]) -> (u16, String) {
        let (address, path, header, begun) =
            (self.address.clone(), path.to_owned(), header.to_owned(), begun.to_vec());
        tokio::task::spawn_blocking(move || announce(&address, &path, &header, &begun)).await.unwrap()
    }

    async fn post(&self, path: &str, headers: &[(&str, &str)], body: &[u8]) -> (u16, String) {
        let address = self.address.clone();
        let path = path.to_owned();
        let headers: Vec<(String, String)> =
            headers.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        let body = body.to_vec();
        let posted = tokio::task::spawn_blocking(move || {
            let headers: Vec<(&str, &str)> = headers.iter().map(|(a, b)| (a.as_str(), b.as_str())).collect();
            post(&address, &path, &headers, &body)
        });
        posted.await.unwrap()
    }
}

#[tokio::test]
async fn strangers_and_garbage_are_refused_in_words() {
    let mut hooked = Hooked::new().await;
    let body = json!({"repository": {"clone_url": "https://git.example.com/a/b.git"}}).to_string();
    let body = body.as_bytes();
    let proof = signed(body);
    let refused = |status: u16, words: &str| (status, words.to_owned());

    let header = "X-Hub-Signature-256";
    assert_eq!(
        hooked.post("/hooks/github", &[], body).await,
        refused(401, "the header X-Hub-Signature-256 is missing: set the daemon's secret on the webhook")
    );
    assert_eq!(
        hooked.post("/hooks/github", &[(header, &signed(b"another"))], body).await,
        refused(
            401,
            "the header X-Hub-Signature-256 does not match: the webhook and the daemon have different secrets"
        )
    );
    assert_eq!(
        hooked.post("/hooks/svn", &[(header, &proof)], body).await,
        refused(
            404,
            "unknown webhook kind; supported: github, gitlab, gitea, forgejo, bitbucket, dockerhub, harbor, quay, acr and generic"
        )
    );
    let garbage = b"\xff{not json";
    // Nothing of a body is read before it is known from whom it is: a stranger does not learn what is wrong with it.
    assert_eq!(
        hooked.post("/hooks/github", &[(header, &signed(b"another"))], garbage).await,
        refused(
            401,
            "the header X-Hub-Signature-256 does not match: the webhook and the daemon have different secrets"
        )
    );
    assert_eq!(
        hooked.post("/hooks/github", &[(header, &signed(garbage))], garbage).await,
        refused(400, "the body is not JSON: set the content type application/json")
    );
    assert_eq!(
        hooked.post("/hooks/github", &[(header, &signed(b"{}"))], b"{}").await,
        refused(400, "the body names no repository: set url or urls")
    );
    let too_long = format!("the body is longer than {MAX_BODY_BYTES} bytes");
    assert_eq!(
        hooked.announce("/hooks/github", &format!("Content-Length: {}", 100 << 20), b"").await,
        (413, too_long.clone())
    );
    // Without a word of its length, what comes is counted.
    let (length, more) =
        (format!("{:x}\r\n", MAX_BODY_BYTES + 1).into_bytes(), vec![b' '; MAX_BODY_BYTES + 1]);
    let (status, said) =
        hooked.announce("/hooks/github", "Transfer-Encoding: chunked", &[length, more].concat()).await;
    assert!(status == 413 && said.starts_with(&too_long), "{status} {said}");
    // The connection of a client that sends all of it may be closed; the server goes on.
    hooked.post("/hooks/github", &[(header, &proof)], &vec![b' '; 100 << 20]).await;
    assert!(hooked.called.try_recv().is_err(), "none of them was heard");

    assert_eq!(hooked.post("/hooks/github", &[(header, &proof)], body).await, refused(202, "accepted"));
    let called: Vec<_> = hooked.called.recv().await.unwrap().into_iter().collect();
    assert_eq!(called, ["git.example.com/a/b".into()]);
    std::fs::remove_file(hooked.folder.path().join("secret")).unwrap();
    assert_eq!(
        hooked.post("/hooks/github", &[(header, &proof)], body).await,
        refused(503, "the secret of the webhooks cannot be read")
    );
}

#[tokio::test]
async fn slow_bodies_of_strangers_do_not_keep_a_signed_call_out() {
    let mut hooked = Hooked::new().await;
    let address = hooked.address.clone();
    // Each announces as much as it may, sends a part of it, and stalls.
    let open = move || {
        let part = vec![b' '; 1 << 20];
        let head =
            format!("POST /hooks/github HTTP/1.1\r\nHost: x\r\nContent-Length: {MAX_BODY_BYTES}\r\n\r\n");
        let mut held = Vec::new();
        for _ in 0..40 {
            let mut stream = TcpStream::connect(&address).unwrap();
            stream.set_write_timeout(Some(Duration::from_millis(200))).unwrap();
            // The server may hang up on a body that it gives up.
            drop(stream.write_all(head.as_bytes()).and_then(|()| stream.write_all(&part)));
            held.push(stream);
        }
        held
    };
    let held = tokio::task::spawn_blocking(open).await.unwrap();
    let body = json!({"repository": {"clone_url": "https://git.example.com/a/b.git"}}).to_string();
    let proof = signed(body.as_bytes());
    for _ in 0..5 {
        let begun = Instant::now();
        let told = hooked.post("/hooks/github", &[("X-Hub-Signature-256", &proof)], body.as_bytes()).await;
        assert_eq!(told, (202, "accepted".to_owned()));
        assert!(begun.elapsed() < Duration::from_secs(2), "{:?}", begun.elapsed());
        assert!(hooked.called.recv().await.is_some());
    }
    drop(held);
}

#[tokio::test]
async fn a_call_that_is_sent_again_and_again_is_heeded_so_often_and_no_more() {
    let mut hooked = Hooked::new().await;
    let body = json!({"url": "https://git.example.com/a/b.git"}).to_string();
    let proof = format!("Bearer {SECRET}");
    let begun = Instant::now();
    let mut heard = 0;
    for _ in 0..100 {
        let told = hooked.post("/hooks/generic", &[("Authorization", &proof)], body.as_bytes()).await;
        match hooked.called.try_recv() {
            Ok(_) => assert_eq!(told, (202, "accepted".to_owned())),
            Err(_) => {
                assert_eq!(told, (429, "too many calls".to_owned()), "what is refused is not passed on")
            }
        }
        heard += usize::from(told.0 == 202);
    }
    let most = RATE.1 + RATE.0 * begun.elapsed().as_secs_f64() + 1.0;
    assert!(heard as f64 <= most && heard >= 40, "{heard} of at most {most}");
    assert!(heard < 100, "none of them was refused");
}

fn secret_in(folder: &Path) -> PathBuf {
    let path = folder.join("webhook-secret");
    std::fs::write(&path, SECRET).unwrap();
    path
}

fn call(daemon: &Daemon, scene: &Scene) {
    let body = json!({"repository": {"clone_url": scene.git.url("repository.git")}}).to_string();
    let proof = signed(body.as_bytes());
    let told = post(
        &daemon.address().expect("it listens"),
        "/hooks/gitea",
        &[("X-Hub-Signature-256", &proof)],
        body.as_bytes(),
    );
    assert_eq!(told, (202, "accepted".to_owned()));
}

#[tokio::test]
async fn a_call_has_the_repository_looked_at_at_once() {
    let Some(scene) = Scene::new("hooks").await else { return };
    let commit = scene.push(&many(2, "one"));
    let secret = secret_in(scene.root.path());
    let daemon = scene.daemon_with(&[
        "--leader-election=false",
        "--webhook-secret-file",
        &secret.display().to_string(),
    ]);
    scene.sync("shop", json!({"interval": "1h"})).await;
    scene.until_ready("shop", &commit).await;
    let mut times = Vec::new();
    for round in 0..5 {
        tokio::time::sleep(Duration::from_millis(300)).await;
        let commit = scene.push(&many(2, &format!("round {round}")));
        scene.git.requests();
        let begun = Instant::now();
        call(&daemon, &scene);
        while scene.git.requests().is_empty() {
            assert!(begun.elapsed() < Duration::from_secs(10), "nobody looks");
            tokio::time::sleep(Duration::from_micros(200)).await;
        }
        times.push(begun.elapsed());
        scene.until_ready("shop", &commit).await;
    }
    times.sort();
    // The machine may do something else for a moment.
    assert!(times[3] < Duration::from_millis(50), "{times:?}");
    println!("from the call to the look: {times:?}");
    scene.delete_sync("shop").await;
}

#[tokio::test]
async fn a_standby_passes_a_call_on() {
    let Some(scene) = Scene::new("hooks-standby").await else { return };
    let commit = scene.push(&many(2, "one"));
    let secret = secret_in(scene.root.path());
    let arguments = ["--webhook-secret-file", &secret.display().to_string()];
    let _leader = scene.daemon_at(&scene.proxy, "leader", &arguments);
    scene.sync("shop", json!({"interval": "1h"})).await;
    scene.until_ready("shop", &commit).await;
    let proxy = FaultProxy::start(&scene.plane);
    let standby = scene.daemon_at(&proxy, "standby", &arguments);
    until("the standby listens", async || standby.address()).await;
    let commit = scene.push(&many(2, "two"));
    // It answers before it has anybody to listen for it, in the first moment.
    tokio::time::sleep(Duration::from_millis(500)).await;
    call(&standby, &scene);
    scene.until_ready("shop", &commit).await;
    assert!(scene.status("shop", "/lastHandledRequest").await.is_string());
    scene.delete_sync("shop").await;
}

/// A call of a registry, as Harbor sends it.
fn call_of_registry(daemon: &Daemon, registry: &ArtifactRegistry) {
    let resource = format!("{}/shop:v1", registry.host());
    let body = json!({"type": "PUSH_ARTIFACT", "event_data": {"resources": [{"resource_url": resource}]}});
    let told = post(
        &daemon.address().expect("it listens"),
        "/hooks/harbor",
        &[("Authorization", SECRET)],
        body.to_string().as_bytes(),
    );
    assert_eq!(told, (202, "accepted".to_owned()));
}

#[tokio::test]
async fn a_standby_passes_the_call_of_a_registry_on() {
    let scene = Scene::on_sandbox("hooks-standby-registry").await;
    let registry = ArtifactRegistry::start(scene.root.path());
    let secrets = format!("/api/v1/namespaces/{}/secrets", scene.namespace);
    let authority = registry.authority_secret("registry");
    send_request(&scene.admin, "POST", &secrets, authority).await.unwrap();
    let digest = registry.push("shop", "v1", &many(2, "one"));
    let secret = secret_in(scene.root.path());
    let arguments = ["--webhook-secret-file", &secret.display().to_string()];
    let _leader = scene.daemon_at(&scene.proxy, "leader", &arguments);
    let oci = json!({"url": registry.url("shop"), "ref": {"tag": "v1"}, "secretRef": {"name": "registry"}});
    scene.sync("shop", json!({"source": {"oci": oci}, "interval": "1h"})).await;
    scene.until_ready("shop", &digest).await;
    // A suspended Sync polls only at the request of a person.
    scene.sync("rests", json!({"source": {"oci": oci}, "interval": "1h", "suspend": true})).await;
    let proxy = FaultProxy::start(&scene.plane);
    let standby = scene.daemon_at(&proxy, "standby", &arguments);
    until("the standby listens", async || standby.address()).await;
    let files = many(2, "two");
    registry.push("shop", "v1", &files);
    // It answers before it has anybody to listen for it, in the first moment.
    tokio::time::sleep(Duration::from_millis(500)).await;
    call_of_registry(&standby, &registry);
    scene.until_values(&files, "the push is live").await;
    let rests = scene.syncs().get("rests").await.unwrap();
    assert_eq!(rests.metadata.annotations.unwrap_or_default().get("moorline.dev/requested-at"), None);
}

#[tokio::test]
async fn a_push_to_a_registry_is_live_in_half_a_second() {
    let Some(scene) = Scene::new("hooks-registry").await else { return };
    let registry = ArtifactRegistry::start(scene.root.path());
    let secrets = format!("/api/v1/namespaces/{}/secrets", scene.namespace);
    let authority = registry.authority_secret("registry");
    send_request(&scene.admin, "POST", &secrets, authority).await.unwrap();
    let digest = registry.push("shop", "v1", &many(2, "one"));
    let secret = secret_in(scene.root.path());
    let daemon = scene.daemon_with(&[
        "--leader-election=false",
        "--webhook-secret-file",
        &secret.display().to_string(),
    ]);
    let oci = json!({"url": registry.url("shop"), "ref": {"tag": "v1"}, "secretRef": {"name": "registry"}});
    scene.sync("shop", json!({"source": {"oci": oci}, "interval": "1h"})).await;
    scene.until_ready("shop", &digest).await;
    let mut times = Vec::new();
    for round in 0..5 {
        tokio::time::sleep(Duration::from_millis(300)).await;
        let files = many(2, &format!("round {round}"));
        let begun = Instant::now();
        registry.push("shop", "v1", &files);
        call_of_registry(&daemon, &registry);
        scene.until_values(&files, "the push is live").await;
        times.push(begun.elapsed());
    }
    times.sort();
    // The machine may do something else for a moment.
    assert!(times[2] < Duration::from_millis(500), "{times:?}");
    println!("from the push to the last object: {times:?}");
    scene.delete_sync("shop").await;
}
