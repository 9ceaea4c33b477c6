//! Signed commits and tags, and a Sync that verifies them.

use std::path::PathBuf;

use k8s_openapi::api::core::v1::Secret;
use kube::api::{Api, Patch, PatchParams};
use serde_json::json;

use super::programs::{command, find, run};
use super::scene::Scene;

/// Creates an ssh key; `None` without ssh-keygen.
pub fn key(scene: &Scene, name: &str) -> Option<PathBuf> {
    let (program, file) = (find("ssh-keygen")?, scene.root.path().join(name));
    let mut makes = command(&program);
    run(makes.args(["-q", "-t", "ed25519", "-N", "", "-C", name, "-f"]).arg(&file)).expect("a key");
    scene.work.git(&["config", "gpg.ssh.program", &program.display().to_string()]);
    Some(file)
}

/// Signs further commits and tags with this key, or not at all.
pub fn sign(scene: &Scene, key: Option<&PathBuf>) {
    let signs = if key.is_some() { "true" } else { "false" };
    scene.work.git(&["config", "commit.gpgSign", signs]);
    if let Some(key) = key {
        scene.work.git(&["config", "gpg.format", "ssh"]);
        scene.work.git(&["config", "user.signingKey", &key.display().to_string()]);
    }
}

/// Sets the trusted keys.
pub async fn trust(scene: &Scene, keys: &[&PathBuf]) {
    let public = |key: &&PathBuf| std::fs::read_to_string(key.with_extension("pub")).unwrap();
    let lines: String = keys.iter().map(public).collect();
    let secret = json!({
        "apiVersion": "v1", "kind": "Secret", "metadata": {"name": "signers"}, "stringData": {"team": lines},
    });
    let secrets: Api<Secret> = Api::namespaced(scene.admin.clone(), &scene.namespace);
    secrets.patch("signers", &PatchParams::apply("test").force(), &Patch::Apply(&secret)).await.unwrap();
}

/// The spec of a Sync that requires signatures.
pub fn spec(scene: &Scene, mode: &str, reference: serde_json::Value) -> serde_json::Value {
    let mut git = json!({
        "url": scene.git.url("repository.git"), "verify": {"mode": mode, "secretRef": {"name": "signers"}},
    });
    if !reference.is_null() {
        git["ref"] = reference;
    }
    json!({"source": {"git": git}, "interval": "5s"})
}

/// Value of the ConfigMap in the cluster.
pub async fn value(scene: &Scene) -> Option<String> {
    scene.values().await.remove("a")
}
