//! Decides the start of a kustomize build: the kustomization of the folder, or a generated one.
//!
//! In: the tree and the options. Out: [`KustomizationRoot`]. With `spec.render.kustomize`, a folder
//! without a kustomization is built as one of its plain manifests and of the kustomizations in its
//! subfolders, as Flux generates it; files without manifests are skipped, as in a plain folder.

use super::documents::{self, FileContent};
use super::plain_directory::is_manifest_file;
use super::problem::Problem;
use super::{RenderOptions, Skipped, SourceType, helm};

use moorline_core::tree::{self, FileTree, TreeEntry};
use moorline_kustomize::{BuildRoot, FILE_NAMES};
use moorline_yaml as yaml;

/// Start of a build.
#[derive(Debug, Default)]
pub(super) struct KustomizationRoot {
    /// Resources of the generated kustomization; none if the folder has its own one.
    generated: Option<Vec<String>>,
    /// Files that hold no manifests.
    pub(super) skipped: Vec<Skipped>,
}

impl KustomizationRoot {
    /// Decides the start of a build, and reads which files hold manifests.
    pub(super) fn of(tree: &FileTree, options: &RenderOptions) -> Result<Self, Problem> {
        let mut root = Self::of_names(tree, options)?;
        let folder = tree.resolve(&options.path)?;
        let mut skipped = Vec::new();
        if let Some(resources) = &mut root.generated {
            resources.retain(|inside| {
                let path = join(&folder, inside);
                let is_read = !tree.is_file(&path) || holds_manifests(tree, &path);
                if !is_read {
                    let reason = "no document in it has an apiVersion or a kind";
                    skipped.push(Skipped { file: tree.display_path(&path), reason });
                }
                is_read
            });
        }
        root.skipped.extend(skipped);
        Ok(root)
    }

    /// Decides the start of a build by the names of files alone.
    pub(super) fn of_names(tree: &FileTree, options: &RenderOptions) -> Result<Self, Problem> {
        if options.kustomize.is_none() || options.kind == SourceType::Kustomize {
            return Ok(Self::default());
        }
        let (folder, shown) = (tree.resolve(&options.path)?, tree.display_path(&options.path));
        if !tree.contains(&folder) {
            return Err(Problem::NoSuchPath { path: options.path.clone() });
        }
        if !folder.is_empty() && tree.is_file(&folder) {
            return Err(Problem::OptionsOnFile { path: shown });
        }
        if options.kind == SourceType::Auto && own_kustomization(tree, &folder).is_some() {
            return Ok(Self::default());
        }
        if options.kind == SourceType::Auto && helm::is_chart(tree, &folder) {
            return Err(Problem::OptionsOnChart { path: shown });
        }
        let mut generation = Generation {
            tree,
            options,
            folder: &folder,
            built: None,
            plain_folder: None,
            root: Self::default(),
        };
        tree.entries_below(&folder).try_for_each(|(path, entry)| generation.add(path, entry))?;
        let resources = generation.root.generated.get_or_insert_default();
        resources.sort();
        Ok(generation.root)
    }

    /// True if the kustomization is generated.
    pub(super) fn is_generated(&self) -> bool {
        self.generated.is_some()
    }

    /// Returns the start for the builder.
    pub(super) fn build_root<'a>(&'a self, options: &'a RenderOptions) -> BuildRoot<'a> {
        BuildRoot {
            path: &options.path,
            options: options.kustomize.as_deref(),
            generated: self.generated.as_deref(),
        }
    }
}

/// State of the search for the resources of a generated kustomization.
struct Generation<'a> {
    tree: &'a FileTree,
    options: &'a RenderOptions,
    folder: &'a str,
    /// The last subfolder with a kustomization of its own: the files in it belong to that one.
    built: Option<&'a str>,
    /// The last subfolder without one.
    plain_folder: Option<&'a str>,
    root: KustomizationRoot,
}

