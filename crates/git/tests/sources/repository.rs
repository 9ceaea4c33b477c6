//! Repositories over smart HTTP and on the local disk, as the daemon reads them.

use std::time::{Duration, Instant};

use moorline_core::tree::TreeEntry;
use moorline_git::{Address, Credentials, Error, History, Reference, Repositories, Repository, Revision};
use moorline_test_support::git_bench::soon;
use moorline_test_support::git_server::{GitServer, Reply, Work};

/// A server with one repository, and a daemon's data folder.
struct Bench {
    _root: tempfile::TempDir,
    work: Work,
    server: GitServer,
    all: Repositories,
}

impl Bench {
    fn new() -> Self {
        let root = tempfile::tempdir().unwrap();
        let work = Work::new(root.path());
        let server = GitServer::start(root.path());
        let all = Repositories::new(&root.path().join("data"), None, moorline_git::HostPolicy::allow_all())
            .unwrap();
        Self { _root: root, work, server, all }
    }

    fn repository(&self) -> Repository {
        let address = Address::remote(&self.server.url("repository.git")).unwrap();
        self.all.repository(&address, "", &Credentials::default()).unwrap()
    }
}

fn main_branch() -> Reference {
    Reference::branch("main").unwrap()
}

async fn look(repository: &Repository) -> Revision {
    repository.resolve(&main_branch(), soon()).await.unwrap()
}

async fn texts(repository: &Repository, revision: &Revision, folder: &str) -> Vec<(String, String)> {
    let found = repository.read(revision, &[folder], soon()).await.unwrap();
    let text = |entry: &TreeEntry| match entry {
        TreeEntry::File(bytes) => String::from_utf8_lossy(bytes).into_owned(),
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
        let id = |text: &str| moorline_git::ObjectHash::parse(text).unwrap();
        let (repository, old, new) = (repository.clone(), id(old), id(new));
        async move { repository.history(old, new, soon()).await.unwrap() }
    };
    assert_eq!(history(&first, &second).await, History::Forward);
}

#[tokio::test]
async fn a_look_is_one_small_request() {
    let bench = Bench::new();
    bench.work.push(&[("a", "1")]);
    for number in 0..200 {
        bench.work.git(&["update-ref", &format!("refs/heads/other-{number}"), "HEAD"]);
    }
    bench.work.git(&["push", "-q", "origin", "--all"]);
    let repository = bench.repository();
    look(&repository).await;
    bench.server.requests();

    let begun = Instant::now();
    for _ in 0..10 {
        look(&repository).await;
    }
    let each = begun.elapsed() / 10;
    let requests = bench.server.requests();
    assert_eq!(requests.len(), 10);
    let (up, down) = (requests[0].up, requests[0].down);
    println!(
        "a look: {each:?}, {up} bytes up with headers, {} of body; {down} bytes of body down",
        requests[0].body.len()
    );
    assert!(
        requests.iter().all(|request| request.method == "POST" && request.up < 700 && request.down < 200)
    );
    assert_eq!(requests[0].header("authorization"), None);

    // The same with a server that answers at once, to see our own part.
    let commit = look(&repository).await.commit;
    let line = format!("003d{commit} refs/heads/main\n0000");
    let kind = "Content-Type: application/x-git-upload-pack-result\r\n";
    bench.server.rule(move |_| Reply::Raw(200, kind, line.clone().into_bytes()));
    let begun = Instant::now();
    for _ in 0..100 {
        assert_eq!(look(&repository).await.commit, commit);
    }
    println!("a look without the server's part: {:?}", begun.elapsed() / 100);
}

#[tokio::test]
async fn a_fetch_brings_only_what_is_new() {
    let bench = Bench::new();
    let large: String = (0..20_000).map(|number| format!("{}\n", number * 7919)).collect();
    bench.work.push(&[("a/large", &large), ("a/small", "1")]);
    let repository = bench.repository();
    let revision = look(&repository).await;
    let whole = repository.fetch(&revision, soon()).await.unwrap();
    for round in 0..3 {
        bench.work.push(&[("a/small", &round.to_string())]);
        let revision = look(&repository).await;
        bench.server.requests();
        let begun = Instant::now();
        let bytes = repository.fetch(&revision, soon()).await.unwrap();
        println!("a fetch of one commit: {:?}, {bytes} bytes; the first had {whole}", begun.elapsed());
        assert!(bytes < 1000 && whole > 20_000, "{bytes} of {whole}");
        assert_eq!(bench.server.requests().len(), 1);
        assert_eq!(repository.fetch(&revision, soon()).await.unwrap(), 0);
        assert_eq!(bench.server.requests().len(), 0);
        assert_eq!(texts(&repository, &revision, "a").await[1].1, round.to_string());
    }
}

