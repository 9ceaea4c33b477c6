//! The repository that all Syncs follow.
//!
//! In: the content of the folders. Out: commits in a bare repository, written without a work tree.
//! A commit writes what has changed, and nothing is forced to the disk.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::{Path, PathBuf};

use git2::{Oid, Repository, RepositoryInitOptions, Signature, Time};

/// A folder: files by name.
pub(crate) type Folder = BTreeMap<String, Vec<u8>>;

/// The repository.
pub(crate) struct Books {
    path: PathBuf,
    repository: Repository,
    trees: BTreeMap<String, (Folder, Oid)>,
    /// Objects that are there already: to ask the disk for it takes longer than all else here.
    blobs: HashMap<Vec<u8>, Oid>,
    head: Option<Oid>,
    commits: i64,
}

impl Books {
    pub(crate) fn new(path: &Path) -> Self {
        // Objects that are written here are right, and to look it up each time takes longer.
        git2::opts::strict_object_creation(false);
        let mut options = RepositoryInitOptions::new();
        options.initial_head("main").bare(true).external_template(false);
        let repository = Repository::init_opts(path, &options).unwrap();
        let (trees, blobs) = (BTreeMap::new(), HashMap::new());
        Self { path: path.into(), repository, trees, blobs, head: None, commits: 0 }
    }

    pub(crate) fn url(&self) -> String {
        format!("file://{}", self.path.display())
    }

    /// The commit that the branch points to.
    pub(crate) fn head(&self) -> Option<String> {
        Some(self.head?.to_string())
    }

    /// Changes a folder; it counts with the next commit.
    pub(crate) fn write(&mut self, folder: &str, files: Folder) {
        if self.trees.get(folder).is_some_and(|(known, _)| *known == files) {
            return;
        }
        let mut builder = self.repository.treebuilder(None).unwrap();
        for (name, text) in &files {
            let known = self.blobs.get(text).copied();
            let blob = known.unwrap_or_else(|| self.repository.blob(text).unwrap());
            if known.is_none() {
                self.blobs.insert(text.clone(), blob);
            }
            builder.insert(name, blob, 0o100_644).unwrap();
        }
        let tree = builder.write().unwrap();
        drop(builder);
        self.trees.insert(folder.to_owned(), (files, tree));
    }

    /// The objects whose files are in a folder; none if there is no such folder.
    pub(crate) fn objects(&self, folder: &str) -> Option<BTreeSet<String>> {
        let (files, _) = self.trees.get(folder)?;
        Some(files.keys().filter_map(|name| Some(name.strip_suffix(".yaml")?.to_owned())).collect())
    }

    /// A commit of all folders: after the last one, or in its place, as a force push does.
    pub(crate) fn commit(&mut self, forced: bool) -> Oid {
        let mut builder = self.repository.treebuilder(None).unwrap();
        for (name, (_, tree)) in &self.trees {
            builder.insert(name, *tree, 0o040_000).unwrap();
        }
        let tree = self.repository.find_tree(builder.write().unwrap()).unwrap();
        self.commits += 1;
        let who =
            Signature::new("sim", "sim@example.com", &Time::new(1_700_000_000 + self.commits, 0)).unwrap();
        let last = self.head.map(|head| self.repository.find_commit(head).unwrap());
        let parents = match &last {
            Some(last) if forced => last.parents().collect(),
            _ => last.into_iter().collect::<Vec<_>>(),
        };
        let parents: Vec<_> = parents.iter().collect();
        self.repository.commit(None, &who, &who, "a step", &tree, &parents).unwrap()
    }

    /// The branch is at this commit.
    pub(crate) fn point_to(&mut self, commit: Oid) {
        self.repository.reference("refs/heads/main", commit, true, "a step").unwrap();
        self.head = Some(commit);
    }
}
