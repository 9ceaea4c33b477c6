//! Folders and files of a repository to sets of parameters.
//!
//! In: a generator, and the tree of its revision.
//! Out: a set for each folder or file that its globs select; an error if one cannot be read. Links
//! are not followed.

use std::collections::BTreeSet;

use moorline_api::{GitGenerator, PathPatterns};
use moorline_core::tree::{FileTree, TreeEntry};
use moorline_render::Glob;
use moorline_yaml::{Dialect, read, type_name};
use serde_json::{Map, Value, json};

use crate::generate::MAX_SETS;

/// Maximum number of bytes of a file with parameters.
const MAX_FILE_BYTES: usize = 64 * 1024;

/// Globs of a generator, compiled.
struct Patterns {
    include: Vec<Glob>,
    exclude: Vec<Glob>,
}

impl Patterns {
    fn compile(patterns: &PathPatterns) -> Result<Self, String> {
        let compile = |texts: &[String]| -> Result<Vec<Glob>, String> {
            let compile =
                |text: &String| Glob::new(text).map_err(|error| format!("the glob {text:?}: {}", error.msg));
            texts.iter().map(compile).collect()
        };
        Ok(Self { include: compile(&patterns.include)?, exclude: compile(&patterns.exclude)? })
    }

    fn select(&self, path: &str) -> bool {
        let any = |globs: &[Glob]| globs.iter().any(|glob| glob.matches(path));
        any(&self.include) && !any(&self.exclude)
    }
}

/// Returns the folders that hold everything that the globs may select; an empty one is the root.
pub fn read_folders(generator: &GitGenerator) -> Vec<String> {
    let patterns = generator.folders.iter().chain(&generator.files);
    let mut folders = BTreeSet::new();
    for glob in patterns.flat_map(|patterns| &patterns.include) {
        let is_literal = |part: &&str| !part.contains(['*', '?', '[']);
        let mut parts: Vec<&str> = glob.split('/').take_while(is_literal).collect();
        // A glob without wildcards names one path: its parent is read.
        if parts.len() == glob.split('/').count() {
            parts.pop();
        }
        folders.insert(parts.join("/"));
    }
    let is_inside = |inner: &String, outer: &String| {
        inner != outer && (outer.is_empty() || inner.starts_with(&format!("{outer}/")))
    };
    let outer = |folder: &&String| !folders.iter().any(|other| is_inside(folder, other));
    folders.iter().filter(outer).cloned().collect()
}

/// Returns the files whose content the generator reads.
pub fn select_files(generator: &GitGenerator, tree: &FileTree) -> BTreeSet<String> {
    let Some(Ok(patterns)) = generator.files.as_ref().map(Patterns::compile) else {
        return BTreeSet::new();
    };
    let selected = tree.entries().filter(|(path, _)| patterns.select(path)).map(|(path, _)| path.to_owned());
    // One more than allowed is enough to be refused.
    selected.take(MAX_SETS + 1).collect()
}

/// Values of one set of parameters.
type Values = Map<String, Value>;

/// Returns the sets of parameters of a generator.
pub(crate) fn parameters_of(generator: &GitGenerator, tree: &FileTree) -> Result<Vec<Values>, String> {
    match (&generator.folders, &generator.files) {
        (Some(patterns), None) => of_folders(&Patterns::compile(patterns)?, tree),
        (None, Some(patterns)) => of_files(&Patterns::compile(patterns)?, tree),
        (Some(_), Some(_)) | (None, None) => Err("write exactly one of folders and files".to_owned()),
    }
}

fn of_folders(patterns: &Patterns, tree: &FileTree) -> Result<Vec<Values>, String> {
    let mut folders = BTreeSet::new();
    for (path, entry) in tree.entries() {
        if let TreeEntry::Unreadable { folder: true, reason } = entry {
            return Err(format!("the folder {path} cannot be read: {reason}"));
        }
        let ends = path.match_indices('/').map(|(end, _)| &path[..end]);
        folders.extend(ends.filter(|folder| patterns.select(folder)));
    }
    let set = |path: &str| {
        let parts: Vec<&str> = path.split('/').collect();
        let folder = json!({"path": path, "name": parts.last(), "parts": parts});
        Map::from_iter([("folder".to_owned(), folder)])
    };
    Ok(folders.into_iter().map(set).collect())
}

fn of_files(patterns: &Patterns, tree: &FileTree) -> Result<Vec<Values>, String> {
    let selected = tree.entries().filter(|(path, _)| patterns.select(path));
    selected.map(|(path, entry)| of_file(path, entry)).collect()
}

fn of_file(path: &str, entry: &TreeEntry) -> Result<Values, String> {
    let bytes = match entry {
        TreeEntry::File(bytes) if bytes.len() <= MAX_FILE_BYTES => bytes,
        TreeEntry::File(_) | TreeEntry::TooLarge(_) => {
            return Err(format!("{path} is larger than {MAX_FILE_BYTES} bytes"));
        }
        TreeEntry::Link(_) => return Err(format!("{path} is a link, which is not followed")),
        TreeEntry::Decrypted(_)
        | TreeEntry::Encrypted { .. }
        | TreeEntry::NotFetched(_)
        | TreeEntry::Unreadable { .. } => return Err(format!("{path} cannot be read")),
    };
    let documents = read(path, bytes, Dialect::Kubectl).map_err(|error| error.to_string())?;
    let mut set = match documents.into_iter().map(|document| document.value).collect::<Vec<_>>().as_slice() {
        [Value::Object(content)] => content.clone(),
        [other] => return Err(format!("{path} is {}: write a mapping", type_name(other))),
        [] => return Err(format!("{path} is empty: write a mapping")),
        [..] => return Err(format!("{path} has several documents: write one mapping")),
    };
    if set.contains_key("sops") {
        return Err(format!("{path} is encrypted: parameters are not secret"));
    }
    let (folder, name) = path.rsplit_once('/').unwrap_or(("", path));
    let place = json!({"path": path, "folder": folder, "name": name});
    match set.insert("file".to_owned(), place) {
        None => Ok(set),
        Some(_) => Err(format!("{path} has the key file, which is the path of the file itself")),
    }
}
