//! The demo and the sandbox as a person starts them: the real binary, the real kubectl, a page that answers.

mod walk;

use moorline_test_support::under_load::under_load;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStderr, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

/// For what takes a moment on an idle machine.
const PATIENCE: Duration = Duration::from_secs(60);

/// From the start to a page that answers, of a program that is not optimised, beside other tests. docs/figures.md has what it takes.
const PAGE_UP: Duration = Duration::from_secs(10);

/// A verb that goes on until it is ended.
pub(crate) struct Running {
    child: Child,
    out: BufReader<ChildStdout>,
    words: BufReader<ChildStderr>,
    temporary: tempfile::TempDir,
}

impl Running {
    fn start(arguments: &[&str]) -> Self {
        Self::start_by("exec \"$0\" \"$@\"", arguments)
    }

    /// Starts it from the shell.
    fn start_by(script: &str, arguments: &[&str]) -> Self {
        let temporary = tempfile::tempdir().unwrap();
        let mut command = Command::new("sh");
        command.args(["-c", script, env!("CARGO_BIN_EXE_moorline")]);
        is_told_nothing(&mut command);
        let mut child = command
            .args(arguments)
            .env("TMPDIR", temporary.path())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let out = BufReader::new(child.stdout.take().unwrap());
        let words = BufReader::new(child.stderr.take().unwrap());
        Self { child, out, words, temporary }
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        self.out.read_line(&mut line).unwrap();
        line.trim_end().to_owned()
    }

    /// The words up to a line that holds this.
    fn words_until(&mut self, end: &str) -> String {
        let mut text = String::new();
        while !text.contains(end) {
            let mut line = String::new();
            assert_ne!(self.words.read_line(&mut line).unwrap(), 0, "it ended after: {text}");
            text.push_str(&line);
        }
        text
    }

    /// The file that the second line names.
    fn kubeconfig(&mut self) -> PathBuf {
        let line = self.line();
        let path = PathBuf::from(line.strip_prefix("export KUBECONFIG=").unwrap_or_else(|| panic!("{line}")));
        assert!(path.starts_with(self.temporary.path()), "{line}");
        path
    }

    /// Ends it as Ctrl-C does; nothing may be left.
    fn interrupt(self) {
        self.end_by("-INT");
    }

    fn signal(&self, signal: &str) {
        Command::new("kill").args([signal, &self.child.id().to_string()]).status().unwrap();
    }

    fn end_by(mut self, signal: &str) {
        self.signal(signal);
        let begun = Instant::now();
        let status = loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                break status;
            }
            assert!(begun.elapsed() < under_load(PATIENCE), "it goes on");
            std::thread::sleep(Duration::from_millis(20));
        };
        assert!(status.success(), "{status}");
        let left: Vec<_> = std::fs::read_dir(self.temporary.path()).unwrap().flatten().collect();
        assert!(left.is_empty(), "{left:?}");
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The answer to a GET on the loopback.
fn fetched(url: &str, path: &str) -> String {
    let address = url.strip_prefix("http://").unwrap();
    let mut stream = TcpStream::connect(address).unwrap();
    write!(stream, "GET {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n").unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).unwrap();
    text
}

fn kubectl(kubeconfig: &Path, arguments: &[&str]) -> Option<String> {
    let program = moorline_test_support::programs::find("kubectl")?;
    let output = moorline_test_support::programs::command(&program)
        .args(arguments)
        .env("KUBECONFIG", kubeconfig)
        .env("HOME", kubeconfig.parent().unwrap())
        .output()
        .unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    assert!(output.status.success(), "kubectl {arguments:?}: {}", text(&output.stderr));
    Some(text(&output.stdout))
}

