//! Text files of the repository, as path and content.

use std::fs;
use std::path::Path;

/// Folders without files of ours.
const SKIPPED: [&str; 3] = ["target", "node_modules", "corpus"];
/// Hidden folders with files of ours.
const HIDDEN: [&str; 2] = [".ci", ".github"];
const EXTENSIONS: [&str; 5] = ["rs", "md", "toml", "sh", "go"];
const NAMES: [&str; 2] = ["Makefile", "run"];

/// Returns all text files that the rules apply to, sorted by path.
pub(crate) fn texts() -> Vec<(String, String)> {
    let mut files = Vec::new();
    walk(Path::new(env!("CARGO_MANIFEST_DIR")), "", &mut files);
    files.sort();
    files
}

/// Returns a file by its path in the repository; `None` if it is missing.
pub(crate) fn text(path: &str) -> Option<String> {
    fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(path)).ok()
}

/// True if the repository has a file or folder at a path.
pub(crate) fn exists(path: &str) -> bool {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(path).exists()
}

fn walk(folder: &Path, prefix: &str, files: &mut Vec<(String, String)>) {
    let entries = fs::read_dir(folder).unwrap_or_else(|error| panic!("cannot list {prefix:?}: {error}"));
    for entry in entries {
        let entry = entry.expect("a folder's entry can be read");
        let name = entry.file_name().to_string_lossy().into_owned();
        let path = format!("{prefix}{name}");
        let kind = entry.file_type().expect("an entry has a type");
        if kind.is_dir() {
            let hidden = name.starts_with('.') && !HIDDEN.contains(&name.as_str());
            if !hidden && !SKIPPED.contains(&name.as_str()) {
                walk(&entry.path(), &format!("{path}/"), files);
            }
        } else if kind.is_file() && is_ours(&name) {
            let text = fs::read_to_string(entry.path()).unwrap_or_else(|error| panic!("{path}: {error}"));
            files.push((path, text));
        }
    }
}

fn is_ours(name: &str) -> bool {
    NAMES.contains(&name) || name.rsplit_once('.').is_some_and(|(_, end)| EXTENSIONS.contains(&end))
}
