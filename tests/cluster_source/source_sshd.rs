//! A repository behind a real OpenSSH server whose host key changes: the daemon refuses it, and goes on when the Secret
//! names the new key.

pub(crate) mod server;

use russh::keys::HashAlg;
use serde_json::json;

use moorline_test_support::rest::send_request;
use moorline_test_support::scene::{Scene, many};
use moorline_test_support::ssh_server::{ed25519, pem};
use server::Ground;

#[tokio::test]
async fn a_host_key_that_changes_is_refused_until_the_secret_names_it() {
    let Some(scene) = Scene::new("sshd").await else { return };
    let user_key = ed25519();
    let Some(ground) = Ground::new(scene.root.path(), &user_key, &scene.plane.reaper) else { return };
    let sshd = ground.start(&ed25519()).await;
    let secrets = format!("/api/v1/namespaces/{}/secrets", scene.namespace);
    let secret = json!({
        "metadata": {"name": "key"},
        "stringData": {"ssh-privatekey": pem(&user_key), "known_hosts": sshd.known},
    });
    send_request(&scene.admin, "POST", &secrets, secret).await.unwrap();
    let first = scene.push(&many(2, "one"));
    let _daemon = scene.daemon();
    let url = format!("ssh://git@127.0.0.1:{}{}", ground.port, scene.work.bare.display());
    scene.sync("shop", json!({"source": {"git": {"url": url, "secretRef": {"name": "key"}}}})).await;
    scene.until_ready("shop", &first).await;
    assert!(sshd.logins() > 0, "{}", sshd.log());

    drop(sshd);
    let second = scene.push(&many(2, "two"));
    let host_key = ed25519();
    let sshd = ground.start(&host_key).await;
    scene.nudge("shop", "after the key has changed").await;
    scene.until_reason("shop", "RepositoryUntrusted").await;
    let message = scene.status("shop", "/conditions/0/message").await;
    let message = message.as_str().unwrap();
    let print = host_key.public_key().fingerprint(HashAlg::Sha256);
    let told = format!(
        "its ssh-ed25519 key {print} is not the one in known_hosts: this may be a man-in-the-middle attack"
    );
    assert!(message.contains(&told), "{message}");
    let scan = format!("`ssh-keyscan -p {} 127.0.0.1`", ground.port);
    assert!(message.contains(&scan), "{message}");
    assert_eq!(sshd.logins(), 0, "{}", sshd.log());
    scene.until_values(&many(2, "one"), "what was applied stays").await;

    let secret = json!({"stringData": {"known_hosts": sshd.known}});
    send_request(&scene.admin, "PATCH", &format!("{secrets}/key"), secret).await.unwrap();
    scene.until_ready("shop", &second).await;
    scene.until_values(&many(2, "two"), "the newest commit is applied").await;
    assert!(sshd.logins() > 0, "{}", sshd.log());
    scene.delete_sync("shop").await;
}