#[test]
fn the_demo_prints_its_story_and_the_page_shows_it() {
    let begun = Instant::now();
    let mut demo = Running::start(&["demo", "--tour", "--pace", "0"]);
    let page = demo.line();
    assert!(page.starts_with("http://127.0.0.1:"), "{page}");
    let kubeconfig = demo.kubeconfig();
    let first = fetched(&page, "/");
    assert!(first.starts_with("HTTP/1.1 200 OK\r\n"), "{first}");
    println!("the page is up after {:?}", begun.elapsed());
    assert!(begun.elapsed() < under_load(PAGE_UP));

    let told = demo.words_until("End of the tour.");
    for words in [
        "15 objects of the repository are applied and healthy",
        "later the Deployment web runs \"nginx:1.31\"",
        "later web has 3 replicas again",
        "Nothing is deleted: that exceeds the prune budget",
        "The commit is reverted. Nothing had to be recreated.",
        "apps/web.yaml:11:16: found text that is not YAML",
        "later it is applied.",
    ] {
        assert!(told.contains(words), "{words:?} is not in: {told}");
    }
    let shop = fetched(&page, "/syncs/moorline/shop/timeline");
    for words in ["kubectl-scale", "spec.replicas"] {
        assert!(shop.contains(words), "{words} is not on the page");
    }
    let ready = ["wait", "--for=condition=Ready", "syncs", "--all", "-n", "moorline", "--timeout=30s"];
    if let Some(told) = kubectl(&kubeconfig, &ready) {
        assert_eq!(told.matches("condition met").count(), 2, "{told}");
        let events = kubectl(&kubeconfig, &["get", "events", "-n", "moorline"]).unwrap();
        assert!(events.contains("spec.replicas changed by kubectl-scale"), "{events}");
    }
    demo.interrupt();
}

#[test]
fn a_repository_of_ones_own_is_followed() {
    let root = tempfile::tempdir().unwrap();
    let git = |arguments: &[&str]| {
        let identity = ["-c", "user.name=a", "-c", "user.email=a@example.com"];
        let done =
            Command::new("git").args(identity).args(arguments).current_dir(root.path()).output().unwrap();
        assert!(done.status.success(), "{done:?}");
    };
    git(&["init", "-q", "."]);
    std::fs::create_dir(root.path().join("app")).unwrap();
    std::fs::copy("examples/quickstart/service.yaml", root.path().join("app/service.yaml")).unwrap();
    git(&["add", "-A"]);
    git(&["commit", "-q", "-m", "one"]);
    let url = root.path().to_str().unwrap();
    // All of it, or a folder; it ends with its terminal as it does by Ctrl-C.
    let hangup = if outlives_its_terminal() { "-TERM" } else { "-HUP" };
    for (folder, end) in [(&[][..], hangup), (&["--path", "app"][..], "-INT")] {
        let mut demo = Running::start(&[&["demo", "--url", url], folder].concat());
        let page = demo.line();
        let begun = Instant::now();
        while !fetched(&page, "/api/v1/syncs/moorline/demo/objects/-/Service/demo/nginx")
            .starts_with("HTTP/1.1 200")
        {
            assert!(
                begun.elapsed() < under_load(PATIENCE),
                "{folder:?}: {}",
                fetched(&page, "/api/v1/syncs")
            );
            std::thread::sleep(Duration::from_millis(50));
        }
        demo.end_by(end);
    }
}

/// True if this test was started by `nohup`, and with it whatever it starts.
fn outlives_its_terminal() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    // The first of the signals.
    ignored.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).is_some_and(|mask| mask & 1 == 1)
}

/// As `nohup` starts it.
#[test]
fn what_is_started_to_outlive_its_terminal_does() {
    let mut sandbox = Running::start_by("trap '' HUP; exec \"$0\" \"$@\"", &["sandbox"]);
    let _ = sandbox.kubeconfig();
    sandbox.signal("-HUP");
    std::thread::sleep(Duration::from_millis(300));
    assert!(sandbox.child.try_wait().unwrap().is_none(), "it goes on");
    sandbox.interrupt();
}

