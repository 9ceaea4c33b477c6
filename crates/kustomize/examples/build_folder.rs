//! Builds a kustomization on the disk and prints its objects: `build_folder REPOSITORY FOLDER`.
//!
//! The kustomization in `REPOSITORY/FOLDER` may use every file of the repository and no other.

use std::error::Error;
use std::fs;
use std::path::Path;
use std::process::ExitCode;

use moorline_core::tree::{FileTree, TreeEntry};
use moorline_kustomize::build;
use moorline_yaml::write;
use serde_json::Value;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [repository, folder] = arguments.as_slice() else {
        eprintln!("name a repository and a folder in it: build_folder REPOSITORY FOLDER");
        return ExitCode::from(2);
    };
    match print_objects(Path::new(repository), folder) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

fn print_objects(repository: &Path, folder: &str) -> Result<(), Box<dyn Error>> {
    let mut files = Vec::new();
    read_files(repository, "", &mut files)?;
    let tree: FileTree = files.into_iter().collect();
    for object in build(&tree, folder)?.objects {
        print!("---\n# {}\n{}", object.origin, write(&Value::Object(object.body)));
    }
    Ok(())
}

/// Reads the files below a folder; links are kept, and the tree follows those that stay inside.
fn read_files(
    folder: &Path,
    inside: &str,
    files: &mut Vec<(String, TreeEntry)>,
) -> Result<(), Box<dyn Error>> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let name = entry.file_name().into_string().map_err(|name| format!("{name:?} is not UTF-8"))?;
        let path = if inside.is_empty() { name } else { format!("{inside}/{name}") };
        let kind = entry.file_type()?;
        if kind.is_symlink() {
            let target = fs::read_link(entry.path())?;
            files.push((path, TreeEntry::Link(target.to_string_lossy().into())));
        } else if kind.is_dir() {
            read_files(&entry.path(), &path, files)?;
        } else if kind.is_file() {
            files.push((path, TreeEntry::File(fs::read(entry.path())?.into())));
        }
    }
    Ok(())
}
