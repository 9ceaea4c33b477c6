//! A person who uses the program beside the daemon.

use std::process::Command;

use super::credentials::ADMIN;
use super::scene::Scene;

/// What a verb said and how it ended.
pub(crate) struct Said {
    pub(crate) code: i32,
    pub(crate) data: String,
    pub(crate) words: String,
}

/// Runs `moorline` in the namespace of the scene.
pub(crate) fn moorline(scene: &Scene, arguments: &[&str]) -> Said {
    let kubeconfig = scene.root.path().join("kubeconfig-of-a-person");
    std::fs::write(&kubeconfig, scene.plane.kubeconfig(ADMIN)).unwrap();
    let output = Command::new(env!("CARGO_BIN_EXE_moorline"))
        .args(arguments)
        .args(["-n", &scene.namespace])
        .env("KUBECONFIG", kubeconfig)
        .output()
        .unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    Said { code: output.status.code().unwrap(), data: text(output.stdout), words: text(output.stderr) }
}
