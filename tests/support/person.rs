//! A person who uses the program beside the daemon.

use std::process::{Command, Stdio};

use super::credentials::ADMIN;
use super::programs::{command, find};
use super::scene::Scene;

/// What a verb said and how it ended.
pub(crate) struct Said {
    pub(crate) code: i32,
    pub(crate) data: String,
    pub(crate) words: String,
}

/// Runs `moorline` in the namespace of the scene.
pub(crate) fn moorline(scene: &Scene, arguments: &[&str]) -> Said {
    said(scene, Command::new(env!("CARGO_BIN_EXE_moorline")).args(arguments).args(["-n", &scene.namespace]))
}

/// The same on a terminal, where all that is said is data; none where no program makes one.
pub(crate) fn on_terminal(scene: &Scene, arguments: &[&str]) -> Option<Said> {
    let program = find("script")?;
    let words = [&[env!("CARGO_BIN_EXE_moorline")], arguments, &["-n", &scene.namespace]].concat();
    let line: Vec<String> = words.iter().map(|word| format!("'{word}'")).collect();
    Some(said(scene, command(&program).args(["-qec", &line.join(" "), "/dev/null"]).stdin(Stdio::null())))
}

fn said(scene: &Scene, program: &mut Command) -> Said {
    let kubeconfig = scene.root.path().join("kubeconfig-of-a-person");
    std::fs::write(&kubeconfig, scene.plane.kubeconfig(ADMIN)).unwrap();
    let output = program.env("KUBECONFIG", kubeconfig).output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    Said { code: output.status.code().unwrap(), data: text(output.stdout), words: text(output.stderr) }
}
