//! Time to render files that SOPS encrypted (`cargo bench --bench decrypted`): 200 Secrets for an
//! age key, no two with the same stanza, by `moorline render --decrypt` as a whole process.
//! `MOORLINE_STATIC_BINARY=FILE` measures another binary.
//!
//! Limit: less than 0.3 s.

use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, Instant};

use moorline_test_support::sops::{AGE_KEYS, encrypt_yaml};
use serde_json::json;

const BAR: Duration = Duration::from_millis(300);
const FILES: usize = 200;
const RUNS: usize = 11;

fn main() {
    // Argument that `cargo test` passes to a benchmark without a harness.
    if std::env::args().any(|argument| argument == "--list") {
        return;
    }
    let root = tempfile::tempdir().expect("a folder");
    let (key, folder) = (root.path().join("key.txt"), root.path().join("secrets"));
    std::fs::create_dir(&folder).expect("a folder");
    std::fs::write(&key, AGE_KEYS[0].identity).expect("a key");
    for at in 0..FILES {
        let secret = json!({
            "apiVersion": "v1", "kind": "Secret", "metadata": {"name": format!("s-{at}")},
            "stringData": {"user": "shop", "password": format!("value-{at}-"), "url": "https://example.com/shop"},
        });
        let text = encrypt_yaml(&secret, &["stringData"], &AGE_KEYS[0].metadata_of_file(at));
        std::fs::write(folder.join(format!("{at}.yaml")), text).expect("a file");
    }
    let binary = std::env::var_os("MOORLINE_STATIC_BINARY")
        .map_or_else(|| PathBuf::from(env!("CARGO_BIN_EXE_moorline")), PathBuf::from);
    let mut times: Vec<Duration> = (0..RUNS)
        .map(|_| {
            let mut render = Command::new(&binary);
            render.arg("render").arg(&folder).arg("--decrypt").env("SOPS_AGE_KEY_FILE", &key);
            let begun = Instant::now();
            let output = render.output().expect("moorline starts");
            let took = begun.elapsed();
            let shown = String::from_utf8_lossy(&output.stdout);
            let all = (0..FILES).all(|at| shown.contains(&format!("value-{at}-")));
            assert!(output.status.success() && all, "{}", String::from_utf8_lossy(&output.stderr));
            took
        })
        .collect();
    times.sort_unstable();
    let (median, most) = (times[RUNS / 2], times[RUNS - 1]);
    println!("{FILES} encrypted files: {median:?}, {most:?} at most; the bar is {BAR:?}");
    assert!(median < BAR, "the bar is {BAR:?}");
}
