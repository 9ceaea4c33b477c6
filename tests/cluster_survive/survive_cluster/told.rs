//! Nothing secret is ever reported: neither what Git says of Secrets, nor what reads the repositories.

use kube::api::ListParams;
use serde_json::{Value, json};

use moorline_test_support::authority::Authority;
use moorline_test_support::daemon::{Daemon, until};
use moorline_test_support::git_server::{GitServer, Reply};
use moorline_test_support::rest::send_request;
use moorline_test_support::scene::{QUIET_TIME, Scene, config_map};
use moorline_test_support::ssh_server::{SshServer, ed25519, pem};

const PLANTED: [&str; 5] = [
    "planted-in-git-7c1",
    "planted-bad-91e",
    "planted-password-55d",
    "planted-bearer-08b",
    "planted-by-hand-3d2",
];

/// The collection of Secrets of the scene.
fn secrets(scene: &Scene) -> String {
    format!("/api/v1/namespaces/{}/secrets", scene.namespace)
}

/// A Sync whose repository is read with what a Secret of the same name holds.
async fn sync_with(scene: &Scene, name: &str, url: &str, secret: Value) {
    let body = json!({"metadata": {"name": name}, "stringData": secret});
    send_request(&scene.admin, "POST", &secrets(scene), body).await.unwrap();
    let source = json!({"git": {"url": url, "secretRef": {"name": name}}});
    scene.sync(name, json!({"source": source, "path": name})).await;
}

/// Syncs by password, token and key: the first is refused, and the others are ready. Returns the lines of the key.
async fn with_logins(scene: &Scene, commit: &str) -> Vec<String> {
    let (authority, key) = (Authority::new(), ed25519());
    let closed = GitServer::start_with(scene.root.path(), Some(authority.server(None)));
    let bearer = format!("Bearer {}", PLANTED[3]);
    closed.rule(move |request| match request.header("authorization") {
        Some(told) if told == bearer => Reply::Git,
        _ => Reply::Raw(401, "", Vec::new()),
    });
    let open = SshServer::start(scene.root.path(), ed25519(), &key);
    let https = format!("https://localhost:{}/repository.git", closed.port);
    let ssh = format!("ssh://git@127.0.0.1:{}/repository.git", open.port);
    let password = json!({"username": "u", "password": PLANTED[2], "ca.crt": authority.pem});
    sync_with(scene, "password", &https, password).await;
    sync_with(scene, "bearer", &https, json!({"bearerToken": PLANTED[3], "ca.crt": authority.pem})).await;
    sync_with(scene, "key", &ssh, json!({"ssh-privatekey": pem(&key), "known_hosts": open.known()})).await;
    scene.until_reason("password", "RepositoryAccessDenied").await;
    for name in ["bearer", "key"] {
        scene.until_ready(name, commit).await;
    }
    pem(&key).lines().filter(|line| !line.contains("-----")).map(str::to_owned).collect()
}

/// Commits Secrets, one of which the API server refuses, and a file for each other Sync.
fn plant(scene: &Scene) -> String {
    let secret = |name: &str, value: Value, kind: &str| {
        json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name}, "type": kind, "stringData": value})
            .to_string()
    };
    let files = [
        ("shop/good.json", secret("good", json!({"password": PLANTED[0]}), "Opaque")),
        // The API server quotes what it refuses.
        (
            "shop/bad.json",
            secret("bad", json!({".dockerconfigjson": PLANTED[1]}), "kubernetes.io/dockerconfigjson"),
        ),
        // And on this one it remarks what it cannot read in it.
        (
            "shop/odd.json",
            secret("odd", json!({"tls.crt": PLANTED[0], "tls.key": PLANTED[1]}), "kubernetes.io/tls"),
        ),
        ("alone/alone.json", secret("alone", json!({"password": PLANTED[0]}), "Opaque")),
        ("bearer/a.json", config_map("bearer", "one")),
        ("key/a.json", config_map("key", "one")),
    ];
    scene.push(&files.map(|(path, text)| (path.to_owned(), text)))
}

/// All that is reported, by the place where it stands.
async fn told(scene: &Scene, daemon: &Daemon) -> [(&'static str, String); 5] {
    let all = async |group: &str, plural: &str| {
        let uri = format!("/apis/{group}/namespaces/{}/{plural}", scene.namespace);
        send_request(&scene.admin, "GET", &uri, Value::Null).await.unwrap().to_string()
    };
    let syncs = serde_json::to_string(&scene.syncs().list(&ListParams::default()).await.unwrap()).unwrap();
    [
        ("log", daemon.log()),
        ("metrics", daemon.get("/metrics").unwrap()),
        ("events", all("events.k8s.io/v1", "events").await),
        ("leases", all("coordination.k8s.io/v1", "leases").await),
        ("status", syncs),
    ]
}

#[tokio::test]
async fn no_output_has_a_secret_value() {
    let Some(scene) = Scene::new("secret").await else { return };
    let (commit, uri) = (plant(&scene), secrets(&scene));
    let daemon = scene.daemon_with(&["--log-level", "trace"]);
    scene.sync("shop", json!({"path": "shop"})).await;
    scene.until_reason("shop", "ApplyFailed").await;
    // An edit by hand, whose repair is reported.
    let edit = json!({"stringData": {"password": PLANTED[4]}});
    until("the good one is there", async || {
        send_request(&scene.admin, "PATCH", &format!("{uri}/good"), &edit).await.ok()
    })
    .await;
    let key = with_logins(&scene, &commit).await;
    // One without a Sync writes onto its Lease what it does.
    let url = scene.git.url("repository.git");
    let alone = ["--url", &url, "--path", "alone", "--name", "alone", "--log-level", "trace"];
    let alone = scene.daemon_at(&scene.proxy, "alone", &alone);
    until("its Secret is there", async || {
        send_request(&scene.admin, "GET", &format!("{uri}/alone"), Value::Null).await.ok()
    })
    .await;
    tokio::time::sleep(QUIET_TIME).await;

    let (of_one, of_other) = (told(&scene, &daemon).await, told(&scene, &alone).await);
    let of = |place| &of_one.iter().find(|it| it.0 == place).unwrap().1;
    for (place, word) in [
        ("log", "moorline_trace"),
        ("metrics", "moorline_"),
        ("events", "ApplyFailed"),
        ("leases", "moorline.dev/scope"),
        ("status", "sent a warning that is not shown"),
    ] {
        assert!(of(place).contains(word), "what is told at all says {word}: {}", of(place));
    }
    let encode = |text: &&str| base64::Engine::encode(&base64::engine::general_purpose::STANDARD, text);
    let mut forms: Vec<String> = PLANTED.iter().flat_map(|it| [(*it).to_owned(), encode(it)]).collect();
    forms.extend(key);
    for (place, text) in of_one.iter().chain(&of_other) {
        assert!(!text.contains("PEM data"), "a remark on a Secret is in the {place}");
        let shown: Vec<&String> = forms.iter().filter(|form| text.contains(&***form)).collect();
        assert!(shown.is_empty(), "{shown:?} is in the {place}");
    }
    drop(alone);
    for name in ["shop", "password", "bearer", "key"] {
        scene.delete_sync(name).await;
    }
}
