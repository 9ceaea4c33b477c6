//! Data keys from Vault: one request each and none at rest, only to servers that the operator lists, never by a redirect.

use std::sync::Arc;
use std::sync::atomic::{AtomicU16, Ordering};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use moorline_test_support::authority::Authority;
use moorline_test_support::git_server::{GitServer, Reply};
use moorline_test_support::rest::send_request;
use moorline_test_support::scene::{QUIET_TIME, Scene, text};
use moorline_test_support::sops::{AGE_KEYS, DATA_KEY, encrypt_yaml};
use serde_json::{Value, json};

use super::{change_keys, decrypting, passwords, secret, until_password};

const TOKEN: &str = "planted-token";

/// A stub of Vault that answers with a status, and with the data key if that is 200.
struct Vault {
    server: GitServer,
    authority: Authority,
    status: Arc<AtomicU16>,
}

impl Vault {
    fn start(scene: &Scene) -> Self {
        let authority = Authority::new();
        let server = GitServer::start_with(scene.root.path(), Some(authority.server(None)));
        let status = Arc::new(AtomicU16::new(200));
        let answered = status.clone();
        server.rule(move |request| {
            let asked: Value = serde_json::from_slice(&request.body).unwrap_or_default();
            let is_sound = request.method == "POST"
                && request.path == "/v1/transit/decrypt/shop"
                && request.header("x-vault-token") == Some(TOKEN)
                && asked["ciphertext"] == "vault:v1:c2hvcA==";
            let answer = json!({"data": {"plaintext": STANDARD.encode(DATA_KEY)}}).to_string();
            match answered.load(Ordering::SeqCst) {
                200 if is_sound => Reply::Raw(200, "Content-Type: application/json\r\n", answer.into_bytes()),
                200 => Reply::Raw(403, "", Vec::new()),
                302 => Reply::Raw(
                    302,
                    "Location: https://169.254.169.254/v1/transit/decrypt/shop\r\n",
                    Vec::new(),
                ),
                status => Reply::Raw(status, "", Vec::new()),
            }
        });
        Self { server, authority, status }
    }

    fn address(&self) -> String {
        format!("https://localhost:{}", self.server.port)
    }

    fn metadata(&self) -> Value {
        json!({"hc_vault": [{"vault_address": self.address(), "engine_path": "transit", "key_name": "shop",
            "created_at": "2026-01-02T03:04:05Z", "enc": "vault:v1:c2hvcA=="}]})
    }

    async fn make_token(&self, scene: &Scene) {
        let path = format!("/api/v1/namespaces/{}/secrets", scene.namespace);
        let data = json!({"sops.vault-token": TOKEN, "ca.crt": self.authority.pem});
        let body = json!({"metadata": {"name": "keys"}, "stringData": data});
        send_request(&scene.admin, "POST", &path, body).await.unwrap();
    }

    fn file(&self, name: &str, password: &str) -> (String, String) {
        let file = encrypt_yaml(&secret(name, password), &["data", "stringData"], &self.metadata());
        text(&format!("{name}.yaml"), &file)
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_listed_server_is_asked_once_for_each_data_key() {
    let Some(scene) = Scene::new("vault").await else { return };
    let vault = Vault::start(&scene);
    vault.make_token(&scene).await;
    // Two files of one data key.
    let commit = scene.push(&[vault.file("login", "first"), vault.file("more", "second")]);
    let daemon = scene.daemon_with(&["--leader-election=false", "--vault-addresses", &vault.address()]);
    scene.sync("shop", decrypting()).await;
    scene.until_ready("shop", &commit).await;
    let found = passwords(&scene).await;
    assert_eq!((found["login"].as_str(), found["more"].as_str()), ("first", "second"));
    assert_eq!(vault.server.requests().len(), 1, "one data key is one request");
    assert!(!daemon.log().contains(TOKEN));

    // A new commit with the same data key, and a time without commits, cost none.
    let commit = scene.push(&[vault.file("login", "third")]);
    scene.nudge("shop", "a commit").await;
    scene.until_ready("shop", &commit).await;
    tokio::time::sleep(QUIET_TIME).await;
    assert_eq!(vault.server.requests().len(), 0);
    assert_eq!(passwords(&scene).await["login"], "third");
    drop(daemon);
    scene.delete_sync("shop").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_is_not_listed_or_redirects_gets_nothing_and_nothing_is_applied() {
    let Some(scene) = Scene::new("vault-no").await else { return };
    let vault = Vault::start(&scene);
    vault.make_token(&scene).await;
    scene.push(&[vault.file("login", "first")]);
    let daemon = scene.daemon();
    scene.sync("shop", decrypting()).await;
    scene.until_reason("shop", "DecryptionFailed").await;
    let message = scene.status("shop", "/problems/0/message").await;
    assert!(message.as_str().unwrap().contains("vaultAddresses"), "{message}");
    assert_eq!(vault.server.requests().len(), 0);
    drop(daemon);

    vault.status.store(503, Ordering::SeqCst);
    let _daemon = scene.daemon_with(&["--leader-election=false", "--vault-addresses", &vault.address()]);
    let told = |part: &'static str| {
        let scene = &scene;
        async move {
            moorline_test_support::daemon::until(part, async || {
                let message = scene.status("shop", "/problems/0/message").await;
                message.as_str().is_some_and(|text| text.contains(part)).then_some(())
            })
            .await;
        }
    };
    // A server that is away, and a token that is refused, are tried again by themselves.
    told("returned status 503").await;
    vault.status.store(403, Ordering::SeqCst);
    told("refuses the token").await;
    vault.status.store(302, Ordering::SeqCst);
    told("redirects elsewhere, which is not followed").await;
    assert!(passwords(&scene).await.is_empty());
    // Another Secret is a new attempt.
    vault.status.store(200, Ordering::SeqCst);
    change_keys(&scene, "PATCH", json!({"stringData": {"more.agekey": AGE_KEYS[0].identity}})).await;
    until_password(&scene, "login", "first").await;
    scene.delete_sync("shop").await;
}
