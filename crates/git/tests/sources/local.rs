//! Repositories on the local disk: read where they lie, and a commit is seen at once.

use std::time::{Duration, Instant};

use moorline_git::{Address, Credentials, Error, History, RefWatch, Reference, Repositories};
use moorline_test_support::git_bench::soon;
use moorline_test_support::git_server::Work;
use moorline_test_support::under_load::under_load;

#[tokio::test]
async fn a_local_commit_is_seen_at_once() {
    let root = tempfile::tempdir().unwrap();
    let work = Work::new(root.path());
    let first = work.commit(&[("app/a.yaml", "one")]);
    let all =
        Repositories::new(&root.path().join("data"), None, moorline_git::HostPolicy::allow_all()).unwrap();
    for url in [work.folder.display().to_string(), format!("file://{}", work.folder.display())] {
        let repository =
            all.repository(&Address::local_or_remote(&url).unwrap(), "", &Credentials::default()).unwrap();
        let revision = repository.resolve(&Reference::Head, soon()).await.unwrap();
        assert_eq!((revision.commit.to_string(), &*revision.name), (first.clone(), "refs/heads/main"));
        let found = repository.read(&revision, &["app"], soon()).await.unwrap();
        assert_eq!(&*found.files.read("app/a.yaml").unwrap(), b"one");
    }
    let repository = all.repository(
        &Address::local_or_remote(&work.folder.display().to_string()).unwrap(),
        "",
        &Credentials::default(),
    );
    let repository = repository.unwrap();

    let watch = RefWatch::new(&work.folder).unwrap();
    let mut last = repository.resolve(&Reference::Head, soon()).await.unwrap();
    for round in 0..5 {
        match round {
            3 => drop(work.git(&["pack-refs", "--all"])),
            4 => drop(work.git(&["gc", "-q"])),
            _ => {}
        }
        let commit = work.commit(&[("app/a.yaml", &round.to_string())]);
        let begun = Instant::now();
        loop {
            tokio::time::timeout(under_load(Duration::from_secs(1)), watch.changed())
                .await
                .expect("seen within a second");
            let revision = repository.resolve(&Reference::Head, soon()).await.unwrap();
            if revision.commit.to_string() == commit {
                println!("seen after {:?}", begun.elapsed());
                let history = repository.history(last.commit, revision.commit, soon()).await.unwrap();
                assert_eq!(history, History::Forward);
                last = revision;
                break;
            }
        }
    }
    // Another branch, and the change of HEAD alone.
    work.git(&["checkout", "-q", "-b", "feature/x"]);
    tokio::time::timeout(under_load(Duration::from_secs(1)), watch.changed())
        .await
        .expect("a new branch is seen");
    let revision = repository.resolve(&Reference::Head, soon()).await.unwrap();
    assert_eq!(&*revision.name, "refs/heads/feature/x");
    work.git(&["commit", "-q", "--amend", "-m", "other"]);
    let amended = repository.resolve(&Reference::Head, soon()).await.unwrap();
    let history = repository.history(last.commit, amended.commit, soon()).await.unwrap();
    assert_eq!(history, History::Rewritten);
}

#[tokio::test]
async fn local_paths_need_leave_and_say_what_is_wrong() {
    let root = tempfile::tempdir().unwrap();
    assert!(Address::remote(&root.path().display().to_string()).is_err());
    let all =
        Repositories::new(&root.path().join("data"), None, moorline_git::HostPolicy::allow_all()).unwrap();
    let open = |path: &str| {
        let address = Address::local_or_remote(&root.path().join(path).display().to_string()).unwrap();
        all.repository(&address, "", &Credentials::default()).unwrap()
    };
    let error = open("none").resolve(&Reference::Head, soon()).await.unwrap_err();
    assert_eq!(error.reason(), "RepositoryUnreadable");
    let work = Work::new(root.path());
    assert_eq!(open("work").resolve(&Reference::Head, soon()).await.unwrap_err(), Error::Empty);
    work.push(&[("a", "1")]);
    let bare = open("repository.git").resolve(&Reference::branch("main").unwrap(), soon()).await.unwrap();
    assert_eq!(&*bare.name, "refs/heads/main");
    let error = open("work").resolve(&Reference::tag("none").unwrap(), soon()).await.unwrap_err();
    assert_eq!(error.reason(), "ReferenceNotFound");
}
