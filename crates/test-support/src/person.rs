//! A person who runs the program beside the daemon.

use std::fs::File;
use std::os::unix::fs::symlink;
use std::os::unix::process::ExitStatusExt as _;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use super::credentials::ADMIN;
use super::places;
use super::programs::{command, find};
use super::running::Running;
use super::scene::Scene;

/// Output and exit code of a command.
pub struct CommandOutput {
    pub code: i32,
    pub data: String,
    pub words: String,
}

/// Runs `moorline` in the namespace of the scene.
pub fn moorline(scene: &Scene, arguments: &[&str]) -> CommandOutput {
    said(scene, Command::new(places::moorline()).args(arguments).args(["-n", &scene.namespace]))
}

/// Runs `moorline` on a terminal, which shows both output streams as one; `None` without a program
/// that creates a terminal.
pub fn on_terminal(scene: &Scene, arguments: &[&str]) -> Option<CommandOutput> {
    let program = find("script")?;
    let moorline = places::moorline().to_str().expect("a path in UTF-8");
    let words = [&[moorline], arguments, &["-n", &scene.namespace]].concat();
    let line: Vec<String> = words.iter().map(|word| format!("'{word}'")).collect();
    Some(said(scene, command(&program).args(["-qec", &line.join(" "), "/dev/null"]).stdin(Stdio::null())))
}

/// Runs `moorline` as a plugin of the real kubectl; `None` without kubectl.
pub fn by_kubectl(scene: &Scene, arguments: &[&str]) -> Option<CommandOutput> {
    let program = find("kubectl")?;
    let folder = scene.root.path().join("plugins");
    std::fs::create_dir_all(&folder).unwrap();
    let link = folder.join("kubectl-moorline");
    if !link.exists() {
        symlink(places::moorline(), link).unwrap();
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    let path = std::env::join_paths([folder].into_iter().chain(std::env::split_paths(&path))).unwrap();
    let mut program = command(&program);
    program.arg("moorline").args(arguments).args(["-n", &scene.namespace]).env("PATH", path);
    Some(said(scene, &mut program))
}

/// A command that runs until it is ended.
pub struct RunningCommand {
    running: Running,
    printed: PathBuf,
}

impl RunningCommand {
    /// Starts `moorline` in the namespace of the scene.
    pub fn start(scene: &Scene, arguments: &[&str]) -> Self {
        let printed = scene.root.path().join("printed");
        let mut program = Command::new(places::moorline());
        program.args(arguments).args(["-n", &scene.namespace]).env("KUBECONFIG", kubeconfig(scene));
        let (data, log) = (File::create(&printed).unwrap(), scene.root.path().join("going.log"));
        let running = Running::with_output(&mut program, data.into(), &log, &scene.plane.reaper);
        Self { running, printed }
    }

    /// Returns the complete lines, with single spaces.
    pub fn lines(&self) -> Vec<String> {
        let text = std::fs::read_to_string(&self.printed).unwrap();
        let lines = text.split_inclusive('\n').filter(|line| line.ends_with('\n'));
        lines.map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")).collect()
    }

    /// Returns its exit code, if it has ended without a signal.
    pub fn code(&mut self) -> Option<i32> {
        self.running.child.try_wait().unwrap().and_then(|status| status.code())
    }

    /// Waits for its end, and returns the exit code.
    pub async fn ended(&mut self) -> Option<i32> {
        super::daemon::until("the command ends", async || self.running.child.try_wait().unwrap()).await.code()
    }

    /// Sends SIGTERM, and returns the signal that ended it. SIGINT would have no effect: a shell
    /// makes its background processes ignore it, and their children inherit that.
    pub fn terminate(mut self) -> Option<i32> {
        let process = self.running.child.id().to_string();
        let sent = Command::new("kill").args(["-TERM", &process]).status().unwrap();
        assert!(sent.success(), "it had ended by itself: {}", self.running.log());
        self.running.child.wait().unwrap().signal()
    }
}

fn kubeconfig(scene: &Scene) -> PathBuf {
    let place = scene.root.path().join("kubeconfig-of-a-person");
    std::fs::write(&place, scene.plane.kubeconfig(ADMIN)).unwrap();
    place
}

fn said(scene: &Scene, program: &mut Command) -> CommandOutput {
    let output = program.env("KUBECONFIG", kubeconfig(scene)).output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    CommandOutput {
        code: output.status.code().unwrap(),
        data: text(output.stdout),
        words: text(output.stderr),
    }
}
