//! The real tool: asked about a folder, answered in our words.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use moorline::tree::FileTree;
use moorline::yaml::{Dialect, read};

use super::answer::Answer;
use super::{folder, refusals};

/// Number of tools that run at one time.
const THREADS: usize = 2;

/// A Kustomize that can be run.
pub(crate) struct Oracle {
    program: PathBuf,
    verb: &'static str,
}

impl Oracle {
    /// The program of that path.
    pub(crate) fn at(program: PathBuf) -> Self {
        let of_kubectl = program.file_name().is_some_and(|name| name == "kubectl");
        Self { program, verb: if of_kubectl { "kustomize" } else { "build" } }
    }

    /// Finds the tool that `MOORLINE_KUSTOMIZE` names, else the one on the `PATH`.
    pub(crate) fn found() -> Option<Self> {
        if let Some(program) = std::env::var_os("MOORLINE_KUSTOMIZE") {
            return Some(Self::at(program.into()));
        }
        let path = std::env::var_os("PATH")?;
        let folders: Vec<_> = std::env::split_paths(&path).collect();
        let programs = ["kustomize", "kubectl"];
        let places = programs.iter().flat_map(|name| folders.iter().map(move |folder| folder.join(name)));
        places.into_iter().find(|place| place.is_file()).map(Self::at)
    }

    /// Returns the name of the program.
    pub(crate) fn shown(&self) -> String {
        format!("{} {}", self.program.display(), self.verb)
    }

    /// Returns the tool's answer for a folder. It finds no git and no way to the net.
    pub(crate) fn ask(&self, folder: &Path) -> Answer {
        let nowhere = "http://127.0.0.1:9";
        let mut command = Command::new(&self.program);
        command.arg(self.verb).arg(folder).env("PATH", "");
        for name in ["HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy"] {
            command.env(name, nowhere);
        }
        let output = command.output().unwrap_or_else(|error| panic!("{}: {error}", self.shown()));
        if !output.status.success() {
            let text = String::from_utf8_lossy(&output.stderr).trim().to_owned();
            return Answer::Refused { class: refusals::of_tool(&text), text };
        }
        let documents = read("output", &output.stdout, Dialect::Kustomize);
        let documents = documents.unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
        Answer::Objects(documents.into_iter().map(|document| document.value).collect())
    }

    /// Returns the tool's answer for a folder of a tree.
    pub(crate) fn ask_tree(&self, tree: &FileTree, path: &str) -> Answer {
        let place = tempfile::tempdir().expect("a folder for a while");
        folder::write(tree, place.path());
        self.ask(&place.path().join(path))
    }
}

/// The answers of `ask` for all items, in their order, a few at a time.
pub(crate) fn for_all<T: Sync, A: Send>(items: &[T], ask: impl Fn(&T) -> A + Sync) -> Vec<A> {
    let (next, answers) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    std::thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(|| {
                loop {
                    let at = next.fetch_add(1, Ordering::Relaxed);
                    let Some(item) = items.get(at) else { break };
                    let answer = ask(item);
                    answers.lock().expect("no thread panicked").push((at, answer));
                }
            });
        }
    });
    let mut answers = answers.into_inner().expect("no thread panicked");
    answers.sort_by_key(|(at, _)| *at);
    answers.into_iter().map(|(_, answer)| answer).collect()
}
