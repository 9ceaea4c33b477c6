//! Every verb that renders, with every renderer: none of them ends with a panic.
//!
//! In: a folder of manifests, a kustomization and a chart; a sandbox as the cluster. Out: exit codes and words. A panic is exit code
//! 101. Without a helm a chart cannot be rendered, and the verb says so and ends with 1.

#[path = "support/command.rs"]
#[expect(dead_code, reason = "every test binary compiles all of this and uses a part of it")]
mod command;
#[path = "support/programs.rs"]
#[expect(dead_code, reason = "every test binary compiles all of this and uses a part of it")]
mod programs;

use std::io::{BufRead as _, BufReader};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use command::Folder;

/// A manifest that is sound.
const CONFIG_MAP: &[u8] = b"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: {mode: fast}\n";

/// A sandbox that ends with the test.
struct Sandbox {
    server: Child,
    kubeconfig: String,
}

impl Sandbox {
    fn start(folder: &Folder) -> Self {
        let mut server = Command::new(env!("CARGO_BIN_EXE_moorline"))
            .args(["sandbox", "--seed", "1"])
            .env("TMPDIR", &folder.0)
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(server.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let kubeconfig = line.trim().strip_prefix("export KUBECONFIG=").unwrap().to_owned();
        Self { server, kubeconfig }
    }
}

impl Drop for Sandbox {
    fn drop(&mut self) {
        let _ = self.server.kill();
        let _ = self.server.wait();
    }
}

/// The verbs that render a path, with the exit code of a render that succeeds against an empty cluster.
const VERBS: [(&[&str], i32); 6] = [
    (&["render"], 0),
    (&["check"], 0),
    (&["rbac"], 0),
    (&["plan", "--against", "live", "--namespace", "default"], 2),
    (&["plan", "--against", "cluster", "--namespace", "default"], 2),
    (&["plan", "--against", "cluster", "--namespace", "default", "--output", "json"], 2),
];

fn folder() -> Folder {
    Folder::new(
        "renderers",
        &[
            ("plain/map.yaml", CONFIG_MAP),
            ("kustomization/map.yaml", CONFIG_MAP),
            ("kustomization/kustomization.yaml", b"resources: [map.yaml]\n"),
            ("chart/Chart.yaml", b"apiVersion: v2\nname: shop\nversion: 1.0.0\n"),
            ("chart/templates/map.yaml", CONFIG_MAP),
            ("live/none.yaml", b""),
        ],
    )
}

#[test]
fn no_verb_panics_with_any_renderer() {
    let folder = folder();
    let sandbox = Sandbox::start(&folder);
    let helm = programs::find("helm");
    let program = helm.clone().unwrap_or_else(|| PathBuf::from("/nonexistent/helm"));
    for renderer in ["plain", "kustomization", "chart"] {
        for (verb, expect) in VERBS {
            let output = Command::new(env!("CARGO_BIN_EXE_moorline"))
                .args(verb)
                .arg(renderer)
                .current_dir(&folder.0)
                .env("KUBECONFIG", &sandbox.kubeconfig)
                .env("MOORLINE_HELM", &program)
                .output()
                .unwrap();
            let words = String::from_utf8_lossy(&output.stderr);
            let renders = renderer != "chart" || helm.is_some();
            let expect = if renders { expect } else { 1 };
            assert!(!words.contains("panicked"), "{verb:?} {renderer}: {words}");
            assert_eq!(output.status.code(), Some(expect), "{verb:?} {renderer}: {words}");
        }
    }
}
