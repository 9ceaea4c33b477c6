//! A folder of one's own: every kustomization below it, built by the tool and by Moorline.

use std::collections::BTreeMap;
use std::path::Path;

use moorline::tree::FileTree;

use super::answer::{self, Answer, Verdict};
use super::folder;
use super::oracle::{self, Oracle};

/// Results of all folders.
#[derive(Default)]
pub(crate) struct Found {
    pub(crate) equal: usize,
    /// Refused by both.
    pub(crate) nowhere: usize,
    /// Refused by Moorline alone: how often for which reason.
    pub(crate) refused: BTreeMap<String, Vec<String>>,
    pub(crate) different: Vec<String>,
}

/// Builds every folder with a kustomization below `root`.
pub(crate) fn compare(root: &Path, oracle: &Oracle) -> Found {
    let tree = folder::read(root);
    let folders = folders(&tree);
    let answers =
        oracle::for_all(&folders, |path| (answer::rendered(&tree, path), oracle.ask(&root.join(path))));
    let mut found = Found::default();
    for (path, (ours, theirs)) in folders.iter().zip(&answers) {
        count(&mut found, path, ours, theirs);
    }
    found
}

fn count(found: &mut Found, path: &str, ours: &Answer, theirs: &Answer) {
    if let (Answer::Refused { .. } | Answer::NotYet { .. }, Answer::Refused { .. }) = (ours, theirs) {
        found.nowhere += 1;
        return;
    }
    match answer::compare(ours, theirs) {
        Verdict::Equal => found.equal += 1,
        Verdict::Refused(why) => {
            // A reason without its place, so that equal reasons are counted together.
            let reason = why.split([':', ' ']).next().unwrap_or_default().to_owned();
            found.refused.entry(reason).or_default().push(format!("{path}: {why}"));
        }
        Verdict::Different(what) => found.different.push(format!("{path}: {what}")),
    }
}

fn folders(tree: &FileTree) -> Vec<String> {
    let names = ["kustomization.yaml", "kustomization.yml", "Kustomization"];
    let mut folders: Vec<String> = tree
        .entries()
        .filter_map(|(path, _)| {
            let (folder, name) = path.rsplit_once('/').unwrap_or(("", path));
            names.contains(&name).then(|| folder.to_owned())
        })
        .collect();
    folders.dedup();
    folders
}