#[tokio::test]
async fn those_who_ask_at_the_same_time_share_the_answer() {
    let bench = Bench::new();
    bench.work.push(&[("a", "1")]);
    let repository = bench.repository();
    look(&repository).await;
    bench.server.requests();
    let asking: Vec<_> = (0..500)
        .map(|_| {
            let repository = bench.repository();
            tokio::spawn(async move { look(&repository).await })
        })
        .collect();
    for one in asking {
        one.await.unwrap();
    }
    let requests = bench.server.requests().len();
    assert!(requests <= 3, "{requests}");
}

#[tokio::test]
async fn the_impatient_do_not_spoil_it_for_the_patient() {
    let bench = Bench::new();
    bench.work.push(&[("a", "1")]);
    let repository = bench.repository();
    look(&repository).await;
    let asked = std::sync::atomic::AtomicUsize::new(0);
    bench.server.rule(move |_| match asked.fetch_add(1, std::sync::atomic::Ordering::Relaxed) {
        0 | 1 => Reply::Silence,
        _ => Reply::Git,
    });
    let ask = |milliseconds| {
        let (repository, reference) = (repository.clone(), main_branch());
        let by = Instant::now() + Duration::from_millis(milliseconds);
        tokio::spawn(async move { repository.resolve(&reference, by).await })
    };
    let (first, second, patient) = (ask(200), ask(400), ask(15_000));
    assert_eq!(first.await.unwrap().unwrap_err().reason(), "RepositoryTimeout");
    assert_eq!(second.await.unwrap().unwrap_err().reason(), "RepositoryTimeout");
    assert!(patient.await.unwrap().is_ok());
}

#[tokio::test]
async fn every_kind_of_reference_is_found() {
    let bench = Bench::new();
    let mut commits = Vec::new();
    for tag in ["v1.0.0", "v1.1.0", "v2.0.0-rc.1", "latest"] {
        commits.push(bench.work.push(&[("a", tag)]));
        match tag {
            "latest" => bench.work.git(&["tag", tag]),
            tag => bench.work.git(&["tag", "-a", "-m", "x", tag]),
        };
    }
    let tip = bench.work.push(&[("a", "tip")]);
    bench.work.git(&["push", "-q", "origin", "--tags"]);
    for old in [false, true] {
        bench.server.rule(move |_| if old { Reply::OldGit } else { Reply::Git });
        let repository = bench.all.repository(
            &Address::remote(&bench.server.url("repository.git")).unwrap(),
            if old { "old" } else { "new" },
            &Credentials::default(),
        );
        let repository = repository.unwrap();
        let table = [
            (Reference::Head, "refs/heads/main", &tip, "tip"),
            (main_branch(), "refs/heads/main", &tip, "tip"),
            (Reference::tag("v1.0.0").unwrap(), "refs/tags/v1.0.0", &commits[0], "v1.0.0"),
            (Reference::tag("latest").unwrap(), "refs/tags/latest", &commits[3], "latest"),
            (Reference::Semver(">=1.0.0".parse().unwrap()), "refs/tags/v1.1.0", &commits[1], "v1.1.0"),
            (
                Reference::Semver(">=2.0.0-0".parse().unwrap()),
                "refs/tags/v2.0.0-rc.1",
                &commits[2],
                "v2.0.0-rc.1",
            ),
        ];
        for (reference, name, commit, text) in table {
            let found = repository.resolve(&reference, soon()).await.unwrap();
            assert_eq!((&*found.name, &found.commit.to_string()), (name, commit), "{reference}");
            assert_eq!(texts(&repository, &found, "").await[0].1, text, "{reference}");
            assert_eq!(found.tag.is_some(), name.contains("/v"), "{reference}");
        }
        let by_id = Reference::Commit(moorline_git::ObjectHash::parse(&commits[0]).unwrap());
        let found = repository.resolve(&by_id, soon()).await.unwrap();
        assert_eq!(texts(&repository, &found, "").await[0].1, "v1.0.0");
    }
}

#[tokio::test]
async fn a_commit_that_no_ref_names_is_fetched_by_its_id() {
    let bench = Bench::new();
    let lost = bench.work.push(&[("a", "lost")]);
    let kept = bench.work.push(&[("a", "kept")]);
    let repository = bench.repository();
    let by_id = |id: &str| Reference::Commit(moorline_git::ObjectHash::parse(id).unwrap());
    let found = repository.resolve(&by_id(&lost), soon()).await.unwrap();
    assert_eq!(texts(&repository, &found, "").await[0].1, "lost");
    let unknown = repository.resolve(&by_id(&kept.replace(['0', '1', '2', '3'], "f")), soon()).await.unwrap();
    let error = repository.read(&unknown, &[""], soon()).await.unwrap_err();
    assert!(matches!(error, Error::NoCommit { .. }), "{error}");
}

