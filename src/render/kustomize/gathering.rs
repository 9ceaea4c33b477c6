//! What a build will want to read that was not brought.
//!
//! In: a tree that may hold a part of a repository only. Out: the folders that kustomizations name and of which nothing is known yet.
//! Whoever brings them asks again, because they may name others. What is wrong is left to the build to say.

use std::collections::BTreeSet;

use super::fault::At;
use super::files::{Files, Folder};
use super::kustomization;
use super::node::Text;
use crate::tree::{FileTree, normalise};

/// The most folders that are looked into.
const MAX_FOLDERS: usize = 10_000;

/// The paths that are to be brought before a build.
pub(in crate::render) fn missing(tree: &FileTree, path: &str) -> BTreeSet<String> {
    let files = Files::new(tree);
    let mut missing = BTreeSet::new();
    let mut seen = BTreeSet::new();
    let mut waiting: Vec<Folder> = files.root(path).into_iter().collect();
    while let Some(folder) = waiting.pop() {
        if seen.len() >= MAX_FOLDERS || !seen.insert(folder.path.clone()) {
            continue;
        }
        for entry in named(&files, &folder) {
            let Some(inside) = normalise(&folder.path, &entry.text) else { continue };
            let Ok(resolved) = tree.resolve(&inside) else { continue };
            if entry.text.contains("://") || tree.is_file(&resolved) {
                continue;
            }
            if !tree.holds(&resolved) {
                missing.insert(resolved);
            } else if let Ok(inner) = files.folder(&folder, &entry) {
                waiting.push(inner);
            }
        }
    }
    missing
}

/// The entries of a kustomization that may be folders.
fn named(files: &Files<'_>, folder: &Folder) -> Vec<Text> {
    let Ok((path, bytes)) = files.kustomization(folder, &At::file(&folder.path)) else { return Vec::new() };
    let Ok(read) = kustomization::read(&path, &path, &bytes) else { return Vec::new() };
    let lists = [read.resources, read.components, read.generators, read.transformers, read.validators];
    lists.into_iter().flatten().filter(|entry| !entry.text.contains('\n')).collect()
}
