//! Repository of a demonstration.
//!
//! In: an empty folder, and files.
//! Out: a repository with a branch `main` and linear history. Users of the folder may commit there
//! as well, with Git's own tools.

use std::path::{Path, PathBuf};

use git2::{IndexAddOption, Repository, RepositoryInitOptions, Signature};

use super::error::Error;

/// Author of the commits.
const AUTHOR: (&str, &str) = ("Moorline demo", "demo@moorline.invalid");

/// The repository.
#[derive(Debug)]
pub struct DemoRepository(PathBuf);

impl DemoRepository {
    /// Creates a repository without commits.
    pub fn new(folder: &Path) -> Result<Self, Error> {
        let mut options = RepositoryInitOptions::new();
        options.initial_head("main").mkpath(true).no_reinit(true);
        let made = Repository::init_opts(folder, &options);
        let workshop = Self(folder.to_owned());
        made.map(|_| ()).map_err(|error| workshop.failed(error.message()))?;
        Ok(workshop)
    }

    /// Returns its folder.
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// Writes files and removes others, and commits all changes in the folder. Returns the commit.
    pub fn commit(&self, message: &str, write: &[(&str, &str)], remove: &[&str]) -> Result<String, Error> {
        for (path, text) in write {
            let path = self.0.join(path);
            let made = path.parent().map_or(Ok(()), std::fs::create_dir_all);
            made.and_then(|()| std::fs::write(&path, text))
                .map_err(|error| self.failed(&error.to_string()))?;
        }
        for path in remove {
            std::fs::remove_file(self.0.join(path)).map_err(|error| self.failed(&error.to_string()))?;
        }
        self.record(message).map_err(|error| self.failed(error.message()))
    }

    fn record(&self, message: &str) -> Result<String, git2::Error> {
        let repository = Repository::open(&self.0)?;
        let mut index = repository.index()?;
        index.add_all(["*"], IndexAddOption::DEFAULT, None)?;
        index.update_all(["*"], None)?;
        index.write()?;
        let tree = repository.find_tree(index.write_tree()?)?;
        let author = Signature::now(AUTHOR.0, AUTHOR.1)?;
        let parent = repository.head().ok().map(|head| head.peel_to_commit()).transpose()?;
        let parents: Vec<_> = parent.iter().collect();
        let commit = repository.commit(Some("HEAD"), &author, &author, message, &tree, &parents)?;
        Ok(commit.to_string())
    }

    fn failed(&self, cause: &str) -> Error {
        Error::Local { path: self.0.display().to_string().into(), cause: cause.into() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commits_follow_each_other() {
        let folder = tempfile::tempdir().unwrap();
        let workshop = DemoRepository::new(&folder.path().join("shop")).unwrap();
        let first = workshop.commit("one", &[("a/b.yaml", "x"), ("c.yaml", "y")], &[]).unwrap();
        let second = workshop.commit("two", &[("a/b.yaml", "z")], &["c.yaml"]).unwrap();
        let repository = Repository::open(workshop.path()).unwrap();
        let head = repository.head().unwrap();
        assert_eq!((head.shorthand().unwrap(), head.target().unwrap().to_string()), ("main", second));
        let commit = head.peel_to_commit().unwrap();
        assert_eq!((commit.message().unwrap(), commit.parent_id(0).unwrap().to_string()), ("two", first));
        let tree = commit.tree().unwrap();
        assert!(tree.get_path(Path::new("c.yaml")).is_err());
        let blob = tree.get_path(Path::new("a/b.yaml")).unwrap().to_object(&repository).unwrap();
        assert_eq!(blob.as_blob().unwrap().content(), b"z");
    }
}
