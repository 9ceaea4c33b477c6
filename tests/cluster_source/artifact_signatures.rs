//! A Sync that requires signatures of its artifact applies what somebody has signed who is trusted, and holds what it
//! has else.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::api::{Api, Patch, PatchParams};
use moorline_test_support::artifact_registry::ArtifactRegistry;
use moorline_test_support::artifact_signer::{ArtifactSigner, KeylessFault, Sigstore, refer};
use moorline_test_support::daemon::until;
use moorline_test_support::person::moorline;
use moorline_test_support::rest::send_request;
use moorline_test_support::scene::{QUIET_TIME, Scene, config_map};
use moorline_test_support::signers::value;
use serde_json::{Value, json};

const ISSUER: &str = "https://login.example";
const WORKFLOW: &str = "https://ci.example/shop/.github/workflows/release.yaml@refs/tags/v1";

/// A registry beside a scene, and the Secret `registry` with its authority.
pub(crate) async fn registry(scene: &Scene) -> ArtifactRegistry {
    let root = scene.root.path().join("registry");
    std::fs::create_dir_all(&root).unwrap();
    let registry = ArtifactRegistry::start(&root);
    let secrets = format!("/api/v1/namespaces/{}/secrets", scene.namespace);
    send_request(&scene.admin, "POST", &secrets, registry.authority_secret("registry")).await.unwrap();
    registry
}

fn spec(registry: &ArtifactRegistry, reference: &Value, verify: &Value) -> Value {
    let oci = json!({"url": registry.url("shop"), "ref": reference, "secretRef": {"name": "registry"},
        "verify": verify});
    json!({"source": {"oci": oci}, "interval": "5s"})
}

pub(crate) fn by_keys() -> Value {
    json!({"keys": {"secretRef": {"name": "signers"}}})
}

/// Pushes an artifact with one ConfigMap.
fn push(registry: &ArtifactRegistry, tag: &str, value: &str) -> String {
    registry.push("shop", tag, &[("a.json".to_owned(), config_map("a", value))])
}

/// Sets the trusted keys.
pub(crate) async fn trust(scene: &Scene, keys: &[&ArtifactSigner]) {
    trust_in(scene, "signers", keys).await;
}

/// Sets the trusted keys in a Secret, which also has what cosign writes beside a public key.
pub(crate) async fn trust_in(scene: &Scene, secret: &str, keys: &[&ArtifactSigner]) {
    let mut data = json!({"cosign.key": STANDARD.encode("planted")});
    for (at, key) in keys.iter().enumerate() {
        data[format!("{at}.pub")] = json!(STANDARD.encode(key.pem()));
    }
    let body = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": secret}, "data": data});
    let secrets: Api<Secret> = Api::namespaced(scene.admin.clone(), &scene.namespace);
    secrets.patch(secret, &PatchParams::apply("test").force(), &Patch::Apply(&body)).await.unwrap();
}

async fn set_root(scene: &Scene, root: &Sigstore) {
    let map = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "root"},
        "data": {"trusted_root.json": root.trusted_root()}});
    let maps: Api<ConfigMap> = Api::namespaced(scene.admin.clone(), &scene.namespace);
    maps.patch("root", &PatchParams::apply("test").force(), &Patch::Apply(&map)).await.unwrap();
}

/// Waits until the newest revision is refused with a reason and these words.
pub(crate) async fn until_refused(scene: &Scene, reason: &str, parts: &[&str]) {
    scene.until_reason("shop", reason).await;
    until(&format!("{reason} says {parts:?}"), async || {
        let message = scene.status("shop", "/conditions/0/message").await;
        let message = message.as_str()?;
        assert!(!message.contains("planted"), "{message}");
        parts.iter().all(|part| message.contains(part)).then_some(())
    })
    .await;
    assert_eq!(scene.status("shop", "/conditions/0/status").await, "False");
}

async fn is_held(scene: &Scene, expect: &str) {
    scene.edit("a", "by hand").await;
    until("the edit is repaired", async || (value(scene).await? == expect).then_some(())).await;
}

