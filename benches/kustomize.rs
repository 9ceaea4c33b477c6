//! Cost of a kustomization: a small overlay in this process (`cargo bench --bench kustomize`). With
//! the real tool on PATH and a folder in `MOORLINE_KUSTOMIZE_CORPUS`, it also compares both as
//! whole processes: CPU time and peak memory, as the kernel counts them.
//!
//! Limits: a small overlay takes less than 1 ms; as many renders as there are cores take little
//! longer than one; for the slowest folder, at least ten times less CPU time than the tool, and
//! four times less memory.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use moorline::kustomize::build;
use moorline::tree::FileTree;

const BAR: Duration = Duration::from_millis(1);
const ROUNDS: u32 = 2_000;
/// Number of builds of a folder by each program; the fastest counts.
const RUNS: usize = 3;

fn main() {
    // Argument that `cargo test` passes to a benchmark without a harness.
    if std::env::args().any(|argument| argument == "--list") {
        return;
    }
    small();
    together();
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
    // The tables are loaded once in a process.
    let first = Instant::now();
    assert_eq!(build(&tree, "prod").map(|built| built.objects.len()), Ok(3));
    let first = first.elapsed();
    let begun = Instant::now();
    for _ in 0..ROUNDS {
        drop(std::hint::black_box(build(&tree, "prod")));
    }
    let each = begun.elapsed() / ROUNDS;
    println!("a small overlay: {each:?} (the first in a process: {first:?}); the bar is {BAR:?}");
    assert!(each < BAR, "the bar is {BAR:?}");
}

/// Minimal share of the ideal speed of `n` cores: they share memory and its bus.
const SHARE: f64 = 0.7;
/// Number of overlays that each thread builds.
const BUILDS: u32 = 40;

/// The same overlay on one core and on all of them: the renders do not wait for each other.
fn together() {
    let tree = large();
    let run = |threads: usize| {
        let begun = Instant::now();
        std::thread::scope(|scope| {
            for _ in 0..threads {
                scope.spawn(|| {
                    (0..BUILDS).for_each(|_| drop(std::hint::black_box(build(&tree, "prod"))));
                });
            }
        });
        begun.elapsed().as_secs_f64()
    };
    assert_eq!(build(&tree, "prod").map(|built| built.objects.len()), Ok(200));
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    // Each round measures both, one after the other, and the best of each counts.
    let rounds: Vec<(f64, f64)> = (0..RUNS).map(|_| (run(1), run(cores))).collect();
    let best = |of: fn(&(f64, f64)) -> f64| rounds.iter().map(of).fold(f64::INFINITY, f64::min);
    let (one, all) = (best(|it| it.0), best(|it| it.1));
    let times = cores as f64 * one / all;
    let each = Duration::from_secs_f64(one / f64::from(BUILDS));
    println!("200 objects: {each:?}; {cores} at a time on {cores} cores do {times:.2} times as much as one");
    assert!(times >= SHARE * cores as f64, "the bar is {:.1}", SHARE * cores as f64);
}

/// An overlay over 200 Deployments.
fn large() -> FileTree {
    let mut files = vec![
        ("base/kustomization.yaml".to_owned(), "resources: [all.yaml]\n".to_owned()),
        (
            "prod/kustomization.yaml".to_owned(),
            "namespace: shop\nnamePrefix: prod-\nresources: [../base]\ncommonLabels: {stage: prod}\npatches:\n- target: {kind: Deployment}\n  patch: |-\n    - {op: add, path: /spec/replicas, value: 3}\n".to_owned(),
        ),
    ];
    let deployment = |at: usize| {
        format!(
            "---\napiVersion: apps/v1\nkind: Deployment\nmetadata: {{name: web-{at}}}\nspec:\n  selector: {{matchLabels: {{app: web-{at}}}}}\n  template:\n    metadata: {{labels: {{app: web-{at}}}}}\n    spec:\n      containers: [{{name: web, image: example.com/web, ports: [{{containerPort: 80}}]}}]\n"
        )
    };
    files.push(("base/all.yaml".to_owned(), (0..200).map(deployment).collect()));
    FileTree::from_texts(files.iter().map(|(path, text)| (path.as_str(), text.as_str())))
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
    assert!(ratio >= 10.0, "the bar is 10");
    let (ours, theirs) =
        (most_memory(env!("CARGO_BIN_EXE_moorline"), "render", folder), most_memory(&tool, "build", folder));
    let ratio = theirs as f64 / ours as f64;
    println!("{}: {ours} KiB here, {theirs} KiB by {tool}: {ratio:.1} times less", folder.display());
    assert!(ratio >= 4.0, "the bar is 4");
}

/// Peak memory of a program while it builds a folder, in KiB: the kernel keeps the peak, which is
/// polled until the end.
fn most_memory(program: &str, verb: &str, folder: &Path) -> u64 {
    let mut command = Command::new(program);
    command.arg(verb).arg(folder).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let mut child = command.spawn().expect("the program");
    let status = format!("/proc/{}/status", child.id());
    let mut most = 0;
    while child.try_wait().expect("a child").is_none() {
        let text = std::fs::read_to_string(&status).unwrap_or_default();
        let peak = text.lines().find_map(|line| line.strip_prefix("VmHWM:")?.trim().strip_suffix(" kB"));
        most = most.max(peak.and_then(|peak| peak.parse().ok()).unwrap_or(0));
        std::thread::sleep(Duration::from_micros(200));
    }
    most
}