impl<'a> Generation<'a> {
    fn add(&mut self, path: &'a str, entry: &TreeEntry) -> Result<(), Problem> {
        let (tree, plain) = (self.tree, &self.options.plain);
        if self.built.is_some_and(|folder| lies_below(path, folder)) {
            return Ok(());
        }
        let top = if self.folder.is_empty() { 0 } else { self.folder.len() + 1 };
        let inside = &path[top..];
        if let Some(subfolder) = self.built_folder(path, inside) {
            self.built = Some(subfolder);
            let inside = &subfolder[top..];
            let file = own_kustomization(tree, subfolder).unwrap_or_default();
            let is_chosen = plain.chooses(file.get(top..).unwrap_or_default()) && !plain.excludes(inside);
            if plain.recurse && is_chosen {
                self.root.generated.get_or_insert_default().push(inside.to_owned());
            }
            return Ok(());
        }
        if !plain.recurse && inside.contains('/') {
            return Ok(());
        }
        match entry {
            TreeEntry::Unreadable { folder: true, .. } if plain.excludes(inside) => {}
            TreeEntry::Unreadable { folder: true, reason } => {
                let (path, reason) = (tree.display_path(path), reason.clone());
                return Err(tree::TreeError::Unreadable { path, reason }.into());
            }
            _ if !plain.chooses(inside) => {}
            _ if super::is_kustomization(inside) => {
                return Err(Problem::Kustomization { file: tree.display_path(path) });
            }
            TreeEntry::Link(_) if tree.contains(path) && !tree.is_file(path) => {
                let reason = "it is a link to a folder; name the folder itself";
                self.root.skipped.push(Skipped { file: tree.display_path(path), reason });
            }
            _ if is_manifest_file(inside) => {
                self.root.generated.get_or_insert_default().push(inside.to_owned());
            }
            _ => {}
        }
        Ok(())
    }

    /// Returns the outermost subfolder on the way to a file that has a kustomization, unless all
    /// manifests are plain.
    fn built_folder(&mut self, path: &'a str, inside: &str) -> Option<&'a str> {
        let parent = path.rsplit_once('/').map(|(parent, _)| parent);
        if self.options.kind == SourceType::Plain || parent == self.plain_folder {
            return None;
        }
        let top = path.len() - inside.len();
        let ends = inside.match_indices('/').map(|(at, _)| &path[..top + at]);
        let built = ends.into_iter().find(|folder| own_kustomization(self.tree, folder).is_some());
        if built.is_none() {
            self.plain_folder = parent;
        }
        built
    }
}

/// Returns the path of the kustomization of a folder.
fn own_kustomization(tree: &FileTree, folder: &str) -> Option<String> {
    FILE_NAMES.iter().map(|name| join(folder, name)).find(|path| tree.is_file(path))
}

/// True if a file has a document with an `apiVersion` or a `kind`, or cannot be read: the build
/// then says why.
fn holds_manifests(tree: &FileTree, path: &str) -> bool {
    let Ok(bytes) = tree.read(path) else { return true };
    let has = |field: &[u8]| {
        let mut lines = bytes.split(|byte| *byte == b'\n');
        lines.any(|line| line.starts_with(field))
    };
    // Most manifests are recognised without reading them twice.
    if has(b"apiVersion:") && has(b"kind:") {
        return true;
    }
    let (memory_limit, cost) = (tree.memory_limit(), yaml::estimate_file(&bytes));
    if memory_limit.reserve(cost).is_err() {
        return true;
    }
    let content = documents::read(&tree.display_path(path), &bytes, memory_limit);
    let is_empty = matches!(content, Ok(FileContent::NoManifests));
    drop(content);
    memory_limit.give_back(cost);
    !is_empty
}

fn lies_below(path: &str, folder: &str) -> bool {
    path.strip_prefix(folder).is_some_and(|rest| rest.starts_with('/'))
}

fn join(folder: &str, name: &str) -> String {
    match folder {
        "" => name.to_owned(),
        folder => format!("{folder}/{name}"),
    }
}