#[tokio::test]
async fn what_is_missing_is_said() {
    let bench = Bench::new();
    let repository = bench.repository();
    let error = repository.resolve(&main_branch(), soon()).await.unwrap_err();
    assert_eq!(error, Error::Empty);
    assert_eq!(repository.resolve(&Reference::Head, soon()).await.unwrap_err(), Error::Empty);

    bench.work.push(&[("folder/a", "1")]);
    let missing = |reference: Reference| {
        let repository = repository.clone();
        async move { repository.resolve(&reference, soon()).await.unwrap_err().to_string() }
    };
    let message = missing(Reference::branch("mian").unwrap()).await;
    assert_eq!(message, "the repository has no branch mian (did you mean main?)");
    let message = missing(Reference::Semver(">=1".parse().unwrap())).await;
    assert_eq!(message, "the repository has no tag in the range >=1");
    let revision = look(&repository).await;
    for (path, expect) in
        [("none", "does not exist"), ("folder/none", "does not exist"), ("folder/a/b", "does not exist")]
    {
        let error = repository.read(&revision, &[path], soon()).await.unwrap_err();
        assert!(error.to_string().contains(expect) && error.reason() == "PathNotFound", "{error}");
    }
    let address = Address::remote(&bench.server.url("none.git")).unwrap();
    let none = bench.all.repository(&address, "", &Credentials::default()).unwrap();
    let error = none.resolve(&main_branch(), soon()).await.unwrap_err();
    assert_eq!(error.reason(), "RepositoryNotFound");
}

#[tokio::test]
async fn history_is_claimed_only_when_it_is_known() {
    let bench = Bench::new();
    Work::git_in(&bench.work.bare, &["config", "uploadpack.allowFilter", "true"]);
    let mut commits = vec![bench.work.push(&[("a", "0")])];
    for number in 1..60 {
        commits.push(bench.work.commit(&[("a", &number.to_string())]));
    }
    bench.work.push(&[]);
    let repository = bench.repository();
    let check = |old: &str, new: &str, expect: History| {
        let id = |text: &str| moorline_git::ObjectHash::parse(text).unwrap();
        let (repository, old, new) = (repository.clone(), id(old), id(new));
        async move {
            let found = repository.history(old, new, soon()).await.unwrap();
            assert_eq!(found, expect, "{old} {new}");
        }
    };
    let read = |bench: &Bench| {
        let repository = bench.repository();
        async move {
            let revision = look(&repository).await;
            repository.fetch(&revision, soon()).await.unwrap();
            revision.commit.to_string()
        }
    };
    let tip = read(&bench).await;
    check(&commits[58], &tip, History::Forward).await;
    check(&commits[55], &tip, History::Forward).await;
    check(&commits[1], &tip, History::Forward).await;

    // The last commit is written again: known from the two commits alone, without a request.
    bench.work.git(&["commit", "-q", "--amend", "--allow-empty", "-m", "other"]);
    bench.work.push(&[]);
    let amended = read(&bench).await;
    bench.work.git(&["reset", "-q", "--hard", "HEAD~1"]);
    let replaced = bench.work.push(&[("a", "replaced")]);
    read(&bench).await;
    bench.server.requests();
    check(&amended, &replaced, History::Rewritten).await;
    assert_eq!(bench.server.requests().len(), 0);

    // Back to a commit far behind.
    bench.work.git(&["reset", "-q", "--hard", &commits[3]]);
    bench.work.push(&[]);
    let back = read(&bench).await;
    check(&replaced, &back, History::Rewritten).await;

    // Another history altogether, known to its root.
    bench.work.git(&["checkout", "-q", "--orphan", "new"]);
    bench.work.commit(&[("a", "new")]);
    bench.work.git(&["push", "-q", "-f", "origin", "HEAD:main"]);
    let orphan = read(&bench).await;
    check(&tip, &orphan, History::Rewritten).await;

    // 300 commits, and no way to see their beginning.
    bench.work.import("long", None, 300);
    bench.work.git(&["push", "-q", "-f", "origin", "long:main"]);
    let long = read(&bench).await;
    check(&orphan, &long, History::Unknown).await;
    let start = bench.work.git(&["rev-parse", "long~250"]);
    check(&start, &long, History::Unknown).await;
    let near = bench.work.git(&["rev-parse", "long~150"]);
    check(&near, &long, History::Forward).await;
    // If it has to be known, more is fetched.
    for (old, expect) in [(&start, History::Forward), (&orphan, History::Rewritten)] {
        let id = |text: &str| moorline_git::ObjectHash::parse(text).unwrap();
        assert_eq!(repository.whole_history(id(old), id(&long), soon()).await, Ok(expect), "{old}");
    }
}
