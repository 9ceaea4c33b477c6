//! The scenes of all files: a line that begins with `#` is a title, blank lines end requests.
//!
//! In: `tests/parity/*.txt`. Out: [`Scene`]s in the order of files and lines.

use std::fs;
use std::path::Path;

use moorline::yaml::{self, Dialect};
use serde_json::Value;

/// A scene: what it is about, and its requests in order.
pub struct Scene {
    pub file: String,
    pub title: String,
    pub requests: Vec<Asking>,
}

impl Scene {
    /// It is about objects that controllers would write to.
    pub fn is_still(&self) -> bool {
        self.file.starts_with("still")
    }
}

/// One request.
pub struct Asking {
    pub line: usize,
    pub verb: String,
    pub path: String,
    pub body: Option<Value>,
}

impl Asking {
    /// The request with the scene's namespace in it.
    pub fn within(&self, namespace: &str) -> Self {
        let body = self.body.as_ref().map(|body| body.to_string().replace("NS", namespace));
        Self {
            line: self.line,
            verb: self.verb.clone(),
            path: self.path.replace("NS", namespace),
            body: body.map(|body| serde_json::from_str(&body).unwrap()),
        }
    }
}

/// Reads all scenes.
pub fn scenes() -> Vec<Scene> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/parity");
    let mut files: Vec<_> = fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.retain(|path| path.extension().is_some_and(|extension| extension == "txt"));
    files.sort();
    let mut scenes = Vec::new();
    for path in files {
        let file = path.file_name().unwrap().to_string_lossy().into_owned();
        read(&file, &fs::read_to_string(&path).unwrap(), &mut scenes);
    }
    scenes
}

fn read(file: &str, text: &str, scenes: &mut Vec<Scene>) {
    let mut lines = text.lines().enumerate().peekable();
    while let Some((at, line)) = lines.next() {
        if let Some(title) = line.strip_prefix("# ") {
            scenes.push(Scene { file: file.to_owned(), title: title.to_owned(), requests: Vec::new() });
            continue;
        }
        if line.is_empty() {
            continue;
        }
        let (verb, path) = line.split_once(' ').unwrap_or((line, ""));
        // Text that begins with a brace would have to be JSON.
        let mut body = "---\n".to_owned();
        while let Some((_, line)) = lines.next_if(|(_, line)| !line.is_empty()) {
            body.push_str(line);
            body.push('\n');
        }
        let body = yaml::read(file, body.as_bytes(), Dialect::Kubectl);
        let body = body.unwrap_or_else(|error| panic!("{file}:{}: {error}", at + 1));
        let body = body.into_iter().next().map(|document| document.value);
        let asking = Asking { line: at + 1, verb: verb.to_owned(), path: path.to_owned(), body };
        let scene = scenes.last_mut().unwrap_or_else(|| panic!("{file}: begins without a title"));
        scene.requests.push(asking);
    }
}