#[test]
fn the_sandbox_serves_until_it_is_ended() {
    let mut sandbox = Running::start(&["sandbox", "--ready-after", "0s"]);
    let kubeconfig = sandbox.kubeconfig();
    if let Some(version) = kubectl(&kubeconfig, &["version", "-o", "json"]) {
        assert!(version.contains("v1.36"), "{version}");
        kubectl(&kubeconfig, &["apply", "--server-side", "-f", "examples/quickstart"]).unwrap();
        let waited =
            kubectl(&kubeconfig, &["wait", "--for=condition=Available", "deployment/nginx", "--timeout=20s"]);
        assert!(waited.unwrap().contains("condition met"));
    }
    sandbox.interrupt();
}

#[test]
fn a_daemon_has_an_api_server_of_its_own() {
    let root = tempfile::tempdir().unwrap();
    let data = root.path().join("data");
    let mut daemon = Running::start(&[
        "run",
        "--sandbox",
        "--data-dir",
        data.to_str().unwrap(),
        "--listen",
        "127.0.0.1:0",
        "--page",
        "",
    ]);
    let kubeconfig = daemon.kubeconfig();
    daemon.words_until("acquired the Lease");
    if let Some(kinds) = kubectl(&kubeconfig, &["api-resources", "--api-group=moorline.dev", "--no-headers"])
    {
        assert!(kinds.starts_with("syncs "), "{kinds}");
    }
    daemon.interrupt();
}

/// Removes the variables that report to tests: they are no settings of a daemon.
fn is_told_nothing(command: &mut Command) {
    let told = std::env::vars_os().filter(|(name, _)| name.to_string_lossy().starts_with("MOORLINE_"));
    for (name, _) in told {
        command.env_remove(name);
    }
}

/// Returns the binary's message about its failure, which must come at once.
fn fails(arguments: &[&str]) -> String {
    let begun = Instant::now();
    let mut command = Command::new(env!("CARGO_BIN_EXE_moorline"));
    is_told_nothing(&mut command);
    let output = command.args(arguments).output().unwrap();
    assert!(
        !output.status.success() && begun.elapsed() < under_load(PAGE_UP),
        "{arguments:?}: {:?}",
        begun.elapsed()
    );
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn a_folder_without_a_repository_is_refused_at_once() {
    let root = tempfile::tempdir().unwrap();
    let empty = root.path().to_str().unwrap();
    let data = root.path().join("data");
    let sandbox =
        ["--sandbox", "--data-dir", data.to_str().unwrap(), "--listen", "127.0.0.1:0", "--page", ""];
    for verb in [&["demo"][..], &[&["run"], &sandbox[..]].concat()] {
        for (url, expect) in [
            ("/nope", "--url: there is no folder /nope".to_owned()),
            (empty, format!("--url: {empty} is not a Git repository; `git init` creates one")),
        ] {
            let told = fails(&[verb, &["--url", url]].concat());
            assert!(told.contains(&expect), "{verb:?}: {told}");
        }
    }
}

#[test]
fn the_plan_and_the_rights_of_a_sync_of_the_demo_are_shown() {
    let mut demo = Running::start(&["demo"]);
    demo.line();
    let kubeconfig = demo.kubeconfig();
    let moorline = |arguments: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_moorline"));
        let output = command.args(arguments).env("KUBECONFIG", &kubeconfig).output().unwrap();
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        (output.status.code(), text(&output.stdout), text(&output.stderr))
    };
    let begun = Instant::now();
    let (code, plan, words) = loop {
        let (code, plan, words) = moorline(&["plan", "--sync", "shop", "-n", "moorline"]);
        // The Sync may not have begun.
        if words.contains("note: this is the plan for ") || begun.elapsed() > PATIENCE {
            break (code, plan, words);
        }
        std::thread::sleep(Duration::from_millis(200));
    };
    assert!(words.contains("note: this is the plan for "), "{code:?} {plan} {words}");
    let (code, roles, words) = moorline(&["rbac", "--sync", "shop", "-n", "moorline"]);
    assert!(
        code == Some(0) && roles.contains("kind: Role") && roles.contains("deployments"),
        "{roles} {words}"
    );
    demo.interrupt();
}
