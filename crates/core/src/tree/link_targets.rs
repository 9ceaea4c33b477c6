//! Targets of the links below a folder.
//!
//! In: a tree and a folder. Out: the targets, as paths in the tree. A chart may contain links, and
//! everything that depends on the chart also depends on their targets.

use std::collections::BTreeSet;

use super::{FileTree, TreeEntry};

/// Most link targets that are collected.
const MAX_LINKS: usize = 1000;

/// Returns the targets of links below a folder, and of links below these targets.
pub fn link_targets(tree: &FileTree, folder: String) -> BTreeSet<String> {
    let (mut found, mut folders) = (BTreeSet::new(), vec![folder]);
    while let Some(folder) = folders.pop() {
        let links = tree.entries_below(&folder).filter(|(_, entry)| matches!(entry, TreeEntry::Link(_)));
        for target in links.filter_map(|(path, _)| tree.resolve(path).ok()) {
            if found.len() < MAX_LINKS && found.insert(target.clone()) {
                folders.push(target);
            }
        }
    }
    found
}