#[tokio::test]
async fn only_what_a_trusted_key_signed_is_taken_up_and_the_last_good_is_held() {
    let Some(scene) = Scene::new("cosign").await else { return };
    let (registry, ann, bob) = (registry(&scene).await, ArtifactSigner::new(), ArtifactSigner::new());
    trust(&scene, &[&ann]).await;
    let first = push(&registry, "v1", "first");
    let daemon = scene.daemon();
    scene.sync("shop", spec(&registry, &json!({"tag": "v1"}), &by_keys())).await;
    until_refused(&scene, "SignatureMissing", &[&first, "is not signed"]).await;
    assert_eq!(value(&scene).await, None, "nothing of it is applied");
    // It was pushed before it was signed, as everybody does: nobody has to ask again.
    ann.sign_by_tag(&registry, "shop", &first);
    scene.until_ready("shop", &format!("v1@{first}")).await;
    assert_eq!(value(&scene).await.as_deref(), Some("first"));

    let second = push(&registry, "v1", "second");
    bob.sign_by_tag(&registry, "shop", &second);
    let expected = format!("it was not made by the key {}", ann.fingerprint());
    until_refused(&scene, "SignerUnknown", &[&second, &expected]).await;
    is_held(&scene, "first").await;
    // A bundle names its key.
    refer(&registry, "shop", &second, &bob.bundle(&second), true);
    until_refused(&scene, "SignerUnknown", &[&format!("it names the key {}", bob.fingerprint())]).await;
    refer(&registry, "shop", &second, &ann.bundle(&second), true);
    scene.until_ready("shop", &second).await;
    assert_eq!(value(&scene).await.as_deref(), Some("second"));

    let third = push(&registry, "v1", "third");
    refer(&registry, "shop", &third, &ann.bundle(&second), true);
    until_refused(&scene, "SignatureInvalid", &[&second, "it was copied from another artifact"]).await;
    is_held(&scene, "second").await;
    // A new daemon holds it as well, also while the registry has lost its signature.
    drop(daemon);
    let daemon = scene.daemon();
    until_refused(&scene, "SignatureInvalid", &["it was copied from another artifact"]).await;
    is_held(&scene, "second").await;
    ann.sign_by_tag(&registry, "shop", &third);
    scene.until_ready("shop", &third).await;
    scene.settle().await;
    registry.requests();
    tokio::time::sleep(QUIET_TIME).await;
    let asked = registry.requests();
    assert!(asked.iter().all(|one| one == "HEAD shop/manifests/v1"), "{asked:?}");
    scene.assert_calm("with an artifact that is trusted").await;
    drop(daemon);
}

#[tokio::test]
async fn todays_keys_count_for_what_is_here_too() {
    let Some(scene) = Scene::new("cosign-keys").await else { return };
    let (registry, ann, bob) = (registry(&scene).await, ArtifactSigner::new(), ArtifactSigner::new());
    let first = push(&registry, "v1", "first");
    // The tag that replaces the list of referrers.
    refer(&registry, "shop", &first, &ann.bundle(&first), false);
    let daemon = scene.daemon();
    scene.sync("shop", spec(&registry, &json!({"tag": "v1"}), &by_keys())).await;
    scene.until_reason("shop", "SecretMissing").await;
    assert_eq!(value(&scene).await, None, "nothing is applied without keys");
    trust(&scene, &[&ann]).await;
    scene.until_ready("shop", &first).await;
    let asked = registry.requests();
    let tag = format!("GET shop/manifests/{}", first.replace(':', "-"));
    assert_eq!(asked.iter().filter(|one| **one == tag).count(), 1, "one search for one digest: {asked:?}");
    // A key more: what was accepted is verified again, without the registry.
    trust(&scene, &[&bob, &ann]).await;
    tokio::time::sleep(QUIET_TIME).await;
    scene.until_ready("shop", &first).await;
    let asked = registry.requests();
    assert!(asked.iter().all(|one| one == "HEAD shop/manifests/v1"), "{asked:?}");
    // Somebody leaves: what is here stays, and nobody holds it.
    trust(&scene, &[&bob]).await;
    until_refused(&scene, "SignerUnknown", &[&first, &bob.fingerprint()]).await;
    scene.edit("a", "by hand").await;
    tokio::time::sleep(QUIET_TIME).await;
    assert_eq!(value(&scene).await.as_deref(), Some("by hand"));
    trust(&scene, &[&ann]).await;
    scene.until_ready("shop", &first).await;
    until("the edit is repaired", async || (value(&scene).await? == "first").then_some(())).await;
    let wrong = json!({"stringData": {"0.pub": "planted"}});
    let secrets: Api<Secret> = Api::namespaced(scene.admin.clone(), &scene.namespace);
    secrets.patch("signers", &PatchParams::default(), &Patch::Merge(&wrong)).await.unwrap();
    until_refused(&scene, "KeysInvalid", &["0.pub", "spec.source.oci.verify"]).await;
    secrets.delete("signers", &Default::default()).await.unwrap();
    scene.until_reason("shop", "SecretMissing").await;
    let second = push(&registry, "v1", "second");
    ann.sign_by_tag(&registry, "shop", &second);
    scene.nudge("shop", "second").await;
    tokio::time::sleep(QUIET_TIME).await;
    assert_eq!(value(&scene).await.as_deref(), Some("first"));
    drop(daemon);
}

