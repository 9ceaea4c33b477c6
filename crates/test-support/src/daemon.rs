//! Runs the real binary as a daemon against the control plane, and waits for results.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::control_plane::ControlPlane;
use super::credentials::MOORLINE;
use super::places;
use super::reaper::Reaper;
use super::running::Running;
use super::under_load::under_load;

/// Timeout for operations that take a moment on an idle machine. Only a failing test waits for it.
pub const DEADLINE: Duration = Duration::from_secs(120);

/// The default for allowed hosts, and this machine.
pub const LOOPBACK: &str = "*,127.0.0.0/8,::1";

/// A running daemon; killed on drop.
pub struct Daemon {
    pub running: Running,
}

impl Daemon {
    /// Starts `moorline run` with these arguments; `folder` takes its data and its log.
    pub fn start(plane: &ControlPlane, folder: &Path, arguments: &[&str]) -> Self {
        Self::start_as(plane, MOORLINE, folder, arguments)
    }

    /// Same as [`Self::start`], as another user.
    pub fn start_as(plane: &ControlPlane, user: &str, folder: &Path, arguments: &[&str]) -> Self {
        Self::with_kubeconfig(&plane.reaper, &plane.kubeconfig(user), folder, arguments)
    }

    pub fn with_kubeconfig(
        reaper: &Arc<Reaper>,
        kubeconfig: &str,
        folder: &Path,
        arguments: &[&str],
    ) -> Self {
        Self::with_environment(reaper, kubeconfig, folder, arguments, &[])
    }

    /// Starts `moorline run` with a kubeconfig, arguments and environment variables.
    pub fn with_environment(
        reaper: &Arc<Reaper>,
        kubeconfig: &str,
        folder: &Path,
        arguments: &[&str],
        variables: &[(&str, &Path)],
    ) -> Self {
        let own = places::moorline();
        Self::with_program(own, reaper, kubeconfig, folder, arguments, variables)
    }

    /// Starts another binary, such as an older release, as the usual user of the daemon.
    pub fn start_program(program: &Path, plane: &ControlPlane, folder: &Path, arguments: &[&str]) -> Self {
        Self::with_program(program, &plane.reaper, &plane.kubeconfig(MOORLINE), folder, arguments, &[])
    }

    fn with_program(
        program: &Path,
        reaper: &Arc<Reaper>,
        kubeconfig: &str,
        folder: &Path,
        arguments: &[&str],
        variables: &[(&str, &Path)],
    ) -> Self {
        let config = folder.join("kubeconfig");
        std::fs::write(&config, kubeconfig).expect("a kubeconfig");
        let log = folder.join("daemon.log");
        let mut command = Command::new(program);
        // Variables of the tests, such as the path of helm, would be rejected as unknown settings.
        let ours = std::env::vars_os().map(|(name, _)| name);
        ours.filter(|name| name.to_string_lossy().starts_with("MOORLINE_")).for_each(|name| {
            command.env_remove(name);
        });
        command
            .arg("run")
            .args(arguments)
            .args(["--listen", "127.0.0.1:0"])
            // The servers of the tests are on this machine, which is not allowed by default.
            .args(if arguments.contains(&"--allowed-hosts") || !knows_allowed_hosts(program) {
                &[][..]
            } else {
                &["--allowed-hosts", LOOPBACK]
            })
            .args(if arguments.contains(&"--page") { &[][..] } else { &["--page", ""] })
            .arg("--data-dir")
            .arg(folder.join("data"))
            .env("KUBECONFIG", &config)
            .envs(variables.iter().copied());
        Self { running: Running::start(&mut command, &log, reaper) }
    }

    /// Sends a signal, by its name.
    pub fn signal(&self, name: &str) {
        let sent =
            Command::new("kill").arg(format!("-{name}")).arg(self.running.child.id().to_string()).status();
        assert!(sent.is_ok_and(|status| status.success()), "kill -{name}");
    }

    /// Sends SIGTERM and returns the time until the daemon ended.
    pub fn terminate(&mut self) -> Duration {
        let begun = Instant::now();
        self.signal("TERM");
        self.running.child.wait().expect("the daemon ends");
        begun.elapsed()
    }

    pub fn log(&self) -> String {
        self.running.log()
    }

    /// Address on which it listens, once it does.
    pub fn address(&self) -> Option<String> {
        let log = self.log();
        Some(log.rsplit_once("listening address=")?.1.split_whitespace().next()?.to_owned())
    }

    /// Address of its status page, once there is one.
    pub fn page(&self) -> Option<String> {
        let log = self.log();
        let (_, rest) = log.rsplit_once("the status page is at http://")?;
        Some(rest.split(['/', ' ', '"']).next()?.to_owned())
    }

    /// Response to a GET request, including the head; `None` if the request fails.
    pub fn get(&self, path: &str) -> Option<String> {
        let mut stream = TcpStream::connect(self.address()?).ok()?;
        stream.set_read_timeout(Some(Duration::from_secs(10))).ok()?;
        write!(stream, "GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n").ok()?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer).ok()?;
        Some(answer)
    }
}

/// Installs the definition of Syncs in the API server.
pub async fn install(plane: &ControlPlane) {
    let definition = moorline_api::definition().expect("the definition");
    let request = http::Request::patch(
        "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/syncs.moorline.dev?fieldManager=tests&force=true",
    )
    .header("Content-Type", "application/apply-patch+yaml")
    .body(definition.to_string().into_bytes())
    .expect("a literal request");
    let admin = plane.client(super::credentials::ADMIN).await;
    admin.request_text(request).await.expect("the definition is accepted");
    until("Syncs are served", async || {
        let request = http::Request::get("/apis/moorline.dev/v1alpha1/syncs").body(Vec::new()).ok()?;
        admin.request_text(request).await.ok()
    })
    .await;
}

/// Polls until the result is `Some`.
pub async fn until<T>(what: &str, ask: impl AsyncFnMut() -> Option<T>) -> T {
    until_within(DEADLINE, what, ask).await
}

/// Same as [`until`], with another time limit for an idle machine.
pub async fn until_within<T>(patience: Duration, what: &str, mut ask: impl AsyncFnMut() -> Option<T>) -> T {
    let begun = Instant::now();
    loop {
        if let Some(answer) = ask().await {
            return answer;
        }
        let waited = begun.elapsed();
        assert!(waited < patience || waited < under_load(patience), "not within {waited:?}: {what}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// False for an older binary without this setting, which may connect to this machine by default.
fn knows_allowed_hosts(program: &Path) -> bool {
    if program == places::moorline() {
        return true;
    }
    let help = Command::new(program).args(["run", "--help"]).output().expect("the help of the binary");
    String::from_utf8_lossy(&help.stdout).contains("--allowed-hosts")
}
