//! A sync of up to 100,000 objects: the daemon in one process, `moorline sandbox` in another.
//! `cargo bench --bench large` prints a table: the time of the first sync, in total and for each
//! object, and the peak memory of both processes.
//!
//! Then the daemon is restarted after manual edits of ten of the 100,000 objects; see
//! `large/restart.rs`.
//!
//! Limits: 100,000 objects within 60 s, with the daemon below 300 MB and the sandbox below 1 GB;
//! the time for an object among 100,000 is at most twice that among 1,000.

#[path = "large/restart.rs"]
mod restart;

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use serde_json::Value;

const SIZES: [usize; 3] = [1_000, 10_000, 100_000];
/// Number of objects in a file.
const IN_A_FILE: usize = 100;
/// Timeout for the first sync.
const PATIENCE: Duration = Duration::from_secs(600);

fn main() {
    println!("| objects | first sync | for each object | daemon, at most | sandbox, at most |");
    println!("|---|---|---|---|---|");
    let rows: Vec<Row> = SIZES.iter().map(|count| measure(*count)).collect();
    let (least, most) = (&rows[0], &rows[SIZES.len() - 1]);
    for (what, is_met) in [
        ("100,000 objects within 60 s", most.took < Duration::from_secs(60)),
        ("the daemon below 300 MB", most.daemon < 300.0),
        ("the sandbox below 1 GB", most.sandbox < 1000.0),
        ("an object costs no more than twice as much among many", most.each() < 2.0 * least.each()),
    ] {
        say(what, is_met);
    }
}

fn say(what: &str, is_met: bool) {
    println!("{} {what}", if is_met { "met:" } else { "NOT met:" });
}

struct Row {
    count: usize,
    took: Duration,
    daemon: f64,
    sandbox: f64,
}

impl Row {
    /// Microseconds for each object.
    fn each(&self) -> f64 {
        self.took.as_secs_f64() * 1e6 / self.count as f64
    }
}

/// A process that is killed on drop.
struct Ends(Child);

impl Drop for Ends {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn measure(count: usize) -> Row {
    let root = tempfile::tempdir().expect("a folder");
    let repository = root.path().join("repository");
    commit(&repository, count);
    let mut sandbox = moorline(&["sandbox", "--seed", "1"], root.path(), None);
    let mut line = String::new();
    let out = sandbox.0.stdout.take().expect("a pipe");
    BufReader::new(out).read_line(&mut line).expect("a line");
    let kubeconfig = line.trim().strip_prefix("export KUBECONFIG=").expect("a kubeconfig").to_owned();
    let config: Value = serde_json::from_slice(&fs::read(&kubeconfig).expect("it is there")).expect("JSON");
    let server = config["clusters"][0]["cluster"]["server"].as_str().expect("a server");
    let server = server.strip_prefix("http://").expect("plain HTTP").to_owned();

    let begun = Instant::now();
    let data = root.path().join("data");
    let listen = free_address();
    let arguments = [
        "run",
        "--url",
        repository.to_str().expect("a path"),
        "--leader-election=false",
        "--listen",
        &listen,
        "--page",
        "",
        "--log-level",
        "error",
        "--data-dir",
        data.to_str().expect("a path"),
    ];
    let daemon = moorline(&arguments, root.path(), Some(&kubeconfig));
    while there(&server) < count {
        assert!(begun.elapsed() < PATIENCE, "{} of {count} after {PATIENCE:?}", there(&server));
        sleep(Duration::from_millis(20));
    }
    let took = begun.elapsed();
    // Work after the sync takes memory, too.
    sleep(Duration::from_secs(3));
    let row = Row { count, took, daemon: peak(&daemon), sandbox: peak(&sandbox) };
    println!(
        "| {count} | {:.2} s | {:.0} µs | {:.0} MB | {:.0} MB |",
        took.as_secs_f64(),
        row.each(),
        row.daemon,
        row.sandbox
    );
    if count == SIZES[SIZES.len() - 1] {
        drop(daemon);
        let start = || moorline(&arguments, root.path(), Some(&kubeconfig));
        restart::measure(count, (&server, &listen), start);
    }
    row
}

/// Returns an address that nobody listens on.
fn free_address() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    listener.local_addr().expect("an address").to_string()
}

fn moorline(arguments: &[&str], temporary: &Path, kubeconfig: Option<&str>) -> Ends {
    let mut command = Command::new(
        std::env::var("BENCHED_PROGRAM").unwrap_or_else(|_| env!("CARGO_BIN_EXE_moorline").to_owned()),
    );
    command.args(arguments).env("TMPDIR", temporary).stdin(Stdio::null()).stdout(Stdio::piped());
    if let Some(kubeconfig) = kubeconfig {
        command.env("KUBECONFIG", kubeconfig);
    }
    Ends(command.spawn().expect("it starts"))
}

/// Creates a repository of small objects.
fn commit(repository: &Path, count: usize) {
    fs::create_dir(repository).expect("a folder");
    for first in (0..count).step_by(IN_A_FILE) {
        let mut text = String::new();
        for number in first..(first + IN_A_FILE).min(count) {
            text.push_str(&format!(
                "---\napiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: item-{number:06}\n  labels:\n    app: many\n\
                 data:\n  number: \"{number}\"\n  text: some words that a configuration may hold\n"
            ));
        }
        fs::write(repository.join(format!("{first:06}.yaml")), text).expect("a file");
    }
    for arguments in [&["init", "-q"][..], &["add", "-A"], &["commit", "-q", "-m", "many"]] {
        let identity = ["-c", "user.name=bench", "-c", "user.email=bench@example.com"];
        let done = Command::new("git").args(identity).args(arguments).current_dir(repository).status();
        assert!(done.expect("git starts").success());
    }
}

/// Number of the objects that the server has.
fn there(server: &str) -> usize {
    let body = ask(server, "GET", "/api/v1/namespaces/default/configmaps?limit=1", "").expect("it answers");
    let list: Value = serde_json::from_str(&body).expect("JSON");
    let shown = list["items"].as_array().map_or(0, Vec::len);
    shown + list["metadata"]["remainingItemCount"].as_u64().unwrap_or(0) as usize
}

/// Sends a request; returns the body of the answer, or none if nobody answers.
fn ask(server: &str, method: &str, path: &str, body: &str) -> Option<String> {
    let mut stream = TcpStream::connect(server).ok()?;
    let kind = if method == "PATCH" { "application/merge-patch+json" } else { "application/json" };
    let length = body.len();
    write!(
        stream,
        "{method} {path} HTTP/1.1\r\nHost: {server}\r\nConnection: close\r\nContent-Type: {kind}\r\nContent-Length: {length}\r\n\r\n{body}"
    )
    .ok()?;
    let mut text = String::new();
    stream.read_to_string(&mut text).ok()?;
    Some(text.split_once("\r\n\r\n")?.1.to_owned())
}

/// Peak memory of a process, in millions of bytes.
fn peak(process: &Ends) -> f64 {
    let status = fs::read_to_string(format!("/proc/{}/status", process.0.id())).expect("it runs");
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).expect("Linux says so");
    line.trim().trim_end_matches(" kB").parse::<f64>().expect("a number") * 1024.0 / 1e6
}
