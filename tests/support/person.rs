//! A person who runs the program beside the daemon.

use std::fs::File;
use std::os::unix::fs::symlink;
use std::os::unix::process::ExitStatusExt as _;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use super::credentials::ADMIN;
use super::programs::{command, find};
use super::running::Running;
use super::scene::Scene;

/// Output and exit code of a command.
pub(crate) struct CommandOutput {
    pub(crate) code: i32,
    pub(crate) data: String,
    pub(crate) words: String,
}

/// Runs `moorline` in the namespace of the scene.
pub(crate) fn moorline(scene: &Scene, arguments: &[&str]) -> CommandOutput {
    said(scene, Command::new(env!("CARGO_BIN_EXE_moorline")).args(arguments).args(["-n", &scene.namespace]))
}

/// Same, on a terminal, where all output is data; `None` without a program that creates a terminal.
pub(crate) fn on_terminal(scene: &Scene, arguments: &[&str]) -> Option<CommandOutput> {
    let program = find("script")?;
    let words = [&[env!("CARGO_BIN_EXE_moorline")], arguments, &["-n", &scene.namespace]].concat();
    let line: Vec<String> = words.iter().map(|word| format!("'{word}'")).collect();
    Some(said(scene, command(&program).args(["-qec", &line.join(" "), "/dev/null"]).stdin(Stdio::null())))
}

/// Same, as a plugin of the real kubectl; `None` without kubectl.
pub(crate) fn by_kubectl(scene: &Scene, arguments: &[&str]) -> Option<CommandOutput> {
    let program = find("kubectl")?;
    let folder = scene.root.path().join("plugins");
    std::fs::create_dir_all(&folder).unwrap();
    let link = folder.join("kubectl-moorline");
    if !link.exists() {
        symlink(env!("CARGO_BIN_EXE_moorline"), link).unwrap();
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    let path = std::env::join_paths([folder].into_iter().chain(std::env::split_paths(&path))).unwrap();
    let mut program = command(&program);
    program.arg("moorline").args(arguments).args(["-n", &scene.namespace]).env("PATH", path);
    Some(said(scene, &mut program))
}

/// A command that runs until it is ended.
pub(crate) struct RunningCommand {
    running: Running,
    printed: PathBuf,
}

impl RunningCommand {
    /// Starts `moorline` in the namespace of the scene.
    pub(crate) fn start(scene: &Scene, arguments: &[&str]) -> Self {
        let printed = scene.root.path().join("printed");
        let mut program = Command::new(env!("CARGO_BIN_EXE_moorline"));
        program.args(arguments).args(["-n", &scene.namespace]).env("KUBECONFIG", kubeconfig(scene));
        let (data, log) = (File::create(&printed).unwrap(), scene.root.path().join("going.log"));
        let running = Running::with_output(&mut program, data.into(), &log, &scene.plane.reaper);
        Self { running, printed }
    }

    /// Returns the complete lines, with single spaces.
    pub(crate) fn lines(&self) -> Vec<String> {
        let text = std::fs::read_to_string(&self.printed).unwrap();
        let lines = text.split_inclusive('\n').filter(|line| line.ends_with('\n'));
        lines.map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")).collect()
    }

    /// Returns its exit code, if it has ended without a signal.
    pub(crate) fn code(&mut self) -> Option<i32> {
        self.running.child.try_wait().unwrap().and_then(|status| status.code())
    }

    /// Waits for its end, and returns the exit code.
    pub(crate) async fn ended(&mut self) -> Option<i32> {
        super::daemon::until("the command ends", async || self.running.child.try_wait().unwrap()).await.code()
    }

    /// Sends SIGTERM, and returns the signal that ended it. SIGINT from a keyboard would not do: a
    /// background process of a shell ignores it, and so do all its children.
    pub(crate) fn terminate(mut self) -> Option<i32> {
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
