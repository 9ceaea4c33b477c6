//! Repositories over smart HTTP and on the local disk, as the daemon reads them.

#[path = "support/git_server.rs"]
mod git_server;

use std::time::{Duration, Instant};

use git_server::{GitServer, Reply, Work};
use moorline::source::{Address, Credentials, Error, History, Reference, Repositories, Repository, Revision};
use moorline::tree::Entry;

/// A server with one repository, and a daemon's data folder.
struct Bench {
    root: tempfile::TempDir,
    work: Work,
    server: GitServer,
    all: Repositories,
}

impl Bench {
    fn new() -> Self {
        let root = tempfile::tempdir().unwrap();
        let work = Work::new(root.path());
        let server = GitServer::start(root.path());
        let all = Repositories::new(&root.path().join("data"), None).unwrap();
        Self { root, work, server, all }
    }

    fn repository(&self) -> Repository {
        let address = Address::remote(&self.server.url("repository.git")).unwrap();
        self.all.repository(&address, "", &Credentials::default()).unwrap()
    }

    /// A second daemon over the same data, once the first has ended.
    fn restart(mut self) -> Self {
        let other = tempfile::tempdir().unwrap();
        self.all = Repositories::new(other.path(), None).unwrap();
        self.all = Repositories::new(&self.root.path().join("data"), None).unwrap();
        self
    }
}

fn soon() -> Instant {
    Instant::now() + Duration::from_secs(20)
}

fn main_branch() -> Reference {
    Reference::branch("main").unwrap()
}

async fn look(repository: &Repository) -> Revision {
    repository.look(&main_branch(), soon()).await.unwrap()
}

async fn texts(repository: &Repository, revision: &Revision, folder: &str) -> Vec<(String, String)> {
    let found = repository.read(revision, &[folder], soon()).await.unwrap();
    let text = |entry: &Entry| match entry {
        Entry::File(bytes) => String::from_utf8_lossy(bytes).into_owned(),
        other => format!("{other:?}"),
    };
    found.files.entries().map(|(path, entry)| (path.to_owned(), text(entry))).collect()
}

fn pairs(expect: &[(&str, &str)]) -> Vec<(String, String)> {
    expect.iter().map(|(path, text)| ((*path).to_owned(), (*text).to_owned())).collect()
}

#[tokio::test]
async fn a_commit_is_looked_up_fetched_and_read() {
    let bench = Bench::new();
    let first =
        bench.work.push(&[("app/a.yaml", "one"), ("app/deep/b.yaml", "two"), ("other/c.yaml", "three")]);
    let repository = bench.repository();
    let revision = look(&repository).await;
    assert_eq!((revision.commit.to_string(), &*revision.name), (first.clone(), "refs/heads/main"));
    assert_eq!(
        texts(&repository, &revision, "app").await,
        pairs(&[("app/a.yaml", "one"), ("app/deep/b.yaml", "two")])
    );
    assert_eq!(texts(&repository, &revision, "").await.len(), 3);

    let second = bench.work.push(&[("app/a.yaml", "changed")]);
    let revision = look(&repository).await;
    assert_eq!(revision.commit.to_string(), second);
    assert_eq!(texts(&repository, &revision, "./app/").await[0].1, "changed");
    let history = |old: &str, new: &str| {
        let id = |text: &str| moorline::source::ObjectHash::parse(text).unwrap();
        let (repository, old, new) = (repository.clone(), id(old), id(new));
        async move { repository.history(old, new, soon()).await.unwrap() }
    };
    assert_eq!(history(&first, &second).await, History::Forward);
}
