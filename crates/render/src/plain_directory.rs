//! Renders a plain directory: every `.yaml`, `.yml` and `.json` file below a path, as `kubectl
//! apply -f` reads them.
//!
//! In: the tree and the options. Out: objects, problems and skipped files.

use super::documents::{self, FileContent, MAX_PROBLEMS_PER_FILE, Manifest};
use super::glob::Glob;
use super::problem::Problem;
use super::rendered::Findings;
use super::{RenderOptions, Skipped};

use moorline_core::tree::{self, FileTree, MemoryLimit, TreeEntry};
use moorline_kustomize::FILE_NAMES;
use moorline_yaml as yaml;

/// Selection of the files of a directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlainOptions {
    /// Also read the folders below the path.
    pub recurse: bool,
    /// Read only files that match one of these globs, relative to the path; all if empty.
    pub include: Vec<Glob>,
    /// Do not read files that match one of these globs.
    pub exclude: Vec<Glob>,
}

impl Default for PlainOptions {
    fn default() -> Self {
        Self { recurse: true, include: Vec::new(), exclude: Vec::new() }
    }
}

/// Converts a manifest, or returns its problems.
type ManifestReader<'a, T> = &'a dyn Fn(Manifest, &[u8]) -> Result<T, Vec<Problem>>;

/// True for names of files that a render may read; a source need not fetch others.
pub fn is_read(name: &str) -> bool {
    is_manifest_file(name) || is_kustomization(name)
}

/// Reads every selected file of the directory.
pub(super) fn collect<T>(
    tree: &FileTree,
    options: &RenderOptions,
    reader: ManifestReader<'_, T>,
) -> Findings<T> {
    let mut found = Findings::default();
    let path = options.path.as_str();
    let root = match tree.resolve(path) {
        Ok(root) if tree.contains(&root) => root,
        Ok(_) => {
            found.problems.push(Problem::NoSuchPath { path: path.to_owned() });
            return found;
        }
        Err(error) => {
            found.problems.push(Problem::Tree(error));
            return found;
        }
    };
    match root.is_empty() || tree.entries_below(&root).next().is_some() {
        true => directory(tree, &root, &options.plain, reader, &mut found),
        false if options.plain.chooses(root.rsplit_once('/').map_or(&root, |(_, name)| name)) => {
            file(tree, &root, reader, &mut found);
        }
        false => {}
    }
    found
}

fn directory<T>(
    tree: &FileTree,
    root: &str,
    options: &PlainOptions,
    reader: ManifestReader<'_, T>,
    found: &mut Findings<T>,
) {
    for (path, entry) in tree.entries_below(root) {
        let inside = match root {
            "" => path,
            root => &path[root.len() + 1..],
        };
        if !options.recurse && inside.contains('/') {
            continue;
        }
        // Without this check a half-read folder would count as complete.
        if let Err(error) = tree.memory_limit().check_intact() {
            found.problems.push(error.into());
            return;
        }
        match entry {
            // `include` selects files, and the files of an unreadable folder are unknown; so only
            // `exclude` counts.
            TreeEntry::Unreadable { folder: true, .. } if !options.recurse || options.excludes(inside) => {}
            TreeEntry::Unreadable { folder: true, reason } => {
                let (path, reason) = (tree.display_path(path), reason.clone());
                found.problems.push(Problem::Tree(tree::TreeError::Unreadable { path, reason }));
            }
            TreeEntry::Link(_) if options.chooses(inside) && is_folder(tree, path) => {
                found.skipped.push(Skipped {
                    file: tree.display_path(path),
                    reason: "it is a link to a folder; name the folder itself",
                })
            }
            _ if options.chooses(inside) && is_read(inside) => file(tree, path, reader, found),
            _ => {}
        }
    }
}

/// Reads one file and keeps its valid objects.
fn file<T>(tree: &FileTree, path: &str, reader: ManifestReader<'_, T>, found: &mut Findings<T>) {
    if is_kustomization(path) {
        found.problems.push(Problem::Kustomization { file: tree.display_path(path) });
        return;
    }
    let bytes = match tree.read(path) {
        Ok(bytes) => bytes,
        Err(error) => {
            found.problems.push(Problem::Tree(error));
            return;
        }
    };
    let shown = tree.display_path(path);
    let cost = yaml::estimate_file(&bytes);
    if let Err(error) = tree.memory_limit().reserve(cost) {
        found.problems.push(error.into());
        return;
    }
    manifests(shown, (&bytes, tree.memory_limit()), reader, found);
    tree.memory_limit().give_back(cost);
}

/// Keeps the valid objects of a file's bytes.
fn manifests<T>(
    shown: String,
    (bytes, memory_limit): (&[u8], &MemoryLimit),
    reader: ManifestReader<'_, T>,
    found: &mut Findings<T>,
) {
    match documents::read(&shown, bytes, memory_limit) {
        Err(problem) => found.problems.push(problem),
        Ok(FileContent::NoManifests) => found
            .skipped
            .push(Skipped { file: shown, reason: "no document in it has an apiVersion or a kind" }),
        Ok(FileContent::Manifests(manifests)) => {
            let allowed = found.problems.len() + MAX_PROBLEMS_PER_FILE;
            for manifest in manifests {
                match manifest.map_err(|problem| vec![problem]).and_then(|manifest| reader(manifest, bytes)) {
                    Ok(object) => found.objects.push(object),
                    Err(problems) => found.problems.extend(problems),
                }
                if found.problems.len() >= allowed {
                    return;
                }
            }
        }
    }
}

impl PlainOptions {
    pub(super) fn chooses(&self, path: &str) -> bool {
        (self.include.is_empty() || matches_any(&self.include, path)) && !self.excludes(path)
    }

    pub(super) fn excludes(&self, path: &str) -> bool {
        matches_any(&self.exclude, path)
    }
}

fn matches_any(globs: &[Glob], path: &str) -> bool {
    globs.iter().any(|glob| glob.matches(path))
}

/// True if a link leads to a folder inside the tree.
fn is_folder(tree: &FileTree, link: &str) -> bool {
    tree.resolve(link).is_ok_and(|target| tree.entries_below(&target).next().is_some())
}

pub(super) fn is_manifest_file(path: &str) -> bool {
    [".yaml", ".yml", ".json"].iter().any(|ending| path.ends_with(ending))
}

/// True for the file names of kustomizations.
pub fn is_kustomization(path: &str) -> bool {
    let name = path.rsplit_once('/').map_or(path, |(_, name)| name);
    FILE_NAMES.contains(&name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Rendered, SourceType, render};

    #[test]
    fn an_unreadable_folder_is_never_passed_over_as_not_included() {
        let manifest = r#"{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}}"#;
        let tree: FileTree = [
            ("a.json", TreeEntry::File(manifest.as_bytes().into())),
            ("closed", TreeEntry::Unreadable { folder: true, reason: "permission denied".into() }),
        ]
        .into_iter()
        .collect();
        let complete = |include: &[&str], exclude: &[&str], recurse| {
            let patterns = |texts: &[&str]| texts.iter().map(|text| Glob::new(text).unwrap()).collect();
            let plain = PlainOptions { recurse, include: patterns(include), exclude: patterns(exclude) };
            matches!(
                render(&tree, &RenderOptions { plain, kind: SourceType::Plain, ..RenderOptions::default() }),
                Rendered::Complete(_)
            )
        };
        assert!(!complete(&[], &[], true));
        assert!(!complete(&["**/*.json"], &[], true), "an object may be in there, and would be pruned");
        assert!(complete(&[], &["closed"], true));
        assert!(complete(&[], &[], false), "nothing in it would be read");
    }
}
