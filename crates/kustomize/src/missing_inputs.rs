//! Finds the files that a build needs and the tree does not have.
//!
//! In: a tree that may hold only a part of a repository. Out: [`MissingInputs`], the folders that
//! kustomizations name and that are missing, here and in other repositories. The caller adds them
//! and asks again, because they may name further ones. Errors are left to the build.

use std::collections::{BTreeMap, BTreeSet};

use super::chart_inputs::MAX_CHARTS;
use super::error::FieldLocation;
use super::files::{Files, Folder};
use super::host::Standalone;
use super::kustomization::{self, Kustomization};
use super::node::LocatedText;
use super::overlay::BuildRoot;
use super::remote::Remote;
use moorline_core::position::SourcePosition;
use moorline_core::tree::{FileTree, link_targets};

/// Most folders that are visited.
const MAX_FOLDERS: usize = 10_000;

/// Most repositories with their exact position: more are not fetched, and each position costs
/// another reading of the file.
const MAX_PLACES: usize = 64;

/// Files and repositories that a build needs.
#[derive(Debug, Default)]
pub struct MissingInputs {
    /// Paths in the tree.
    pub folders: BTreeSet<String>,
    /// Folders in repositories that are not in the tree, each with the position where it is named
    /// first.
    pub remotes: BTreeMap<Remote, SourcePosition>,
}

/// Returns the files and repositories that a build of this folder needs and the tree lacks.
///
/// The caller adds them ([`FileTree::with_fetched`], [`FileTree::with_mounts`]) and asks again
/// until nothing is missing, because they may name further ones.
pub fn missing_inputs<'a>(tree: &FileTree, root: impl Into<BuildRoot<'a>>) -> MissingInputs {
    let root = root.into();
    let files = Files::new(tree, &Standalone);
    let mut missing = MissingInputs::default();
    let mut seen = BTreeSet::new();
    let mut waiting: Vec<Folder> = files.root(root).into_iter().collect();
    let mut outer = waiting.first().and_then(|folder| root.kustomization(&files, folder).ok());
    while let Some(folder) = waiting.pop() {
        if !files.is_awaited() {
            break;
        }
        if seen.len() >= MAX_FOLDERS || !seen.insert(folder.path.clone()) {
            continue;
        }
        let read = outer.take().or_else(|| read(&files, &folder));
        let Some(read) = read else { continue };
        for entry in folder_entries(&read) {
            let Some(resolved) = missing.place(tree, &folder, &entry) else { continue };
            if !tree.is_known(&resolved) {
                missing.folders.insert(resolved);
            } else if let Ok(inner) = files.folder(&folder, &entry) {
                waiting.push(inner);
            }
        }
        missing.folders.extend(charts(tree, &read, &folder));
    }
    missing
}

impl MissingInputs {
    /// Returns the path of an entry in the tree, if it may be a folder and its repository is not
    /// missing.
    fn place(&mut self, tree: &FileTree, folder: &Folder, entry: &LocatedText) -> Option<String> {
        let path = tree.resolve_relative(&folder.path, &entry.text);
        let remote = match path.as_ref().is_some_and(|path| tree.is_file(path)) && !entry.text.contains("://")
        {
            true => return None,
            false => Remote::parse(&entry.text),
        };
        let inside = match remote {
            None => path?,
            Some(Err(_)) => return None,
            Some(Ok(remote)) => match tree.mount_of(&remote.name()) {
                Some(Ok(place)) => tree.resolve_relative(place, &remote.path)?,
                Some(Err(_)) => return None,
                None => {
                    let is_told = self.remotes.len() < MAX_PLACES;
                    let place = || match is_told {
                        true => entry.at.position(tree),
                        false => {
                            SourcePosition { file: tree.display_path(&entry.at.file), line: 1, column: 1 }
                        }
                    };
                    self.remotes.entry(remote).or_insert_with(place);
                    return None;
                }
            },
        };
        tree.resolve(&inside).ok().filter(|resolved| !tree.is_file(resolved))
    }
}

/// Returns the missing folders of charts, and missing targets of links in them.
fn charts(tree: &FileTree, read: &Kustomization, folder: &Folder) -> Vec<String> {
    // A build with more charts is refused.
    let places = read.charts.iter().take(MAX_CHARTS + 1).filter_map(|chart| {
        let place = tree.resolve_relative(&folder.path, &chart.folder_path(&read.chart_home))?;
        tree.resolve(&place).ok()
    });
    let places: BTreeSet<String> = places.collect();
    let all =
        places.into_iter().flat_map(|place| link_targets(tree, place.clone()).into_iter().chain([place]));
    all.filter(|place| !tree.is_known(place)).collect()
}

fn read(files: &Files<'_>, folder: &Folder) -> Option<Kustomization> {
    let (path, bytes) = files.kustomization(folder, &FieldLocation::file(&folder.path)).ok()?;
    kustomization::read(&path, &path, &bytes, &|| files.is_awaited()).ok()
}

/// Returns the entries of a kustomization that may be folders.
fn folder_entries(read: &Kustomization) -> Vec<LocatedText> {
    let lists = [&read.resources, &read.components, &read.generators, &read.transformers, &read.validators];
    lists.into_iter().flatten().filter(|entry| !entry.text.contains('\n')).cloned().collect()
}
