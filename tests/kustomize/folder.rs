//! Folders on disk as trees in memory, and back: what the tool is asked about and what is rendered are the same.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use moorline::tree::{FileTree, TreeEntry};

/// File beside the input of a case.
pub(crate) const OBJECTS: &str = "expected.json";
pub(crate) const REFUSAL: &str = "expected-error.txt";

/// One committed case.
pub(crate) struct Case {
    pub(crate) group: String,
    pub(crate) name: String,
    pub(crate) folder: PathBuf,
    pub(crate) tree: FileTree,
}

/// All cases, by group and name.
pub(crate) fn cases() -> Vec<Case> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/kustomize/cases");
    let mut cases = Vec::new();
    for group in names(&root) {
        for name in names(&root.join(&group)) {
            let folder = root.join(&group).join(&name);
            cases.push(Case { group: group.clone(), name, tree: read(&folder), folder });
        }
    }
    cases
}

/// The files and links below a folder; what was recorded is not among them.
pub(crate) fn read(folder: &Path) -> FileTree {
    let mut entries = Vec::new();
    walk(folder, "", &mut entries);
    entries.into_iter().filter(|(path, _)| path != OBJECTS && path != REFUSAL).collect()
}

/// Writes a tree into an empty folder.
pub(crate) fn write(tree: &FileTree, folder: &Path) {
    for (path, entry) in tree.entries() {
        let path = folder.join(path);
        fs::create_dir_all(path.parent().expect("a file lies in a folder")).expect("a folder is made");
        match entry {
            TreeEntry::File(bytes) => fs::write(&path, bytes).expect("a file is written"),
            TreeEntry::Link(target) => symlink(&**target, &path).expect("a link is made"),
            TreeEntry::Decrypted(_)
            | TreeEntry::Encrypted { .. }
            | TreeEntry::TooLarge(_)
            | TreeEntry::NotFetched(_)
            | TreeEntry::Unreadable { .. } => {
                panic!("{path:?} was not read")
            }
        }
    }
}

fn walk(folder: &Path, prefix: &str, entries: &mut Vec<(String, TreeEntry)>) {
    for name in names(folder) {
        let (place, path) = (folder.join(&name), format!("{prefix}{name}"));
        let kind = fs::symlink_metadata(&place).expect("an entry can be looked at").file_type();
        if kind.is_symlink() {
            let target = fs::read_link(&place).expect("a link can be read");
            entries.push((path, TreeEntry::Link(target.to_string_lossy().into())));
        } else if kind.is_dir() {
            if name != ".git" {
                walk(&place, &format!("{path}/"), entries);
            }
        } else {
            let bytes = fs::read(&place).unwrap_or_else(|error| panic!("{place:?}: {error}"));
            entries.push((path, TreeEntry::File(bytes.into())));
        }
    }
}

fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap_or_else(|error| panic!("{folder:?}: {error}"));
    let name = |entry: std::io::Result<fs::DirEntry>| {
        entry.expect("a folder's entry can be read").file_name().to_string_lossy().into_owned()
    };
    let mut names: Vec<String> = entries.map(name).collect();
    names.sort();
    names
}
