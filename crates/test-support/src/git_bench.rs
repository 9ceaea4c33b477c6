//! A Git server with one repository and a daemon's data folder, for tests of sources.

use std::fs;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use moorline_git::{Address, Credentials, Error, Reference, Repositories, Repository, Revision};

use super::git_server::{GitServer, Work};

pub struct Bench {
    pub root: tempfile::TempDir,
    pub work: Work,
    pub server: GitServer,
}

impl Bench {
    pub fn new() -> Self {
        let root = tempfile::tempdir().unwrap();
        let work = Work::new(root.path());
        let server = GitServer::start(root.path());
        work.push(&[("a/one.yaml", "one"), ("a/two.yaml", "two")]);
        Self { root, work, server }
    }

    pub fn all(&self) -> Repositories {
        // Another test may be starting git just now: until its exec the child holds our lock as
        // well.
        let open =
            || Repositories::new(&self.root.path().join("data"), None, moorline_git::HostPolicy::allow_all());
        (0..100)
            .find_map(|_| open().map_err(|_| std::thread::sleep(Duration::from_millis(20))).ok())
            .unwrap_or_else(|| open().unwrap())
    }

    pub fn open(&self, all: &Repositories) -> Repository {
        let address = Address::remote(&self.server.url("repository.git")).unwrap();
        all.repository(&address, "", &Credentials::default()).unwrap()
    }

    /// The only folder of Git objects in the data folder.
    pub fn store(&self) -> PathBuf {
        let one = |folder: PathBuf| {
            let folders: Vec<_> = fs::read_dir(folder)
                .unwrap()
                .map(|one| one.unwrap().path())
                .filter(|one| one.is_dir())
                .collect();
            assert_eq!(folders.len(), 1, "{folders:?}");
            folders.into_iter().next().unwrap()
        };
        one(one(self.root.path().join("data")))
    }

    pub fn packs(&self) -> Vec<PathBuf> {
        let listed = fs::read_dir(self.store().join("objects/pack")).unwrap();
        listed
            .map(|one| one.unwrap().path())
            .filter(|path| path.extension().is_some_and(|end| end == "pack"))
            .collect()
    }
}

pub fn within(milliseconds: u64) -> Instant {
    Instant::now() + Duration::from_millis(milliseconds)
}

/// A deadline that no operation of a test reaches, also on a busy machine.
pub fn soon() -> Instant {
    within(120_000)
}

pub async fn look(repository: &Repository) -> Revision {
    repository.resolve(&Reference::Head, soon()).await.unwrap()
}

pub async fn read_all(repository: &Repository) -> Result<usize, Error> {
    let revision = look(repository).await;
    Ok(repository.read(&revision, &[""], soon()).await?.files.entries().count())
}
