//! What a kustomization costs: a small overlay in process (`cargo bench --bench kustomize`), and, with the real tool on the PATH and a
//! folder of one's own in `MOORLINE_KUSTOMIZE_CORPUS`, both as whole processes side by side: user and system time of each, as the
//! kernel counts it.
//!
//! The bars: a small overlay takes less than 1 ms; the slowest folder at least ten times less than the tool.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use moorline::render::kustomization;
use moorline::tree::FileTree;

const BAR: Duration = Duration::from_millis(1);
const ROUNDS: u32 = 2_000;
/// How often each program builds a folder; the fastest counts.
const RUNS: usize = 3;

fn main() {
    // What `cargo test` asks of a benchmark without a harness.
    if std::env::args().any(|argument| argument == "--list") {
        return;
    }
    small();
    if let Some(folder) = std::env::var_os("MOORLINE_KUSTOMIZE_CORPUS") {
        side_by_side(Path::new(&folder));
    }
}

fn small() {
    let tree = FileTree::from_texts([
        ("base/kustomization.yaml", "resources: [deployment.yaml, service.yaml]\n"),
        (
            "base/deployment.yaml",
            "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web}\nspec:\n  selector: {matchLabels: {app: web}}\n  template:\n    metadata: {labels: {app: web}}\n    spec:\n      containers:\n      - name: web\n        image: registry.example.com/web:1.0\n        envFrom: [{configMapRef: {name: settings}}]\n",
        ),
        (
            "base/service.yaml",
            "apiVersion: v1\nkind: Service\nmetadata: {name: web}\nspec: {selector: {app: web}, ports: [{port: 80}]}\n",
        ),
        (
            "prod/kustomization.yaml",
            "namePrefix: prod-\nnamespace: shop\nresources: [../base]\nlabels:\n- pairs: {stage: prod}\nconfigMapGenerator:\n- {name: settings, literals: [level=info]}\nimages:\n- {name: registry.example.com/web, newTag: '1.1'}\npatches:\n- patch: |-\n    apiVersion: apps/v1\n    kind: Deployment\n    metadata: {name: web}\n    spec: {replicas: 3}\n",
        ),
    ]);
    // The tables are read once in a process.
    let first = Instant::now();
    assert_eq!(kustomization(&tree, "prod").map(|objects| objects.len()), Ok(3));
    let first = first.elapsed();
    let begun = Instant::now();
    for _ in 0..ROUNDS {
        drop(std::hint::black_box(kustomization(&tree, "prod")));
    }
    let each = begun.elapsed() / ROUNDS;
    println!("a small overlay: {each:?} (the first in a process: {first:?}); the bar is {BAR:?}");
    assert!(each < BAR, "the bar is {BAR:?}");
}

fn side_by_side(folder: &Path) {
    let tool = std::env::var("MOORLINE_KUSTOMIZE").unwrap_or_else(|_| "kustomize".to_owned());
    let cpu = |program: &str, arguments: &[&str]| {
        let line = "t() { set -- $(cat /proc/$$/stat); echo $(( ${16} + ${17} )); }; \"$@\" >/dev/null 2>&1 || exit 1; t";
        let run = || {
            let mut command = Command::new("sh");
            command.args(["-c", line, "sh", program]).args(arguments).arg(folder);
            let output = command.stdin(Stdio::null()).output().expect("a shell");
            assert!(output.status.success(), "{program} refuses {}", folder.display());
            let ticks: u64 = String::from_utf8_lossy(&output.stdout).trim().parse().expect("ticks");
            Duration::from_millis(ticks * 10)
        };
        (0..RUNS).map(|_| run()).min().unwrap_or_default()
    };
    let (ours, theirs) = (cpu(env!("CARGO_BIN_EXE_moorline"), &["render"]), cpu(&tool, &["build"]));
    let ratio = theirs.as_secs_f64() / ours.max(Duration::from_millis(10)).as_secs_f64();
    println!("{}: {ours:?} here, {theirs:?} by {tool}: {ratio:.1} times less", folder.display());
}