#[tokio::test]
async fn an_identity_is_proven_by_the_trust_root_and_nobody_is_asked() {
    let Some(scene) = Scene::new("keyless-cosign").await else { return };
    let (registry, sigstore) = (registry(&scene).await, Sigstore::new());
    let sign = |artifact: &str, subject: &str, fault| {
        sigstore.sign((&registry, "shop", artifact), (ISSUER, subject), fault);
    };
    let verify = json!({"keyless": [{"issuer": ISSUER, "subject": WORKFLOW}],
        "trustedRoot": {"configMapRef": {"name": "root"}}});
    let first = push(&registry, "v1", "first");
    sign(&first, "https://ci.example/other", KeylessFault::None);
    let _daemon = scene.daemon();
    scene.sync("shop", spec(&registry, &json!({"tag": "v1"}), &verify)).await;
    scene.until_reason("shop", "ValuesMissing").await;
    set_root(&scene, &sigstore).await;
    let seen =
        format!("it was made by https://ci.example/other of {ISSUER}; expected {WORKFLOW} of {ISSUER}");
    until_refused(&scene, "SignerUnknown", &[&first, &seen]).await;
    assert_eq!(value(&scene).await, None, "nothing of it is applied");
    sign(&first, WORKFLOW, KeylessFault::None);
    scene.until_ready("shop", &first).await;

    let second = push(&registry, "v1", "second");
    sign(&second, WORKFLOW, KeylessFault::Expired);
    until_refused(&scene, "SignatureInvalid", &[&second, "its certificate expired at 2020-02-01"]).await;
    is_held(&scene, "first").await;
    sign(&second, WORKFLOW, KeylessFault::OtherEntry);
    until_refused(&scene, "SignatureInvalid", &["its log entry is of another payload"]).await;
    ArtifactSigner::new().sign_by_tag(&registry, "shop", &second);
    until_refused(&scene, "SignerUnknown", &["it has no certificate", WORKFLOW]).await;
    is_held(&scene, "first").await;
    sign(&second, WORKFLOW, KeylessFault::None);
    scene.until_ready("shop", &second).await;
    let roles = moorline(&scene, &["rbac", "--sync", "shop"]);
    assert!(
        roles.data.contains("  resourceNames:\n  - root\n  resources:\n  - configmaps\n"),
        "{} {}",
        roles.data,
        roles.words
    );
    // Another trust root proves nobody any more.
    set_root(&scene, &Sigstore::new()).await;
    until_refused(&scene, "SignatureInvalid", &[&second, "it has no entry in a log of the trust root"]).await;
    set_root(&scene, &sigstore).await;
    scene.until_ready("shop", &second).await;
}

#[tokio::test]
async fn versions_of_signed_artifacts_go_up_only_and_a_command_verifies_too() {
    let Some(scene) = Scene::new("cosign-lowered").await else { return };
    let (registry, ann, eve) = (registry(&scene).await, ArtifactSigner::new(), ArtifactSigner::new());
    trust(&scene, &[&ann]).await;
    let release = |tag: &str| {
        let digest = push(&registry, tag, tag);
        ann.sign_by_tag(&registry, "shop", &digest);
        digest
    };
    let first = release("1.0.0");
    release("1.1.0");
    let _daemon = scene.daemon();
    scene.sync("shop", spec(&registry, &json!({"semver": "1.x"}), &by_keys())).await;
    until("the highest is applied", async || (value(&scene).await? == "1.1.0").then_some(())).await;
    registry.remove_tags("1.1.0");
    scene.nudge("shop", "gone").await;
    until_refused(&scene, "VersionLowered", &["1.0.0@", "1.1.0@"]).await;
    is_held(&scene, "1.1.0").await;
    // Only a person goes back, by name.
    scene
        .patch_sync("shop", json!({"spec": {"source": {"oci": {"ref": {"semver": null, "tag": "1.0.0"}}}}}))
        .await;
    scene.until_ready("shop", &first).await;

    let identity = json!([{"issuer": ISSUER, "subject": WORKFLOW}]);
    for (verify, part) in [
        (json!({"keyless": identity}), "write exactly one of keys and keyless"),
        (json!({"keys": null, "keyless": identity}), "write trustedRoot with keyless"),
        (json!({"trustedRoot": {"secretRef": {"name": "root"}}}), "write trustedRoot with keyless"),
        (
            json!({"keys": null, "keyless": identity, "trustedRoot": {}}),
            "write exactly one of configMapRef and secretRef",
        ),
    ] {
        let patch = Patch::Merge(json!({"spec": {"source": {"oci": {"verify": verify}}}}));
        let told =
            scene.syncs().patch("shop", &PatchParams::default(), &patch).await.unwrap_err().to_string();
        assert!(told.contains(part), "{verify}: {told}");
    }
    let planned = moorline(&scene, &["plan", "--sync", "shop"]);
    assert_eq!(planned.code, 0, "{} {}", planned.data, planned.words);
    trust(&scene, &[&eve]).await;
    let planned = moorline(&scene, &["plan", "--sync", "shop"]);
    assert!(
        planned.code == 1 && planned.words.contains("it was not made by the key"),
        "{} {}",
        planned.code,
        planned.words
    );
}
